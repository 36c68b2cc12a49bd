"""Tails of weighted sums of many independent draws of one law: bounds that hold.

*Laplace.* A draw Z of discrete Laplace noise of scale b is coupled with a continuous one, X, such
that abs(Z - X) <= 1 - c with c = b ln(2 / (1 + exp(-1/b))): with u uniform, abs(X) = -b ln u, and
abs(Z) = floor(-b ln u + c), or 0 where that is negative. So P(sum w Z >= x) is at most
P(sum w X >= x - (1 - c) sum abs(w)). The characteristic function of sum w X is the product of
1 / (1 + (w b t)^2), and its tail is a sum of a few hundred sines (Davies 1973), with an error that
is bounded below.

*Gaussian.* abs(Z - X) <= 1 to nine digits where sigma is at least 1 (see Canonne, Kamath, Steinke
2020, Prop. 27), and 1.000001 is taken; and in any case the sum is subgaussian (Prop. 21).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law

GAUSSIAN_SLACK = 1.000001
PERIOD = 20.0  # standard deviations after which the sum of sines repeats itself
N_SINES = 320
FURTHEST = 8.0  # standard deviations; a tail further out is bounded by the one there
# Of the sum of sines. Cut off after T = N_SINES 2 pi / PERIOD = 100, it misses less than
# 1 / (pi T^2), since the characteristic function is at most 1 / (1 + t^2 / 2) where the variance is
# 1. Its repetition adds at most the tail beyond 12 standard deviations, less than 10^-6.
ERROR = 1 / (math.pi * (2 * math.pi * N_SINES / PERIOD) ** 2) + 1e-6
LEAST_ALPHA = 50 * ERROR  # below it, Chernoff's bound is the narrower one
AT_ONCE = 2048  # sums whose sines are held in memory together
LARGEST_TABLE = 2**21  # masses of the law of an unweighted sum


def tails(law: Law, weights: Array, at: Array) -> Array:
    """Bound P(sum_j w_j Z_j >= x) from above, for independent draws Z_j.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
    weights : float64 ndarray of shape (sums, k)
    at : float64 ndarray of shape (sums,)
        The x of each sum. At 0 or below nothing is bounded, and 1 is returned.

    Returns
    -------
    float64 ndarray of shape (sums,)
    """
    sizes = np.abs(np.asarray(weights, float))
    norms = np.sqrt((sizes**2).sum(axis=1))
    safe = np.where(norms > 0, norms, 1.0)
    if isinstance(law, DiscreteGaussian):
        found = _gaussian(law, sizes, safe, at)
    else:
        found = _laplace(law, sizes, safe, at)
    # A sum without weights is 0: it never reaches a positive number.
    found = np.where(norms > 0, found, 0.0)
    return np.asarray(np.where(at > 0, found, 1.0))


def _gaussian(law: DiscreteGaussian, sizes: Array, norms: Array, at: Array) -> Array:
    from scipy.special import ndtr

    deviations = law.sigma * norms
    subgaussian = np.exp(-((at / deviations) ** 2) / 2)
    if law.sigma < 1:
        return np.asarray(subgaussian)
    coupled = ndtr(-(at - GAUSSIAN_SLACK * sizes.sum(axis=1)) / deviations)
    return np.asarray(np.minimum(subgaussian, coupled))


def _laplace(law: DiscreteLaplace, sizes: Array, norms: Array, at: Array) -> Array:
    scale = float(law.scale)
    slack = 1 - scale * (math.log(2) - math.log1p(math.exp(-1 / scale)))
    deviations = math.sqrt(2) * scale * norms
    standard = (at - slack * sizes.sum(axis=1)) / deviations
    shares = (scale * sizes / deviations[:, None]) ** 2
    found = np.ones(len(sizes))
    for start in range(0, len(sizes), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        found[some] = _continuous_tails(shares[some], standard[some])
    return found


def _continuous_tails(squared_scales: Array, at: Array) -> Array:
    """Tails of sums of continuous Laplace draws, whose variances add up to 1, with the error."""
    numbers = np.arange(N_SINES) + 0.5
    times = 2 * math.pi / PERIOD * numbers
    inverse = np.ones((len(squared_scales), N_SINES))
    for column in squared_scales.T:
        inverse *= 1 + column[:, None] * times**2
    x = np.minimum(at, FURTHEST)
    terms = np.sin(x[:, None] * times) / (inverse * math.pi * numbers)
    tail = np.clip(0.5 - terms.sum(axis=1), 0, 1) + ERROR
    return np.asarray(np.where(at > 0, np.minimum(tail, 1), 1.0))


def chernoff_half_widths(law: Law, weights: Array, alpha: float) -> Array:
    """Bounds t with P(abs(sum_j w_j Z_j) > t) <= alpha, for any alpha: ndarray of shape (sums,)."""
    sizes = np.abs(np.asarray(weights, float))
    largest = sizes.max(axis=1)
    safe = np.where(largest > 0, largest, 1.0)
    effective = ((sizes / safe[:, None]) ** 2).sum(axis=1)
    return np.asarray(largest * law.sum_half_width(effective, alpha))


@lru_cache(maxsize=256)
def plain_sum_half_width(law: Law, terms: int, alpha: float) -> int:
    """The smallest integer t with P(abs(Z_1 + .. + Z_terms) > t) <= alpha.

    The law of the sum is computed from that of one draw, by a Fourier transform whose period is so
    long that what is beyond it does not matter. Where that table would be too large, it is
    Chernoff's bound.

    >>> from fractions import Fraction
    >>> law = DiscreteLaplace(Fraction(10))
    >>> plain_sum_half_width(law, 1, .05) == law.half_width(.05)
    True
    """
    if terms <= 1:
        return law.half_width(alpha) if terms else 0
    bound = math.ceil(float(law.sum_half_width(np.array([float(terms)]), 1e-13)[0]))
    size = 2 ** (2 * bound + 2).bit_length()
    if size > LARGEST_TABLE:
        return math.ceil(float(law.sum_half_width(np.array([float(terms)]), alpha)[0]))
    magnitudes = np.minimum(np.arange(size), size - np.arange(size)).astype(float)
    if isinstance(law, DiscreteLaplace):
        masses = np.exp(-magnitudes / float(law.scale))
    else:
        masses = np.exp(-(magnitudes**2) / (2 * float(law.sigma_squared)))
    spectrum = np.fft.rfft(masses / masses.sum())
    of_sum = np.maximum(np.fft.irfft(spectrum**terms, size), 0)[: size // 2]
    # Both sides beyond t, the smallest masses first; the error of the transform is added.
    beyond = 2 * np.cumsum(of_sum[::-1])[::-1] + 1e-12
    tail = np.append(beyond[1:], 1e-12)
    return int(np.argmax(tail <= alpha))
