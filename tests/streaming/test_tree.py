"""Trees of noise.

The page's vectors, every prefix in exact arithmetic, the source's usage example, restarts and
states.
"""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import (
    BLTAggregator,
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    ToeplitzAggregator,
    TreeAggregator,
    ValueGenerator,
    get_step_idx,
)
from streaming.linear import Draws, Linear, steps, weights

BOTH = [TreeAggregator, EfficientTreeAggregator]


def test_vectors_of_ones() -> None:
    assert steps(TreeAggregator(lambda: 1), 8) == [1, 1, 2, 1, 2, 2, 3, 1]
    efficient = [
        Fraction(x) for x in ["1", "4/3", "7/3", "12/7", "19/7", "64/21", "85/21", "32/15"]
    ]
    found = steps(EfficientTreeAggregator(lambda: 1.0), 8)
    assert found == pytest.approx([float(x) for x in efficient], rel=1e-15)


def test_variances_of_eight_prefixes() -> None:
    found = [noise.variance for noise in steps(EfficientTreeAggregator(Draws()), 8)]
    assert found == [
        Fraction(x) for x in ["1", "2/3", "5/3", "4/7", "11/7", "26/21", "47/21", "8/15"]
    ]


@pytest.mark.parametrize("last", [513, pytest.param(4096, marks=pytest.mark.deep)])
@pytest.mark.parametrize("kind", BOTH)
def test_variances_of_every_prefix_in_exact_arithmetic(
    kind: type[TreeAggregator], last: int
) -> None:
    levels = range(13)
    wanted = [sum(kind.node_variance(k) for k in levels if t >> k & 1) for t in range(1, last + 1)]
    assert [noise.variance for noise in steps(kind(weights()), last)] == wanted
    np.testing.assert_allclose(
        kind(weights()).variances(last), np.array(wanted, dtype=float), rtol=1e-14
    )


def test_means_of_the_page() -> None:
    assert TreeAggregator(Draws()).variances(1024).mean() == pytest.approx(5.000976563, abs=6e-10)
    assert EfficientTreeAggregator(Draws()).variances(1024).mean() == pytest.approx(
        2.901918088, abs=6e-10
    )


def test_draws_come_in_the_order_of_the_page() -> None:
    """Values 1, 2, 3, ...: leaf 1; leaf 2 and their parent 3; leaf 4.

    Leaf 5, its parent 6, the root 7.
    """
    plain = iter(range(1, 100))
    efficient = iter(map(float, range(1, 100)))
    assert steps(TreeAggregator(lambda: next(plain)), 5) == [1, 2, 5, 4, 9]
    wanted = [1, (3 + 1.5) * 2 / 3, 3 + 4, (7 + (4.5 + 10.5) / 2) * 4 / 7]
    assert steps(EfficientTreeAggregator(lambda: next(efficient)), 4) == pytest.approx(wanted)


class TrueSums(ValueGenerator):
    """Gives each node the true sum of what it holds, in the efficient tree's order of draws."""

    def __init__(self, data: list[float]) -> None:
        self.data = data

    def initialize(self) -> tuple[int, int]:
        return 0, 0

    def next(self, state: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        leaf, level = state
        stop = leaf + 1
        value = sum(self.data[stop - (1 << level) : stop])
        return value, ((leaf, level + 1) if stop % (2 << level) == 0 else (leaf + 1, 0))


def test_the_efficient_estimate_is_unbiased() -> None:
    """Without noise the running total itself comes out: a node's weights add up to 1."""
    data = [float(x * x % 37) for x in range(300)]
    totals = np.cumsum(data)[:256]
    np.testing.assert_allclose(
        steps(EfficientTreeAggregator(TrueSums(data)), 256), totals, rtol=1e-12
    )


USAGE = """
from sfumato.streaming import EfficientTreeAggregator, GaussianNoiseGenerator, get_step_idx

random_generator = GaussianNoiseGenerator(1.0, specs)
tree_aggregator = EfficientTreeAggregator(random_generator)
state = tree_aggregator.init_state()
for leaf_node_idx in range(total_steps):
  assert leaf_node_idx == get_step_idx(state)
  noise, state = tree_aggregator.get_cumsum_and_update(state)
"""
"""As the source's page has it, but for its surplus bracket.

The first line is the only one that changes.
"""


@pytest.mark.parametrize(
    "specs",
    [None, (), (3,), np.zeros((2, 2), np.float32), {"w": (2,), "b": None}, [(1,), ((2,), (3, 1))]],
)
def test_the_source_usage_example_runs(specs: object) -> None:
    exec(USAGE, {"specs": specs, "total_steps": 9})
    exec(
        USAGE.replace("get_step_idx(state)", "get_step_idx(state.level_buffer_idx)"),
        {"specs": specs, "total_steps": 9},
    )


def test_the_step_is_read_from_a_state_or_from_its_levels() -> None:
    state = EfficientTreeAggregator(Draws()).init_state()
    assert (
        get_step_idx(state)
        == get_step_idx(state.level_buffer_idx)
        == get_step_idx(np.array([0]))
        == 0
    )
    assert get_step_idx((1, 2)) == 5


@pytest.mark.parametrize("kind", BOTH)
def test_a_tree_over_nested_values_is_a_tree_over_each(kind: type[TreeAggregator]) -> None:
    rng = np.random.default_rng(1)
    drawn = [
        {"a": rng.normal(size=3), "b": (float(x), [rng.normal(size=(2, 2))])}
        for x in rng.normal(size=40)
    ]
    nested = iter(drawn)
    alone = iter(drawn)
    found = steps(kind(lambda: next(nested)), 12)
    wanted = steps(kind(lambda: next(alone)["b"][1][0]), 12)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one["b"][1][0], other, rtol=1e-14)
        assert set(one) == {"a", "b"}
        assert type(one["b"]) is tuple


