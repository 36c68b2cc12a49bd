"""Sums of noise of several scales: bounds on their tails, and their exact law.

Both are computed from the laws alone, after the release; nothing here draws or spends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law

Reach: TypeAlias = "tuple[Law, float]"  # a law, and the largest coefficient, at most 1, with which a draw of it enters
LONGEST = 2**24  # points of a transform
LEAST_VARIANCE, LEAST_REACH = (
    1e-100,
    1e-50,
)  # up to which a variance and a coefficient are rounded up in bounds
LEAST_SPREAD = 1e-250  # what stands for the variance of noise that is all but never there, where variances are divided


def spread(law: Law) -> float:
    """The variance that bounds of sums are made from: of Laplace noise its own, of Gaussian noise sigma^2."""
    return law.variance if isinstance(law, DiscreteLaplace) else float(law.sigma_squared)


def half_widths(variances: Array, parts: Sequence[Reach], alpha: float) -> Array:
    """Half-widths of weighted sums of independent draws of several laws, by a Chernoff bound.

    Parameters
    ----------
    variances : float64 ndarray
        Of each sum, by ``spread``.
    parts : sequence of (law, reach)
        A draw of the law enters with a coefficient a of size at most reach <= 1.
    alpha : float
        Two-sided: P(|sum| > half-width) <= alpha.

    Holds because: E exp(tZ) = 1 / (1 - v (cosh t - 1)) for Laplace noise of variance v; with |a| <= reach, cosh(a t) - 1 <=
    (a / reach)^2 (cosh(reach t) - 1) and -ln(1 - w s) <= -w ln(1 - s) for w in [0, 1], so ln E exp(a t Z) <= a^2 v psi(t) with
    psi(t) = -ln(1 - v (cosh(reach t) - 1)) / (v reach^2). A Gaussian has psi(t) = t^2 / 2. The sum's log moment is at most
    its variance times the largest psi, and any t gives a valid bound. psi grows with v and with reach, so each may be
    rounded up to what doubles can square.
    """
    variances = np.asarray(variances, dtype=float)
    laplace = [
        (max(law.variance, LEAST_VARIANCE), max(reach, LEAST_REACH))
        for law, reach in parts
        if isinstance(law, DiscreteLaplace) and law.variance > 0 and reach > 0
    ]
    need = math.log(2 / alpha)
    if not laplace:
        return np.sqrt(2 * variances * need)
    last = min(_end(v) / reach for v, reach in laplace)
    t = last * np.concatenate([np.geomspace(1e-5, 0.5, 160), 1 - np.geomspace(0.5, 1e-9, 160)])
    psi = np.max([_cumulant(v, reach, t) for v, reach in laplace], axis=0)
    if any(isinstance(law, DiscreteGaussian) for law, _ in parts):
        psi = np.maximum(psi, t**2 / 2)
    best = np.full(variances.shape, np.inf)
    for each, at in zip(psi, t, strict=True):
        np.minimum(best, (variances * each + need) / at, out=best)
    best[variances <= 0] = 0
    return best


def _end(variance: float) -> float:
    """Where v (cosh t - 1) reaches 1."""
    return math.acosh(1 + 1 / variance) if variance < 1e12 else math.sqrt(2 / variance)


def _cumulant(variance: float, reach: float, t: Array) -> Array:
    """psi(t) of ``half_widths``; 2 sinh^2(x/2) is cosh x - 1 without cancellation."""
    s = np.minimum(variance * 2 * np.sinh(reach * t / 2) ** 2, 1 - 1e-12)
    return np.asarray(-np.log1p(-s) / (variance * reach**2))


def exact_half_width(parts: Sequence[tuple[Law, int]], alpha: float) -> int:
    """The smallest integer k with P(|sum| > k) <= alpha, for a sum of independent draws: ``number`` of each law.

    The law of the sum is the inverse Fourier transform of the product of the characteristic functions, on a circle that is
    longer than the range which the sum leaves with probability 1e-9 alpha; so it is exact to about 1e-9 of alpha.

    >>> from fractions import Fraction
    >>> law = DiscreteLaplace(Fraction(10))
    >>> exact_half_width([(law, 1)], 0.05) == law.half_width(0.05)
    True
    """
    total = sum(number * spread(law) for law, number in parts)
    reach = float(
        half_widths(
            np.array([total]), [(law, 1.0) for law, number in parts if number], 1e-9 * alpha
        )[0]
    )
    length = 1 << max(4, math.ceil(math.log2(2 * reach + 4)))
    if length > LONGEST:  # so wide that a step of the lattice does not show
        return math.ceil(
            float(
                half_widths(
                    np.array([total]), [(law, 1.0) for law, number in parts if number], alpha
                )[0]
            )
        )
    turns = 2 * np.pi * np.arange(length // 2 + 1) / length
    transform = np.exp(sum(number * _log_transform(law, turns, length) for law, number in parts))
    masses = np.maximum(np.fft.irfft(transform, length)[: length // 2], 0)
    inside = masses[0] + 2 * np.concatenate([[0], np.cumsum(masses[1:])])
    return int(np.argmax(inside >= (1 - alpha) * (masses[0] + 2 * masses[1:].sum())))


def _log_transform(law: Law, turns: Array, length: int) -> Array:
    """The logarithm of the characteristic function at angles in [0, pi]."""
    if isinstance(law, DiscreteLaplace):
        return np.asarray(-np.log1p(law.variance * 2 * np.sin(turns / 2) ** 2))
    x = np.arange(-(length // 2), length // 2)
    mass = np.exp(-(x.astype(float) ** 2) / (2 * float(law.sigma_squared)))
    found = np.fft.rfft(np.fft.ifftshift(mass)).real / mass.sum()
    return np.asarray(np.log(np.maximum(found, 1e-300)))
