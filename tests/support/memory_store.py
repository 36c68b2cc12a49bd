"""A store in plain Python containers, which ends with its process.

It is the shortest store that keeps the promises of `sfumato.ledger.store`, so it is the one to read
before writing another. A transaction works on a copy of every table, and takes effect by one
assignment: no interrupt can leave half of it. Copying limits it to ledgers of some thousands of
entries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger.entries import (
    NOTHING,
    OVER,
    WIDENED,
    Account,
    Amount,
    Entry,
    MaybeCurve,
    Spender,
    Step,
    ceiling_of,
    terms_in,
)
from sfumato.ledger.sqlite_file import Turns
from sfumato.ledger.store import (
    FORKED,
    MOVED,
    ONCE_EACH,
    REFUSED,
    REPORT,
    NameRow,
    Position,
    PublicRows,
    SecretRows,
    SecretStore,
    Store,
    StoreError,
    StreamRow,
    Tip,
)
from sfumato.privacy import curves_of
from support.ledger_rules import broken

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@dataclass
class MemoryPublicRows(PublicRows):
    """The public rows as dictionaries. Their values are frozen, so a shallow copy is a copy."""

    _names: dict[str, str] = field(default_factory=dict)
    _totals: dict[str, tuple[str, Amount]] = field(default_factory=dict)
    _bindings: dict[str, tuple[str, str]] = field(default_factory=dict)
    _ceilings: dict[str, tuple[str, Amount]] = field(default_factory=dict)
    _entries: list[Entry] = field(default_factory=list)
    _answers: dict[int, bytes] = field(default_factory=dict)
    _terms: dict[str, str] = field(default_factory=dict)
    _ceiling_terms: dict[str, str] = field(default_factory=dict)
    with_curves: ClassVar[bool] = True

    def copy(self) -> MemoryPublicRows:
        """The same rows in tables of their own."""
        return MemoryPublicRows(
            self._names.copy(),
            self._totals.copy(),
            self._bindings.copy(),
            self._ceilings.copy(),
            self._entries.copy(),
            self._answers.copy(),
            self._terms.copy(),
            self._ceiling_terms.copy(),
        )

    def identity(self) -> str | None:
        return self._names.get("identity")

    def tip(self, account: str) -> Tip:
        if not self._entries:
            return Tip(0, "", NOTHING)
        last = self._entries[-1]
        mine = self._last(account)
        return Tip(last.sequence, last.hash, NOTHING if mine is None else mine.spent)

    def _last(self, account: str) -> Entry | None:
        for entry in reversed(self._entries):
            if entry.account == account:
                return entry
        return None

    def entry(self, sequence: int) -> Entry | None:
        return self._entries[sequence - 1] if 1 <= sequence <= len(self._entries) else None

    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        most: int | None = None,
    ) -> list[Entry]:
        found = [entry for entry in self._entries[after:] if account in (None, entry.account)]
        return found[:most]

    def of_key(self, account: str, key: str) -> list[Entry]:
        return [entry for entry in self._entries if (entry.account, entry.key) == (account, key)]

    def charged(self) -> bool:
        return any(entry.kind == "reserve" for entry in self._entries)

    def account(self, name: str) -> Account | None:
        last = self._last(name)
        if last is None:
            return None
        rule, total = self._totals[name]
        terms = self._terms.get(name, "")
        if any(entry.kind == "open" for entry in self.of_key(name, WIDENED)):
            rule = "approx"
            total = curves_of(terms).total
        protects, data = self._bindings.get(name, ("", ""))
        events = [entry for entry in self._entries if entry.account == name and entry.event]
        curve = events[-1].curve if events else ()
        return Account(name, rule, total, last.spent, protects, data, terms, curve)

    def accounts(self, data: str | None = None) -> list[Account]:
        found = [self.account(name) for name in self._totals]
        return [one for one in found if one is not None and data in (None, one.data)]

    def ceilings(self) -> Mapping[str, tuple[str, Amount]]:
        return self._ceilings

    def has_spenders(self, account: str) -> bool:
        return any(self._of_spenders(account))

    def _of_spenders(self, account: str) -> Iterable[Entry]:
        return (entry for entry in self._entries if entry.spender and entry.account == account)

    def spender(self, account: str, name: str) -> Spender | None:
        found = [entry for entry in self._of_spenders(account) if entry.spender == name]
        if not found:
            return None
        caps = [entry for entry in found if entry.kind == "cap"]
        note = caps[-1].note
        terms = terms_in(note)
        rule = "approx" if terms else self._totals[account][0]
        events = [entry for entry in found if entry.event]
        curve = events[-1].own_curve if events else ()
        return Spender(account, name, rule, ceiling_of(note), found[-1].own, terms, curve)

    def spenders(self, account: str) -> list[Spender]:
        names = dict.fromkeys(entry.spender for entry in self._of_spenders(account))
        found = (self.spender(account, name) for name in names)
        return [one for one in found if one is not None]

    def data_curve(self, data: str) -> MaybeCurve:
        for entry in reversed(self._entries):
            if entry.event and self._bindings.get(entry.account, ("", ""))[1] == data:
                return entry.data_curve
        return ()

    def answer(self, sequence: int) -> bytes | None:
        return self._answers.get(sequence)

    def totals(self) -> Mapping[str, tuple[str, Amount]]:
        return self._totals

    def terms(self) -> Mapping[str, str]:
        return self._terms

    def ceiling_terms(self) -> Mapping[str, str]:
        return self._ceiling_terms

    def bindings(self) -> Mapping[str, tuple[str, str]]:
        return self._bindings

    def answers(self) -> Iterable[tuple[int, bytes]]:
        return self._answers.items()

    def highest(self) -> int:
        return len(self._entries)

    def damage(self, *, thorough: bool) -> list[str]:
        return []

    def set_identity(self, identity: str) -> None:
        _add(self._names, "identity", identity)

    def extend(self) -> None:
        """It holds curves from the beginning."""

    def add_account(self, name: str, rule: str, total: Amount, terms: str = "") -> None:
        _add(self._totals, name, (rule, (total[0], total[1])))
        if terms:
            self._terms[name] = terms

    def add_binding(self, account: str, protects: str, data: str) -> None:
        _require(account in self._totals, "the account is not there")
        _add(self._bindings, account, (protects, data))

    def add_ceiling(self, data: str, rule: str, amount: Amount, terms: str = "") -> None:
        _add(self._ceilings, data, (rule, (amount[0], amount[1])))
        if terms:
            self._ceiling_terms[data] = terms

    def add(self, entry: Entry) -> None:
        fault = broken(self, entry)
        _require(fault is None, str(fault))
        self._entries.append(entry)

    def add_answer(self, sequence: int, payload: bytes) -> None:
        entry = self.entry(sequence)
        stores = entry is not None and entry.kind == "store"
        _require(stores, "a payload belongs to the entry that stores it")
        _add(self._answers, sequence, payload)


@dataclass
class MemorySecretRows(SecretRows):
    """The secret rows as dictionaries. Their values are frozen, so a shallow copy is a copy."""

    _values: dict[str, bytes] = field(default_factory=dict)
    _names: dict[tuple[str, str], NameRow] = field(default_factory=dict)
    _derived: dict[tuple[str, bytes], NameRow] = field(default_factory=dict)
    _seeds: dict[tuple[str, str], bytes] = field(default_factory=dict)
    _replaced: dict[int, str] = field(default_factory=dict)
    _streams: dict[int, StreamRow] = field(default_factory=dict)
    _steps: dict[int, tuple[Step, ...]] = field(default_factory=dict)
    _tallies: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def copy(self) -> MemorySecretRows:
        """The same rows in tables of their own."""
        return MemorySecretRows(
            self._values.copy(),
            self._names.copy(),
            self._derived.copy(),
            self._seeds.copy(),
            self._replaced.copy(),
            self._streams.copy(),
            self._steps.copy(),
            self._tallies.copy(),
        )

    def values(self) -> Mapping[str, bytes]:
        return self._values

    def value(self, name: str) -> bytes | None:
        return self._values.get(name)

    def add_value(self, name: str, value: bytes) -> None:
        _add(self._values, name, value)

    def keys_of_place(self, account: str, place: bytes) -> list[str]:
        named = sorted(self._names.items())
        return [key for (whose, key), name in named if (whose, name.place) == (account, place)]

    def seed(self, account: str, key: str) -> bytes | None:
        return self._seeds.get((account, key))

    def keep_seed(self, account: str, key: str, seed: bytes) -> None:
        self._seeds.setdefault((account, key), seed)

    def wipe_seed(self, account: str, key: str) -> None:
        self._seeds.pop((account, key), None)

    def seeds(self) -> Mapping[tuple[str, str], bytes]:
        return dict(self._seeds)

    def of_key(self, account: str, key: str) -> NameRow | None:
        return self._names.get((account, key))

    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        return self._derived.get((account, tag))

    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        # What SQL's INSERT OR REPLACE does: rows that would clash with the new one give way.
        former = [self._names.get((account, name.key))]
        if derived:
            former.append(self._derived.get((account, name.tag)))
        for row in former:
            if row is None:
                continue
            self._names.pop((account, row.key), None)
            # The same question may have been asked without a key, and then has a row of its own.
            if self._derived.get((account, row.tag)) == row:
                del self._derived[account, row.tag]
        self._names[account, name.key] = name
        if derived:
            self._derived[account, name.tag] = name

    def names(self) -> list[tuple[str, NameRow, bool]]:
        return [
            (account, name, self._derived.get((account, name.tag)) == name)
            for (account, _), name in sorted(self._names.items())
        ]

    def replaced(self, sequence: int) -> str | None:
        return self._replaced.get(sequence)

    def all_replaced(self) -> Mapping[int, str]:
        return self._replaced

    def add_replaced(self, hashes: Iterable[tuple[int, str]]) -> None:
        for sequence, digest in hashes:
            _add(self._replaced, sequence, digest)

    def stream(self, number: int) -> StreamRow | None:
        return self._streams.get(number)

    def streams(self) -> list[StreamRow]:
        return [self._streams[number] for number in sorted(self._streams)]

    def any_stream(self) -> bool:
        return bool(self._streams)

    def add_stream(self, row: StreamRow) -> None:
        _require(row.at.step == 0 and row.at.tallied == 0, "a stream begins with its charge")
        _add(self._streams, row.number, row)
        self._steps[row.number] = ()

    def position(self, stream: int) -> Position | None:
        found = self._streams.get(stream)
        return None if found is None else found.at

    def step(self, stream: int, number: int) -> Step | None:
        taken = self._steps.get(stream, ())
        return taken[number - 1] if 1 <= number <= len(taken) else None

    def step_of(self, stream: int, event: str) -> Step | None:
        found = [step for step in self._steps.get(stream, ()) if event and step.event == event]
        return found[0] if found else None

    def steps(self, stream: int, after: int = 0) -> list[Step]:
        return list(self._steps.get(stream, ())[after:])

    def stepped(self) -> set[int]:
        return {number for number, steps in self._steps.items() if steps}

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        row = self._streams.get(stream)
        if row is None or row.at.seal != before or MOVED in self._values:
            return False
        if not step.number == after.step == row.at.step + 1:
            return False
        over = after.state == OVER
        shrunk = after.tallied < row.at.tallied and not over
        if shrunk or self.step_of(stream, step.event) is not None:
            return False
        if over:
            others = {at: rows for at, rows in self._tallies.items() if at[0] != stream}
            self._tallies = others
        self._streams[stream] = StreamRow(stream, row.spec, b"" if over else row.secret, after)
        self._steps[stream] = (*self._steps[stream], step)
        return True

    def count(self, stream: int, person_token: bytes) -> int:
        _require(stream in self._streams, "a tally belongs to a stream")
        rows = self._tallies.get((stream, person_token), 0) + 1
        self._tallies[stream, person_token] = rows
        return rows

    def counted(self, stream: int) -> Mapping[bytes, int]:
        return {who: rows for (number, who), rows in self._tallies.items() if number == stream}

    def tallies(self) -> Mapping[int, int]:
        sums = dict[int, int]()
        for (stream, _), rows in self._tallies.items():
            sums[stream] = sums.get(stream, 0) + rows
        return sums

    def damage(self) -> list[str]:
        return []


def _add(table: dict[K, V], key: K, value: V) -> None:
    _require(key not in table, "it is settled already")
    table[key] = value


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise StoreError("the ledger in memory", f"{REFUSED} ({rule})", REPORT)


class Copied(Protocol):
    """Rows that can be copied."""

    def copy(self) -> Self:
        """The same rows in tables of their own."""


C = TypeVar("C", bound=Copied)


class _Rows(Generic[C]):
    """Gives the rows to one caller at a time: to read them, or a copy that takes their place."""

    def __init__(self, label: str, rows: C) -> None:
        self.turns = Turns(label)
        self._rows = rows
        self._process = os.getpid()

    def reading(self, action: Callable[[C], T]) -> T:
        return self._alone(lambda: action(self._rows))

    def writing(self, action: Callable[[C], T]) -> T:
        return self._alone(lambda: self._replace(action))

    def _replace(self, action: Callable[[C], T]) -> T:
        staged = self._rows.copy()
        found = action(staged)
        # The one assignment by which the transaction takes effect.
        self._rows = staged
        return found

    def _alone(self, action: Callable[[], T]) -> T:
        # A child process might wait for ever: the thread that held the lock may not exist in it.
        if self._process != os.getpid():
            raise LedgerError(self.turns.label, FORKED, ONCE_EACH)
        return self.turns.alone(action)


class MemorySecretStore(SecretStore):
    """The secrets of a ledger in memory."""

    def __init__(self) -> None:
        self._kept = _Rows("the secrets of the ledger in memory", MemorySecretRows())

    @property
    def label(self) -> str:
        return self._kept.turns.label

    def reading(self, action: Callable[[SecretRows], T]) -> T:
        return self._kept.reading(action)

    def writing(self, action: Callable[[SecretRows], T]) -> T:
        return self._kept.writing(action)

    def forget(self) -> None:
        """There is no log."""

    def close(self) -> None:
        self._kept.turns.closed = True


class MemoryStore(Store):
    """A ledger in memory.

    >>> from sfumato.ledger import Book
    >>> with Book(MemoryStore()) as book:
    ...     book.open_account("trips", "marbles", (10, 0)).remaining
    (10, 0)
    """

    def __init__(self) -> None:
        self._kept = _Rows("the ledger in memory", MemoryPublicRows())
        self._secrets: MemorySecretStore | None = None

    def __repr__(self) -> str:
        return "MemoryStore()"

    @property
    def label(self) -> str:
        return self._kept.turns.label

    def reading(self, action: Callable[[PublicRows], T]) -> T:
        return self._kept.reading(action)

    def writing(self, action: Callable[[PublicRows], T]) -> T:
        return self._kept.writing(action)

    def has_secrets(self) -> bool:
        return self._secrets is not None

    def secrets(self, *, create: bool) -> SecretStore:
        if self._secrets is None:
            self._secrets = MemorySecretStore()
        return self._secrets

    def require_private(self) -> None:
        """Nobody else reads this process's memory."""

    def close(self) -> None:
        self._kept.turns.closed = True
