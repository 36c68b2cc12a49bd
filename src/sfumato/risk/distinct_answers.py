"""The distinct answers of the worlds, how well they can be told apart, and the epsilon for a risk.

*Sums in O(n)* (``Answers``).

The risk of answer i needs S(i) = sum over j of w[j] exp(-rate |v[i] - v[j]|). It is the sum of two
first-order recurrences, one from each side: x[i] = exp(-rate (v[i] - v[i-1])) x[i-1] + w[i]. They
run on chunks side by side. The answers are laid out with one chunk per column, so that each step is
one numpy operation over all chunks. Then the ends of the chunks are chained by the same method, and
carried into the next chunk. Every decay lies in [0, 1] and every term is positive, so nothing
overflows and nothing cancels. Where the weights span more than the range of floats, the same steps
run on logarithms.

*The search for the largest epsilon within a risk* (``tight_epsilon``), in a few scans of all
answers.

Every S_i(rate) falls with the rate, and ln S_i is convex. The risk is within rho as long as every
S_i is at least top_i / rho. Each answer alone thus allows rates up to a root of its own, and the
largest rate is the least of these roots.

The search starts from the loose bound, which is safe. It scans for the worst answer, goes to its
root and scans again. The rate can only fall, and when the same answer is the worst again, its root
is the least. A root takes a few passes over one answer's distances: Newton's method, which by
convexity is monotone from the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.basics import Array, Exactly, probability, root
from sfumato.errors import Infeasible, InternalError

# --- answers --------------------------------------------------------------------------------------

CHUNK = 64
# The widest range of ln of the weights for which plain floats are used.
SPAN = 500.0


class Worst(NamedTuple):
    """The index of the worst answer, and the logarithm of its risk."""

    at: int
    log_risk: float


class _Ring(NamedTuple):
    """How numbers are multiplied and added: plain numbers, or logarithms of them."""

    times: np.ufunc
    plus: np.ufunc
    zero: float


_PLAIN = _Ring(np.multiply, np.add, 0.0)


@dataclass(frozen=True, eq=False)
class Answers:
    """The distinct answers of the worlds in ascending order, and the prior of each.

    Attributes
    ----------
    values : float64 ndarray of shape (answers,)
        Only differences matter, so a common shift may be missing.
    log_weight : float64 ndarray of shape (answers,)
        ln of the sum of the weights of the worlds with that answer. Under a uniform prior every
        world has weight 1.
    log_top : float64 ndarray of shape (answers,) or None
        ln of the largest weight among these worlds. None: 0, as under a uniform prior.
    """

    values: Array
    log_weight: Array
    log_top: Array | None = None

    @property
    def top(self) -> Array | float:
        return 0.0 if self.log_top is None else self.log_top

    @cached_property
    def log_total(self) -> float:
        return log_sum(self.log_weight)

    @cached_property
    def at_zero(self) -> Worst:
        """The worst case of an answer that says nothing."""
        best = 0 if self.log_top is None else int(np.argmax(self.log_top))
        return Worst(best, self.top_of(best) - self.log_total)

    @cached_property
    def at_infinity(self) -> Worst:
        """The worst case of an exact answer."""
        gain = self.top - self.log_weight
        best = int(np.argmax(gain))
        return Worst(best, float(gain[best]))

    def top_of(self, index: int) -> float:
        """Return ln of the largest weight among the worlds of one answer."""
        return 0.0 if self.log_top is None else float(self.log_top[index])

    def limit(self, index: int) -> float:
        """Return ln of the risk at one answer as the rate grows."""
        return self.top_of(index) - float(self.log_weight[index])

    def worst(self, rate: float) -> Worst:
        """Return the worst case over all outputs and worlds; ``rate`` is epsilon / sensitivity."""
        if rate == 0 or len(self.values) == 1:
            return self.at_zero
        # So few answers are compared pair by pair.
        if len(self.values) <= 256:
            exponents = self.log_weight - rate * np.abs(self.values[:, None] - self.values)
            return self._best(np.logaddexp.reduce(exponents, axis=1))
        ring = _PLAIN if np.ptp(self.log_weight) < SPAN else _Ring(np.add, np.logaddexp, -np.inf)
        sums = self._sums(rate, ring)
        if ring is _PLAIN:
            return self._best_plain(sums)
        return self._best(_flat(sums, len(self.values)))

    def _best(self, log_sums: Array) -> Worst:
        gain = self.top - log_sums
        best = int(np.argmax(gain))
        return Worst(best, float(gain[best]))

    def _best_plain(self, sums: Array) -> Worst:
        """Return the worst case from sums that are not logarithms.

        With equal tops the least sum is the worst, so that only one logarithm is taken.
        """
        base = float(self.log_weight.max())
        if self.log_top is not None:
            return self._best(np.log(_flat(sums, len(self.values))) + base)
        rows, columns = sums.shape
        # The last column ends in padding, which must not be the least.
        in_last = len(self.values) - (columns - 1) * rows
        sums[in_last:, -1] = np.inf
        row, column = divmod(int(np.argmin(sums)), columns)
        return Worst(column * rows + row, -float(np.log(sums[row, column])) - base)

    def _sums(self, rate: float, ring: _Ring) -> Array:
        decays = self._gaps * -rate
        weights = self._weights[ring.zero]
        if ring is _PLAIN:
            np.exp(decays, out=decays)
        total = _scan(decays[:-1], weights, ring)
        # From the other side: rows and columns are reversed, scanned and reversed again.
        reversed_sums = _scan(decays[:0:-1, ::-1], weights[::-1, ::-1], ring)
        right = reversed_sums[::-1, ::-1]
        # Each answer counts once, so that the right side is added as it reaches the answer before.
        for row in range(len(weights) - 1):
            ring.plus(total[row], ring.times(decays[row + 1], right[row + 1]), out=total[row])
        following = np.append(right[0, 1:], ring.zero)
        total[-1] = ring.plus(total[-1], ring.times(decays[-1], following))
        return total

    @cached_property
    def _gaps(self) -> Array:
        """Distances from the answer before: an ndarray of shape (chunk + 1, chunks).

        The last row holds the distance at which the next chunk begins.
        """
        gaps = _laid_out(np.diff(self.values, prepend=-np.inf), np.inf)
        return np.vstack([gaps, np.append(gaps[0, 1:], np.inf)])

    @cached_property
    def _weights(self) -> dict[float, Array]:
        if np.ptp(self.log_weight) < SPAN:
            return {0.0: _laid_out(np.exp(self.log_weight - self.log_weight.max()), 0.0)}
        return {-np.inf: _laid_out(self.log_weight, -np.inf)}

    def one(self, index: int, rate: float) -> tuple[float, float]:
        """Return ln S of one answer at a rate, and its slope in the rate.

        ln S is a log-sum-exp of lines, so it is convex and decreasing.
        """
        distances = np.abs(self.values - self.values[index])
        terms = distances * -rate
        terms += self.log_weight
        peak = float(terms.max())
        terms -= peak
        np.exp(terms, out=terms)
        total = float(terms.sum())
        return peak + float(np.log(total)), -float(terms @ distances) / total


def log_sum(logs: Array) -> float:
    """Return ln of the sum of exponentials."""
    peak = float(logs.max())
    return peak + float(np.log(np.exp(logs - peak).sum()))


def _laid_out(values: Array, padding: float) -> Array:
    """Lay out chunks as columns: an ndarray of shape (chunk, chunks) with contiguous rows."""
    columns = -(-len(values) // CHUNK)
    padded = np.full(columns * CHUNK, padding)
    padded[: len(values)] = values
    return np.ascontiguousarray(padded.reshape(columns, CHUNK).T)


def _flat(laid: Array, size: int) -> Array:
    return laid.T.reshape(-1)[:size]


def _scan(decays: Array, weights: Array, ring: _Ring) -> Array:
    """Run x[i] = decay[i] x[i-1] + weight[i] down the columns, one column after another."""
    sums = np.empty_like(weights)
    sums[0] = weights[0]
    # What a value decays to on its way through a column.
    through = decays[0].copy()
    step = np.empty(weights.shape[1])
    for row in range(1, len(weights)):
        ring.times(decays[row], sums[row - 1], out=step)
        ring.plus(step, weights[row], out=sums[row])
        ring.times(through, decays[row], out=through)
    carry = _chain(through, sums[-1], ring)
    for row in range(len(weights)):
        ring.times(carry, decays[row], out=carry)
        ring.plus(sums[row], carry, out=sums[row])
    return sums


def _chain(decays: Array, weights: Array, ring: _Ring) -> Array:
    """Return what enters each column from those before it."""
    if len(weights) > CHUNK:
        # Padding has weight zero, so that its decay changes nothing.
        ends = _scan(_laid_out(decays, ring.zero), _laid_out(weights, ring.zero), ring)
        return np.append(ring.zero, _flat(ends, len(weights))[:-1])
    entering = np.empty_like(weights)
    x = ring.zero
    for i in range(len(weights)):
        entering[i] = x
        x = ring.plus(ring.times(decays[i], x), weights[i])
    return entering


# --- the search -----------------------------------------------------------------------------------

# The relative width of the bracket whose lower end is returned.
CLOSE = 1e-9
# A risk that exceeds a limit by less than this meets it.
ROUNDING = 1e-12
MOST_SCANS = 200


def read_risk(risk: Exactly) -> float:
    """Read a risk in (0, 1)."""
    return float(probability(risk, "risk"))


def loose_epsilon(odds: float, slope: float, risk: float) -> float:
    """Return the epsilon at which the loose bound reaches the risk.

    ``odds`` is ln of the odds against the likeliest world, and ``slope`` is Dv / Df.
    """
    gain = odds + math.log(risk) - math.log1p(-risk)
    if gain < -ROUNDING:
        log_prior = -math.log1p(math.exp(odds)) if odds < 700 else -odds
        raise too_low(risk, math.exp(log_prior))
    return math.inf if slope == 0 else max(gain, 0.0) / slope


def too_low(risk: float, prior: float) -> Infeasible:
    """Return the refusal of a risk below what the adversary believes beforehand."""
    enough = f"Allow a risk of at least {prior:.6g}, which is {prior - risk:.6g} more"
    return Infeasible(
        f"a disclosure risk of {risk:.6g}",
        f"the likeliest world has a probability of {prior:.6g} before anything is published",
        f"{enough}, or take a larger universe",
    )


def tight_epsilon(answers: Answers, scale: float, risk: float) -> float:
    """Return the largest epsilon whose tight bound is within the risk."""
    goal = math.log(risk)
    if answers.at_zero.log_risk > goal + ROUNDING:
        raise too_low(risk, math.exp(answers.at_zero.log_risk))
    if len(answers.values) == 1 or scale == 0 or answers.at_infinity.log_risk <= goal + ROUNDING:
        return math.inf
    if answers.at_zero.log_risk >= goal - ROUNDING:
        return 0.0
    return _settle(answers, scale, risk, _largest_rate(answers, goal) * scale)


def _largest_rate(answers: Answers, goal: float) -> float:
    """Return the least of the roots of the single answers."""
    apart = float(answers.values[-1] - answers.values[0])
    top = answers.at_zero.log_risk
    # The rate at which the loose bound reaches the goal: no answer's risk is above it there.
    log_odds = math.log(-math.expm1(top)) - top
    safe = max((log_odds + goal - math.log1p(-math.exp(goal))) / apart, 0.0)
    index = answers.worst(safe).at
    if answers.limit(index) <= goal + ROUNDING:
        # This answer's risk never reaches the goal; that of the worst exact answer does.
        index = answers.at_infinity.at
    rate = _root(answers, index, goal, safe, safe)
    for _ in range(MOST_SCANS):
        worst = answers.worst(rate)
        if worst.at == index or worst.log_risk <= goal + ROUNDING:
            return rate
        index = worst.at
        rate = _root(answers, index, goal, safe, rate)
    raise InternalError("the search for epsilon did not end: please report it")


def _root(answers: Answers, index: int, goal: float, safe: float, start: float) -> float:
    """Return the rate at which one answer's risk reaches the goal."""
    top = answers.top_of(index)
    rate = start
    for _ in range(MOST_SCANS):
        log_sum, slope = answers.one(index, rate)
        excess = log_sum - (top - goal)
        # All other answers have decayed to nothing, so no larger rate changes the sum any more.
        if slope == 0:
            break
        step = -excess / slope
        if abs(excess) <= 1e-13 or abs(step) <= 1e-14 * rate:
            break
        # No root lies below ``safe``: there the loose bound already keeps every risk within the
        # goal.
        rate = max(rate + step, safe)
    return rate


def _settle(answers: Answers, scale: float, limit: float, epsilon: float) -> float:
    """Return the lower end of a bracket of relative width 1e-9 around the largest epsilon.

    The risk at the lower end, as it is computed, is within the limit; that at the upper end is not.
    """

    def within(level: float) -> bool:
        return math.exp(answers.worst(level / scale).log_risk) <= limit

    low = epsilon
    high = math.inf
    step = 1e-13
    while not within(low):
        high = low
        low *= 1 - step
        step *= 8
    if high > low * (1 + CLOSE):
        step = CLOSE / 2
        high = min(high, low * (1 + step))
        while within(high) and step < 1:
            low = high
            step *= 4
            high = low * (1 + step)
    return root(lambda level: not within(level), low, high, CLOSE)[0]
