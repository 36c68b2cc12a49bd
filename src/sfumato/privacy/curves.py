"""Events: what an answer draws, as one short text; and how much it tells, by orders of Renyi.

An account by ``"curves"`` (``privacy.composition``) adds up, for each of its orders a > 1, a bound
on the Renyi divergence D_a between the answers to two neighbouring tables, in both directions.

**Interface.** ``Event.read(text)`` and ``str(event)`` are inverse to each other; nothing but the
canonical text of an event is read. Events are added by ``+`` and repeated by ``3 * event``.
``event.money`` is (epsilon, delta) in whole units, ``event.rho_units`` what it costs in rho.
``curve(event, orders)`` is R at each order, in whole units of 2^-40, rounded up.
``worst_event(cost)`` is the event of an answer of which nothing is known but its cost.

**Terms and their R**, x standing for 1/scale, q = e^-x and r = q^(2a - 1):

``zcdp(rho)``
    a rho: what rho-zCDP means (Bun, Steinke 2016, Def. 1.1). Discrete Gaussian noise is rho-zCDP
    (Canonne, Kamath, Steinke 2020, Thm 4).
``laplace(k, scale)``
    A number moves by at most k steps, and discrete Laplace noise is added to it:
    ln(A e^((a-1) k x) + B e^(-a k x)) / (a - 1), A = (1 - q r) / ((1 + q)(1 - r)), B = 1 - A.

    *Exact.* With p(y) = (1-q)/(1+q) q^|y|, p(y)^a p(y-k)^(1-a) is a geometric sequence on each of
    y <= 0, 0 < y < k and y >= k; the three sums add up to the formula. The law is symmetric, so the
    other direction has the same R.

    *One cell is worst.* B = q (1 - q^(2a-2)) / ((1+q)(1-r)) is above 0, so f(k) = A u^k + B v^k is
    E[e^(kY)] of a variable Y of two values. f(k) f(m) <= f(k+m), because both factors increase
    with Y (Chebyshev's association inequality): k steps in one cell tell no less than k steps
    over several cells with noise of this scale. f is convex, f(0) = 1, and f(1) >= 1 as a
    divergence is not negative; so f never falls, and fewer steps tell no more.

    *Replacement.* Where a row is replaced in a table of disjoint cells, at most k rows leave and at
    most k come. The cells that lose tell at most R(k) together, those that gain as much:
    ``2 laplace(k, scale)``, which is less than ``laplace(2 k, scale)``.
``pure(epsilon)``
    ln((e^(a eps) + e^((1-a) eps)) / (e^eps + 1)) / (a - 1): randomised response, of which every
    epsilon-private answer is a function (Kairouz, Oh, Viswanath 2015, Thm 2.1).
``exponential(epsilon)``
    A choice whose log probability ratios all lie within *one* interval of this length, in whichever
    place: the lesser of a eps^2 / 8 (Cesar, Rogers 2021, Lemma 3.4) and that of ``pure``.
    Permute-and-flip is not such a choice, and is ``pure``.
``approx(epsilon, delta)``
    ``pure(epsilon)``; the account counts delta apart (``privacy.composition``, *Deltas*).
``stream(epsilon, delta)``
    Epsilon at every order: an approximate stream, which answers for long, gets no discount.

**Rounding.** All numbers are decimals of 60 digits, whose exp and ln are rounded correctly
(``decimal``). Epsilons reach 10^9, orders 2^16, scales 10^24; so exponents are wrong by less than
10^-45, differences such as 1 - r by less than 10^-34 of themselves, and R by less than 10^-30. A
millionth of a unit is added before R is rounded up. So every machine derives the same numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar, Self

import msgspec

from sfumato.basics import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, units_up
from sfumato.errors import InternalError, UsageError
from sfumato.privacy.measures import (
    LARGEST_EPSILON,
    LARGEST_RHO,
    ZCDP,
    ApproxDP,
    CentralMeasure,
    Money,
    PureDP,
)
from sfumato.privacy.unit import Unit

# Whole units of a divergence to one nat.
CURVE_UNITS = 2**40

# Whole units of an order to one.
ORDER_UNITS = 2**10

LARGEST_ORDER = 2**16
LARGEST_COUNT = 2**31
LARGEST_SCALE = 10**24
# Of one event; a sum with more of them is stated by its worst case.
MOST_TERMS = 256

_CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_SLACK = Decimal("1e-6")


class Term(msgspec.Struct, frozen=True):
    """One draw of a mechanism: a word, and exact parameters.

    It has an ``epsilon``, perhaps with a ``delta``, or a ``rho``: what it counts as. Of what it
    does not have it counts nothing.
    """

    word: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.word}({', '.join(map(str, msgspec.structs.astuple(self)))})"

    @classmethod
    def of(cls, parameters: Sequence[Fraction]) -> Self:
        """Make a term from its parameters, as they are read."""
        return cls(*parameters)

    def divergence(self, order: Decimal) -> Decimal:
        """Its R at an order above 1, within 10^-30."""
        raise NotImplementedError


class Zcdp(Term, frozen=True):
    """An answer of rho-zCDP."""

    word = "zcdp"
    rho: Fraction

    def __post_init__(self) -> None:
        _require(0 < self.rho <= LARGEST_RHO)

    def divergence(self, order: Decimal) -> Decimal:
        return order * _decimal(self.rho)


class Laplace(Term, frozen=True):
    """Discrete Laplace noise of a scale on a number that one person moves by so many steps."""

    word = "laplace"
    steps: int
    scale: Fraction

    def __post_init__(self) -> None:
        _require(1 <= self.steps <= LARGEST_SCALE)
        _require(Fraction(1, LARGEST_SCALE) <= self.scale <= LARGEST_SCALE)
        _require(self.epsilon <= LARGEST_EPSILON)

    @classmethod
    def of(cls, parameters: Sequence[Fraction]) -> Self:
        steps, scale = parameters
        _require(steps.denominator == 1)
        return cls(steps.numerator, scale)

    @property
    def epsilon(self) -> Fraction:
        return self.steps / self.scale

    def divergence(self, order: Decimal) -> Decimal:
        rate = _decimal(1 / self.scale)
        moved = self.steps * rate
        q = (-rate).exp()
        r = (-(2 * order - 1) * rate).exp()
        rising = (1 - q * r) * ((order - 1) * moved).exp()
        falling = (q - r) * (-order * moved).exp()
        return ((rising + falling) / ((1 + q) * (1 - r))).ln() / (order - 1)


class _InEpsilon(Term, frozen=True):
    """A term that states its epsilon; at worst it is randomised response."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _require(0 < self.epsilon <= LARGEST_EPSILON)

    def divergence(self, order: Decimal) -> Decimal:
        epsilon = _decimal(self.epsilon)
        above = (order * epsilon).exp() + ((1 - order) * epsilon).exp()
        return (above / (epsilon.exp() + 1)).ln() / (order - 1)


