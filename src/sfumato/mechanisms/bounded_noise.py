"""Noise that never exceeds a stated bound: discrete Laplace noise, truncated.

The noise Z on every count has P(Z = x) = A q^abs(x) for abs(x) <= k, and is never beyond k. Here
q = e^(-1/b) with b = L / epsilon, where L bounds how far one person moves all counts together, in
L1. With F(x) = P(Z <= x), the k that is taken is the least one with

    1 - (F(k - c)^m F(k - s))^w <= delta,    where L / w = m c + s, 0 <= s < c.

c bounds how far one person moves any one count; w is 1 if persons are added or removed, and 2 if
they are replaced. Without limits by cell c is the number of rows per person: m = 1 and s = 0. With
t(a) = 1 - F(k - a), the mass of the a largest values, and a <= k,

    t(a) = (q^(k - a + 1) - q^(k + 1)) / (1 + q - 2 q^(k + 1)).

Guarantee: (epsilon, delta) for the counts of disjoint public cells, together.
Holds because: let a person move cell i by a_i, with L1 norm at most L. Take an output that has a
positive probability on both sides, which is a product over cells. Each factor of the quotient is
q^(abs(x - a_i) - abs(x)), so the quotient is at most q^-L = e^epsilon. All other outputs have
probability 0 on one side: the noise on some cell is among the abs(a_i) values that are farthest
away from a_i. Noise is independent and symmetric, so these have the probability 1 - prod F(k -
abs(a_i)), on either side. Then (epsilon, delta) holds with this as delta. No smaller
delta would do where the L1 norm is L, because the quotient then is e^epsilon somewhere.
*The worst way to move.* F is log-concave, because the masses are (Prekopa 1973). So g(a) = -ln F(k
- a) is convex with g(0) = 0. Among all a_i >= 0 with a sum of at most m c + s, each at most c, the
sum of g(a_i) is largest where m of them are c and one is s: all other ways are majorised by this
one (Hardy, Littlewood, Polya 1929). If persons are added or removed, all a_i have one sign. If they
are replaced, rows leave cells and come into others: the positive a_i add up to at most L / 2, and
the negative ones too. How many cells there are does not matter, once there is room for this.
Limits on the L2 norm forbid some of these ways and allow no others, so they are safe, too.
*Arithmetic.* k is found between integers that enclose the powers of q, all rounded so that delta
is too large. Draws are those of the discrete Laplace law that lie within k; the others are drawn
again, which happens by their own values alone. So the law is exact, and no draw is beyond k.
Source: Geng, Ding, Guo, Kumar, AISTATS 2020 (truncated Laplace); Ghosh, Roughgarden, Sundararajan
2009 (on the integers). The worst case over several cells is proved here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array, decimal, least_whole
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteLaplace, IntegerLaw, Law
from sfumato.privacy import ApproxDP, CentralMeasure, Unit
from sfumato.random import bits, discrete
from sfumato.random.inversion import exp_minus

# The largest bound: a count that may be farther off says nothing.
MOST_BOUND = 10**9


class TruncatedLaplace(
    IntegerLaw, frozen=True, tag="truncated-laplace", forbid_unknown_fields=True
):
    """P(x) proportional to exp(-|x| / scale) on the integers from -bound to bound.

    >>> law = TruncatedLaplace(Fraction(1), 14)
    >>> law.half_width(0.05), law.half_width(1e-9)
    (3, 14)
    """

    scale: Fraction
    bound: int

    def __post_init__(self) -> None:
        discrete.check_scale(self.scale, "scale")
        if not 1 <= self.bound <= MOST_BOUND:
            raise UsageError(
                f"noise within +-{self.bound}",
                f"the bound is a whole number from 1 to {MOST_BOUND:,}",
                "Choose another bound",
            )

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        drawn = discrete.laplace(self.scale, size, noise)
        beyond = np.flatnonzero(np.abs(drawn) > self.bound)
        while beyond.size:
            drawn[beyond] = discrete.laplace(self.scale, beyond.size, noise)
            beyond = beyond[np.abs(drawn[beyond]) > self.bound]
        return drawn

    @property
    def without_bound(self) -> DiscreteLaplace:
        """The law of which this is the part within the bound.

        A draw of this law is as far from 0 or farther, in law. So E cosh(t Z), and what bounds of
        sums make of it, is at least as large.
        """
        return DiscreteLaplace(self.scale)

    @property
    def variance(self) -> float:
        return self.moment(2)

    def moment(self, power: int) -> float:
        """E Z^power, for an even power; of wide laws that of the density, which is as good."""
        b = float(self.scale)
        # Moments of narrow laws are sums over all values.
        if self.bound <= 2**20:
            x = np.arange(1, self.bound + 1, dtype=float)
            mass = np.exp(-x / b)
            one_side = (mass * x**power).sum()
            return float(2 * one_side / (1 + 2 * mass.sum()))
        from scipy.special import gammainc

        u = (self.bound + 0.5) / b
        within = float(gammainc(power + 1, u) / -math.expm1(-u))
        return float(b**power * math.factorial(power) * within)

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|Z| > k) <= alpha; never above the bound."""
        # P(|Z| > j) = 2 (q^(j + 1) - q^(k + 1)) / (1 + q - 2 q^(k + 1)), solved for j.
        b = float(self.scale)
        beyond = math.exp(-(self.bound + 1) / b)
        whole = 1 + math.exp(-1 / b) - 2 * beyond
        power = alpha * whole / 2 + beyond
        guess = math.ceil(-b * math.log(power) - 1)
        # The logarithm of floats is a guess from below; the exact tail decides, upwards.
        k = min(max(0, guess), self.bound)
        while k < self.bound and self.tail(k) > alpha:
            k += 1
        while k > 0 and self.tail(k - 1) <= alpha:
            k -= 1
        return k

    def tail(self, k: int) -> float:
        """P(|Z| > k) for an integer k >= 0."""
        if k >= self.bound:
            return 0.0
        b = float(self.scale)
        beyond = math.exp(-(self.bound + 1) / b)
        # The difference of two powers without cancellation.
        missing = -math.expm1(-(self.bound - k) / b)
        power = math.exp(-(k + 1) / b) * missing
        return 2 * power / (1 + math.exp(-1 / b) - 2 * beyond)

    def sum_half_width(self, effective: Array, alpha: float) -> Array:
        """Half-widths of weighted sums of independent draws; see ``DiscreteLaplace``.

        The least of two bounds: Chernoff's of the law without a bound, and Hoeffding's.
        """
        of_laplace = self.without_bound.sum_half_width(effective, alpha)
        squares = np.asarray(effective, dtype=float)
        need = math.log(2 / alpha)
        of_bounded = self.bound * np.sqrt(2 * squares * need)
        return np.asarray(np.minimum(of_laplace, of_bounded))

    def transform(self, angles: Array) -> Array:
        """The characteristic function: float64 ndarray like ``angles``. It may be negative.

        It is (1 - q^2 - 2 q^(k + 1) (cos (k + 1) t - q cos k t)) / (1 - 2 q cos t + q^2), over its
        value at 0: the real part of a geometric sum.
        """
        b = float(self.scale)
        q = math.exp(-1 / b)
        beyond = math.exp(-(self.bound + 1) / b)
        missing = -math.expm1(-1 / b)
        ends = np.cos((self.bound + 1) * angles) - q * np.cos(self.bound * angles)
        above = missing * (1 + q) - 2 * beyond * ends
        sines = np.sin(angles / 2) ** 2
        below = missing**2 + 4 * q * sines
        return np.asarray(above / below * missing / (1 + q - 2 * beyond))

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {decimal(self.scale)} within +-{self.bound:,}"


