"""What a `Store` has to promise, so that a `Book` may keep its entries in it.

``NameRows`` are the rows by which a question is found again under its key, or under its own tag. A
``Request`` for a charge is checked before the ledger is read.

A store has two parts, which may be two databases: public rows, which any auditor may read, and
secret rows, which only the operator may read. A transaction of the secret part may run inside one
of the public part, never the other way round. A store that keeps both parts in one database may let
a charge read and write names in the public part's own transaction: `PublicRows.name_rows`. No other
transaction spans both.

A transaction is a function that is given the rows of one part:

* `StorePart.writing`: what the function did is durable when this returns. If the function raises,
  whatever it raises, nothing was done. Any number of threads, and of stores on the same rows,
  behave as though their functions ran one after another. The function may be called again where a
  store has to try anew.
* `StorePart.reading`: one consistent view. Later transactions do not show in it.

Rows are added, seldom changed, and never removed. Where two callers race, the rows decide, because
they compare before they write: `PublicRows.add` takes an entry only if it is the next of the chain,
`SecretRows.commit_step` takes a step only from the state that it was computed from. Leases,
balances and answers are read off the entries, so they need nothing else.

A store raises `StoreError` where it fails, or where its rules refuse a row; no message quotes a
row. It refuses a thread that is in the middle of using it, such as a signal handler, and it refuses
a child process where it cannot cross a fork.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger.entries import (
    LARGEST,
    WIDENED,
    Account,
    Amount,
    Binding,
    Entry,
    Kind,
    MaybeCurve,
    Spender,
    Step,
)

# --- names ----------------------------------------------------------------------------------------


class NameRow(NamedTuple):
    """The name of a question in an account: its key, its tag (an HMAC), and a random digest.

    ``place`` is a second tag, of the same question without the state of the data; None where it was
    asked under a key, or named by a version before 0.2.1.
    """

    key: str
    tag: bytes
    digest: str
    place: bytes | None = None


class NameRows(ABC):
    """The secret rows that naming a question needs, within one transaction."""

    @abstractmethod
    def value(self, name: str) -> bytes | None:
        """One of the values that are kept by name."""

    @abstractmethod
    def of_key(self, account: str, key: str) -> NameRow | None:
        """The name that has a key."""

    @abstractmethod
    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        """The name that was made for a question, and not given by a user."""

    @abstractmethod
    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        """Write a name. ``derived``: its key was made for the question, and not given by a user.

        It replaces an older name with the same key, or one that was made for the same question.
        """

    @abstractmethod
    def keys_of_place(self, account: str, place: bytes) -> list[str]:
        """The keys of the names that have a place."""

    @abstractmethod
    def seed(self, account: str, key: str) -> bytes | None:
        """What the noise of a charge comes from; None once its answer is stored."""

    @abstractmethod
    def keep_seed(self, account: str, key: str, seed: bytes) -> None:
        """Keep what the noise of a charge comes from, unless something is kept already."""

    @abstractmethod
    def wipe_seed(self, account: str, key: str) -> None:
        """Remove what the noise of a charge came from; no row holds it any more."""


# --- requests -------------------------------------------------------------------------------------

LONGEST_TEXT = 4096  # bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a charge; the parameters of `Book.reserve`.

    ``formerly`` is what was asked for in the words of earlier versions. ``spender`` is as the user
    stated it. ``seed`` is what its noise is to come from, should it be charged now. ``rule`` is the
    measure that the cost counts in; "" that of the account, whichever it is.
    """

    account: str
    key: str | None
    asked: str
    cost: Amount
    note: str
    lease: float
    binding: Binding | None = None
    formerly: tuple[str, ...] = ()
    spender: str | None = None
    event: str = ""
    place: str | None = None
    fresh: bool = False
    seed: bytes = b""
    rule: str = ""

    def __post_init__(self) -> None:
        require_text("account", self.account)
        require_text("asked", self.asked)
        require_text("note", self.note, empty=True)
        if self.key == WIDENED:
            raise UsageError(f"key {WIDENED!r}", "the ledger uses it", "Choose another key")
        if self.key is not None:
            require_text("key", self.key)
        if self.spender is not None:
            require_text("spender", self.spender)
        if self.place is not None:
            require_text("place", self.place)
        require_amount("cost", self.cost)
        if not 0 <= self.lease <= 366 * 86400.0:
            raise UsageError(
                f"lease={self.lease!r}",
                "a lease lasts from 0 seconds to a year",
                "Choose a lease such as 900 seconds",
            )

    @property
    def words(self) -> tuple[str, ...]:
        """What was asked for, in the words of now and of earlier versions."""
        return (self.asked, *self.formerly)


