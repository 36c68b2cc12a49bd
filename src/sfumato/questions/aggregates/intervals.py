"""Intervals of means, variances and sums from noisy sums alone.

They hold at any number of rows, also for a group of none.

For the true mean m, in units of the value's range, T(m) = sum_j (w_j - m) F_j is noise and nothing
else. Let q(m) be the (1 - alpha) quantile of the absolute value of that noise. The set of all m
with abs(T(m)) <= q(m) contains the truth with probability 1 - alpha, whatever the data are (Fieller
1954, for ratios). The interval is the hull of this set. If it is the whole range, nothing is known.

T is affine in m, and q is convex. So where T(0) > q(0), the function T - q is concave and positive
at 0. It has one root, no m below the root belongs to the set, and bisection finds the root. The
other end is found in the same way, with the other sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array, roots
from sfumato.mechanisms import Law, chernoff_half_widths, coupling_slack
from sfumato.questions.aggregates.clips import clipped_weights
from sfumato.questions.aggregates.sum_quantiles import (
    clip_half_widths,
    half_widths,
)
from sfumato.questions.aggregates.values import Basis, Values
from sfumato.questions.histogram.statistics import most_between

# --- intervals ------------------------------------------------------------------------------------

STEPS = 30  # of bisection: ends are found to 2^-30 of the range, and rounded outwards
GRID = 2048  # steps of the table of q(m)
MEANS = 9  # at which the interval of a variance is looked for
ENOUGH = 1.05  # times the noise on a number of rows: variances of more rows are bounded at once
CLOSE = 1e-6  # relative change of a bound that is refined no more
COUNT_SHARE = 0.1  # of the probability of error of a rounded sum, spent on its number of rows
MEAN_SHARE = 0.1  # of the probability of error of a variance, spent on its mean

Bounds: TypeAlias = tuple[Array, Array]
# A function of one point for each of some groups, and of the indices of these groups.
OfPoints: TypeAlias = Callable[[Array, Array], Array]


def mean_bounds(sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bound each group's mean, in units of the value's range.

    Parameters
    ----------
    sums : float64 ndarray of shape (groups, k)
        The published sums.
    alpha : float
        The probability that a group's bounds miss its mean.

    Returns
    -------
    low, high : float64 ndarrays of shape (groups,)
        0 and 1 where nothing is known, and where no mean fits the noise.
    """
    grid = np.arange(GRID + 1) / GRID
    table = half_widths(law, basis.weights - grid[:, None], alpha)
    return _ratio_bounds(sums, basis.weights, grid, table)


def clipped_mean_bounds(sums: Array, basis: Basis, law: Law, clips: Array, alpha: float) -> Bounds:
    """Bound each group's mean of the values clipped at a knot, in units of the value's range.

    The bounds hold for every rule that chooses a clip from the published sums.

    Parameters
    ----------
    sums : float64 ndarray of shape (groups, k)
        The published sums of hats.
    clips : int64 ndarray of shape (groups,)
        The knot of each group.
    alpha : float
        The probability that a group's bounds miss its mean.

    Returns
    -------
    low, high : float64 ndarrays of shape (groups,)
        0 and the clip where nothing is known, and where no mean fits the noise.
    """
    low = np.zeros(len(sums))
    high = np.zeros(len(sums))
    for clip in np.unique(clips).tolist():
        groups = np.flatnonzero(clips == clip)
        weights = clipped_weights(basis, clip)
        grid = min(weights[-1], 1.0) * np.arange(GRID + 1) / GRID
        table = clip_half_widths(law, basis.weights, clip, grid, alpha)
        low[groups], high[groups] = _ratio_bounds(sums[groups], weights, grid, table)
    return low, high