class Pure(_InEpsilon, frozen=True):
    """Any answer of pure epsilon."""

    word = "pure"


class Exponential(_InEpsilon, frozen=True):
    """A choice by the exponential mechanism, of bounded range epsilon."""

    word = "exponential"

    def divergence(self, order: Decimal) -> Decimal:
        epsilon = _decimal(self.epsilon)
        return min(order * epsilon * epsilon / 8, super().divergence(order))


class Approximate(_InEpsilon, frozen=True):
    """Any answer of (epsilon, delta)."""

    word = "approx"
    delta: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(0 < self.delta < 1)


class ApproximateStream(Approximate, frozen=True):
    """A stream of (epsilon, delta), whose steps go on while others are answered."""

    word = "stream"

    def divergence(self, order: Decimal) -> Decimal:
        return _decimal(self.epsilon)


# The closed vocabulary of events.
WORDS: dict[str, type[Term]] = {
    kind.word: kind for kind in (Approximate, ApproximateStream, Exponential, Laplace, Pure, Zcdp)
}


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def _require(is_in_range: bool) -> None:
    if not is_in_range:
        raise ValueError("a parameter of an event is out of range")


# --- events ---------------------------------------------------------------------------------------

_NUMBER = r"[1-9][0-9]{0,39}(?:/[1-9][0-9]{0,39})?"
_TERM = re.compile(rf"(?:([1-9][0-9]{{0,9}}) )?([a-z]+)\(({_NUMBER}(?:, {_NUMBER})*)\)")


