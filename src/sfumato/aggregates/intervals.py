"""Intervals of means, variances and sums that hold at any number of rows, also for a group of none.

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
from typing import TypeAlias

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.tails import half_widths
from sfumato.aggregates.values import Values
from sfumato.arrays import Array
from sfumato.mechanisms.noise import Law

STEPS = 30  # of bisection: ends are found to 2^-30 of the range, and rounded outwards
GRID = 2048  # steps of the table of q(m)
MEANS = 17  # at which the interval of a variance is looked for
COUNT_SHARE = 0.1  # of the probability of error of a rounded sum, spent on its number of rows
MEAN_SHARE = 0.1  # of the probability of error of a variance, spent on its mean

Bounds: TypeAlias = tuple[Array, Array]
OfPoints: TypeAlias = Callable[[Array, Array], Array]
"""A function of one point for each of some groups, and of the indices of these groups."""


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
    weighted = sums @ basis.weights
    total = sums.sum(axis=1)

    def offset(at: Array, groups: Array) -> Array:
        return np.asarray(weighted[groups] - at * total[groups])

    def allowed(at: Array, groups: Array) -> Array:
        # Linear interpolation of a convex function is never below it, so no mean is lost.
        return np.asarray(np.interp(at, grid, table))

    return _hull(offset, allowed, np.zeros(len(sums)), np.ones(len(sums)))


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
    lowest = np.maximum(lows.min(axis=0) - _between(lows), 0)
    highest = np.minimum(highs.max(axis=0) + _between(highs), 0.25)
    return np.where(nothing_fits, 0.0, lowest), np.where(nothing_fits, 0.25, highest)


def sum_weights(values: Values, basis: Basis) -> Array:
    """Weights that turn the published sums into sums of values: float64 ndarray of shape (k,)."""
    return np.asarray((values.lower + basis.weights * values.width) / basis.unity)


def sum_half_width(values: Values, basis: Basis, law: Law, rows: Array, alpha: float) -> Array:
    """Half-widths of the intervals of sums of values.

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
    if not values.rounded:
        return np.full(rows.shape, half_widths(law, weights, alpha)[0])
    noise = half_widths(law, weights, alpha * (1 - COUNT_SHARE))[0]
    ones = np.ones((1, len(basis.weights)))
    count_half_width = half_widths(law, ones, alpha * COUNT_SHARE)[0] / basis.unity
    return np.asarray(noise + values.rounding * np.maximum(rows + count_half_width, 0))


def _variances_at(mean: Array, sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bound the variance for a given mean: crossed bounds, (1, 0), where no variance fits."""
    fixed = basis.squares - 2 * mean[:, None] * basis.weights + (mean**2)[:, None]
    weighted = (sums * fixed).sum(axis=1)
    total = sums.sum(axis=1)

    def offset(at: Array, groups: Array) -> Array:
        return np.asarray(weighted[groups] - at * total[groups])

    def allowed(at: Array, groups: Array) -> Array:
        return half_widths(law, fixed[groups] - at[:, None], alpha)

    start = np.zeros(len(sums))
    stop = np.full(len(sums), 0.25)
    return _hull(offset, allowed, start, stop, empty=(1.0, 0.0))


def _between(ends: Array) -> Array:
    """By how much an end may be exceeded between two neighbouring means.

    For a function with a bounded second derivative it is an eighth of its second difference.
    """
    second_differences = np.abs(np.diff(ends, n=2, axis=0))
    return np.asarray(second_differences.max(axis=0) / 8)


def _hull(
    offset: OfPoints,
    allowed: OfPoints,
    start: Array,
    stop: Array,
    *,
    empty: tuple[float, float] | None = None,
) -> Bounds:
    """The hull of all points with abs(offset) <= allowed.

    Parameters
    ----------
    offset, allowed : functions of points
        ``offset`` is affine and ``allowed`` is convex.
    start, stop : float64 ndarrays of shape (groups,)
        The points are between these two.
    empty : pair of float, or None
        What is returned for groups without such a point. None: start and stop.
    """
    low, without = _first_fitting(offset, allowed, start, stop)
    high, _ = _first_fitting(offset, allowed, stop, start)
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
        return np.asarray(sign[groups] * offset(at, groups) > allowed(at, groups))

    searched = np.flatnonzero(outside(near, every))  # elsewhere the end itself fits
    outer = near[searched]
    inner = far[searched]
    without = np.zeros(len(near), bool)
    without[searched] = outside(inner, searched)
    for _ in range(STEPS):
        middle = (inner + outer) / 2
        misses = outside(middle, searched)
        outer = np.where(misses, middle, outer)
        inner = np.where(misses, inner, middle)
    found = near.copy()
    found[searched] = outer
    return found, without
