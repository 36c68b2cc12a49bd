"""Aggregators from factorisations B C of running totals: the noise of step t is (B z)_t.

B is lower triangular, and z has one value a step. With A the matrix of ones on and below the
diagonal, the strategy C = B^-1 A is lower triangular, too. So y = C x + z is a sequence of Gaussian
mechanisms, each of which may depend on what the earlier ones released, and total + noise = B y is
post-processing.

A state holds the value of its step and what it needs of the values before. The noise is computed
from both when it is asked for, in memory that no state reads again, so that callers may change it
in place.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import cached_property
from operator import mul
from typing import Generic, TypeAlias, TypeGuard, TypeVar

import numpy as np

from sfumato.basics import Array
from sfumato.errors import UsageError, explained_methods
from sfumato.streaming.accounting import squared_sensitivity
from sfumato.streaming.aggregator import Aggregator, State, beyond, check_steps
from sfumato.streaming.generators import ValueGenerator
from sfumato.streaming.toeplitz import (
    BLT,
    ROUNDING,
    check_horizon,
    coefficients,
    convolve,
    convolve_spectra,
    part_of,
    spectra,
)
from sfumato.streaming.values import WHOLE, Leaf, Past, combine, empty, leaves, rebuilt, unlike

V_co = TypeVar("V_co", covariant=True)
M = TypeVar("M")

# What a Toeplitz matrix keeps of a leaf: all of its values.
Kept: TypeAlias = Past | tuple[Leaf, ...]

# What decaying sums keep of a leaf: an ndarray of shape (d, size) if it is an array of numpy.
Buffers: TypeAlias = list[Leaf] | Array


@explained_methods
class StreamState(State, Generic[V_co, M], frozen=True, eq=False):
    """The state of a stream. Secret: it holds noise that was used and noise that will be used.

    Attributes
    ----------
    step : int
        Index of the current step, from 0 on.
    value : value
        The value of the current step; None after the last one.
    memory : tuple
        What the aggregator keeps of the steps before, one item for each leaf of the value.
    value_generator_state : object
    kind : str
        The aggregator to which it belongs.

    >>> from sfumato.streaming import StreamState, ToeplitzAggregator
    >>> state = ToeplitzAggregator(lambda: 1.0, horizon=3).init_state()
    >>> isinstance(state, StreamState), state.step
    (True, 0)
    """

    step: int
    value: V_co | None
    memory: tuple[M, ...]
    value_generator_state: object
    kind: str = ""

    @property
    def step_index(self) -> int:
        """Index of the current step, from 0 on."""
        return self.step

    def __repr__(self) -> str:
        return f"<StreamState of step {self.step}, {self.kind}>"


@explained_methods
class FactorisedAggregator(Aggregator[V_co], Generic[V_co, M]):
    """The noise (B z)_t for a Toeplitz matrix B and one value a step, leaf by leaf."""

    horizon: int

    def get_cumsum_and_update(self, state: object) -> tuple[V_co, StreamState[V_co, M]]:
        """Return the noise of the current total, and the state of the next step.

        Arrays of noise may share memory with the next state, which never reads it. You may change
        them in place, but copy those that you collect.

        Raises
        ------
        UsageError
            If the state belongs to another aggregator, or the horizon is reached.
        """
        state = self._own(state)
        step = state.step
        value = state.value
        if value is None or step >= self.horizon:
            raise beyond(self.horizon)
        parts = leaves(value)
        if len(parts) != len(state.memory):
            raise unlike()
        outcomes = [self._step(held, leaf) for held, leaf in zip(state.memory, parts, strict=True)]
        noise = rebuilt(value, [noise_of_leaf for noise_of_leaf, _ in outcomes])
        # The last step draws no value for a step after it.
        if step + 1 == self.horizon:
            return noise, StreamState(step + 1, None, (), state.value_generator_state, self.kind)
        following, after = self.value_generator.next(state.value_generator_state)
        memory = tuple([held for _, held in outcomes])
        return noise, StreamState(step + 1, following, memory, after, self.kind)

    def _own(self, state: object) -> StreamState[V_co, M]:
        if not isinstance(state, StreamState) or state.kind != self.kind:
            raise self._foreign()
        return state

    def _generator_state(self, state: object) -> object:
        return self._own(state).value_generator_state

    def _first(self, generator_state: object) -> StreamState[V_co, M]:
        value, after = self.value_generator.next(generator_state)
        parts = leaves(value)
        if any("float16" in str(getattr(leaf, "dtype", "")) for leaf in parts):
            raise UsageError(
                "noise in half precision",
                "its coefficients would be those of another matrix, with another cost",
                "Give float32",
            )
        return StreamState(0, value, tuple(map(self._begin, parts)), after, self.kind)

    @abc.abstractmethod
    def _begin(self, leaf: Leaf) -> M:
        """Return what is kept before the first step of a leaf like this one."""

    @abc.abstractmethod
    def _step(self, held: M, leaf: Leaf) -> tuple[Leaf, M]:
        """Return one leaf's noise for its value, and what is kept of the leaf after that."""


