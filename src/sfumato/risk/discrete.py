"""Tests against noise on the integers: accuse at ``t`` or more, at t - 1 by a coin (Neyman and Pearson).

Holds because: for discrete Laplace and discrete Gaussian noise the likelihood ratio of a shift grows with the answer.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import erfc

from sfumato.arrays import Array
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law

WIDEST = 1e5  # sigma up to which the masses are added up; above, sums are integrals to a relative 1 / sigma^2
REACH = 39  # sigmas beyond which a float holds no mass


def tail(law: Law, t: int) -> float:
    """P(Z >= t)."""
    if t <= 0:
        return 1 - _upper(law, 1 - t)
    return _upper(law, t)


def _upper(law: Law, t: int) -> float:
    """P(Z >= t) for t >= 1."""
    if isinstance(law, DiscreteLaplace):
        rate = 1 / float(law.scale)
        return math.exp(-rate * t) / (1 + math.exp(-rate))
    if law.sigma > WIDEST:
        return float(erfc((t - 0.5) / law.sigma / math.sqrt(2))) / 2
    table = _table(law)
    return float(table[t]) if t < len(table) else 0.0


@lru_cache(maxsize=4)
def _table(law: DiscreteGaussian) -> Array:
    mass = np.exp(
        -(np.arange(math.ceil(REACH * law.sigma) + 2, dtype=float) ** 2)
        / (2 * float(law.sigma_squared))
    )
    above = np.cumsum(mass[::-1])[::-1]
    return np.asarray(above / (2 * above[0] - 1))


def advantage(law: Law, shift: int) -> float:
    """The shifted law is the likelier one above shift / 2."""
    t = shift // 2 + 1
    return tail(law, t - shift) - tail(law, t)


def true_positive_rate(law: Law, shift: int, fpr: float) -> float:
    """Between two thresholds the curve is a straight line."""
    t = _least(law, fpr)
    low, high = tail(law, t), tail(law, t - 1)
    share = (fpr - low) / (high - low) if high > low else 0.0
    return tail(law, t - shift) + share * (tail(law, t - 1 - shift) - tail(law, t - shift))


def loss(law: Law, shift: int, allowed: float) -> float:
    """The privacy loss that a shifted answer exceeds with at most this probability."""
    if isinstance(law, DiscreteLaplace):
        at = shift if allowed == 0 else min(shift + _least(law, allowed) - 1, shift)
        return (abs(at) - abs(at - shift)) / float(law.scale)
    if allowed == 0:
        return math.inf
    at = shift + _least(law, allowed) - 1
    return (2 * shift * at - shift**2) / (2 * float(law.sigma_squared))


def _least(law: Law, chance: float) -> int:
    """The smallest t with P(Z >= t) <= chance."""
    low, high = -1, 1
    while tail(law, high) > chance:
        high *= 2
    while tail(law, low) <= chance:
        low *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(law, middle) > chance else (low, middle)
    return high