def require_text(name: str, value: object, *, empty: bool = False) -> None:
    """Refuse a value that is not text which every store can keep."""
    if isinstance(value, str) and "\0" not in value and (value or empty):
        with suppress(UnicodeEncodeError):
            if len(value.encode()) <= LONGEST_TEXT:
                return
    obstacle = f"it must be text of at most {LONGEST_TEXT} bytes"
    if value == "":
        raise UsageError(
            f"an empty {name} of a charge", obstacle, f"Give a text that names the {name}"
        )
    raise UsageError(f"the {name} of a charge", obstacle, f"Choose a shorter or plainer {name}")


def require_amount(name: str, amount: object) -> None:
    """Refuse an amount that is not two whole numbers which every store can keep."""
    parts = amount if isinstance(amount, tuple | list) else ()
    if len(parts) == 2 and all(type(part) is int and 0 <= part <= LARGEST for part in parts):
        return
    raise UsageError(
        f"{name}={amount!r}",
        f"an amount is two whole numbers from 0 to {LARGEST}",
        "Give it in the account's units",
    )


# --- the parts of a store -------------------------------------------------------------------------

T = TypeVar("T")
R = TypeVar("R")

# The secret value that says where a ledger was moved to. It pays for nothing any more.
MOVED = "moved to"

REFUSED = "the ledger's own rules refuse the entry"
REPORT = "Verify the ledger; if it is whole, report this as a fault"
IN_USE = "this thread is in the middle of using it"
OUTSIDE = "Use it outside of signal handlers"
FORKED = "it was opened by another process"
REOPEN = "Make a new publisher, or ask within the block of its with statement"
ONCE_EACH = "Open a ledger in a file, once in each process"


class StoreError(LedgerError):
    """The store failed, or its rules refuse a row."""


class Tip(NamedTuple):
    """Where the next entry of an account continues: the last entry of all, and the balance."""

    sequence: int
    hash: str
    spent: Amount


class Position(NamedTuple):
    """How far a stream has come: its last step, and the state after it.

    ``tallied`` is the sum of its tallies, ``head`` the hash of the last step, ``seal`` the hash of
    the stream's own row.
    """

    step: int
    state: bytes
    tallied: int
    head: str
    seal: str


class StreamRow(NamedTuple):
    """A stream: the number of its charge, what it was opened with, and how far it has come."""

    number: int
    spec: bytes
    secret: bytes
    at: Position


Role: TypeAlias = Literal["custodian", "analyst", "auditor"]
Verdict: TypeAlias = Literal["named", "conflict", "unknown", "elsewhere"]


class Caller(NamedTuple):
    """Who uses a store.

    ``name`` is "" where nobody said it; ``stated`` says that the user gave it. ``role`` is what the
    store lets them do: a custodian everything, an analyst charges of their own, an auditor nothing
    but read.
    """

    name: str
    role: Role = "custodian"
    stated: bool = False

    @property
    def is_custodian(self) -> bool:
        """Whether the caller may read the secrets and open accounts."""
        return self.role == "custodian"


class Named(NamedTuple):
    """What stands under a key or a question: its name, or why it has none.

    ``moved_to`` says where the ledger was moved to; None where it was not, or a guard refuses then.
    ``seed`` is what the noise of the charge comes from; None where a guard keeps it, or none is
    kept. ``elsewhere`` are the keys of charges for the same question in other states of the data.
    """

    verdict: Verdict
    key: str = ""
    digest: str = ""
    moved_to: bytes | None = None
    seed: bytes | None = None
    elsewhere: tuple[str, ...] = ()


