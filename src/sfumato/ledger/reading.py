"""Reading and checking a ledger: all that an auditor needs, without its secrets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sfumato.ledger import audit_streams, stream_record
from sfumato.ledger.anchor import Anchor
from sfumato.ledger.audit import MOST_FAULTS, audit
from sfumato.ledger.charges import OPEN_IT, Charges, require_account
from sfumato.ledger.entries import Account, Entry, Spender, Verification
from sfumato.ledger.parts import Parts
from sfumato.ledger.secrets import Secrets
from sfumato.ledger.store import PublicRows, SecretRows, Store, StoreError
from sfumato.ledger.stream_record import StreamRecord

BATCH = 500  # entries of the log that are read at a time


class BookReader:
    """The part of a `Book` that changes nothing.

    Parameters
    ----------
    store : Store
    anchor : str, Path or None
        As for `Book`.
    """

    def __init__(self, store: Store, anchor: str | Path | None) -> None:
        self._parts = Parts(store, None if anchor is None else Anchor(anchor))
        self._store = store
        self._charges = Charges(self._parts)

    @property
    def label(self) -> str:
        """What messages call it; an address without user and password."""
        return self._store.label

    # --- accounts ---------------------------------------------------------------------------------

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were opened."""
        return self._store.reading(lambda rows: rows.accounts())

    def account(self, name: str, *, remedy: str = OPEN_IT) -> Account:
        """One account, as it stands now; of one that does not exist, a refusal with this remedy."""
        label = self._store.label
        return self._store.reading(lambda rows: require_account(rows, name, label, remedy))

    def spenders(self, account: str) -> list[Spender]:
        """The spenders of an account, in the order in which they were named."""
        return self._store.reading(lambda rows: rows.spenders(self._known(rows, account).name))

    def _known(self, rows: PublicRows, name: str) -> Account:
        return require_account(rows, name, self._store.label)

    # --- the log ----------------------------------------------------------------------------------

    def log(self, account: str | None = None, *, after: int = 0) -> Iterator[Entry]:
        """Entries in order, of one account or of all; only those after a number, if it is given."""
        if account is not None:
            self.account(account)
        return self._entries(account, after)

    def _entries(self, account: str | None, last: int) -> Iterator[Entry]:
        while True:
            batch = self._store.reading(partial(_batch, after=last, account=account))
            yield from batch
            if len(batch) < BATCH:
                return
            last = batch[-1].sequence

    def answer(self, entry: int) -> bytes | None:
        """What is stored under a charge: its answer, or what a stream was opened with.

        Parameters
        ----------
        entry : int
            The number of the reservation, as receipts name it.

        Returns
        -------
        bytes or None
            None where the entry is no reservation, or nothing is stored yet.

        Raises
        ------
        LedgerError
            The answer is missing, or is not the one that was entered.
        """
        first = self._charges.find(entry)
        return None if first is None else self._charges.answer(first)

    def steps(self, entry: int) -> StreamRecord | None:
        """The stream that a charge paid for; None where there is none."""
        first = self._charges.find(entry)
        secrets = self._parts.secrets_if_any()
        if first is None or secrets is None:
            return None
        store = secrets.store
        if store.reading(lambda rows: rows.stream(entry)) is None:
            return None
        return store.reading(lambda rows: stream_record.found(rows, first, store))

    def was(self, entry: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded; None where it has no other."""
        secrets = self._parts.secrets_if_any()
        return None if secrets is None else secrets.replaced(entry)

    # --- checking it ------------------------------------------------------------------------------

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger, and say what does not agree.

        It finds an entry, answer, step or account that was edited, added, deleted or moved; a
        balance, lease or total that does not follow from the entries; a stream's state that does
        not belong to its last step; triggers that were dropped or replaced; a damaged file; and a
        plain cut of the tail.

        Alone, it cannot find a history that someone with write access rewrote as a whole, hashes
        and counters included, or an older copy put back in place: both are valid chains. Against
        them, keep the ``head`` of an earlier verification, or any receipt, elsewhere, and pass it
        here: that entry must then still stand where it stood. What was added after the latest head
        kept elsewhere can be cut without being noticed.

        Parameters
        ----------
        head : Entry, or tuple of int and str, or None
            An entry, or its number and hash, that must stand in this ledger.

        Returns
        -------
        Verification
            Also where the ledger cannot be read at all: that is then its fault.
        """
        try:
            return self._verify((head.sequence, head.hash) if isinstance(head, Entry) else head)
        except StoreError as error:
            return Verification(0, (0, ""), (f"the ledger cannot be read: {error.obstacle}",))

    def _verify(self, known: tuple[int, str] | None) -> Verification:
        parts = self._parts
        secrets = parts.secrets_if_any()
        if secrets is not None and known is not None:
            known = self._upgraded(secrets, known)
        # The public part comes first. A stream that is paid for between the two looks has a later
        # number than the last entry seen, and is not judged.
        found = self._store.reading(partial(audit, known=known))
        faults = list(found.verification.faults)
        if parts.anchor is not None:
            fault = parts.anchor_fault(parts.anchor, secrets)
            if fault is not None:
                faults.append(fault)
        if secrets is not None:
            last = found.verification.head[0]

            def look(rows: SecretRows) -> list[str]:
                streams = audit_streams.faults(rows, found.paid, found.begun, last)
                return [*rows.damage(), *streams]

            faults += secrets.store.reading(look)
        return dataclasses.replace(found.verification, faults=tuple(faults[:MOST_FAULTS]))

    def _upgraded(self, secrets: Secrets, known: tuple[int, str]) -> tuple[int, str]:
        """An entry known by its hash before the ledger was upgraded, by the one it has now."""
        number, digest = known
        if secrets.replaced(number) != digest:
            return known
        return number, self._parts.hash_of(number) or ""


def _batch(rows: PublicRows, after: int, account: str | None) -> list[Entry]:
    return list(rows.entries(after, account, BATCH))
