"""The secret rows of a ledger in SQLite; the tables are in ``secrets.sql``."""

from __future__ import annotations

import sqlite3

from sfumato.ledger.entries import Step
from sfumato.ledger.sql_secret import SQLSecretRows, SQLStreamRows
from sfumato.ledger.sqlite.schema import SECRETS, damage, differences
from sfumato.ledger.store import MOVED, Position

# Where the ledger was moved to another store, no seal is the one that the step was computed from.
COMMIT_STEP = f"""
    INSERT INTO moves VALUES (
      ?, CASE WHEN EXISTS (SELECT 1 FROM about WHERE name = '{MOVED}') THEN NULL ELSE ? END,
      ?, ?, ?, ?, ?, ?, ?)
"""


class SQLiteStreamRows(SQLStreamRows):
    """What taking a step needs; each call is one statement."""

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        published = (step.number, step.event, step.output, step.hash)
        values = (stream, before, *published, after.state, after.tallied, after.seal)
        # A row for the view `moves` takes the step: its trigger compares the seal, adds the step
        # and replaces the stream's row, all in this one statement.
        try:
            self._ask(COMMIT_STEP, values)
        except sqlite3.IntegrityError:
            return False
        return True


class SQLiteSecretRows(SQLiteStreamRows, SQLSecretRows):
    """The secret rows within one transaction of a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db.execute)
        self._db = db

    def damage(self) -> list[str]:
        return [*damage(self._db), *differences(self._db, SECRETS)]
