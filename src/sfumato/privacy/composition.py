"""How the costs of one account add up: by sums, or by curves.

**Interface.** A `Composition` is fixed when its account is opened, for good: ``stated_curves``
makes the curves that a total states. Their ``terms`` say all that is fixed of them, and
``curves_of(terms)`` reads them.

A *state* is a tuple of whole numbers, all 0 in ``start``. A charge adds a tuple of whole numbers,
none below 0 (``adds``), and nothing else is ever done to a state. So a trigger of SQL can check it
by integer additions.

* ``adds(money, event)``: what a charge adds to the state; of sums the money alone.
* ``after(state, money, event)``: the state after a charge, ``plus(state, adds(money, event))``.
* ``fits(state)``: whether a state is allowed. A charge is, where the state after it is.
* ``left(state)``: what is left, as an amount.
* ``remaining_answers(state, money, event)``: how many more such answers fit.

A `Composition` as such, by sums, has the state (first, second): amounts of its rule, as accounts of
version 0.2 have.

`Curves` has the state (epsilon, delta, rho, S_1, ..., S_n): the sums of epsilons and deltas of
answers that have an epsilon, of the rhos of the others, and of R at each order in units of 2^-40
(``privacy.curves``). The first two are the account's ``spent``.

**Why curves keep (E, D).** Fix two neighbouring tables and one strategy of all who ask: which
questions they ask, at which costs and in which order, may depend on every answer so far. Let P and
Q be the laws of the transcript on the two tables, and L its loss ln(P/Q). The delta at E is E_P[(1
- e^(E - L))_+], the largest P(A) - e^E Q(A) over events A. The tables may stand in either order, as
every R bounds both.

*1. One order.* Let a > 1. Given what was answered before, an answer with D_a(P || Q) at most R adds
a loss l with E_P[e^((a-1) l)] = e^((a-1) D_a) <= e^((a-1) R). So e^((a-1)(L - S)) never rises on
average, S being the sum of R so far, also where R is chosen after earlier answers: R is charged
before the answer is drawn.

*2. Answers that go on.* A stream, or an answer that is paid for and not yet given, has a rest V:
the largest ln E_P[e^((a-1) l)] / (a-1) of the loss l still to come from it, over all that may be
asked of it and all users, given its own history. At its charge V is at most the R that is added to
S. With a step the expectation of e^((a-1)(l + V)) is at most e^((a-1) V) of before, by the meaning
of V, as its secret state is independent of all others given its history. V is at least 0, since
nothing more may be asked. So e^((a-1)(L + sum of V - S)) never rises on average, however streams,
plans and analysts are interleaved. (Vadhan, Zhang 2022; Lecuyer 2021.)

*3. A mixture.* Let M be the sum over orders a_j of w_j e^((a_j - 1)(L + sum of V - S_j)). The
weights are fixed before the first answer and add up to at most 1, so E_P[M] <= 1 at all times: M
never rises on average. Orders or totals that were chosen after an answer would make it another M on
each path.

*4. Deltas.* An (epsilon, delta) answer is a function of this: with probability delta tell which
table it is, else answer by randomised response at epsilon (Kairouz, Oh, Viswanath 2015, Thm 2.1;
for streams Lyu 2022). Let whoever asks see it. The deltas add up to at most D_x (``aside``) on
every path, so the probability of any failure is at most D_x, also where deltas depend on answers.
On paths without failure, P and Q carry the same factors 1 - delta, L is the loss of randomised
response, and steps 1 to 3 hold.

*5. What is allowed.* Let phi(S) be the supremum of (1 - e^(E - L)) / sum_j w_j e^((a_j-1)(L - S_j))
over E < L <= U. U is the sum of epsilons, which no loss passes; it is infinite once a cost in rho
was charged. As V >= 0, the denominator is at most M. So on a path that ends in a state with phi(S)
<= D - D_x, (1 - e^(E - L))_+ is at most (D - D_x) M. Where U <= E the left side is 0. With step 3
its expectation over paths without failure is at most D - D_x, and with step 4 delta at E is at most
D. This holds wherever a path ends, so at every time.

*6. Computed.* With x = L - E, ln of the quotient is concave: ln(1 - e^-x) is, and the logarithm of
a sum of exponentials of affine functions is convex. Its slope is 1/(e^x - 1) less an average of the
a_j - 1. A concave function lies below its tangents, so below the point where a rising and a falling
one meet. If it still rises at a finite U, its value there is the largest. 1e-9 is added for the
rounding of doubles: at the totals allowed, exponents near the maximum are wrong by less than 1e-10.

*Never fewer than by sums*, where the deltas fit D_x: then U <= E.

*What breaks it* (``tests/privacy/test_adversaries.py``): phi up to D, beside deltas up to D / 4:
1.249 D; beside deltas up to D: 1.999 D; by sums, deltas up to D: 1.66 D, by an adversary who fails
on the paths that go badly; weights that add up to 1.2: 1.15 D; a total out of a menu, chosen after
the answers; a stream charged as if it were finished. The rule itself is tight: an adversary reaches
.9995 D.

Source: filters: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021; mixtures of
supermartingales and stopping: Whitehouse, Ramdas, Rogers, Wu 2023; orders: Mironov 2017.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import msgspec

from sfumato.basics import DELTA_UNITS, EPSILON_UNITS, decimal, least_whole, units_down
from sfumato.errors import InternalError, UsageError
from sfumato.privacy.curves import (
    CURVE_UNITS,
    LARGEST_ORDER,
    ORDER_UNITS,
    Event,
    curve,
    worst_event,
)
from sfumato.privacy.measures import (
    LARGEST_EPSILON,
    ApproxDP,
    CentralMeasure,
    Money,
    PureDP,
)

# Sums of whole numbers: what an account has spent, as its composition counts it.
State: TypeAlias = tuple[int, ...]

# Above this, how many more answers fit is not counted.
MOST_ANSWERS = 2**31

# No sum of a state may be larger: 64 bits hold it, with what one more charge adds.
LARGEST_SUM = 2**62


def plus(first: State, second: State) -> State:
    """Add up two states, or a state and what a charge adds to it."""
    return tuple(a + b for a, b in zip(first, second, strict=True))


class Composition(msgspec.Struct, frozen=True):
    """How the costs of one account add up: by sums, which stay within the total one by one.

    It is a valid filter where costs are chosen after earlier answers (Rogers, Roth, Ullman, Vadhan
    2016; Feldman, Zrnic 2021).

    Attributes
    ----------
    rule : str
        The measure of its amounts: "pure", "approx" or "zcdp".
    total : tuple of two int
        In the units of the rule.

    >>> Composition("pure", (10**9, 0)).fits((10**9, 0))
    True
    """

    rule: str
    total: Money

    @property
    def start(self) -> State:
        """The state of an account to which nothing was charged."""
        return 0, 0

    def adds(self, money: Money, event: Event | None) -> State:
        """What a charge adds to the state.

        Parameters
        ----------
        money : tuple of two int
            Its cost in the units of the rule.
        event : Event or None
            Sums need none.
        """
        del event
        return money

    def fits(self, state: State) -> bool:
        """Whether an account may be in a state."""
        return state[0] <= self.total[0] and state[1] <= self.total[1]

    def left(self, state: State) -> Money:
        """What is left, in whole units, component by component, and never below 0.

        By curves: the largest epsilon of one more answer, and what of delta is left for answers
        that have one themselves.
        """
        return max(self.total[0] - state[0], 0), max(self.total[1] - state[1], 0)

    def after(self, state: State, money: Money, event: Event | None) -> State:
        """The state after a charge."""
        return plus(state, self.adds(money, event))

    def remaining_answers(self, state: State, money: Money, event: Event | None) -> int:
        """How many more such answers fit; at most 2^31 are counted."""
        added = self.adds(money, event)

        def is_too_many(answers: int) -> bool:
            return not self.fits(tuple(s + answers * a for s, a in zip(state, added, strict=True)))

        return _last_that_fits(is_too_many, MOST_ANSWERS)


# --- curves ---------------------------------------------------------------------------------------

LARGEST_CURVES_EPSILON = 1000
# The share of delta by which a library stays below what the triggers of a store allow.
MARGIN = 2**-20

# What is added to ln phi: far more than the rounding of doubles at these sizes.
FLOAT_SLACK = 1e-9

FIXED_ORDERS = tuple(1 + 0.5 * 510 ** (i / 11) for i in range(12))
LEAD_WEIGHT = 700
OTHER_WEIGHT = 25
WEIGHT_UNITS = 1000
HALVINGS = 24


class Curves(Composition, frozen=True):
    """Divergences are added at several orders; a mixture of these says what is allowed.

    Attributes
    ----------
    aside : int
        The units of delta that answers with a delta of their own may use together.
    orders : tuple of int
        In units of 2^-10, increasing, above 1.
    weights : tuple of int
        Of each order, in thousandths; together at most 1000.
    """

    aside: int
    orders: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        epsilon, delta = self.total
        is_epsilon = 0 < epsilon <= LARGEST_CURVES_EPSILON * EPSILON_UNITS
        is_delta = 0 <= self.aside < delta < DELTA_UNITS
        is_total = self.rule == "approx" and is_epsilon and is_delta
        are_weights = len(self.orders) == len(self.weights) > 0 and min(self.weights) > 0
        if not (is_total and are_weights and sum(self.weights) <= WEIGHT_UNITS):
            raise ValueError("no composition by curves")
        increase = list(self.orders) == sorted(set(self.orders))
        largest = LARGEST_ORDER * ORDER_UNITS
        if not (increase and self.orders[0] > ORDER_UNITS and self.orders[-1] <= largest):
            raise ValueError("no composition by curves")

    @property
    def terms(self) -> str:
        """All that is fixed of it, as JSON: what an account stores."""
        fields = {
            "total": self.total,
            "composition": "curves",
            "aside": self.aside,
            "orders": self.orders,
            "weights": self.weights,
        }
        return json.dumps(fields, separators=(",", ":"))

    @property
    def start(self) -> State:
        return (0,) * (3 + len(self.orders))

    def adds(self, money: Money, event: Event | None) -> State:
        del money
        if event is None:
            raise InternalError("A charge without an event has no curve.")
        return (*event.money, event.rho_units, *curve(event, self.orders))

    def fits(self, state: State) -> bool:
        if state[1] > self.aside or max(state) > LARGEST_SUM:
            return False
        # Compared as logarithms, with the margin on the side of refusal.
        return self.log_phi(state, self._log_allowed) <= self._log_allowed

    def left(self, state: State) -> Money:
        def is_too_large(units: int) -> bool:
            event = worst_event(PureDP(Fraction(units, EPSILON_UNITS)))
            return not self.fits(self.after(state, event.money, event))

        largest = _last_that_fits(is_too_large, LARGEST_EPSILON * EPSILON_UNITS)
        return largest, max(self.aside - state[1], 0)

    @property
    def _log_allowed(self) -> float:
        delta = (self.total[1] - self.aside) / DELTA_UNITS
        return math.log(delta) - MARGIN

    def log_phi(self, state: State, enough: float = -math.inf) -> float:
        """An upper bound on ln phi: what of delta the answers of a state can use, those aside.

        It is the least that is found, or one that is at most ``enough``.
        """
        # How far the whole loss can exceed E; infinite after a charge in rho.
        end = math.inf if state[2] else (state[0] - self.total[0]) / EPSILON_UNITS
        if end <= 0:
            # By sums: no path of answers tells more than E.
            return -math.inf
        least = math.inf
        for lower, upper in _bounds(_Quotient(self, state), end):
            least = min(least, upper + FLOAT_SLACK)
            if least <= enough or lower > enough > -math.inf:
                break
        return least


def _last_that_fits(is_too_much: Callable[[int], bool], most: int) -> int:
    """The last whole number that is not too much, where 0 may be: 0 then, too."""
    high = 1
    while high < most and not is_too_much(high):
        high *= 2
    high = min(high, most)
    return least_whole(is_too_much, 0, high) - 1 if is_too_much(high) else high


# --- phi ------------------------------------------------------------------------------------------


class _Quotient:
    """ln of (1 - e^-x) / sum_j w_j e^((a_j - 1)(E + x - S_j)) at x > 0, with its slope."""

    def __init__(self, curves: Curves, state: State) -> None:
        epsilon = curves.total[0] / EPSILON_UNITS
        self.rates = [order / ORDER_UNITS - 1 for order in curves.orders]
        self._starts = [
            math.log(weight / WEIGHT_UNITS) + rate * (epsilon - spent / CURVE_UNITS)
            for weight, rate, spent in zip(curves.weights, self.rates, state[3:], strict=True)
        ]

    def at(self, x: float) -> tuple[float, float]:
        """Its value and its slope."""
        exponents = [s + r * x for s, r in zip(self._starts, self.rates, strict=True)]
        largest = max(exponents)
        parts = [math.exp(exponent - largest) for exponent in exponents]
        together = math.fsum(parts)
        rate = math.fsum(p * r for p, r in zip(parts, self.rates, strict=True)) / together
        value = math.log(-math.expm1(-x)) - largest - math.log(together)
        return value, 1 / math.expm1(x) - rate


def _bounds(quotient: _Quotient, end: float) -> Iterator[tuple[float, float]]:
    """Yield ever closer lower and upper bounds on the largest value up to an end.

    The slope is 1 / (e^x - 1) - m with m between the least and the largest rate, so it is positive
    below ln(1 + 1/largest) and negative above ln(1 + 1/least).
    """
    low = math.log1p(1 / max(quotient.rates)) / 2
    high = 2 * math.log1p(1 / min(quotient.rates))
    if end < high:
        value, slope = quotient.at(end)
        if slope >= 0:
            yield value, value
            return
        high = end
        low = min(low, end / 2)
    left = _Tangent(low, *quotient.at(low))
    right = _Tangent(high, *quotient.at(high))
    for _ in range(HALVINGS + 1):
        # The height at which two tangents of a concave function meet bounds it from above.
        apart = right.value - left.value + right.slope * (left.x - right.x)
        step = apart / (left.slope - right.slope)
        height = left.value + left.slope * step
        yield max(left.value, right.value), height
        # The geometric mean: the two ends may lie many powers of ten apart.
        middle = math.sqrt(left.x * right.x)
        tangent = _Tangent(middle, *quotient.at(middle))
        if tangent.slope >= 0:
            left = tangent
        else:
            right = tangent


class _Tangent(NamedTuple):
    """Where it touches a function, and with which slope."""

    x: float
    value: float
    slope: float


# --- opening --------------------------------------------------------------------------------------


def opened_curves(epsilon: Fraction, delta: Fraction, aside: Fraction | None = None) -> Curves:
    """The composition by curves of a new account: its orders and weights.

    Parameters
    ----------
    epsilon, delta : Fraction
        The account's total.
    aside : Fraction or None
        What of delta is for answers that have one themselves; None: a quarter.

    >>> composition = opened_curves(Fraction(2), Fraction(1, 10**6))
    >>> event = Event.read("laplace(1, 50)")
    >>> composition.remaining_answers(composition.start, event.money, event)
    423
    """
    total = units_down(epsilon, EPSILON_UNITS), units_down(delta, DELTA_UNITS)
    kept = units_down(delta / 4 if aside is None else aside, DELTA_UNITS)
    if not 0 < total[0] <= LARGEST_CURVES_EPSILON * EPSILON_UNITS:
        raise UsageError(
            f"an account by curves of epsilon = {decimal(epsilon)}",
            f"curves count from one unit to {LARGEST_CURVES_EPSILON:,}",
            "Choose a smaller total, or composition='sum'",
        )
    if not 0 <= kept < total[1]:
        raise UsageError(
            f"an account by curves of delta = {decimal(delta)}",
            "curves need a delta above 0, more than is set aside of it",
            "Give the total a delta far below one over the number of persons, such as 1e-6",
        )
    lead = _gaussian_order(total[0] / EPSILON_UNITS, (total[1] - kept) / DELTA_UNITS)
    weights = dict.fromkeys(map(_order_units, FIXED_ORDERS), OTHER_WEIGHT)
    weights[lead] = weights.get(lead, 0) + LEAD_WEIGHT
    orders = tuple(sorted(weights))
    in_order = tuple(weights[order] for order in orders)
    return Curves("approx", total, kept, orders, in_order)


def _order_units(order: float) -> int:
    units = max(round(order * ORDER_UNITS), ORDER_UNITS + 1)
    return min(units, LARGEST_ORDER * ORDER_UNITS)


def _gaussian_order(epsilon: float, delta: float) -> int:
    """The order at which an account in rho that implies (epsilon, delta) is exhausted."""

    def rho(log_rate: float) -> float:
        rate = math.exp(log_rate)
        order = 1 + rate
        needed = -math.log(delta) + rate * math.log1p(-1 / order) - math.log(order)
        return (epsilon - needed / rate) / order

    # Any order is valid, so an imperfect search costs tightness and no privacy.
    rates = [i / 256 for i in range(-7 * 256, 11 * 256)]
    return _order_units(1 + math.exp(max(rates, key=rho)))


def stated_curves(total: CentralMeasure) -> Curves | None:
    """The curves that a total states: of its account, or of what that may be widened to.

    None: the account adds up for good.

    Raises
    ------
    UsageError
        If the account, once spent, would not fit what it is to be widened to.
    """
    if isinstance(total, ApproxDP):
        is_by_curves = total.composition == "curves"
        return opened_curves(total.epsilon, total.delta, total.aside) if is_by_curves else None
    if total.widens_to is None:
        return None
    target = opened_curves(total.widens_to.epsilon, total.widens_to.delta, total.widens_to.aside)
    # A sum of charges adds at no order more than one charge of the whole: of rho, R is linear; of
    # pure epsilons, ``pure(total)`` is the worst of all that is private at the total, and so of
    # them together. So where the whole fits, each part of it fits, too.
    whole = worst_event(total)
    if not target.fits(target.after(target.start, whole.money, whole)):
        raise UsageError(
            f"an account that widens to {total.widens_to}",
            "all that it may spend before would not fit there",
            "State a larger epsilon or delta to widen to",
        )
    return target


@functools.lru_cache(maxsize=256)
def curves_of(terms: str) -> Curves:
    """Read the terms of curves.

    Raises
    ------
    UsageError
        If they are not terms that this version knows.

    >>> curves_of(opened_curves(Fraction(2), Fraction(1, 10**6)).terms).total
    (2000000000, 1000000000000)
    """
    try:
        fields = json.loads(terms)
        total, orders, weights = (tuple(fields[name]) for name in ("total", "orders", "weights"))
        curves = Curves("approx", total, fields["aside"], orders, weights)
    except (ValueError, TypeError, KeyError):
        curves = None
    if curves is None or curves.terms != terms:
        raise UsageError(
            "the composition of an account",
            "its terms are not ones that this version knows",
            "Use the version that wrote them",
        )
    return curves
