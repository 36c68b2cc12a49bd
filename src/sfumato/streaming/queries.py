"""Sums of clipped records over time, with the noise of an aggregator.

The methods are those of TensorFlow Privacy's ``DPQuery``: ``initial_global_state``,
``derive_sample_params``, ``initial_sample_state``, ``accumulate_record``, ``get_noised_result``,
``reset_state``. Records are numbers or numpy arrays, nested as the specs are.

Clipping: each record is converted to the dtype of the specs and scaled down to an L2 norm of at
most the clipping norm, less a relative 2^-20 for the rounding of single precision. A record with a
value that is not finite counts as zero. This happens silently, because whether it happened depends
on the data.

``GaussianSumQuery`` is one noisy sum of clipped records: the query that a tree of range sums adds
its noise with.

``RestartQuery``, at the end, restarts a stream after a number of steps, or by the clock. Every
restart begins a new tree, and every tree is paid for.
"""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, NoReturn, Protocol, Self, TypeAlias, TypeVar, cast, overload

import msgspec
import numpy as np

from sfumato.basics import Array, as_floats, whole
from sfumato.errors import UsageError, explained, explained_methods
from sfumato.streaming.aggregator import Aggregator, State
from sfumato.streaming.generators import (
    GaussianNoiseGenerator,
    Spec,
    ValueGenerator,
    check_deviation,
    read_specs,
)
from sfumato.streaming.tree import EfficientTreeAggregator, TreeAggregator, TreeState, get_step_idx
from sfumato.streaming.values import Nested, added, combine, map_leaves, rebuilt

# --- sums over time -------------------------------------------------------------------------------

V = TypeVar("V")

# Records are clipped to this share of the clipping norm, so that rounding does not exceed it.
_BELOW = 1 - 2.0**-20
# The least clipping norm: below it, single precision loses digits and squares vanish.
_LEAST = 1e-30

Clip: TypeAlias = Callable[[list[Array], float], list[Array]]


class SumState(msgspec.Struct, frozen=True, eq=False):
    """The state of a query. Secret: it holds true sums and noise.

    Attributes
    ----------
    tree_state : state of the aggregator
    clip_value : float
    samples_cumulative_sum : value
        The sum so far, without noise (cumulative queries).
    previous_tree_noise : value
        Noise of the total one step before (residual queries).
    """

    tree_state: State
    clip_value: float
    samples_cumulative_sum: Nested
    previous_tree_noise: Nested

    def __repr__(self) -> str:
        return f"<SumState of step {get_step_idx(self.tree_state)}>"


class StreamEvent(msgspec.Struct, frozen=True):
    """What happened, for the accountant.

    Add up trees with ``accounting``.

    Attributes
    ----------
    steps : int
        The number of steps since the start or the last restart.
    """

    steps: int


@explained_methods
class RecordSums:
    """What all sums of clipped records share."""

    def accumulate_preprocessed_record(self, sample_state: V, preprocessed_record: V) -> V:
        """Add a clipped record to the sum of a step."""
        return added(sample_state, preprocessed_record)

    def merge_sample_states(self, one: V, other: V) -> V:
        """Add up the sums of two parts of one step."""
        return self.accumulate_preprocessed_record(one, other)

    def derive_metrics(self, global_state: object) -> dict[str, object]:
        """Return nothing: no metric is paid for."""
        return {}


