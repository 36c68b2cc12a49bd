"""How a whole ledger is recomputed from its entries and compared."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from sfumato.ledger.chain import (
    COLUMNS,
    binding,
    capping,
    entry_of,
    fields,
    link,
    opening,
    payload_digest,
    row,
)
from sfumato.ledger.ledger import LARGEST, NOTHING, Amount, Entry, Verification
from sfumato.ledger.store import Kind, Store

MOST_FAULTS = 100
BEGUN = "the stream began"  # the note of the entry that says so
OBJECTS = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"


def audit(
    db: sqlite3.Connection,
    known: Entry | tuple[int, str] | None,
    expected: Mapping[str, str],
) -> Verification:
    """Check the file, its tables and rules, and every entry, in one consistent view."""
    return _Audit(_books(db), known, form(db, expected)).run()


def verified(entries: Iterable[Entry], past: sqlite3.Connection) -> Verification:
    """Check the entries of a ledger of version 0.1, which bound no accounts."""
    accounts, payloads, highest = _columns(past)
    return _Audit(Books(entries, accounts, payloads, highest, {}), None, _damage(past)).run()


def form(db: sqlite3.Connection, expected: Mapping[str, str]) -> list[str]:
    """What is wrong with a file as SQLite sees it, and with its tables and rules."""
    return [*_damage(db), *differences(db, expected)]


def paid(db: sqlite3.Connection) -> dict[int, str]:
    """The hash of each reservation."""
    query = "SELECT sequence, hash FROM entries WHERE kind = 'reserve'"
    return dict(db.execute(query).fetchall())


def begun(db: sqlite3.Connection) -> dict[int, str]:
    """The reservations of streams that were begun, and the hash of what each was opened with."""
    query = """
        SELECT charge.sequence, begun.payload_hash FROM entries begun
        JOIN entries charge ON charge.account = begun.account AND charge.key = begun.key AND charge.kind = 'reserve'
        WHERE begun.kind = 'store' AND begun.note = ?
    """
    return dict(db.execute(query, (BEGUN,)).fetchall())


def first_look(db: sqlite3.Connection, expected: Mapping[str, str]) -> str | None:
    """The first fault that can be seen at once, before anything is charged: rules, last entry, totals."""
    found = differences(db, expected)
    if found:
        return found[0]
    last = db.execute(f"SELECT {COLUMNS} FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
    if last is not None:
        entry = entry_of(last)
        if not _well_formed(entry) or entry.hash != link(*fields(entry)):
            return f"entry {entry.sequence} was edited: its hash does not match its content"
    opened = "SELECT note FROM entries WHERE account = ? AND kind = 'open'"
    for name, rule, *total in db.execute("SELECT * FROM accounts").fetchall():
        note = db.execute(opened, (name,)).fetchone()
        if note is None or note[0] != opening(rule, (total[0], total[1])):
            return f"account {name!r} was edited: its rule or total is not the one with which it was opened"
    return None


@cache
def expected_objects(kind: Kind) -> Mapping[str, str]:
    """The tables, indexes and triggers of a kind of file. Asked for outside any transaction: it opens a store of its own."""
    store = Store(None, kind=kind)
    try:
        return store.reading(lambda db: dict(db.execute(OBJECTS).fetchall()))
    finally:
        store.close()


def _damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    found = [str(line) for (line,) in db.execute("PRAGMA integrity_check(5)")]
    return [] if found == ["ok"] else [f"the file is damaged: {line}" for line in found]


def differences(db: sqlite3.Connection, expected: Mapping[str, str]) -> list[str]:
    """Tables, indexes and triggers that are not what this version creates."""
    found = dict(db.execute(OBJECTS).fetchall())
    names = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
    return [f"{name!r} was dropped, replaced or added to the ledger's tables and rules" for name in names]


def _books(db: sqlite3.Connection) -> Books:
    entries = (entry_of(columns) for columns in db.execute(f"SELECT {COLUMNS} FROM entries ORDER BY sequence"))
    settled = {
        ("bind", account): binding(protects, data) for account, protects, data in db.execute("SELECT account, protects, data FROM bindings")
    } | {
        ("cap", data): capping(data, rule, (first, second))
        for data, rule, first, second in db.execute("SELECT data, rule, first, second FROM ceilings")
    }
    return Books(entries, *_columns(db), settled)


def _columns(db: sqlite3.Connection) -> tuple[Mapping[str, tuple[object, Amount]], Mapping[int, str], int]:
    """Accounts, hashes of answers, and the highest number that was given out."""
    query = "SELECT name, rule, total_first, total_second FROM accounts"
    accounts = {name: (rule, (first, second)) for name, rule, first, second in db.execute(query)}
    payloads = {number: _hash_of(payload) for number, payload in db.execute("SELECT sequence, payload FROM payloads")}
    highest = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    return accounts, payloads, highest[0] if highest else 0


def _hash_of(payload: object) -> str:
    return payload_digest(payload) if isinstance(payload, bytes) else "not bytes"


@dataclass(frozen=True, slots=True)
class Books:
    """All that a ledger holds, read in one consistent view. ``payloads`` maps the entry that stores an answer to the answer's hash."""

    entries: Iterable[Entry]
    accounts: Mapping[str, tuple[object, Amount]]
    payloads: Mapping[int, str]
    highest: int
    settled: Mapping[tuple[str, str], str]
    """What was fixed for an account ("bind") or a data set ("cap"), as the entry that fixed it says."""


