"""Interrupts at every point at which Python looks for one, signal handlers, and threads."""

from __future__ import annotations

import gc
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.runs import Scripted
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.publishing.stream import Stream
from sfumato.random.bits import override
from support.tampering import secrets_of
from support.workers import HANG

EMPTY = pa.table({"x": pa.array([], pa.float64()), "who": pa.array([], pa.string())})
DOMAIN = sf.Domain(x=sf.Interval(0, 1))
ROOMS = (
    "/sfumato/ledger/",
    "/sfumato/publishing/stream.py",
)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"counter": sf.Counter(10**6)},
    "persons": {"counter": sf.Counter(10**6), "person": "who"},
    "square root": {"counter": sf.Counter(1024, method="toeplitz")},
    "calendar": {"counter": sf.Counter(sf.Calendar("2000-01-01", "2019-12-31"))},
    "memory": {"counter": sf.Counter(10**6), "ledger": None},
}


def opened(
    path: Path | None, counter: sf.Counter, person: str | None = None
) -> tuple[sf.Publisher, Stream]:
    publisher = sf.Publisher(
        sf.source(EMPTY, DOMAIN, name="e", person=person),
        ledger=path,
        account="a",
        budget=sf.ZCDP("9"),
    )
    return publisher, publisher.open(counter, rho="1", key="k")


@cache
def is_ours(path: str) -> bool:
    """Whether a module of that path may be interrupted; asked at each call of a function."""
    return any(room in path for room in ROOMS)


class Interrupted:
    """Calls an action, with a KeyboardInterrupt at the n-th entry into, or return from, our code.

    Python looks for signals there, and at jumps backward. A profiler is called at the former, and
    what it raises is raised there. No garbage is collected meanwhile: an interrupt of a finalizer,
    of a ledger that an earlier test left, say, is not raised in the action but ignored.
    """

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, action: Callable[[], object]) -> bool:
        """Whether the interrupt came; what it did to the action is not told."""
        gc.disable()
        sys.setprofile(self._look)
        try:
            action()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
            gc.enable()
        return self.left <= 0

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        if event != "c_call" and is_ours(frame.f_code.co_filename):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def free(stream: Stream) -> bool:
    """Whether another thread can use the stream."""
    found: list[int] = []
    other = threading.Thread(target=lambda: found.append(stream.step), daemon=True)
    other.start()
    other.join(HANG)
    return bool(found)


def test_an_injected_interrupt_spares_the_garbage_of_others() -> None:
    """The finalizer of a ledger in a cycle is our code, and would be where the interrupt lands."""
    usual = gc.get_threshold()

    def act() -> None:
        cycle.clear()
        gc.set_threshold(1)  # so that Python looks for garbage at once, if at all
        assert len([[] for _ in range(10**4)]) == 10**4

    gc.set_threshold(10**6)
    try:
        store: list[object] = [SQLiteStore(None)]
        store.append(store)
        cycle = [store]
        del store
        assert not Interrupted(1)(act)
    finally:
        gc.set_threshold(*usual)
    gc.collect()


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_anywhere_leaves_a_stream_that_goes_on(tmp_path: Path, kind: str) -> None:
    """What is shown is on disk, no step has two noises, and no lock is left behind."""
    setting = {"ledger": tmp_path / "b.db", **KINDS[kind]}
    path = setting["ledger"]
    person = setting.get("person")
    publisher, stream = opened(path, setting["counter"], person)
    shown: dict[str, float] = {}
    days = np.datetime64("2000-01-01") + np.arange(7000)

    def push(number: int) -> None:
        event: Any = days[number].item() if kind == "calendar" else number
        total = stream.push(1, event=event, persons=None if person is None else ["p"])
        assert shown.setdefault(total.event, total.value) == total.value

    acts: list[Callable[[int], object]] = [
        push,
        lambda _: stream.step,
        lambda _: stream.history(),
        lambda _: list(stream),
    ]
    events = count()
    for act in acts:
        for at in range(1, 1000 if act is push else 60):
            event = next(events)
            came = Interrupted(at)(partial(act, event))
            assert free(stream)
            push(event)
            if not came:
                break
        assert at > 10
    outputs = dict(zip(stream.history().events, stream.history().values.tolist(), strict=True))
    assert outputs == pytest.approx(shown)
    assert publisher.ledger.verify().ok
    if path is not None:
        _, again = opened(path, setting["counter"], person)
        assert again.history().events == stream.history().events
        assert again.history().values.tolist() == stream.history().values.tolist()
        with closing(sqlite3.connect(secrets_of(path))) as db:
            assert db.execute("SELECT count(*) FROM steps").fetchone() == (len(shown),)


