"""What every counter mechanism offers: steps from integer increments to integer outputs.

A mechanism adds exact integer noise and publishes integers. The estimates of the running totals
are computed from these outputs alone. Floating-point rounding in an estimate therefore costs
accuracy, never privacy, and no true total is ever converted to a float.

``Total`` is what a stream returns after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np

from sfumato.answers import Estimate
from sfumato.basics import Array
from sfumato.mechanisms import DiscreteGaussian
from sfumato.random.bits import Bits

S = TypeVar("S")

# One integer per category.
Whole: TypeAlias = tuple[int, ...]

# Takes the outputs one by one, in order, and returns the estimated totals, one per category.
Estimator: TypeAlias = Callable[[Whole], Sequence[float]]


class CounterMechanism(Protocol[S]):
    """A frozen value that takes the steps of a running total.

    ``step`` depends on its arguments and the noise only. The caller stores the new state and the
    output together.
    """

    def start(self) -> S:
        """Return the state before the first step.

        States are secret: they hold true totals, or the noise itself.
        """

    def step(self, state: S, increment: Whole, noise: Bits) -> tuple[S, Whole]:
        """Take one step, and return the state after it and the output to publish."""


@lru_cache(maxsize=64)
def variance_of(law: DiscreteGaussian) -> float:
    """Return the variance of a law; cached, since every step asks for it."""
    return law.variance


class NormalErrors(msgspec.Struct, frozen=True):
    """A mechanism whose estimates have normal errors, of another variance at each step."""

    def variances(self, first: int, last: int) -> Array:
        """Return the variances of the estimates after steps ``first`` to ``last``, as float64."""
        raise NotImplementedError

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Return the half-widths of the intervals after steps ``first`` to ``last``.

        They are two-sided normal quantiles: float64 ndarray of shape (last - first + 1,). ``alpha``
        is one probability with which a total may lie outside its interval, or one for each step.
        """
        from scipy.special import ndtri

        quantiles = -ndtri(np.asarray(alpha) / 2)
        # The errors are sums of discrete Gaussian draws whose lattice is thousands of times finer
        # than their sigma. Such a sum differs from the normal law by less than the rounding of this
        # computation, and the slack covers that rounding.
        deviations = np.sqrt(self.variances(first, last))
        return np.asarray(quantiles * deviations * (1 + 1e-9))

    def laws(self, first: int, last: int) -> list[str]:
        """Describe the error of each total by its standard deviation."""
        deviations = np.sqrt(self.variances(first, last)).tolist()
        return [f"normal of standard deviation {deviation:.6g}" for deviation in deviations]


class Total(Estimate, frozen=True, kw_only=True):
    """A running total after one step, with its interval, its band and its error distribution.

    Attributes
    ----------
    value, low, high : int or float; ndarray of shape (categories,) with categories
        The truth lies in [low, high] with probability ``confidence``, for this one step.
    confidence : float
    step : int
        From 1 on.
    event : str
        The name of the step; "" if it has none.
    all_low, all_high : like ``low``
        The band: all steps and categories together lie in theirs with probability ``confidence``.
    deviation : float
        Standard deviation of the error.
    law : str
        The error distribution in words.
    names : tuple of str
        Names of the categories; empty without categories.
    """

    step: int
    event: str
    all_low: float | Array
    all_high: float | Array
    deviation: float
    law: str
    names: tuple[str, ...]