@explained_methods
class ToeplitzAggregator(FactorisedAggregator[V_co, Kept]):
    """Noise of a running total by the square-root factorisation.

    noise_t = f_0 z_t + f_1 z_(t-1) + ... + f_t z_0. The state keeps all values, and as many
    doubles. Floats, and arrays of numpy of up to 2^14 numbers, cost O(log(t)^2) a step on average.
    Larger arrays, and those of other libraries, cost t additions. For long horizons use
    ``BLTAggregator``, which is within one percent.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments
    horizon : int
        How many steps there will be, at most 10^7.

    {gaussian_values}
    Sensitivity: L2 squared L = f_0^2 + ... + f_(steps-1)^2 for one participation; for several,
    ``squared_sensitivity``.
    Holds because: total + noise = B (C x + z) with B = C: post-processing of C x + z, whose C is
    lower triangular, so that the steps may depend on what was released before (Denisov, McMahan,
    Rush, Smith, Thakurta, NeurIPS 2022, Thm 2.1).
    {float_noise}
    Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023.

    >>> aggregator = ToeplitzAggregator(lambda: 1.0, horizon=3)
    >>> state = aggregator.init_state()
    >>> first, state = aggregator.get_cumsum_and_update(state)
    >>> second, state = aggregator.get_cumsum_and_update(state)
    >>> first, second
    (1.0, 1.5)
    """

    def __init__(
        self, value_generator: ValueGenerator[V_co] | Callable[[], V_co], horizon: int
    ) -> None:
        super().__init__(value_generator)
        self.horizon = check_horizon(horizon)
        self.kind = f"square root over {self.horizon} steps"
        self._f = coefficients(horizon)

    def variances(self, steps: int) -> Array:
        """Return the variance at each step for values of variance 1; see ``Aggregator``."""
        return np.cumsum(self._f[: check_steps(steps, self.horizon)] ** 2)

    def squared_sensitivity(
        self, steps: int, *, participations: int = 1, separation: int = 1
    ) -> float:
        """Return the squared L2 norm by which one person moves the strategy; see ``Aggregator``."""
        column = self._f[: check_steps(steps, self.horizon)]
        return float(
            squared_sensitivity(column, participations=participations, separation=separation)
        )

    def _begin(self, leaf: Leaf) -> Kept:
        if isinstance(leaf, float):
            return empty(1, "float64")
        if _is_floats(leaf) and leaf.size <= WHOLE:
            return empty(leaf.size, leaf.dtype)
        return ()

    def _step(self, held: Kept, leaf: Leaf) -> tuple[Leaf, Kept]:
        if not isinstance(held, Past):
            values = (*held, leaf)
            return combine(self._f[len(held) :: -1].tolist(), values), values
        if isinstance(leaf, float):
            row, held = held.add(np.array((leaf,)), self._f)
            return float(row[0]), held
        array = _fitting(leaf, held.tail)
        row, held = held.add(_flat(array), self._f)
        return row.astype(array.dtype, copy=False).reshape(array.shape), held

    @cached_property
    def _spectra(self) -> Array:
        """The spectra of the coefficients, which are kept: 16 bytes a step."""
        return spectra(self._f, part_of(self.horizon))

    def _whole(self, steps: int, draw: Callable[[int], Array]) -> Array:
        drawn = draw(check_steps(steps, self.horizon))
        part = part_of(self.horizon)
        if steps < part:
            return convolve(self._f[:steps], drawn, steps)
        return convolve_spectra(self._spectra, spectra(drawn, part), -(-steps // part))[:steps]


@explained_methods
class BLTAggregator(FactorisedAggregator[V_co, Buffers]):
    """Noise of a running total from a few decaying sums, in constant memory.

    Its variance is within one percent of the square-root factorisation's.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments
    horizon : int
        How many steps there will be, at most 10^7.
    buffers : int, optional
        The number of buffers. None: the fewest that come within one percent.

    {gaussian_values}
    Sensitivity: L2 squared L = c_0^2 + ... + c_(steps-1)^2, c the partner, for one participation;
    for several, ``squared_sensitivity``.
    Holds because: total + noise = B (C x + z): post-processing of C x + z, whose C is lower
    triangular, so that the steps may depend on what was released before. C is known to 1e-9, for
    which L is raised by 1e-6.
    {float_noise}
    Source: Dvijotham et al., FOCS 2024; McMahan, Xu, Zhang, EMNLP 2024.

    >>> aggregator = BLTAggregator(lambda: 1.0, horizon=1024)
    >>> noise, state = aggregator.get_cumsum_and_update(aggregator.init_state())
    >>> round(noise, 9), state
    (1.0, <StreamState of step 1, 3 buffers over 1024 steps>)
    """

    def __init__(
        self,
        value_generator: ValueGenerator[V_co] | Callable[[], V_co],
        horizon: int,
        buffers: int | None = None,
    ) -> None:
        super().__init__(value_generator)
        self.blt = BLT.for_horizon(horizon, buffers)
        self.horizon = self.blt.horizon
        self.kind = f"{len(self.blt.theta)} buffers over {self.horizon} steps"
        matrix = np.vstack([self.blt.omega, np.diag(self.blt.theta)])
        # Both are exact: theta and omega were rounded to single precision before.
        self._matrix = {np.dtype(name): matrix.astype(name) for name in ("float32", "float64")}

    def variances(self, steps: int) -> Array:
        """Return the variance at each step for values of variance 1; see ``Aggregator``."""
        return np.cumsum(self.blt.coefficients(check_steps(steps, self.horizon)) ** 2)

    def squared_sensitivity(
        self, steps: int, *, participations: int = 1, separation: int = 1
    ) -> float:
        """Return the squared L2 norm by which one person moves the strategy; see ``Aggregator``."""
        column = self.blt.decoder(check_steps(steps, self.horizon))
        square = squared_sensitivity(column, participations=participations, separation=separation)
        # The decoder is right to 1e-9, so that its square norm errs by less than ROUNDING.
        return square * (1 + ROUNDING)

    def _begin(self, leaf: Leaf) -> Buffers:
        n_buffers = len(self.blt.theta)
        if type(leaf) is float:
            return [0.0] * n_buffers
        if _is_floats(leaf):
            return np.zeros((n_buffers, leaf.size), dtype=leaf.dtype)
        return [leaf * 0] * n_buffers

    def _step(self, held: Buffers, leaf: Leaf) -> tuple[Leaf, Buffers]:
        blt = self.blt
        if type(leaf) is float:
            noise = leaf + sum(map(mul, blt.omega, held))
            return noise, [
                theta * buffer + leaf for theta, buffer in zip(blt.theta, held, strict=True)
            ]
        if isinstance(held, np.ndarray):
            array = _fitting(leaf, held)
            # The matrix times the buffers, plus the value in each row, is the noise and the buffers
            # after it. Piece by piece, so that the value is added to what is still in the
            # processor's cache.
            matrix = self._matrix[held.dtype]
            row = _flat(array)
            both = np.empty((len(matrix), row.size), dtype=row.dtype)
            # The usual libraries compute matrix products of fewer multiplications in one thread,
            # since more threads would cost more than they save.
            length = min(WHOLE, 2**18 // matrix.size)
            for start in range(0, row.size, length):
                piece = slice(start, start + length)
                out = np.matmul(matrix, held[:, piece], out=both[:, piece])
                out += row[piece]
            return both[0].reshape(array.shape), both[1:]
        sums = [
            combine((theta, 1), (buffer, leaf))
            for theta, buffer in zip(blt.theta, held, strict=True)
        ]
        return combine((1, *blt.omega), (leaf, *held)), sums

    def _whole(self, steps: int, draw: Callable[[int], Array]) -> Array:
        from scipy.signal import lfilter

        noise = draw(check_steps(steps, self.horizon))
        before = np.concatenate([[0.0], noise[:-1]])
        for theta, omega in zip(self.blt.theta, self.blt.omega, strict=True):
            noise += lfilter([omega], [1.0, -theta], before)
        return noise


def _is_floats(value: object) -> TypeGuard[Array]:
    return type(value) is np.ndarray and value.dtype.name in ("float32", "float64")


def _fitting(value: object, like: Array) -> Array:
    """Return a leaf, if it has the size and dtype of the rows that are kept."""
    if type(value) is not np.ndarray or value.size != like.shape[1] or value.dtype != like.dtype:
        raise unlike()
    return value


def _flat(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1)