@pytest.mark.parametrize("path", ["b.db", None])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.deep)])
def test_an_interrupt_anywhere_in_a_charge_leaves_a_ledger_that_goes_on(
    tmp_path: Path, path: str | None, stride: int
) -> None:
    table = sf.source(np.zeros((5, 1)), DOMAIN, name="five")
    publisher = sf.Publisher(
        table, ledger=None if path is None else tmp_path / path, account="a", budget="1000"
    )
    stream = publisher.open(sf.Counter(9), epsilon="1", key="k")
    for number in range(1, 2000, stride):
        came = Interrupted(number)(
            partial(publisher.release, sf.Histogram("x"), epsilon="1", key=str(number))
        )
        assert free(stream)
        with suppress(sf.LedgerError):  # a lease that an interrupt left behind runs out by itself
            publisher.ledger.reserve("a", f"after {number}", "d", (1, 0), "", wait=0).__exit__(
                None, None, None
            )
        if not came:
            break
    assert not came
    assert number > 500
    assert publisher.ledger.verify().ok


def test_a_signal_handler_is_refused_while_its_own_thread_uses_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path / "b.db", None):
        _, stream = opened(path, sf.Counter(9), "who")
        machine, refused = type(stream._mechanism), []

        def handler(
            *_: object, stream: Stream = stream, refused: list[sf.LedgerError] = refused
        ) -> None:
            with pytest.raises(sf.LedgerError, match="in the middle of using it") as refusal:
                stream.push(0, event="b", persons=[])
            refused.append(refusal.value)

        def slow(self: Any, *arguments: Any, plain: Any = machine.step) -> Any:
            signal.raise_signal(signal.SIGUSR1)
            return plain(self, *arguments)

        before = signal.signal(signal.SIGUSR1, handler)
        with monkeypatch.context() as patch:
            patch.setattr(machine, "step", slow)
            first = stream.push(1, event="a", persons=["p"])
        signal.signal(signal.SIGUSR1, before)
        assert len(refused) == 1
        assert (first.step, stream.push(1, event="b", persons=["q"]).step) == (1, 2)
        assert stream.history().events == ("a", "b")


def test_a_signal_handler_that_pushes_between_store_and_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is free then, and the handler's step is the next; no total is another step's."""
    _, stream = opened(tmp_path / "b.db", sf.Counter(9, method="toeplitz"))
    plain, nested = stream._published._estimate, []

    def read(output: Any) -> Any:
        if not nested:
            nested.append(None)
            nested.append(stream.push(1, event="b"))
        return plain(output)

    monkeypatch.setattr(stream._published, "_estimate", read)
    first = stream.push(1, event="a")
    third = stream.push(1, event="c")
    _, again = opened(tmp_path / "b.db", sf.Counter(9, method="toeplitz"))
    assert [first.value, nested[1].value, third.value] == pytest.approx(
        again.history().values.tolist()
    )
    assert again.history().events == ("a", "b", "c")


@pytest.mark.parametrize("method", ["tree", "toeplitz"])
def test_threads_may_share_a_stream(tmp_path: Path, method: Any) -> None:
    counter = sf.Counter(1000, method=method, late="count")
    _, stream = opened(tmp_path / "b.db", counter)
    shown: list[tuple[str, sf.Estimate]] = []
    plain = stream._published._estimate

    def slow(output: Any) -> Any:
        time.sleep(0.001)  # for others to come in between; none need come
        return plain(output)

    stream._published._estimate = slow

    def work(who: int) -> None:
        shown.extend(
            (event, stream.push(1, event=event)) for event in (f"{who} {i}" for i in range(25))
        )

    threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _, again = opened(tmp_path / "b.db", counter)
    stored = dict(zip(again.history().events, again.history().values.tolist(), strict=True))
    assert len(stored) == 100
    assert {event: total.value for event, total in shown} == pytest.approx(stored)
    assert all(event == total.event for event, total in shown)  # type: ignore[attr-defined]
    assert stream.history().values.tolist() == again.history().values.tolist()


def test_of_two_that_push_the_next_step_of_a_calendar_both_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = sf.Counter(sf.Calendar("2013-01-01", "2013-01-09"))
    with override(Scripted()):  # no noise
        _, one = opened(tmp_path / "b.db", counter)
        _, two = opened(tmp_path / "b.db", counter)
        place = one._step_index

        def rival(calendar: sf.Calendar, event: object) -> int:
            found = place(calendar, event)
            if two.step == 0:
                two.push(100)
            return found

        monkeypatch.setattr(one, "_step_index", rival)
        total = one.push(7)
        assert (total.event, total.value) == ("2013-01-02", 107)
        assert two.history().values.tolist() == [100, 107]


def test_a_ledger_that_was_replaced_while_nothing_was_open_is_noticed(tmp_path: Path) -> None:
    """As after a fork, or an error of the disk."""
    publisher, stream = opened(tmp_path / "b.db", sf.Counter(9))
    stream.push(1)
    with closing(sqlite3.connect(secrets_of(tmp_path / "b.db"))) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "old.db"),))
    stream.push(1)
    publisher.ledger._opened_secrets().store.database._drop()  # type: ignore[attr-defined]
    (tmp_path / "old.db").replace(secrets_of(tmp_path / "b.db"))
    with pytest.raises(sf.LedgerError, match="moved or replaced"):
        stream.push(1)
