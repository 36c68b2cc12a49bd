"""Running totals under concentrated privacy: what is published is a Toeplitz matrix of the increments, plus exact noise.

Step t publishes one integer per category, y(t) = (C x)(t) + z(t), in units of 2^-precision. C is lower triangular and Toeplitz with
the coefficients of (1 - x)^(-1/2), each rounded to a whole number of units; z is discrete Gaussian on the same lattice.

Privacy. One person moves y by C d, whole units, and the squared length of C d is at most an integer that is computed exactly
(``squared_sensitivity``), whatever the other increments are. Steps are drawn one after another, each with fresh noise, and each
divergence adds up to at most rho = (that integer) / (2 sigma^2): also if increments are chosen after seeing earlier outputs, since
C is lower triangular and the bound holds along every path. C with real coefficients would not do: a shift by part of a unit is a
shift by nothing on the lattice of the noise, and tells neighbours apart for certain.

Accuracy. The totals are read as B y with B C the running sums, in floats, from what was published only.
Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023; Canonne, Kamath, Steinke 2020, Thm 4; Denisov et al., NeurIPS 2022, and
Bun, Steinke 2016, Lemma 2.3, for steps one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import add, mul

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.counters.machine import Follow, NormalErrors, Whole, no_machine, variance_of
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.random.bits import Bits
from sfumato.streaming.toeplitz import decoder, dyadic_coefficients

PRECISION, MOST_PRECISE = 16, 40
NARROW = {width: np.dtype(f"<i{width}") for width in (1, 2, 4, 8)}
LONGEST = 1024
"""Every step works through all earlier ones, so longer streams take buffers instead (``exact_blt``), which lose less than 1 %."""


class ColumnState(msgspec.Struct, frozen=True, omit_defaults=True):
    """Secret: all true increments so far, one step after another.

    Attributes
    ----------
    packed : bytes
        Signed numbers of ``width`` bytes each, the low byte first: as few as the largest needs, so that a state is short.
    width : int
        A power of two.
    size : int
        The sum of their absolute values.
    increments : tuple of tuple of int
        How earlier versions stored them, one tuple per step; read once, and no longer written.
    """

    packed: bytes = b""
    width: int = 1
    size: int = 0
    increments: tuple[Whole, ...] = ()

    def then(self, increment: Whole) -> ColumnState:
        """The state with one more step."""
        try:
            added = _bytes(increment, self.width)
        except OverflowError:
            added = b""
        if self.increments or not added:
            return _packed([*self.values(), *increment], self.width)
        return ColumnState(self.packed + added, self.width, self.size + sum(map(abs, increment)))

    def values(self) -> list[int]:
        """All increments."""
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
    law : DiscreteGaussian
        In units of 2^-precision.
    cells : int
    precision : int

    >>> from fractions import Fraction
    >>> from sfumato.mechanisms.scripts import Script
    >>> counter = ToeplitzCounter(4, DiscreteGaussian(Fraction(2**32)), precision=4)
    >>> column(4, 4).tolist()
    [16, 8, 6, 5]
    """

    horizon: int
    law: DiscreteGaussian
    cells: int = 1
    precision: int = PRECISION

    def __post_init__(self) -> None:
        if (
            not 1 <= self.horizon <= LONGEST
            or self.cells < 1
            or not 0 <= self.precision <= MOST_PRECISE
        ):
            raise no_machine(
                "a Toeplitz matrix", "its horizon, its categories or its precision cannot be"
            )

    def start(self) -> ColumnState:
        """No increments."""
        return ColumnState()

    def step(self, state: ColumnState, increment: Whole, noise: Bits) -> tuple[ColumnState, Whole]:
        """Publish C x at this step, plus noise, in whole units."""
        after = state.then(increment)
        fresh = self.law.sample(self.cells, noise).tolist()
        return after, tuple(map(add, self._sums(after), fresh))

    def _sums(self, state: ColumnState) -> list[int]:
        """C x at the last step, exactly: in 64-bit integers where no partial sum can leave them, since no weight exceeds 2^precision."""
        weights = _falling(self.horizon, self.precision)
        if state.size >> 62 - self.precision == 0:
            rows = np.frombuffer(state.packed, NARROW[state.width]).reshape(-1, self.cells)
            narrow: list[int] = np.dot(weights[len(weights) - len(rows) :], rows).tolist()
            return narrow
        values = state.values()
        wide = weights[len(weights) - len(values) // self.cells :].tolist()
        return [sum(map(mul, wide, values[cell :: self.cells])) for cell in range(self.cells)]

    def follow(self) -> Follow:
        """Read totals as B y: the sum of earlier outputs, each times a coefficient of B."""
        weights, seen = (
            np.ascontiguousarray(reader(self.horizon, self.precision)[::-1]),
            np.zeros((self.horizon, self.cells)),
        )
        done = 0

        def read(output: Whole) -> list[float]:
            nonlocal done
            seen[done] = output
            done += 1
            found: list[float] = np.dot(weights[len(weights) - done :], seen[:done]).tolist()
            return found

        return read

    def variances(self, first: int, last: int) -> Array:
        """sigma^2 times the sum of the squared coefficients of B that act by each step."""
        return squares(self.horizon, self.precision)[first - 1 : last] * variance_of(self.law)

    def __str__(self) -> str:
        return f"a square-root Toeplitz matrix in units of 2^-{self.precision} with {self.law} on each step"


@lru_cache(maxsize=16)
def column(horizon: int, precision: int) -> Array:
    """The first column of C in whole units."""
    return dyadic_coefficients(horizon, precision)


@lru_cache(maxsize=16)
def _falling(horizon: int, precision: int) -> Array:
    """The column from its end to its beginning: what acts on the first, second, ... increment is a tail of it."""
    return np.ascontiguousarray(column(horizon, precision)[::-1])


@lru_cache(maxsize=16)
def reader(horizon: int, precision: int) -> Array:
    """The first column of B, which turns outputs in units of 2^-precision into totals."""
    return decoder(column(horizon, precision) / 2.0**precision) / 2.0**precision


@lru_cache(maxsize=16)
def squares(horizon: int, precision: int) -> Array:
    """Sums of the first 1, 2, ... squared coefficients of B."""
    return np.cumsum(reader(horizon, precision) ** 2)
