"""How a whole ledger is recomputed from its entries, and compared with what is stored.

Whoever edits a file may write anything into it: a text for a number, a note that is not JSON. So an
audit assumes nothing of what it reads, and reports a fault where other code would fail.

*Spenders* are recomputed from the entries as well. A spender's sum is written in each of their
charges. It must follow from the charges before it, and stay within the ceiling that was set last.

*Curves* are derived from the events of charges, for the terms of each filter.

*Streams* are recomputed from their steps, and compared with their charges.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import gt
from typing import NamedTuple, get_args

from sfumato.errors import UsageError
from sfumato.ledger.entries import (
    BEGUN,
    LARGEST,
    NOTHING,
    WIDENED,
    Amount,
    Entry,
    MaybeCurve,
    Step,
    Verification,
    allowed_curve,
    binding,
    capping,
    capping_spender,
    ceiling_of,
    curve_after,
    link_of,
    linked,
    opened,
    opening,
    payload_digest,
    sealed,
    terms_in,
    widening,
    worst_event_of,
)
from sfumato.ledger.sql import Columns, SpenderColumns, columns_of
from sfumato.ledger.store import PublicRows, SecretRows, StreamRow
from sfumato.privacy.composition import State, curves_of
from sfumato.privacy.curves import Event

# --- spenders -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spenders:
    """What each spender of each account may spend, and has spent, as far as the entries go."""

    _ceilings: dict[tuple[str, str], Amount] = field(default_factory=dict)
    _own: dict[tuple[str, str], Amount] = field(default_factory=dict)
    _limited: set[str] = field(default_factory=set)

    def fault(self, entry: Entry) -> str | None:
        """What is wrong with the spender of the next entry, as the end of a sentence."""
        if not entry.spender:
            return self._nameless_fault(entry)
        whose = (entry.account, entry.spender)
        before = self._own.get(whose, NOTHING)
        after = (before[0] + entry.cost[0], before[1] + entry.cost[1])
        self._own[whose] = after
        if entry.kind == "cap":
            self._limited.add(entry.account)
            self._ceilings[whose] = ceiling_of(entry.note)
        elif entry.kind != "reserve":
            return f"is no charge, and names the spender {entry.spender!r}"
        if entry.own != after:
            return "states a sum of its spender that does not follow from the entries before it"
        most = self._ceilings.get(whose, NOTHING)
        if entry.kind == "reserve" and not entry.event and any(map(gt, after, most)):
            return f"takes the spender {entry.spender!r} over their ceiling"
        return None

    def _nameless_fault(self, entry: Entry) -> str | None:
        if entry.own != NOTHING:
            return "states a sum of a spender that it does not name"
        if entry.kind == "reserve" and entry.account in self._limited:
            return f"is charged to account {entry.account!r} by none of its spenders"
        return None


# --- curves ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Filters:
    """What was charged to each filter by curves, as far as the entries go.

    A filter is known by ("account", name), ("spender", account, name) or ("data", name).
    """

    _targets: dict[str, tuple[str, str]] = field(default_factory=dict)
    _terms: dict[tuple[str, ...], str] = field(default_factory=dict)
    _states: dict[tuple[str, ...], State] = field(default_factory=dict)
    _counted_by: dict[tuple[str, ...], str] = field(default_factory=dict)
    _data: dict[str, str] = field(default_factory=dict)

    def by_curves(self, account: str) -> bool:
        """Whether an account composes by curves now."""
        return ("account", account) in self._terms

    def open(self, entry: Entry, rule: str) -> None:
        """Note the terms of an account that is opened."""
        terms = terms_in(entry.note)
        self._targets[entry.account] = (rule, terms)
        if rule == "approx":
            self._note(("account", entry.account), terms)

    def settle(self, entry: Entry) -> None:
        """Note what an entry binds an account to, or the terms of a ceiling that it sets."""
        said = json.loads(entry.note)
        if entry.kind == "bind":
            self._data[entry.account] = str(said["data"])
        else:
            self._note(("data", str(said["data"])), terms_in(entry.note))

    def cap_fault(self, entry: Entry) -> str | None:
        """Note the terms of a spender's ceiling, where an older one gives way, and what is wrong.

        The fault is the end of a sentence.
        """
        name = ("spender", entry.account, entry.spender)
        terms = terms_in(entry.note)
        self._note(name, terms)
        if not terms or self._counted_by.get(name, terms) == terms:
            return None
        return f"sets other terms for {entry.spender!r} than those by which they were charged"

    def _note(self, name: tuple[str, ...], terms: str) -> None:
        self._terms.pop(name, None)
        if terms:
            self._terms[name] = terms

    def widening_fault(self, entry: Entry, spent: Amount, total: Amount) -> str | None:
        """What is wrong with an entry that widens an account, as the end of a sentence."""
        rule, terms = self._targets.get(entry.account, ("", ""))
        if self.by_curves(entry.account) or entry.note != widening(rule, terms or "{}"):
            return "widens an account to what was not stated at its opening"
        self._note(("account", entry.account), terms)
        composition = curves_of(terms)
        whole = worst_event_of(rule, total)
        if allowed_curve(composition, composition.start, NOTHING, whole) is None:
            return "widens an account whose total does not fit the target"
        if entry.event != worst_event_of(rule, spent):
            return "does not count what its account has spent"
        fault = self._curve_fault(("account", entry.account), entry.event, entry.curve)
        state = self._states.get(("account", entry.account), composition.start)
        if fault is None and entry.spent != (state[0], state[1]):
            return "states a balance that does not follow from the entries before it"
        return fault

    def fault(self, entry: Entry) -> str | None:
        """What is wrong with the event of the next entry, as the end of a sentence."""
        is_by_curves = entry.kind == "reserve" and self.by_curves(entry.account)
        curves = {
            ("account", entry.account): entry.curve,
            ("spender", entry.account, entry.spender): entry.own_curve,
            ("data", self._data.get(entry.account, "")): entry.data_curve,
        }
        if not entry.event:
            if any(curves.values()):
                return "has curves, and no event that they follow from"
            return "is charged to an account by curves, and has no event" if is_by_curves else None
        if not is_by_curves:
            return "has an event, and is no charge of an account by curves"
        try:
            money = Event.read(entry.event).money
        except UsageError:
            return "has an event that this version does not know"
        if entry.cost != money:
            return "states a cost that does not follow from its event"
        faults = (self._curve_fault(name, entry.event, curve) for name, curve in curves.items())
        return next((fault for fault in faults if fault is not None), None)

    def _curve_fault(self, name: tuple[str, ...], event: str, curve: MaybeCurve) -> str | None:
        terms = self._terms.get(name)
        whose = " ".join(map(repr, name[1:]))
        if terms is None or not event:
            return f"has a curve of {name[0]} {whose}, which has none" if curve else None
        composition = curves_of(terms)
        expected = curve_after(
            composition, self._states.get(name, composition.start), NOTHING, event
        )
        self._states[name] = expected[1]
        self._counted_by.setdefault(name, terms)
        if curve != expected:
            return f"has a curve of {name[0]} {whose} that does not follow from its event"
        if not composition.fits(expected[1]):
            return f"takes {name[0]} {whose} over its total"
        return None


# --- the whole ledger -----------------------------------------------------------------------------

MOST_FAULTS = 100
NOTE_ERRORS = (ValueError, TypeError, KeyError)  # of reading a note that may be any text
COLUMN_TYPES = (*get_args(Columns), *get_args(SpenderColumns))
# What may happen to a key: its state, and the kind of the entry, give its next state.
LIFE = {
    ("leased", "resume"): "leased",
    ("free", "resume"): "leased",
    ("leased", "abandon"): "free",
    ("leased", "store"): "stored",
    ("free", "store"): "stored",
    ("stored", "hand"): "handed",
}
NOT_AS_OPENED = "its rule or total is not the one with which it was opened"


class Audited(NamedTuple):
    """What an audit found, and what the streams of the ledger must agree with.

    ``paid`` has the hash of each reservation, by its number. ``begun`` has, for each reservation of
    a stream that was begun, the hash of what the stream was opened with.
    """

    verification: Verification
    paid: Mapping[int, str]
    begun: Mapping[int, str]


def audit(rows: PublicRows, known: tuple[int, str] | None) -> Audited:
    """Check every entry, and what is beneath the rows, in one consistent view.

    Parameters
    ----------
    rows : PublicRows
    known : tuple of int and str, or None
        The number and hash of an entry, kept elsewhere, that must stand in this ledger.
    """
    settled = {("bind", account): binding(*bound) for account, bound in rows.bindings().items()}
    terms = rows.ceiling_terms()
    settled |= {
        ("cap", data): capping(data, *limit, terms.get(data, ""))
        for data, limit in rows.ceilings().items()
    }
    # An edited file may hold something else than bytes: a text that is no hash then.
    answers = {
        number: payload_digest(payload) if isinstance(payload, bytes) else "not bytes"
        for number, payload in rows.answers()
    }
    highest = rows.highest()
    books = Books(rows.entries(), rows.totals(), answers, highest, settled, rows.terms())
    return audited(books, known, rows.damage(thorough=True))


def audited(
    books: Books,
    known: tuple[int, str] | None = None,
    damage: Iterable[str] = (),
) -> Audited:
    """Check every entry. ``damage`` has faults that were found before."""
    # An empty ledger has the head (0, ""): every ledger continues it.
    checking = _Audit(books, known or (0, ""), list(damage))
    return Audited(checking.run(), checking.paid, checking.begun)


def first_fault(rows: PublicRows) -> str | None:
    """The first fault that can be seen quickly, before a charge: rules, last entry, totals."""
    damages = rows.damage(thorough=False)
    if damages:
        return damages[0]
    last = rows.entry(rows.tip("").sequence)
    if last is not None and (not _well_formed(last) or last.hash != link_of(last)):
        return f"entry {last.sequence} was edited: its hash does not match its content"
    terms = rows.terms()
    for name, (rule, total) in rows.totals().items():
        # An account is opened under the empty key.
        first = next(iter(rows.of_key(name, "")), None)
        note = opening(rule, total, terms.get(name, ""))
        if first is None or first.kind != "open" or first.note != note:
            return f"account {name!r} was edited: {NOT_AS_OPENED}"
    return None


@dataclass(frozen=True, slots=True)
class Books:
    """All that the public part of a ledger holds, read in one consistent view.

    Attributes
    ----------
    entries : iterable of Entry
        In order; gone through once.
    accounts : mapping
        The rule and total of each account.
    payloads : mapping
        From the number of an entry that stores an answer to the answer's hash.
    highest : int
        The highest number that was ever given to an entry.
    settled : mapping
        What was fixed for an account ("bind") or a data set ("cap"), as the note of its entry.
    terms : mapping
        The terms of each account that has any.
    """

    entries: Iterable[Entry]
    accounts: Mapping[str, tuple[str, Amount]]
    payloads: Mapping[int, str]
    highest: int
    settled: Mapping[tuple[str, str], str]
    terms: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Key:
    """What the entries so far say of one key; ``charge`` is the number of its reservation."""

    charge: int
    digest: str
    state: str = "leased"


@dataclass(slots=True)
class _Audit:
    """Recompute a ledger from its entries.

    `faults` are sentences that name entries, accounts and keys, and quote no answer.
    """

    books: Books
    known: tuple[int, str]
    faults: list[str]
    paid: dict[int, str] = dataclasses.field(default_factory=dict)
    begun: dict[int, str] = dataclasses.field(default_factory=dict)
    _head: tuple[int, str] = (0, "")
    _spent: dict[str, Amount] = dataclasses.field(default_factory=dict)
    _totals: dict[str, Amount] = dataclasses.field(default_factory=dict)
    _keys: dict[tuple[str, str], _Key] = dataclasses.field(default_factory=dict)
    _stores: set[int] = dataclasses.field(default_factory=set)
    _settled: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    _spenders: Spenders = dataclasses.field(default_factory=Spenders)
    _filters: Filters = dataclasses.field(default_factory=Filters)

    def run(self) -> Verification:
        """Follow the chain once, then look for rows that no entry accounts for."""
        known = self.known
        met = known == (0, "")
        count = 0
        for entry in self.books.entries:
            self._entry(entry)
            met = met or (entry.sequence, entry.hash) == known
            count += 1
        # SQLite remembers the highest number it gave out. A cut of the tail cannot lower that
        # without an edit of its own.
        if self.books.highest != self._head[0]:
            self._fault(
                f"the ledger gave out entry numbers up to {self.books.highest}, "
                f"but ends at entry {self._head[0]}: its tail was cut"
            )
        if not met and known[0] > self._head[0]:
            self._fault(
                f"entry {known[0]} is known from outside, but the ledger ends at entry "
                f"{self._head[0]}: its tail was cut, or an older copy put back"
            )
        elif not met:
            self._fault(
                f"entry {known[0]} differs from the one known from outside: "
                "the history was rewritten, or this is another ledger"
            )
        for name in sorted(self.books.accounts.keys() - self._totals.keys(), key=str):
            self._fault(f"account {name!r} has no entry that opens it")
        for kind, whose in sorted(self.books.settled.keys() - self._settled):
            self._fault(f"what is settled for {whose!r} has no entry that settles it ({kind})")
        for number in sorted(self.books.payloads.keys() - self._stores):
            self._fault(f"an answer is stored under entry {number}, which does not store one")
        return Verification(count, self._head, tuple(self.faults))

    def _fault(self, sentence: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)

    def _entry(self, entry: Entry) -> None:
        number, previous = self._head
        # Go on from what the entry says of itself: one edit is then one fault, not all after it.
        self._head = (entry.sequence, entry.hash)
        if not _well_formed(entry):
            self._fault(f"entry {entry.sequence} holds a value of the wrong kind")
            return
        if entry.sequence != number + 1:
            self._fault(
                f"entry {entry.sequence} follows entry {number}: entries are missing or were moved"
            )
        if entry.previous != previous:
            self._fault(f"entry {entry.sequence} does not continue the chain of entry {number}")
        if entry.hash != link_of(entry):
            self._fault(f"entry {entry.sequence} was edited: its hash does not match its content")
        self._balance(entry)
        # Then it follows the life of accounts and keys.
        match entry.kind:
            case "open" if _widens(entry):
                pass  # `_balance` has followed it
            case "open":
                self._open(entry)
            case "cap" if entry.spender:
                self._cap_spender(entry)
            case "bind" | "cap":
                self._settle(entry)
            case _:
                self._of_key(entry)

    def _balance(self, entry: Entry) -> None:
        before = self._spent.get(entry.account, NOTHING)
        if _widens(entry):
            total = self._totals.get(entry.account, NOTHING)
            fault = self._filters.widening_fault(entry, before, total)
            if fault is not None:
                self._fault(f"entry {entry.sequence} {fault}")
            self._spent[entry.account] = entry.spent
            return
        after = (before[0] + entry.cost[0], before[1] + entry.cost[1])
        if entry.kind != "reserve" and entry.cost != NOTHING:
            self._fault(f"entry {entry.sequence} costs something, but only a reservation may")
        if entry.spent != after:
            self._fault(
                f"entry {entry.sequence} states a balance that does not follow from the entries "
                "before it"
            )
        self._spent[entry.account] = after
        total = self._totals.get(entry.account, after)
        # By curves, amounts add up to more than the total: its filter is what says no.
        if any(map(gt, after, total)) and not self._filters.by_curves(entry.account):
            self._fault(f"entry {entry.sequence} takes account {entry.account!r} over its total")
        for fault in (self._spenders.fault(entry), self._filters.fault(entry)):
            if fault is not None:
                self._fault(f"entry {entry.sequence} {fault}")

    def _of_key(self, entry: Entry) -> None:
        at = (entry.account, entry.key)
        key = self._keys.get(at)
        if entry.account not in self._totals:
            self._fault(
                f"entry {entry.sequence} belongs to account {entry.account!r}, which is not open"
            )
        if entry.kind == "reserve":
            if key is not None:
                self._fault(f"entry {entry.sequence} reserves key {entry.key!r} a second time")
            self._keys[at] = _Key(entry.sequence, entry.digest)
            self.paid[entry.sequence] = entry.hash
        elif key is None or key.digest != entry.digest:
            self._fault(
                f"entry {entry.sequence} ({entry.kind}) has no reservation that it belongs to"
            )
        else:
            self._follow_key(entry, key)

    def _open(self, entry: Entry) -> None:
        written = self.books.accounts.get(entry.account)
        if entry.account in self._totals:
            self._fault(f"entry {entry.sequence} opens account {entry.account!r} a second time")
        if written is None:
            self._fault(f"account {entry.account!r} is missing")
        elif entry.note != opening(
            str(written[0]), written[1], self.books.terms.get(entry.account, "")
        ):
            self._fault(f"account {entry.account!r} was edited: {NOT_AS_OPENED}")
        try:
            said = json.loads(entry.note)
            first, second = said["total"]
            self._totals[entry.account] = (int(first), int(second))
            self._filters.open(entry, str(said["rule"]))
        except NOTE_ERRORS:
            self._fault(f"entry {entry.sequence} opens account {entry.account!r} without a total")
            self._totals[entry.account] = NOTHING

    def _settle(self, entry: Entry) -> None:
        try:
            said = json.loads(entry.note)
            whose = entry.account if entry.kind == "bind" else str(said["data"])
        except NOTE_ERRORS:
            self._fault(f"entry {entry.sequence} settles nothing that can be read")
            return
        if (entry.kind, whose) in self._settled:
            self._fault(f"entry {entry.sequence} settles a second time what holds for {whose!r}")
        if self.books.settled.get((entry.kind, whose)) != entry.note:
            self._fault(f"what entry {entry.sequence} settled for {whose!r} was edited")
        self._settled.add((entry.kind, whose))
        self._filters.settle(entry)

    def _cap_spender(self, entry: Entry) -> None:
        written = self.books.accounts.get(entry.account)
        rule = "" if written is None else str(written[0])
        terms = terms_in(entry.note)
        if entry.note not in (
            capping_spender(rule, ceiling_of(entry.note)),
            capping_spender("approx", ceiling_of(entry.note), terms),
        ):
            self._fault(f"entry {entry.sequence} sets no ceiling that can be read")
        fault = self._filters.cap_fault(entry)
        if fault is not None:
            self._fault(f"entry {entry.sequence} {fault}")

    def _follow_key(self, entry: Entry, key: _Key) -> None:
        """Check that an entry may follow what its key has been through, and remember it."""
        state = LIFE.get((key.state, entry.kind))
        if state is None:
            self._fault(
                f"entry {entry.sequence} ({entry.kind}) does not follow from what happened to "
                f"key {entry.key!r} before"
            )
            return
        key.state = state
        if state != "stored":
            return
        self._stores.add(entry.sequence)
        payload_hash = self.books.payloads.get(entry.sequence)
        if payload_hash is None:
            self._fault(f"the answer of entry {entry.sequence} is missing")
        elif payload_hash != entry.payload_hash:
            self._fault(f"the answer of entry {entry.sequence} was edited: its hash does not match")
        if entry.note == BEGUN:
            self.begun[key.charge] = entry.payload_hash


def _widens(entry: Entry) -> bool:
    return entry.kind == "open" and entry.key == WIDENED


def _well_formed(entry: Entry) -> bool:
    """Whether each field of an entry is of its type."""
    if not all(map(_is_curve, (entry.curve, entry.own_curve, entry.data_curve))):
        return False
    columns = (*columns_of(entry), entry.spender, *entry.own)
    return all(
        type(column) is int and 0 <= column <= LARGEST if kind is int else isinstance(column, str)
        for column, kind in zip(columns, COLUMN_TYPES, strict=True)
    )


def _is_curve(curve: MaybeCurve) -> bool:
    sums = [number for state in curve for number in state]
    return not curve or all(type(number) is int and 0 <= number <= LARGEST for number in sums)


# --- streams --------------------------------------------------------------------------------------


def faults(
    rows: SecretRows,
    paid: Mapping[int, str],
    begun: Mapping[int, str],
    last: int,
) -> Iterator[str]:
    """What is wrong with any stream, as sentences that quote neither states nor outputs.

    Parameters
    ----------
    rows : SecretRows
    paid : mapping
        The hash of each reservation, by its number.
    begun : mapping
        For each reservation of a stream that was begun, the hash of what it was opened with.
    last : int
        The last entry of the ledger that ``paid`` and ``begun`` cover. A stream with a later number
        was paid for since they were read, and is not judged.
    """
    streams = rows.streams()
    tallies = rows.tallies()
    named = {row.number for row in streams}
    for table, owners in (("steps", rows.stepped()), ("tallies", set(tallies))):
        for number in sorted(owners - named):
            yield f"{table} belong to stream {number}, which is missing"
    for number in sorted(begun.keys() - named):
        yield f"stream {number} is missing from the secrets"
    for row in streams:
        if row.number > last:
            continue
        if row.number not in paid:
            yield f"stream {row.number} has no charge"
            continue
        yield from _row_faults(row, begun)
        reached = (row.at.step, row.at.head)
        yield from _chain_faults(row.number, paid[row.number], rows.steps(row.number), reached)
        if tallies.get(row.number, 0) != row.at.tallied:
            yield f"the tallies of stream {row.number} were edited: their sum does not match"


def _row_faults(row: StreamRow, begun: Mapping[int, str]) -> Iterator[str]:
    at = row.at
    # The file may have been edited, and hold anything.
    sound = all(isinstance(part, bytes) for part in (row.spec, row.secret, at.state))
    sealing = (at.step, at.state, at.tallied, at.head)
    if not sound or sealed(row.number, opened(row.spec, row.secret), *sealing) != at.seal:
        yield f"the state of stream {row.number} was edited: its hash does not match"
    if sound:
        spec = payload_digest(row.spec)
        if begun.get(row.number, spec) != spec:
            yield f"stream {row.number} was opened with something else than its entry says"


def _chain_faults(
    stream: int, head: str, steps: Iterable[Step], last: tuple[int, str]
) -> Iterator[str]:
    """Follow the chain of one stream to the step that its state has reached.

    Parameters
    ----------
    stream : int
    head : str
        The hash of the stream's charge, which its first step continues.
    steps : iterable of Step
    last : tuple of int and str
        The number and hash of the last step, as the stream's own row has them.
    """
    at = 0
    for step in steps:
        if step.number != at + 1:
            yield (
                f"step {step.number} of stream {stream} follows step {at}: "
                "steps are missing or were moved"
            )
        whole = isinstance(step.output, bytes)
        if not whole or step.hash != linked(head, stream, step.number, step.event, step.output):
            yield f"step {step.number} of stream {stream} was edited: its hash does not match"
        at = step.number
        head = step.hash
    if (at, head) != last:
        yield (
            f"stream {stream} ends at step {at}, but its state is that of another step: "
            "it was cut, or an older state put back"
        )