class Event(msgspec.Struct, frozen=True):
    """What an answer draws: terms, each with how often it is drawn.

    Attributes
    ----------
    terms : tuple of (int, Term)
        In the order of their texts, each once.

    >>> print(Event.of(Laplace(1, Fraction(20))) + Event.of(Laplace(1, Fraction(20))))
    2 laplace(1, 20)
    >>> Event.read("2 laplace(1, 20)").money
    (100000000, 0)
    """

    terms: tuple[tuple[int, Term], ...]

    def __post_init__(self) -> None:
        _require(0 < len(self.terms) <= MOST_TERMS)
        for count, _ in self.terms:
            _require(1 <= count <= LARGEST_COUNT)

    @classmethod
    def of(cls, *terms: Term) -> Event:
        """The event in which each of some terms is drawn once."""
        return cls.gathered((1, term) for term in terms)

    @classmethod
    def read(cls, text: str) -> Event:
        """Read the canonical text of an event.

        Raises
        ------
        UsageError
            Of every other text.
        """
        try:
            event = cls.gathered(map(_read_term, text.split(" + ")))
        except (ValueError, TypeError, KeyError):
            event = None
        if event is None or str(event) != text:
            raise UsageError(
                "the event of a charge",
                "it is not the text of an event that this version knows",
                "Use the version that wrote it",
            )
        return event

    @classmethod
    def gathered(cls, drawn: Iterable[tuple[int, Term]]) -> Event:
        """The event in which each of some terms is drawn so often; equal ones may stand apart."""
        counts: dict[Term, int] = {}
        for count, term in drawn:
            counts[term] = counts.get(term, 0) + count
        # By their texts: one event has one text, in whatever order its terms are drawn.
        return cls(tuple((counts[term], term) for term in sorted(counts, key=str)))

    def __str__(self) -> str:
        return " + ".join(
            str(term) if count == 1 else f"{count} {term}" for count, term in self.terms
        )

    def __add__(self, other: Event) -> Event:
        return self.gathered((*self.terms, *other.terms))

    def __rmul__(self, times: int) -> Event:
        return Event(tuple((times * count, term) for count, term in self.terms))

    @property
    def epsilon(self) -> Fraction:
        """The sum of its epsilons; of terms in rho nothing is counted."""
        return self._sum("epsilon")

    @property
    def delta(self) -> Fraction:
        """The sum of its deltas."""
        return self._sum("delta")

    @property
    def money(self) -> Money:
        """Epsilon and delta in whole units, rounded up."""
        return units_up(self.epsilon, EPSILON_UNITS), units_up(self.delta, DELTA_UNITS)

    @property
    def rho(self) -> Fraction:
        """The sum of the rhos of terms that have no epsilon."""
        return self._sum("rho")

    def _sum(self, amount: str) -> Fraction:
        none = Fraction(0)
        return sum((count * getattr(term, amount, none) for count, term in self.terms), none)

    @property
    def rho_units(self) -> int:
        """The same in whole units, rounded up."""
        return units_up(self.rho, RHO_UNITS)


def _read_term(text: str) -> tuple[int, Term]:
    matched = _TERM.fullmatch(text)
    if matched is None:
        raise ValueError("no term")
    times, word, listed = matched.groups()
    parameters = [Fraction(number) for number in listed.split(", ")]
    return int(times or 1), WORDS[word].of(parameters)


def sum_of(events: Sequence[Event]) -> Event:
    """The event of several answers together; of very many kinds, the worst case of their costs."""
    drawn = [pair for event in events for pair in event.terms]
    if len({term for _, term in drawn}) <= MOST_TERMS:
        return Event.gathered(drawn)
    return _worst_sum(events)


