"""Generators of independent values: functions, generators with a state, and Gaussian noise.

Gaussian noise is a function of the generator's state, which holds a secret key and a position. A
step that is repeated from a saved state thus gives the same noise, and never a second draw that
could be averaged with the first. The state is secret.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from typing import (
    Generic,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    overload,
    runtime_checkable,
)

import msgspec
import numpy as np

from sfumato.basics import Array, ExplainedStruct
from sfumato.errors import UsageError, explained_methods
from sfumato.random import current
from sfumato.random.bits import Derived, secret_key
from sfumato.random.normal import standard_normal
from sfumato.streaming.values import Nested, leaves, map_leaves, refilled

V_co = TypeVar("V_co", covariant=True)


@explained_methods
class ValueGenerator(abc.ABC, Generic[V_co]):
    """Generates values one after another from a state that is passed on.

    Subclass it for a generator of your own.

    >>> from sfumato.streaming import EfficientTreeAggregator, ValueGenerator
    >>> class Ones(ValueGenerator[float]):
    ...     def initialize(self):
    ...         return ()
    ...     def next(self, state):
    ...         return 1.0, state
    >>> EfficientTreeAggregator(Ones()).init_state().level_buffer
    (1.0,)
    """

    @abc.abstractmethod
    def initialize(self) -> object:
        """Return the first state."""

    @abc.abstractmethod
    def next(self, state: object) -> tuple[V_co, object]:
        """Return the next value and the state after it."""


@explained_methods
class StatelessValueGenerator(ValueGenerator[V_co]):
    """Wraps a function without arguments; its state is empty.

    >>> StatelessValueGenerator(lambda: 1.0).next(())
    (1.0, ())
    """

    def __init__(self, value_fn: Callable[[], V_co]) -> None:
        if not callable(value_fn):
            raise UsageError(
                f"values from a {type(value_fn).__name__}",
                "it is neither a ValueGenerator nor a function",
                "Give one of the two",
            )
        self.value_fn = value_fn

    def initialize(self) -> tuple[()]:
        """Return the empty state."""
        return ()

    def next(self, state: object) -> tuple[V_co, object]:
        """Return a value of the function, and the state unchanged."""
        return self.value_fn(), state


@runtime_checkable
class Shaped(Protocol):
    """Anything with a shape: a Spec, or an array of any library."""

    @property
    def shape(self) -> tuple[int, ...]: ...


@explained_methods
class Spec(ExplainedStruct, frozen=True):
    """Shape and dtype of an array of noise.

    Anything else with a ``shape``, and perhaps a ``dtype``, may be given instead.

    >>> Spec((1000,), "float32").shape
    (1000,)
    """

    shape: tuple[int, ...]
    dtype: str = "float64"


@explained_methods
class NoiseState(ExplainedStruct, frozen=True):
    """The state of a stream of noise. Secret: whoever reads it knows all past and future noise.

    >>> from sfumato.streaming import GaussianNoiseGenerator
    >>> GaussianNoiseGenerator(noise_std=1.0).initialize()
    <NoiseState at 0>
    """

    key: bytes
    position: int
    private: bool
    noise_std: float | msgspec.UnsetType = msgspec.UNSET
    """Of the noise from here on. Absent: the generator's own."""

    def __repr__(self) -> str:
        return f"<NoiseState at {self.position}{'' if self.private else '; NOT PRIVATE'}>"


# The key and the scale of some noise, the number of the block, and each leaf's values in it.
Block: TypeAlias = tuple[bytes, float, int, list[Sequence[V_co]]]


