"""Means, medians, variances, ratios and concentration from noisy counts, with intervals.

All of it is post-processing, which costs nothing.

Each statistic theta of the true counts n solves an equation that is linear in n. For a mean it is
sum n_i (m_i - theta) = 0. With the noisy counts c = n + z in place of n, the left side at the true
theta is a weighted sum of noise, and its half-width is known (``table_noise``). So the interval is
the set of all theta at which the left side is within that half-width (Fieller's inversion). It
holds with the stated probability however small the counts are, and it is as wide as the axis where
they say nothing.

Intervals are widened by what binning hides. Each bin is represented by the middle of the values
that it can hold, and a value lies within half of their range of that middle. So a mean is off by at
most half of the widest range. So is a standard deviation, which is a norm of deviations. A median
lies in its bin. On an axis without a step a bin can hold all numbers between its edges. On an axis
with a step it can hold the steps in it: where each bin is one step, nothing is hidden or added.

The statistics are of the values as they were counted. Values beyond the bounds were clamped. On an
axis with a step, values are steps, and the upper bound itself counts as the last step below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array, roots
from sfumato.domain import EdgesAxis, GridAxis
from sfumato.questions.histogram.table_noise import REST, Pencil, TableNoise

# --- statistics -----------------------------------------------------------------------------------

GRID = 513  # points at which an interval is looked for
MEANS = 3  # at which the interval of a variance is looked for
MEAN_SHARE = 0.1  # of the probability of error of a variance, spent on its mean
_ROUNDING = 1e-14  # of a sum of products in doubles, relative
Ends: TypeAlias = tuple[float, float]


class BinnedCounts(msgspec.Struct, frozen=True):
    """Noisy counts along one Interval axis.

    Attributes
    ----------
    lowest, highest : float64 ndarray of shape (bins,)
        The least and the largest value that each bin can hold.
    counts : int64 ndarray of shape (bins,)
    noise : TableNoise
        The errors of sums of the released counts.
    axis : int
        Which axis of the released table these are along.
    step : float or None
        The distance between values that occur. None: any number occurs.
    """

    lowest: Array
    highest: Array
    counts: Array
    noise: TableNoise
    axis: int = 0
    step: float | None = None

    @classmethod
    def of(
        cls, grid: GridAxis | EdgesAxis, counts: Array, noise: TableNoise, axis: int = 0
    ) -> BinnedCounts:
        """Counts over the cells of an axis."""
        return cls(*grid.extremes(), counts, noise, axis, grid.step)

    @property
    def middles(self) -> Array:
        """The value that represents each bin: float64 ndarray of shape (bins,)."""
        return np.asarray((self.lowest + self.highest) / 2)

    @property
    def slack(self) -> float:
        """The largest distance of a value from the middle of its bin.

        It is 0 if each bin holds one value.
        """
        return float((self.highest - self.lowest).max()) / 2

    @property
    def ends(self) -> Ends:
        """The least and the largest of all values that can occur."""
        return float(self.lowest[0]), float(self.highest[-1])

    def within(self, at: int, share: float) -> float:
        """The value with this share of a bin's rows below it, if they lie evenly in the bin."""
        low = float(self.lowest[at])
        high = float(self.highest[at])
        if self.step is None:
            return low + share * (high - low)
        n_values = round((high - low) / self.step) + 1
        steps_up = min(int(share * n_values), n_values - 1)
        return min(low + steps_up * self.step, high)


def mean(bins: BinnedCounts, alpha: float) -> tuple[float, float, float]:
    """Estimate the mean of the values, and its interval."""
    low, high = _solve_linear(bins, bins.middles, alpha)
    value = _weighted_mean(bins.counts, bins.middles)
    first, last = bins.ends
    return value, max(first, low - bins.slack), min(last, high + bins.slack)


