"""The steps of a stream in the ledger: what is found when someone tampers with them, and what the rules refuse."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import chain, open_ledger
from support.tampering import secrets_of, unguarded, verified_after

LINKED = "68e50156bee5c9a59c5349a480a43581db01cad7770cb680bef575376c13054b"
SEALED = "5c18662cc9a3b404cc028f46803b2d5652c12d00ce5140889a7aa08f6ae69c10"


def count(number, state, counts):
    """A stream that adds 1 and publishes its state."""
    after = str(int(state) + 1).encode()
    return after, after


def opened(ledger, key="s", cost=(10, 0)):
    return ledger.stream("trips", key, "digest", cost, "a stream", spec=b"spec", state=b"0")


@pytest.fixture
def book(path):
    """A closed ledger with a stream of five steps (entry 2)."""
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        steps = opened(ledger)
        for number in range(5):
            assert steps.take(f"e{number}", count, [] if number % 2 else [b"someone"])[1]
        assert ledger.verify().ok
    return path


def test_a_stream_is_charged_once_and_goes_on(ledger):
    steps = opened(ledger)
    assert ledger.account("trips").spent == (10, 0)
    assert [steps.take("", count)[0].output for _ in range(3)] == [b"1", b"2", b"3"]
    again = opened(ledger)
    assert again.take("x", count)[0].number == 4
    assert again.take("x", count) == (steps.since(None)[3], False)
    assert steps.head()[0] == 4
    assert again.spec == b"spec"
    assert ledger.account("trips").spent == (10, 0)
    with pytest.raises(UsageError):
        ledger.stream("trips", "s", "other", (10, 0), "", spec=b"", state=b"")
    with pytest.raises(BudgetExceeded):
        opened(ledger, "dear", (1000, 0))
    assert ledger.verify().ok
    assert "digest" not in repr(steps)


def test_work_that_fails_changes_nothing(ledger):
    steps = opened(ledger)

    def fails(number, state, counts):
        raise ZeroDivisionError

    def keeps(number, state, counts):
        seen.append(counts)
        return count(number, state, counts)

    seen = []
    for words in ([b"someone"], []):
        with pytest.raises(ZeroDivisionError):
            steps.take("e", fails, words)
        assert steps.head()[0] == 0
    steps.take("e", keeps, [b"someone", b"another", b"someone"])
    with pytest.raises(ZeroDivisionError):
        steps.take("f", fails)
    steps.take("f", keeps)
    steps.take("g", keeps, [b"someone"])
    assert seen == [[1, 1, 2], [], [3]]
    assert ledger.verify().ok


@pytest.fixture
def two(path):
    """Two holders of one file, as two processes would be."""
    with open_ledger(path) as one, open_ledger(path) as other:
        one.open_account("trips", "marbles", (1000, 0))
        yield one, other


def test_a_step_that_another_took_meanwhile_is_computed_anew(two):
    """The row it was computed from is not the stream's any more: what was drawn for it is forgotten, and its event is looked up."""
    steps, others = map(opened, two)
    steps.take("a", count)
    seen = []

    def meanwhile(number, state, counts):
        if not seen:
            others.take("b", count)
        seen.append(number)
        return count(number, state, counts)

    taken, fresh = steps.take("c", meanwhile)
    assert (taken.number, taken.output, fresh, seen) == (3, b"3", True, [2, 3])
    seen.clear()
    steps.take("d", count)
    others.take("e", count)
    assert steps.take("e", meanwhile)[1] is False
    assert [step.event for step in steps.since(None)] == ["a", "b", "c", "d", "e"]
    assert two[0].verify().ok


def test_an_event_that_another_took_meanwhile_is_taken_once(two):
    steps, others = map(opened, two)
    steps.take("a", count)
    theirs = []

    def meanwhile(number, state, counts):
        theirs.append(others.take("b", count)[0])
        return count(number, state, counts)

    assert steps.take("b", meanwhile) == (theirs[0], False)
    assert len(theirs) == 1
    assert two[0].verify().ok


def test_a_key_that_was_reserved_for_an_answer_is_no_stream(ledger):
    with ledger.reserve("trips", "s", "digest", (10, 0), "") as hold:
        hold.store(b"x")
    with pytest.raises(LedgerError, match="missing or was edited"):
        opened(ledger)