def _worst_sum(events: Sequence[Event]) -> Event:
    # Basic composition: what is private at each epsilon is private at their sum, together.
    epsilon = sum((event.epsilon for event in events), Fraction(0))
    delta = sum((event.delta for event in events), Fraction(0))
    rho = sum((event.rho for event in events), Fraction(0))
    costs: list[CentralMeasure] = [ZCDP(rho)] if rho else []
    if epsilon:
        costs.append(ApproxDP(epsilon, delta) if delta else PureDP(epsilon))
    return Event.gathered(pair for cost in costs for pair in worst_event(cost).terms)


def worst_event(cost: CentralMeasure) -> Event:
    """The event of an answer of which nothing is known but its cost.

    >>> from sfumato.privacy.measures import PureDP
    >>> print(worst_event(PureDP("0.5")))
    pure(1/2)
    """
    match cost:
        case PureDP(epsilon=epsilon):
            return Event.of(Pure(epsilon))
        case ApproxDP(epsilon=epsilon, delta=delta):
            return Event.of(Approximate(epsilon, delta) if delta else Pure(epsilon))
        case ZCDP(rho=rho):
            return Event.of(Zcdp(rho))
    raise InternalError(f"{cost} is no cost of an account.")


def stream_event(cost: CentralMeasure) -> Event:
    """The event of a stream, whose whole cost is charged when it is opened.

    A pure or concentrated stream tells the worst adaptive user at most what its cost says.
    """
    if isinstance(cost, ApproxDP) and cost.delta:
        return Event.of(ApproximateStream(cost.epsilon, cost.delta))
    return worst_event(cost)


# --- noise on counts ------------------------------------------------------------------------------


def laplace_event(scale: Fraction, unit: Unit, factor: int = 1) -> Event:
    """The event of discrete Laplace noise of one scale on counts, or sums, of disjoint cells.

    Parameters
    ----------
    scale : Fraction
    unit : Unit
        What one person changes of the counts.
    factor : int
        How many steps a row adds to the sums of its cell, in all.

    Holds because: R of k steps is convex in k, as ln f above is the cumulant function of Y. So of
    all ways to lay a person's rows into cells of at most m, full cells tell most. Rows that come
    and rows that leave each tell no more than that.

    >>> print(laplace_event(Fraction(30), Unit(rows_per_person=3, neighbours="replace")))
    2 laplace(3, 30)
    """
    rows = unit.rows_counted
    in_cell = min(unit.largest_cell, rows)
    full_cells, rest = divmod(rows, in_cell)
    relation = 2 if unit.neighbours == "replace" else 1
    drawn = [(relation * full_cells, Laplace(in_cell * factor, scale))]
    if rest:
        drawn.append((relation, Laplace(rest * factor, scale)))
    return Event.gathered(drawn)


# --- curves ---------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def curve(event: Event, orders: tuple[int, ...]) -> tuple[int, ...]:
    """R of an event at each of some orders, in whole units of 2^-40, rounded up.

    Parameters
    ----------
    event : Event
    orders : tuple of int
        In whole units of 2^-10, above 1.

    >>> curve(Event.read("zcdp(1/2)"), (2 * ORDER_UNITS,)) == (CURVE_UNITS + 1,)
    True
    """
    return tuple(
        sum(count * _units(term, order) for count, term in event.terms) for order in orders
    )


@functools.lru_cache(maxsize=8192)
def _units(term: Term, order: int) -> int:
    if not ORDER_UNITS < order <= LARGEST_ORDER * ORDER_UNITS:
        raise InternalError(f"There is no order of {order} units.")
    with localcontext(_CONTEXT):
        divergence = term.divergence(Decimal(order) / ORDER_UNITS)
        units = divergence * CURVE_UNITS + _SLACK
        # R is never below 0, but it may be computed so, within its error.
        return max(0, int(units.to_integral_value(ROUND_CEILING)))
