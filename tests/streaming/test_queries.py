"""Sums over time: clipping, cumulative and residual, restarts, ranges, and the accountant."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import Published
from sfumato.errors import UsageError
from sfumato.privacy.composition import zcdp_to_approx
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
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
    compute_rdp_single_tree,
    compute_rdp_tree_restart,
    compute_zcdp_single_tree,
    compute_zcdp_tree_restart,
    get_privacy_spent,
    squared_tree_sensitivity,
)
from support.canary import overheard, sightings

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))


def kept(record, clip):  # type: ignore[no-untyped-def]
    return record


def run(query, values, records=1):  # type: ignore[no-untyped-def]
    state, found = query.initial_global_state(), []
    params = query.derive_sample_params(state)
    for value in values:
        sums = query.initial_sample_state(value)
        for _ in range(records):
            sums = query.accumulate_record(params, sums, value)
        result, state, _ = query.get_noised_result(sums, state)
        found.append(result)
    return found


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


def test_residuals_add_up_to_totals() -> None:
    rng = np.random.default_rng(1)
    values, drawn = rng.normal(size=(20, 2)), rng.normal(size=(60, 2))
    ones, others = iter(drawn), iter(drawn)
    totals = run(TreeCumulativeSumQuery((2,), lambda: next(ones), kept, 9.0), values, records=3)
    parts = run(TreeResidualSumQuery((2,), lambda: next(others), kept, 9.0), values, records=3)
    np.testing.assert_allclose(np.cumsum(parts, axis=0), totals, atol=1e-12)


def test_parts_of_a_step_are_merged_before_a_restart_too() -> None:
    query = RestartQuery(
        TreeCumulativeSumQuery(None, lambda: 0.0, kept, 9.0), PeriodicRoundRestartIndicator(2)
    )
    state, whole = query.initial_global_state(), query.initial_sample_state()
    parts = [
        query.accumulate_preprocessed_record(whole, query.preprocess_record(9.0, value))
        for value in (1.0, 2.0)
    ]
    assert query.get_noised_result(query.merge_sample_states(*parts), state)[0] == 3.0


def test_any_aggregator_serves() -> None:
    spec = {"w": (3,), "b": None}
    for kind in (CumulativeSumQuery, ResidualSumQuery):
        query = kind(BLTAggregator(GaussianNoiseGenerator(0.0, spec), 20), spec, clip_l2, 10.0)
        found = run(query, [{"w": np.full(3, 1.0), "b": 2.0}] * 20)
        assert found[-1]["b"] == pytest.approx(40.0 if kind is CumulativeSumQuery else 2.0)
        with pytest.raises(UsageError):
            query.reset_state(found[-1], query.initial_global_state(), complete=True)


def test_completion_before_a_restart() -> None:
    """After three steps of ones: the tree's root stands for them, and its noise stays in every later total."""
    nodes = iter([1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6, 1e7])
    query = TreeCumulativeSumQuery(None, lambda: next(nodes), kept, 9.0, use_efficient=False)
    found = run(RestartQuery(query, PeriodicRoundRestartIndicator(3), complete=True), [0.0] * 5)
    assert found == [1.0, 10.0, 110.0, 1e4 + 1e5, 1e4 + 1e6]


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


def test_indicators() -> None:
    for frequency, warmup in ((2, 1), (4, 3), (5, 2), (3, None)):
        indicator = PeriodicRoundRestartIndicator(frequency, warmup)
        state, flags = indicator.initialize(), []
        for _ in range(20):
            flag, state = indicator.next(state)
            flags.append(flag)
        assert flags == [i % frequency == (warmup or frequency) - 1 for i in range(20)]
    moments = iter([0, 3600, 86400, 93600, 170640, 171036])
    clock = PeriodicTimeRestartIndicator(3600 * 23.5, clock=lambda: next(moments))
    state, flags = clock.initialize(), []
    for _ in range(5):
        flag, state = clock.next(state)
        flags.append(flag)
    assert flags == [False, True, False, False, True]


