"""Continuous noise, for questions about risk: how well one answer tells two neighbours apart.

Releases add discrete noise, which is in ``sfumato.mechanisms``. These are its continuous
counterparts.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from sfumato.basics.numbers import Exactly, positive, probability
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP


class Laplace(msgspec.Struct, frozen=True, tag="laplace"):
    """Continuous Laplace noise.

    Parameters
    ----------
    scale : float
        Above 0: the mean size of the noise.

    >>> from sfumato import risk
    >>> risk.advantage(risk.Laplace(2.0), sensitivity=1)
    0.22119921692859512
    """

    scale: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "scale", float(positive(self.scale, "scale")))


class Gaussian(msgspec.Struct, frozen=True, tag="gaussian"):
    """Continuous Gaussian noise.

    Parameters
    ----------
    sigma : float
        Above 0: the standard deviation.

    >>> from sfumato import risk
    >>> round(risk.advantage(risk.Gaussian(2.0), sensitivity=1), 4)
    0.1974
    """

    sigma: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "sigma", float(positive(self.sigma, "sigma")))


Promise: TypeAlias = PureDP | ApproxDP | ZCDP
Noise: TypeAlias = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian
Protection: TypeAlias = Promise | Noise


def gaussian_for(*, epsilon: Exactly, delta: Exactly, sensitivity: Exactly = 1) -> Gaussian:
    """Return the least Gaussian noise that meets (epsilon, delta).

    Parameters
    ----------
    epsilon : number above 0
    delta : number in (0, 1)
    sensitivity : number
        By how much one person moves the answer, in L2.

    Returns
    -------
    Gaussian

    Holds because: with m = sensitivity / sigma, delta(epsilon) = Phi(m/2 - epsilon/m) - e^epsilon
    Phi(-m/2 - epsilon/m) grows with m, and the search ends on the side of more noise.
    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_for(epsilon=1, delta="1e-6").sigma, 3)
    4.225
    """
    from scipy.special import log_ndtr, ndtr

    level = float(positive(epsilon, "epsilon"))
    slack = float(probability(delta, "delta"))

    def spent(shift: float) -> float:
        likely = ndtr(shift / 2 - level / shift)
        unlikely = math.exp(level + log_ndtr(-shift / 2 - level / shift))
        return float(likely - unlikely)

    low = 0.0
    high = 1.0
    while spent(high) <= slack:
        low = high
        high *= 2
    while high > low * (1 + 1e-13):
        middle = (low + high) / 2
        if spent(middle) <= slack:
            low = middle
        else:
            high = middle
    return Gaussian(float(positive(sensitivity, "sensitivity")) / low)


def shift_of(noise: Noise, sensitivity: Exactly) -> float:
    """Check by how much one person moves the answer; for discrete noise it is a whole number."""
    exact = positive(sensitivity, "sensitivity")
    if isinstance(noise, DiscreteLaplace | DiscreteGaussian) and exact.denominator != 1:
        raise UsageError(
            "a fractional sensitivity for noise on whole numbers",
            "its answers are whole",
            "Give a whole sensitivity",
        )
    return float(exact)
