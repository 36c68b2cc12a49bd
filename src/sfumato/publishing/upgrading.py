"""Upgrading a ledger of version 0.1: how its answers and streams are read and written anew."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from sfumato.answers.codec import UNREADABLE, from_bytes, to_bytes
from sfumato.answers.registry import releases_type
from sfumato.answers.release import Release
from sfumato.counters.question import Settled
from sfumato.errors import LedgerError
from sfumato.ledger import Binding, Entry
from sfumato.ledger.sqlite.upgrade import OldStream, Upgraded, upgrade
from sfumato.publishing.opening import Opening, spec

T = TypeVar("T")


def upgrade_ledger(old: str | Path, new: str | Path) -> Upgraded:
    """Copy a ledger of version 0.1 to a new file; the old one is only read.

    The questions that paid for the stored answers find them again, with new receipts. Streams go
    on.

    Parameters
    ----------
    old, new : str or Path

    Returns
    -------
    Upgraded
        What was copied, and which accounts can pay for nothing more.

    Raises
    ------
    UsageError
        If there is a file at ``new`` already.
    LedgerError
        If the old file is no ledger of version 0.1, or does not verify.
    """
    return upgrade(old, new, _Reader(str(old)))


class _OldOpening(msgspec.Struct, frozen=True):
    """What version 0.1 stored with the charge of a stream; ``secret`` is hexadecimal."""

    settled: Settled
    secret: str
    private: bool
    charged: str
    source: str


class _Reader:
    """Reads what version 0.1 stored; the ledger itself knows nothing of releases."""

    def __init__(self, label: str) -> None:
        self._label = label

    def answer(self, payload: bytes, entry: Entry) -> bytes:
        """A stored answer whose receipts name the entry as it is now."""
        return to_bytes([_with_receipt_of(release, entry) for release in self._releases(payload)])

    def binding(self, payload: bytes) -> Binding | None:
        """What a stored answer, or what a stream was opened with, protects.

        None where its parts protect different persons.
        """
        if payload.startswith(b"["):
            units = {release.guarantee.unit.protects for release in self._releases(payload)}
        else:
            opening = self._decoded(payload, Opening)
            units = {opening.settled.unit.protects}
        return Binding(units.pop()) if len(units) == 1 else None

    def stream(self, payload: bytes) -> OldStream:
        """What a stream was opened with."""
        old = self._decoded(payload, _OldOpening)
        public = spec(Opening(old.settled, old.private, old.charged, old.source))
        horizon = old.settled.mechanism.horizon
        return OldStream(public, bytes.fromhex(old.secret), old.source, horizon)

    def _releases(self, payload: bytes) -> list[Release]:
        return self._decoded(payload, releases_type())

    def _decoded(self, payload: bytes, kind: type[T]) -> T:
        # Raised outside the except block: that error quotes the answer.
        try:
            return from_bytes(payload, kind)
        except UNREADABLE:
            pass
        obstacle = "it holds an answer that this version cannot read"
        raise LedgerError(f"the ledger {self._label!r}", obstacle, "Use the version that wrote it")


def _with_receipt_of(release: Release, entry: Entry) -> Release:
    """A release whose receipt has the key, digest and hash of an entry."""
    if release.receipt is None:
        return release
    receipt = msgspec.structs.replace(
        release.receipt, key=entry.key, digest=entry.digest, entry_hash=entry.hash
    )
    return msgspec.structs.replace(release, receipt=receipt)
