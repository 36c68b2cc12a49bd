"""A request for a charge, checked before the ledger is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sfumato.errors import UsageError
from sfumato.ledger.entries import LARGEST, Amount, Binding
from sfumato.ledger.name_rows import NameRow

LONGEST_TEXT = 4096  # bytes
LONGEST_LEASE = 366 * 86400.0  # seconds


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a charge; the parameters of `Book.reserve`.

    ``digest`` is random. It is found, or made, together with the key. ``formerly`` is what was
    asked for in the words of earlier versions. ``spender`` is as the user stated it.
    """

    account: str
    key: str | None
    asked: str
    cost: Amount
    note: str
    lease: float
    resumes: int | None
    binding: Binding | None = None
    digest: str = ""
    formerly: tuple[str, ...] = ()
    spender: str | None = None

    def __post_init__(self) -> None:
        require_text("account", self.account)
        require_text("asked", self.asked)
        require_text("note", self.note, empty=True)
        if self.key is not None:
            require_text("key", self.key)
        if self.spender is not None:
            require_text("spender", self.spender)
        require_amount("cost", self.cost)
        if not 0 <= self.lease <= LONGEST_LEASE:
            asked = f"lease={self.lease!r}"
            raise UsageError(
                asked,
                "a lease lasts from 0 seconds to a year",
                "Choose a lease such as 900 seconds",
            )

    @property
    def name(self) -> str:
        """The key, once it is found or made."""
        assert self.key is not None
        return self.key


class NewCharge(NamedTuple):
    """A charge for a question that has no name yet, if nothing stands in its way.

    Attributes
    ----------
    account : str
    name : NameRow
        What the question is to be called, with its tag in the words of now.
    given : bool
        Whether the user gave its key.
    former : sequence of bytes
        The tags of the question in the words of earlier versions.
    cost, note, lease
        As for `Request`.
    holder : str
        The identity of the process that charges.
    protects, data, ceiling
        What it is bound to; None without a binding, or without a ceiling.
    """

    account: str
    name: NameRow
    given: bool
    former: Sequence[bytes]
    cost: Amount
    note: str
    lease: float
    holder: str
    protects: str | None
    data: str | None
    ceiling: Amount | None


def require_text(name: str, value: object, *, empty: bool = False) -> None:
    """Refuse a value that is not text which every store can keep."""
    if isinstance(value, str) and "\0" not in value and (value or empty):
        try:
            fits = len(value.encode()) <= LONGEST_TEXT
        except UnicodeEncodeError:
            fits = False
        if fits:
            return
    asked, remedy = f"the {name} of a charge", f"Choose a shorter or plainer {name}"
    if value == "":
        asked, remedy = f"an empty {name} of a charge", f"Give a text that names the {name}"
    raise UsageError(asked, f"it must be text of at most {LONGEST_TEXT} bytes", remedy)


def require_amount(name: str, amount: object) -> None:
    """Refuse an amount that is not two whole numbers which every store can keep."""
    if isinstance(amount, tuple | list) and len(amount) == 2 and all(map(_is_part, amount)):
        return
    obstacle = f"an amount is two whole numbers from 0 to {LARGEST}"
    raise UsageError(f"{name}={amount!r}", obstacle, "Give it in the account's units")


def _is_part(part: object) -> bool:
    return type(part) is int and 0 <= part <= LARGEST
