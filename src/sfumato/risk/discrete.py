"""The best membership tests against discrete noise (Neyman and Pearson).

The best test accuses if the answer is ``t`` or more, and at t - 1 by tossing a coin. Holds because:
for discrete Laplace and discrete Gaussian noise the likelihood ratio of a shift grows with the
answer.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfc

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law

# The largest sigma for which masses are added up. Above, an integral errs by a relative 1 /
# sigma^2.
WIDEST = 1e5
# A float holds no mass beyond this many sigmas.
FARTHEST = 39


def tail(law: Law, t: int) -> float:
    """Return P(Z >= t)."""
    if t <= 0:
        return 1 - _upper(law, 1 - t)
    return _upper(law, t)


def _upper(law: Law, t: int) -> float:
    """Return P(Z >= t) for t >= 1."""
    if isinstance(law, DiscreteLaplace):
        rate = 1 / float(law.scale)
        return math.exp(-rate * t) / (1 + math.exp(-rate))
    if law.sigma > WIDEST:
        return float(erfc((t - 0.5) / law.sigma / math.sqrt(2))) / 2
    table = _table(law)
    return float(table[t]) if t < len(table) else 0.0


@lru_cache(maxsize=4)
def _table(law: DiscreteGaussian) -> Array:
    """Return P(Z >= t) for t = 0, 1, ..."""
    t = np.arange(math.ceil(FARTHEST * law.sigma) + 2, dtype=float)
    mass = np.exp(-(t**2) / (2 * float(law.sigma_squared)))
    above = np.cumsum(mass[::-1])[::-1]
    # The law is symmetric, so the whole mass is that from 0 on, twice, less that at 0, which is 1.
    return np.asarray(above / (2 * above[0] - 1))


def advantage(law: Law, shift: int) -> float:
    """Return the largest true-positive rate less false-positive rate."""
    # The shifted law is the likelier one above shift / 2.
    t = shift // 2 + 1
    return tail(law, t - shift) - tail(law, t)


def true_positive_rate(law: Law, shift: int, fpr: float) -> float:
    """Return the largest true-positive rate at a false-positive rate."""
    t = _least(law, fpr)
    low = tail(law, t)
    high = tail(law, t - 1)
    # A coin at t - 1 makes the curve a straight line between two thresholds.
    share = (fpr - low) / (high - low) if high > low else 0.0
    found = tail(law, t - shift)
    return found + share * (tail(law, t - 1 - shift) - found)


def loss(law: Law, shift: int, allowed: float) -> float:
    """Return the privacy loss that a shifted answer exceeds with at most this probability."""
    if isinstance(law, DiscreteLaplace):
        at = shift if allowed == 0 else min(shift + _least(law, allowed) - 1, shift)
        return (abs(at) - abs(at - shift)) / float(law.scale)
    if allowed == 0:
        return math.inf
    at = shift + _least(law, allowed) - 1
    return (2 * shift * at - shift**2) / (2 * float(law.sigma_squared))


def _least(law: Law, chance: float) -> int:
    """Return the smallest t with P(Z >= t) <= chance."""
    low = -1
    high = 1
    while tail(law, high) > chance:
        high *= 2
    while tail(law, low) <= chance:
        low *= 2
    while high - low > 1:
        middle = (low + high) // 2
        if tail(law, middle) > chance:
            low = middle
        else:
            high = middle
    return high