# The noise on counts of cells that are known beforehand.
CountLaw: TypeAlias = Law | TruncatedLaplace


def bounded_law(cost: CentralMeasure, unit: Unit) -> TruncatedLaplace:
    """Choose the noise of least bound for counts of disjoint cells.

    Parameters
    ----------
    cost : ApproxDP
        With a delta below 1/2 and below epsilon / 2.
    unit : Unit

    Guarantee: ``cost``, for counts of disjoint public cells of which one person moves each by at
    most ``unit.largest_cell`` and all together by at most ``unit.counts_l1`` in L1.
    Holds because: see the top of this module.

    Raises
    ------
    UsageError
        If the cost has no delta, or delta or the bound is too large.

    >>> bounded_law(ApproxDP("1", "1e-6"), Unit(rows_per_person=4))
    TruncatedLaplace(scale=Fraction(4, 1), bound=55)
    """
    if not isinstance(cost, ApproxDP) or not cost.delta:
        raise UsageError(
            f"noise='bounded' at {cost}",
            "noise that never exceeds a bound needs a delta",
            "Give epsilon and delta, such as delta=1e-6, from a budget that has a delta",
        )
    if cost.delta >= min(Fraction(1, 2), cost.epsilon / 2):
        raise UsageError(
            f"noise='bounded' at {cost}",
            "delta must be below 1/2, and below half of epsilon",
            "Choose a delta such as 1e-6",
        )
    sides = 2 if unit.neighbours == "replace" else 1
    scale = unit.counts_l1 / cost.epsilon
    return _of_least_bound(scale, cost.delta, (unit.rows_counted, unit.largest_cell, sides))


