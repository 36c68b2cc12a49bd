"""What only the operator of a ledger may know, in a file beside it: which question stands behind a key.

A stored answer must be found again when the same question is asked of the same data, and nobody who reads a receipt
may learn from it what the data are. So keys and digests in the ledger are random, and the question, with the state of
the data file, is kept here as an HMAC under a secret that never leaves this file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sfumato.errors import LedgerError
from sfumato.ledger.store import SECRETS, Store

SUFFIX = ".secrets"
KEY_BYTES = 16
DIGEST_BYTES = 32
SECRET_BYTES = 32

BY_KEY = "SELECT key, tag, digest FROM requests WHERE account = ? AND key = ?"
BY_TAG = "SELECT key, tag, digest FROM requests WHERE account = ? AND tag = ? AND derived"


def beside(path: str | None) -> str | None:
    """Where the secrets of the ledger in a file are."""
    return None if path is None else path + SUFFIX


class Request(NamedTuple):
    """The name under which a question is entered: its key, and a random digest that stands for it."""

    key: str
    digest: str


class Conflict(Exception):
    """The key stands for another question."""


class Unknown(Exception):
    """The key was charged, and what it stands for is not known here."""


class Secrets:
    """The secrets of one ledger. All use is inside a transaction of its own.

    Parameters
    ----------
    where : str or None
        The file; None: in memory.
    identity : str
        The ledger's own name for itself, so that no ledger is used with the secrets of another.
    create : bool
        Whether a missing file is made.
    """

    def __init__(self, where: str | None, identity: str, *, create: bool) -> None:
        if where is not None and not create and not os.path.lexists(where):
            raise LedgerError(
                f"the ledger {where.removesuffix(SUFFIX)!r}",
                f"its secrets are missing: there is no file {Path(where).name!r} beside it",
                "Put that file back from the same backup; a copy without it can be read and verified only",
            )
        self.store = Store(where, kind=SECRETS, create=create)
        if create:
            self.store.atomic(lambda db: _settle(db, identity))
        about = self.store.reading(_about)
        if about.get("identity") != identity.encode():
            self.store.close()
            raise LedgerError(
                self.store.label,
                "they belong to another ledger" if about else "they were emptied",
                "Put back the file that belongs to this one",
            )
        self._secret = about["secret"]

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self.store.close()

    def request(self, account: str, key: str | None, asked: str, charged: Callable[[str], bool]) -> Request:
        """Find the name of a question, or give it one.

        Parameters
        ----------
        account : str
        key : str or None
            As the user gave it; None: the one that was made for this question, or a new one.
        asked : str
            All that tells the question from others. It is stored as an HMAC only.
        charged : callable
            Whether a key was charged in the ledger. A name without a charge was left behind by a refusal.

        Raises
        ------
        Conflict
            The key stands for another question.
        Unknown
            The key was charged, and nothing here says what for.
        """
        tag = self.tag(account, asked)
        query = (BY_TAG, (account, tag)) if key is None else (BY_KEY, (account, key))
        found = self.store.reading(lambda db: db.execute(*query).fetchone())
        if found is None and key is not None and charged(key):
            raise Unknown
        if found is not None and found[1] == tag:
            return Request(found[0], found[2])
        if found is not None and charged(found[0]):
            raise Conflict
        fresh = Request(key or secrets.token_hex(KEY_BYTES), secrets.token_hex(DIGEST_BYTES))
        self.store.atomic(lambda db: _keep(db, account, fresh, tag, derived=key is None))
        return fresh

    def tag(self, account: str, asked: str) -> bytes:
        """The HMAC under which a question is kept."""
        text = json.dumps([account, asked], ensure_ascii=True)
        return hmac.digest(self._secret, text.encode("ascii"), hashlib.sha256)

    def adopt(self, account: str, request: Request, tag: bytes, *, derived: bool) -> None:
        """Take over the name of a question from an older ledger."""
        self.store.atomic(lambda db: _keep(db, account, request, tag, derived=derived))

    def replaced(self, sequence: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded."""
        query = "SELECT hash FROM replaced WHERE sequence = ?"
        found = self.store.reading(lambda db: db.execute(query, (sequence,)).fetchone())
        return None if found is None else str(found[0])

    def about(self, name: str, make: Callable[[], bytes] | None = None) -> bytes | None:
        """One of the values kept here, made now if it is missing; None where it is neither there nor made."""

        def settle(db: sqlite3.Connection) -> bytes | None:
            value = _about(db).get(name)
            if value is None and make is not None:
                value = make()
                db.execute("INSERT INTO about VALUES (?, ?)", (name, value))
            return value

        return self.store.reading(settle) if make is None else self.store.atomic(settle)


def _settle(db: sqlite3.Connection, identity: str) -> None:
    """Write a new file's identity and secret."""
    if not _about(db):
        for name, value in (
            ("identity", identity.encode()),
            ("secret", secrets.token_bytes(SECRET_BYTES)),
        ):
            db.execute("INSERT INTO about VALUES (?, ?)", (name, value))


def _about(db: sqlite3.Connection) -> Mapping[str, bytes]:
    return dict(db.execute("SELECT name, value FROM about").fetchall())


def _keep(db: sqlite3.Connection, account: str, request: Request, tag: bytes, *, derived: bool) -> None:
    """Write a name; one without a charge gives way."""
    db.execute(
        "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)",
        (account, request.key, tag, request.digest, derived),
    )