def variance(bins: BinnedCounts, alpha: float) -> tuple[float, float, float]:
    """Estimate the variance of the values, and its interval.

    For the true mean m, the variance is the mean of (x - m)^2. The mean has an interval that misses
    with probability alpha / 10, and for each m in it (x - m)^2 has one that misses with the rest.
    The union of the latter holds.
    """
    first, last = bins.ends
    centre = (first + last) / 2
    ends = _solve_linear(bins, bins.middles, MEAN_SHARE * alpha)
    of_means = [
        _solve_linear(bins, (bins.middles - m) ** 2, (1 - MEAN_SHARE) * alpha)
        for m in np.linspace(*ends, MEANS)
    ]
    lows, highs = np.array(of_means).T
    # Binning moves the standard deviation, not the variance, by at most the slack.
    least = math.sqrt(max(0.0, lows.min() - most_between(lows))) - bins.slack
    most = math.sqrt(max(0.0, highs.max() + most_between(highs))) + bins.slack
    possible = (last - first) / 2  # no values within bounds deviate more (Popoviciu)
    mean_square = (_weighted_mean(bins.counts, bins.middles) - centre) ** 2
    value = _weighted_mean(bins.counts, (bins.middles - centre) ** 2) - mean_square
    low = min(max(0.0, least), possible) ** 2
    high = min(most, possible) ** 2
    return min(max(low, value), high), low, high


def most_between(ends: Array) -> Array:
    """Return by how much an end may be exceeded between two neighbouring means.

    For a function with a bounded second derivative it is an eighth of its second difference.

    Parameters
    ----------
    ends : float64 ndarray of shape (means, ...)
    """
    return np.asarray(np.abs(np.diff(ends, n=2, axis=0)).max(axis=0) / 8)


def median(bins: BinnedCounts, alpha: float) -> tuple[float, float, float]:
    """Estimate the median of the values, and its interval.

    At most half of the rows lie below the bin of the true median, and at least half lie in it or
    below. Both statements are about weighted sums of counts. Noise makes each of them appear false
    with probability at most alpha / 2. The interval holds all values of all bins of which both may
    be true.
    """
    below = np.concatenate([[0], np.cumsum(bins.counts)])
    half_widths = bins.noise.balance_half_widths(bins.axis, len(bins.counts), alpha)
    half_widths = np.broadcast_to(half_widths, len(below))
    total = below[-1]
    at_most_half_below = 2 * below[:-1] - total <= half_widths[:-1]
    at_least_half_with_it = 2 * below[1:] - total >= -half_widths[1:]
    accepted = np.flatnonzero(at_most_half_below & at_least_half_with_it)
    if not len(accepted):
        accepted = np.arange(len(bins.counts))
    at = min(int(np.argmax(2 * below[1:] >= total)), len(bins.counts) - 1)
    inside = bins.counts[at]
    share = 0.5
    if inside > 0:
        share = min(max((total / 2 - below[at]) / inside, 0.0), 1.0)
    low = float(bins.lowest[accepted[0]])
    high = float(bins.highest[accepted[-1]])
    return bins.within(at, share), low, high


def ratio(part: float, whole: float, pencil: Pencil) -> tuple[float, float, float]:
    """Estimate a part over a whole that contains it, and its interval within [0, 1].

    Parameters
    ----------
    part, whole : float
        Sums of noisy counts.
    pencil : callable
        From shares p to half-widths of the noise of part - p whole.
    """

    def accepts(p: Array) -> Array:
        return np.asarray(np.abs(part - p * whole) <= pencil(p) + _ROUNDING * abs(part))

    if whole <= 0:
        low, high = _accepted(accepts, 0.0, 1.0, math.nan)
        return 0.5, low, high
    low, high = _accepted(accepts, 0.0, 1.0, part / whole)
    return min(max(part / whole, 0.0), 1.0), low, high


