"""A stream that adds 1 at each step, and publishes its state."""

from __future__ import annotations

from sfumato.ledger import Ledger
from sfumato.ledger.stream_record import StreamRecord


def add_one(number: int, state: bytes, counts: list[int]) -> tuple[bytes, bytes]:
    """The work of one step: the state after it, and its output, which is the same."""
    after = str(int(state) + 1).encode()
    return after, after


def open_stream(
    ledger: Ledger, key: str = "s", cost: tuple[int, int] = (10, 0), account: str = "trips"
) -> StreamRecord:
    """Charge for the stream, or go on with it."""
    return ledger.stream(account, key, "digest", cost, "a stream", spec=b"spec", state=b"0")
