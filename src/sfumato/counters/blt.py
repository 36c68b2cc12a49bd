"""Running totals under concentrated privacy in constant memory: a buffered linear Toeplitz matrix in fixed point.

The buffers hold whole units of 2^-precision, and with x in the same units a step is

    y = x + round(sum of omega_i u_i) + z,        u_i <- round(theta_i u_i) + x,

with z discrete Gaussian on the units. theta and omega are doubles, taken exactly: each product is an integer shifted.

Privacy. Without the rounding, y would be C x with C Toeplitz and c non-negative and falling, so that one person moves it by at most
F D |c| in length: D what a person's rows add up to, F = 1 under add-remove, sqrt 2 under replace, 2 under replace with values of both
signs. Each rounding errs by at most half a unit, a buffer therefore by at most 1 / (2 (1 - theta_i)) units at any time, and the
outputs of a run by at most (1 + sum of omega_i / (1 - theta_i)) / 2. Two runs differ through rounding by at most twice that at each
of T steps in each of the n categories that the person's rows touch, in length sqrt(n T) (1 + sum of omega_i / (1 - theta_i)) units.
sigma is computed from the sum of both lengths, rounded up.
The difference of two runs is whole units at every step, so the noise law is exact and nothing else is to be charged.
Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta, FOCS 2024; McMahan, Xu, Zhang, EMNLP 2024; the lattice: Canonne, Kamath,
Steinke 2020, Thm 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.counters.calendar import MOST_STEPS
from sfumato.counters.machine import Follow, NormalErrors, Whole, no_machine, variance_of
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.random.bits import Bits
from sfumato.streaming.blt import BLT

PRECISION = 40


class BufferState(msgspec.Struct, frozen=True):
    """Secret: the buffers, one tuple per category."""

    buffers: tuple[Whole, ...]


class BufferCounter(NormalErrors, frozen=True, dict=True, tag="blt", forbid_unknown_fields=True):
    """A buffered Toeplitz factorisation on a lattice.

    Parameters
    ----------
    parameters : BLT
        For the horizon.
    law : DiscreteGaussian
        In units of 2^-precision.
    cells : int
    precision : int
    """

    parameters: BLT
    law: DiscreteGaussian
    cells: int = 1
    precision: int = PRECISION

    def __post_init__(self) -> None:
        p = self.parameters
        sizes = len(p.omega) == len(p.theta) == len(p.zeta) - 1 == len(p.beta) - 1 >= 1
        poles = all(0 < pole < 1 for pole in p.theta) and all(0 < pole <= 1 for pole in p.zeta)
        weights = all(0 < weight < math.inf for weight in (*p.omega, *p.beta))
        counts = (
            1 <= p.horizon <= MOST_STEPS
            and self.cells >= 1
            and 0 <= self.precision <= 2 * PRECISION
        )
        if not (sizes and poles and weights and counts):
            raise no_machine(
                "buffers",
                "their horizon, their categories, their precision or their poles cannot be",
            )

    @property
    def horizon(self) -> int:
        """How many steps it may take."""
        return self.parameters.horizon

    def start(self) -> BufferState:
        """Empty buffers."""
        return BufferState(((0,) * len(self.parameters.theta),) * self.cells)

    def step(self, state: BufferState, increment: Whole, noise: Bits) -> tuple[BufferState, Whole]:
        """Publish x plus what the buffers add, plus noise, and let the buffers decay: integers all the way."""
        theta, omega, shift = self._fixed
        half = 1 << shift - 1
        outputs, buffers = [], []
        fresh = self.law.sample(self.cells, noise).tolist()
        for x, u, z in zip(increment, state.buffers, fresh, strict=True):
            units = x << self.precision
            outputs.append(units + (sum(map(mul, omega, u)) + half >> shift) + z)
            buffers.append(
                tuple([(decayed + half >> shift) + units for decayed in map(mul, theta, u)])
            )
        return BufferState(tuple(buffers)), tuple(outputs)

    @cached_property
    def _fixed(self) -> tuple[tuple[int, ...], tuple[int, ...], int]:
        """theta and omega as integers over one power of two, exactly."""
        exact = [Fraction(x) for x in (*self.parameters.theta, *self.parameters.omega)]
        shift = max(1, *(x.denominator.bit_length() - 1 for x in exact))
        whole = tuple(int(x * 2**shift) for x in exact)
        return whole[: len(self.parameters.theta)], whole[len(self.parameters.theta) :], shift

    def follow(self) -> Follow:
        """Read totals by the poles of B, in floats, in constant memory."""
        poles, weights = (
            self.parameters.zeta,
            [b / 2.0**self.precision for b in self.parameters.beta],
        )
        sums = [[0.0] * len(poles) for _ in range(self.cells)]

        def read(output: Whole) -> list[float]:
            found = []
            for held, y in zip(sums, map(float, output), strict=True):
                held[:] = [pole * one + y for pole, one in zip(poles, held, strict=True)]
                found.append(sum(map(mul, weights, held)))
            return found

        return read

    def variances(self, first: int, last: int) -> Array:
        """sigma^2 times the sum of the squared coefficients of B that act by each step."""
        return _squares(self.parameters)[first - 1 : last] * (
            variance_of(self.law) / 4.0**self.precision
        )

    def __str__(self) -> str:
        buffers = len(self.parameters.theta)
        return f"a Toeplitz matrix of {buffers} buffers in units of 2^-{self.precision} with {self.law} on each step"


def moved_squared(
    parameters: BLT, precision: int, reach: int, squared_factor: int, touched: int = 1
) -> int:
    """How far one person moves the outputs, in squared length and units of 2^-precision, rounding included; rounded up.

    Parameters
    ----------
    reach : int
        D: what a person's rows add up to.
    squared_factor : int
        F^2: 1, 2 or 4.
    touched : int
        n: in how many categories a person's rows may lie, before and after. Elsewhere both runs round alike.
    """
    linear = parameters.squared_norm() * squared_factor * reach**2 * 4**precision
    rounding = 1 + sum(
        Fraction(w) / (1 - Fraction(t))
        for w, t in zip(parameters.omega, parameters.theta, strict=True)
    )
    length = (
        math.isqrt(math.ceil(linear))
        + 1
        + math.isqrt(math.ceil(rounding**2 * parameters.horizon * touched))
        + 1
    )
    return length**2


@lru_cache(maxsize=8)
def _squares(parameters: BLT) -> Array:
    return np.cumsum(parameters.decoder() ** 2)
