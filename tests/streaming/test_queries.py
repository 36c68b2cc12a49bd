"""Sums over time: clipping, cumulative and residual, restarts, ranges, and the accountant."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.measures import PureDP
from sfumato.streaming import (
    BLTAggregator,
    CumulativeSumQuery,
    GaussianNoiseGenerator,
    PeriodicRoundRestartIndicator,
    PeriodicTimeRestartIndicator,
    ResidualSumQuery,
    RestartQuery,
    Spec,
    TreeCumulativeSumQuery,
    TreeRangeSumQuery,
    TreeResidualSumQuery,
    build_tree_from_leaf,
    clip_l2,
    compute_rdp_tree_restart,
    compute_zcdp_single_tree,
    compute_zcdp_tree_restart,
    get_privacy_spent,
)
from streaming.stepping import kept, run
from support.canary import overheard, sightings


def test_residuals_add_up_to_totals() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 2))
    drawn = rng.normal(size=(60, 2))
    ones = iter(drawn)
    others = iter(drawn)
    totals = run(TreeCumulativeSumQuery((2,), lambda: next(ones), kept, 9.0), values, records=3)
    parts = run(TreeResidualSumQuery((2,), lambda: next(others), kept, 9.0), values, records=3)
    np.testing.assert_allclose(np.cumsum(parts, axis=0), totals, atol=1e-12)


def test_any_aggregator_serves() -> None:
    spec = {"w": (3,), "b": None}
    for kind in (CumulativeSumQuery, ResidualSumQuery):
        query = kind(BLTAggregator(GaussianNoiseGenerator(0.0, spec), 20), spec, clip_l2, 10.0)
        found = run(query, [{"w": np.full(3, 1.0), "b": 2.0}] * 20)
        assert found[-1]["b"] == pytest.approx(40.0 if kind is CumulativeSumQuery else 2.0)
        with pytest.raises(UsageError):
            query.reset_state(found[-1], query.initial_global_state(), complete=True)


@pytest.mark.parametrize("norm", [0.5, 1.0, 1.5, 1e30])
def test_clipping_keeps_the_norm_below_the_clip(norm: float) -> None:
    rng = np.random.default_rng(3)
    for dtype in (np.float32, np.float64):
        record = rng.normal(size=1000)
        record = [(record / np.linalg.norm(record) * norm).astype(dtype)]
        (found,) = clip_l2(record, 1.0)
        assert np.linalg.norm(found.astype(float)) <= 1.0
        assert norm > 1 - 2e-6 or np.array_equal(found, record[0])
        assert np.linalg.norm(found.astype(float)) >= min(norm, 1) * (1 - 2e-6)


@pytest.mark.parametrize("given", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_records_are_clipped_in_the_dtype_in_which_they_are_added_up(
    given: str, dtype: str
) -> None:
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 0.0, Spec((1000,), dtype))
    for seed in range(20):
        record = (100 * np.random.default_rng(seed).normal(size=1000)).astype(given)
        found = query.preprocess_record(1.0, record)
        assert found.dtype == dtype
        assert 1 - 2e-6 < np.linalg.norm(found.astype("longdouble")) <= 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e308])
def test_records_that_are_not_finite_count_as_zero_and_nothing_says_so(wrong: float) -> None:
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 0.0, (2,))
    found = run(
        query, [np.array([0.1, 0.2]), np.array([wrong, 1e308])]
    )  # a warning would be an error
    np.testing.assert_array_equal(found[1], found[0])


def test_no_repr_tells_a_sum() -> None:
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1e9, 1.0, None)
    state = query.initial_global_state()
    sums = query.accumulate_record(1e9, query.initial_sample_state(), 7654321.25)
    _, state, event = query.get_noised_result(sums, state)
    assert "7654321" not in repr(state) + repr(event) + repr(query)
    restarted = RestartQuery(query, PeriodicRoundRestartIndicator(3)).initial_global_state()
    assert "7654321" not in repr(restarted)


@pytest.mark.parametrize("record", [np.zeros(3), {"a": np.zeros(2)}, "ab", [np.zeros(2)]])
def test_records_of_another_shape(record: object) -> None:
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 1.0, (2,))
    with pytest.raises(UsageError):
        query.preprocess_record(1.0, record)


def test_a_wrong_record_is_not_quoted() -> None:
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 1.0, (2,))
    assert not overheard(7654321.25, lambda: query.preprocess_record(1.0, np.full(3, 7654321.25)))
    assert not sightings(7654321.25, query)


WRONG = [
    lambda: TreeCumulativeSumQuery.build_l2_gaussian_query(1e-31, 1.0, None),
    lambda: TreeCumulativeSumQuery.build_l2_gaussian_query(0.0, 1.0, None),
    lambda: TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, -1.0, None),
    lambda: TreeResidualSumQuery.build_l2_gaussian_query(1.0, 1.0, None, noise_seed=3),
    lambda: PeriodicRoundRestartIndicator(0),
    lambda: PeriodicRoundRestartIndicator(2, 2),
    lambda: PeriodicRoundRestartIndicator(2, 0),
    lambda: PeriodicTimeRestartIndicator(0),
    lambda: compute_zcdp_tree_restart(1.0, []),
    lambda: compute_zcdp_tree_restart(1.0, [-1]),
    lambda: compute_zcdp_tree_restart(-1.0, 3),
    lambda: compute_rdp_tree_restart(1.0, 3, [1.0]),
    lambda: compute_zcdp_single_tree(1.0, 0, 1, 0),
    lambda: compute_zcdp_single_tree(1.0, 3, 1, -1),
    lambda: get_privacy_spent([2.0], [1.0], 0.0),
    lambda: get_privacy_spent([2.0], [1.0, 2.0], 0.1),
    lambda: build_tree_from_leaf([], 2),
    lambda: build_tree_from_leaf([1], 1),
    lambda: build_tree_from_leaf([[1]], 2),
    lambda: TreeRangeSumQuery(arity=2).noisy_tree([0.5], PureDP(1)),
    lambda: TreeRangeSumQuery(arity=True),
    lambda: TreeRangeSumQuery().noisy_tree([1, 2], PureDP(1)).sum(1, 3),
]


@pytest.mark.parametrize("call", WRONG)
def test_refusals(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError):
        call()
