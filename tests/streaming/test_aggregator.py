"""No stream of noise costs more than its claim, and no step depends on later values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.streaming import (
    Aggregator,
    BLTAggregator,
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    PeriodicRoundRestartIndicator,
    RestartQuery,
    ToeplitzAggregator,
    TreeAggregator,
    TreeCumulativeSumQuery,
    compute_zcdp_tree_restart,
)
from streaming.linear import Draws, Linear, matrix, steps

STEPS = 13


class Counted:
    """Unit vectors, and how many were asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> np.ndarray:
        self.count += 1
        return np.eye(1, 64, self.count - 1).ravel()


def walked(aggregator: Any, drawn: Counted) -> np.ndarray:
    """The matrix of an aggregator, each row only as far as values had been drawn when its step was
    asked for.
    """
    state = aggregator.init_state()
    rows = []
    for _ in range(STEPS):
        before = drawn.count
        noise, state = aggregator.get_cumsum_and_update(state)
        assert not noise[before:].any()
        rows.append(noise)
    return np.array(rows)


@pytest.mark.parametrize("kind", [TreeAggregator, EfficientTreeAggregator])
def test_noisy_nodes_hold_past_steps_only(kind: type[TreeAggregator]) -> None:
    """total + noise is a function of node sums plus fresh noise, in the order in which the nodes
    are completed.
    """
    drawn = Counted()
    applied = walked(kind(drawn), drawn)
    nodes = []
    for leaf in range(STEPS):
        completed = [level for level in range(4) if (leaf + 1) % (1 << level) == 0]
        nodes += [
            (leaf + 1 - (1 << level), leaf + 1)
            for level in (completed if kind is EfficientTreeAggregator else completed[-1:])
        ]
    sums = np.array(
        [[start <= step < stop for step in range(STEPS)] for start, stop in nodes], dtype=float
    )
    np.testing.assert_allclose(
        applied[:, : len(nodes)] @ sums, np.tril(np.ones((STEPS, STEPS))), atol=1e-12
    )


@pytest.mark.parametrize("kind", [ToeplitzAggregator, BLTAggregator])
def test_strategies_are_lower_triangular(kind) -> None:  # type: ignore[no-untyped-def]
    drawn = Counted()
    applied = walked(kind(drawn, STEPS), drawn)[:, :STEPS]
    strategy = np.linalg.solve(applied, np.tril(np.ones((STEPS, STEPS))))
    assert (np.diag(applied) == 1).all()
    np.testing.assert_allclose(strategy, np.tril(strategy), atol=1e-12)


STEPS = 8
SIGMA = 1.3


def loss(
    noises: list[Linear], draws: int, patterns: list[tuple[int, ...]], sigma: float = SIGMA
) -> float:
    """The largest rho between streams that differ by 1 in each step of a pattern.

    Infinite where the noise leaves a direction open.
    """
    applied = matrix(noises, draws)
    covariance = sigma**2 * applied @ applied.T
    inverse = np.linalg.pinv(covariance, rcond=1e-10)
    found = []
    for pattern in patterns:
        shift = sum((np.arange(len(noises)) >= step).astype(float) for step in pattern)
        seen = np.allclose(covariance @ inverse @ shift, shift, atol=1e-8)
        found.append(0.5 * shift @ inverse @ shift if seen else np.inf)
    return float(max(found))


def patterns(many: int) -> list[tuple[int, ...]]:
    return [
        pattern for count in range(1, many + 1) for pattern in combinations(range(STEPS), count)
    ]


KINDS: dict[str, Callable[[Callable[[], object]], Aggregator]] = {
    "tree": TreeAggregator,
    "efficient tree": EfficientTreeAggregator,
    "square root": lambda values: ToeplitzAggregator(values, STEPS),
    "buffered": lambda values: BLTAggregator(values, STEPS, buffers=2),
}


