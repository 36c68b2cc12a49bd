"""Means, medians, variances, ratios and concentration from noisy counts: post-processing, with intervals that cover.

Each statistic theta of the true counts n solves an equation that is linear in n, such as sum n_i (m_i - theta) = 0 for a mean.
With the noisy counts c = n + z in place of n, the left side is a weighted sum of noise at the true theta, whose half-width is
known; so the interval is the set of all theta at which the left side is within that half-width (Fieller's inversion). It covers
with the stated probability however small the counts are, and is as wide as the axis where they say nothing.

What binning hides is added. Each bin is represented by the middle of the values that it can hold, and a value lies within half of
their range of that middle. So a mean is off by at most half of the widest range, a standard deviation too (it is a norm of
deviations), and a median lies in its bin. On an axis without a step a bin can hold all numbers between its edges. On an axis with a
step it can hold the steps in it: where bins are steps each holds one value, and nothing is hidden or added.

The statistics are of the values as they were counted: those beyond the bounds were clamped, and on an axis with a step they are
steps; the upper bound itself counts as the last step below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import EdgesAxis, GridAxis
from sfumato.mechanisms.noise import DiscreteLaplace, Law

GRID = 513
LEVELS = 4
_ROUNDING = 1e-14  # of a sum of products in doubles, relative
Ends: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Bins:
    """Noisy counts along one Interval axis.

    Attributes
    ----------
    lowest, highest : float64 ndarray of shape (bins,)
        The least and the largest value that each bin can hold.
    counts : int64 ndarray of shape (bins,)
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each released count.
    terms : int
        How many released counts each of these is the sum of.
    step : float or None
        The distance between values that occur; None: any number occurs.
    """

    lowest: Array
    highest: Array
    counts: Array
    law: Law
    terms: int = 1
    step: float | None = None

    @classmethod
    def of(cls, axis: GridAxis | EdgesAxis, counts: Array, law: Law, terms: int = 1) -> Bins:
        """The cells of an axis."""
        return cls(*axis.extremes(), counts, law, terms, axis.step)

    @property
    def middles(self) -> Array:
        return np.asarray((self.lowest + self.highest) / 2)

    @property
    def slack(self) -> float:
        """How far a value may lie from the middle of its bin: 0 where every bin holds one value."""
        return float((self.highest - self.lowest).max()) / 2

    @property
    def ends(self) -> Ends:
        """The least and the largest of all values that can occur."""
        return float(self.lowest[0]), float(self.highest[-1])

    def within(self, at: int, share: float) -> float:
        """The value with this share of a bin's rows below it, if the values that it can hold are equally frequent."""
        low, high = float(self.lowest[at]), float(self.highest[at])
        if self.step is None:
            return low + share * (high - low)
        values = round((high - low) / self.step) + 1
        return min(low + min(int(share * values), values - 1) * self.step, high)


def mean(bins: Bins, alpha: float) -> tuple[float, float, float]:
    """The mean of the values, and its interval."""
    low, high = _solve_linear(bins, bins.middles, alpha)
    value = _weighted(bins.counts, bins.middles)
    first, last = bins.ends
    return value, max(first, low - bins.slack), min(last, high + bins.slack)


def variance(bins: Bins, alpha: float) -> tuple[float, float, float]:
    """The variance of the values, and its interval: E (x - a)^2 - (E x - a)^2 with a the public middle of the axis."""
    first, last = bins.ends
    centre = (first + last) / 2
    squares = (bins.middles - centre) ** 2
    mean_low, mean_high = (end - centre for end in _solve_linear(bins, bins.middles, alpha / 2))
    low, high = _solve_linear(bins, squares, alpha / 2)
    nearest = 0.0 if mean_low <= 0 <= mean_high else min(mean_low**2, mean_high**2)
    spread = math.sqrt(max(0.0, high - nearest)) + bins.slack
    least = math.sqrt(max(0.0, low - max(mean_low**2, mean_high**2))) - bins.slack
    most = (last - first) / 2  # no values within bounds deviate more (Popoviciu)
    value = _weighted(bins.counts, squares) - (_weighted(bins.counts, bins.middles) - centre) ** 2
    return min(max(0.0, value), most**2), max(0.0, least) ** 2, min(spread, most) ** 2


def median(bins: Bins, alpha: float) -> tuple[float, float, float]:
    """The median of the values, and its interval, whose ends are the first and the last value that some bins can hold.

    In the true median's bin the rows below are at most half, and with the bin at least half: two weighted sums, each of which
    noise moves beyond its half-width with probability at most alpha / 2 to the side that matters.
    """
    below = np.concatenate([[0], np.cumsum(bins.counts)])
    reach = float(
        bins.law.sum_half_width(np.array([float(bins.terms * len(bins.counts))]), alpha)[0]
    )
    total = below[-1]
    accepted = np.flatnonzero((2 * below[:-1] - total <= reach) & (2 * below[1:] - total >= -reach))
    if not len(accepted):
        accepted = np.arange(len(bins.counts))
    at = min(int(np.argmax(2 * below[1:] >= total)), len(bins.counts) - 1)
    inside = bins.counts[at]
    share = min(max((total / 2 - below[at]) / inside, 0.0), 1.0) if inside > 0 else 0.5
    return (
        bins.within(at, share),
        float(bins.lowest[accepted[0]]),
        float(bins.highest[accepted[-1]]),
    )


