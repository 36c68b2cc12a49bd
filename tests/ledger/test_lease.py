"""Who may answer a key: leases, take-over, and what comes back when two are at work."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import open_ledger, process_identity
from sfumato.ledger.store import PublicRows

ASK = ("trips", "key", "digest", (10, 0), "a test")


class Clock:
    """Time that passes only while somebody sleeps; something may happen in the first sleep."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC)
        self.seconds = 0.0
        self.meanwhile: Callable[[], object] | None = None

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """In place of the system's."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.seconds)
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(PublicRows, "clock", lambda rows: clock.now())
    return clock


def kinds(ledger):
    return [entry.kind for entry in ledger.log()]


def test_leaving_by_an_exception_keeps_the_charge_and_ends_the_lease(ledger):
    with pytest.raises(MemoryError), ledger.reserve(*ASK) as hold:
        raise MemoryError
    assert ledger.account("trips").spent == (10, 0)
    with ledger.reserve(*ASK) as again:
        assert again.entry == hold.entry
        assert again.store(b"answer") == b"answer"
    assert kinds(ledger) == ["open", "reserve", "abandon", "resume", "store", "hand"]
    assert ledger.account("trips").spent == (10, 0)
    assert ledger.verify().ok


def test_a_charge_may_be_resumed_once_unless_the_caller_says_otherwise(ledger):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), ledger.reserve(*ASK):
            raise ZeroDivisionError
    with pytest.raises(LedgerError, match="choose another key"):
        ledger.reserve(*ASK)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), ledger.reserve(*ASK, resumes=None):
            raise ZeroDivisionError
    assert ledger.account("trips").spent == (10, 0)
    assert ledger.verify().ok


def test_leaving_without_an_answer_ends_the_lease_too(ledger):
    with ledger.reserve(*ASK):
        pass
    assert kinds(ledger) == ["open", "reserve", "abandon"]


def test_a_live_lease_is_waited_for_and_then_refused(ledger, clock):
    ledger.reserve(*ASK)
    with pytest.raises(LedgerError, match="another process is answering this key") as refusal:
        ledger.reserve(*ASK, wait=0.2)
    assert refusal.value.account == "trips"
    assert clock.seconds == pytest.approx(0.2)
    assert kinds(ledger) == ["open", "reserve"]


def test_who_waits_gets_the_answer_of_the_holder(ledger, clock):
    hold = ledger.reserve(*ASK)

    def answer() -> None:
        other = threading.Thread(target=hold.store, args=[b"the holder's"])
        other.start()
        other.join()

    clock.meanwhile = answer
    assert ledger.reserve(*ASK, wait=20).stored == b"the holder's"
    assert clock.meanwhile is None
    assert ledger.account("trips").spent == (10, 0)


def test_who_waits_takes_over_when_the_lease_runs_out(ledger, clock):
    ledger.reserve(*ASK, lease=1)
    second = ledger.reserve(*ASK, wait=10**6)
    assert second.stored is None
    assert clock.seconds >= 1
    assert kinds(ledger) == ["open", "reserve", "resume"]


def test_of_two_answers_the_first_is_kept_and_both_get_it(ledger):
    late = ledger.reserve(*ASK, lease=0)
    second = ledger.reserve(*ASK)
    assert second.store(b"second") == b"second"
    assert late.store(b"late") == b"second"
    assert kinds(ledger) == ["open", "reserve", "resume", "store", "hand"]


def test_a_late_holder_cannot_end_the_lease_of_its_successor(ledger):
    with ledger.reserve(*ASK, lease=0):
        ledger.reserve(*ASK)
    assert kinds(ledger) == ["open", "reserve", "resume"]


def test_the_reason_for_leaving_stays_visible_when_the_ledger_fails(path):
    ledger = open_ledger(path)
    ledger.open_account("trips", "marbles", (10, 0))

    def fail() -> None:
        with ledger.reserve(*ASK):
            ledger.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


@pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell which processes run"
)
def test_a_holder_that_has_ended_loses_its_lease_at_once(path):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        child = os.fork()
        if child == 0:
            ledger.reserve(*ASK)
            os._exit(0)
        os.waitpid(child, 0)
        with ledger.reserve(*ASK, wait=0) as hold:
            assert hold.store(b"taken over") == b"taken over"
        assert kinds(ledger) == ["open", "reserve", "resume", "store", "hand"]


@pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell which processes run"
)
def test_in_doubt_a_holder_has_not_ended():
    place, number, started = process_identity.current().rsplit("/", 2)
    assert not process_identity.ended(process_identity.current())
    assert process_identity.ended(f"{place}/{number}/1{started}")
    assert process_identity.ended(f"{place}/{2**22 + 1}/{started}")
    for doubtful in (
        "",
        "x",
        f"elsewhere/{number}/1",
        f"{place}/many/{started}",
        f"{place}/1/{process_identity._started(1)}",
    ):
        assert not process_identity.ended(doubtful)
