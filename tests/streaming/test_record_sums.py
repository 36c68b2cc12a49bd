"""Sums of clipped records under the names of TensorFlow Privacy; trees of range sums on them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato import streaming
from sfumato.errors import UsageError
from sfumato.streaming import (
    GaussianSumQuery,
    PeriodicRoundRestartIndicator,
    RestartQuery,
    TreeCumulativeSumQuery,
    TreeRangeSumQuery,
    TreeResidualSumQuery,
    build_tree_from_leaf,
)
from support.canary import overheard


@pytest.mark.parametrize("arity", [2, 3, 4])
@pytest.mark.parametrize("cells", [1, 2, 4, 9, 10])
def test_a_tree_over_records_is_the_tree_over_their_sum(cells: int, arity: int) -> None:
    query = TreeRangeSumQuery.build_central_gaussian_query(1e6, 0.0, arity)
    state = query.initial_global_state()
    params = query.derive_sample_params(state)
    records = np.random.default_rng(1).integers(0, 5, (6, cells))
    sums = query.initial_sample_state(records[0])
    for record in records[:3]:
        sums = query.accumulate_record(params, sums, record)
    rest = query.initial_sample_state(records[0])
    for record in records[3:]:
        rest = query.accumulate_record(params, rest, record)
    tree, state, _ = query.get_noised_result(query.merge_sample_states(sums, rest), state)
    expected = build_tree_from_leaf(records.sum(axis=0), arity)
    assert [layer.tolist() for layer in tree] == [layer.tolist() for layer in expected]
    assert state.arity == arity
    assert isinstance(state, TreeRangeSumQuery.GlobalState)


def test_the_whole_tree_of_a_record_is_clipped_and_so_its_leaf_is_less_than_a_row() -> None:
    """As in the source: with clip 1 a row over 4 cells, three layers, counts as 1 / sqrt 3."""
    query = TreeRangeSumQuery(inner_query=GaussianSumQuery(1.0, 0.0), arity=2)
    params = query.derive_sample_params(query.initial_global_state())
    clipped = query.preprocess_record(params, [0, 1, 0, 0])
    assert np.linalg.norm(clipped) == pytest.approx(1, rel=1e-5)
    assert clipped.max() == pytest.approx(1 / math.sqrt(3), rel=1e-5)


def test_noise_has_the_standard_deviation_that_is_asked_for() -> None:
    query = GaussianSumQuery(1.0, 3.0)
    sums = query.initial_sample_state(np.zeros(100_000))
    with sf.testing.deterministic(seed=3):
        noisy, _, event = query.get_noised_result(sums, query.initial_global_state())
    # The relative error of a standard deviation of 10^5 draws is .0022; six of them are 1e-9.
    assert np.std(noisy) == pytest.approx(3, rel=0.0134)
    assert event.steps == 1
    again, _, _ = query.get_noised_result(sums, query.initial_global_state())
    assert not np.array_equal(again, noisy)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_records_that_are_not_finite_count_as_zero(wrong: float) -> None:
    query = GaussianSumQuery(1.0, 0.0)
    assert query.preprocess_record(1.0, [wrong, 1.0]).tolist() == [0.0, 0.0]


def test_no_refusal_quotes_a_record() -> None:
    query = TreeRangeSumQuery.build_central_gaussian_query(1.0, 1.0)
    assert not overheard(7654321.25, lambda: query.preprocess_record((2, 1.0), [[7654321.25]]))
    residuals = TreeResidualSumQuery.build_l2_gaussian_query(1.0, 1.0, None)
    assert not overheard(7654321.25, lambda: residuals.preprocess_record_l2_impl(1.0, 7654321.25))


# --- a clip of 0, and a clip that changes ---


def test_a_clip_of_zero_for_residuals_makes_records_zero() -> None:
    query = TreeResidualSumQuery.build_l2_gaussian_query(0.0, 1.0, (2,))
    state = query.initial_global_state()
    params = query.derive_sample_params(state)
    sums = query.accumulate_record(params, query.initial_sample_state(), np.array([3.0, 4.0]))
    result, _, _ = query.get_noised_result(sums, state)
    assert result.tolist() == [0.0, 0.0]


def test_another_clip_and_another_noise_start_a_new_tree() -> None:
    query = TreeResidualSumQuery.build_l2_gaussian_query(1.0, 5.0, (50_000,))
    state = query.initial_global_state()
    zeros = query.initial_sample_state()
    for _ in range(3):
        _, state, event = query.get_noised_result(zeros, state)
    assert event.steps == 3
    with sf.testing.deterministic(seed=5):
        state = query.reset_l2_clip_gaussian_noise(state, clip_norm=2.0, stddev=0.5)
    assert query.derive_sample_params(state) == 2.0
    first, state, event = query.get_noised_result(zeros, state)
    assert event.steps == 1
    # Six standard errors of a standard deviation of 50,000 draws.
    assert np.std(first) == pytest.approx(0.5, rel=0.019)
    again, _, _ = query.get_noised_result(
        zeros, query.reset_l2_clip_gaussian_noise(state, 1.0, 0.0)
    )
    assert not again.any()


def test_noise_from_a_function_cannot_be_given_another_deviation() -> None:
    query = TreeResidualSumQuery(None, lambda: 1.0, lambda record, clip: record, 1.0)
    with pytest.raises(UsageError, match="GaussianNoiseGenerator"):
        query.reset_l2_clip_gaussian_noise(query.initial_global_state(), 1.0, 1.0)


def test_the_generator_keeps_both_deviations_apart() -> None:
    generator = streaming.GaussianNoiseGenerator(1.0)
    state = generator.initialize()
    value, after = generator.next(state)
    wide, wide_after = generator.next(generator.make_state(state, 10.0))
    assert wide == pytest.approx(10 * value)
    assert generator.next(state)[0] == value
    assert wide_after.noise_std == 10.0
    assert after.noise_std is not wide_after.noise_std
    with pytest.raises(UsageError):
        generator.make_state(state, -1.0)
    with pytest.raises(UsageError):
        generator.make_state((), 1.0)


# --- every name of the source is here, or refused with a sentence ---

SOURCE = {
    "tree_aggregation": {
        "ValueGenerator": ("initialize", "next"),
        "GaussianNoiseGenerator": ("initialize", "next", "make_state"),
        "StatelessValueGenerator": ("initialize", "next"),
        "TreeState": ("level_buffer", "level_buffer_idx", "value_generator_state"),
        "get_step_idx": (),
        "TreeAggregator": ("init_state", "get_cumsum_and_update", "reset_state"),
        "EfficientTreeAggregator": ("init_state", "get_cumsum_and_update", "reset_state"),
        "build_tree_from_leaf": (),
    },
    "tree_aggregation_query": dict.fromkeys(
        ("TreeCumulativeSumQuery", "TreeResidualSumQuery"),
        (
            "GlobalState",
            "initial_global_state",
            "derive_sample_params",
            "initial_sample_state",
            "preprocess_record",
            "accumulate_record",
            "get_noised_result",
            "reset_state",
            "derive_metrics",
            "build_l2_gaussian_query",
        ),
    ),
    "tree_range_query": {
        "TreeRangeSumQuery": (
            "GlobalState",
            "initial_global_state",
            "derive_sample_params",
            "initial_sample_state",
            "preprocess_record",
            "accumulate_record",
            "get_noised_result",
            "derive_metrics",
            "build_central_gaussian_query",
            "build_distributed_discrete_gaussian_query",
        ),
    },
    "restart_query": {
        "RestartIndicator": ("initialize", "next"),
        "PeriodicRoundRestartIndicator": ("initialize", "next"),
        "PeriodicTimeRestartIndicator": ("initialize", "next"),
        "RestartQuery": (
            "initial_global_state",
            "derive_sample_params",
            "initial_sample_state",
            "preprocess_record",
            "get_noised_result",
            "derive_metrics",
        ),
    },
    "gaussian_query": {"GaussianSumQuery": ("initial_global_state", "get_noised_result")},
    "tree_aggregation_accountant": {
        "compute_rdp_tree_restart": (),
        "compute_rdp_single_tree": (),
        "compute_zcdp_single_tree": (),
    },
    "rdp_accountant": {"get_privacy_spent": ()},
}
REFUSED = (
    "QAdaClipTreeResSumQuery",
    "CentralTreeSumQuery",
    "DistributedTreeSumQuery",
    "DistributedDiscreteGaussianSumQuery",
    "DistributedSkellamSumQuery",
    "build_tree",
)


@pytest.mark.parametrize(
    ("name", "members"), [each for names in SOURCE.values() for each in names.items()]
)
def test_every_name_of_the_source_is_here(name: str, members: tuple[str, ...]) -> None:
    found = getattr(streaming, name)
    assert name in streaming.__all__
    for member in members:
        assert hasattr(found, member)


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_is_not_here_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match=f"sfumato.streaming.{name}: "):
        getattr(streaming, name)


def test_other_names_are_simply_not_there() -> None:
    assert not hasattr(streaming, "no_such_name")


CUMULATIVE = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 1.0, None)
ROUNDS = PeriodicRoundRestartIndicator(period=3)
WRONG = {
    "indicator is a number": lambda: RestartQuery(CUMULATIVE, 3),
    "indicator is a class": lambda: RestartQuery(CUMULATIVE, PeriodicRoundRestartIndicator),
    "indicator is a query": lambda: RestartQuery(CUMULATIVE, CUMULATIVE),
    "query cannot be reset": lambda: RestartQuery(GaussianSumQuery(1.0, 1.0), ROUNDS),
    "two names": lambda: PeriodicRoundRestartIndicator(3, frequency=3),
    "no number": PeriodicRoundRestartIndicator,
    "period of 0": lambda: PeriodicRoundRestartIndicator(period=0),
    "inner query as arity": lambda: TreeRangeSumQuery(GaussianSumQuery(1.0, 1.0), 2),
    "wrong inner query": lambda: TreeRangeSumQuery(inner_query="gaussian"),
    "no inner query": lambda: TreeRangeSumQuery().initial_global_state(),
    "distributed": lambda: TreeRangeSumQuery.build_distributed_discrete_gaussian_query(1.0, 1.0),
    "clip of 0": lambda: TreeRangeSumQuery.build_central_gaussian_query(0.0, 1.0),
    "negative noise": lambda: TreeRangeSumQuery.build_central_gaussian_query(1.0, -1.0),
    "arity of 1": lambda: TreeRangeSumQuery.build_central_gaussian_query(1.0, 1.0, 1),
    "foreign state": lambda: GaussianSumQuery(1.0, 1.0).derive_sample_params(1.0),
    "foreign tree": lambda: TreeRangeSumQuery().derive_sample_params(1.0),
    "clip as text": lambda: GaussianSumQuery(1.0, 1.0).preprocess_record("1", [1.0]),
    "norms": lambda: TreeResidualSumQuery.build_l2_gaussian_query(
        1.0, 1.0, None
    ).preprocess_record_l2_impl(1.0, 1.0),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals_have_three_parts(case: str) -> None:
    with pytest.raises(UsageError) as refused:
        WRONG[case]()
    error = refused.value
    assert error.asked
    assert error.obstacle
    assert error.remedy


def test_both_names_of_the_period() -> None:
    for indicator in (
        PeriodicRoundRestartIndicator(4),
        PeriodicRoundRestartIndicator(period=4),
        PeriodicRoundRestartIndicator(frequency=4),
    ):
        assert indicator.period == indicator.frequency == 4