@dataclass(slots=True)
class _Key:
    """What the entries so far say of one key."""

    digest: str
    lease: bool = True
    stored: bool = False
    handed: bool = False


@dataclass(slots=True)
class _Audit:
    """Recompute a ledger from its entries. `faults` are sentences that name entries, accounts and keys, and quote no answer."""

    books: Books
    known: Entry | tuple[int, str] | None = None
    faults: list[str] = dataclasses.field(default_factory=list)
    _head: tuple[int, str] = (0, "")
    _spent: dict[str, Amount] = dataclasses.field(default_factory=dict)
    _totals: dict[str, Amount] = dataclasses.field(default_factory=dict)
    _keys: dict[tuple[str, str], _Key] = dataclasses.field(default_factory=dict)
    _stores: set[int] = dataclasses.field(default_factory=set)
    _settled: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def run(self) -> Verification:
        """Walk the chain once, then compare what is left over on either side."""
        known = (self.known.sequence, self.known.hash) if isinstance(self.known, Entry) else self.known
        count, met = 0, known is None or known == (0, "")
        for entry in self.books.entries:
            self._entry(entry)
            met = met or (entry.sequence, entry.hash) == known
            count += 1
        if self.books.highest != self._head[0]:
            self._fault(
                f"the ledger gave out entry numbers up to {self.books.highest}, but ends at entry {self._head[0]}: its tail was cut"
            )
        if not met and known is not None:
            self._fault(self._unmet(known))
        for name in sorted(self.books.accounts.keys() - self._totals.keys(), key=str):
            self._fault(f"account {name!r} has no entry that opens it")
        for kind, whose in sorted(self.books.settled.keys() - self._settled):
            self._fault(f"what is settled for {whose!r} has no entry that settles it ({kind})")
        for number in sorted(self.books.payloads.keys() - self._stores):
            self._fault(f"an answer is stored under entry {number}, which does not store one")
        return Verification(count, self._head, tuple(self.faults))

    def _unmet(self, known: tuple[int, str]) -> str:
        last = self._head[0]
        if known[0] > last:
            return (
                f"entry {known[0]} is known from outside, but the ledger ends at entry {last}: its tail was cut, or an older copy put back"
            )
        return f"entry {known[0]} differs from the one known from outside: the history was rewritten, or this is another ledger"

    def _fault(self, sentence: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)

    def _entry(self, entry: Entry) -> None:
        number, previous = self._head
        self._head = (entry.sequence, entry.hash)
        if not _well_formed(entry):
            self._fault(f"entry {entry.sequence} holds a value of the wrong kind")
            return
        if entry.sequence != number + 1:
            self._fault(f"entry {entry.sequence} follows entry {number}: entries are missing or were moved")
        if entry.previous != previous:
            self._fault(f"entry {entry.sequence} does not continue the chain of entry {number}")
        if entry.hash != link(*fields(entry)):
            self._fault(f"entry {entry.sequence} was edited: its hash does not match its content")
        self._balance(entry)
        self._meaning(entry)

    def _balance(self, entry: Entry) -> None:
        before = self._spent.get(entry.account, NOTHING)
        after = (before[0] + entry.cost[0], before[1] + entry.cost[1])
        if entry.kind != "reserve" and entry.cost != NOTHING:
            self._fault(f"entry {entry.sequence} costs something, but only a reservation may")
        if entry.spent != after:
            self._fault(f"entry {entry.sequence} states a balance that does not follow from the entries before it")
        self._spent[entry.account] = after
        total = self._totals.get(entry.account)
        if total is not None and (after[0] > total[0] or after[1] > total[1]):
            self._fault(f"entry {entry.sequence} takes account {entry.account!r} over its total")

    def _meaning(self, entry: Entry) -> None:
        """Follow the life of accounts and keys."""
        if entry.kind == "open":
            self._open(entry)
            return
        if entry.kind in ("bind", "cap"):
            self._settle(entry)
            return
        place = (entry.account, entry.key)
        key = self._keys.get(place)
        if entry.account not in self._totals:
            self._fault(f"entry {entry.sequence} belongs to account {entry.account!r}, which is not open")
        if entry.kind == "reserve":
            if key is not None:
                self._fault(f"entry {entry.sequence} reserves key {entry.key!r} a second time")
            self._keys[place] = _Key(entry.digest)
        elif key is None or key.digest != entry.digest:
            self._fault(f"entry {entry.sequence} ({entry.kind}) has no reservation that it belongs to")
        else:
            self._step(entry, key)

    def _open(self, entry: Entry) -> None:
        written = self.books.accounts.get(entry.account)
        if entry.account in self._totals:
            self._fault(f"entry {entry.sequence} opens account {entry.account!r} a second time")
        if written is None:
            self._fault(f"account {entry.account!r} is missing")
        elif entry.note != opening(str(written[0]), written[1]):
            self._fault(f"account {entry.account!r} was edited: its rule or total is not the one with which it was opened")
        try:
            first, second = json.loads(entry.note)["total"]
            self._totals[entry.account] = (int(first), int(second))
        except (ValueError, TypeError, KeyError):
            self._fault(f"entry {entry.sequence} opens account {entry.account!r} without a total")
            self._totals[entry.account] = NOTHING

    def _settle(self, entry: Entry) -> None:
        try:
            said = json.loads(entry.note)
            whose = entry.account if entry.kind == "bind" else str(said["data"])
        except (ValueError, TypeError, KeyError):
            self._fault(f"entry {entry.sequence} settles nothing that can be read")
            return
        if (entry.kind, whose) in self._settled:
            self._fault(f"entry {entry.sequence} settles a second time what holds for {whose!r}")
        if self.books.settled.get((entry.kind, whose)) != entry.note:
            self._fault(f"what entry {entry.sequence} settled for {whose!r} was edited")
        self._settled.add((entry.kind, whose))

    def _step(self, entry: Entry, key: _Key) -> None:
        match entry.kind:
            case "resume" if not key.stored:
                key.lease = True
            case "abandon" if key.lease and not key.stored:
                key.lease = False
            case "store" if not key.stored:
                key.stored = True
                self._stored(entry)
            case "hand" if key.stored and not key.handed:
                key.handed = True
            case _:
                self._fault(f"entry {entry.sequence} ({entry.kind}) does not follow from what happened to key {entry.key!r} before")

    def _stored(self, entry: Entry) -> None:
        self._stores.add(entry.sequence)
        found = self.books.payloads.get(entry.sequence)
        if found is None:
            self._fault(f"the answer of entry {entry.sequence} is missing")
        elif found != entry.payload_hash:
            self._fault(f"the answer of entry {entry.sequence} was edited: its hash does not match")


def _well_formed(entry: Entry) -> bool:
    columns = row(entry)
    numbers = (columns[0], *columns[6:8], *columns[10:12])
    words = (*columns[1:6], *columns[8:10], *columns[12:])
    return all(type(n) is int and 0 <= n <= LARGEST for n in numbers) and all(isinstance(word, str) for word in words)
