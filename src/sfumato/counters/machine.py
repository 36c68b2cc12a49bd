"""What an exact counter is: a pure machine from integer increments to integer outputs, which are all that is ever published.

A machine draws exact integer noise, publishes integers and nothing else, and knows what they say of the running totals: the
estimates are functions of what was published, so their rounding costs accuracy and never privacy. No true total meets a float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.random.bits import Bits

S = TypeVar("S")

Whole: TypeAlias = tuple[int, ...]
"""One integer per category."""

Follow: TypeAlias = Callable[[Whole], Sequence[float]]
"""Turns one published output after another into estimates of the running totals, one per category."""


class Machine(Protocol[S]):
    """A frozen value that takes steps. ``step`` is pure but for the noise; the caller stores state and output together."""

    @property
    def horizon(self) -> int | None:
        """How many steps it may take; None: any number."""

    @property
    def cells(self) -> int:
        """How many categories it counts side by side."""

    def start(self) -> S:
        """The state before the first step. States are secret: they hold true totals or the noise itself."""

    def step(self, state: S, increment: Whole, noise: Bits) -> tuple[S, Whole]:
        """Take one step: the state after it, and what it publishes."""

    def follow(self) -> Follow:
        """Begin to read what is published, from the first step on."""

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """How far the estimates may lie from the truth after steps ``first`` to ``last``.

        Returns
        -------
        float64 ndarray of shape (last - first + 1,)
            The total of one category is missed by more with probability at most ``alpha`` (one number, or one per step).
        """

    def variances(self, first: int, last: int) -> Array:
        """Variances of the estimates after steps ``first`` to ``last``: float64 ndarray."""

    def laws(self, first: int, last: int) -> list[str]:
        """The errors of the totals after steps ``first`` to ``last``, in words and in grains."""

    def __str__(self) -> str:
        """The mechanism in words."""


def no_machine(name: str, obstacle: str) -> UsageError:
    """The refusal of a mechanism that no counter makes; it can only come from a file."""
    return UsageError(
        f"{name} for a running total", obstacle, "Load a file that release.save wrote"
    )


@lru_cache(maxsize=64)
def variance_of(law: DiscreteGaussian) -> float:
    """The variance of a law, kept at hand: every step asks for it."""
    return law.variance


class NormalErrors(msgspec.Struct, frozen=True):
    """A machine whose estimates err by a normal law, another one at each step."""

    def variances(self, first: int, last: int) -> Array:
        """Variances of the estimates after steps ``first`` to ``last``: float64 ndarray."""
        raise NotImplementedError

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Normal quantiles: see ``normal_half_widths``."""
        return normal_half_widths(self.variances(first, last), alpha)

    def laws(self, first: int, last: int) -> list[str]:
        """Every step has a law of its own."""
        deviations = np.sqrt(self.variances(first, last)).tolist()
        return [f"normal of standard deviation {deviation:.6g}" for deviation in deviations]


def normal_half_widths(variances: Array, alpha: Array | float) -> Array:
    """Two-sided normal quantiles: float64 ndarray like ``variances``.

    The errors are sums of discrete Gaussian draws whose lattice is thousands of times finer than their sigma; such a sum differs from the
    normal law by less than the rounding of this computation, for which the quantile is widened by a relative 1e-9.
    """
    from scipy.special import ndtri

    return np.asarray(-ndtri(np.asarray(alpha) / 2) * np.sqrt(variances) * (1 + 1e-9))
