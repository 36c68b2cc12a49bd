"""The distinct answers of the worlds, and how well they can be told apart, in O(n).

The risk of answer i needs S(i) = sum over j of w[j] exp(-rate |v[i] - v[j]|). It is the sum of two
first-order recurrences, one from each side: x[i] = exp(-rate (v[i] - v[i-1])) x[i-1] + w[i]. They
run on chunks side by side. The answers are laid out with one chunk per column, so that each step is
one numpy operation over all chunks. Then the ends of the chunks are chained by the same method, and
carried into the next chunk. Every decay lies in [0, 1] and every term is positive, so nothing
overflows and nothing cancels. Where the weights span more than the range of floats, the same steps
run on logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.basics.numbers import Array

# Up to this many answers are compared pair by pair.
DENSE = 256
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
_LOGS = _Ring(np.add, np.logaddexp, -np.inf)


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
        if len(self.values) <= DENSE:
            exponents = self.log_weight - rate * np.abs(self.values[:, None] - self.values)
            return self._best(np.logaddexp.reduce(exponents, axis=1))
        ring = _PLAIN if np.ptp(self.log_weight) < SPAN else _LOGS
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
    found = np.empty_like(weights)
    found[0] = weights[0]
    # What a value decays to on its way through a column.
    through = decays[0].copy()
    step = np.empty(weights.shape[1])
    for row in range(1, len(weights)):
        ring.times(decays[row], found[row - 1], out=step)
        ring.plus(step, weights[row], out=found[row])
        ring.times(through, decays[row], out=through)
    carry = _chain(through, found[-1], ring)
    for row in range(len(weights)):
        ring.times(carry, decays[row], out=carry)
        ring.plus(found[row], carry, out=found[row])
    return found


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