def most_taken_from_means(sums: Array, basis: Basis, law: Law, clips: Array, alpha: float) -> Array:
    """Return by how much each group's clip lowers its mean at most, in units of the range.

    Holds as ``clipped_mean_bounds`` does, by the same inversion for the weights that lie beyond the
    clip: for every rule that chooses a clip from the published sums.

    Returns
    -------
    float64 ndarray of shape (groups,)
        Where nothing is known, the distance from the clip to the upper bound.
    """
    most = np.zeros(len(sums))
    for clip in np.unique(clips).tolist():
        groups = np.flatnonzero(clips == clip)
        beyond = basis.weights - clipped_weights(basis, clip)
        grid = max(1.0 - basis.weights[clip], 0.0) * np.arange(GRID + 1) / GRID
        # One-sided, and for all clips at once, since the noise may have led to any of them.
        of_clip = 2 * alpha / (basis.size - 1)
        table = chernoff_half_widths(law, beyond - grid[:, None], of_clip)
        most[groups] = _ratio_bounds(sums[groups], beyond, grid, table)[1]
    return most


def most_taken_from_sums(sums: Array, basis: Basis, law: Law, clips: Array, alpha: float) -> Array:
    """Return by how much each group's clip lowers its sum at most, in units of the range.

    See ``most_taken_from_means``.
    """
    beyond = basis.weights - np.minimum(basis.weights, basis.weights[clips][:, None])
    half_widths_of_clips = chernoff_half_widths(law, beyond, 2 * alpha / (basis.size - 1))
    most = (sums * beyond).sum(axis=1) + half_widths_of_clips
    return np.asarray(np.maximum(most, 0.0) / basis.unity)


def _ratio_bounds(sums: Array, weights: Array, grid: Array, table: Array) -> Bounds:
    """Return the hull of all m on the grid's range whose weighted sum fits the noise.

    Parameters
    ----------
    weights : float64 ndarray of shape (k,)
    grid, table : float64 ndarrays of shape (points,)
        Values m, and bounds of the noise there.
    """

    def allowed(at: Array, groups: Array) -> Array:
        # Linear interpolation of a convex function is never below it, so no mean is lost.
        return np.interp(at, grid, table)

    start = np.full(len(sums), grid[0])
    stop = np.full(len(sums), grid[-1])
    return _hull(sums @ weights, sums.sum(axis=1), allowed, start, stop)


