"""Which question stands behind which key, and what secrets that were lost must not do."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.ledger import open_ledger
from support.tampering import secrets_of


def test_keys_and_digests_are_random_and_found_again(path):
    with open_ledger(path) as book:
        book.open_account("a", "marbles", (10, 0))
        with book.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        first = hold.entry
    with open_ledger(path) as book, book.reserve("a", None, "asked", (1, 0), "") as hold:
        assert (hold.entry, hold.stored) == (first, b"x")
        assert book.account("a").spent == (1, 0)
        with book.reserve("a", first.key, "asked", (1, 0), "") as again:
            assert again.stored == b"x"
        with pytest.raises(sf.UsageError, match="another question"):
            book.reserve("a", first.key, "other", (1, 0), "")
    with open_ledger(path.with_name("other.db")) as other:
        other.open_account("a", "marbles", (10, 0))
        with other.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        assert hold.entry.key != first.key
        assert hold.entry.digest != first.digest
        assert len(hold.entry.key) == len(first.key) == 32
        assert len(hold.entry.digest) == 64


def test_a_name_that_a_refusal_left_behind_is_free(ledger):
    with pytest.raises(sf.BudgetExceeded):
        ledger.reserve("trips", "k", "dear", (2000, 0), "")
    with ledger.reserve("trips", "k", "cheap", (1, 0), "") as hold:
        hold.store(b"x")
    assert ledger.verify().ok


def test_a_name_that_is_free_has_no_seed_for_another_question(ledger):
    refused, proposed, later = (bytes([number]) * 64 for number in range(3))
    with pytest.raises(sf.BudgetExceeded):
        ledger.reserve("trips", "k", "dear", (2000, 0), "", seed=refused)
    for seed in (proposed, later):
        with ledger.reserve("trips", "k", "cheap", (1, 0), "", seed=seed) as hold:
            assert hold.seed == proposed
    assert ledger.account("trips").spent == (1, 0)


DOMAIN = sf.Domain(x=sf.Interval(0, 4))
ROWS = sf.source(np.zeros((3, 1)), DOMAIN, name="n")
HISTOGRAM = sf.Histogram("x")


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


def test_emptied_secrets_are_not_filled_anew(path):
    """New ones would sign with another key, and answers that were paid for would be paid again."""
    with opened(path) as publisher:
        publisher.ledger.signer(create=True)
        publisher.release(HISTOGRAM, epsilon="1")
    os.truncate(secrets_of(path), 0)
    for _ in range(2):
        with pytest.raises(sf.LedgerError, match="emptied"):
            opened(path)


def test_older_secrets_do_not_pass_one_answer_for_another(path, tmp_path):
    """A refused question left its name under a key that was used for another one since."""
    with opened(path, budget="2") as publisher, pytest.raises(sf.BudgetExceeded):
        publisher.release(HISTOGRAM, epsilon="5", key="k")
    shutil.copy(secrets_of(path), tmp_path / "older")
    with opened(path, budget="2") as publisher:
        publisher.release(sf.Histogram("x", bins=2), epsilon="1", key="k")
    put_back(tmp_path / "older", secrets_of(path))
    with (
        opened(path, budget="2") as publisher,
        pytest.raises(sf.LedgerError, match="do not say what for"),
    ):
        publisher.release(HISTOGRAM, epsilon="5", key="k")


def test_a_state_is_found_again_under_its_own_charge_alone(path):
    with open_ledger(path) as book:
        book.open_account("a", "marbles", (10, 0))
        charges = []
        for asked in ("first", "second"):
            with book.reserve("a", None, asked, (1, 0), "") as hold:
                charges.append(hold.entry)
        assert not book.is_of_state(charges[0], "monday")
        for charge in charges:
            book.note_state(charge, "monday")
        book.note_state(charges[0], "tuesday")  # what was noted first stays
    with open_ledger(path) as book:
        assert book.is_of_state(charges[0], "monday")
        assert not book.is_of_state(charges[0], "tuesday")
        assert book.verify().ok
    with contextlib.closing(sqlite3.connect(secrets_of(path))) as db:
        found = db.execute("SELECT value FROM about WHERE name LIKE 'state of %'").fetchall()
    # Nothing tells that two charges are of one state, and no state can be read or guessed.
    assert len(set(found)) == 2
    assert b"monday" not in secrets_of(path).read_bytes() + path.read_bytes()