def test_the_accountant_of_the_page() -> None:
    """Noise 1.13, 1,600 steps, one participation, delta 1e-6: 18.7096 over the source's orders, and no more over all orders."""
    epsilon, order = get_privacy_spent(ORDERS, compute_rdp_tree_restart(1.13, [1600], ORDERS), 1e-6)
    assert epsilon == pytest.approx(18.7096, abs=5e-5)
    rho = compute_zcdp_tree_restart(1.13, 1600)
    assert float(zcdp_to_approx(Fraction(rho), Fraction(1, 10**6)).epsilon) <= epsilon
    assert compute_rdp_tree_restart(1.13, 1600, order) == pytest.approx(order * rho)


def test_accounts_of_trees() -> None:
    assert compute_zcdp_tree_restart(1.0, [4, 4, 0]) == 3.0
    assert compute_zcdp_tree_restart(1.0, [5], completed=True) == 2.0
    assert compute_zcdp_tree_restart(0.0, [5]) == math.inf
    for steps, many, between in product((1, 7, 16), (1, 2, 3), (0, 1, 4)):
        square = squared_tree_sensitivity(steps, participations=many, separation=between + 1)
        assert compute_zcdp_single_tree(2.0, steps, many, between) == square / 8
        found = compute_rdp_single_tree(2.0, steps, many, between, ORDERS)
        np.testing.assert_allclose(found, np.array(ORDERS) * square / 8)


@pytest.mark.parametrize(("size", "arity"), [(1, 2), (2, 2), (7, 2), (16, 4), (17, 4), (10, 3)])
def test_ranges_are_covered_by_few_nodes_and_exactly(size: int, arity: int) -> None:
    counts = np.arange(1, size + 1) ** 2
    noisy = TreeRangeSumQuery(arity).noisy_tree(counts, ZCDP(10**6))  # next to no noise
    for start in range(size + 1):
        for stop in range(start, size + 1):
            nodes = noisy.cover(start, stop)
            held = [
                i
                for layer, index in nodes
                for i in range(
                    *(arity ** (len(noisy.layers) - 1 - layer) * x for x in (index, index + 1))
                )
            ]
            assert sorted(held) == list(range(start, stop))
            assert len(nodes) <= 2 * (arity - 1) * len(noisy.layers)
            assert noisy.sum(start, stop).value == counts[start:stop].sum()


def test_ranges_of_nodes_hold_with_their_confidence() -> None:
    query, counts = TreeRangeSumQuery(4, Unit(rows_per_person=2)), np.arange(64)
    held = 0
    for _ in range(400):
        estimate = query.noisy_tree(counts, PureDP("0.5")).sum(3, 50)
        held += estimate.low <= counts[3:50].sum() <= estimate.high
    assert (
        held >= 370
    )  # 380 of 400 are promised; 370 has a chance of 1e-2 at the least to be missed only where that fails


@pytest.mark.parametrize(
    "unit", [Unit(), Unit(rows_per_person=2), Unit(neighbours="replace")], ids=str
)
def test_range_trees_spend_what_they_claim(unit: Unit) -> None:
    """Exact likelihood ratios of the whole noisy tree, over all small neighbours."""
    cost, query = PureDP("1"), TreeRangeSumQuery(2, unit)

    def mechanism(rows, noise):  # type: ignore[no-untyped-def]
        cells = np.bincount(np.array([int(row[0]) for row in rows], dtype=int), minlength=4)
        numbers = np.concatenate(query.noisy_tree(cells, cost, noise).layers)
        return Published(tuple(numbers.tolist()), numbers.tolist())

    from sfumato.audit.runs import neighbours

    universe = ((0.0,), (1.0,), (3.0,))
    assert (
        pure_loss(mechanism, neighbours(universe, unit, others=1)).loss
        == pytest.approx(1.0, abs=1e-9)
        or unit.neighbours == "replace"
    )
    assert pure_loss(mechanism, neighbours(universe, unit, others=1)).loss <= 1 + 1e-9