@explained_methods
class CumulativeSumQuery(RecordSums):
    """Noisy running totals of clipped records, with the noise of any aggregator.

    Parameters
    ----------
    aggregator : Aggregator
    record_specs : specs
        Shapes of a record, as for ``GaussianNoiseGenerator``.
    clip_fn : callable
        Takes the list of a record's leaves and the clipping norm, and returns the clipped leaves.
    clip_value : float
        The clipping norm, at least 1e-30.

    Guarantee: that of the aggregator, for one record added or removed at each participation.
    Sensitivity: the clip, once a participation; the aggregator says how far that moves the stream.
    Holds because: each record is clipped by itself, and totals are released with the aggregator's
    noise only.
    Not covered: sums and noise are floats, whose low-order bits may tell sums apart (Mironov 2012);
    a clip_fn of your own.
    Source: Kairouz et al. 2021; TensorFlow Privacy's ``TreeCumulativeSumQuery``.

    >>> import numpy as np
    >>> from sfumato.streaming import CumulativeSumQuery, ToeplitzAggregator, clip_l2
    >>> silent = ToeplitzAggregator(lambda: np.zeros(2), horizon=4)
    >>> query = CumulativeSumQuery(silent, (2,), clip_l2, 1.0)
    >>> state = query.initial_global_state()
    >>> sums = query.accumulate_record(1.0, query.initial_sample_state(), np.array([3.0, 4.0]))
    >>> total, state, event = query.get_noised_result(sums, state)
    >>> total.round(3).tolist(), event.steps
    ([0.6, 0.8], 1)
    """

    GlobalState: ClassVar[type[SumState]] = SumState

    def __init__(
        self, aggregator: Aggregator[object], record_specs: object, clip_fn: Clip, clip_value: float
    ) -> None:
        self.aggregator = aggregator
        self._specs = read_specs(record_specs)
        self._clip_fn = clip_fn
        self._clip_value = self._read_clip(clip_value, "clip_value")

    @staticmethod
    def _read_clip(value: float, name: str) -> float:
        return check_clip(value, name)

    def initial_global_state(self) -> SumState:
        """Return the state before the first step."""
        zeros = self._zeros()
        return SumState(self.aggregator.init_state(), self._clip_value, zeros, zeros)

    def derive_sample_params(self, global_state: SumState) -> float:
        """Return the clipping norm."""
        return global_state.clip_value

    @overload
    def initial_sample_state(self, template: V) -> V: ...
    @overload
    def initial_sample_state(self) -> Nested: ...
    def initial_sample_state(self, template: Nested = None) -> Nested:
        """Return the sum of no records; only type checkers look at the template."""
        return self._zeros()

    def preprocess_record(self, params: float, record: V) -> V:
        """Return the clipped record.

        Raises
        ------
        UsageError
            The record is nested or shaped otherwise than the specs.
        """
        clippable: list[Array] = []
        map_leaves(lambda pair: clippable.append(_read(*pair)), self._specs, record)
        # All leaves are clipped together: the cost is that of the norm of the whole record.
        return rebuilt(record, self._clip_fn(clippable, params))

    def accumulate_record(self, params: float, sample_state: V, record: V) -> V:
        """Clip a record and add it to the sum of a step."""
        return self.accumulate_preprocessed_record(
            sample_state, self.preprocess_record(params, record)
        )

    def get_noised_result(
        self, sample_state: V, global_state: SumState
    ) -> tuple[V, SumState, StreamEvent]:
        """Return the noisy running total, the state of the next step, and what to account for."""
        # The sum so far began as zeros of the specs, so it is nested as this step's sum is.
        total = cast(V, added(global_state.samples_cumulative_sum, sample_state))
        noise, tree_state = self.aggregator.get_cumsum_and_update(global_state.tree_state)
        # The true total goes on. Adding up noisy totals would add the noise of earlier steps again.
        state = SumState(tree_state, global_state.clip_value, total, noise)
        return added(total, noise), state, StreamEvent(get_step_idx(tree_state))

    def reset_state(
        self, noised_results: Nested, global_state: SumState, *, complete: bool = False
    ) -> SumState:
        """Start a new tree on top of the noisy total.

        Parameters
        ----------
        noised_results : value
            As ``get_noised_result`` returned it last.
        global_state : SumState
        complete : bool
            Complete the tree first (trees only). Later totals then have the noise of one node
            instead of several, and the accountant needs ``completed=True``.
        """
        tree_state = global_state.tree_state
        noise = global_state.previous_tree_noise
        fresh: State
        if complete:
            if not isinstance(self.aggregator, TreeAggregator):
                raise UsageError(
                    "completing a stream", "only trees are completed", "Leave complete out"
                )
            noise, fresh = self.aggregator.complete_state(noise, tree_state)
            noised_results = added(global_state.samples_cumulative_sum, noise)
        else:
            fresh = self.aggregator.reset_state(tree_state)
        return SumState(fresh, global_state.clip_value, noised_results, self._zeros())

    def _zeros(self) -> Nested:
        return map_leaves(lambda specs: _zero(specs[0]), self._specs)


