"""Leases that this process wrote, and under which none of its threads works."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Hold, Ledger, journal, open_ledger
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.charge import OwnLeases
from sfumato.ledger.entries import Entry
from sfumato.ledger.store import PublicRows

ASK = ("trips", "key", "digest", (10, 0), "a test")


class Cut(LedgerError):
    """Stands for an error after the commit."""


@pytest.fixture
def lease(ledger: Ledger) -> Entry:
    return ledger.reserve(*ASK).entry


def test_only_one_thread_uses_a_lease(lease: Entry) -> None:
    leases = OwnLeases()
    assert not leases.use(lease)
    leases.add_unused(lease)
    assert leases.is_unused(lease)
    found: list[bool] = []
    threads = [threading.Thread(target=lambda: found.append(leases.use(lease))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False] * 7 + [True]
    assert not leases.is_unused(lease)


def test_a_child_process_owns_none(lease: Entry) -> None:
    leases = OwnLeases()
    leases.add_unused(lease)
    leases.add_ended(lease)
    child = os.fork()
    if child == 0:
        os._exit(leases.is_unused(lease) or leases.is_ended(lease) or leases.use(lease))
    assert os.waitpid(child, 0)[1] == 0
    assert leases.is_unused(lease)
    assert leases.is_ended(lease)


def cut_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next transaction is durable, and its caller is told of an error."""
    writing = ledger._store.writing

    def write(action):
        monkeypatch.setattr(ledger._store, "writing", writing)
        writing(action)
        raise Cut("charging", "the connection was cut", "Ask again")

    monkeypatch.setattr(ledger._store, "writing", write)


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.log()]


def test_who_was_not_told_of_a_charge_goes_on_under_its_lease(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No data were read under it, so nothing is resumed: as often as it happens."""
    for _ in range(3):
        cut_once(ledger, monkeypatch)
        with pytest.raises(Cut):
            ledger.reserve(*ASK)
        assert kinds(ledger) == ["open", "reserve"]
    with ledger.reserve(*ASK, wait=0) as hold:
        with pytest.raises(LedgerError, match="another process is answering"):
            ledger.reserve(*ASK, wait=0)
        assert hold.store(b"answer") == b"answer"
    assert kinds(ledger) == ["open", "reserve", "store", "hand"]
    assert ledger.account("trips").spent == (10, 0)
    assert ledger.verify().ok


def test_an_error_gives_nobody_the_lease_that_another_thread_took(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads find the lease unused. One takes it, and the other is given an error."""
    cut_once(ledger, monkeypatch)
    with pytest.raises(Cut):
        ledger.reserve(*ASK)
    writing = ledger._store.writing
    holds: list[Hold] = []

    def write(action):
        monkeypatch.setattr(ledger._store, "writing", writing)
        writing(action)
        holds.append(ledger.reserve(*ASK, wait=0))
        raise Cut("charging", "the connection was cut", "Ask again")

    monkeypatch.setattr(ledger._store, "writing", write)
    with pytest.raises(Cut):
        ledger.reserve(*ASK, wait=0)
    with pytest.raises(LedgerError, match="another process is answering"):
        ledger.reserve(*ASK, wait=0)
    assert [hold.store(b"answer") for hold in holds] == [b"answer"]
    assert kinds(ledger) == ["open", "reserve", "store", "hand"]


def test_who_took_an_own_lease_and_got_nothing_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anchor may be full each time; the lease is unused until somebody works under it."""
    anchor = tmp_path / "anchor"
    with open_ledger(tmp_path / "budget.db", anchor=anchor) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))

        def refuse(*_: object) -> None:
            raise Cut("the anchor", "the disk is full", "Free some space")

        for _ in range(3):
            with monkeypatch.context() as full:
                full.setattr(Anchor, "note", lambda self, *lines: refuse() if lines else None)
                with pytest.raises(Cut):
                    ledger.reserve(*ASK, wait=0)
        with ledger.reserve(*ASK, wait=0) as hold:
            hold.store(b"answer")
        assert kinds(ledger) == ["open", "reserve", "store", "hand"]


def test_who_could_not_give_up_a_lease_resumes_the_charge(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data may have been read under it, so this is entered, as it is for everybody."""

    def refuse(*_: object) -> None:
        raise Cut("giving up", "the connection was cut", "Ask again")

    def fail() -> None:
        with ledger.reserve(*ASK, wait=0):
            monkeypatch.setattr(journal, "append", refuse)
            raise ZeroDivisionError

    for number in range(3):
        with pytest.raises(ZeroDivisionError):
            fail()
        monkeypatch.undo()
        assert kinds(ledger) == ["open", "reserve", "resume", "resume"][: 2 + number]
    assert ledger.account("trips").spent == (10, 0)


def test_a_charge_at_another_cost_is_refused_under_an_own_lease_too(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_once(ledger, monkeypatch)
    with pytest.raises(Cut):
        ledger.reserve(*ASK)
    with pytest.raises(LedgerError, match="picked another cost"):
        ledger.reserve("trips", "key", "digest", (9, 0), "a test", wait=0)
    with ledger.reserve(*ASK, wait=0) as hold:
        hold.store(b"answer")


def test_an_own_lease_that_has_run_out_is_resumed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_once(ledger, monkeypatch)
    with pytest.raises(Cut):
        ledger.reserve(*ASK)
    later = datetime(2999, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(PublicRows, "clock", lambda rows: later)
    assert ledger.reserve(*ASK, wait=0).stored is None
    assert kinds(ledger) == ["open", "reserve", "resume"]