def shares(counts: Array, noise: TableNoise, alpha: float) -> tuple[Array, Array, Array]:
    """Divide each count by the total, with intervals: float64 ndarrays like ``counts``.

    It is the inversion of ``ratio`` for all cells at once. The half-width is computed on one grid
    of shares, which is fine near 0. The ends of intervals are then looked for between two points of
    the grid, and rounded outwards.
    """
    total = float(counts.sum())
    grid = np.unique(
        np.concatenate([[0.0], np.geomspace(1e-9, 1, 4 * GRID), np.linspace(0, 1, 4 * GRID)])
    )
    half_width = noise.share_half_widths(grid, alpha)
    # A count fits a share if it lies between these two. They are made monotone, so that a binary
    # search finds the ends for all cells. That can only widen an interval.
    falling = grid * total - half_width
    largest_fitting = np.maximum.accumulate(grid * total + half_width)
    least_fitting = np.minimum.accumulate(falling[::-1])[::-1]
    first = np.searchsorted(largest_fitting, counts, side="left")
    last = np.searchsorted(least_fitting, counts, side="right")
    low = grid[np.clip(first - 1, 0, None)]
    high = grid[np.clip(last, None, len(grid) - 1)]
    if total > 0:
        next_to_low = grid[np.clip(first, None, len(grid) - 1)]
        next_to_high = grid[np.clip(last - 1, 0, None)]
        low = _nearer(low, next_to_low, counts, total, noise, alpha)
        high = _nearer(high, next_to_high, counts, total, noise, alpha)
    value = np.clip(counts / total, 0, 1) if total > 0 else np.full(counts.shape, 0.5)
    return value, np.minimum(low, high), high


def _nearer(
    outside: Array, inside: Array, counts: Array, total: float, noise: TableNoise, alpha: float
) -> Array:
    """Move shares that do not fit towards those that do, by halving; the ends 0 and 1 stay."""

    def off_by_at_most(shares: Array, factor: float) -> Array:
        half = noise.share_half_widths(shares.ravel(), alpha).reshape(shares.shape)
        return np.asarray(np.abs(counts - shares * total) <= factor * half)

    fits = off_by_at_most(outside, 1)

    def is_kept(shares: Array) -> Array:
        # A little more than a half-width: between points of a grid it is not smooth.
        return fits | off_by_at_most(shares, 1.002)

    return roots(is_kept, outside, inside, 8)[0]


def herfindahl(
    counts: Array, noise: TableNoise, axis: int, alpha: float
) -> tuple[float, float, float]:
    """Estimate the sum of squared shares of sums along an axis, and its interval.

    The root of a sum of squares is a norm, so noise moves it by at most the norm of the noise,
    which is bounded with probability of error alpha / 2. The total has an interval of its own, with
    alpha / 2.
    """
    values = counts.astype(float)
    second, noise_norm = noise.norm_bound(axis, alpha / 2)
    sum_of_squares = float((values**2).sum())
    norm = math.sqrt(sum_of_squares)
    total = float(values.sum())
    total_half_width = float(noise.sum_half_widths((), alpha / 2))
    low = max(0.0, norm - noise_norm) / max(total + total_half_width, 1.0)
    has_rows = total > total_half_width
    high = (norm + noise_norm) / (total - total_half_width) if has_rows else 1.0
    # Each noisy square is too large by the variance of its noise, on average.
    value = (sum_of_squares - second) / total**2 if total > 0 else 1.0
    even = 1 / counts.size
    return min(max(value, even), 1.0), max(low**2, even), min(high**2, 1.0)


def _weighted_mean(counts: Array, values: Array) -> float:
    """Return the mean of values weighted by noisy counts, kept within their range.

    It is the middle of the range where the counts say nothing.
    """
    total = float(counts.sum())
    low = float(values.min())
    high = float(values.max())
    if total <= 0:
        return (low + high) / 2
    return min(max(float((counts * values).sum()) / total, low), high)