# How many rows come or go at most, how many in one cell, and 2 if some come and others go.
Moves: TypeAlias = tuple[int, int, int]


@lru_cache(maxsize=256)
def _of_least_bound(scale: Fraction, delta: Fraction, moves: Moves) -> TruncatedLaplace:
    rows, largest, sides = moves
    b = float(scale)
    # Floats give a guess, from the sum of all masses beyond; integers decide.
    log_both = math.log1p(math.exp(-1 / b))
    log_times = math.log(sides * rows / largest) - log_both
    log_delta = math.log(delta.numerator) - math.log(delta.denominator)
    log_moved = math.log(-math.expm1(-largest / b))
    guess = largest + b * (log_times + log_moved - log_delta)
    if guess > MOST_BOUND:
        raise UsageError(
            f"noise='bounded' of scale {decimal(scale, 6)}",
            f"its bound would be above {MOST_BOUND:,}, and a count within it says nothing",
            "Choose a larger epsilon, or fewer rows per person",
        )
    # The larger the bound, the less delta. No bound below the largest move is enough.
    enough = max(largest, math.floor(guess))
    while not _is_safe(enough, scale, delta, moves):
        enough += max(1, enough // 16)
    too_small = enough - 2
    while too_small >= largest and _is_safe(too_small, scale, delta, moves):
        too_small -= max(1, too_small // 16)
    too_small = max(too_small, largest - 1)
    bound = least_whole(lambda tried: _is_safe(tried, scale, delta, moves), too_small, enough)
    return TruncatedLaplace(scale, bound)


def _is_safe(bound: int, scale: Fraction, delta: Fraction, moves: Moves) -> bool:
    """Whether outputs that one side alone has certainly have a probability of at most delta."""
    rows, largest, sides = moves
    # Masses as small as q^bound, of so many cells, still show at this depth.
    depth = 256 + delta.denominator.bit_length() + rows.bit_length()
    depth += math.ceil(1.5 * min(bound / float(scale), 1e4))
    unity = 1 << depth
    full, rest = divmod(rows, largest)
    # Every factor is rounded down, so what is kept is understated, and delta overstated.
    kept = _power(_within(bound, largest, scale, depth), full, depth)
    if rest:
        kept = kept * _within(bound, rest, scale, depth) >> depth
    kept = _power(kept, sides, depth)
    return unity - kept <= delta * unity


def _within(bound: int, moved: int, scale: Fraction, depth: int) -> int:
    """F(k - moved) from below, at ``depth`` bits."""
    unity = 1 << depth
    largest_values = exp_minus((bound - moved + 1) / scale, depth)[1]
    q = exp_minus(1 / scale, depth)[0]
    beyond_low, beyond_high = exp_minus((bound + 1) / scale, depth)
    whole = unity + q - 2 * beyond_high
    return unity + (-(largest_values - beyond_low) << depth) // whole


def _power(value: int, times: int, depth: int) -> int:
    """A share to a power, rounded down."""
    power = 1 << depth
    while times:
        if times & 1:
            power = power * value >> depth
        value = value * value >> depth
        times >>= 1
    return power


def unit_within(cost: CentralMeasure, unit: Unit, cells: int) -> Unit:
    """The unit on which bounded noise on counts of so many known cells rests.

    It is ``unit`` itself, unless the number of cells allows less noise: see ``Unit.on_cells``.
    """
    within = unit.on_cells(cells)
    if within == unit or bounded_law(cost, within) == bounded_law(cost, unit):
        return unit
    return within


def farthest(law: CountLaw, draws: float) -> float:
    """How far the sum of so many draws can be from 0, at most."""
    return law.bound * draws if isinstance(law, TruncatedLaplace) else math.inf
