"""What is stored when a stream is opened: its public specification, and its first state."""

from __future__ import annotations

import msgspec

from sfumato.answers.captions import Captions
from sfumato.answers.codec import UNREADABLE, from_bytes, to_bytes
from sfumato.errors import LedgerError
from sfumato.ledger import StreamRecord
from sfumato.questions.counters.question import Settled


class Opening(msgspec.Struct, frozen=True):
    """What is stored with the charge for a stream. All of it is public.

    Attributes
    ----------
    settled : Settled
        The counter with all that is public about its stream.
    private : bool
        Whether the noise is drawn from a private source.
    charged : str
        The cost in the account's measure.
    source : str
        The title of the data source.
    captions : Captions or unset
        The counter's words for people.
    """

    settled: Settled
    private: bool
    charged: str
    source: str
    captions: Captions | msgspec.UnsetType = msgspec.UNSET


def spec(opening: Opening) -> bytes:
    """Encode what is stored with the charge."""
    return to_bytes(opening)


def first_state(settled: Settled) -> bytes:
    """Encode the state before the first step: the last event's name and the mechanism's state."""
    return msgspec.json.encode(("", settled.mechanism.start()))


def opening_of(steps: StreamRecord) -> Opening:
    """Decode what was stored with the charge, perhaps by another version.

    Raises
    ------
    LedgerError
        If this version cannot read it.
    """
    try:
        found: Opening = from_bytes(steps.spec, Opening)
    except UNREADABLE:
        pass
    else:
        return found
    # Raised outside the except block, so that the decoder's error does not go with it.
    raise LedgerError(
        f"the stream {steps.entry.key!r}",
        "this version cannot read it",
        "Use the version that opened it",
        account=steps.entry.account,
    )