def variance_bounds(sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bound each group's variance, in units of the squared range: between 0 and 1/4.

    Parameters and shapes are those of ``mean_bounds``.

    Holds because: for the true mean m and variance v, sum_j (u_j - 2 m w_j + m^2 - v) F_j is noise
    alone. The mean has bounds that miss with probability alpha / 10. For each m between them, a set
    of v fits the noise at the rest of alpha. The union of these sets over m contains the true v
    with probability 1 - alpha.
    """
    low, high = mean_bounds(sums, basis, law, MEAN_SHARE * alpha)
    means = np.linspace(low, high, MEANS)
    ends = [_variances_at(mean, sums, basis, law, (1 - MEAN_SHARE) * alpha) for mean in means]
    lows = np.stack([low for low, _ in ends])
    highs = np.stack([high for _, high in ends])
    nothing_fits = ~(lows <= highs).any(axis=0)
    # Only some means were looked at: what lies between two of them is allowed for.
    lowest = np.maximum(lows.min(axis=0) - most_between(lows), 0)
    highest = np.minimum(highs.max(axis=0) + most_between(highs), 0.25)
    return np.where(nothing_fits, 0.0, lowest), np.where(nothing_fits, 0.25, highest)


def sum_weights(values: Values, basis: Basis, weights: Array | None = None) -> Array:
    """Give weights that turn the published sums into sums of values: float64 ndarray of shape (k,).

    ``weights`` are those of clipped values, over R; None: those of the values themselves.
    """
    over_points = basis.weights if weights is None else weights
    return (values.lower + over_points * values.width) / basis.unity


def sum_half_width(values: Values, basis: Basis, law: Law, rows: Array, alpha: float) -> Array:
    """Return half-widths of the intervals of sums of values.

    The noise does not depend on the data. Rounding adds at most ``values.rounding`` for each row,
    and the number of rows is bounded by its noisy number and the half-width of that number's noise.

    Parameters
    ----------
    rows : float64 ndarray of shape (groups,)
        The noisy number of rows of each group.

    Returns
    -------
    float64 ndarray of shape (groups,)
    """
    weights = sum_weights(values, basis)[None]
    noise_alpha = alpha * (1 - COUNT_SHARE) if values.rounded else alpha
    noise = np.full(rows.shape, half_widths(law, weights, noise_alpha)[0])
    return noise + _rounding_of_sums(values, basis, law, rows, alpha * COUNT_SHARE)


def clipped_sum_half_width(
    values: Values, basis: Basis, law: Law, rows: Array, clips: Array, alpha: float
) -> Array:
    """Like ``sum_half_width``, of the values clipped at a knot of each group.

    The half-widths hold for every rule that chooses a clip from the published sums.
    """
    noise_alpha = alpha * (1 - COUNT_SHARE) if values.rounded else alpha
    # A sum's weights are lower / width + w_k, times the width: those of the noise of a mean at the
    # value 0.
    zero = -values.lower / values.width
    noise = np.zeros(rows.shape)
    points = np.array([zero])
    for clip in np.unique(clips).tolist():
        (half_width,) = clip_half_widths(law, basis.weights, clip, points, noise_alpha, at=zero)
        noise[clips == clip] = half_width * values.width / basis.unity
    return noise + _rounding_of_sums(values, basis, law, rows, alpha * COUNT_SHARE)


def _rounding_of_sums(values: Values, basis: Basis, law: Law, rows: Array, alpha: float) -> Array:
    """Return by how much rounding changes a sum at most: by ``values.rounding`` for each row."""
    if not values.rounded:
        return np.zeros(rows.shape)
    ones = np.ones((1, basis.size))
    bounds = chernoff_half_widths if basis.name == "hats" else half_widths
    count_half_width = bounds(law, ones, alpha)[0] / basis.unity
    return np.asarray(values.rounding * np.maximum(rows + count_half_width, 0))


def _variances_at(mean: Array, sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bound the variance for a given mean: crossed bounds, (1, 0), where no variance fits.

    Where a group has enough rows, a variance is bounded on both sides, and few values of the noise
    are looked at. The other groups are searched.
    """
    fixed = basis.squares - 2 * mean[:, None] * basis.weights + (mean**2)[:, None]
    weighted = (sums * fixed).sum(axis=1)
    total = sums.sum(axis=1)
    of_rows = float(half_widths(law, np.ones(basis.size), alpha))
    has_enough = np.abs(total) > ENOUGH * of_rows
    if coupling_slack(law) is None:
        has_enough[:] = False
    low = np.ones(len(sums))
    high = np.zeros(len(sums))

    few = np.flatnonzero(~has_enough)
    low[few], high[few] = _searched_variances(fixed[few], weighted[few], total[few], law, alpha)
    many = np.flatnonzero(has_enough)
    middle = weighted[many] / total[many]
    noise = _NoiseAt(fixed[many], middle, np.abs(total[many]), law, alpha, of_rows)
    lowest = np.maximum(middle - noise.reach(-1.0, np.maximum(middle, 0.0)), 0.0)
    highest = np.minimum(middle + noise.reach(1.0, np.maximum(0.25 - middle, 0.0)), 0.25)
    fits = lowest <= highest
    low[many] = np.where(fits, lowest, 1.0)
    high[many] = np.where(fits, highest, 0.0)
    return low, high


@dataclass(frozen=True)
class _NoiseAt:
    """The bound q of the noise around the variance that each group's sums suggest.

    A variance at a distance d from it fits if total d <= q(d).

    Attributes
    ----------
    fixed : float64 ndarray of shape (groups, k)
        The coefficients of the noise, beside the variance.
    middle, total : float64 ndarrays of shape (groups,)
        The variance that the sums suggest, and the size of their total.
    law : DiscreteLaplace or DiscreteGaussian
    alpha : float
    of_rows : float
        The bound of the noise for coefficients of 1; all totals are larger.
    """

    fixed: Array
    middle: Array
    total: Array
    law: Law
    alpha: float
    of_rows: float

    def reach(self, sign: float, furthest: Array) -> Array:
        """Return how far variances that fit lie on one side, up to the end of the range: (groups,).

        Holds because: q is at most a norm of the coefficients, in the law of which the noise is
        bounded. So q(d) <= q(0) + d q(1, .., 1), and no d beyond q(0) / (total - q(1, .., 1)) fits.
        A norm is convex, so up to a distance beyond which nothing is looked for it lies below its
        chord. Where the chord meets total d is a smaller such distance.
        """
        at_middle = self._at(np.arange(len(self.middle)), 0.0)
        distance = np.minimum(at_middle / (self.total - self.of_rows), furthest)
        groups = np.flatnonzero(distance > 0)
        # Three are usual.
        for _ in range(40):
            before = distance[groups]
            slope = (self._at(groups, sign * before) - at_middle[groups]) / before
            # Tables of quantiles are convex but for rounding, so that a slope may be too steep.
            rest = self.total[groups] - np.minimum(slope, self.of_rows)
            distance[groups] = np.minimum(before, at_middle[groups] / rest)
            groups = groups[distance[groups] < before * (1 - CLOSE)]
            if not len(groups):
                break
        return distance * (1 + 1e-12)

    def _at(self, groups: Array, distance: Array | float) -> Array:
        variance = self.middle[groups] + distance
        coefficients = self.fixed[groups] - variance[:, None]
        return half_widths(self.law, coefficients, self.alpha)


def _searched_variances(
    fixed: Array, weighted: Array, total: Array, law: Law, alpha: float
) -> Bounds:
    """Return the hull of the variances that fit the noise, by bisection."""

    def allowed(at: Array, groups: Array) -> Array:
        return half_widths(law, fixed[groups] - at[:, None], alpha)

    start = np.zeros(len(total))
    stop = np.full(len(total), 0.25)
    return _hull(weighted, total, allowed, start, stop, empty=(1.0, 0.0))


def _hull(
    weighted: Array,
    total: Array,
    allowed: OfPoints,
    start: Array,
    stop: Array,
    *,
    empty: tuple[float, float] | None = None,
) -> Bounds:
    """Return the hull of all points with abs(weighted - point * total) <= allowed.

    Parameters
    ----------
    weighted, total : float64 ndarrays of shape (groups,)
    allowed : function of points
        It is convex.
    start, stop : float64 ndarrays of shape (groups,)
        The points are between these two.
    empty : pair of float, or None
        What is returned for groups without such a point. None: start and stop.
    """

    def offset(at: Array, groups: Array) -> Array:
        return np.asarray(weighted[groups] - at * total[groups])

    low, without = _first_fitting(offset, allowed, start, stop)
    high, _ = _first_fitting(offset, allowed, stop, start)
    # Where no point fits the noise was larger than it almost ever is; nothing is then claimed.
    nothing_fits = without | (low > high)
    low_if_empty, high_if_empty = (start, stop) if empty is None else empty
    return np.where(nothing_fits, low_if_empty, low), np.where(nothing_fits, high_if_empty, high)


def _first_fitting(
    offset: OfPoints, allowed: OfPoints, near: Array, far: Array
) -> tuple[Array, Array]:
    """Find the fitting point nearest to one end, rounded towards that end.

    Returns
    -------
    found : float64 ndarray of shape (groups,)
    without : bool ndarray of shape (groups,)
        Where no fitting point was found.
    """
    every = np.arange(len(near))
    # With this sign the offset is positive at the near end, so only its upper bound can fail there.
    sign = np.where(offset(near, every) >= 0, 1.0, -1.0)

    def outside(at: Array, groups: Array) -> Array:
        return sign[groups] * offset(at, groups) > allowed(at, groups)

    searched = np.flatnonzero(outside(near, every))  # elsewhere the end itself fits
    outer = near[searched]
    inner = far[searched]
    without = np.zeros(len(near), bool)
    without[searched] = outside(inner, searched)
    outer, _ = roots(lambda at: ~outside(at, searched), outer, inner, STEPS)
    fitting = near.copy()
    fitting[searched] = outer
    return fitting, without
