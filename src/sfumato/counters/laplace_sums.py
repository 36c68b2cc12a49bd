"""The exact law of a sum of independent discrete Laplace draws: its tails as sums of positive terms.

With q = exp(-1/b), A = (1-q)/(1-qz) and B = (1-q)/(1-q/z), one draw has the generating function A B, and
A B = (A + (q/z) B) / (1 + q). Applied again and again to A^n B^n, until one of the two is used up, this writes the sum as a
mixture: with m factors A left, a negative binomial variable of m successes less n - m; with m factors B left, one of m successes
plus n, below 0.

Draws of several scales are added up by a Fourier transform of their generating function on a circle that is longer than their
reach. Where they are wide, on a lattice of g: a draw is a difference of two floor(E) with E exponential, and floor(E) lies within g
above g floor(E / g), so that P(|sum| > k) <= P(|sum of draws of scale b/g| > k/g - n). Rounding errs by less than ``ROUNDING``,
which is added; below ``FAINT`` a Chernoff bound takes over.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array

ROUNDING, FAINT = 1e-12, 1e-10
FINE = 2048  # lattice steps in a standard deviation, where draws are wide

Draws: TypeAlias = tuple[tuple[Fraction, int], ...]
"""Scales, and how many draws of each."""


def laplace_sum_log_tail(scale: Fraction, draws: int, k: int) -> float:
    """ln P(|Z1 + ... + Zn| > k) for an integer k >= 0.

    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> abs(laplace_sum_log_tail(Fraction(7), 1, 20) - DiscreteLaplace(Fraction(7)).log_tail(20)) < 1e-12
    True
    """
    from scipy.special import betaincc, gammaln, logsumexp

    b, n = float(scale), draws
    q, success = math.exp(-1 / b), -math.expm1(-1 / b)
    m = np.arange(1, n + 1)
    ways = gammaln(2 * n - m) - gammaln(n) - gammaln(n - m + 1)
    weights = ways - (n - m) / b - (2 * n - m) * math.log1p(q)
    beyond = betaincc(
        m, k + 1 + n - m, success
    )  # P(a negative binomial of m successes > k + n - m)
    with np.errstate(divide="ignore"):
        return min(0.0, math.log(2) + float(logsumexp(weights + np.log(beyond))))


@lru_cache(maxsize=4096)
def laplace_sum_half_width(scale: Fraction, draws: int, alpha: float) -> int:
    """The smallest integer k with P(|Z1 + ... + Zn| > k) <= alpha.

    >>> laplace_sum_half_width(Fraction(10), 1, 0.05), laplace_sum_half_width(Fraction(10), 27, 0.05)
    (30, 145)
    """
    need, low, high = math.log(alpha), -1, max(1, math.ceil(float(scale)))
    while laplace_sum_log_tail(scale, draws, high) > need:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if laplace_sum_log_tail(scale, draws, middle) > need else (low, middle)
        )
    return high


def mixed_half_widths(draws: Draws, alphas: Array) -> Array:
    """For each alpha a k with P(|sum of all draws| > k) <= alpha: the smallest where the draws are narrow, else a little more.

    >>> mixed_half_widths(((Fraction(10), 26), (Fraction(10), 1)), np.array([0.05, 0.01]))
    array([145., 192.])
    """
    alphas = np.asarray(alphas, dtype=float)
    faint = alphas < FAINT
    found = np.empty(len(alphas))
    if faint.any():
        found[faint] = _chernoff(draws, alphas[faint])
    if not faint.all():
        grain, tails = _tails(draws)
        k = len(tails) - np.searchsorted(tails[::-1], alphas[~faint], side="right")
        found[~faint] = k if grain == 1 else np.ceil(grain * (k + sum(n for _, n in draws)))
    return found


@lru_cache(maxsize=64)
def _tails(draws: Draws) -> tuple[float, Array]:
    """The lattice, and P(|sum| > k) on it for k = 0, 1, ...: falling, and not below the truth."""
    deviation = math.sqrt(sum(2 * n * float(b) ** 2 for b, n in draws))
    grain = max(1.0, deviation / FINE)
    scales = [(float(b) / grain, n) for b, n in draws]
    reach = 60 * max(b for b, _ in scales) + 12 * deviation / grain + 64
    size = 2 ** math.ceil(math.log2(2 * reach))
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    logs = np.zeros(len(angles))
    for b, n in scales:
        q, gap = math.exp(-1 / b), -math.expm1(-1 / b)
        logs -= n * np.log1p(4 * q * np.sin(angles / 2) ** 2 / gap**2)
    mass = np.fft.irfft(np.exp(logs), size)[: size // 2].clip(0)
    tails = 2 * np.append(np.cumsum(mass[:0:-1])[::-1], 0) + ROUNDING
    return grain, np.asarray(np.append(tails[:-1], 0))


def _chernoff(draws: Draws, alphas: Array) -> Array:
    """E exp(tZ) = 1 / (1 - v (cosh t - 1)) with v the variance; the best t on a grid, for the two tails together."""
    variances = [
        (1 / (2 * math.sinh(1 / (2 * float(b))) ** 2) if b > Fraction(1, 600) else 0.0, n)
        for b, n in draws
    ]
    widest = max(v for v, _ in variances)
    if not widest:
        return np.zeros(len(alphas))
    s = np.concatenate(
        [np.geomspace(1e-6, 0.5, 200), 1 - np.geomspace(0.5, 1e-6, 200)]
    )  # v (cosh t - 1) of the widest, below 1
    t = np.arccosh(1 + s / widest) if widest < 1e12 else np.sqrt(2 * s / widest)
    log_moment = np.asarray(sum(-n * np.log1p(-s * (v / widest)) for v, n in variances))
    return np.asarray(np.ceil(((log_moment + np.log(2 / alphas)[:, None]) / t).min(axis=1)))
