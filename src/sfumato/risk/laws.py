"""Noise in real numbers, for questions about risk: how well one answer tells two neighbours apart.

The discrete laws that releases use are in ``sfumato.mechanisms``; these are their continuous counterparts.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.numbers import Exactly, positive, probability
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP


class Laplace(msgspec.Struct, frozen=True, tag="laplace"):
    """Continuous Laplace noise of this scale."""

    scale: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "scale", float(positive(self.scale, "scale")))


class Gaussian(msgspec.Struct, frozen=True, tag="gaussian"):
    """Continuous Gaussian noise of this standard deviation."""

    sigma: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "sigma", float(positive(self.sigma, "sigma")))


Promise: TypeAlias = PureDP | ApproxDP | ZCDP
Noise: TypeAlias = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian
Protection: TypeAlias = Promise | Noise


def gaussian_for(*, epsilon: Exactly, delta: Exactly, sensitivity: Exactly = 1) -> Gaussian:
    """The Gaussian noise that just meets (epsilon, delta).

    Holds because: delta(epsilon) = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m) with m = sensitivity / sigma grows
    with m; the search ends on the side of more noise.
    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_for(epsilon=1, delta="1e-6").sigma, 3)
    4.225
    """
    from scipy.special import log_ndtr, ndtr

    level, slack = float(positive(epsilon, "epsilon")), float(probability(delta, "delta"))

    def spent(shift: float) -> float:
        return float(
            ndtr(shift / 2 - level / shift) - math.exp(level + log_ndtr(-shift / 2 - level / shift))
        )

    low, high = 0.0, 1.0
    while spent(high) <= slack:
        low, high = high, 2 * high
    while high > low * (1 + 1e-13):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= slack else (low, middle)
    return Gaussian(float(positive(sensitivity, "sensitivity")) / low)


def shift_of(noise: Noise, sensitivity: Exactly) -> float:
    """By how much one person moves the answer, checked: whole for noise on whole numbers."""
    exact = positive(sensitivity, "sensitivity")
    if isinstance(noise, DiscreteLaplace | DiscreteGaussian) and exact.denominator != 1:
        raise UsageError(
            "a fractional sensitivity for noise on whole numbers",
            "its answers are whole",
            "Give a whole sensitivity",
        )
    return float(exact)
