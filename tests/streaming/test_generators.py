"""Generators of noise: shapes, laws, refusals, and noise that repeats in tests only."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import (
    GaussianNoiseGenerator,
    Spec,
    TreeAggregator,
)
from streaming.linear import steps


def test_noise_has_the_shape_and_the_law_asked_for() -> None:
    generator = GaussianNoiseGenerator(
        3.0, {"a": Spec((200, 100), "float32"), "b": [None, np.zeros(2)]}
    )
    value, state = generator.next(generator.initialize())
    assert (value["a"].shape, value["a"].dtype, type(value["b"][0]), value["b"][1].dtype) == (
        (200, 100),
        np.float32,
        float,
        np.float64,
    )
    assert value["a"].std() == pytest.approx(3.0, rel=0.05)
    again, _ = generator.next(state)
    assert not np.array_equal(again["a"], value["a"])
    small = GaussianNoiseGenerator(1.0, (5,))
    start = small.initialize()
    first, _ = small.next(start)
    kept = first.copy()
    first += 100  # in place, as users do
    np.testing.assert_array_equal(small.next(start)[0], kept)


def test_noise_repeats_in_tests_only() -> None:
    from sfumato.testing import deterministic

    generator = GaussianNoiseGenerator(1.0)
    with deterministic(1):
        one = generator.initialize()
    with deterministic(1):
        other = generator.initialize()
    assert one == other
    assert not one.private
    assert "NOT PRIVATE" in repr(one)
    assert generator.initialize().private
    assert generator.initialize() != generator.initialize()


def test_two_streams_have_nothing_in_common() -> None:
    aggregator = TreeAggregator(GaussianNoiseGenerator(1.0))
    assert set(steps(aggregator, 50)).isdisjoint(steps(aggregator, 50))


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", None, True])
def test_deviations_that_are_none(value: object) -> None:
    with pytest.raises(UsageError):
        GaussianNoiseGenerator(value)


@pytest.mark.parametrize("specs", ["abc", 3, {"a": "b"}, [1.5], np.zeros(3, np.int64), (-1,)])
def test_specs_that_have_no_shape(specs: object) -> None:
    with pytest.raises(UsageError):
        GaussianNoiseGenerator(1.0, specs)


def test_seeds_are_refused_and_values_come_from_somewhere() -> None:
    with pytest.raises(UsageError, match="seed"):
        GaussianNoiseGenerator(1.0, None, seed=42)
    with pytest.raises(UsageError):
        TreeAggregator(3.0)
    with pytest.raises(UsageError):
        TreeAggregator(lambda: 1.0).whole(5)
    with pytest.raises(UsageError):
        GaussianNoiseGenerator(1.0).next(())
    unlike = iter([np.zeros(3), np.zeros(4), np.zeros((2, 2))])
    with pytest.raises((UsageError, ValueError)):
        steps(TreeAggregator(lambda: next(unlike)), 3)
