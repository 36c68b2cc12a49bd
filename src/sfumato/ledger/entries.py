"""The values a ledger keeps: amounts, accounts, entries, steps.

They know nothing of questions or data. Money is a pair of non-negative integers, in units that the
caller fixes; ``rule`` is a word that is stored and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias

Amount: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["open", "bind", "cap", "reserve", "resume", "abandon", "store", "hand"]

LARGEST = 2**63 - 1
NOTHING: Amount = (0, 0)
MIXED = "different persons or relations"
"""What an account protects that version 0.1 charged for several: it pays for nothing more."""

BEGUN = "the stream began"
"""The note of the entry which says that a stream is there."""

OVER = b""
"""The state of a stream that has taken its last step."""

# How amounts are written in messages, by rule: (name, decimal places) of each component.
# Any other rule is written as whole units.
WRITTEN: dict[str, tuple[tuple[str, int], ...]] = {
    "pure": (("epsilon", 9),),
    "approx": (("epsilon", 9), ("delta", 18)),
    "zcdp": (("rho", 12),),
}


def written(rule: str, amount: Amount) -> str:
    """Write an amount exactly, for people.

    >>> written("approx", (500_000_000, 10**12))
    'epsilon = 0.5, delta = 0.000001'
    >>> written("marbles", (3, 0))
    '(3, 0) units'
    """
    parts = WRITTEN.get(rule)
    if parts is None or any(amount[len(parts) :]):
        return f"{amount} units"
    named = zip(amount, parts, strict=False)
    values = [(name, Decimal(units).scaleb(-places)) for units, (name, places) in named]
    return ", ".join(f"{name} = {value.normalize():f}" for name, value in values)


@dataclass(frozen=True, slots=True)
class Account:
    """What an account may spend in all, and what it has spent.

    ``protects`` and ``data`` say whom, and which data set it pays for; "" where no charge has fixed
    them.
    """

    name: str
    rule: str
    total: Amount
    spent: Amount
    protects: str = ""
    data: str = ""

    @property
    def remaining(self) -> Amount:
        """What is left, component by component."""
        return self.total[0] - self.spent[0], self.total[1] - self.spent[1]


@dataclass(frozen=True, slots=True)
class Binding:
    """What an account's charges must have in common, so that they add up.

    Attributes
    ----------
    protects : str
        Whose presence is hidden, and how: two charges for different persons add up to nothing.
    data : str
        The public name of the data set; "" where it has none.
    ceiling : tuple of two int, or None
        What all accounts of the data set may spend together, in the units of the account's rule.
    """

    protects: str
    data: str = ""
    ceiling: Amount | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger, as it was written.

    ``kind`` is ``open`` (an account), ``bind`` (it is fixed whom the account protects), ``cap`` (a
    data set gets a ceiling), ``reserve`` (the only kind that costs), ``resume`` (a caller took over
    a reservation without an answer), ``abandon`` (a holder gave up), ``store`` (an answer is
    durable) or ``hand`` (it was handed out). ``spent`` is what the account has spent, this entry
    included. ``until`` and ``holder`` say when a lease ends and which process holds it. ``hash``
    covers every other field, ``previous`` is the hash of the entry before. ``key``, if nobody gave
    one, and ``digest`` are random. Entries that follow a reservation carry its time, not their own.
    """

    sequence: int
    account: str
    kind: Kind
    time: str
    key: str
    digest: str
    cost: Amount
    note: str
    payload_hash: str
    spent: Amount
    until: str
    holder: str
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole ledger found.

    ``head`` is the last entry's (sequence, hash): a copy kept elsewhere dates the ledger.
    """

    entries: int
    head: tuple[int, str]
    faults: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.faults

    @property
    def fault(self) -> str | None:
        """The first fault, as a sentence."""
        return self.faults[0] if self.faults else None


class Step(NamedTuple):
    """One step of a stream as it was published.

    ``event`` is "" where none was named; ``hash`` covers all steps up to this one.
    """

    number: int
    event: str
    output: bytes
    hash: str
