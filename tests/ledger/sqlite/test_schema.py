"""The rules in a ledger's files refuse every change, whichever program makes it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from sfumato.ledger import open_ledger
from support.tampering import secrets_of


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
def test_the_rules_refuse_every_change_of_the_secret_part(stream_path, act):
    with (
        closing(sqlite3.connect(secrets_of(stream_path))) as db,
        pytest.raises(sqlite3.IntegrityError),
    ):
        db.execute(act)


@pytest.mark.parametrize(
    "act", ["DROP TRIGGER entries_stay", "DROP INDEX entries_by_key", "CREATE TABLE more (x)"]
)
def test_dropped_or_added_rules_are_found(charged_path, act):
    with closing(sqlite3.connect(charged_path)) as db:
        db.execute(act)
    with open_ledger(charged_path) as ledger:
        assert "was dropped, replaced or added" in str(ledger.verify().fault)


@pytest.mark.parametrize(
    "act",
    [
        "UPDATE entries SET note = ''",
        "DELETE FROM entries WHERE sequence = 11",
        "UPDATE payloads SET payload = x'00'",
        "DELETE FROM payloads",
        "UPDATE accounts SET total_first = 9999",
        "DELETE FROM accounts",
        "INSERT OR REPLACE INTO accounts VALUES ('trips', 'marbles', 9999, 0)",
        "INSERT OR REPLACE INTO payloads VALUES (3, x'00')",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE sequence = 2",
        "INSERT INTO payloads VALUES (2, x'00')",
    ],
)
def test_the_rules_refuse_every_change_of_the_public_part(charged_path, act):
    with closing(sqlite3.connect(charged_path)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(act)


def test_the_rules_refuse_what_a_faulty_program_might_add(charged_path):
    """Entry 12 would be the next of the chain; each attempt breaks one rule of its own."""
    added = """
        INSERT INTO entries (
            sequence, account, time, cost_second, note, payload_hash, spent_second, until, holder,
            previous, hash, kind, cost_first, spent_first, key, digest
        )
        SELECT 12, 'trips', time, 0, '', '', 0, until, holder,
            hash, '', :kind, :cost, :spent, :key,
            (SELECT coalesce(max(digest), 'digest') FROM entries
             WHERE key = :key AND kind = 'reserve')
        FROM entries WHERE sequence = 11
    """
    attempts = [
        ("reserve", 681, 1001, "e", "cannot pay"),
        ("reserve", 10, 325, "e", "balance does not follow"),
        ("reserve", 10, 330, "a", "key is taken"),
        ("store", 0, 320, "z", "never reserved"),
        ("resume", 0, 320, "a", "answered"),
        ("hand", 0, 320, "d", "nothing to hand out"),
        ("resume", 5, 325, "d", "only a reservation costs"),
    ]
    with closing(sqlite3.connect(charged_path, isolation_level=None)) as db:
        for kind, cost, spent, key, rule in attempts:
            values = {"kind": kind, "cost": cost, "spent": spent, "key": key}
            with pytest.raises(sqlite3.IntegrityError, match=rule):
                db.execute(added, values)