class Guard(ABC):
    """Stands for the secrets within a transaction of a caller who may not read them.

    The store itself computes what needs the secrets, and lets none of them out.
    """

    @abstractmethod
    def name(self, request: Request, fresh: tuple[str, str]) -> Named:
        """Find the name of a question, or give it the fresh key and digest."""

    @abstractmethod
    def keys(self, request: Request) -> list[str]:
        """The keys of the names of a question, in any state of the data."""

    @abstractmethod
    def seed(self, charge: int, proposed: bytes) -> bytes | None:
        """What the noise of an own charge comes from, until its answer is stored.

        What is proposed is kept if nothing is, unless the charge was resumed before: noise may have
        been drawn for it then. None: it has no seed.
        """

    @abstractmethod
    def note_state(self, charge: int, state: str) -> None:
        """Keep which state of the data an own charge asked about."""

    @abstractmethod
    def is_of_state(self, charge: int, state: str) -> bool:
        """Whether a charge asked about this state of the data; no where none was noted."""


class PublicRows(ABC):
    """The public rows within one transaction, as they are stored; `audit` judges them.

    ``with_curves`` says whether they are in the format that holds curves; `extend` makes them so.
    """

    with_curves: bool

    def clock(self) -> datetime:
        """The time now. A store that several machines share tells its own: theirs may differ."""
        return datetime.now(UTC)

    def guard(self) -> Guard | None:
        """What stands for the secrets; None for a custodian, who may read them."""
        return None

    def name_rows(self) -> NameRows | None:
        """The names of questions, in this transaction; None where that cannot span both parts."""
        return None

    def foresee(self, look: Callable[[PublicRows], object]) -> None:
        """Read at once what a look reads here, if each read costs a round trip.

        This is for speed only. The look is shown empty rows, and must only read.
        """
        del look

    # --- what a charge needs ----------------------------------------------------------------------

    @abstractmethod
    def identity(self) -> str | None:
        """The ledger's own name for itself."""

    @abstractmethod
    def tip(self, account: str) -> Tip:
        """The last entry's number and hash, or 0 and "", and what the account has spent."""

    @abstractmethod
    def entry(self, sequence: int) -> Entry | None:
        """The entry of a number."""

    @abstractmethod
    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        most: int | None = None,
    ) -> Iterable[Entry]:
        """Entries after a number, of one account or of all, in order; at most ``most`` of them."""

    @abstractmethod
    def of_key(self, account: str, key: str) -> list[Entry]:
        """All entries of a key, in order."""

    def has(self, account: str, key: str, kind: Kind) -> bool:
        """Whether a key has an entry of a kind."""
        return any(entry.kind == kind for entry in self.of_key(account, key))

    @abstractmethod
    def charged(self) -> bool:
        """Whether anything was ever reserved."""

    @abstractmethod
    def account(self, name: str) -> Account | None:
        """One account with its balance: that of its last entry."""

    @abstractmethod
    def accounts(self, data: str | None = None) -> list[Account]:
        """The accounts of a data set, or all, with balances, in the order of their opening."""

    @abstractmethod
    def ceilings(self) -> Mapping[str, tuple[str, Amount]]:
        """The ceiling of each data set that has one: the rule it is written in, and the amount."""

    @abstractmethod
    def data_curve(self, data: str) -> MaybeCurve:
        """The curve of the last event of a data set's accounts; () where it has no ceiling."""

    @abstractmethod
    def has_spenders(self, account: str) -> bool:
        """Whether an account is spent from by named spenders only."""

    @abstractmethod
    def spender(self, account: str, name: str) -> Spender | None:
        """One spender of an account, with the ceiling set last and what was spent."""

    @abstractmethod
    def spenders(self, account: str) -> list[Spender]:
        """The spenders of an account, in the order in which they were named."""

    @abstractmethod
    def answer(self, sequence: int) -> bytes | None:
        """The answer that the entry of a number stores."""

    # --- what only an audit needs -----------------------------------------------------------------

    @abstractmethod
    def totals(self) -> Mapping[str, tuple[str, Amount]]:
        """The rule and total of each account, also of one without entries."""

    @abstractmethod
    def terms(self) -> Mapping[str, str]:
        """The terms of each account that has any."""

    @abstractmethod
    def ceiling_terms(self) -> Mapping[str, str]:
        """The terms of each data set's ceiling that has any."""

    @abstractmethod
    def bindings(self) -> Mapping[str, tuple[str, str]]:
        """What each bound account protects, and which data set it pays for."""

    @abstractmethod
    def answers(self) -> Iterable[tuple[int, bytes]]:
        """All answers, each with the number of the entry that stores it."""

    @abstractmethod
    def highest(self) -> int:
        """The highest number ever given to an entry, also where the tail was cut since."""

    @abstractmethod
    def damage(self, *, thorough: bool) -> list[str]:
        """What is wrong beneath the rows, as sentences: rules that were dropped or changed.

        If thorough, also what is damaged in a file.
        """

    # --- what is written --------------------------------------------------------------------------

    @abstractmethod
    def set_identity(self, identity: str) -> None:
        """Name the ledger, once."""

    @abstractmethod
    def extend(self) -> None:
        """Give the rows of a ledger the format that holds curves, if they lack it."""

    @abstractmethod
    def add_account(self, name: str, rule: str, total: Amount, terms: str = "") -> None:
        """Add an account that is not there yet; with the terms of its curves, if it has any."""

    @abstractmethod
    def add_binding(self, account: str, protects: str, data: str) -> None:
        """Fix what an account protects, once."""

    @abstractmethod
    def add_ceiling(self, data: str, rule: str, amount: Amount, terms: str = "") -> None:
        """Fix the ceiling of a data set, once; with the terms of its curves, if it has any."""

    @abstractmethod
    def add(self, entry: Entry) -> None:
        """Add an entry, if it is the next of the chain and breaks none of `rules`."""

    @abstractmethod
    def add_answer(self, sequence: int, payload: bytes) -> None:
        """Add the answer of an entry of the kind ``store``, once."""

    # A store that takes two rows in one call, or not at all, replaces these.

    def add_bound(self, entry: Entry, protects: str, data: str) -> None:
        """Fix what an account protects, with the entry that says so."""
        self.add_binding(entry.account, protects, data)
        self.add(entry)

    def add_answered(self, entry: Entry, payload: bytes) -> None:
        """Add an entry of the kind ``store`` with its answer."""
        self.add(entry)
        self.add_answer(entry.sequence, payload)


