"""Quantiles of weighted sums of independent discrete noise: bounds that hold, and are nearly tight.

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

# --- one sum --------------------------------------------------------------------------------------

GRID = 128  # steps of the tables of ratios
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
    first, second, third = (*scales, *[np.zeros_like(scales[0])] * (3 - len(scales)))
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
    row = second * GRID
    column = third * GRID
    i = np.minimum(row.astype(np.int64), GRID - 1)
    j = np.minimum(column.astype(np.int64), GRID - 1)
    right = column - j
    # One index into the flat table: numpy gathers by it several times as fast.
    at = i * (GRID + 1) + j
    flat = table.ravel()
    lower = flat[at]
    lower += (flat[at + 1] - lower) * right
    upper = flat[at + GRID + 1]
    upper += (flat[at + GRID + 2] - upper) * right
    return np.asarray(lower + (upper - lower) * (row - i))


@lru_cache(maxsize=16)
def _table(alpha: float) -> Array:
    """Return quantiles of abs(X_1 + s X_2 + t X_3), X_j of scale 1, for s, t = 0, 1/128, .., 1."""
    grid = np.arange(GRID + 1) / GRID
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
