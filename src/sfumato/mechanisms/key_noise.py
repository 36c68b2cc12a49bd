"""What the laws that select keys have in common: how often a key is shown, and intervals for it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.scripts import IntegerLaw

LARGEST_THRESHOLD = 2**62


class KeyNoise(IntegerLaw, frozen=True):
    """Noise on the count of a key, and a threshold that the sum must reach."""

    @property
    def threshold(self) -> int:
        """The least noisy count that is shown."""
        raise NotImplementedError

    def tail(self, x: Array) -> Array:
        """P(noise >= x) for integers x: float64 ndarray like ``x``."""
        raise NotImplementedError

    def kept(self, counts: ArrayLike) -> Array:
        """The probability that a key of so many rows is shown: float64 ndarray like ``counts``.

        It is 0 for a key of no rows.
        """
        n = np.asarray(counts)
        return np.where(n > 0, self.tail(self.threshold - n), 0.0)

    def count_kept(self, probability: float) -> int:
        """The least count that is shown with at least this probability."""
        return _least(lambda n: bool(self.kept(n) >= probability))

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|noise| > k) <= alpha."""

        def is_wide_enough(k: int) -> bool:
            return bool(self.tail(np.array(k + 1)) + 1 - self.tail(np.array(-k)) <= alpha)

        return _least(is_wide_enough, start=0)

    def miss_probability(self, a: int) -> float:
        """How often, at most, what is published is off by more than ``a``, whatever the count.

        A key that is not shown is read as a count of 0, as the source's accuracy of stability does.
        The worst count is a + 1: below, not being shown is no error; above, it is rarer.
        """
        lowest = max(self.threshold - a - 1, -a)
        return float(1 - self.tail(np.array(lowest)) + self.tail(np.array(a + 1)))

    def error_bound(self, alpha: float) -> int:
        """The smallest error exceeded with probability at most alpha, whatever the count."""
        return _least(lambda a: self.miss_probability(a) <= alpha, start=0)

    def error_bound_of_cells(self, cells: DiscreteLaplace, alpha: float) -> int:
        """The same for the cells of keys, which are counted with noise of their own.

        A cell of a key that is not shown is read as 0. A cell of n rows lies in a key of at least n
        rows, which is then shown at least as often as a key of n.
        """

        def is_large_enough(a: int) -> bool:
            not_shown = 1 - float(self.kept(a + 1))
            return not_shown + math.exp(cells.log_tail(a)) <= alpha

        return _least(is_large_enough, start=0)

    def interval(self, values: Array, alpha: float) -> tuple[Array, Array]:
        """Intervals for the true counts of keys that were shown: ends, int64 ndarrays like
        ``values``.

        They hold with probability 1 - alpha *given that the key was shown*: keys near the threshold
        were helped by their noise, and an interval that forgets it would miss most of them. n is in
        the interval if and only if neither P(count >= o | shown, n) nor P(count <= o | shown, n) is
        at most alpha / 2; both are monotone in n, because the noise is log-concave.
        """
        seen, back = np.unique(np.asarray(values, np.int64), return_inverse=True)

        def is_large_enough(n: Array) -> Array:
            return ~np.asarray(self.tail(seen - n) <= alpha / 2 * self.tail(self.threshold - n))

        def is_too_large(n: Array) -> Array:
            above = self.tail(seen + 1 - n)
            return np.asarray(above >= (1 - alpha / 2) * self.tail(self.threshold - n))

        # A key that was shown has at least one row; from ``most`` on every n is too large.
        least = np.ones_like(seen)
        most = seen + self.half_width(alpha / 4) + 2
        low = _first(is_large_enough, least, np.maximum(seen, 1))
        high = _first(is_too_large, low, np.maximum(most, low + 1)) - 1
        shape = np.shape(values)
        return low[back].reshape(shape), np.maximum(high, low)[back].reshape(shape)

    def widths(self, values: Array, alpha: float) -> Array:
        """How far the intervals lie from the noisy counts, on the farther side: int64 ndarray."""
        low, high = self.interval(values, alpha)
        return np.asarray(np.maximum(values - low, high - values))


def check_threshold(tau: int) -> None:
    """Refuse a threshold that is out of range."""
    if not 1 <= tau < LARGEST_THRESHOLD:
        raise UsageError(
            "a threshold",
            "it lies between 1 and 2^62",
            "Choose a larger epsilon or delta, or fewer rows per person",
        )


def _least(holds: Callable[[int], bool], start: int = 1) -> int:
    """The least integer from ``start`` on at which something holds that holds from then on."""
    step = 1
    while not holds(start + step):
        step *= 2
    # After a doubling it is known to fail at half the step.
    low = start + step // 2 if step > 1 else start
    high = start + step
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first(holds: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """For each entry the first integer in [low, high] from which on something holds.

    It is known to hold at ``high``.
    """
    low = low.copy()
    high = high.copy()
    while (low < high).any():
        middle = (low + high) // 2
        right = holds(middle)
        low = np.where(right, low, np.minimum(middle + 1, high))
        high = np.where(right, middle, high)
    return low
