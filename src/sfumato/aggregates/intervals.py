"""Intervals for means and variances that hold at any number of rows, also for none.

For the true mean m, in units of the value's range, T(m) = sum_j (w_j - m) F_j is noise and nothing else. So
the set of all m with abs(T(m)) <= q(m), with q(m) the (1 - alpha) quantile of that noise, holds the truth with
probability 1 - alpha whatever the data are (Fieller 1954, for ratios). What is returned is its hull: the whole
range means that nothing is known.

T is affine in m, and q is convex. So where T(0) > q(0), the function T - q is concave and positive at 0: it has
one root, before which no m belongs to the set, and bisection finds it; and likewise at the other end, with the
other sign.
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

STEPS = 30  # of bisection, rounded outwards: the range of a mean to 2^-30
GRID = 2048  # steps of the table of q(m)
MEANS = 17  # means at which the interval of a variance is looked for
COUNT_SHARE = 0.1  # of the probability of error of a rounded sum, spent on its number of rows
MEAN_SHARE = 0.1  # of the probability of error of a variance, what its mean's interval may take

Bounds: TypeAlias = tuple[Array, Array]
OfPoints: TypeAlias = Callable[[Array, Array], Array]
"""A function of one point of each of some groups, and of their numbers."""


def mean_bounds(sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bounds of each group's mean, as shares of the value's range.

    Parameters
    ----------
    sums : float64 ndarray of shape (groups, k)
        What was published.
    alpha : float
        The probability that a group's bounds miss its mean.

    Returns
    -------
    low, high : float64 ndarrays of shape (groups,)
        0 and 1 where nothing is known, also where no mean fits the noise.
    """
    grid = np.arange(GRID + 1) / GRID
    table = half_widths(law, basis.weights - grid[:, None], alpha)
    weighted = sums @ basis.weights
    total = sums.sum(axis=1)

    def offset(at: Array, groups: Array) -> Array:
        return np.asarray(weighted[groups] - at * total[groups])

    def allowed(at: Array, groups: Array) -> Array:
        # Interpolation of a convex function is never below it.
        return np.asarray(np.interp(at, grid, table))

    return _hull(offset, allowed, np.zeros(len(sums)), np.ones(len(sums)))


def variance_bounds(sums: Array, basis: Basis, law: Law, alpha: float) -> Bounds:
    """Bounds of each group's variance, as shares of the squared range: between 0 and 1/4.

    Holds because: for the true mean m and variance v, sum_j (u_j - 2 m w_j + m^2 - v) F_j is noise alone. The
    union over all m of the mean's own bounds, at a tenth of alpha, of the v that fit at the rest, holds v with
    probability 1 - alpha.
    """
    low, high = mean_bounds(sums, basis, law, MEAN_SHARE * alpha)
    means = np.linspace(low, high, MEANS)
    ends = [_variances_at(mean, sums, basis, law, (1 - MEAN_SHARE) * alpha) for mean in means]
    lowest = np.stack([each[0] for each in ends])
    highest = np.stack([each[1] for each in ends])
    none = ~(lowest <= highest).any(axis=0)
    found = lowest.min(axis=0) - _between(lowest), highest.max(axis=0) + _between(highest)
    return np.where(none, 0.0, np.maximum(found[0], 0)), np.where(
        none, 0.25, np.minimum(found[1], 0.25)
    )


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
    """Bounds of the variance if the mean were this; crossed (1, 0) where no variance fits."""
    fixed = basis.squares - 2 * mean[:, None] * basis.weights + (mean**2)[:, None]
    weighted = (sums * fixed).sum(axis=1)
    total = sums.sum(axis=1)

    def offset(at: Array, groups: Array) -> Array:
        return np.asarray(weighted[groups] - at * total[groups])

    def allowed(at: Array, groups: Array) -> Array:
        return half_widths(law, fixed[groups] - at[:, None], alpha)

    ends = np.zeros(len(sums)), np.full(len(sums), 0.25)
    return _hull(offset, allowed, *ends, empty=(1.0, 0.0))


def _between(ends: Array) -> Array:
    """How far an end may go between two of the means looked at: an eighth of its second difference."""
    bent = np.abs(np.diff(ends, n=2, axis=0))
    return np.asarray(bent.max(axis=0) / 8)


def _hull(
    offset: OfPoints,
    allowed: OfPoints,
    start: Array,
    stop: Array,
    *,
    empty: tuple[float, float] | None = None,
) -> Bounds:
    """The hull of all points with abs(offset) <= allowed, offset affine and allowed convex."""
    low, without = _first_fitting(offset, allowed, start, stop)
    high, _ = _first_fitting(offset, allowed, stop, start)
    none = without | (low > high)
    nothing = (start, stop) if empty is None else empty
    return np.where(none, nothing[0], low), np.where(none, nothing[1], high)


def _first_fitting(
    offset: OfPoints, allowed: OfPoints, near: Array, far: Array
) -> tuple[Array, Array]:
    """The fitting point nearest to one end, rounded towards that end, and where there is none."""
    every = np.arange(len(near))
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
