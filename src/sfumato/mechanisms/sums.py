"""Sums of noise of several scales: bounds on their tails, and their exact law.

Both are computed from the laws alone, after the release; nothing here draws or spends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace

Part: TypeAlias = "tuple[CountLaw, float]"
"""A law, and the largest coefficient, at most 1, with which a draw of it enters a sum."""

LARGEST_TRANSFORM = 2**24
"""Points of a Fourier transform."""

LEAST_VARIANCE = 1e-100
LEAST_COEFFICIENT = 1e-50
"""Up to which a variance and a coefficient are rounded up in bounds, so that doubles can square
them.
"""

LEAST_SPREAD = 1e-250
"""Stands for the variance of noise that is all but never there, where variances are divided."""

FEW = 1024
"""Variances for which all bounds are computed at once."""

OUTSIDE = 1e-9
"""The share of alpha that the circle of ``exact_half_width`` may get wrong."""


def spread(law: CountLaw) -> float:
    """The variance that bounds of sums are made from: of Laplace noise its own, without a bound if
    it has one; of Gaussian noise sigma^2.
    """
    if isinstance(law, TruncatedLaplace):
        return law.without_bound.variance
    return law.variance if isinstance(law, DiscreteLaplace) else float(law.sigma_squared)


def half_widths(variances: Array, parts: Sequence[Part], alpha: float) -> Array:
    """Half-widths of weighted sums of independent draws of several laws, by a Chernoff bound.

    Parameters
    ----------
    variances : float64 ndarray
        Of each sum, by ``spread``.
    parts : sequence of (law, coefficient)
        A draw of the law enters with a coefficient of size at most this one, which is at most 1.
    alpha : float
        Two-sided: P(|sum| > half-width) <= alpha.

    Holds because: let c be the largest coefficient. E exp(tZ) = 1 / (1 - v (cosh t - 1)) for
    Laplace noise of variance v, and at most that for the part of it within a bound; with |a| <= c,
    cosh(a t) - 1 <= (a / c)^2 (cosh(c t) - 1) and -ln(1 - w s) <= -w ln(1 - s) for w in [0, 1]. So
    ln E exp(a t Z) <= a^2 v psi(t) with psi(t) = -ln(1 - v (cosh(c t) - 1)) / (v c^2). A Gaussian
    has psi(t) = t^2 / 2. The sum's log moment is at most its variance times the largest psi, and
    any t gives a valid bound. psi grows with v and with c, so each may be rounded up to what
    doubles can square.
    """
    variances = np.asarray(variances, dtype=float)
    laplace = [
        (max(spread(law), LEAST_VARIANCE), max(coefficient, LEAST_COEFFICIENT))
        for law, coefficient in parts
        if not isinstance(law, DiscreteGaussian) and spread(law) > 0 and coefficient > 0
    ]
    need = math.log(2 / alpha)
    if not laplace:
        return np.sqrt(2 * variances * need)
    # Every psi is finite below this t.
    last = min(_end(v) / coefficient for v, coefficient in laplace)
    t = last * np.concatenate([np.geomspace(1e-5, 0.5, 160), 1 - np.geomspace(0.5, 1e-9, 160)])
    psi = np.max([_cumulant(v, coefficient, t) for v, coefficient in laplace], axis=0)
    if any(isinstance(law, DiscreteGaussian) for law, _ in parts):
        psi = np.maximum(psi, t**2 / 2)
    best = _least(variances, psi, t, need)
    best[variances <= 0] = 0
    return best


def _least(variances: Array, psi: Array, t: Array, need: float) -> Array:
    """The least half-width over all t, for each variance."""
    if variances.size <= FEW:
        bounds = (np.multiply.outer(psi, variances) + need).T / t
        return np.asarray(bounds.min(axis=-1).T)
    # One t at a time: all of them at once would take memory.
    best = np.full(variances.shape, np.inf)
    for psi_at_t, one_t in zip(psi, t, strict=True):
        np.minimum(best, (variances * psi_at_t + need) / one_t, out=best)
    return best


def _end(variance: float) -> float:
    """Where v (cosh t - 1) reaches 1."""
    # For large v the argument of acosh is 1 to all digits, and cosh t - 1 is t^2 / 2.
    return math.acosh(1 + 1 / variance) if variance < 1e12 else math.sqrt(2 / variance)


def _cumulant(variance: float, coefficient: float, t: Array) -> Array:
    """psi(t) of ``half_widths``; 2 sinh^2(x/2) is cosh x - 1 without cancellation."""
    s = np.minimum(variance * 2 * np.sinh(coefficient * t / 2) ** 2, 1 - 1e-12)
    return np.asarray(-np.log1p(-s) / (variance * coefficient**2))


def exact_half_width(parts: Sequence[tuple[CountLaw, int]], alpha: float) -> int:
    """The smallest integer k with P(|sum| > k) <= alpha, for a sum of independent draws: ``number``
    of each law.

    The law of the sum is the inverse Fourier transform of the product of the characteristic
    functions, on a circle that is longer than the range which the sum leaves with probability 1e-9
    alpha; so it is exact to about 1e-9 of alpha.

    >>> from fractions import Fraction
    >>> law = DiscreteLaplace(Fraction(10))
    >>> exact_half_width([(law, 1)], 0.05) == law.half_width(0.05)
    True
    """
    farthest = _bound_of_sum(parts, OUTSIDE * alpha)
    length = 1 << max(4, math.ceil(math.log2(2 * farthest + 4)))
    if length > LARGEST_TRANSFORM:
        # So wide that a step of the lattice does not show: the bound serves.
        return math.ceil(_bound_of_sum(parts, alpha))
    angles = 2 * np.pi * np.arange(length // 2 + 1) / length
    transform = np.exp(sum(number * _log_transform(law, angles, length) for law, number in parts))
    for law, number in parts:
        if isinstance(law, TruncatedLaplace) and number % 2:
            transform *= np.sign(law.transform(angles))
    masses = np.maximum(np.fft.irfft(transform, length)[: length // 2], 0)
    inside = masses[0] + 2 * np.concatenate([[0], np.cumsum(masses[1:])])
    whole = masses[0] + 2 * masses[1:].sum()
    return int(np.argmax(inside >= (1 - alpha) * whole))


def _bound_of_sum(parts: Sequence[tuple[CountLaw, int]], alpha: float) -> float:
    """A half-width of the sum of ``number`` draws of each law, by ``half_widths``."""
    variance = sum(number * spread(law) for law, number in parts)
    present = [(law, 1.0) for law, number in parts if number]
    return float(half_widths(np.array([variance]), present, alpha)[0])


def _log_transform(law: CountLaw, angles: Array, length: int) -> Array:
    """The logarithm of the size of the characteristic function at angles in [0, pi]."""
    if isinstance(law, TruncatedLaplace):
        return np.asarray(np.log(np.maximum(np.abs(law.transform(angles)), 1e-300)))
    if isinstance(law, DiscreteLaplace):
        return np.asarray(-np.log1p(law.variance * 2 * np.sin(angles / 2) ** 2))
    x = np.arange(-(length // 2), length // 2)
    mass = np.exp(-(x.astype(float) ** 2) / (2 * float(law.sigma_squared)))
    transform = np.fft.rfft(np.fft.ifftshift(mass)).real / mass.sum()
    return np.asarray(np.log(np.maximum(transform, 1e-300)))
