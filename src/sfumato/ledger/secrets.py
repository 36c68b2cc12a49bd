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
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from sfumato.errors import LedgerError
from sfumato.ledger.store import (
    MOVED,
    Named,
    NameRow,
    NameRows,
    PublicRows,
    Request,
    SecretRows,
    SecretStore,
    Store,
    T,
)

KEY_BYTES = 16


class Known(NamedTuple):
    """What the secrets know when a question is asked.

    ``name`` is what it was called before; None where it was not asked, or is asked afresh.
    ``moved_to`` says where the ledger was moved to; None where it was not. ``seed`` is kept for its
    charge. ``elsewhere`` are the keys of the same question in other states of the data.
    ``namesake`` is the name that was made for the question, where another one is asked for.
    """

    name: NameRow | None
    moved_to: bytes | None
    seed: bytes | None = None
    elsewhere: tuple[str, ...] = ()
    namesake: NameRow | None = None


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
            raise LedgerError(
                store.label,
                "they belong to another ledger" if kept else "they were emptied",
                "Put back the file that belongs to this one",
            )
        self._secret = secret

    def name(
        self,
        request: Request,
        fresh: tuple[str, str],
        charged: Callable[[str], object],
        rows: NameRows,
    ) -> Named:
        """Find the name of a question, or give it one, within a transaction that writes.

        Parameters
        ----------
        request : Request
            The question and its key; None: the key that was made for it, or a new one. What was
            asked is stored as an HMAC only.
        fresh : pair of str
            From `fresh_name`: the key and digest that the question is given if it has none.
        charged : callable
            What was entered in the ledger under a key: something, if it was charged. A name
            without a charge is left over from a charge that was refused, and may be given again.
        rows : NameRows
            The names, in the transaction of the charge or in one of their own within it.
        """
        tags = self.tags(request)
        place = self.place_tag(request)
        noted = known(rows, request, tags, place)
        named = _standing(noted, request, tags, charged)
        if named is not None:
            return named
        # A name that nothing was charged under stays free: its question may have been refused.
        derived = request.key is None or (
            request.fresh and not _is_charged(noted.namesake, charged)
        )
        key, digest = fresh
        rows.keep(request.account, NameRow(key, tags[0], digest, place), derived=derived)
        if noted.seed is not None:
            # The seed of a name that stays free is for a question that counts other columns.
            rows.wipe_seed(request.account, key)
        rows.keep_seed(request.account, key, request.seed)
        return Named("named", key, digest, noted.moved_to, request.seed)

    def using(self, rows: NameRows | None) -> Callable[[Callable[[NameRows], T]], T]:
        """How an action is given the names: in this transaction, or else in one of their own."""
        return self.store.writing if rows is None else lambda action: action(rows)

    def place_tag(self, request: Request) -> bytes | None:
        """The HMAC of a question without the state of the data; None where a user gave its key."""
        if request.place is None or (request.key is not None and not request.fresh):
            return None
        return self._tag("place", request.account, request.place)

    def keys(self, request: Request, rows: NameRows | None) -> list[str]:
        """The keys of the names of a question, in any state of the data; ``rows`` as for `name`."""

        def look(names: NameRows) -> list[str]:
            place = self.place_tag(request)
            keys = [] if place is None else names.keys_of_place(request.account, place)
            own = [names.of_tag(request.account, tag) for tag in self.tags(request)]
            return keys + [name.key for name in own if name is not None and name.key not in keys]

        return self.using(rows)(look)

    def keep_seed(self, request: Request, key: str, rows: NameRows | None) -> bytes:
        """Keep, once, what the noise of a charge comes from, and return it."""

        def settle(names: NameRows) -> bytes:
            names.keep_seed(request.account, key, request.seed)
            return names.seed(request.account, key) or request.seed

        return self.using(rows)(settle)

    def wipe_left_over(self, ledger: Store) -> None:
        """Wipe the seeds of charges that were answered before a process ended that would have."""
        seeds = self.store.reading(lambda rows: list(rows.seeds()))
        answered = seeds and ledger.reading(
            lambda rows: [whose for whose in seeds if rows.has(*whose, "store")]
        )
        if answered:
            self.wipe_seeds(answered)

    def wipe_seeds(self, keys: Iterable[tuple[str, str]]) -> None:
        """Wipe what the noise of some charges came from, by account and key."""

        def wipe(rows: SecretRows) -> None:
            for account, key in keys:
                rows.wipe_seed(account, key)

        self.store.wiping(wipe)

    def tags(self, request: Request) -> list[bytes]:
        """The HMACs under which a question is kept: in the words of now, then of before."""
        return [*map(partial(self._tag, request.account), request.words)]

    def _tag(self, *texts: str) -> bytes:
        # As JSON, no two lists of texts run together into one.
        text = json.dumps(texts, ensure_ascii=True)
        return hmac.digest(self._secret, text.encode("ascii"), hashlib.sha256)

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
        return self._tag("state", digest, state)

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


