"""The two files of a ledger in SQLite as the two parts of a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger.sqlite.database import Database
from sfumato.ledger.sqlite.public import SQLitePublicRows
from sfumato.ledger.sqlite.schema import BOOK, SECRETS
from sfumato.ledger.sqlite.secret import SQLiteSecretRows, SQLiteStreamRows
from sfumato.ledger.store import PublicRows, SecretRows, SecretStore, Store, StreamRows

T = TypeVar("T")
SUFFIX = ".secrets"


def beside(path: str | None) -> str | None:
    """Where the secrets of the ledger in a file are."""
    return None if path is None else path + SUFFIX


class SQLiteStore(Store):
    """A ledger in a file, or in memory.

    Parameters
    ----------
    where : str, Path or None
        None or ``":memory:"``: in memory.
    create : bool
        Whether a missing file is made.
    """

    def __init__(self, where: str | Path | None, *, create: bool = True) -> None:
        self.database = Database(where, kind=BOOK, create=create)
        self._in_memory: SQLiteSecretStore | None = None

    def __repr__(self) -> str:
        return f"SQLiteStore({self.database.path or ':memory:'!r})"

    @property
    def label(self) -> str:
        return self.database.label

    def reading(self, action: Callable[[PublicRows], T]) -> T:
        return self.database.reading(lambda db: action(SQLitePublicRows(db)))

    def writing(self, action: Callable[[PublicRows], T]) -> T:
        return self.database.atomic(lambda db: action(SQLitePublicRows(db)))

    def has_secrets(self) -> bool:
        path = beside(self.database.path)
        return self._in_memory is not None if path is None else os.path.lexists(path)

    def secrets(self, *, create: bool) -> SecretStore:
        path = beside(self.database.path)
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
            obstacle = "users other than its owner may open it, and it holds streams"
            remedy = f"Run `chmod 600 {self.database.path}`, then ask again"
            raise LedgerError(self.label, obstacle, remedy)

    def close(self) -> None:
        self.database.close()


class SQLiteSecretStore(SecretStore):
    """The secrets of a ledger, in a file that only its owner may open, or in memory."""

    def __init__(self, where: str | None, *, create: bool) -> None:
        self.database = Database(where, kind=SECRETS, create=create)

    @property
    def label(self) -> str:
        return self.database.label

    def reading(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.reading(lambda db: action(SQLiteSecretRows(db)))

    def writing(self, action: Callable[[SecretRows], T]) -> T:
        return self.database.atomic(lambda db: action(SQLiteSecretRows(db)))

    def singly(self, action: Callable[[StreamRows], T]) -> T:
        return self.database.singly(lambda execute: action(SQLiteStreamRows(execute)))

    def forget(self) -> None:
        self.database.forget_log()

    def close(self) -> None:
        self.database.close()
