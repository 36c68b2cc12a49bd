"""The exact law of a contrast: how far the noise on counts moves "rows below, less q of all rows".

The counts are of disjoint cells, some below a place and the others above it. Each has one draw of
the same law. So the noise of (rows below - q * all rows) is (1 - q) X - q Y, where X is the sum of
the draws below and Y the sum of those above. Nothing here draws or spends.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteLaplace, Law
from sfumato.mechanisms.sums import half_widths, spread

OUTSIDE = 1e-9
"""The share of alpha that the range of a sum may leave out; it counts as beyond the half-width."""

LONGEST = 2**20
"""Points of the law of a sum. Wider laws are bounded instead."""


@lru_cache(maxsize=2**14)
def contrast_half_width(law: Law, below: int, above: int, q: Fraction, alpha: float) -> int:
    """The smallest integer k with P(|(1 - q) X - q Y| > k) <= alpha.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        Of every draw.
    below, above : int
        How many independent draws X and Y add up.
    q : Fraction
        From 0 to 1: with 0 it is the law of X, with 1 that of Y.
    alpha : float

    Returns
    -------
    int
        Exact but for ``OUTSIDE``. Where the sums are wider than ``LONGEST``, a Chernoff bound,
        which may be larger.

    >>> law = DiscreteLaplace(Fraction(5))
    >>> contrast_half_width(law, 1, 0, Fraction(0), 0.05) == law.half_width(0.05)
    True
    >>> contrast_half_width(law, 2, 2, Fraction(1, 2), 0.05)
    14
    """
    bound = _bound(law, below, above, q, alpha)
    x = sum_masses(law, below, OUTSIDE * alpha)
    y = sum_masses(law, above, OUTSIDE * alpha)
    if x is None or y is None:
        return bound
    return _smallest(x, np.concatenate([[0], np.cumsum(y)]), q, alpha, bound)


@lru_cache(maxsize=2**10)
def sum_masses(law: Law, number: int, outside: float) -> Array | None:
    """The probabilities of the sum of ``number`` draws at -R, .., R; None where R is too large.

    R is such that the sum lies farther away with a probability of at most ``outside``.
    """
    if not number or not law.variance:
        return np.ones(1)
    reach = _bound(law, number, 0, Fraction(0), outside)
    if 2 * reach + 1 > LONGEST:
        return None
    length = 1 << (2 * reach + 1).bit_length()
    at = np.arange(length)
    distance = np.minimum(at, length - at).astype(float)
    if isinstance(law, DiscreteLaplace):
        one = np.exp(-distance / float(law.scale))
    else:
        one = np.exp(-(distance**2) / (2 * float(law.sigma_squared)))
    transform = np.fft.rfft(one / one.sum()).real
    circle = np.maximum(np.fft.irfft(transform**number, length), 0)
    return np.concatenate([circle[-reach:], circle[: reach + 1]]) if reach else circle[:1]


def _bound(law: Law, below: int, above: int, q: Fraction, alpha: float) -> int:
    """A Chernoff bound on the half-width."""
    weights = (float(1 - q) if below else 0.0, float(q) if above else 0.0)
    variance = spread(law) * (below * weights[0] ** 2 + above * weights[1] ** 2)
    found = half_widths(np.array([variance]), [(law, max(weights))], alpha)
    return math.ceil(float(found[0]))


def _smallest(x: Array, y_below: Array, q: Fraction, alpha: float, bound: int) -> int:
    """Search for the smallest half-width: the probability outside of it falls as it grows.

    Parameters
    ----------
    x : float64 ndarray of shape (2 R + 1,)
        The law of X.
    y_below : float64 ndarray of shape (2 S + 2,)
        Partial sums of the law of Y, the first of them 0.
    """
    reach_x = len(x) // 2
    reach_y = (len(y_below) - 2) // 2
    at = (q.denominator - q.numerator) * np.arange(-reach_x, reach_x + 1)

    def inside(half: int) -> float:
        # (1 - q) x - q y is within the half-width for y from ``first`` to ``last``.
        room = q.denominator * half
        if not q:
            return float(x[np.abs(at) <= room].sum() * y_below[-1])
        first = -((room - at) // q.numerator)
        last = (at + room) // q.numerator
        high = y_below[np.clip(last + reach_y + 1, 0, len(y_below) - 1)]
        low = y_below[np.clip(first + reach_y, 0, len(y_below) - 1)]
        return float((x * np.maximum(high - low, 0)).sum())

    least, most = -1, bound
    while most - least > 1:
        middle = (least + most) // 2
        if inside(middle) >= 1 - alpha:
            most = middle
        else:
            least = middle
    return most