def fresh_name(key: str | None) -> tuple[str, str]:
    """The key and digest of no question yet; both random, but for a key that is given."""
    return key or secrets.token_hex(KEY_BYTES), secrets.token_hex(32)


def known(
    rows: NameRows, request: Request, tags: Sequence[bytes], place: bytes | None = None
) -> Known:
    """What is known by a key; without one, by the first of some tags that has a name."""
    account = request.account
    moved = rows.value(MOVED)
    by_tag = None
    if request.key is None or request.fresh:
        by_tag = next(filter(None, map(partial(rows.of_tag, account), tags)), None)
    name = by_tag if request.key is None else rows.of_key(account, request.key)
    seed = None if name is None else rows.seed(account, name.key)
    elsewhere: tuple[str, ...] = ()
    if place is not None and not request.fresh:
        keys = rows.keys_of_place(account, place)
        elsewhere = tuple(key for key in keys if name is None or key != name.key)
    return Known(name, moved, seed, elsewhere, by_tag)


def _is_charged(name: NameRow | None, charged: Callable[[str], object]) -> bool:
    return name is not None and bool(charged(name.key))


def _standing(
    noted: Known, request: Request, tags: Sequence[bytes], charged: Callable[[str], object]
) -> Named | None:
    """Tell what stands under a key or a question; None where it is to be given a name.

    Parameters are those of `Secrets.name`, and what is known.
    """
    name = noted.name
    # These secrets are older than the book, or another ledger's: they never heard of the key.
    if name is None and request.key is not None and charged(request.key):
        return Named("unknown")
    # Before the name itself: it may be left over from a charge that was refused.
    paid_elsewhere = tuple(filter(charged, noted.elsewhere))
    if paid_elsewhere and not _is_charged(name, charged):
        return Named("elsewhere", elsewhere=paid_elsewhere)
    if name is not None and name.tag in tags:
        return Named("named", name.key, name.digest, noted.moved_to, noted.seed)
    return Named("conflict") if _is_charged(name, charged) else None


def require_here(where: bytes | None, label: str) -> None:
    """Refuse to use the rows of a ledger that was moved somewhere."""
    if where is not None:
        raise LedgerError(
            label, f"the ledger was moved to {where.decode()}", "Name that one with ledger="
        )


def _state_name(digest: str) -> str:
    return f"state of {digest}"


def _settle(rows: SecretRows, identity: str) -> None:
    """Fill new secrets: the ledger's identity, and the key of all HMACs."""
    # Both or none: an identity without a secret would look like secrets that were emptied.
    if rows.value("identity") is None:
        rows.add_value("identity", identity.encode())
        rows.add_value("secret", secrets.token_bytes(32))


def opened(store: Store) -> Secrets:
    """The secrets of a ledger, made once if it was never charged."""
    identity = store.reading(lambda rows: rows.identity()) or store.writing(_new_identity)
    # A ledger that was charged had secrets. New ones would let its streams begin again under their
    # old charge, with new noise for steps that are already published.
    create = not store.reading(lambda rows: rows.charged())
    return Secrets(store.secrets(create=create), identity, create=create)


def _new_identity(rows: PublicRows) -> str:
    """The ledger's own name for itself: random, made when the ledger is first written to."""
    identity = rows.identity()
    if identity is None:
        identity = secrets.token_hex(16)
        rows.set_identity(identity)
    return identity