@explained_methods
class ResidualSumQuery(CumulativeSumQuery):
    """Each step's sum: the differences of noisy running totals, whose noise cancels in their sum.

    Parameters are as for ``CumulativeSumQuery``, but the clipping norm may be 0: records then count
    as zero. The guarantee is the same, too: the differences are post-processing of the totals.

    >>> import numpy as np
    >>> from sfumato.streaming import ResidualSumQuery, ToeplitzAggregator, clip_l2
    >>> silent = ToeplitzAggregator(lambda: np.zeros(2), horizon=4)
    >>> query = ResidualSumQuery(silent, (2,), clip_l2, 1.0)
    >>> state = query.initial_global_state()
    >>> for _ in range(2):
    ...     sums = query.accumulate_record(1.0, query.initial_sample_state(), np.array([3.0, 4.0]))
    ...     step, state, event = query.get_noised_result(sums, state)
    >>> step.round(3).tolist()
    [0.6, 0.8]
    """

    @staticmethod
    def _read_clip(value: float, name: str) -> float:
        return check_deviation(value, name) and check_clip(value, name)

    def get_noised_result(
        self, sample_state: V, global_state: SumState
    ) -> tuple[V, SumState, StreamEvent]:
        """Return this step's noisy sum, the state of the next step, and what to account for."""
        noise, tree_state = self.aggregator.get_cumsum_and_update(global_state.tree_state)
        residual = combine((1, -1), (noise, global_state.previous_tree_noise))
        state = SumState(
            tree_state, global_state.clip_value, global_state.samples_cumulative_sum, noise
        )
        return added(sample_state, residual), state, StreamEvent(get_step_idx(tree_state))

    def reset_state(
        self, noised_results: Nested, global_state: SumState, *, complete: bool = False
    ) -> SumState:
        """Start a new tree.

        The noise of the old one stays in the sum of the differences, so there is nothing to
        complete.
        """
        if complete:
            raise UsageError(
                "completing a tree of residuals",
                "their total keeps the noise that was released",
                "Leave complete out",
            )
        fresh = self.aggregator.reset_state(global_state.tree_state)
        return SumState(
            fresh, global_state.clip_value, global_state.samples_cumulative_sum, self._zeros()
        )


@explained_methods
class _OfTree(CumulativeSumQuery):
    def __init__(
        self,
        record_specs: object,
        noise_generator: ValueGenerator[object],
        clip_fn: Clip,
        clip_value: float,
        use_efficient: bool = True,
    ) -> None:
        kind = EfficientTreeAggregator if use_efficient else TreeAggregator
        super().__init__(kind(noise_generator), record_specs, clip_fn, clip_value)

    @classmethod
    def build_l2_gaussian_query(
        cls,
        clip_norm: float,
        noise_multiplier: float,
        record_specs: object,
        noise_seed: None = None,
        use_efficient: bool = True,
    ) -> Self:
        """Return a query that clips in L2 and adds Gaussian noise to each node.

        The standard deviation of the noise is ``clip_norm * noise_multiplier``.

        Raises
        ------
        UsageError
            If ``clip_norm`` is below 1e-30 (for residuals it may be 0), ``noise_multiplier`` is
            negative, or a seed is given.
        """
        # The noise is in proportion to the norm, so that one multiplier states the cost at any
        # clip.
        deviation = cls._read_clip(clip_norm, "clip_norm") * check_deviation(
            noise_multiplier, "noise_multiplier"
        )
        generator = GaussianNoiseGenerator(deviation, record_specs, noise_seed)
        return cls(record_specs, generator, clip_l2, clip_norm, use_efficient)


@explained_methods
class TreeCumulativeSumQuery(_OfTree):
    """``CumulativeSumQuery`` over a tree of noise.

    >>> query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 0.0, record_specs=(2,))
    >>> state = query.initial_global_state()
    >>> for _ in range(3):
    ...     sums = query.accumulate_record(1.0, query.initial_sample_state(), np.array([3.0, 4.0]))
    ...     total, state, event = query.get_noised_result(sums, state)
    >>> total.round(3).tolist(), event.steps
    ([1.8, 2.4], 3)
    """