EDITS = {
    "an output": (
        "UPDATE steps SET output = x'00' WHERE step = 3",
        "step 3 of stream 2 was edited",
    ),
    "an output as text": (
        "UPDATE steps SET output = '3' WHERE step = 3",
        "step 3 of stream 2 was edited",
    ),
    "an event": ("UPDATE steps SET event = 'z' WHERE step = 3", "step 3 of stream 2 was edited"),
    "a hash": ("UPDATE steps SET hash = 'z' WHERE step = 3", "step 3 of stream 2 was edited"),
    "a deleted step": ("DELETE FROM steps WHERE step = 3", "step 4 of stream 2 follows step 2"),
    "a cut of the tail": (
        "DELETE FROM steps WHERE step = 5",
        "stream 2 ends at step 4, but its state",
    ),
    "a state": ("UPDATE streams SET state = x'00'", "the state of stream 2 was edited"),
    "a state as text": ("UPDATE streams SET state = '5'", "the state of stream 2 was edited"),
    "a number of steps": ("UPDATE streams SET step = 4", "stream 2 ends at step 5, but its state"),
    "a secret": ("UPDATE streams SET secret = x'00'", "the state of stream 2 was edited"),
    "a specification": ("UPDATE streams SET spec = x'00'", "the state of stream 2 was edited"),
    "a tally": ("UPDATE tallies SET rows = 1", "the tallies of stream 2 were edited"),
    "a deleted tally": ("DELETE FROM tallies", "the tallies of stream 2 were edited"),
    "a deleted stream": ("DELETE FROM streams", "steps belong to stream 2, which is missing"),
    "a stream without a charge": (
        "UPDATE streams SET stream = 1; UPDATE steps SET stream = 1",
        "stream 1 has no charge",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_tampering_is_found(book, edit):
    statements, sentence = EDITS[edit]
    faults = verified_after(book, statements, secrets_of(book)).faults
    assert any(sentence in fault for fault in faults), faults


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE streams SET state = x'00'",
        "UPDATE streams SET step = 4",
        "UPDATE streams SET tallied = 0",
    ],
)
def test_no_step_is_taken_from_an_edited_state(book, edit):
    with unguarded(secrets_of(book)) as db:
        db.execute(edit)
    with open_ledger(book) as ledger, pytest.raises(LedgerError, match="was edited"):
        opened(ledger).take("", count)


ALIKE = (
    2**61 - 1
)  # Python's hash() cannot tell a number from itself plus this, nor a text from its bytes


@pytest.mark.parametrize(
    "edit",
    [
        f"UPDATE streams SET step = step + {ALIKE}",
        f"UPDATE streams SET tallied = tallied + {ALIKE}",
        f"UPDATE streams SET tallied = tallied - {ALIKE}",
        "UPDATE streams SET head = CAST(head AS BLOB)",
        "UPDATE streams SET seal = CAST(seal AS BLOB)",
        "UPDATE streams SET state = CAST(state AS TEXT)",
        "UPDATE streams SET state = x'00'",
    ],
)
def test_nor_by_the_object_that_wrote_the_row_before(path, edit):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        steps = opened(ledger)
        for _ in range(3):
            steps.take("", count)
        with unguarded(secrets_of(path)) as db:
            db.execute(edit)
        with pytest.raises(LedgerError, match="was edited"):
            steps.take("", count)


def test_an_edited_step_is_never_handed_out(book):
    with unguarded(secrets_of(book)) as db:
        db.execute("UPDATE steps SET output = x'00' WHERE step = 3")
    with open_ledger(book) as ledger, pytest.raises(LedgerError, match="was edited"):
        opened(ledger).since(None)


@pytest.mark.parametrize(
    "act",
    [
        "UPDATE steps SET output = x'00'",
        "DELETE FROM steps WHERE step = 5",
        "DELETE FROM streams",
        "DELETE FROM tallies",
        "UPDATE streams SET state = x'00'",
        "UPDATE streams SET step = 6",
        "UPDATE tallies SET rows = 1",
        "UPDATE tallies SET rows = rows + 2",
        "INSERT OR REPLACE INTO steps VALUES (2, 3, '', x'00', '')",
        "INSERT INTO steps VALUES (2, 7, '', x'00', '')",
        "INSERT INTO steps VALUES (1, 1, '', x'00', '')",
        "INSERT OR REPLACE INTO streams VALUES (2, x'00', x'', 0, x'00', 0, '', '')",
        "INSERT INTO streams VALUES (1, x'00', x'', 1, x'00', 0, '', '')",
        "UPDATE streams SET secret = x'00'",
        "INSERT OR REPLACE INTO tallies VALUES (2, x'736f6d656f6e65', 1)",
        "INSERT INTO moves VALUES (2, '', 6, '', x'00', '', x'00', 3, '')",
        "INSERT INTO moves SELECT 2, seal, 7, '', x'00', '', x'00', 3, '' FROM streams",
        "INSERT INTO moves SELECT 2, seal, 6, '', x'00', '', x'00', 2, '' FROM streams",
        "INSERT INTO moves SELECT 2, seal, 6, 'e1', x'00', '', x'00', 3, '' FROM streams",
        "INSERT INTO moves SELECT 2, seal, 6, '', '0', '', x'00', 3, '' FROM streams",
        "INSERT INTO moves SELECT 3, NULL, 1, '', x'00', '', x'00', 0, ''",
    ],
)
def test_the_rules_themselves_refuse_every_change(book, act):
    with closing(sqlite3.connect(secrets_of(book))) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(act)


def test_hashes_tell_parts_apart():
    assert chain.linked("h", 2, 31, "e", b"o") != chain.linked("h", 23, 1, "e", b"o")
    assert chain.linked("h", 2, 3, "ex", b"o") != chain.linked("h", 2, 3, "e", b"xo")
    assert chain.sealed(2, "d", 3, b"s", 11, "h") != chain.sealed(2, "d", 3, b"s1", 1, "h")
    assert chain.sealed(2, "d", 3, b"s", 1, "h") != chain.sealed(2, "d3", 3, b"s", 1, "h")


def test_hashes_stay_what_they_were():
    """Ledgers that exist verify: these were written by the first version with chain."""
    assert chain.linked("ab" * 32, 2, 17, "2013-01-01 \u00e9", b"[12]") == LINKED
    assert chain.sealed(2, "cd" * 32, 17, b"state", 3, "ab" * 32) == SEALED
