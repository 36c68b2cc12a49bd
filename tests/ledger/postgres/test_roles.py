"""Custodians, analysts and auditors of a shared ledger, each with a role of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.postgres.people import BOUND, People, settle
from sfumato.errors import BudgetExceeded, LedgerError


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    """A ledger that the tests of this module share."""
    return settle(Path(tmp_path_factory.mktemp("people")))


def test_an_analyst_spends_within_the_own_ceiling(people: People) -> None:
    name = people.name("ann")
    with people.book("ann") as book:
        with book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND) as hold:
            assert hold.store(b"answer") == b"answer"
        assert hold.entry.spender == name
        assert hold.entry.own == (20, 0)
        again = book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND)
        assert again.stored == b"answer"
        with pytest.raises(BudgetExceeded) as refusal:
            book.reserve("trips", None, "more", (11, 0), "", binding=BOUND)
        assert refusal.value.remaining == (10, 0)
        assert book.verify().ok, book.verify().faults
    with people.book("carl") as book:
        assert book.verify().ok, book.verify().faults
        assert [(each.name, each.spent) for each in book.spenders("trips")] == [
            (name, (20, 0)),
            (people.name("ben"), (0, 0)),
        ]
        replayed = book.reserve("trips", None, "question", (20, 0), "a note", binding=BOUND)
        assert replayed.stored == b"answer"


def test_an_auditor_reads_and_verifies_and_no_more(people: People) -> None:
    with people.book("eve") as book:
        assert book.verify().ok
        assert book.signer() is None
        with pytest.raises(LedgerError, match="may only read this ledger"):
            book.reserve("trips", None, "question", (1, 0), "")
        with pytest.raises(LedgerError, match="only its custodian"):
            book.open_account("new", "marbles", (1, 0))
