"""The values that a ledger keeps: amounts, accounts, entries, steps; and how they are chained.

They know nothing of questions or data. An amount of privacy loss is a pair of non-negative
integers, in units that the caller fixes; ``rule`` names the measure, and is stored and compared.

Entries and steps are hashed into chains; what the notes of entries say is written here too. Each
hash covers the hash before it, so that nothing can be edited, removed or moved without changing
every hash after it. The forms of what is hashed must not change: every ledger that was ever written
is checked by them.

*By curves.* An account may compose its answers by curves (`sfumato.privacy.composition`), and then
so do the ceilings above it. Each of them is a filter: it has ``terms``, which are fixed before the
first answer, and a state, which is a tuple of sums. Orders that were chosen after an answer would
let that answer choose how it is counted. A charge of such an account holds its
``event``, which is what it draws; and for each filter a *curve*: what the event adds to the state,
and the state with it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from sfumato.basics import EPSILON_UNITS, RHO_UNITS, Exactly, rounded, several
from sfumato.errors import UsageError, explained_methods
from sfumato.privacy.composition import (
    Composition,
    Curves,
    State,
    curves_of,
    plus,
    stated_curves,
)
from sfumato.privacy.curves import Event, worst_event
from sfumato.privacy.measures import ZCDP, CentralMeasure, PureDP, asked_cost, charge

Amount: TypeAlias = tuple[int, int]

# What a charge adds to a filter, and the state of the filter with that.
Curve: TypeAlias = tuple[State, State]

# A curve, or () where no event was charged to a filter by curves.
MaybeCurve: TypeAlias = Curve | tuple[()]

# A curve in a column: JSON in a text, or an array; nothing where there is none.
StoredCurve: TypeAlias = str | list[list[int]] | None

Kind: TypeAlias = Literal["open", "bind", "cap", "reserve", "resume", "abandon", "store", "hand"]

LARGEST = 2**63 - 1
NOTHING: Amount = (0, 0)

# What an account protects that version 0.1 charged for different persons or relations.
#
# The sum of its charges guarantees nothing, so it is not charged again.
MIXED = "different persons or relations"

# The note of the entry by which a stream begins to exist.
BEGUN = "the stream began"

# The key of the entry that widens an account: it opens the account anew, so it is there once.
WIDENED = "(widened)"

# The state of a stream that has taken its last step.
OVER = b""

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


def charge_in_words(rule: str, cost: Amount, rho: int) -> str:
    """Write a cost for people; by curves with what an event costs in rho beside it."""
    if not rho:
        return written(rule, cost)
    in_rho = written("zcdp", (rho, 0))
    return f"{written(rule, cost)}, {in_rho}" if any(cost) else in_rho


# --- filters --------------------------------------------------------------------------------------


def stated_terms(total: CentralMeasure) -> str:
    """The terms that a total states, of the account itself or of what it may be widened to.

    They are those of a filter by curves: its total and all else that is fixed, as JSON; else "".
    """
    curves = stated_curves(total)
    return "" if curves is None else curves.terms


def state_of(curve: MaybeCurve, composition: Composition) -> State:
    """The state that the last curve of a filter says."""
    return curve[1] if curve else composition.start


def curve_after(composition: Composition, state: State, cost: Amount, event: str) -> Curve:
    """What a charge adds to a filter, and its state with that.

    Parameters
    ----------
    composition : Composition
        Of the filter.
    state : tuple of int
        Before the charge.
    cost : tuple of two int
        All that counts by sums.
    event : str
        All that counts by curves.
    """
    added = composition.adds(cost, _event(event) if event else None)
    return added, plus(state, added)


def allowed_curve(composition: Composition, state: State, cost: Amount, event: str) -> Curve | None:
    """What a charge adds to a filter, and its state with that; None where that does not fit."""
    curve = curve_after(composition, state, cost, event)
    return curve if composition.fits(curve[1]) else None


def worst_event_of(rule: str, amount: Amount) -> str:
    """The worst event of an amount of pure epsilon or of rho; "" of nothing.

    Several answers of epsilons that add up are an answer of their sum, and so with rho.
    """
    spent = amount[0]
    if not spent:
        return ""
    if rule == "zcdp":
        return str(worst_event(ZCDP(Fraction(spent, RHO_UNITS))))
    return str(worst_event(PureDP(Fraction(spent, EPSILON_UNITS))))


@lru_cache(maxsize=256)
def _event(text: str) -> Event:
    return Event.read(text)


@lru_cache(maxsize=256)
def allows(terms: str, event: str, after: str, before: str) -> bool:
    """Whether a charge may follow, as triggers of a file ask it: curves are JSON.

    It derives from the event what it adds. A filter that is not there has no terms and no curve.
    """
    if not terms:
        return not after
    composition = curves_of(terms)
    state = state_of(curve_of(before), composition)
    try:
        expected = allowed_curve(composition, state, NOTHING, event)
    except UsageError:
        return False
    return expected is not None and curve_text(expected) == after


def curve_text(curve: MaybeCurve) -> str:
    """A curve as a file keeps it."""
    return _encode(curve) if curve else ""


def curve_of(column: StoredCurve) -> MaybeCurve:
    """A curve as it is stored; of an edited file, one that no event has."""
    try:
        lists = json.loads(column or "[]") if isinstance(column, str) else column or []
        if not lists:
            return ()
        added, state = lists
        return tuple(added), tuple(state)
    except (ValueError, TypeError):
        return (), ()


@explained_methods
@dataclass(frozen=True, slots=True)
class Account:
    """What an account may spend in all, and what it has spent.

    Attributes
    ----------
    name, rule : str
        The rule names the measure of all its amounts.
    total, spent : tuple of two int
        In the units of the rule.
    protects : str
        Whose presence it hides; "" until the first charge.
    data : str
        The public name of the data set that it pays for; "" where it has none.
    terms : str
        Those of its curves, as JSON, fixed at its opening; "" where it adds up for good. An account
        in another rule than "approx" adds up until it is widened to them.
    curve : tuple
        What its last charge added by curves, and the state with it; () before the first.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> with sf.Publisher(src, account="ward 3", budget="1") as publisher:
    ...     release = publisher.release(sf.Histogram("age", bins=4), epsilon="0.25")
    ...     account = publisher.ledger.account("ward 3")
    >>> account.name, account.rule, account.protects
    ('ward 3', 'pure', 'one row, added or removed')
    """

    name: str
    rule: str
    total: Amount
    spent: Amount
    protects: str = ""
    data: str = ""
    terms: str = ""
    curve: MaybeCurve = ()

    @property
    def by_curves(self) -> bool:
        """Whether it composes by curves now."""
        return bool(self.terms) and self.rule == "approx"

    @property
    def composition(self) -> Composition:
        """How its costs add up."""
        return curves_of(self.terms) if self.by_curves else Composition(self.rule, self.total)

    @property
    def state(self) -> State:
        """What it has spent, as its composition counts it."""
        return state_of(self.curve, self.composition) if self.by_curves else self.spent

    @property
    def remaining(self) -> Amount:
        """What is left, component by component; by curves, of one more answer."""
        return self.composition.left(self.state)

    def remaining_answers(
        self, *, epsilon: Exactly | None = None, delta: Exactly = 0, rho: Exactly | None = None
    ) -> int:
        """How many more answers at this cost it can pay, whatever they ask; at most 2^31 are
        counted.

        A ceiling of a spender or of a data set may allow fewer.

        Parameters
        ----------
        epsilon, delta, rho : number or text
            Of each answer: epsilon (with delta) or rho.

        Raises
        ------
        UsageError
            If the account cannot count this cost.
        """
        return self._answers(asked_cost(epsilon=epsilon, delta=delta, rho=rho))

    def __str__(self) -> str:
        """Its total, how its costs add up, and what is left."""
        return self.described()

    def described(self, cost: CentralMeasure | None = None) -> str:
        """Say its total, how its costs add up, and how many more answers are left.

        Parameters
        ----------
        cost : PureDP, ApproxDP, ZCDP or None
            Of each answer; None: a hundredth of the total epsilon, and nothing in rho.
        """
        rule = "by curves" if self.by_curves else "by sums"
        left = f"left: {written(self.rule, self.remaining)}"
        lines = [f"account {self.name!r}: {written(self.rule, self.total)}, {rule}"]
        if self.protects:
            lines.append(f"protects {self.protects}")
        if self.by_curves:
            left = f"left for one more answer: at most {written(self.rule, self.remaining)}"
        lines.append(left)
        if self.terms and not self.by_curves:
            target = written("approx", curves_of(self.terms).total)
            lines.append(f"may be widened, once, to {target}, by curves")
        if cost is None and self.rule in ("pure", "approx"):
            small = rounded(Fraction(self.total[0], 100 * EPSILON_UNITS), 1, up=False)
            cost = PureDP(Fraction(small))
        if cost is not None:
            more = several(self._answers(cost), "more answer")
            lines.append(f"{more} at {cost}{self.beside_sums(worst_event(cost))}")
        return "\n  ".join(lines)

    def _answers(self, cost: CentralMeasure) -> int:
        event = worst_event(cost)
        money = event.money if self.by_curves else charge(cost, self.rule)
        return self.composition.remaining_answers(self.state, money, event)

    def beside_sums(self, event: Event) -> str:
        """Say how many more answers that draw an event sums would leave; "" where they cannot."""
        if not self.by_curves or event.rho or rho_spent(self):
            return ""
        sums = Composition(self.rule, self.total)
        return f" (by sums {sums.remaining_answers(self.spent, event.money, event):,})"


def rho_spent(payer: Account | Spender) -> int:
    """The units of rho that were paid by curves, beside the epsilon and delta in ``spent``."""
    return payer.state[2] if isinstance(payer.composition, Curves) else 0


def spent_in_words(payer: Account | Spender) -> str:
    """What was spent, as people read it: by curves, with the rho that was paid.

    >>> spent_in_words(Account("trips", "pure", (10**9, 0), (5 * 10**8, 0)))
    'epsilon = 0.5'
    """
    rho = rho_spent(payer)
    sums = written(payer.rule, payer.spent)
    return f"{sums}, {written('zcdp', (rho, 0))}" if rho else sums


@dataclass(frozen=True, slots=True)
class Binding:
    """What an account's charges must have in common, so that they add up.

    Attributes
    ----------
    protects : str
        Whose presence is hidden, and by which relation between neighbours. The sum of two charges
        for different persons would guarantee nothing.
    data : str
        The public name of the data set; "" where it has none.
    ceiling : tuple of two int, or None
        What all accounts of the data set may spend together, in the units of the account's rule.
    terms : str
        Those of a ceiling by curves; "" of one by sums.
    """

    protects: str
    data: str = ""
    ceiling: Amount | None = None
    terms: str = ""


@dataclass(frozen=True, slots=True)
class Spender:
    """Somebody who may spend from an account, up to a ceiling of their own.

    Attributes
    ----------
    account, name : str
    rule : str
        The account's, which names the measure of both amounts.
    ceiling, spent : tuple of two int
        What the spender may spend from the account in all, and what they have spent.
    terms, curve
        As for an `Account`: of a ceiling by curves.
    """

    account: str
    name: str
    rule: str
    ceiling: Amount
    spent: Amount
    terms: str = ""
    curve: MaybeCurve = ()

    @property
    def composition(self) -> Composition:
        """How their costs add up."""
        return curves_of(self.terms) if self.terms else Composition(self.rule, self.ceiling)

    @property
    def state(self) -> State:
        """What they have spent, as their composition counts it."""
        return state_of(self.curve, self.composition) if self.terms else self.spent

    @property
    def remaining(self) -> Amount:
        """What is left, component by component; nothing where the ceiling was lowered since."""
        return self.composition.left(self.state)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger, as it was written.

    Attributes
    ----------
    sequence : int
        Its number, from 1.
    account : str
    kind : str
        ``open`` (an account), ``bind`` (whom the account protects), ``cap`` (the ceiling of a data
        set, or of a spender), ``reserve`` (a charge, the only kind that costs), ``resume`` (a
        caller took over a reservation without an answer), ``abandon`` (a caller gave up), ``store``
        (an answer is durable) or ``hand`` (an answer was handed out).
    time : str
        In UTC. Entries that follow a reservation carry its time: their own would say how long the
        data took to read.
    key, digest : str
        The name of the charge. The digest is random, and so is a key that nobody chose.
    cost, spent : tuple of two int
        Of this entry, and of the account up to and including this entry.
    note : str
        For the reader of the log; of the first three kinds, what they fix.
    payload_hash : str
        Of the answer that is stored.
    until, holder : str
        When a lease ends, and the identity of the process that has it.
    previous, hash : str
        The hash of the entry before, and that of all other fields of this one.
    spender : str
        Whose charge it is, or whose ceiling; "" where the account has no spenders.
    own : tuple of two int
        What the spender has spent from the account up to and including this entry.
    event : str
        What a charge draws (`sfumato.privacy.curves`), where the account composes by curves; "" in
        all other entries. The entry that widens an account has the worst event of what was spent.
    curve, own_curve, data_curve : tuple
        What the event adds, and the state with it: of the account, and of the ceilings by curves of
        its spender and its data set.
    """

    sequence: int
    account: str
    kind: Kind
    time: str = ""
    key: str = ""
    digest: str = ""
    cost: Amount = NOTHING
    note: str = ""
    payload_hash: str = ""
    spent: Amount = NOTHING
    until: str = ""
    holder: str = ""
    previous: str = ""
    hash: str = ""
    spender: str = ""
    own: Amount = NOTHING
    event: str = ""
    curve: MaybeCurve = ()
    own_curve: MaybeCurve = ()
    data_curve: MaybeCurve = ()

    def plain(self) -> dict[str, object]:
        """All fields by name, ready for JSON; without those of a spender or event that it lacks."""
        names = [*FIELDS, "hash"]
        names += SPENDERS if self.spender else ()
        names += EVENTS if self.event else ()
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the whole ledger found.

    Attributes
    ----------
    entries : int
        How many there are.
    head : tuple of int and str
        The number and hash of the last entry. Kept elsewhere, it shows later whether an older copy
        of the ledger was put back.
    faults : tuple of str
        Sentences that quote no answer; none if the ledger is whole.
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
    """One step of a stream, as it was published.

    ``event`` is "" for a step without a name; ``hash`` covers all steps up to this one.
    """

    number: int
    event: str
    output: bytes
    hash: str