@explained_methods
class TreeResidualSumQuery(_OfTree, ResidualSumQuery):
    """``ResidualSumQuery`` over a tree of noise.

    >>> import numpy as np
    >>> from sfumato.streaming import TreeResidualSumQuery
    >>> query = TreeResidualSumQuery.build_l2_gaussian_query(1.0, 0.0, record_specs=(2,))
    >>> state = query.initial_global_state()
    >>> sums = query.accumulate_record(1.0, query.initial_sample_state(), np.array([3.0, 4.0]))
    >>> step, state, event = query.get_noised_result(sums, state)
    >>> step.round(3).tolist()
    [0.6, 0.8]
    """

    def reset_l2_clip_gaussian_noise(
        self, global_state: SumState, clip_norm: float, stddev: float
    ) -> SumState:
        """Start a new tree with another clipping norm and another standard deviation of the noise.

        Parameters
        ----------
        global_state : SumState
        clip_norm : float
            At least 1e-30, or 0.
        stddev : float
            Of each node from here on, at least 0. The noise multiplier is ``stddev / clip_norm``.

        Returns
        -------
        SumState
            The accountant counts its steps as another tree. In the source the old tree goes on. A
            node could then hold records under both clips with the noise of one of them.

        Raises
        ------
        UsageError
            If a number is out of range, or the noise is not from a ``GaussianNoiseGenerator``.
        """
        generator = self.aggregator.value_generator
        tree_state = global_state.tree_state
        if not isinstance(generator, GaussianNoiseGenerator) or not isinstance(
            tree_state, TreeState
        ):
            raise UsageError(
                "another standard deviation of the noise",
                "the noise is not from a GaussianNoiseGenerator",
                "Build the query with build_l2_gaussian_query",
            )
        clip = self._read_clip(clip_norm, "clip_norm")
        noise_state = generator.make_state(tree_state.value_generator_state, stddev)
        changed = msgspec.structs.replace(tree_state, value_generator_state=noise_state)
        return SumState(
            self.aggregator.reset_state(changed),
            clip,
            global_state.samples_cumulative_sum,
            self._zeros(),
        )

    def preprocess_record_l2_impl(self, params: float, record: object) -> NoReturn:
        """Refused: the norm of a record, which the source returns too, is not paid for."""
        raise UsageError(
            "the norm of a record",
            "it is an exact fact about a person",
            "Call preprocess_record, which returns the clipped record",
        )


