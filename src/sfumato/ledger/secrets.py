"""What only the operator of a ledger may know: which question stands behind which key.

When the same question is asked of the same data, the ledger must find the stored answer. But a
reader of a receipt must learn nothing about the data file from it, such as its size. So keys and
digests in the ledger are random; and the question, with the state of the data file, is kept here,
as an HMAC under a secret that never leaves the secret part of the store.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger.store import (
    MOVED,
    Guard,
    NameRow,
    NameRows,
    NewCharge,
    PublicRows,
    Request,
    SecretRows,
    SecretStore,
)

T = TypeVar("T")

KEY_BYTES = 16
DIGEST_BYTES = 32
SECRET_BYTES = 32


class Name(NamedTuple):
    """The name under which a question is entered: its key and a random digest."""

    key: str
    digest: str


class Conflict(Exception):
    """The key stands for another question."""


class Unknown(Exception):
    """The key was charged, and these secrets do not know for what."""


class Secrets:
    """The secrets of one ledger. Each method runs a transaction of its own.

    Parameters
    ----------
    store : SecretStore
    identity : str
        The ledger's own name for itself, so that no ledger is used with the secrets of another.
    create : bool
        Whether empty secrets are filled.
    """

    def __init__(self, store: SecretStore, identity: str, *, create: bool) -> None:
        self.store = store
        if create:
            store.writing(lambda rows: _settle(rows, identity))
        # Checked even if they were made just now: another process may have filled them first.
        kept, secret = store.reading(lambda rows: (rows.value("identity"), rows.value("secret")))
        if kept != identity.encode() or secret is None:
            store.close()
            obstacle = "they belong to another ledger" if kept else "they were emptied"
            raise LedgerError(store.label, obstacle, "Put back the file that belongs to this one")
        self._secret = secret

    def close(self) -> None:
        """Close the store; closing twice is harmless."""
        self.store.close()

    def name(
        self,
        account: str,
        key: str | None,
        asked: str,
        charged: Callable[[str], object],
        *,
        formerly: Sequence[str] = (),
        rows: NameRows | None = None,
    ) -> Name:
        """Find the name of a question, or give it one.

        Parameters
        ----------
        account : str
        key : str or None
            As the user gave it; None: the one that was made for this question, or a new one.
        asked : str
            All that tells the question from others. It is stored as an HMAC only.
        charged : callable
            What was entered in the ledger under a key: something, if it was charged. A name
            without a charge is left over from a charge that was refused, and may be given again.
        formerly : sequence of str
            ``asked`` in the words of earlier versions, under which it may be known.
        rows : NameRows or None
            The names in the transaction of the charge; None: in transactions of their own.

        Raises
        ------
        Conflict
            The key stands for another question.
        Unknown
            The key was charged, and nothing here says for what.
        """
        tags = [self.tag(account, words) for words in (asked, *formerly)]
        found = self._look(rows, lambda names: _known(names, account, key, tags))
        # These secrets are older than the book, or another ledger's: they never heard of the key.
        if found is None and key is not None and charged(key):
            raise Unknown
        if found is not None and found.tag in tags:
            return Name(found.key, found.digest)
        if found is not None and charged(found.key):
            raise Conflict
        fresh = fresh_name(key)
        self.adopt(account, fresh, tags[0], derived=key is None, rows=rows)
        return fresh

    def new_charge(self, request: Request, holder: str) -> NewCharge:
        """A request as a charge under a fresh name, in case the question has none."""
        name = fresh_name(request.key)
        asked = (request.asked, *request.formerly)
        tags = [self.tag(request.account, words) for words in asked]
        bound = request.binding
        return NewCharge(
            request.account,
            NameRow(name.key, tags[0], name.digest),
            request.key is not None,
            tags[1:],
            (request.cost[0], request.cost[1]),
            request.note,
            request.lease,
            holder,
            None if bound is None else bound.protects,
            None if bound is None else bound.data,
            None if bound is None else bound.ceiling,
        )

    def foresee(
        self, account: str, key: str | None, asked: str, formerly: Sequence[str], rows: NameRows
    ) -> None:
        """Read what `name` and `require_here` are going to read."""
        _known(rows, account, key, [self.tag(account, words) for words in (asked, *formerly)])
        self.require_here(rows)

    def require_here(self, rows: NameRows | None = None) -> None:
        """Refuse to pay from a ledger that was moved; ``rows`` as for `name`."""
        self._look(rows, partial(require_here, label=self.store.label))

    def _look(self, rows: NameRows | None, action: Callable[[NameRows], T]) -> T:
        return self.store.looking(action) if rows is None else action(rows)

    def tag(self, account: str, asked: str) -> bytes:
        """The HMAC under which a question is kept."""
        # As JSON, no two pairs of texts run together into one.
        text = json.dumps([account, asked], ensure_ascii=True)
        return hmac.digest(self._secret, text.encode("ascii"), hashlib.sha256)

    def adopt(
        self, account: str, name: Name, tag: bytes, *, derived: bool, rows: NameRows | None = None
    ) -> None:
        """Write the name of a question; ``derived``: its key was made for it."""
        row = NameRow(name.key, tag, name.digest)
        if rows is not None:
            rows.keep(account, row, derived=derived)
            return
        # A charge follows, and is of no use without it. The other way round does no harm.
        self.store.writing_ahead(lambda rows: rows.keep(account, row, derived=derived))

    def note_state(self, digest: str, state: str) -> None:
        """Keep, once, which state of the data the charge of a digest asked about."""
        name = _state_name(digest)
        if self.value(name) is None:
            self.value(name, lambda: self._state_tag(digest, state))

    def is_of_state(self, digest: str, state: str) -> bool:
        """Whether the charge of a digest asked about this state; no where none was noted."""
        kept = self.value(_state_name(digest))
        return kept is not None and hmac.compare_digest(kept, self._state_tag(digest, state))

    def _state_tag(self, digest: str, state: str) -> bytes:
        # With the digest in it, two charges that asked about one state do not show that.
        text = json.dumps(["state", digest, state], ensure_ascii=True)
        return hmac.digest(self._secret, text.encode("ascii"), hashlib.sha256)

    def replaced(self, sequence: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded."""
        return self.store.reading(lambda rows: rows.replaced(sequence))

    def value(self, name: str, make: Callable[[], bytes] | None = None) -> bytes | None:
        """One of the values kept here, made now if it is missing and can be made."""

        # Looked for and made in one transaction: two processes would otherwise make two keys.
        def settle(rows: SecretRows) -> bytes | None:
            value = rows.value(name)
            if value is None and make is not None:
                value = make()
                rows.add_value(name, value)
            return value

        return self.store.reading(settle) if make is None else self.store.writing(settle)