@explained_methods
class GaussianNoiseGenerator(ValueGenerator[V_co]):
    """Independent Gaussian noise of one standard deviation, shaped like nested specs.

    Parameters
    ----------
    noise_std : float
        Standard deviation of each number, at least 0.
    specs : None, shape, Spec, array, or nested lists, tuples and dicts of them
        None is a Python float. A tuple of whole numbers is the shape of a float64 array. An array
        of any library stands for its shape and dtype.
    seed : None
        There is no public seed. ``sfumato.testing.deterministic`` makes noise repeat in tests.

    Raises
    ------
    UsageError
        If ``noise_std`` is negative or not finite, a spec has no shape or no floating-point dtype,
        or a seed is given.

    Guarantee: the values are independent normal draws, given AES, to the accuracy of their dtype.
    Sensitivity: not its affair; see the aggregators.
    Holds because: ``random.normal`` and ``random.bits``; the key is drawn from the cryptographic
    stream by ``initialize``.
    Not covered: floats are added to floats, so the low-order bits of a sum may tell what was added
    (Mironov 2012). For counts and clipped sums that are to be published, the exact form of
    ``sf.Counter`` has no such gap.
    Source: Marsaglia, Tsang 2000; TensorFlow Privacy's generator of the same name.

    >>> generator = GaussianNoiseGenerator(1.0, {"weights": (3, 2), "bias": None})
    >>> value, state = generator.next(generator.initialize())
    >>> value["weights"].shape, type(value["bias"]).__name__, state.position
    ((3, 2), 'float', 1)
    """

    @overload
    def __init__(
        self: GaussianNoiseGenerator[float],
        noise_std: float,
        specs: None = None,
        seed: None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: GaussianNoiseGenerator[Array],
        noise_std: float,
        specs: Shaped | tuple[int, ...],
        seed: None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: GaussianNoiseGenerator[Nested],
        noise_std: float,
        specs: object,
        seed: None = None,
    ) -> None: ...
    def __init__(self, noise_std: float, specs: object = None, seed: None = None) -> None:
        if seed is not None:
            raise UsageError(
                "noise from a seed",
                "whoever knows the seed knows the noise",
                "Leave it out; in tests use sfumato.testing.deterministic",
            )
        self.noise_std = check_deviation(noise_std, "noise_std")
        self.specs = read_specs(specs)
        # Its leaves are those that read_specs makes.
        self._leaves = cast("list[Spec | None]", leaves(self.specs))
        size = sum(_size(spec) for spec in self._leaves)
        # About 2^15 numbers are drawn at a time.
        self._per_block = max(1, 2**15 // max(size, 1))
        self._blocks: list[Block[V_co]] = []

    def initialize(self) -> NoiseState:
        """Return a state with a fresh secret key."""
        bits = current()
        return NoiseState(secret_key(bits), 0, bits.private)

    def make_state(self, state: object, stddev: float) -> NoiseState:
        """Return the same state, with another standard deviation from here on.

        Parameters
        ----------
        state : NoiseState
        stddev : float
            At least 0.

        Raises
        ------
        UsageError
            If the state is not of such a generator, or ``stddev`` is negative or not finite.

        >>> generator = GaussianNoiseGenerator(1.0)
        >>> abs(generator.next(generator.make_state(generator.initialize(), 0.0))[0])
        0.0
        """
        return msgspec.structs.replace(
            self._own_state(state), noise_std=check_deviation(stddev, "stddev")
        )

    def next(self, state: object) -> tuple[V_co, NoiseState]:
        """Return the noise of a state, always the same, and the state after it."""
        state = self._own_state(state)
        block, row_index = divmod(state.position, self._per_block)
        rows = self._block(state, block)
        after = NoiseState(state.key, state.position + 1, state.private, state.noise_std)
        if self.specs is None:
            return rows[0][row_index], after
        if isinstance(self.specs, Spec):
            return cast(V_co, self._own(rows[0], row_index)), after
        remaining = iter(rows)
        nested = map_leaves(lambda _: self._own(next(remaining), row_index), self.specs)
        return cast(V_co, nested), after

    @staticmethod
    def _own_state(state: object) -> NoiseState:
        if not isinstance(state, NoiseState):
            raise UsageError(
                "noise from a foreign state",
                "it is not a state of this generator",
                "Start from initialize()",
            )
        return state

    def many(self, state: NoiseState, count: int) -> Array:
        """Return the next ``count`` values at once: a float64 ndarray of shape (count,).

        This is for single floats only.
        """
        if self.specs is not None:
            raise UsageError(
                "many values at once",
                "this generator makes arrays, and only single floats are drawn at once",
                "Leave specs out, or call next",
            )
        numbers = np.empty(count)
        done = 0
        while done < count:
            # From the blocks that ``next`` reads, so that both ways give the same values.
            block, start = divmod(state.position + done, self._per_block)
            taken = min(count - done, self._per_block - start)
            numbers[done : done + taken] = self._draw(state, block)[0][start : start + taken]
            done += taken
        return numbers

    def _block(self, state: NoiseState, block: int) -> list[Sequence[V_co]]:
        """Return the rows of one block, leaf by leaf.

        The last two blocks are kept for speed; they are functions of the state.
        """
        scale = self._scale(state)
        # The deviation is compared as well: ``make_state`` changes it under the same key.
        for key, of_scale, number, rows in self._blocks:
            if number == block and key == state.key and of_scale == scale:
                return rows
        drawn = zip(self._draw(state, block), self._leaves, strict=True)
        parts = [part.tolist() if spec is None else part for part, spec in drawn]
        rows = cast("list[Sequence[V_co]]", parts)
        if self._per_block > 1:
            self._blocks = [(state.key, scale, block, rows), *self._blocks[:1]]
        return rows

    def _scale(self, state: NoiseState) -> float:
        return self.noise_std if state.noise_std is msgspec.UNSET else state.noise_std

    def _draw(self, state: NoiseState, block: int) -> list[Array]:
        bits = Derived(state.key, block, private=state.private)
        scale = self._scale(state)
        drawn = []
        for spec in self._leaves:
            array = Spec(()) if spec is None else spec
            size = self._per_block * _size(spec)
            rows = standard_normal(size, bits, scale=scale, dtype=array.dtype)
            drawn.append(rows.reshape(self._per_block, *array.shape))
        return drawn

    def _own(self, rows: Sequence[V_co], row_index: int) -> V_co | Array:
        """Return one row, in memory of its own if the block is kept: callers may change it."""
        row = rows[row_index]
        return row.copy() if isinstance(row, np.ndarray) and self._per_block > 1 else row

    def __getstate__(self) -> dict[str, object]:
        # Blocks hold noise, which is secret, and are functions of the states: pickles do without.
        return {**self.__dict__, "_blocks": []}

    def __repr__(self) -> str:
        return f"GaussianNoiseGenerator(noise_std={self.noise_std!r})"


def _size(spec: Spec | None) -> int:
    return 1 if spec is None else math.prod(spec.shape)


def check_deviation(value: float, name: str) -> float:
    """Refuse a standard deviation that is negative or not finite."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not 0 <= value < math.inf:
        raise UsageError(
            f"{name} = {value!r}",
            "it must be a finite number of at least 0",
            f"Give a non-negative number for {name}",
        )
    return float(value)


def as_generator(
    value_generator: ValueGenerator[V_co] | Callable[[], V_co],
) -> ValueGenerator[V_co]:
    """Return a generator as it is, and wrap a function."""
    if isinstance(value_generator, ValueGenerator):
        return value_generator
    return StatelessValueGenerator(value_generator)


def read_specs(specs: object) -> Nested:
    """Convert specs to nested ``Spec`` and None."""
    if specs is None:
        return None
    if _is_shape(specs):
        return _spec(specs, "float64")
    if isinstance(specs, Shaped):
        shape = tuple(int(side) for side in specs.shape)
        return _spec(shape, str(getattr(specs, "dtype", "float64")))
    if isinstance(specs, dict):
        return {key: read_specs(inner) for key, inner in specs.items()}
    if isinstance(specs, list):
        return [read_specs(inner) for inner in specs]
    if isinstance(specs, tuple):
        return refilled(specs, map(read_specs, specs))
    raise UsageError(
        f"noise shaped like a {type(specs).__name__}",
        "it has no shape",
        "Give None, a shape, a Spec or an array",
    )


def _is_shape(specs: object) -> TypeGuard[tuple[int, ...]]:
    return isinstance(specs, tuple) and all(isinstance(side, int) for side in specs)


def _spec(shape: tuple[int, ...], dtype: str) -> Spec:
    # torch writes "torch.float32", and TensorFlow "<dtype: 'float32'>".
    name = dtype.removeprefix("torch.").removeprefix("<dtype: '").removesuffix("'>")
    if name not in ("float32", "float64") or any(side < 0 for side in shape):
        raise UsageError(
            f"noise of dtype {name}, shape {shape}",
            "noise is float32 or float64",
            'Give Spec(shape, "float32")',
        )
    return Spec(shape, name)
