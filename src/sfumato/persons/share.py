"""Which share of the rows a limit keeps: bounds that hold, from noisy counts of persons.

A person in the bin from a to b has x rows, a <= x <= b. A limit of r keeps min(x, r) of them. For
the true share s the sum of min(x, r) - s x over all persons is 0. So with n_b persons in bin b,

    sum_b n_b A_b(s) >= 0 >= sum_b n_b a_b(s),

A_b(s) and a_b(s) being the largest and smallest value of min(x, r) - s x in the bin. Noisy counts
in place of n_b move the two sums by weighted sums of the noise. Each s is kept for which neither
sum is further on the wrong side of 0 than noise explains. That is a test of each s at fixed
weights: it errs with the stated probability however many persons there are, also if there are none.

The shares are tested on a fixed grid. A_b and a_b decrease in s. So whichever s between two points
of the grid is true, the first inequality holds at the lower point, and the second at the upper one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import LEAST_ALPHA, chernoff_half_widths, tails

N_SHARES = 256
LEAST_LOSS = 1e-4
AT_ONCE = 12  # cells that are tested together, from each end inwards


def share_bounds(
    counts: Array, lowest: Array, highest: Array, law: Law, limit: int, alpha: float
) -> tuple[float, float]:
    """Bounds of the share of rows that a limit keeps.

    Parameters
    ----------
    counts : int64 ndarray of shape (bins,)
        Noisy numbers of persons.
    lowest, highest : int64 ndarrays of shape (bins,)
        The smallest and largest number of rows in each bin.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each count.
    limit : int
        The largest number of rows of a person that is kept.
    alpha : float
        The probability that the share lies outside.

    Returns
    -------
    low, high : float
        0 and 1 at worst; never below ``limit`` as a share of the largest number of rows.
    """
    shares = _grid(limit, int(highest[-1]))
    if len(shares) == 1:
        return 1.0, 1.0
    largest, smallest = _extreme_weights(shares, lowest, highest, limit)
    # Cell i lies between shares[i + 1] and shares[i]: they decrease.
    tests = _Tests(counts, largest[1:], smallest[:-1], law, alpha)
    cells = tests.near()
    first = tests.first_kept(cells)
    if first is None:
        # Noise beyond the bounds of both tests: nothing is claimed.
        return float(shares[-1]), 1.0
    last = tests.first_kept(cells[::-1])
    assert last is not None
    return float(shares[last + 1]), float(shares[first])


@dataclass(frozen=True)
class _Tests:
    """The two tests of each cell of shares, at a one-sided alpha / 2 each.

    Attributes
    ----------
    counts : int64 ndarray of shape (bins,)
    largest, smallest : float64 ndarrays of shape (cells, bins)
        The weights at which the sum may not be negative, and not positive.
    law : DiscreteLaplace or DiscreteGaussian
    alpha : float
    """

    counts: Array
    largest: Array
    smallest: Array
    law: Law
    alpha: float

    def near(self) -> Array:
        """The cells that Chernoff's bound, which is fast and too wide, does not exclude."""
        sums = self._sums(np.arange(len(self.largest)))
        kept = np.ones(len(self.largest), bool)
        for below_zero, weights in zip(sums, (self.largest, self.smallest), strict=True):
            kept &= below_zero <= chernoff_half_widths(self.law, weights, self.alpha)
        return np.flatnonzero(kept)

    def first_kept(self, cells: Array) -> int | None:
        """The first of these cells that neither test excludes; None if there is none."""
        if self.alpha / 2 < LEAST_ALPHA:
            return int(cells[0]) if len(cells) else None
        for start in range(0, len(cells), AT_ONCE):
            some = cells[start : start + AT_ONCE]
            kept = np.ones(len(some), bool)
            for below_zero, weights in zip(
                self._sums(some), (self.largest, self.smallest), strict=True
            ):
                kept &= tails(self.law, weights[some], below_zero) > self.alpha / 2
            if kept.any():
                return int(some[np.argmax(kept)])
        return None

    def _sums(self, cells: Array) -> tuple[Array, Array]:
        """How far each sum is on the wrong side of 0."""
        counts = self.counts.astype(float)
        return -(self.largest[cells] @ counts), self.smallest[cells] @ counts


def _grid(limit: int, most_rows: int) -> Array:
    """Shares from 1 down to the least that is possible, closest to each other near 0 and near 1."""
    least = min(limit / most_rows, 1.0)
    if least >= 1:
        return np.ones(1)
    largest = 1 - min(LEAST_LOSS, (1 - least) / 2)
    odds = np.geomspace(largest / (1 - largest), least / (1 - least), N_SHARES)
    shares = odds / (1 + odds)
    shares[-1] = least  # exactly: rounding may not put it above the true share
    return np.concatenate([[1.0], shares])


def _extreme_weights(
    shares: Array, lowest: Array, highest: Array, limit: int
) -> tuple[Array, Array]:
    """The largest and smallest min(x, r) - s x in each bin: ndarrays of shape (shares, bins).

    It increases in x up to the limit and decreases from there. So it is largest at the limit, or at
    the end of the bin nearest to it, and smallest at one of the two ends.
    """
    nearest = np.clip(limit, lowest, highest)
    largest = np.minimum(nearest, limit) - shares[:, None] * nearest
    at_lowest = np.minimum(lowest, limit) - shares[:, None] * lowest
    at_highest = np.minimum(highest, limit) - shares[:, None] * highest
    return largest, np.minimum(at_lowest, at_highest)
