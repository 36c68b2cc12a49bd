"""The public rows of a ledger in SQLite; the tables are in ``book.sql``."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import ClassVar

from sfumato.ledger.entries import NOTHING, Amount, Entry
from sfumato.ledger.sql_public import COLUMNS, SQLPublicRows, entry_of
from sfumato.ledger.sqlite.schema import BOOK, damage, differences, extend, version_of


class SQLitePublicRows(SQLPublicRows):
    """The public rows within one transaction of a connection."""

    place: ClassVar[str] = "rowid"

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db.execute)
        self._db = db
        # Asked in each transaction: another process may name the first spender meanwhile.
        self.with_spenders = version_of(db) == BOOK.newest

    def add(self, entry: Entry) -> None:
        if (entry.spender or entry.own != NOTHING) and not self.with_spenders:
            extend(self._db, BOOK)
            self.with_spenders = True
        super().add(entry)

    def highest(self) -> int:
        return highest_of(self._db)

    def damage(self, *, thorough: bool) -> list[str]:
        found = differences(self._db, BOOK)
        return [*damage(self._db), *found] if thorough else found


def all_entries(db: sqlite3.Connection) -> list[Entry]:
    """All entries of a file, in order."""
    query = f"SELECT {COLUMNS} FROM entries ORDER BY sequence"
    return [entry_of(columns) for columns in db.execute(query).fetchall()]


def totals_of(db: sqlite3.Connection) -> Mapping[str, tuple[str, Amount]]:
    """The rule and total of each account of a file, in the order in which they were opened."""
    return SQLitePublicRows(db).totals()


def highest_of(db: sqlite3.Connection) -> int:
    """The highest number that was ever given to an entry of a file."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    return found[0] if found else 0