@explained
def clip_l2(record_as_list: Sequence[Array], clip_norm: float) -> list[Array]:
    """Scale the leaves of a record together to an L2 norm of at most ``clip_norm``.

    A value that is not finite makes the whole record zero.

    Parameters
    ----------
    record_as_list : sequence of ndarrays
        The leaves.
    clip_norm : float

    Returns
    -------
    list of ndarrays like the leaves

    >>> clip_l2([np.array([3.0]), np.array([4.0])], 10.0)
    [array([3.]), array([4.])]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Squared as doubles: in single precision the square of a value beyond 2e19 is infinite.
        squares = [float(np.sum(np.square(leaf, dtype=np.float64))) for leaf in record_as_list]
        norm = math.sqrt(sum(squares))
    if not math.isfinite(norm):
        return [np.zeros_like(leaf) for leaf in record_as_list]
    # Records within the clipping norm keep their values to the last bit.
    if norm <= clip_norm * _BELOW:
        return list(record_as_list)
    return [leaf * (clip_norm * _BELOW / norm) for leaf in record_as_list]


def _zero(spec: object) -> float | Array:
    return np.zeros(spec.shape, dtype=spec.dtype) if isinstance(spec, Spec) else 0.0


def _read(spec: object, leaf: object) -> Array:
    expected = spec if isinstance(spec, Spec) else Spec(())
    given = np.asarray(leaf)
    if given.shape != expected.shape or given.dtype.kind not in "iuf":
        raise UsageError(
            "a record of another shape",
            f"a leaf of shape {expected.shape} was expected",
            "Give records as the specs describe them",
        )
    # Rounded before it is clipped, since rounding may lengthen it.
    with np.errstate(over="ignore"):
        return given.astype(expected.dtype)


def check_clip(value: float, name: str) -> float:
    """Refuse a clipping norm below 1e-30."""
    if not check_deviation(value, name) >= _LEAST:
        raise UsageError(
            f"{name} = {value!r}",
            f"{name} must be at least {_LEAST}",
            "Give a positive number, or scale the records up",
        )
    return float(value)


# --- one sum --------------------------------------------------------------------------------------

INNER_METHODS = (
    "initial_global_state",
    "derive_sample_params",
    "preprocess_record",
    "get_noised_result",
)


class InnerQuery(Protocol):
    """What a tree of range sums asks of its inner query, by TensorFlow Privacy's names.

    States and parameters are handed back as they came.
    """

    def initial_global_state(self) -> object: ...
    def derive_sample_params(self, global_state: object, /) -> object: ...
    def preprocess_record(self, params: object, record: Array, /) -> Array: ...
    def get_noised_result(
        self, sample_state: Array, global_state: object, /
    ) -> tuple[Array, object, object]: ...


@explained_methods
class ArraySums(RecordSums, abc.ABC):
    """The steps that sums of arrays share: begin with zeros, clip, add up."""

    @abc.abstractmethod
    def preprocess_record(self, params: object, record: np.typing.ArrayLike) -> Array:
        """Return the clipped record."""

    def initial_sample_state(self, template: np.typing.ArrayLike) -> Array:
        """Return the sum of no records that are like a template."""
        return np.zeros(np.shape(template))

    def accumulate_record(
        self, params: object, sample_state: Array, record: np.typing.ArrayLike
    ) -> Array:
        """Clip a record and add it to a sum."""
        return self.accumulate_preprocessed_record(
            sample_state, self.preprocess_record(params, record)
        )


class GaussianSumState(msgspec.Struct, frozen=True):
    """The state of a ``GaussianSumQuery``: its parameters, which are public."""

    l2_norm_clip: float
    stddev: float


@explained_methods
class GaussianSumQuery(ArraySums):
    """One sum of records that are clipped in L2, with independent Gaussian noise on each number.

    Parameters
    ----------
    l2_norm_clip : float
        The clipping norm, at least 1e-30.
    stddev : float
        Standard deviation of the noise, at least 0.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    Guarantee: rho-zCDP, rho = l2_norm_clip^2 / (2 stddev^2), for one record added or removed, at
    each call of ``get_noised_result``.
    Sensitivity: L2 = l2_norm_clip.
    Holds because: each record is clipped by itself, and the sum is released with its noise only.
    Not covered: the noise is a float that is added to floats; its low-order bits may tell sums
    apart (Mironov 2012).
    Source: Bun, Steinke 2016; TensorFlow Privacy's ``GaussianSumQuery``.

    >>> query = GaussianSumQuery(10.0, 0.0)
    >>> state = query.initial_global_state()
    >>> sums = query.accumulate_record(10.0, query.initial_sample_state([0, 0]), [3, 4])
    >>> query.get_noised_result(sums, state)[0]
    array([3., 4.])
    """

    def __init__(self, l2_norm_clip: float, stddev: float) -> None:
        self._state = GaussianSumState(
            check_clip(l2_norm_clip, "l2_norm_clip"), check_deviation(stddev, "stddev")
        )

    def initial_global_state(self) -> GaussianSumState:
        """Return the parameters."""
        return self._state

    def derive_sample_params(self, global_state: object) -> float:
        """Return the clipping norm."""
        return own_state(global_state, GaussianSumState, "a sum", "GaussianSumQuery").l2_norm_clip

    def preprocess_record(self, params: object, record: np.typing.ArrayLike) -> Array:
        """Return the clipped record; one with a value that is not finite counts as zero."""
        if not isinstance(params, float | int):
            raise UsageError(
                f"a clipping norm of type {type(params).__name__}",
                "it is not what derive_sample_params returned",
                "Give its number",
            )
        # The parameter came through the caller's hands, so it is checked again before records are
        # clipped.
        return clip_l2([read_numbers(record)], check_clip(params, "l2_norm_clip"))[0]

    def get_noised_result(
        self, sample_state: Array, global_state: object
    ) -> tuple[Array, GaussianSumState, StreamEvent]:
        """Return the noisy sum, the same state, and what to account for."""
        own = own_state(global_state, GaussianSumState, "a sum", "GaussianSumQuery")
        shape = Spec(np.shape(sample_state))
        generator: GaussianNoiseGenerator[Array] = GaussianNoiseGenerator(own.stddev, shape)
        noise, _ = generator.next(generator.initialize())
        return np.asarray(sample_state + noise), own, StreamEvent(1)


def own_state(state: object, kind: type[V], asked: str, query: str) -> V:
    """Refuse a state that is not of a query's own kind."""
    if not isinstance(state, kind):
        raise UsageError(
            f"{asked} from a foreign state",
            f"it is not a state of {query}",
            "Start from initial_global_state()",
        )
    return state