def fresh_name(key: str | None) -> Name:
    """A name that no question has: a random digest, and a random key where none is given."""
    return Name(key or secrets.token_hex(KEY_BYTES), secrets.token_hex(DIGEST_BYTES))


def named_by(guard: Guard, account: str, key: str | None, asked: Sequence[str]) -> Name:
    """The name of a question where a guard stands for the secrets.

    Raises
    ------
    Conflict, Unknown
        As for `Secrets.name`.
    """
    found = guard.name(account, key, asked, fresh_name(key))
    match found.found:
        case "conflict":
            raise Conflict
        case "unknown":
            raise Unknown
        case "named":
            return Name(found.key, found.digest)


def require_here(rows: NameRows, label: str) -> None:
    """Refuse to use the rows of a ledger that was moved."""
    where = rows.value(MOVED)
    if where is not None:
        obstacle = f"the ledger was moved to {where.decode()}"
        raise LedgerError(label, obstacle, "Name that one with ledger=")


def _known(rows: NameRows, account: str, key: str | None, tags: Sequence[bytes]) -> NameRow | None:
    """The name of a key; without one, the name under the first of some tags that has one."""
    if key is not None:
        return rows.of_key(account, key)
    found = (rows.of_tag(account, tag) for tag in tags)
    return next((row for row in found if row is not None), None)


def _state_name(digest: str) -> str:
    return f"state of {digest}"


def _settle(rows: SecretRows, identity: str) -> None:
    """Fill new secrets: the ledger's identity, and the key of all HMACs."""
    if rows.value("identity") is None:
        rows.add_value("identity", identity.encode())
        rows.add_value("secret", secrets.token_bytes(SECRET_BYTES))


def new_identity(rows: PublicRows) -> str:
    """The ledger's own name for itself: random, made when the ledger is first written to."""
    found = rows.identity()
    if found is None:
        found = secrets.token_hex(16)
        rows.set_identity(found)
    return found
