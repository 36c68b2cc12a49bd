"""One noisy sum of clipped records: the query that a tree of range sums adds its noise with."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from sfumato.basics.numbers import Array, as_floats
from sfumato.errors import UsageError
from sfumato.streaming.generators import GaussianNoiseGenerator, Spec, check_deviation
from sfumato.streaming.queries import StreamEvent, check_clip, clip_l2

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


class ArraySums(abc.ABC):
    """The steps that sums of arrays share: begin with zeros, clip, add up."""

    @abc.abstractmethod
    def preprocess_record(self, params: object, record: ArrayLike) -> Array:
        """Return the clipped record."""

    def initial_sample_state(self, template: ArrayLike) -> Array:
        """Return the sum of no records that are like a template."""
        return np.zeros(np.shape(template))

    def accumulate_preprocessed_record(
        self, sample_state: Array, preprocessed_record: Array
    ) -> Array:
        """Add a clipped record to a sum."""
        return np.asarray(sample_state + preprocessed_record)

    def accumulate_record(self, params: object, sample_state: Array, record: ArrayLike) -> Array:
        """Clip a record and add it to a sum."""
        return self.accumulate_preprocessed_record(
            sample_state, self.preprocess_record(params, record)
        )

    def merge_sample_states(self, one: Array, other: Array) -> Array:
        """Add up the sums of two parts."""
        return self.accumulate_preprocessed_record(one, other)

    def derive_metrics(self, global_state: object) -> dict[str, object]:
        """Return nothing: no metric is paid for."""
        return {}


class GaussianSumState(msgspec.Struct, frozen=True):
    """The state of a ``GaussianSumQuery``: its parameters, which are public."""

    l2_norm_clip: float
    stddev: float


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
        return _own(global_state).l2_norm_clip

    def preprocess_record(self, params: object, record: ArrayLike) -> Array:
        """Return the clipped record; one with a value that is not finite counts as zero."""
        if not isinstance(params, float | int):
            raise UsageError(
                f"a clipping norm of type {type(params).__name__}",
                "it is not what derive_sample_params returned",
                "Give its number",
            )
        return clip_l2([read_numbers(record)], check_clip(params, "l2_norm_clip"))[0]

    def get_noised_result(
        self, sample_state: Array, global_state: object
    ) -> tuple[Array, GaussianSumState, StreamEvent]:
        """Return the noisy sum, the same state, and what to account for."""
        own = _own(global_state)
        shape = Spec(np.shape(sample_state))
        generator: GaussianNoiseGenerator[Array] = GaussianNoiseGenerator(own.stddev, shape)
        noise, _ = generator.next(generator.initialize())
        return np.asarray(sample_state + noise), own, StreamEvent(1)


def _own(state: object) -> GaussianSumState:
    if not isinstance(state, GaussianSumState):
        raise UsageError(
            "a sum from a foreign state",
            "it is not a state of GaussianSumQuery",
            "Start from initial_global_state()",
        )
    return state


def read_numbers(record: ArrayLike) -> Array:
    """Read a record as float64.

    Raises
    ------
    UsageError
        If it holds anything but numbers. The record is not quoted.
    """
    found = as_floats(record)
    if not found.size:
        raise UsageError("a record", "it holds no numbers", "Give an array of numbers")
    return found


def require(given: object, methods: Sequence[str], asked: str, remedy: str) -> None:
    """Refuse what lacks a method, and a class in place of one of its objects."""
    is_class = isinstance(given, type)
    missing = [name for name in methods if not callable(getattr(given, name, None))]
    if not missing and not is_class:
        return
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    obstacle = "it is a class" if is_class else f"it has no {' and no '.join(missing)}"
    raise UsageError(f"{asked} of type {kind}", obstacle, f"Give an object, such as {remedy}")
