"""Intervals of means, variances and sums from noisy sums alone.

They hold at any number of rows, also for a group of none.

For the true mean m, in units of the value's range, T(m) = sum_j (w_j - m) F_j is noise and nothing
else. Let q(m) be the (1 - alpha) quantile of the absolute value of that noise. The set of all m
with abs(T(m)) <= q(m) contains the truth with probability 1 - alpha, whatever the data are (Fieller
1954, for ratios). The interval is the hull of this set. If it is the whole range, nothing is known.

T is affine in m, and q is convex. So where T(0) > q(0), the function T - q is concave and positive
at 0. It has one root, no m below the root belongs to the set, and bisection finds the root. The
other end is found in the same way, with the other sign.

Quantiles of weighted sums of independent discrete noise: bounds that hold, and are nearly tight.

*One sum* (``half_widths``).

A draw Z of discrete noise is coupled with a draw X of the continuous law of the same scale such
that abs(Z - X) <= slack (see ``mechanisms.noise_sums``). So the quantile of abs(sum c_j Z_j) is at
most that of abs(sum c_j X_j) plus slack times sum abs(c_j).

*All clips at once* (``clip_half_widths``), and so the one that was chosen.

With the weights w_c of a clip c, the noise of the mean at this clip is sum_k (w_ck - m) Z_k, m
being the true mean of the clipped values. Let its size be divided by its standard deviation, up to
the factor of the noise: by the Euclidean length of (w_ck - m)_k. The largest such ratio, over all
clips and over all m that are possible at a clip, has a law that depends on the number of knots
alone. Its quantile bounds the noise of all clips together, whichever of them the noise leads to.

For a fixed clip, m runs through an interval, and (w_ck - m)_k through a segment of a plane. So the
largest ratio over m has a closed form: the length of the projection of Z onto that plane if its
direction is that of a point of the segment, and otherwise the ratio at one of the two ends.

The quantile of the largest ratio over clips is an order statistic of ``DRAWS`` draws of the
continuous law. The draws come from a fixed seed, so the same releases always have the same
intervals. Another seed would lead to an order statistic below the true quantile with a probability
of at most 10^-6: the order statistic is chosen by the binomial law, whatever the law of the ratios.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from sfumato.basics import Array, roots
from sfumato.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    chernoff_half_widths,
    coupling_slack,
    gaussian_half_widths,
)
from sfumato.questions.aggregates.clips import clipped_weights
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


# --- one sum --------------------------------------------------------------------------------------

RATIO_GRID = 128  # steps of the tables of ratios
# Partial fractions need distinct scales. So scales are raised until they lie this far apart: a
# larger scale makes a larger quantile.
APART = 1e-3


def half_widths(law: Law, coefficients: Array, alpha: float) -> Array:
    """Give bounds t with P(abs(sum_j c_j Z_j) > t) <= alpha, for independent draws Z_j of one law.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
    coefficients : float64 ndarray of shape (..., k), k from 1 to 3
    alpha : float in (0, 1)

    Returns
    -------
    float64 ndarray of shape (...)
        It is a convex function of the coefficients, unless ``alpha`` is below 1e-7. Interpolation
        in ``intervals`` relies on that.
    """
    size = np.abs(np.asarray(coefficients, dtype=float))
    total = size.sum(axis=-1)
    if isinstance(law, DiscreteGaussian):
        return gaussian_half_widths(law, (size**2).sum(axis=-1), total, alpha)
    # Below it partial fractions lose too many digits.
    if alpha < 1e-7:
        return chernoff_half_widths(law, size, alpha)
    continuous = float(law.scale) * _laplace(size, alpha)
    return np.asarray(continuous + coupling_slack(law) * total)


def _laplace(size: Array, alpha: float) -> Array:
    """Return quantiles of sums of continuous Laplace draws with these scales, by a table of ratios.

    The quantile is a norm of the scales (Meyer, Reisner 1991; Bobkov 2010: the laws are log-concave
    and symmetric). It is convex along each ratio, so interpolation between points of the table is
    never below it.
    """
    scales = [size[..., i] for i in range(size.shape[-1])]
    scales += [np.zeros_like(scales[0])] * (3 - len(scales))
    first, second, third = scales
    # Compared one by one, they are sorted several times as fast as along an axis.
    larger = np.maximum(first, second)
    smaller = np.minimum(first, second)
    largest = np.maximum(larger, third)
    middle = np.maximum(smaller, np.minimum(larger, third))
    safe = np.where(largest > 0, largest, 1.0)
    ratios = (middle / safe, np.minimum(smaller, third) / safe)
    return largest * _interpolated(_table(alpha), *ratios)


def _interpolated(table: Array, second: Array, third: Array) -> Array:
    """Bilinear interpolation on the unit square."""
    row = second * RATIO_GRID
    column = third * RATIO_GRID
    i = np.minimum(row.astype(np.int64), RATIO_GRID - 1)
    j = np.minimum(column.astype(np.int64), RATIO_GRID - 1)
    right = column - j
    # One index into the flat table: numpy gathers by it several times as fast.
    at = i * (RATIO_GRID + 1) + j
    flat = table.ravel()
    lower = flat[at]
    lower += (flat[at + 1] - lower) * right
    upper = flat[at + RATIO_GRID + 1]
    upper += (flat[at + RATIO_GRID + 2] - upper) * right
    return np.asarray(lower + (upper - lower) * (row - i))


@lru_cache(maxsize=16)
def _table(alpha: float) -> Array:
    """Return quantiles of abs(X_1 + s X_2 + t X_3), X_j of scale 1, for s, t = 0, 1/128, .., 1."""
    grid = np.arange(RATIO_GRID + 1) / RATIO_GRID
    second, third = np.meshgrid(grid, grid, indexing="ij")
    inner = np.maximum(second, third) + APART
    least = np.maximum(np.minimum(second, third), APART**2)
    first = np.full_like(inner, 1 + 2 * APART)
    scales = np.stack([first, inner, least])
    low = np.zeros_like(first)
    high = np.full_like(first, -math.log(alpha) * 6)
    return roots(lambda at: _survival(at, scales) <= alpha, low, high, 45)[1]


def _survival(at: Array, scales: Array) -> Array:
    """P(abs(sum) > at) for sums of Laplace draws of distinct scales, by partial fractions."""
    squared = scales**2
    total = np.zeros_like(at)
    for i in range(len(scales)):
        share = np.ones_like(at)
        for j in range(len(scales)):
            if j != i:
                share = share * squared[i] / (squared[i] - squared[j])
        total += share * np.exp(-at / scales[i])
    return total


# --- all clips at once ----------------------------------------------------------------------------

Kind: TypeAlias = Literal["laplace", "gaussian"]

DRAWS = 2**19
BATCH = 2**13  # of draws that are held at a time
SEED = 17
MISSED = 1e-6  # probability that a seed leads to an order statistic below the quantile


def clip_half_widths(
    law: Law, weights: Array, clip: int, points: Array, alpha: float, *, at: float | None = None
) -> Array:
    """Bounds of the noise at a clip that hold, for all clips together, with probability 1 - alpha.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
    weights : float64 ndarray of shape (k,)
        The knots: 0, then each twice the one before.
    clip : int
        Index of a knot.
    points : float64 ndarray of shape (n,)
        The values m for which the noise of (min(weights, weights[clip]) - m) is bounded.
    at : float or None
        None: the bound holds for all m from 0 to the clip. Otherwise ``points`` is this one, for
        all clips.

    Returns
    -------
    float64 ndarray of shape (n,)
        Convex in the points.
    """
    coefficients = np.minimum(weights, weights[clip]) - np.asarray(points)[:, None]
    by_union = chernoff_half_widths(law, coefficients, alpha / (len(weights) - 1))
    slack = coupling_slack(law)
    if slack is None:
        return by_union
    kind: Kind = "laplace" if isinstance(law, DiscreteLaplace) else "gaussian"
    relative_point = None if at is None else at / float(weights[-1])
    quantile = largest_ratio_quantile(kind, len(weights), alpha, relative_point)
    if quantile is None:
        return by_union
    scale = float(law.scale) if isinstance(law, DiscreteLaplace) else law.sigma
    length = np.sqrt((coefficients**2).sum(axis=1))
    relative_width = float(clip_factors(len(weights))[clip])
    noise = quantile * relative_width * scale * length
    return np.asarray(noise + slack * np.abs(coefficients).sum(axis=1))


def clip_factors(n_knots: int) -> Array:
    """Return by how much intervals are widened at each clip: float64 ndarray of shape (n_knots,).

    The upper half of the knots is not widened. Below it, each knot is widened by 6% more.
    """
    below_the_top = n_knots - 1 - np.arange(n_knots)
    not_widened = max(0, (n_knots - 4) // 2)
    # Clips far below the upper bound are rarely chosen. Their ratios count less, so that intervals
    # at these clips are wider, and the others at most 1.5 times as wide as for a fixed clip.
    return 1.06 ** np.maximum(below_the_top - not_widened, 0)


def largest_ratio_quantile(
    kind: Kind, n_knots: int, alpha: float, at: float | None = None
) -> float | None:
    """Return the (1 - alpha) quantile of the largest ratio over all clips, or a little more.

    Parameters
    ----------
    kind : {"laplace", "gaussian"}
        The continuous law of the noise, of scale or standard deviation 1.
    at : float or None
        The one point m that matters, over the last knot; None: all from 0 to each clip.

    Returns
    -------
    float or None
        None where alpha is so small that the draws do not tell.
    """
    from scipy.special import bdtr

    # The draw of a rank, counted from the largest, lies below the quantile if fewer than ``rank``
    # draws lie beyond the quantile. Their number is binomial.
    rank = bisect_right(range(DRAWS), MISSED, key=lambda rank: bdtr(rank, DRAWS, alpha))
    if rank == 0:
        return None
    return float(_largest_ratios(kind, n_knots, at)[-rank])


@lru_cache(maxsize=8)
def _largest_ratios(kind: Kind, n_knots: int, at: float | None) -> Array:
    """Return draws of the largest ratio over all clips, in increasing order."""
    rng = np.random.default_rng(SEED)
    weights = np.concatenate([[0.0], 2.0 ** np.arange(2 - n_knots, 1)])
    factors = clip_factors(n_knots)
    largest = np.zeros(DRAWS)
    for start in range(0, DRAWS, BATCH):
        size = (BATCH, n_knots)
        noise = rng.laplace(size=size) if kind == "laplace" else rng.standard_normal(size)
        for clip in range(1, n_knots):
            clipped = np.minimum(weights, weights[clip])
            ratios = _ratios(noise, clipped, weights[clip], at)
            batch = largest[start : start + BATCH]
            np.maximum(batch, ratios / factors[clip], out=batch)
    return np.sort(largest)


def _ratios(noise: Array, weights: Array, clip: float, at: float | None) -> Array:
    """The largest abs(sum_k v_k Z_k) / length(v) with v = weights - m, over m: for each draw."""
    if at is not None:
        fixed = weights - at
        return np.asarray(np.abs(noise @ fixed) / np.sqrt((fixed**2).sum()))
    # Coordinates in the plane: x along (1, .., 1), y across. The segment is parallel to the first:
    # its points are (a, distance), for a from least to most.
    unit = np.full(len(weights), 1 / np.sqrt(len(weights)))
    across = weights - (weights @ unit) * unit
    distance = np.sqrt((across**2).sum())
    plane = np.stack([unit, across / distance], axis=1)
    x, y = (noise @ plane).T
    most = weights @ unit
    least = most - clip * np.sqrt(len(weights))
    # abs(a x + distance y) / length(a, distance) is largest where (a, distance) is parallel to
    # (x, y), if that a lies between the two; otherwise at an end.
    is_inside = (distance * x - least * y) * (distance * x - most * y) <= 0
    squared_at_ends = np.maximum(
        (least * x + distance * y) ** 2 / (least**2 + distance**2),
        (most * x + distance * y) ** 2 / (most**2 + distance**2),
    )
    return np.asarray(np.sqrt(np.where(is_inside, x**2 + y**2, squared_at_ends)))