class SecretRows(NameRows):
    """The secret rows within one transaction."""

    # --- names of questions -----------------------------------------------------------------------

    @abstractmethod
    def values(self) -> Mapping[str, bytes]:
        """What is kept by name: identity, secret and signing key, and a value for each charge."""

    @abstractmethod
    def add_value(self, name: str, value: bytes) -> None:
        """Add a value under a name that has none."""

    @abstractmethod
    def names(self) -> list[tuple[str, NameRow, bool]]:
        """All names, each with its account and whether its key was made for the question."""

    @abstractmethod
    def replaced(self, sequence: int) -> str | None:
        """The hash that an entry had before the ledger was upgraded."""

    @abstractmethod
    def add_replaced(self, hashes: Iterable[tuple[int, str]]) -> None:
        """Add the hashes that entries had before the ledger was upgraded."""

    @abstractmethod
    def seeds(self) -> Mapping[tuple[str, str], bytes]:
        """What the noise of charges comes from, by account and key."""

    @abstractmethod
    def all_replaced(self) -> Mapping[int, str]:
        """The hashes that entries had before the ledger was upgraded, by their numbers."""

    # --- streams ----------------------------------------------------------------------------------

    @abstractmethod
    def stream(self, number: int) -> StreamRow | None:
        """A stream by the number of its charge."""

    @abstractmethod
    def streams(self) -> Sequence[StreamRow]:
        """All streams, in order."""

    @abstractmethod
    def any_stream(self) -> bool:
        """Whether there is any stream."""

    @abstractmethod
    def add_stream(self, row: StreamRow) -> None:
        """Add a stream that is not there yet and has taken no step."""

    @abstractmethod
    def position(self, stream: int) -> Position | None:
        """How far a stream has come; None where there is no such stream."""

    @abstractmethod
    def step_of(self, stream: int, event: str) -> Step | None:
        """The step that an event took."""

    @abstractmethod
    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        """Add a step and replace the stream's row, if the row still has the seal ``before``.

        Parameters
        ----------
        stream : int
        before : str
            The seal of the row that the step was computed from.
        step : Step
        after : Position
            The row after the step; ``after.head`` is the hash of the step. The state `OVER` says
            that the step is the last: the stream's secret and its tallies are wiped, beyond
            recovery.

        Returns
        -------
        bool
            False, and nothing was changed, if the stream has moved since, if the ledger was moved
            to another store, if the step is not the next one, if its event was taken, or if the sum
            of tallies would shrink.
        """

    @abstractmethod
    def step(self, stream: int, number: int) -> Step | None:
        """One step."""

    @abstractmethod
    def steps(self, stream: int, after: int = 0) -> list[Step]:
        """The steps of a stream after a number, in order."""

    @abstractmethod
    def stepped(self) -> set[int]:
        """The streams that steps belong to."""

    @abstractmethod
    def count(self, stream: int, person_token: bytes) -> int:
        """Count a row of a person, and return how many were counted by now."""

    @abstractmethod
    def counted(self, stream: int) -> Mapping[bytes, int]:
        """How many rows of each person were counted, by the token that stands for the person."""

    @abstractmethod
    def tallies(self) -> Mapping[int, int]:
        """The sum of the tallies of each stream that has any."""

    @abstractmethod
    def damage(self) -> list[str]:
        """What is wrong beneath the rows, as sentences."""