def _solve_linear(bins: BinnedCounts, values: Array, alpha: float) -> Ends:
    """Return all theta at which sum c_i (v_i - theta) is within the half-width of its noise.

    A bound on the half-width, which costs little, leads to ends that may lie too far out. Where
    there are enough rows, ends by the exact law are looked for within these: ``_nearest_end``.
    """
    low = float(values.min())
    high = float(values.max())
    pencil = bins.noise.values_pencil(bins.axis, values, alpha)
    weighted = float((bins.counts * values).sum())
    total = float(bins.counts.sum())
    rounding = _ROUNDING * abs(weighted)

    def accepts(theta: Array) -> Array:
        return np.asarray(np.abs(weighted - theta * total) <= pencil(theta) + rounding)

    likely = weighted / total if total > 0 else math.nan
    left, right = _accepted(accepts, low, high, likely)
    ones = np.ones(len(values))
    of_total = bins.noise.values_half_width(bins.axis, ones, REST * alpha)
    if total <= of_total or not left <= likely <= right:
        return left, right

    def reach(theta: float) -> float:
        half = bins.noise.values_half_width(bins.axis, values - theta, (1 - REST) * alpha)
        return (half + rounding) / total

    return _nearest_end(reach, left, likely), _nearest_end(reach, right, likely)


def _nearest_end(reach: Callable[[float], float], outer: float, likely: float) -> float:
    """Return a number not farther out than ``outer`` beyond which no theta fits the noise.

    Parameters
    ----------
    reach : function of one theta
        How far theta may lie from ``likely``: q(theta) / total, where q is the half-width of the
        noise of sum c_i (v_i - theta) at nearly all of alpha.

    Holds because: the noise of that sum at theta differs from that at an end e by abs(theta - e)
    times the noise of the total, whose half-width at the rest of alpha is below the total. So if e
    lies farther from ``likely`` than it may, then so does every theta beyond e.
    """
    sign = 1.0 if outer > likely else -1.0
    furthest = abs(outer - likely)
    inside = 0.0
    reached = reach(likely)
    # Three or four are usual.
    for _ in range(12):
        if furthest <= max(inside, reached) * 1.004:
            break
        # The next guess lies a little beyond the distance that was expected of the end.
        distance = reached * 1.002
        if not inside < distance < furthest:
            distance = (inside + furthest) / 2
        reached = reach(likely + sign * distance)
        if distance > reached:
            furthest = distance
        else:
            inside = distance
    return likely + sign * furthest


def _accepted(accepts: Callable[[Array], Array], low: float, high: float, likely: float) -> Ends:
    """Return the first and the last accepted number between two, rounded outwards.

    They are found on a grid, and then on finer ones at both ends. If no number is accepted, the
    counts say nothing, and the answer is the whole range.

    Parameters
    ----------
    likely : float
        A number that is accepted if it lies within the range: the interval around it may be
        narrower than the grid. NaN: none is known.
    """
    grid = np.linspace(low, high, GRID)
    if low < likely < high:
        grid = np.sort(np.append(grid, likely))
    accepted = np.flatnonzero(accepts(grid))
    if not len(accepted):
        grid = np.linspace(low, high, 64 * GRID)
        accepted = np.flatnonzero(accepts(grid))
    if not len(accepted):
        return low, high
    first = int(accepted[0])
    last = int(accepted[-1])
    left = _refined(accepts, grid[first - 1], grid[first]) if first else low
    right = _refined(accepts, grid[last + 1], grid[last]) if last + 1 < len(grid) else high
    return left, right


def _refined(accepts: Callable[[Array], Array], outside: float, inside: float) -> float:
    """Where numbers begin to be accepted between two, rounded towards the one that is not."""
    # Each end is refined four times, by a factor of 64 each.
    for _ in range(4):
        grid = np.linspace(outside, inside, 65)
        first = int(np.argmax(accepts(grid)))
        inside = float(grid[first])
        outside = float(grid[max(first - 1, 0)])
    return outside
