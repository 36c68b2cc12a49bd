"""Restarting a stream after a number of steps, or by the clock.

Every restart begins a new tree, and every tree is paid for.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, overload

import msgspec

from sfumato.basics import whole
from sfumato.errors import UsageError, explained_methods
from sfumato.streaming.generators import check_deviation
from sfumato.streaming.queries import (
    CumulativeSumQuery,
    RecordSums,
    StreamEvent,
    SumState,
    require,
)
from sfumato.streaming.values import Nested

S = TypeVar("S")
V = TypeVar("V")


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
