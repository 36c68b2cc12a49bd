"""Accounts with spenders: whoever spends says who they are, and keeps to their own ceiling."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Ledger, open_ledger
from sfumato.ledger.moving import exported, migrate
from sfumato.ledger.sqlite import SQLiteStore


@pytest.fixture
def limited(ledger: Ledger) -> Ledger:
    """A ledger whose account has 1000 units, of which ann may spend 30 and ben 50."""
    ledger.add_spender("trips", "ann", (30, 0))
    ledger.add_spender("trips", "ben", (50, 0))
    return ledger


def test_each_spends_within_their_own_ceiling(limited: Ledger) -> None:
    with limited.reserve("trips", "a", "q", (30, 0), "", spender="ann") as hold:
        hold.store(b"answer")
    assert (hold.entry.spender, hold.entry.own) == ("ann", (30, 0))
    with pytest.raises(BudgetExceeded) as refusal:
        limited.reserve("trips", "b", "q", (1, 0), "", spender="ann")
    assert (refusal.value.remaining, refusal.value.account) == ((0, 0), "trips")
    limited.reserve("trips", "b", "q", (50, 0), "", spender="ben")
    assert [each.remaining for each in limited.spenders("trips")] == [(0, 0), (0, 0)]
    assert limited.account("trips").spent == (80, 0)
    assert limited.verify().ok


def test_the_total_of_the_account_holds_as_well(ledger: Ledger) -> None:
    ledger.add_spender("trips", "ann", (5000, 0))
    assert ledger.left("trips", "ann") == (1000, 0)
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.reserve("trips", "a", "q", (1001, 0), "", spender="ann")
    assert refusal.value.remaining == (1000, 0)


@pytest.mark.parametrize(
    ("cost", "is_refused"), [((5, 7), False), ((5, 8), True), ((6, 7), True), ((0, 8), True)]
)
def test_each_component_keeps_within_a_spenders_ceiling(
    ledger: Ledger, cost: tuple[int, int], is_refused: bool
) -> None:
    ledger.open_account("keys", "approx", (100, 100))
    ledger.add_spender("keys", "ann", (9, 9))
    ledger.reserve("keys", "a", "q", (4, 2), "", spender="ann")
    assert ledger.left("keys", "ann") == (5, 7)
    if is_refused:
        with pytest.raises(BudgetExceeded):
            ledger.reserve("keys", "b", "q", cost, "", spender="ann")
        assert ledger.account("keys").spent == (4, 2)
    else:
        ledger.reserve("keys", "b", "q", cost, "", spender="ann")
        assert ledger.left("keys", "ann") == (0, 0)


@pytest.mark.parametrize(
    ("who", "why"),
    [(None, "this charge names nobody"), ("eve", "no such spender"), ("Ann", "did you mean 'ann'")],
)
def test_a_charge_of_nobody_is_refused_and_enters_nothing(
    limited: Ledger, who: str | None, why: str
) -> None:
    before = list(limited.log())
    with pytest.raises(UsageError, match=why):
        limited.reserve("trips", None, "q", (1, 0), "", spender=who)
    assert list(limited.log()) == before


def test_an_account_without_spenders_knows_nobody(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="no such spender"):
        ledger.reserve("trips", None, "q", (1, 0), "", spender="ann")
    assert ledger.reserve("trips", None, "q", (1, 0), "").entry.spender == ""


def test_an_answer_is_for_everybody_and_a_charge_is_not(limited: Ledger) -> None:
    """Whoever took over a charge of another would draw an answer that the other paid for."""
    with limited.reserve("trips", None, "q", (10, 0), "", spender="ann"):
        pass  # left without an answer
    with pytest.raises(LedgerError, match="ann paid for it, and has no answer yet"):
        limited.reserve("trips", None, "q", (10, 0), "", spender="ben")
    with limited.reserve("trips", None, "q", (10, 0), "", spender="ann") as hold:
        hold.store(b"answer")
    for who in ("ben", None):
        assert limited.reserve("trips", None, "q", (10, 0), "", spender=who).stored == b"answer"
    assert [each.spent for each in limited.spenders("trips")] == [(10, 0), (0, 0)]


def test_ceilings_are_raised_and_lowered_by_name(limited: Ledger) -> None:
    assert limited.add_spender("trips", "ann", (30, 0)).ceiling == (30, 0)
    with pytest.raises(UsageError, match="`sfumato ledger spender set`"):
        limited.add_spender("trips", "ann", (40, 0))
    with pytest.raises(UsageError, match="no such spender"):
        limited.set_spender("trips", "eve", (40, 0))
    with pytest.raises(UsageError, match="no such account"):
        limited.add_spender("none", "ann", (40, 0))
    limited.reserve("trips", "a", "q", (30, 0), "", spender="ann")
    limited.set_spender("trips", "ann", (31, 0))
    limited.reserve("trips", "b", "q", (1, 0), "", spender="ann")
    limited.set_spender("trips", "ann", (5, 0))
    assert limited.left("trips", "ann") == (0, 0)
    with pytest.raises(BudgetExceeded):
        limited.reserve("trips", "c", "q", (1, 0), "", spender="ann")
    kinds = [entry.kind for entry in limited.log() if entry.spender == "ann"]
    assert kinds == ["cap", "reserve", "cap", "reserve", "cap"]
    assert limited.verify().ok


def test_a_book_may_name_its_spender_once(path: Path) -> None:
    with open_ledger(path) as book:
        book.open_account("trips", "marbles", (100, 0))
        book.add_spender("trips", "ann", (30, 0))
    with open_ledger(path, spender="ann") as book:
        assert book.reserve("trips", None, "q", (1, 0), "").entry.spender == "ann"
        assert book.left("trips") == (29, 0)


def test_a_file_without_spenders_stays_as_it_was(charged_path: Path) -> None:
    """It is another version only once somebody is named, and old entries keep their hashes."""

    def version() -> int:
        with closing(sqlite3.connect(charged_path)) as db:
            return int(db.execute("PRAGMA user_version").fetchone()[0])

    with open_ledger(charged_path) as book, open_ledger(charged_path) as running:
        before = list(book.log())
        running.reserve("trips", "e", "digest", (1, 0), "")
        assert version() == 4
        plain = exported(book)
        assert "spender" not in str(plain)
        book.add_spender("trips", "ann", (30, 0))
        assert version() == 5
        assert list(book.log())[: len(before)] == before
        # Another process that had it open before knows at once.
        with pytest.raises(UsageError, match="names nobody"):
            running.reserve("trips", "f", "digest", (1, 0), "")
        running.reserve("trips", "f", "digest", (1, 0), "", spender="ann")
        running.reserve("visits", "g", "digest", (1, 0), "")
        assert running.verify().ok, running.verify().faults
        (trips, visits) = exported(book)["accounts"]
        assert trips["spenders"] == [{"name": "ann", "ceiling": (30, 0), "spent": (1, 0)}]
        assert "spenders" not in visits


def test_a_program_that_knows_no_spenders_cannot_charge(charged_path: Path) -> None:
    """Such as an older library that had the file open when the first spender was named."""
    with open_ledger(charged_path) as book:
        book.add_spender("trips", "ann", (30, 0))
    with closing(sqlite3.connect(charged_path)) as db:
        db.execute("CREATE TEMP TABLE last AS SELECT * FROM entries ORDER BY sequence DESC LIMIT 1")
        with pytest.raises(sqlite3.IntegrityError, match="by its spenders only"):
            db.execute(
                "INSERT INTO entries (sequence, account, kind, time, key, digest, cost_first,"
                " cost_second, note, payload_hash, spent_first, spent_second, until, holder,"
                " previous, hash) SELECT sequence + 1, 'trips', 'reserve', '', 'new', '', 0, 0, '',"
                " '', spent_first, spent_second, '', '', hash, '' FROM last"
            )


def test_spenders_move_with_the_ledger(path: Path, tmp_path: Path) -> None:
    with open_ledger(path) as book:
        book.open_account("trips", "marbles", (100, 0))
        book.add_spender("trips", "ann", (30, 0))
        with book.reserve("trips", None, "q", (10, 0), "", spender="ann") as hold:
            hold.store(b"answer")
    there = SQLiteStore(tmp_path / "there.db")
    migrate(SQLiteStore(path), there)
    there.close()
    with open_ledger(tmp_path / "there.db", spender="ann") as book:
        assert book.verify(hold.entry).ok
        assert book.left("trips") == (20, 0)
        assert book.reserve("trips", None, "q", (10, 0), "").stored == b"answer"
