"""Running totals under concentrated privacy: a Toeplitz matrix of the increments plus exact noise.

Step t publishes one integer per category, y(t) = (C x)(t) + z(t), in units of 2^-precision. C is
lower triangular and Toeplitz. Its coefficients are those of (1 - x)^(-1/2), each rounded to a whole
number of units. z is discrete Gaussian on the same lattice.

Privacy. One person moves y by C d, a whole number of units at each step. The squared L2 norm of C d
is at most an integer that ``squared_sensitivity`` computes exactly, whatever the other increments
are. Steps are drawn one after another with fresh noise, and their divergences add up to at most
rho = (that integer) / (2 sigma^2). This also holds for increments that are chosen after seeing
earlier outputs, since C is lower triangular and the bound holds along every path. Coefficients that
are not whole numbers of units would break it: noise on the lattice cannot hide a shift by part of
a unit, which would tell neighbours apart with certainty.

Accuracy. The totals are estimated as B y, where B C is the matrix of running sums. This is computed
in floats, from published numbers only.

Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023; Canonne, Kamath, Steinke 2020, Thm 4; for
steps one after another: Denisov et al., NeurIPS 2022, and Bun, Steinke 2016, Lemma 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import add, mul

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.counters.mechanism import (
    Estimator,
    NormalErrors,
    Whole,
    invalid_mechanism,
    variance_of,
)
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.random.bits import Bits
from sfumato.streaming.toeplitz import decoder, dyadic_coefficients

PRECISION = 16
MOST_PRECISE = 40
LITTLE_ENDIAN = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}
LONGEST = 1024
"""The longest horizon. Every step works through all earlier ones, so longer streams use buffers
(``blt``), which lose less than 1% of accuracy."""


class ColumnState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Secret: all true increments so far, one step after another.

    Attributes
    ----------
    packed : bytes
        Signed little-endian numbers of ``width`` bytes each. The width is the least that holds the
        largest number, so that a state is short.
    width : int
        A power of two.
    size : int
        The sum of the absolute values.
    increments : tuple of tuple of int
        The form of earlier versions, one tuple per step. It is still read, and no longer written.
    """

    packed: bytes = b""
    width: int = 1
    size: int = 0
    increments: tuple[Whole, ...] = ()

    def then(self, increment: Whole) -> ColumnState:
        """Return the state with one more step."""
        try:
            added = _bytes(increment, self.width)
        except OverflowError:
            added = b""
        if self.increments or not added:
            return _packed([*self.values(), *increment], self.width)
        return ColumnState(self.packed + added, self.width, self.size + sum(map(abs, increment)))

    def values(self) -> list[int]:
        """Return all increments, the categories of one step after those of another."""
        starts = range(0, len(self.packed), self.width)
        unpacked = [
            int.from_bytes(self.packed[start : start + self.width], "little", signed=True)
            for start in starts
        ]
        return [*chain.from_iterable(self.increments), *unpacked]


def _width(values: Sequence[int], least: int) -> int:
    while any(x.bit_length() >= 8 * least for x in values):
        least *= 2
    return least


def _packed(values: list[int], least: int) -> ColumnState:
    width = _width(values, least)
    return ColumnState(_bytes(values, width), width, sum(map(abs, values)))


def _bytes(values: Sequence[int], width: int) -> bytes:
    return b"".join([x.to_bytes(width, "little", signed=True) for x in values])


class ToeplitzCounter(NormalErrors, frozen=True, tag="toeplitz", forbid_unknown_fields=True):
    """The square-root factorisation on a lattice.

    Parameters
    ----------
    horizon : int
        The largest number of steps, at most 1,024.
    law : DiscreteGaussian
        The noise on each step, in units of 2^-precision.
    cells : int
        The number of categories.
    precision : int
        The number of binary places.

    >>> column(4, 4).tolist()
    [16, 8, 6, 5]
    """

    horizon: int
    law: DiscreteGaussian
    cells: int = 1
    precision: int = PRECISION

    def __post_init__(self) -> None:
        steps = 1 <= self.horizon <= LONGEST
        places = 0 <= self.precision <= MOST_PRECISE
        if not steps or not places or self.cells < 1:
            obstacle = "its horizon, its categories or its precision cannot be"
            raise invalid_mechanism("a Toeplitz matrix", obstacle)

    def start(self) -> ColumnState:
        """Return the state of no increments."""
        return ColumnState()

    def step(self, state: ColumnState, increment: Whole, noise: Bits) -> tuple[ColumnState, Whole]:
        """Publish C x at this step plus noise, in whole units."""
        after = state.then(increment)
        fresh = self.law.sample(self.cells, noise).tolist()
        return after, tuple(map(add, self._sums(after), fresh))

    def _sums(self, state: ColumnState) -> list[int]:
        """Return C x at the last step, exactly."""
        weights = _reversed_column(self.horizon, self.precision)
        # No weight exceeds 2^precision, so no partial sum exceeds size 2^precision in magnitude:
        # while that is below 2^62, 64-bit integers are exact. Above, Python's integers are.
        if state.size >> 62 - self.precision == 0:
            numbers = np.frombuffer(state.packed, LITTLE_ENDIAN[state.width])
            steps = numbers.reshape(-1, self.cells)
            narrow: list[int] = np.dot(weights[len(weights) - len(steps) :], steps).tolist()
            return narrow
        values = state.values()
        wide = weights[len(weights) - len(values) // self.cells :].tolist()
        return [sum(map(mul, wide, values[cell :: self.cells])) for cell in range(self.cells)]

    def estimator(self) -> Estimator:
        """Estimate totals as B y: the sum of all outputs, each times a coefficient of B."""
        weights = np.ascontiguousarray(decoding_column(self.horizon, self.precision)[::-1])
        seen = np.zeros((self.horizon, self.cells))
        done = 0

        def estimate(output: Whole) -> list[float]:
            nonlocal done
            seen[done] = output
            done += 1
            totals: list[float] = np.dot(weights[len(weights) - done :], seen[:done]).tolist()
            return totals

        return estimate

    def variances(self, first: int, last: int) -> Array:
        """Return sigma^2 times the sum of the squared coefficients of B up to each step."""
        return squares(self.horizon, self.precision)[first - 1 : last] * variance_of(self.law)

    def __str__(self) -> str:
        units = f"2^-{self.precision}"
        return f"a square-root Toeplitz matrix in units of {units} with {self.law} on each step"


@lru_cache(maxsize=16)
def column(horizon: int, precision: int) -> Array:
    """Return the first column of C in whole units."""
    return dyadic_coefficients(horizon, precision)


@lru_cache(maxsize=16)
def _reversed_column(horizon: int, precision: int) -> Array:
    """Return the column from its end: the weights of the first t increments are its last t."""
    return np.ascontiguousarray(column(horizon, precision)[::-1])


@lru_cache(maxsize=16)
def decoding_column(horizon: int, precision: int) -> Array:
    """Return the first column of B, which turns outputs in units of 2^-precision into totals."""
    return decoder(column(horizon, precision) / 2.0**precision) / 2.0**precision


@lru_cache(maxsize=16)
def squares(horizon: int, precision: int) -> Array:
    """Return the sums of the first 1, 2, ... squared coefficients of B."""
    return np.cumsum(decoding_column(horizon, precision) ** 2)
