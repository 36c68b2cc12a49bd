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

import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import Law
from sfumato.persons.noise_sums import LEAST_ALPHA, chernoff_half_widths, tails

N_SHARES = 256
LEAST_LOSS = 1e-4


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
    above_zero = _may_be_non_negative(counts, largest[1:], law, alpha)
    below_zero = _may_be_non_negative(-counts, smallest[:-1], law, alpha)
    kept = np.flatnonzero(above_zero & below_zero)
    if not len(kept):
        # Noise beyond the bounds of both tests: nothing is claimed.
        return float(shares[-1]), 1.0
    return float(shares[kept[-1] + 1]), float(shares[kept[0]])


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


def _may_be_non_negative(counts: Array, weights: Array, law: Law, alpha: float) -> Array:
    """Whether each weighted sum of the true counts may be 0 or more, at a one-sided alpha / 2."""
    noisy = weights @ counts.astype(float)
    if alpha / 2 < LEAST_ALPHA:
        return np.asarray(noisy >= -chernoff_half_widths(law, weights, alpha))
    return tails(law, weights, -noisy) > alpha / 2
