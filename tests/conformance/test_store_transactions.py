"""A transaction of a store is done whole or not at all, whoever else writes."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from conformance.stores import (
    BEGUN,
    SHARED,
    filled,
    filled_secrets,
    public_rows,
    reserve,
    secret_rows,
    step_after,
    take_step,
)
from sfumato.errors import LedgerError
from sfumato.ledger import Entry, journal
from sfumato.ledger.audit import audit
from sfumato.ledger.entries import OVER, linked
from sfumato.ledger.store import NameRow, PublicRows, SecretRows, StorePart
from support.memory_store import MemorySecretStore, MemoryStore


class Stopped(BaseException):
    """Stands for an interrupt, which no store may take for an error of its own."""


class Stopping:
    """Rows that stop at the n-th call, before it is made or after it."""

    def __init__(self, rows: object, calls: int, after: bool) -> None:
        self._rows = rows
        self._left = calls
        self._after = after

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Stopped
            found = getattr(self._rows, name)(*given, **more)
            if self._left == 0:
                raise Stopped
            return found

        return call


def stopped_everywhere(
    part: StorePart[Any], action: Callable[[Any], object], look: Callable[[], object]
) -> int:
    """Stop a transaction at each of its calls, check that nothing was done, and count the calls."""
    before = look()
    for calls in itertools.count(1):
        for after in (False, True):
            try:
                part.writing(
                    lambda rows, calls=calls, after=after: action(Stopping(rows, calls, after))
                )
            except Stopped:
                assert look() == before, (calls, after)
            else:
                assert look() != before
                return calls
    raise AssertionError


def test_a_transaction_that_is_stopped_anywhere_does_nothing(store):
    def charge(rows: PublicRows) -> None:
        journal.open_account(rows, "visits", "marbles", (9, 0))
        journal.bind(rows, "visits", "one row", "m")
        journal.cap(rows, "visits", "m", "marbles", (5, 0))
        first = journal.append(rows, reserve("new"))
        journal.store_answer(rows, journal.follow(first, "store"), b"x")
        journal.append(rows, journal.follow(first, "hand"))

    assert stopped_everywhere(store, charge, lambda: public_rows(store)) > 15
    assert store.reading(lambda rows: audit(rows, None)).verification.ok


def test_a_secret_transaction_that_is_stopped_anywhere_does_nothing(secrets):
    def steps(rows: SecretRows) -> None:
        rows.keep("trips", NameRow("new", b"new", "digest"), derived=True)
        rows.keep("trips", NameRow("k", b"newer", "digest"), derived=True)
        rows.add_value("signing key", b"private")
        rows.add_replaced([(3, "old 3"), (4, "old 4")])
        rows.count(5, b"who")
        rows.count(5, b"third")
        at = rows.position(5)
        assert rows.commit_step(5, at.seal, *step_after(at, "c", b"three", tallied=5))
        assert take_step(rows, "d", b"four", OVER)
        rows.add_stream(BEGUN._replace(number=8))

    assert stopped_everywhere(secrets, steps, lambda: secret_rows(secrets)) > 10


@pytest.mark.parametrize(
    "failure", [ZeroDivisionError, KeyboardInterrupt, GeneratorExit, SystemExit]
)
def test_what_a_transaction_raises_comes_out(store, failure):
    def fail(rows: PublicRows) -> None:
        journal.append(rows, reserve("new"))
        raise failure

    before = public_rows(store)
    for part in (store.writing, store.reading):
        with pytest.raises(failure):
            part(fail if part == store.writing else lambda _: (_ for _ in ()).throw(failure))
    assert public_rows(store) == before


def in_threads(actions: list[Callable[[], object]]) -> None:
    """Run all at once; the first failure comes out."""
    failures: list[BaseException] = []

    def run(action: Callable[[], object]) -> None:
        try:
            action()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_no_update_is_lost(make, store):
    """Each transaction reads what it then continues."""
    stores = [store, make(), make()]

    def work(who: int) -> None:
        for number in range(8):
            stores[who].writing(
                lambda rows, key=f"{who} {number}": journal.append(rows, reserve(key))
            )

    in_threads([lambda who=who: work(who) for who in range(3)])
    assert store.reading(lambda rows: rows.account("trips")).spent == (31 + 24, 2)
    assert store.reading(lambda rows: audit(rows, None)).verification.ok
    assert make().reading(lambda rows: rows.highest()) == 6 + 24


def test_no_step_is_lost(make, store, secrets):
    """Each is computed from the state before it, while nobody else can write."""
    stores = [secrets, make().secrets(create=False), make().secrets(create=False)]

    def take(rows: SecretRows, event: str) -> bool:
        at = rows.position(5)
        assert at is not None
        return rows.commit_step(5, at.seal, *step_after(at, event, event.encode(), b"%d" % at.step))

    def work(who: int) -> None:
        for number in range(8):
            event = f"{who} {number}"
            assert stores[who].writing(lambda rows, event=event: take(rows, event))

    in_threads([lambda who=who: work(who) for who in range(3)])
    steps = secrets.reading(lambda rows: rows.steps(5))
    assert [step.number for step in steps] == list(range(1, 27))
    assert len({step.event for step in steps}) == 2 + 24
    assert [step.hash for step in steps[2:]] == [
        linked(a.hash, 5, b.number, b.event, b.output) for a, b in itertools.pairwise(steps[1:])
    ]
    for other in stores[1:]:
        other.close()


def test_a_view_stays_as_it_is(make, store):
    writer = make()
    began = threading.Event()

    def write() -> None:
        began.set()
        writer.writing(lambda rows: journal.append(rows, reserve("meanwhile")))

    other = threading.Thread(target=write)

    def look(rows: PublicRows) -> tuple[list[Entry], list[Entry]]:
        before = list(rows.entries())
        other.start()
        began.wait()
        if writer is not store:  # else it waits for the end of this view
            other.join()
        return before, list(rows.entries())

    before, after = store.reading(look)
    other.join()
    assert before == after
    assert store.reading(lambda rows: rows.highest()) == len(before) + 1


def test_a_thread_that_is_using_it_may_not_use_it(store, secrets):
    """A signal handler would do so. A public transaction may hold one on the secrets, though."""
    before = public_rows(store)
    with pytest.raises(LedgerError, match="in the middle of using it"):
        store.writing(
            lambda rows: (
                journal.append(rows, reserve("new")),
                store.reading(lambda rows: rows.charged()),
            )
        )
    for way in (secrets.reading, secrets.writing):
        with pytest.raises(LedgerError, match="in the middle of using it"):
            way(lambda rows: secrets.writing(lambda rows: rows.any_stream()))
    assert public_rows(store) == before
    assert store.writing(lambda rows: secrets.writing(lambda rows: rows.count(5, b"within"))) == 1


def test_a_closed_store_says_so(store, secrets):
    for part in (store, secrets):
        part.close()
        part.close()
        with pytest.raises(LedgerError, match="it is closed"):
            part.reading(lambda rows: None)


def test_a_child_process_goes_on_or_is_refused(store, request):
    child = os.fork()
    if child == 0:
        try:
            store.writing(lambda rows: journal.append(rows, reserve("child")))
            os._exit(0)
        except LedgerError:
            os._exit(1)
        finally:
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == (0 if any(name in request.node.name for name in SHARED) else 1)
    assert store.reading(lambda rows: rows.has("trips", "child", "reserve")) == (code == 0)


class Halved(MemoryStore):
    """Leaves what a failed transaction had done."""

    def writing(self, action: Callable[[PublicRows], Any]) -> Any:
        return self.reading(action)


class HalvedSecrets(MemorySecretStore):
    def writing(self, action: Callable[[SecretRows], Any]) -> Any:
        return self.reading(action)


def test_half_a_transaction_is_found():
    with pytest.raises(AssertionError):
        test_a_transaction_that_is_stopped_anywhere_does_nothing(filled(Halved()))
    with pytest.raises(AssertionError):
        test_a_secret_transaction_that_is_stopped_anywhere_does_nothing(
            filled_secrets(HalvedSecrets())
        )
