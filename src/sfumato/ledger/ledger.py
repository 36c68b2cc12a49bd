"""What a ledger keeps, and what it promises. It knows nothing of questions, measures or data.

Money is a pair of non-negative integers, in units that the caller fixes; ``rule`` is a word that is stored and compared.
A charge passes through at most three durable states, each an entry: *reserved*, *stored*, *handed out*. It is never refunded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from sfumato.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from sfumato.ledger.steps import Steps

Amount: TypeAlias = tuple[int, int]
Kind: TypeAlias = Literal["open", "bind", "cap", "reserve", "resume", "abandon", "store", "hand"]

LARGEST = 2**63 - 1
NOTHING: Amount = (0, 0)
MIXED = "different persons or relations"
"""What an account protects that version 0.1 charged for several: it pays for nothing more."""

# How amounts are written in messages, by rule: (name, decimal places) of each component. Any other rule is written as whole units.
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
    values = (Decimal(units).scaleb(-places) for units, (_, places) in zip(amount, parts, strict=False))
    return ", ".join(f"{name} = {value.normalize():f}" for value, (name, _) in zip(values, parts, strict=True))


@dataclass(frozen=True, slots=True)
class Account:
    """What an account may spend in all, and what it has spent.

    ``protects`` and ``data`` say whom, and which data set it pays for; "" where no charge has fixed them.
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

    ``kind`` is ``open`` (an account), ``bind`` (it is fixed whom the account protects), ``cap`` (a data set gets a
    ceiling), ``reserve`` (the only kind that costs), ``resume`` (a caller took over a reservation without
    an answer), ``abandon`` (a holder gave up), ``store`` (an answer is durable) or ``hand`` (it was handed out). ``spent`` is what
    the account has spent, this entry included. ``until`` and ``holder`` say when a lease ends and which process holds it.
    ``hash`` covers every other field, ``previous`` is the hash of the entry before. ``key``, if nobody gave one, and
    ``digest`` are random. Entries that follow a reservation carry its time, not their own.
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
    """What a check of the whole ledger found. ``head`` is the last entry's (sequence, hash): a copy kept elsewhere dates the ledger."""

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


class Hold:
    """A reservation in the hands of its caller; a context manager.

    Leaving it without an answer ends the lease, so that the same key may resume at once. The charge stands either way.

    Attributes
    ----------
    entry : Entry
        The reservation. Its sequence, time and hash go into the receipt.
    stored : bytes or None
        The answer, if the key was answered before; then nothing was charged.
    """

    def __init__(self, entry: Entry, stored: bytes | None, store: Callable[[bytes], bytes], abandon: Callable[[], None]) -> None:
        self.entry, self.stored = entry, stored
        self._store, self._abandon = store, abandon

    def __repr__(self) -> str:
        return f"Hold(account={self.entry.account!r}, key={self.entry.key!r}, answered={self.stored is not None})"

    def store(self, payload: bytes) -> bytes:
        """Make an answer durable and return what is stored.

        An answer that is there already stays, and is what comes back: of two racing processes both return the same bytes.
        """
        if not isinstance(payload, bytes):
            raise UsageError(f"an answer of type {type(payload).__name__}", "the ledger stores bytes", "Encode the answer first")
        if self.stored is None:
            self.stored = self._store(payload)
        return self.stored

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.stored is not None:
            return
        try:
            self._abandon()
        except LedgerError:  # the lease runs out by itself; the reason for leaving must stay visible
            if error is None:
                raise


