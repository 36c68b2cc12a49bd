"""Running totals under concentrated privacy: two Toeplitz matrices, each plus exact noise.

*The square root of the sums, kept whole* (``ToeplitzCounter``).

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

*In constant memory* (``BufferCounter``): a buffered linear Toeplitz matrix.

The buffers hold fixed-point numbers, whole multiples of 2^-precision. With the increment x in the
same units, a step publishes y and updates the buffers u_i:

    y = x + round(sum of omega_i u_i) + z,        u_i <- round(theta_i u_i) + x,

with z discrete Gaussian on the units. theta and omega are doubles and are used exactly: each
product is an integer product that is shifted.

Privacy. Without rounding, y would be C x, where C is Toeplitz and its column c is non-negative and
decreasing. One person then moves y by at most F D |c| in L2 norm. D is what the person's rows add
up to. F is 1 under add-remove, sqrt 2 under replace, and 2 under replace with values of both signs.

Each rounding errs by at most half a unit. So a buffer errs by at most 1 / (2 (1 - theta_i)) units
at any time, and an output by at most (1 + sum of omega_i / (1 - theta_i)) / 2. Rounding can move
two runs apart by twice that, at each of T steps and in each of the n categories that the person's
rows touch: sqrt(n T) (1 + sum of omega_i / (1 - theta_i)) units in L2 norm. sigma is computed from
the sum of both norms, rounded up. The difference of two runs is a whole number of units at every
step, so the law of the discrete Gaussian applies exactly, and no further loss has to be charged.

Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta, FOCS 2024; McMahan, Xu, Zhang, EMNLP 2024;
the lattice: Canonne, Kamath, Steinke 2020, Thm 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from operator import add, mul

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.errors import require_fitting
from sfumato.mechanisms import DiscreteGaussian
from sfumato.questions.counters.calendar import MOST_STEPS
from sfumato.questions.counters.mechanism import (
    Estimator,
    NormalErrors,
    Whole,
    variance_of,
)
from sfumato.random.bits import Bits
from sfumato.streaming.toeplitz import BLT, decoder, dyadic_coefficients

# --- the square root of the sums ------------------------------------------------------------------

TOEPLITZ_PRECISION = 16

# The longest horizon. Every step works through all earlier ones, so longer streams use buffers
# (``BufferCounter``), which lose less than 1% of accuracy.
LONGEST = 1024


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


def _packed(values: list[int], width: int) -> ColumnState:
    """Return the state of these increments, in numbers at least this wide."""
    # One bit is the sign, so numbers of 8 bits a byte do not fit.
    while any(x.bit_length() >= 8 * width for x in values):
        width *= 2
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
    precision: int = TOEPLITZ_PRECISION

    def __post_init__(self) -> None:
        steps = 1 <= self.horizon <= LONGEST
        places = 0 <= self.precision <= 40
        require_fitting(
            steps and places and self.cells >= 1,
            "a Toeplitz matrix for a running total",
            "its horizon, its categories or its precision cannot be",
        )

    def start(self) -> ColumnState:
        """Return the state of no increments."""
        return ColumnState()

    def step(self, state: ColumnState, increment: Whole, noise: Bits) -> tuple[ColumnState, Whole]:
        """Publish C x at this step plus noise, in whole units."""
        # True increments are kept, and noise is added to their sums anew at each step.
        after = state.then(increment)
        fresh = self.law.sample(self.cells, noise).tolist()
        return after, tuple(map(add, self._sums(after), fresh))

    def _sums(self, state: ColumnState) -> list[int]:
        """Return C x at the last step, exactly."""
        weights = _reversed_column(self.horizon, self.precision)
        # No weight exceeds 2^precision, so no partial sum exceeds size 2^precision in magnitude:
        # while that is below 2^62, 64-bit integers are exact. Above, Python's integers are.
        if state.size >> 62 - self.precision == 0:
            steps = np.frombuffer(state.packed, f"<i{state.width}").reshape(-1, self.cells)
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
        return (
            f"a square-root Toeplitz matrix in units of 2^-{self.precision} "
            f"with {self.law} on each step"
        )


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


# --- constant memory ------------------------------------------------------------------------------

BLT_PRECISION = 40


class BufferState(msgspec.Struct, frozen=True):
    """Secret: the buffers, one tuple per category."""

    buffers: tuple[Whole, ...]


class BufferCounter(NormalErrors, frozen=True, dict=True, tag="blt", forbid_unknown_fields=True):
    """A buffered Toeplitz factorisation in fixed point.

    Parameters
    ----------
    parameters : BLT
        Made for the horizon.
    law : DiscreteGaussian
        The noise on each step, in units of 2^-precision.
    cells : int
        The number of categories.
    precision : int
        The number of binary places.
    """

    parameters: BLT
    law: DiscreteGaussian
    cells: int = 1
    precision: int = BLT_PRECISION

    def __post_init__(self) -> None:
        # A file may state anything: the proof above holds for these parameters alone.
        blt = self.parameters
        sizes = len(blt.omega) == len(blt.theta) == len(blt.zeta) - 1 == len(blt.beta) - 1 >= 1
        decays = all(0 < pole < 1 for pole in blt.theta)
        poles = decays and all(0 < pole <= 1 for pole in blt.zeta)
        weights = all(0 < weight < math.inf for weight in (*blt.omega, *blt.beta))
        steps = 1 <= blt.horizon <= MOST_STEPS
        places = 0 <= self.precision <= 2 * BLT_PRECISION
        require_fitting(
            sizes and poles and weights and steps and places and self.cells >= 1,
            "buffers for a running total",
            "their horizon, their categories, their precision or their poles cannot be",
        )

    @property
    def horizon(self) -> int:
        """The largest number of steps."""
        return self.parameters.horizon

    def start(self) -> BufferState:
        """Return empty buffers."""
        empty = (0,) * len(self.parameters.theta)
        return BufferState((empty,) * self.cells)

    def step(self, state: BufferState, increment: Whole, noise: Bits) -> tuple[BufferState, Whole]:
        """Publish the increment, what the buffers add and noise; then let the buffers decay."""
        theta, omega, shift = self._fixed
        half = 1 << shift - 1
        fresh = self.law.sample(self.cells, noise).tolist()
        outputs = []
        buffers = []
        for x, u, z in zip(increment, state.buffers, fresh, strict=True):
            units = x << self.precision
            # Adding half and shifting right rounds to the nearest unit, in integers: an error of
            # at most half a unit, which is what the sensitivity allows for.
            remembered = sum(map(mul, omega, u)) + half >> shift
            outputs.append(units + remembered + z)
            decayed = [(product + half >> shift) + units for product in map(mul, theta, u)]
            buffers.append(tuple(decayed))
        return BufferState(tuple(buffers)), tuple(outputs)

    @cached_property
    def _fixed(self) -> tuple[Whole, Whole, int]:
        """theta and omega as integers over a power of two, exactly, and the exponent of that.

        A double is an integer over a power of two, so nothing is rounded here.
        """
        theta = [Fraction(x) for x in self.parameters.theta]
        omega = [Fraction(x) for x in self.parameters.omega]
        # Doubles are fractions over powers of two. At least one place, since rounding adds half a
        # unit.
        shift = max(1, *(x.denominator.bit_length() - 1 for x in (*theta, *omega)))
        scale = 2**shift
        return tuple(int(x * scale) for x in theta), tuple(int(x * scale) for x in omega), shift

    def estimator(self) -> Estimator:
        """Estimate totals by the poles of B, in floats and constant memory."""
        poles = self.parameters.zeta
        weights = [b / 2.0**self.precision for b in self.parameters.beta]
        sums = [[0.0] * len(poles) for _ in range(self.cells)]

        def estimate(output: Whole) -> list[float]:
            totals = []
            for held, y in zip(sums, map(float, output), strict=True):
                held[:] = [pole * total + y for pole, total in zip(poles, held, strict=True)]
                totals.append(sum(map(mul, weights, held)))
            return totals

        return estimate

    def variances(self, first: int, last: int) -> Array:
        """Return sigma^2 times the sum of the squared coefficients of B up to each step."""
        sigma_squared = variance_of(self.law) / 4.0**self.precision
        return _squares(self.parameters)[first - 1 : last] * sigma_squared

    def __str__(self) -> str:
        return (
            f"a Toeplitz matrix of {len(self.parameters.theta)} buffers in units of "
            f"2^-{self.precision} with {self.law} on each step"
        )


def moved_squared(
    parameters: BLT, precision: int, contribution: int, squared_factor: int, touched: int = 1
) -> int:
    """Return the squared L2 norm by which one person moves the outputs, rounding included.

    Parameters
    ----------
    parameters : BLT
    precision : int
        The number of binary places.
    contribution : int
        D: what a person's rows add up to.
    squared_factor : int
        F^2: 1, 2 or 4.
    touched : int
        n: the number of categories in which a person's rows may lie, before and after. In all
        others both runs round alike.

    Returns
    -------
    int
        In squared units of 2^-precision, rounded up.
    """
    linear = parameters.squared_norm() * squared_factor * contribution**2 * 4**precision
    poles = zip(parameters.omega, parameters.theta, strict=True)
    rounding = 1 + sum(Fraction(omega) / (1 - Fraction(theta)) for omega, theta in poles)
    # isqrt rounds down, so one more is at least each root.
    linear_norm = math.isqrt(math.ceil(linear)) + 1
    rounding_norm = math.isqrt(math.ceil(rounding**2 * parameters.horizon * touched)) + 1
    return (linear_norm + rounding_norm) ** 2


@lru_cache(maxsize=8)
def _squares(parameters: BLT) -> Array:
    return np.cumsum(parameters.decoder() ** 2)
