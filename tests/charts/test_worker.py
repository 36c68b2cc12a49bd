"""Pictures that several processes draw are those that one draws, whatever happens to the others."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.charts import worker
from support import every_kind

Started = list[subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def orders() -> list[worker.Order]:
    """Orders of a release of each kind that has a picture."""
    return [
        worker.Order(release, f"Title of {name}", f"<{name}> & \u00e9", name.replace(" ", "-"))
        for name, release in every_kind.releases().items()
        if release.has_picture
    ]


@pytest.fixture(scope="module")
def same(orders: list[worker.Order]) -> list[worker.Order]:
    """Four orders of the same picture."""
    return orders[:1] * 4


@pytest.fixture(scope="module")
def drawn_here(same: list[worker.Order]) -> list[worker.Pictures]:
    """What this process draws for them."""
    return [same[0].pictures()] * 4


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The processes that are started from here on: two for four orders or more."""
    monkeypatch.setattr(worker, "LEAST_ORDERS", 4)
    monkeypatch.setenv("SFUMATO_THREADS", "3")
    processes: Started = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[call-overload]
            processes.append(self)

    monkeypatch.setattr(worker.subprocess, "Popen", Noted)
    return processes


def bringing() -> list[threading.Thread]:
    """The threads that bring orders to workers."""
    return [thread for thread in threading.enumerate() if "(_bring)" in thread.name]


def has_ended(processes: Started) -> bool:
    return all(process.returncode is not None for process in processes) and not bringing()


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.deep)])
def test_pictures_are_the_same_to_the_last_byte(
    orders: list[worker.Order], started: Started, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    """Workers draw all orders but one."""
    orders = orders[::stride]
    draw = worker.Order.pictures
    own: list[worker.Order] = []

    def last(order: worker.Order) -> worker.Pictures:
        own.append(order)
        for thread in bringing():
            thread.join()
        return draw(order)

    with monkeypatch.context() as patch:
        patch.setattr(worker.Order, "pictures", last)
        together = worker.drawn_together(orders)
    assert len(own) == 1
    assert [process.returncode for process in started] == [0, 0]
    assert has_ended(started)
    assert together == [draw(order) for order in orders]


def test_few_pictures_start_no_process(same: list[worker.Order], started: Started) -> None:
    assert len(worker.drawn_together(same[:3])) == 3
    assert started == []


@pytest.mark.skipif(os.name != "posix", reason="a script stands for the interpreter")
@pytest.mark.parametrize(
    "script",
    [
        "exit 1",
        "kill -9 $$",
        "read order; exit 0",
        "read order; kill -9 $$",
        "read order; echo nonsense; cat > /dev/null",
        "read order; printf '[\"half a pic'",
        "while read order; do echo null; done",
    ],
)
def test_what_a_worker_leaves_is_drawn_all_the_same(
    script: str,
    same: list[worker.Order],
    drawn_here: list[worker.Pictures],
    started: Started,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f"#!/bin/sh\n{script}\n")
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    assert worker.drawn_together(same) == drawn_here
    assert len(started) == 2
    assert has_ended(started)


@pytest.mark.parametrize("executable", ["", None, "/opt/studio", "/nowhere/python"])
def test_without_an_interpreter_one_process_draws(
    executable: str | None,
    same: list[worker.Order],
    drawn_here: list[worker.Pictures],
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that has Python inside it would run itself once more."""
    monkeypatch.setattr(sys, "executable", executable)
    assert worker.drawn_together(same) == drawn_here
    assert started == []


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), RuntimeError("no room")])
def test_an_interrupt_or_an_error_ends_all(
    failure: BaseException,
    same: list[worker.Order],
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(order: worker.Order) -> worker.Pictures:
        raise failure

    monkeypatch.setattr(worker.Order, "pictures", fail)
    with pytest.raises(type(failure)):
        worker.drawn_together(same)
    assert len(started) == 2
    assert has_ended(started)


def test_a_wrong_number_of_threads_is_refused(
    same: list[worker.Order], started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "two")
    with pytest.raises(sf.UsageError, match="SFUMATO_THREADS='two'"):
        worker.drawn_together(same)
    assert started == []


def test_a_worker_says_what_it_did_not_draw(
    same: list[worker.Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what it draws with a warning only: the process that asked shows that to its user."""
    line = worker._written(same[0])
    assert worker._reply(line).startswith(b'["<svg')
    for damaged in (b"", b"{}", line[:-9], line.replace(b'"lattice":', b'"lettuce":')):
        assert worker._reply(damaged) == b"null"

    def warning(order: worker.Order) -> worker.Pictures:
        import warnings

        warnings.warn("a glyph is missing", UserWarning, stacklevel=2)
        return ("", "")

    monkeypatch.setattr(worker.Order, "pictures", warning)
    assert worker._reply(line) == b"null"


@pytest.mark.parametrize("is_frozen", [False, True])
def test_what_was_frozen_before_is_frozen_after(
    same: list[worker.Order], drawn_here: list[worker.Pictures], is_frozen: bool
) -> None:
    """Garbage is looked for as the user said, and everywhere again."""
    gc.unfreeze()
    if is_frozen:
        gc.freeze()
    try:
        assert worker.drawn_together(same) == drawn_here
        assert bool(gc.get_freeze_count()) == is_frozen
    finally:
        gc.freeze()  # as for all tests