def ratio(
    part: int, whole: int, cells: tuple[int, int], law: Law, alpha: float
) -> tuple[float, float, float]:
    """A part over a whole that holds it, and its interval within [0, 1].

    Parameters
    ----------
    part, whole : int
        Sums of noisy counts.
    cells : pair of int
        How many released counts the part is the sum of, and how many more the whole.
    """

    def accepts(p: Array) -> Array:
        effective = cells[0] * (1 - p) ** 2 + cells[1] * p**2
        return np.asarray(
            np.abs(part - p * whole) <= law.sum_half_width(effective, alpha) + _ROUNDING * abs(part)
        )

    low, high = _accepted(accepts, 0.0, 1.0, part / whole if whole > 0 else math.nan)
    value = min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.5
    return value, low, high


def shares(counts: Array, law: Law, alpha: float) -> tuple[Array, Array, Array]:
    """Each count over the total, with intervals: float64 ndarrays like ``counts``.

    The same inversion for all cells at once: the half-width is computed on one grid of shares, fine near 0, and ends are
    rounded outwards to it.
    """
    total = int(counts.sum())
    grid = np.unique(
        np.concatenate([[0.0], np.geomspace(1e-9, 1, 4 * GRID), np.linspace(0, 1, 4 * GRID)])
    )
    reach = law.sum_half_width((1 - grid) ** 2 + (counts.size - 1) * grid**2, alpha)
    above = np.maximum.accumulate(grid * total + reach)
    below = np.minimum.accumulate((grid * total - reach)[::-1])[::-1]
    first = np.searchsorted(above, counts, side="left")
    last = np.searchsorted(below, counts, side="right")
    low, high = grid[np.clip(first - 1, 0, None)], grid[np.clip(last, None, len(grid) - 1)]
    value = np.clip(counts / total, 0, 1) if total > 0 else np.full(counts.shape, 0.5)
    return value, np.minimum(low, high), high


def herfindahl(counts: Array, law: Law, terms: int, alpha: float) -> tuple[float, float, float]:
    """The sum of squared shares, and its interval.

    The root of the sum of squares is a norm, so noise moves it by at most the norm of the noise, whose square has a known
    mean and variance (Cantelli's inequality, alpha / 2); the total is known by its own interval (alpha / 2).
    """
    values, cells = counts.astype(float), counts.size
    spread, fourth = terms * law.variance, _fourth(law, terms)
    noise = cells * spread + math.sqrt(max(0.0, cells * (fourth - spread**2)) * (2 / alpha - 1))
    norm, reach = math.sqrt(float((values**2).sum())), math.sqrt(noise)
    total = float(values.sum())
    around = float(law.sum_half_width(np.array([float(terms * cells)]), alpha / 2)[0])
    low = max(0.0, norm - reach) / max(total + around, 1.0)
    high = (norm + reach) / (total - around) if total > around else 1.0
    squares = float((values**2).sum()) - cells * spread
    value = squares / total**2 if total > 0 else 1.0
    return min(max(value, 1 / cells), 1.0), max(low**2, 1 / cells), min(high**2, 1.0)


def _fourth(law: Law, terms: int) -> float:
    """E (z_1 + ... + z_terms)^4; of the discrete Gaussian a bound that holds for every sigma-subgaussian law."""
    if isinstance(law, DiscreteLaplace):
        q = math.exp(-1 / float(law.scale))
        one = 2 * q * (1 + 10 * q + q * q) / (1 - q) ** 4
    else:
        one = 16 * float(law.sigma_squared) ** 2
    return terms * one + 3 * terms * (terms - 1) * law.variance**2


def _weighted(counts: Array, values: Array) -> float:
    """The mean of values under noisy weights, kept within their range; the middle of it where the weights say nothing."""
    total, low, high = float(counts.sum()), float(values.min()), float(values.max())
    return (
        min(max(float((counts * values).sum()) / total, low), high)
        if total > 0
        else (low + high) / 2
    )


def _solve_linear(bins: Bins, values: Array, alpha: float) -> Ends:
    """All theta at which sum c_i (v_i - theta) is within the half-width of its noise."""
    low, high = float(values.min()), float(values.max())
    size = max(high - low, 1e-300)
    first, total = float((bins.counts * values).sum()), float(bins.counts.sum())
    squares = [float((((values - low) / size) ** power).sum()) for power in (0, 1, 2)]

    def accepts(theta: Array) -> Array:
        t = (theta - low) / size
        effective = bins.terms * np.maximum(squares[2] - 2 * t * squares[1] + t**2 * squares[0], 0)
        reach = size * bins.law.sum_half_width(effective, alpha) * (1 + 1e-9) + _ROUNDING * abs(
            first
        )
        return np.asarray(np.abs(first - theta * total) <= reach)

    return _accepted(accepts, low, high, first / total if total > 0 else math.nan)


def _accepted(accepts: Callable[[Array], Array], low: float, high: float, likely: float) -> Ends:
    """The first and the last accepted number between two, found on a grid, and then on finer ones at both ends, rounded outwards.

    ``likely`` is accepted wherever it lies between the two: what is accepted about it may be narrower than the grid.
    All of it if no number is accepted: then the counts say nothing.
    """
    grid = np.linspace(low, high, GRID)
    if low < likely < high:
        grid = np.sort(np.append(grid, likely))
    held = np.flatnonzero(accepts(grid))
    if not len(held):
        grid = np.linspace(low, high, 64 * GRID)
        held = np.flatnonzero(accepts(grid))
    if not len(held):
        return low, high
    first, last = int(held[0]), int(held[-1])
    left = _finer(accepts, grid[first - 1], grid[first]) if first else low
    right = _finer(accepts, grid[last + 1], grid[last]) if last + 1 < len(grid) else high
    return left, right


def _finer(accepts: Callable[[Array], Array], outside: float, inside: float) -> float:
    for _ in range(LEVELS):
        grid = np.linspace(outside, inside, 65)
        first = int(np.argmax(accepts(grid)))
        outside, inside = float(grid[max(first - 1, 0)]), float(grid[first])
    return outside