class StorePart(ABC, Generic[R]):
    """One part of a store: rows of one kind, and transactions on them."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What messages call it."""

    @abstractmethod
    def reading(self, action: Callable[[R], T]) -> T:
        """Look at one consistent view."""

    @abstractmethod
    def writing(self, action: Callable[[R], T]) -> T:
        """Run one transaction: all of it, durably, or nothing."""

    @abstractmethod
    def close(self) -> None:
        """Close it; closing twice is harmless."""


class SecretStore(StorePart[SecretRows]):
    """The secret part of a store."""

    @abstractmethod
    def forget(self) -> None:
        """Remove from all logs what the last step of a stream wiped."""

    def wiping(self, action: Callable[[SecretRows], None]) -> None:
        """Run one transaction, and remove from all logs the seeds that it wiped."""
        self.writing(action)


class Store(StorePart[PublicRows]):
    """The public part of a store, with the secret part beside it."""

    in_one = False
    """Whether both parts lie in one database, whose `PublicRows.name_rows` span both."""

    def caller(self, stated: str | None) -> Caller:
        """Who uses the store: whom the user states, where the store cannot check that."""
        return Caller(stated or "", stated=stated is not None)

    @property
    def is_made(self) -> bool:
        """Whether it is there: a missing file is made when it is first written to."""
        return True

    def beside(self) -> dict[str, Store]:
        """Other ledgers of the same folder, by name; those that cannot be opened are left out."""
        return {}

    @abstractmethod
    def has_secrets(self) -> bool:
        """Whether there is a secret part."""

    @abstractmethod
    def secrets(self, *, create: bool) -> SecretStore:
        """Open the secret part; make it if it is missing, or, unless ``create``, refuse.

        Opened again, it has the same rows.
        """

    @abstractmethod
    def require_private(self) -> None:
        """Refuse public rows that others than their owner may read: there are streams."""