# --- chains ---------------------------------------------------------------------------------------

SPENDERS = ("spender", "own")
EVENTS = ("event", "curve", "own_curve", "data_curve")
FIELDS = tuple(
    field.name
    for field in dataclasses.fields(Entry)
    if field.name not in ("hash", *SPENDERS, *EVENTS)
)
# ASCII without blanks: one text for one list of fields, whatever the language of the machine.
# `default` lets an edited file, which may hold anything, be hashed and reported, and not fail.
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=repr).encode

# --- entries --------------------------------------------------------------------------------------


def payload_digest(payload: bytes) -> str:
    """The hash under which an answer is entered."""
    return hashlib.sha256(payload).hexdigest()


def link(*fields: object, form: int = 1) -> str:
    """The hash of an entry: SHA-256 of all its other fields in order, as one JSON array in ASCII.

    The hash of the entry before is one of these fields. ``form`` is 2 where there is an event.
    """
    return hashlib.sha256(_encode([f"sfumato-ledger-{form}", *fields]).encode("ascii")).hexdigest()


def link_of(entry: Entry) -> str:
    """The hash that an entry has by its other fields."""
    # Entries without a spender are hashed as they were before there were spenders, and those
    # without an event as they were before there were events.
    if entry.event:
        names = (*FIELDS, *SPENDERS, *EVENTS)
    else:
        names = (*FIELDS, *SPENDERS) if entry.spender else FIELDS
    fields = (getattr(entry, name) for name in names)
    return link(*fields, form=2 if entry.event else 1)