def read_numbers(record: np.typing.ArrayLike) -> Array:
    """Read a record as float64.

    Raises
    ------
    UsageError
        If it holds anything but numbers. The record is not quoted.
    """
    numbers = as_floats(record)
    if not numbers.size:
        raise UsageError("a record", "it holds no numbers", "Give an array of numbers")
    return numbers


def require(given: object, methods: Sequence[str], what: str, remedy: str) -> None:
    """Refuse what lacks a method, and a class in place of one of its objects."""
    is_class = isinstance(given, type)
    missing = [name for name in methods if not callable(getattr(given, name, None))]
    if not missing and not is_class:
        return
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    obstacle = "it is a class" if is_class else f"it has no {' and no '.join(missing)}"
    raise UsageError(f"{what} of type {kind}", obstacle, f"Give an object, such as {remedy}")


# --- restarts -------------------------------------------------------------------------------------

S = TypeVar("S")


@explained_methods
class RestartIndicator(abc.ABC, Generic[S]):
    """Decides after each step whether to restart, from public information only.

    >>> from sfumato.streaming import PeriodicRoundRestartIndicator, RestartIndicator
    >>> isinstance(PeriodicRoundRestartIndicator(3), RestartIndicator)
    True
    """

    @abc.abstractmethod
    def initialize(self) -> S:
        """Return the first state."""

    @abc.abstractmethod
    def next(self, state: S) -> tuple[bool, S]:
        """Return whether to restart now, and the state after it."""


@explained_methods
class PeriodicRoundRestartIndicator(RestartIndicator[int]):
    """Restarts every ``period`` steps, for the first time after ``warmup``.

    Parameters
    ----------
    period : int
        At least 1.
    warmup : int, optional
        From 1 to period - 1. None: the first tree is as long as the others.
    frequency : int, optional
        An older name of ``period``; give one of them.

    Raises
    ------
    UsageError
        If a number is out of range.

    >>> indicator = PeriodicRoundRestartIndicator(2)
    >>> indicator.next(1)
    (True, 2)
    """

    def __init__(
        self, period: int | None = None, warmup: int | None = None, *, frequency: int | None = None
    ) -> None:
        if (period is None) == (frequency is None):
            raise UsageError(
                "a periodic restart",
                "period and frequency are two names of one number, and one of them is needed",
                "Write PeriodicRoundRestartIndicator(period=100)",
            )
        name, steps = ("frequency", frequency) if period is None else ("period", period)
        self.period = whole(
            steps,
            name,
            1,
            obstacle="a restart follows at least one step",
            remedy="Give a whole number from 1 on",
        )
        self.warmup = 0
        if warmup is not None:
            self.warmup = whole(
                warmup,
                "warmup",
                1,
                self.period - 1,
                obstacle="it lies between 1 and period - 1",
                remedy="Give such a number, or leave it out",
            )

    @property
    def frequency(self) -> int:
        """An older name of ``period``."""
        return self.period

    def initialize(self) -> int:
        """Return 0, the number of steps so far."""
        return 0

    def next(self, state: int) -> tuple[bool, int]:
        """Count one more step."""
        # The warmup is shorter than a period, so the first restart comes after exactly so many
        # steps.
        return (state + 1 - self.warmup) % self.period == 0, state + 1


@explained_methods
class PeriodicTimeRestartIndicator(RestartIndicator[float]):
    """Restarts at the first step after ``period_seconds`` have passed since the last restart.

    Parameters
    ----------
    period_seconds : float
        Above 0.
    clock : callable
        Takes no arguments and returns seconds. It must not depend on the data; note that the time
        that a step takes may do so.

    >>> moments = iter([0.0, 5.0, 11.0])
    >>> indicator = PeriodicTimeRestartIndicator(10, clock=lambda: next(moments))
    >>> state = indicator.initialize()
    >>> indicator.next(state)[0], indicator.next(state)[0]
    (False, True)
    """

    def __init__(self, period_seconds: float, clock: Callable[[], float] = time.time) -> None:
        if not check_deviation(period_seconds, "period_seconds") > 0:
            raise UsageError(
                f"period_seconds = {period_seconds!r}",
                "it must be above 0",
                "Give a number of seconds such as 86400",
            )
        self.period_seconds = float(period_seconds)
        self._clock = clock

    def initialize(self) -> float:
        """Return the moment from which the period runs."""
        return self._clock()

    def next(self, state: float) -> tuple[bool, float]:
        """Compare the clock with the last restart."""
        now = self._clock()
        if now - state >= self.period_seconds:
            # Counted from this step on: a step that came late does not bring the next restart
            # forward.
            return True, now
        return False, state


