"""Every kind of tampering is found, also after the rules were dropped and put back.

What cannot be found from the ledger alone is pinned, too.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import LedgerError
from sfumato.ledger import open_ledger
from sfumato.ledger.entries import link_of
from sfumato.ledger.sql import COLUMNS, entry_of
from support.tampering import unguarded, verified_after

DOMAIN = sf.Domain(x=sf.Interval(0, 1))


def test_bindings_and_ceilings_that_were_edited_are_found(path):
    source = sf.source(np.zeros((3, 1)), DOMAIN, name="visits")
    with sf.Publisher(source, ledger=path, account="a", budget="1", ceiling="2") as publisher:
        publisher.release(sf.Histogram("x"), epsilon="1")
    for edit in (
        "UPDATE bindings SET protects = 'nobody'",
        "UPDATE ceilings SET first = 99",
        "DELETE FROM bindings",
        "DELETE FROM ceilings",
    ):
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as db, db:
            rules = db.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in rules:
                db.execute(f"DROP TRIGGER {name}")
            db.execute(edit)
            for _, sql in rules:
                db.execute(sql)
        with open_ledger(copy, create=False) as book:
            assert "was edited" in str(book.verify().fault)
    with closing(sqlite3.connect(path)) as db:
        for edit in (
            "UPDATE bindings SET protects = 'x'",
            "DELETE FROM ceilings",
            "INSERT OR REPLACE INTO bindings VALUES ('a', 'x', '')",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(edit)


def rechain(db):
    """What a careful forger does: compute all hashes anew."""
    previous = ""
    for columns in db.execute(f"SELECT {COLUMNS} FROM entries ORDER BY sequence").fetchall():
        entry = entry_of((*columns[:-2], previous, ""))
        previous = link_of(entry)
        db.execute(
            "UPDATE entries SET previous = ?, hash = ? WHERE sequence = ?",
            (entry.previous, previous, entry.sequence),
        )


FORGED = hashlib.sha256(b"forged").hexdigest()


EDITS = {
    "a cost": ("UPDATE entries SET cost_first = 1 WHERE sequence = 2", "entry 2 was edited"),
    "a second component": (
        "UPDATE entries SET cost_second = 1 WHERE sequence = 2",
        "entry 2 was edited",
    ),
    "a balance": ("UPDATE entries SET spent_first = 1 WHERE sequence = 10", "entry 10 was edited"),
    "the last balance": (
        "UPDATE entries SET spent_first = 0 WHERE sequence = 11",
        "entry 11 was edited",
    ),
    "a time": (
        "UPDATE entries SET time = '2020-01-01T00:00:00.000000+00:00' WHERE sequence = 5",
        "entry 5 was edited",
    ),
    "a digest": ("UPDATE entries SET digest = 'other' WHERE sequence = 2", "entry 2 was edited"),
    "a key": ("UPDATE entries SET key = 'z' WHERE sequence = 2", "entry 2 was edited"),
    "a note": ("UPDATE entries SET note = '' WHERE sequence = 2", "entry 2 was edited"),
    "a kind": ("UPDATE entries SET kind = 'abandon' WHERE sequence = 7", "entry 7 was edited"),
    "an entry's account": (
        "UPDATE entries SET account = 'visits' WHERE sequence = 2",
        "entry 2 was edited",
    ),
    "the hash of an answer": (
        f"UPDATE entries SET payload_hash = '{FORGED}' WHERE sequence = 3",
        "entry 3 was edited",
    ),
    "a hash": (f"UPDATE entries SET hash = '{FORGED}' WHERE sequence = 4", "entry 4 was edited"),
    "a link": (
        f"UPDATE entries SET previous = '{FORGED}' WHERE sequence = 4",
        "entry 4 does not continue",
    ),
    "a lease": (
        "UPDATE entries SET until = '2020-01-01T00:00:00.000000+00:00' WHERE sequence = 11",
        "entry 11 was edited",
    ),
    "a holder": ("UPDATE entries SET holder = '' WHERE sequence = 11", "entry 11 was edited"),
    "the ended lease": ("DELETE FROM entries WHERE sequence = 10", "entry 11 follows entry 9"),
    "a value of another type": (
        "UPDATE entries SET cost_first = 'many' WHERE sequence = 2",
        "wrong kind",
    ),
    "a negative cost": ("UPDATE entries SET cost_first = -10 WHERE sequence = 2", "wrong kind"),
    "a deleted entry": ("DELETE FROM entries WHERE sequence = 5", "entry 6 follows entry 4"),
    "a deleted charge": (
        "DELETE FROM entries WHERE sequence BETWEEN 5 AND 7",
        "entry 8 follows entry 4",
    ),
    "the first entry": ("DELETE FROM entries WHERE sequence = 1", "entry 2 follows entry 0"),
    "a plain cut of the tail": ("DELETE FROM entries WHERE sequence = 11", "its tail was cut"),
    "all entries": ("DELETE FROM entries", "its tail was cut"),
    "two entries swapped": (
        "UPDATE entries SET sequence = -1 WHERE sequence = 5;"
        "UPDATE entries SET sequence = 5 WHERE sequence = 6;"
        "UPDATE entries SET sequence = 6 WHERE sequence = -1",
        "entry 5 does not continue",
    ),
    "an added entry": (
        "INSERT INTO entries SELECT 12, account, kind, time, 'e', digest, 0, 0, note, '', "
        "spent_first, 0, until, holder, hash, hash FROM entries WHERE sequence = 11",
        "entry 12 was edited",
    ),
    "an answer": (
        "UPDATE payloads SET payload = x'00' WHERE sequence = 3",
        "answer of entry 3 was edited",
    ),
    "an answer as text": (
        "UPDATE payloads SET payload = 'first answer' WHERE sequence = 3",
        "answer of entry 3 was edited",
    ),
    "a deleted answer": ("DELETE FROM payloads WHERE sequence = 6", "answer of entry 6 is missing"),
    "two answers swapped": (
        "UPDATE payloads SET sequence = -sequence; UPDATE payloads SET sequence = 9 + sequence",
        "answer of entry 3 was edited",
    ),
    "an added answer": (
        "INSERT INTO payloads VALUES (9, x'00')",
        "under entry 9, which does not store one",
    ),
    "a total": (
        "UPDATE accounts SET total_first = 9999 WHERE name = 'trips'",
        "account 'trips' was edited",
    ),
    "a second total": (
        "UPDATE accounts SET total_second = 1 WHERE name = 'visits'",
        "account 'visits' was edited",
    ),
    "a rule": (
        "UPDATE accounts SET rule = 'pure' WHERE name = 'trips'",
        "account 'trips' was edited",
    ),
    "an account's name": (
        "UPDATE accounts SET name = 'voyages' WHERE name = 'visits'",
        "account 'visits' is missing",
    ),
    "a deleted account": (
        "DELETE FROM accounts WHERE name = 'visits'",
        "account 'visits' is missing",
    ),
    "an added account": (
        "INSERT INTO accounts VALUES ('more', 'marbles', 5, 0)",
        "account 'more' has no entry",
    ),
    "the highest number": (
        "UPDATE sqlite_sequence SET seq = 99 WHERE name = 'entries'",
        "up to 99",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_tampering_is_found(charged_path, edit):
    statements, sentence = EDITS[edit]
    found = verified_after(charged_path, statements)
    assert not found.ok
    assert any(sentence in fault for fault in found.faults), found.faults
    assert found.fault == found.faults[0]


def test_control_nothing_is_found_where_nothing_is_tampered_with(charged_path):
    with unguarded(charged_path):
        pass
    with open_ledger(charged_path) as ledger:
        found = ledger.verify()
        assert found.ok
        assert found.fault is None
        assert ledger.verify(found.head).ok
        assert all(ledger.verify(entry).ok for entry in ledger.log())


CAREFUL = {
    "a smaller charge": (
        "UPDATE entries SET cost_first = 1 WHERE sequence = 5",
        "entry 5 states a balance",
    ),
    "a refund": (
        "UPDATE entries SET spent_first = spent_first - 10 WHERE sequence > 8",
        "entry 9 states a balance",
    ),
    "a free reservation": (
        "UPDATE entries SET kind = 'hand' WHERE sequence = 9",
        "entry 9 costs something",
    ),
    "a charge over the total": (
        "UPDATE entries SET cost_first = 2000, spent_first = 2320 WHERE sequence = 11",
        "entry 11 takes account 'trips' over its total",
    ),
    "an answered key resumed": (
        "UPDATE entries SET kind = 'resume' WHERE sequence = 4",
        "entry 4 (resume) does not follow",
    ),
    "an answer to nothing": (
        "UPDATE entries SET key = 'z' WHERE sequence IN (6, 7)",
        "entry 6 (store) has no reservation",
    ),
    "another digest": (
        "UPDATE entries SET digest = 'z' WHERE sequence = 6",
        "entry 6 (store) has no reservation",
    ),
    "a key charged twice": (
        "UPDATE entries SET key = 'a' WHERE sequence = 11",
        "entry 11 reserves key 'a' a second time",
    ),
    "an account opened twice": (
        "UPDATE entries SET account = 'trips' WHERE sequence = 8",
        "opens account 'trips' a second time",
    ),
    "an account without a total": (
        "UPDATE entries SET note = '{}' WHERE sequence = 1",
        "without a total",
    ),
    "a charge to no account": (
        "UPDATE entries SET account = 'none' WHERE sequence = 11",
        "'none', which is not open",
    ),
    "an answer": (
        "UPDATE payloads SET payload = x'00' WHERE sequence = 3",
        "answer of entry 3 was edited",
    ),
    "an answer that vanished": (
        "UPDATE entries SET kind = 'resume' WHERE sequence = 6",
        "under entry 6, which does not store one",
    ),
}


@pytest.mark.parametrize("edit", CAREFUL)
def test_a_forger_who_computes_all_hashes_anew_must_also_keep_the_books(charged_path, edit):
    statement, sentence = CAREFUL[edit]
    with unguarded(charged_path) as db:
        db.execute(statement)
        rechain(db)
    with open_ledger(charged_path) as ledger:
        faults = ledger.verify().faults
    assert any(sentence in fault for fault in faults), faults


def test_a_whole_rewrite_is_found_only_with_a_copy_kept_outside(charged_path):
    with open_ledger(charged_path) as ledger:
        receipt = next(entry for entry in ledger.log() if entry.sequence == 2)
        head = ledger.verify().head
    with unguarded(charged_path) as db:
        db.execute("UPDATE entries SET note = 'rewritten' WHERE sequence = 2")
        rechain(db)
    with open_ledger(charged_path) as ledger:
        assert ledger.verify().ok, (
            "a valid chain of another history: nothing inside the file can tell"
        )
        assert "differs from the one known from outside" in str(ledger.verify(receipt).fault)
        assert "differs from the one known from outside" in str(ledger.verify(head).fault)


def test_a_careful_cut_of_the_tail_is_found_only_with_a_copy_kept_outside(charged_path):
    with open_ledger(charged_path) as ledger:
        entries = list(ledger.log())
    with unguarded(charged_path) as db:
        db.execute("DELETE FROM entries WHERE sequence > 9")
        db.execute("UPDATE sqlite_sequence SET seq = 9 WHERE name = 'entries'")
    with open_ledger(charged_path) as ledger:
        assert ledger.verify().ok
        assert ledger.verify(entries[8]).ok, "a receipt from before the cut tells nothing"
        assert "an older copy put back" in str(ledger.verify(entries[10]).fault)


def test_damaged_bytes_are_found_or_refused(charged_path):
    raw = bytearray(charged_path.read_bytes())
    for start in range(4096 + 200, len(raw), 4096):
        raw[start : start + 2000] = b"\xa5" * 2000
    charged_path.write_bytes(bytes(raw))
    assert "damaged" in verdict(charged_path)


def verdict(path) -> str:
    """What opening and verifying say."""
    try:
        with open_ledger(path) as ledger:
            return str(ledger.verify().fault)
    except LedgerError as error:
        return str(error)
