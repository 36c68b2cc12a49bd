"""A ledger in SQLite: its public and secret rows, and its two files as the two parts of a store.

The tables of the public rows are in ``book.sql``, those of the secret rows in ``secrets.sql``.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from sfumato.errors import LedgerError
from sfumato.ledger.entries import NOTHING, Entry, MaybeCurve, Step, allows, curve_text, terms_in
from sfumato.ledger.sql import SQLPublicRows, SQLSecretRows
from sfumato.ledger.sqlite_file import (
    BOOK,
    READING,
    SECRETS,
    WIPING,
    WITH_CURVES,
    WITH_SPENDERS,
    WRITING,
    Database,
    damage,
    differences,
    extend,
    version_of,
)
from sfumato.ledger.store import (
    MOVED,
    Position,
    PublicRows,
    R,
    SecretRows,
    SecretStore,
    Store,
    StorePart,
    T,
)


class SQLitePublicRows(SQLPublicRows):
    """The public rows within one transaction of a connection."""

    place: ClassVar[str] = "rowid"

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db.execute)
        self._db = db
        # Asked in each transaction: another process may name the first spender meanwhile.
        self._set_version(version_of(db))

    def _set_version(self, version: int) -> None:
        self.with_spenders = version >= WITH_SPENDERS
        self.with_curves = version >= WITH_CURVES
        if not self.with_curves:
            return
        # The functions that the triggers of curves call, once for a connection. SQLite lets
        # triggers call them only in a file that is trusted: one whose rules are this library's own.
        db = self._db
        if db.execute("PRAGMA trusted_schema").fetchone() == (1,) or differences(db, BOOK):
            return
        db.create_function("sfumato_terms", 1, terms_in, deterministic=True)
        db.create_function("sfumato_allows", 4, allows, deterministic=True)
        db.execute("PRAGMA trusted_schema = ON")

    @staticmethod
    def stored(curve: MaybeCurve) -> str:
        return curve_text(curve)

    def extend(self) -> None:
        extend(self._db, BOOK, WITH_CURVES)
        self._set_version(WITH_CURVES)

    def add(self, entry: Entry) -> None:
        if (entry.spender or entry.own != NOTHING) and not self.with_spenders:
            extend(self._db, BOOK, WITH_SPENDERS)
            self._set_version(WITH_SPENDERS)
        super().add(entry)

    def highest(self) -> int:
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
        return row[0] if row else 0

    def damage(self, *, thorough: bool) -> list[str]:
        edited = differences(self._db, BOOK)
        return [*damage(self._db), *edited] if thorough else edited


# Where the ledger was moved to another store, no seal is the one that the step was computed from.
COMMIT_STEP = f"""
    INSERT INTO moves VALUES (
      ?, CASE WHEN EXISTS (SELECT 1 FROM about WHERE name = '{MOVED}') THEN NULL ELSE ? END,
      ?, ?, ?, ?, ?, ?, ?)
"""


class SQLiteSecretRows(SQLSecretRows):
    """The secret rows within one transaction of a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db.execute)
        self._db = db

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

    def damage(self) -> list[str]:
        return [*damage(self._db), *differences(self._db, SECRETS)]


SUFFIX = ".secrets"


def secrets_of(path: str | None) -> str | None:
    """Where the secrets of the ledger in a file are."""
    return None if path is None else path + SUFFIX


class SQLitePart(StorePart[R]):
    """One part of a ledger, in a file of its own or in memory."""

    def __init__(self, database: Database, rows: Callable[[sqlite3.Connection], R]) -> None:
        self.database = database
        self._rows = rows

    @property
    def label(self) -> str:
        return self.database.label

    def reading(self, action: Callable[[R], T]) -> T:
        return self.database.turns.alone(self.database.transaction, READING, self._rows, action)

    def writing(self, action: Callable[[R], T]) -> T:
        return self.database.turns.alone(self.database.transaction, WRITING, self._rows, action)

    def close(self) -> None:
        self.database.close()


class SQLiteStore(SQLitePart[PublicRows], Store):
    """A ledger in a file, or in memory.

    Parameters
    ----------
    where : str, Path or None
        None or ``":memory:"``: in memory.
    create, at_once : bool
        Whether a missing file is made, and whether it is made now, or when it is first written to.
    """

    def __init__(
        self, where: str | Path | None, *, create: bool = True, at_once: bool = True
    ) -> None:
        super().__init__(
            Database(where, kind=BOOK, create=create, at_once=at_once), SQLitePublicRows
        )
        self._in_memory: SQLiteSecretStore | None = None

    def __repr__(self) -> str:
        return f"SQLiteStore({self.database.path or ':memory:'!r})"

    @property
    def is_made(self) -> bool:
        return self.database.is_made

    def beside(self) -> dict[str, Store]:
        if self.database.path is None:
            return {}
        own = Path(self.database.path)
        stores: dict[str, Store] = {}
        for secrets in sorted(own.parent.glob(f"*{SUFFIX}")):
            other = secrets.with_suffix("")
            if other != own:
                with suppress(LedgerError):
                    stores[other.name] = SQLiteStore(other, create=False)
        return stores

    def has_secrets(self) -> bool:
        path = secrets_of(self.database.path)
        return self._in_memory is not None if path is None else os.path.lexists(path)

    def secrets(self, *, create: bool) -> SecretStore:
        path = secrets_of(self.database.path)
        if path is None:
            # Opened again, it has the same rows, as a file would.
            self._in_memory = self._in_memory or SQLiteSecretStore(None, create=True)
            return self._in_memory
        if not create and not os.path.lexists(path):
            alone = "a copy without it can be read and verified only"
            raise LedgerError(
                f"the ledger {self.database.path!r}",
                f"its secrets are missing: there is no file {Path(path).name!r} beside it",
                f"Put that file back from the same backup; {alone}",
            )
        return SQLiteSecretStore(path, create=create)

    def require_private(self) -> None:
        if self.database.open_to_others():
            raise LedgerError(
                self.label,
                "users other than its owner may open it, and it holds streams",
                f"Run `chmod 600 {self.database.path}`, then ask again",
            )


class SQLiteSecretStore(SQLitePart[SecretRows], SecretStore):
    """The secrets of a ledger, in a file that only its owner may open, or in memory."""

    def __init__(self, where: str | None, *, create: bool) -> None:
        super().__init__(Database(where, kind=SECRETS, create=create), SQLiteSecretRows)

    def forget(self) -> None:
        self.database.forget_log()

    def wiping(self, action: Callable[[SecretRows], None]) -> None:
        self.database.turns.alone(self.database.transaction, WIPING, SQLiteSecretRows, action)
        self.forget()
