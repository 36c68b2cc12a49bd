"""Quantiles of weighted sums of independent discrete noise: bounds that hold, and are nearly tight.

A draw Z of discrete noise is coupled with a draw X of the continuous law of the same scale such
that abs(Z - X) <= ``slack``. So the quantile of abs(sum c_j Z_j) is at most that of abs(sum c_j
X_j) plus slack times sum abs(c_j).

*Laplace, scale b.* With u uniform, abs(X) = -b ln u, and abs(Z) = floor(-b ln u + c) (0 if
negative) with c = b ln(2 / (1 + exp(-1/b))). This c lies in (0, 1/2], since
P(abs(Z) >= k) = 2 exp(-k/b) / (1 + exp(-1/b)). Hence abs(abs(Z) - abs(X)) <= 1 - c. Both draws get
the same sign.

*Gaussian, sigma >= 1.* P(Z >= k) <= P(X >= k - 1) (Canonne, Kamath, Steinke 2020, Prop. 27).
P(abs(Z) >= k) >= P(abs(X) >= k) / (1 + 2 exp(-2 pi^2 sigma^2) + ..), from comparing the sum with
the integral. Hence abs(abs(Z) - abs(X)) <= 1 to nine digits, and 1.000001 is taken.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteLaplace, Law

GRID = 128  # steps of the tables of ratios
# Partial fractions need distinct scales. So scales are raised until they lie this far apart: a
# larger scale makes a larger quantile.
APART = 1e-3
LEAST_ALPHA = 1e-7  # below it partial fractions lose too many digits, and Chernoff's bound is taken
GAUSSIAN_SLACK = 1.000001


def half_widths(law: Law, coefficients: Array, alpha: float) -> Array:
    """Bounds t with P(abs(sum_j c_j Z_j) > t) <= alpha, for independent draws Z_j of one law.

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
    slack = coupling_slack(law)
    if slack is None:
        return chernoff_half_widths(law, size, alpha)
    if isinstance(law, DiscreteLaplace):
        if alpha < LEAST_ALPHA:
            return chernoff_half_widths(law, size, alpha)
        return np.asarray(float(law.scale) * _laplace(size, alpha) + slack * total)
    from scipy.special import ndtri

    quantile = -float(ndtri(alpha / 2)) * law.sigma
    return np.asarray(quantile * np.sqrt((size**2).sum(axis=-1)) + slack * total)


def coupling_slack(law: Law) -> float | None:
    """How far a draw and its continuous twin are apart at most; None where no bound is known."""
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale)
        # 1 - c of the coupling above, written so that a large scale loses no digits.
        return 1 - scale * (math.log(2) - math.log1p(math.exp(-1 / scale)))
    return None if law.sigma < 1 else GAUSSIAN_SLACK


def chernoff_half_widths(law: Law, coefficients: Array, alpha: float) -> Array:
    """Like ``half_widths``, for any number of coefficients, by Chernoff's bound: wider."""
    return _chernoff(law, np.abs(np.asarray(coefficients, dtype=float)), alpha)


def _chernoff(law: Law, size: Array, alpha: float) -> Array:
    """Chernoff's bound, with the coefficients divided by the largest of them."""
    largest = size.max(axis=-1)
    safe = np.where(largest > 0, largest, 1.0)
    effective = ((size / safe[..., None]) ** 2).sum(axis=-1)
    widths = law.sum_half_width(effective.reshape(-1), alpha)
    return np.asarray(largest * widths.reshape(largest.shape))


def _laplace(size: Array, alpha: float) -> Array:
    """Quantiles of sums of continuous Laplace draws with these scales, by a table of ratios.

    The quantile is a norm of the scales (Meyer, Reisner 1991; Bobkov 2010: the laws are log-concave
    and symmetric). It is convex along each ratio, so interpolation between points of the table is
    never below it.
    """
    scales = [size[..., i] for i in range(size.shape[-1])]
    largest, second, third = _descending(*scales, *[np.zeros_like(scales[0])] * (3 - len(scales)))
    safe = np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * _interpolated(_table(alpha), second / safe, third / safe))


def _descending(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Sort three arrays element by element: several times as fast as a sort along an axis."""
    larger = np.maximum(a, b)
    smaller = np.minimum(a, b)
    middle = np.maximum(smaller, np.minimum(larger, c))
    return np.maximum(larger, c), middle, np.minimum(smaller, c)


def _interpolated(table: Array, second: Array, third: Array) -> Array:
    """Bilinear interpolation on the unit square."""
    row = second * GRID
    column = third * GRID
    i = np.minimum(row.astype(np.int64), GRID - 1)
    j = np.minimum(column.astype(np.int64), GRID - 1)
    up = row - i
    right = column - j
    # One index into the flat table: numpy gathers by it several times as fast.
    at = i * (GRID + 1) + j
    flat = table.reshape(-1)
    lower = flat[at]
    lower += (flat[at + 1] - lower) * right
    upper = flat[at + GRID + 1]
    upper += (flat[at + GRID + 2] - upper) * right
    return np.asarray(lower + (upper - lower) * up)


@lru_cache(maxsize=16)
def _table(alpha: float) -> Array:
    """Quantiles of abs(X_1 + s X_2 + t X_3), X_j of scale 1, for s, t = 0, 1/128, .., 1."""
    grid = np.arange(GRID + 1) / GRID
    second, third = np.meshgrid(grid, grid, indexing="ij")
    inner = np.maximum(second, third) + APART
    least = np.maximum(np.minimum(second, third), APART**2)
    first = np.full_like(inner, 1 + 2 * APART)
    scales = np.stack([first, inner, least])
    low = np.zeros_like(first)
    high = np.full_like(first, -math.log(alpha) * 6)
    for _ in range(45):
        middle = (low + high) / 2
        beyond = _survival(middle, scales) > alpha
        low = np.where(beyond, middle, low)
        high = np.where(beyond, high, middle)
    return high


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