def opening(rule: str, total: Amount, terms: str = "") -> str:
    """The note of the entry that opens an account, so that the chain covers what it fixes."""
    return _note(terms, rule=rule, total=total)


def _note(terms: str, **said: object) -> str:
    if terms:
        said["terms"] = json.loads(terms)
    return json.dumps(said, ensure_ascii=True)


def widening(rule: str, terms: str) -> str:
    """The note of the entry that widens an account of a rule to the terms of its opening."""
    return _note(terms, widens=rule)


def binding(protects: str, data: str) -> str:
    """The note of the entry that binds an account."""
    return _note("", protects=protects, data=data)


def capping(data: str, rule: str, amount: Amount, terms: str = "") -> str:
    """The note of the entry that sets a data set's ceiling."""
    return _note(terms, data=data, rule=rule, ceiling=amount)


def capping_spender(rule: str, amount: Amount, terms: str = "") -> str:
    """The note of the entry that sets a spender's ceiling; the entry names the spender."""
    return _note(terms, rule=rule, ceiling=amount)


def terms_in(note: str) -> str:
    """The terms that a note sets; "" where it sets none, or was edited."""
    try:
        terms = json.loads(note).get("terms", "")
    except (ValueError, AttributeError):
        return ""
    return _encode(terms) if terms else ""


