"""The public rows of a ledger in SQLite; the tables are in ``book.sql``."""

from __future__ import annotations

import sqlite3
from typing import ClassVar

from sfumato.ledger.entries import NOTHING, Entry
from sfumato.ledger.sql_public import SQLPublicRows
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
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'entries'"
        found = self._db.execute(query).fetchone()
        return found[0] if found else 0

    def damage(self, *, thorough: bool) -> list[str]:
        found = differences(self._db, BOOK)
        return [*damage(self._db), *found] if thorough else found
