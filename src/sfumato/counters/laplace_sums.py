"""The distribution of a sum of independent discrete Laplace draws: its tails and half-widths.

*One scale.* With q = exp(-1/b), A = (1-q)/(1-qz) and B = (1-q)/(1-q/z), one draw has the generating
function A B, and A B = (A + (q/z) B) / (1 + q). Applied again and again to A^n B^n, until one of
the two is used up, this writes the sum as a mixture. With m factors A left, a component is a
negative binomial variable of m successes less n - m. With m factors B left, it is one of m
successes plus n, below 0. All terms are positive, so nothing cancels.

*Several scales.* The sum is computed by a Fourier transform of its generating function on a circle
that is longer than the range in which its mass lies. Wide draws are put on a coarser lattice of
step g. A draw is a difference of two floor(E) with E exponential, and floor(E) lies less than g
above g floor(E / g), so P(|sum| > k) <= P(|sum of draws of scale b/g| > k/g - n). The rounding
error of the transform is less than ``ROUNDING``, which is added. For probabilities below ``FAINT``
a Chernoff bound is used instead.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array

ROUNDING = 1e-12
FAINT = 1e-10
FINE = 2048
"""How many lattice steps there are in a standard deviation, where draws are wide."""

Draws: TypeAlias = tuple[tuple[Fraction, int], ...]
"""Scales, and the number of draws of each."""


def laplace_sum_log_tail(scale: Fraction, draws: int, k: int) -> float:
    """Return ln P(|Z1 + ... + Zn| > k) for an integer k >= 0.

    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> one_draw = DiscreteLaplace(Fraction(7)).log_tail(20)
    >>> abs(laplace_sum_log_tail(Fraction(7), 1, 20) - one_draw) < 1e-12
    True
    """
    from scipy.special import betaincc, gammaln, logsumexp

    b = float(scale)
    n = draws
    q = math.exp(-1 / b)
    success = -math.expm1(-1 / b)
    m = np.arange(1, n + 1)
    log_ways = gammaln(2 * n - m) - gammaln(n) - gammaln(n - m + 1)
    log_weights = log_ways - (n - m) / b - (2 * n - m) * math.log1p(q)
    # P(a negative binomial variable of m successes > k + n - m), for each m
    beyond = betaincc(m, k + 1 + n - m, success)
    with np.errstate(divide="ignore"):
        one_side = float(logsumexp(log_weights + np.log(beyond)))
    return min(0.0, math.log(2) + one_side)


@lru_cache(maxsize=4096)
def laplace_sum_half_width(scale: Fraction, draws: int, alpha: float) -> int:
    """Return the smallest integer k with P(|Z1 + ... + Zn| > k) <= alpha.

    >>> [laplace_sum_half_width(Fraction(10), draws, 0.05) for draws in (1, 27)]
    [30, 145]
    """
    log_alpha = math.log(alpha)
    low = -1
    high = max(1, math.ceil(float(scale)))
    while laplace_sum_log_tail(scale, draws, high) > log_alpha:
        low = high
        high *= 2
    # The tail is above alpha at low and at most alpha at high.
    while high - low > 1:
        middle = (low + high) // 2
        if laplace_sum_log_tail(scale, draws, middle) > log_alpha:
            low = middle
        else:
            high = middle
    return high


def mixed_half_widths(draws: Draws, alphas: Array) -> Array:
    """Return, for each alpha, a k with P(|sum of all draws| > k) <= alpha.

    It is the smallest such k where the draws are narrow, and a little more where they are wide.

    >>> mixed_half_widths(((Fraction(10), 26), (Fraction(10), 1)), np.array([0.05, 0.01]))
    array([145., 192.])
    """
    alphas = np.asarray(alphas, dtype=float)
    faint = alphas < FAINT
    found = np.empty(len(alphas))
    if faint.any():
        found[faint] = _chernoff(draws, alphas[faint])
    if not faint.all():
        step, tails = _tails(draws)
        # The tails fall, so the first k with a tail of at most alpha is found from the end.
        k = len(tails) - np.searchsorted(tails[::-1], alphas[~faint], side="right")
        n_draws = sum(number for _, number in draws)
        found[~faint] = k if step == 1 else np.ceil(step * (k + n_draws))
    return found


@lru_cache(maxsize=64)
def _tails(draws: Draws) -> tuple[float, Array]:
    """Return the lattice step, and P(|sum| > k) on the lattice for k = 0, 1, ...

    The tails fall, and are not below the truth.
    """
    deviation = math.sqrt(sum(2 * number * float(scale) ** 2 for scale, number in draws))
    step = max(1.0, deviation / FINE)
    scales = [(float(scale) / step, number) for scale, number in draws]
    # Beyond this range lies less mass than ROUNDING, so nothing shows of what wraps around.
    widest = max(scale for scale, _ in scales)
    extent = 60 * widest + 12 * deviation / step + 64
    size = 2 ** math.ceil(math.log2(2 * extent))
    angles = 2 * math.pi * np.arange(size // 2 + 1) / size
    log_transform = np.zeros(len(angles))
    for scale, number in scales:
        q = math.exp(-1 / scale)
        gap = -math.expm1(-1 / scale)
        # The transform of one draw is 1 / (1 + 4 q sin(angle / 2)^2 / (1 - q)^2).
        sines = np.sin(angles / 2) ** 2
        log_transform -= number * np.log1p(4 * q * sines / gap**2)
    mass = np.fft.irfft(np.exp(log_transform), size)[: size // 2].clip(0)
    tails = 2 * np.append(np.cumsum(mass[:0:-1])[::-1], 0) + ROUNDING
    return step, np.asarray(np.append(tails[:-1], 0))


def _chernoff(draws: Draws, alphas: Array) -> Array:
    """Return half-widths by the Chernoff bound at the best t of a grid, for both tails together.

    A draw Z of variance v has E exp(tZ) = 1 / (1 - v (cosh t - 1)).
    """
    variances = [(_variance(scale), number) for scale, number in draws]
    widest = max(variance for variance, _ in variances)
    if not widest:
        return np.zeros(len(alphas))
    # s = v (cosh t - 1) for the widest draw; its moment is finite for s below 1.
    near_zero = np.geomspace(1e-6, 0.5, 200)
    near_one = 1 - np.geomspace(0.5, 1e-6, 200)
    s = np.concatenate([near_zero, near_one])
    # For wide draws t is small, cosh t - 1 is t^2 / 2, and 1 + s / widest would lose its digits.
    t = np.arccosh(1 + s / widest) if widest < 1e12 else np.sqrt(2 * s / widest)
    log_moment = np.zeros(len(s))
    for variance, number in variances:
        log_moment -= number * np.log1p(-s * (variance / widest))
    halves = (log_moment + np.log(2 / alphas)[:, None]) / t
    return np.asarray(np.ceil(halves.min(axis=1)))


def _variance(scale: Fraction) -> float:
    """Return the variance of one draw; below a scale of 1/600 it is 0 among doubles."""
    if scale <= Fraction(1, 600):
        return 0.0
    return 1 / (2 * math.sinh(1 / (2 * float(scale))) ** 2)