@pytest.mark.parametrize("kind", BOTH)
def test_a_whole_horizon_is_what_stepping_gives(kind: type[TreeAggregator]) -> None:
    aggregator = kind(GaussianNoiseGenerator(2.0))
    state = aggregator.value_generator.initialize()
    for count in (1, 2, 7, 64, 1000):
        np.testing.assert_allclose(
            aggregator.whole(count, state),
            steps(aggregator, count, aggregator._first(state)),
            rtol=1e-12,
            atol=1e-12,
        )


def test_a_replayed_step_gives_the_same_noise_and_what_follows_too() -> None:
    aggregator = EfficientTreeAggregator(GaussianNoiseGenerator(1.0, (4,)))
    _, saved = aggregator.get_cumsum_and_update(aggregator.init_state())
    copy = pickle.loads(pickle.dumps(saved))
    one = steps(aggregator, 20, saved)
    other = steps(EfficientTreeAggregator(GaussianNoiseGenerator(1.0, (4,))), 20, copy)
    np.testing.assert_array_equal(one, other)


def test_a_reset_starts_a_new_tree_and_goes_on_with_the_generator() -> None:
    draws = Draws()
    aggregator = TreeAggregator(draws)
    state = aggregator.init_state()
    for _ in range(5):
        _, state = aggregator.get_cumsum_and_update(state)
    state = aggregator.reset_state(state)
    assert get_step_idx(state) == 0
    noise, _ = aggregator.get_cumsum_and_update(state)
    assert min(noise.terms) == draws.count - 2


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("taken", range(1, 34))
def test_completion_leaves_the_noise_of_one_node(kind: type[TreeAggregator], taken: int) -> None:
    aggregator = kind(Draws())
    state = aggregator.init_state()
    for _ in range(taken):
        noise, state = aggregator.get_cumsum_and_update(state)
    completed, fresh = aggregator.complete_state(noise, state)
    assert get_step_idx(fresh) == 0
    assert isinstance(completed, Linear)
    assert completed.variance <= (
        1 if kind is TreeAggregator else kind.node_variance(min(taken - 1, 1))
    )
    if taken & (taken - 1) == 0:
        assert completed is noise


class CompletedSums(TrueSums):
    """Beyond the data every sum is that of what is there: a completed node holds no more."""

    def next(self, state: tuple[int, int]) -> tuple[float, tuple[int, int]]:
        leaf, level = state
        if leaf < 0:  # climbing: the node of this level that begins where the completed part does
            start = (-leaf - 1) >> level << level
            return sum(self.data[start : start + (1 << level)]), (leaf, level + 1)
        return super().next(state)


@pytest.mark.parametrize("taken", range(1, 34))
def test_completion_is_unbiased(taken: int) -> None:
    data = [float(x) for x in range(1, taken + 1)] + [0.0] * 64
    aggregator = EfficientTreeAggregator(CompletedSums(data))
    state = aggregator.init_state()
    for _ in range(taken):
        noise, state = aggregator.get_cumsum_and_update(state)
    smallest = state.level_buffer_idx[0]
    climbing = type(state)(
        state.level_buffer, state.level_buffer_idx, (-(taken + 1), smallest + 1), state.kind
    )
    total = noise if taken & (taken - 1) == 0 else aggregator._root(climbing)[0]
    assert total == pytest.approx(sum(data), rel=1e-12)


FOREIGN = [
    (TreeAggregator(Draws()), EfficientTreeAggregator(Draws()).init_state()),
    (EfficientTreeAggregator(Draws()), TreeAggregator(Draws()).init_state()),
    (EfficientTreeAggregator(Draws()), ToeplitzAggregator(Draws(), 4).init_state()),
    (ToeplitzAggregator(lambda: 1.0, 4), BLTAggregator(lambda: 1.0, 4).init_state()),
    (
        BLTAggregator(lambda: 1.0, 4, buffers=1),
        BLTAggregator(lambda: 1.0, 4, buffers=2).init_state(),
    ),
    (BLTAggregator(lambda: 1.0, 4), None),
]


@pytest.mark.parametrize(("aggregator", "state"), FOREIGN)
def test_a_state_of_another_aggregator_is_refused(
    aggregator: TreeAggregator, state: object
) -> None:
    for verb in (aggregator.get_cumsum_and_update, aggregator.reset_state):
        with pytest.raises(UsageError, match="another aggregator"):
            verb(state)


def test_no_repr_tells_noise() -> None:
    for aggregator in (
        EfficientTreeAggregator(lambda: 123.456),
        ToeplitzAggregator(lambda: 123.456, 9),
        BLTAggregator(lambda: 123.456, 9),
    ):
        assert "123" not in repr(aggregator.init_state())
    generator = GaussianNoiseGenerator(1.0)
    state = generator.initialize()
    shown = repr(state) + repr(generator) + repr(EfficientTreeAggregator(generator).init_state())
    assert repr(state.key)[2:8] not in shown
    assert not any(isinstance(value, bytes) for value in generator.__dict__.values())


def test_the_document_is_here() -> None:
    """Names that the source's document and its surroundings use."""
    import sfumato.streaming as room

    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    for name in room.__all__:
        assert getattr(room, name) is not None
    for name in (
        "EfficientTreeAggregator",
        "get_cumsum_and_update",
        "init_state",
        "reset_state",
        "get_step_idx",
        "level_buffer",
    ):
        assert name in page