class Ledger(Protocol):
    """An account book for many processes and threads, in which nothing is changed and nothing is removed."""

    def open_account(self, name: str, rule: str, total: Amount | None) -> Account:
        """Create an account, or check that it exists with exactly this rule and total (None: with any total).

        What it protects is fixed by its first charge: before that, a slip in a source's description binds nothing.
        """

    def fits(self, account: Account, binding: Binding) -> None:
        """Refuse a binding that differs from the account's own, if it has one."""

    def cap(self, account: str, binding: Binding) -> None:
        """Fix the ceiling of the data set that an account pays for, if it has none yet. A charge refuses one that differs."""

    def signer(self, *, create: bool = False) -> str | None:
        """The public key under which this ledger signs releases; None where the holder made none."""

    def sign(self, message: bytes) -> str:
        """Sign bytes under the ledger's key; "" where it has none."""

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were opened."""

    def account(self, name: str) -> Account:
        """One account, as it stands now."""

    def reserve(
        self,
        account: str,
        key: str | None,
        asked: str,
        cost: Amount,
        note: str,
        *,
        binding: Binding | None = None,
        lease: float = 900.0,
        wait: float = 60.0,
        resumes: int | None = 1,
    ) -> Hold:
        """Charge an account, durably, before anything is counted; or replay what the key has paid for.

        Parameters
        ----------
        account : str
        key : str or None
            Names the charge within its account. None: the key that was made for this question, or a new random one.
        asked : str
            What the charge is for. It is kept among the secrets, as an HMAC; the same key for something else is refused.
        cost : tuple of two int
        note : str
            For the reader of the log.
        binding : Binding or None
            What all charges of the account have in common. The first fixes it, others are refused.
        lease : float
            Seconds after which another caller may take the key over, if no answer is stored. A holder that has ended, as far as this
            machine can tell, loses it at once.
        wait : float
            Seconds to wait for another holder's answer.
        resumes : int or None
            How often a reservation without an answer may be taken over under its old charge (None: always). Whether a run fails
            may depend on the data, so this is not free of consequence: after that the charge stays spent and the key stays shut.

        Raises
        ------
        BudgetExceeded
            The account cannot pay; nothing is written.
        UsageError
            The key stands for something else, or the account does not exist.
        LedgerError
            The ledger cannot be written, or another process is still answering this key.
        """

    def stream(
        self,
        account: str,
        key: str | None,
        asked: str,
        cost: Amount,
        note: str,
        *,
        spec: bytes,
        state: bytes,
        secret: bytes = b"",
        binding: Binding | None = None,
    ) -> Steps:
        """Charge an account for a stream of steps, durably; or go on with the stream that the key has paid for.

        Parameters
        ----------
        account, key, asked, cost, note, binding
            As for `reserve`. There is no lease: every step is a transaction of its own, whoever takes it.
        spec : bytes
            What the stream is: public, stored with the charge, and ignored where the stream exists.
        state, secret : bytes
            The state before its first step, and what else its steps need: kept among the secrets until the last step.

        Raises
        ------
        BudgetExceeded, UsageError, LedgerError
            As for `reserve`.
        """

    def log(self, account: str | None = None) -> Iterator[Entry]:
        """Entries in order, of one account or of all."""

    def answer(self, entry: int) -> bytes | None:
        """What is stored under a charge: its answer, or what a stream was opened with; None where there is none."""

    def steps(self, entry: int) -> Steps | None:
        """The stream that a charge paid for; None where there is none."""

    def was(self, entry: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded; None where it has no other."""

    def verify(self, head: Entry | tuple[int, str] | None = None) -> Verification:
        """Recompute the whole ledger and compare.

        Found: an entry, answer, step or account that was edited, added, deleted or moved; a balance, lease or total that does not
        follow from the entries; a stream's state that does not belong to its last step; triggers that were dropped or replaced; a
        damaged file; a plain cut of the tail.

        Not found without help from outside: a history that someone with write access rewrote as a whole, hashes and counters
        included, or an older copy put back in place. Both are valid chains. Against them, keep the ``head`` of an earlier
        verification, or any receipt, elsewhere and pass it here: that entry must then still stand where it stood. What was
        added after the latest head kept outside remains undetectable when cut.
        """

    def close(self) -> None:
        """Close the ledger; closing twice is harmless."""

    def __enter__(self) -> Ledger: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


def open_ledger(where: str | Path | None, *, create: bool = True, anchor: str | Path | None = None) -> Ledger:
    """Open the ledger in a file, or one in memory that ends with its process.

    Parameters
    ----------
    where : str, Path or None
        A file, created readable by its owner only, with a file of secrets beside it; None or ``":memory:"`` for an
        account book in memory.
    create : bool
        Whether a missing file is created.
    anchor : str, Path or None
        A second file, best on another disk, to which every charge appends the ledger's head. An older copy of the
        ledger that is put back is then refused.

    >>> with open_ledger(None) as ledger:
    ...     _ = ledger.open_account("trips", "pure", (3_000_000_000, 0))
    ...     with ledger.reserve("trips", "key", "digest", (500_000_000, 0), "a histogram") as hold:
    ...         answer = hold.store(b"noisy counts")
    ...     ledger.account("trips").remaining
    (2500000000, 0)
    """
    from sfumato.ledger.sqlite import SQLiteLedger

    return SQLiteLedger(where, create=create, anchor=anchor)
