"""Restarts, and the totals that they leave."""

from __future__ import annotations

import pytest

from sfumato.streaming import (
    PeriodicRoundRestartIndicator,
    PeriodicTimeRestartIndicator,
    RestartQuery,
    TreeCumulativeSumQuery,
    TreeResidualSumQuery,
)
from streaming.stepping import kept, run


@pytest.mark.parametrize(
    ("scalar", "node", "frequency"),
    [(0.0, 1.0, 1), (0.0, 1.0, 5), (1.0, 1.0, 5), (1.0, 2.0, 2), (1.0, 5.0, 6)],
)
def test_restarted_totals_keep_the_noise_of_old_trees(
    scalar: float, node: float, frequency: int
) -> None:
    query = TreeCumulativeSumQuery(None, lambda: node, kept, scalar + 1, use_efficient=False)
    found = run(RestartQuery(query, PeriodicRoundRestartIndicator(frequency)), [scalar] * 20)
    digits = [bin(t).count("1") for t in range(30)]
    wanted = [
        scalar * (i + 1)
        + i // frequency * node * digits[frequency]
        + node * digits[i % frequency + 1]
        for i in range(20)
    ]
    assert found == wanted


@pytest.mark.parametrize("frequency", [1, 2, 5, 6])
def test_restarted_residuals(frequency: int) -> None:
    query = TreeResidualSumQuery(None, lambda: 2.0, kept, 9.0, use_efficient=False)
    found = run(RestartQuery(query, PeriodicRoundRestartIndicator(frequency)), [1.0] * 20)
    digits = [bin(t).count("1") for t in range(30)]
    assert found == [
        1.0 + 2.0 * (digits[i % frequency + 1] - digits[i % frequency]) for i in range(20)
    ]


def test_parts_of_a_step_are_merged_before_a_restart_too() -> None:
    query = RestartQuery(
        TreeCumulativeSumQuery(None, lambda: 0.0, kept, 9.0), PeriodicRoundRestartIndicator(2)
    )
    state = query.initial_global_state()
    whole = query.initial_sample_state()
    parts = [
        query.accumulate_preprocessed_record(whole, query.preprocess_record(9.0, value))
        for value in (1.0, 2.0)
    ]
    assert query.get_noised_result(query.merge_sample_states(*parts), state)[0] == 3.0


def test_completion_before_a_restart() -> None:
    """After three steps of ones.

    The tree's root stands for them, and its noise stays in every later total.
    """
    nodes = iter([1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6, 1e7])
    query = TreeCumulativeSumQuery(None, lambda: next(nodes), kept, 9.0, use_efficient=False)
    found = run(RestartQuery(query, PeriodicRoundRestartIndicator(3), complete=True), [0.0] * 5)
    assert found == [1.0, 10.0, 110.0, 1e4 + 1e5, 1e4 + 1e6]


def test_indicators() -> None:
    for frequency, warmup in ((2, 1), (4, 3), (5, 2), (3, None)):
        indicator = PeriodicRoundRestartIndicator(frequency, warmup)
        state = indicator.initialize()
        flags = []
        for _ in range(20):
            flag, state = indicator.next(state)
            flags.append(flag)
        assert flags == [i % frequency == (warmup or frequency) - 1 for i in range(20)]
    moments = iter([0, 3600, 86400, 93600, 170640, 171036])
    clock = PeriodicTimeRestartIndicator(3600 * 23.5, clock=lambda: next(moments))
    state = clock.initialize()
    flags = []
    for _ in range(5):
        flag, state = clock.next(state)
        flags.append(flag)
    assert flags == [False, True, False, False, True]