class RestartState(msgspec.Struct, Generic[S], frozen=True, eq=False):
    """The states of the query and of the indicator. Secret, since the query's state is."""

    inner_query_state: SumState
    indicator_state: S


@explained_methods
class RestartQuery(RecordSums, Generic[S]):
    """A cumulative or residual query that restarts when an indicator says so.

    Parameters
    ----------
    inner_query : CumulativeSumQuery or ResidualSumQuery
    restart_indicator : RestartIndicator
    complete : bool
        Whether trees are completed before a restart (cumulative queries over trees).

    Raises
    ------
    UsageError
        If the query cannot be reset, or the indicator has no ``initialize`` and ``next``.

    Guarantee: the sum over restarts of what each tree costs (``compute_zcdp_tree_restart``), for a
    person in every one of them.
    Sensitivity: that of each tree.
    Holds because: trees are independent Gaussian mechanisms on the steps they hold, composed
    adaptively.
    Not covered: an indicator that looks at the data.
    Source: Kairouz et al. 2021, app. D; TensorFlow Privacy's ``RestartQuery``.

    >>> from sfumato.streaming import PeriodicRoundRestartIndicator
    >>> from sfumato.streaming import RestartQuery, TreeCumulativeSumQuery
    >>> tree = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 0.0, record_specs=())
    >>> query = RestartQuery(tree, PeriodicRoundRestartIndicator(2))
    >>> state = query.initial_global_state()
    >>> for _ in range(3):
    ...     sums = query.accumulate_record(1.0, query.initial_sample_state(), 1.0)
    ...     total, state, event = query.get_noised_result(sums, state)
    >>> round(float(total), 3), event.steps  # the tree began again before the third step
    (3.0, 1)
    """

    GlobalState: ClassVar[type] = RestartState

    def __init__(
        self,
        inner_query: CumulativeSumQuery,
        restart_indicator: RestartIndicator[S],
        *,
        complete: bool = False,
    ) -> None:
        require(
            inner_query,
            ("reset_state", "get_noised_result"),
            "a restarted query",
            "TreeCumulativeSumQuery(...)",
        )
        require(
            restart_indicator,
            ("initialize", "next"),
            "a restart indicator",
            "PeriodicRoundRestartIndicator(period=100)",
        )
        self._inner = inner_query
        self._indicator = restart_indicator
        self._complete = complete

    def initial_global_state(self) -> RestartState[S]:
        """Return the state before the first step."""
        return RestartState(self._inner.initial_global_state(), self._indicator.initialize())

    def get_noised_result(
        self, sample_state: V, global_state: RestartState[S]
    ) -> tuple[V, RestartState[S], StreamEvent]:
        """Return the result of the inner query, which is restarted after it if it is time.

        The event counts this tree's steps.
        """
        noised, inner, event = self._inner.get_noised_result(
            sample_state, global_state.inner_query_state
        )
        restart, indicator_state = self._indicator.next(global_state.indicator_state)
        if restart:
            # The step is released before the restart, so its total still has the noise of the old
            # tree.
            inner = self._inner.reset_state(noised, inner, complete=self._complete)
        return noised, RestartState(inner, indicator_state), event

    def derive_sample_params(self, global_state: RestartState[S]) -> float:
        """Return the clipping norm."""
        return self._inner.derive_sample_params(global_state.inner_query_state)

    @overload
    def initial_sample_state(self, template: V) -> V: ...
    @overload
    def initial_sample_state(self) -> Nested: ...
    def initial_sample_state(self, template: Nested = None) -> Nested:
        """Return the sum of no records."""
        return self._inner.initial_sample_state(template)

    def preprocess_record(self, params: float, record: V) -> V:
        """Return the clipped record."""
        return self._inner.preprocess_record(params, record)

    def accumulate_preprocessed_record(self, sample_state: V, preprocessed_record: V) -> V:
        """Add a clipped record to the sum of a step."""
        return self._inner.accumulate_preprocessed_record(sample_state, preprocessed_record)

    def accumulate_record(self, params: float, sample_state: V, record: V) -> V:
        """Clip a record and add it to the sum of a step."""
        return self._inner.accumulate_record(params, sample_state, record)