def ceiling_of(note: str) -> Amount:
    """The ceiling that a note sets; nothing where it was edited and sets none."""
    try:
        first, second = json.loads(note)["ceiling"]
        return int(first), int(second)
    except (ValueError, TypeError, KeyError):
        return NOTHING


# --- streams --------------------------------------------------------------------------------------


def linked(previous: str, stream: int, step: int, event: str, output: bytes) -> str:
    """The hash of a step, over its parts, each with its length in bytes before it.

    ``previous`` is the hash of the step before; for the first step, that of the charge.
    """
    # With the lengths, no two lists of parts give the same bytes.
    whose = str(stream)
    at = str(step)
    name = event.encode("utf-8", "surrogatepass")
    start = f"4:step{len(previous)}:{previous}{len(whose)}:{whose}{len(at)}:{at}"
    before = f"{start}{len(name)}:{event}{len(output)}:"
    return hashlib.sha256(before.encode("utf-8", "surrogatepass") + output).hexdigest()


def opened(spec: bytes, secret: bytes) -> str:
    """The hash of what a stream was opened with; without the secret once that is wiped."""
    public = payload_digest(spec)
    return payload_digest(public.encode() + secret) if secret else public


def sealed(stream: int, spec_digest: str, step: int, state: bytes, tallied: int, head: str) -> str:
    """The hash of a stream's own row: how far it has come, and with which state.

    A step is committed only to a row with the seal that the step was computed from.
    """
    whose = str(stream)
    at = str(step)
    count = str(tallied)
    start = f"6:stream{len(whose)}:{whose}{len(spec_digest)}:{spec_digest}"
    before = f"{start}{len(at)}:{at}{len(state)}:"
    after = f"{len(count)}:{count}{len(head)}:{head}"
    return hashlib.sha256(before.encode() + state + after.encode()).hexdigest()
