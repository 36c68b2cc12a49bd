"""A reservation, while its caller computes the answer."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger.entries import Entry


class Hold:
    """A reservation, while its caller computes the answer; a context manager.

    Leaving it without an answer ends the lease, so that the next caller may resume the key at once.
    The charge stands either way.

    Attributes
    ----------
    entry : Entry
        The reservation. Its sequence, time and hash go into the receipt.
    stored : bytes or None
        The answer, if the key was answered before; then nothing was charged.
    """

    def __init__(
        self,
        entry: Entry,
        stored: bytes | None,
        store: Callable[[bytes], bytes],
        abandon: Callable[[], None],
    ) -> None:
        self.entry = entry
        self.stored = stored
        self._store = store
        self._abandon = abandon

    def __repr__(self) -> str:
        whose = f"account={self.entry.account!r}, key={self.entry.key!r}"
        return f"Hold({whose}, answered={self.stored is not None})"

    def store(self, payload: bytes) -> bytes:
        """Make an answer durable, and return the answer that is stored.

        If another process stored one first, that one stays and is returned. So all processes that
        answer one key return the same bytes.
        """
        if not isinstance(payload, bytes):
            raise UsageError(
                f"an answer of type {type(payload).__name__}",
                "the ledger stores bytes",
                "Encode the answer first",
            )
        # Once something is stored, a second answer would be a second draw under one charge.
        if self.stored is None:
            self.stored = self._store(payload)
        return self.stored

    def __enter__(self) -> Hold:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.stored is not None:
            return
        try:
            self._abandon()
        except LedgerError:
            # A lease that cannot be ended runs out by itself. The error because of which the
            # caller left must not be hidden by this one.
            if error is None:
                raise