class Exact:
    """Draws whose products keep all their digits: Toeplitz weights are no small fractions."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> np.ndarray:
        value = np.zeros(4 * STEPS)
        value[self.count] = 1
        self.count += 1
        return value


def as_linear(rows: list[np.ndarray]) -> list[Linear]:
    return [Linear(dict(enumerate(row.tolist()))) for row in rows]


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("name", KINDS)
def test_no_aggregator_spends_more_than_its_price(name: str, many: int) -> None:
    aggregator = KINDS[name](Exact())
    spent = loss(as_linear(steps(aggregator, STEPS)), 4 * STEPS, patterns(many))
    price = float(aggregator.cost(noise_multiplier=SIGMA, steps=STEPS, participations=many).rho)
    assert spent <= price
    if name in ("square root", "buffered"):  # the price is what is spent, to the last digits
        assert spent == pytest.approx(price, rel=1e-5)


class UnequalScales(EfficientTreeAggregator):
    """Nodes above the leaves get half of the noise that they are charged for."""

    def _node(self, completed, state):  # type: ignore[no-untyped-def]
        value, state = self.value_generator.next(state)
        for left in completed:
            own, state = self.value_generator.next(state)
            value = own * 0.5 + (left + value) * 0.5
        return value, state


class FreshOnReplay(TreeAggregator):
    """The noise of a step is drawn when it is asked for, so that a replay draws it again."""

    def _read(self, held, levels):  # type: ignore[no-untyped-def]
        return self.value_generator.next(())[0]


def test_unequal_scales_is_found_out() -> None:
    aggregator = UnequalScales(Exact())
    spent = loss(as_linear(steps(aggregator, STEPS)), 4 * STEPS, patterns(1))
    assert spent > 1.1 * float(aggregator.cost(noise_multiplier=SIGMA, steps=STEPS).rho)


def replayed(aggregator: Aggregator, times: int) -> list[np.ndarray]:
    """What someone sees who has a stream run again from its saved states."""
    state = aggregator.init_state()
    seen = []
    for _ in range(STEPS):
        found = [aggregator.get_cumsum_and_update(state) for _ in range(times)]
        seen += [noise for noise, _ in found]
        state = found[0][1]
    return seen


class Roomy(Exact):
    """The same with room for the draws of replays and restarts."""

    def __call__(self) -> np.ndarray:
        value = np.zeros(400)
        value[self.count] = 1
        self.count += 1
        return value


@pytest.mark.parametrize("name", [*KINDS, "broken"])
def test_replays_tell_nothing_new_but_for_the_broken_one(name: str) -> None:
    aggregator = FreshOnReplay(Roomy()) if name == "broken" else KINDS[name](Roomy())
    applied = np.array(replayed(aggregator, 3))
    totals = np.repeat(np.tril(np.ones((STEPS, STEPS))), 3, axis=0)
    covariance = SIGMA**2 * applied @ applied.T
    inverse = np.linalg.pinv(covariance, rcond=1e-10)
    spent = max(0.5 * totals[:, step] @ inverse @ totals[:, step] for step in range(STEPS))
    price = float(aggregator.cost(noise_multiplier=SIGMA, steps=STEPS).rho)
    assert (spent > 1.5 * price) if name == "broken" else (spent <= price)


def of_restarts(complete: bool) -> list[Linear]:
    """Eight steps without data, restarted after every third."""
    query = TreeCumulativeSumQuery((400,), Roomy(), lambda record, clip: record, 1.0)
    restarted = RestartQuery(query, PeriodicRoundRestartIndicator(3), complete=complete)
    state = restarted.initial_global_state()
    found = []
    for _ in range(STEPS):
        total, state, _ = restarted.get_noised_result(restarted.initial_sample_state(), state)
        found.append(total)
    return as_linear(found)


@pytest.mark.parametrize("complete", [False, True])
def test_restarts_cost_their_sum_and_charging_them_once_is_found_out(complete: bool) -> None:
    once_in_each = [
        (one, two, three) for one in range(3) for two in range(3, 6) for three in range(6, 8)
    ]
    spent = loss(of_restarts(complete), 400, once_in_each)
    assert spent <= compute_zcdp_tree_restart(SIGMA, [3, 3, 2], completed=complete)
    assert spent > 1.5 * compute_zcdp_tree_restart(SIGMA, [3], completed=complete)


@pytest.mark.parametrize("name", KINDS)
def test_the_noise_that_comes_out_has_the_law_that_was_priced(name: str) -> None:
    """The statistic that tells neighbours apart best, from 3,000 streams of the private generator.

    A normal law of variance 2 rho.
    """
    shift = np.ones(STEPS)  # one person in the first step
    applied = np.array(steps(KINDS[name](Exact()), STEPS))
    direction = np.linalg.pinv(SIGMA**2 * applied @ applied.T, rcond=1e-10) @ shift
    aggregator = KINDS[name](GaussianNoiseGenerator(SIGMA))
    streams = []
    state = aggregator.init_state()
    for _ in range(3_000):
        state = aggregator.reset_state(state)
        streams.append(steps(aggregator, STEPS, state))
        for _ in range(STEPS):
            _, state = aggregator.get_cumsum_and_update(state)
    scores = np.array(streams) @ direction
    deviation = float(np.sqrt(direction @ shift))
    assert stats.kstest(scores / deviation, "norm").pvalue > 1e-9
    # Half of the noise variance, a scale 1.41 times off, would show.
    assert stats.kstest(scores / deviation * np.sqrt(0.5), "norm").pvalue < 1e-9


def test_the_symbols_agree_with_the_arrays() -> None:
    draws = Draws()
    symbols = matrix(steps(EfficientTreeAggregator(draws), STEPS), 4 * STEPS)
    np.testing.assert_allclose(
        symbols, np.array(steps(EfficientTreeAggregator(Exact()), STEPS)), rtol=1e-12
    )
