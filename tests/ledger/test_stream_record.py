"""The steps of a stream: taken once, one after another, and never from an edited state."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import sfumato as sf
from ledger.adding import add_one, open_stream
from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import open_ledger
from support.tampering import secrets_of, unguarded

DOMAIN = sf.Domain(x=sf.Interval(0, 4))
ROWS = sf.source(np.zeros((3, 1)), DOMAIN, name="n")


def opened(
    path: Path, source: sf.Source = ROWS, account: str = "a", **options: object
) -> sf.Publisher:
    return sf.Publisher(source, ledger=path, account=account, **({"budget": "9"} | options))


def put_back(copy: Path, file: Path) -> None:
    """Restore a copy of a file that nobody has open."""
    for log in file.parent.glob(file.name + "-*"):
        log.unlink()
    shutil.copy(copy, file)
    file.chmod(0o600)


def test_a_stream_of_a_forgotten_charge_is_not_opened_under_another(path, tmp_path):
    """An older book was put back alone, and its next charge has the number of one that it forgot.

    The new charge must not get the stream of the old one.
    """
    opened(path).close()
    shutil.copy(path, tmp_path / "older")
    for pushes in (0, 1):
        with (
            opened(path) as publisher,
            publisher.open(sf.Counter(9), epsilon="5", key=f"dear {pushes}") as stream,
        ):
            for _ in range(pushes):
                stream.push(1)
        put_back(tmp_path / "older", path)
        with (
            opened(path) as publisher,
            pytest.raises(sf.LedgerError, match="missing or was edited"),
        ):
            publisher.open(sf.Counter(5), epsilon="1", key="cheap").push(1)
        with unguarded(secrets_of(path)) as db:
            db.execute("DELETE FROM steps")
            db.execute("DELETE FROM streams")
        put_back(tmp_path / "older", path)


def test_a_stream_is_charged_once_and_goes_on(ledger):
    steps = open_stream(ledger)
    assert ledger.account("trips").spent == (10, 0)
    assert [steps.take("", add_one)[0].output for _ in range(3)] == [b"1", b"2", b"3"]
    again = open_stream(ledger)
    assert again.take("x", add_one)[0].number == 4
    assert again.take("x", add_one) == (steps.since(None)[3], False)
    assert steps.head()[0] == 4
    assert again.spec == b"spec"
    assert ledger.account("trips").spent == (10, 0)
    with pytest.raises(UsageError):
        ledger.stream("trips", "s", "other", (10, 0), "", spec=b"", state=b"")
    with pytest.raises(BudgetExceeded):
        open_stream(ledger, "dear", (1000, 0))
    assert ledger.verify().ok
    assert "digest" not in repr(steps)


def test_work_that_fails_changes_nothing(ledger):
    steps = open_stream(ledger)
    seen = []

    def fails(number, state, counts):
        raise ZeroDivisionError

    def keeps(number, state, counts):
        seen.append(counts)
        return add_one(number, state, counts)

    for tokens in ([b"someone"], []):
        with pytest.raises(ZeroDivisionError):
            steps.take("e", fails, tokens)
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


def test_a_step_waits_for_one_that_another_computes(two):
    """So both take the state after the last step, and one event is one step."""
    steps, others = map(open_stream, two)
    steps.take("a", add_one)
    theirs = []
    other = Thread(target=lambda: theirs.extend(others.take(event, add_one) for event in "bc"))

    def work(number, state, counts):
        other.start()
        return add_one(number, state, counts)

    taken, fresh = steps.take("b", work)
    other.join()
    assert (taken.number, taken.output, fresh) == (2, b"2", True)
    assert theirs[0] == (taken, False)
    assert [step.event for step in steps.since(None)] == ["a", "b", "c"]
    assert two[0].verify().ok


def test_a_key_that_was_reserved_for_an_answer_is_no_stream(ledger):
    with ledger.reserve("trips", "s", "digest", (10, 0), "") as hold:
        hold.store(b"x")
    with pytest.raises(LedgerError, match="missing or was edited"):
        open_stream(ledger)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE streams SET state = x'00'",
        "UPDATE streams SET step = 4",
        "UPDATE streams SET tallied = 0",
    ],
)
def test_no_step_is_taken_from_an_edited_state(stream_path, edit):
    with unguarded(secrets_of(stream_path)) as db:
        db.execute(edit)
    with open_ledger(stream_path) as ledger, pytest.raises(LedgerError, match="was edited"):
        open_stream(ledger).take("", add_one)


# Python's hash() cannot tell a number from itself plus this, nor a text from its bytes.
ALIKE = 2**61 - 1


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
def test_no_step_is_taken_from_a_row_that_was_edited_under_an_open_stream(path, edit):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        steps = open_stream(ledger)
        for _ in range(3):
            steps.take("", add_one)
        with unguarded(secrets_of(path)) as db:
            db.execute(edit)
        with pytest.raises(LedgerError, match="was edited"):
            steps.take("", add_one)


def test_an_edited_step_is_never_handed_out(stream_path):
    with unguarded(secrets_of(stream_path)) as db:
        db.execute("UPDATE steps SET output = x'00' WHERE step = 3")
    with open_ledger(stream_path) as ledger, pytest.raises(LedgerError, match="was edited"):
        open_stream(ledger).since(None)
