"""TensorFlow Privacy's tree aggregation: the page's own example, and the module's classes.

Run it with ``python examples/ports/tf_privacy.py``. Each line shows what the source says, what is
here, and whether they are the same or why ours differs.
"""

from __future__ import annotations

import math

import numpy as np
from beside import beside, holds

from sfumato.errors import UsageError
from sfumato.streaming import (
    EfficientTreeAggregator,
    GaussianNoiseGenerator,
    PeriodicRoundRestartIndicator,
    RestartQuery,
    StatelessValueGenerator,
    TreeAggregator,
    TreeCumulativeSumQuery,
    TreeRangeSumQuery,
    TreeResidualSumQuery,
    build_tree_from_leaf,
    compute_rdp_single_tree,
    compute_rdp_tree_restart,
    get_privacy_spent,
    get_step_idx,
)


def example() -> None:
    """The usage example of the page, but for a parenthesis too many in its assert."""
    total_steps = 16
    random_generator = GaussianNoiseGenerator(noise_std=1.0)
    tree_aggregator = EfficientTreeAggregator(random_generator)
    state = tree_aggregator.init_state()
    for leaf_node_idx in range(total_steps):
        assert leaf_node_idx == get_step_idx(state)
        assert leaf_node_idx == get_step_idx(state.level_buffer_idx)
        noise, state = tree_aggregator.get_cumsum_and_update(state)
    holds("the usage example runs", isinstance(noise, float))
    holds(
        "get_step_idx takes the state, and its level_buffer_idx, as the page says",
        get_step_idx(state) == total_steps,
    )
    state = tree_aggregator.reset_state(state)
    beside("reset_state: the index of a new tree", 0, get_step_idx(state))
    beside("init_state: the level of the single leaf", [0], list(state.level_buffer_idx))
    without_arguments = EfficientTreeAggregator(lambda: 1.0)
    holds(
        "value_generator may be a function without arguments",
        isinstance(without_arguments.value_generator, StatelessValueGenerator),
    )


def deviations() -> None:
    """The deviation of a node at depth d: "roughly sigma * sqrt(2^{d-1}/(2^d-1))"."""
    aggregator = EfficientTreeAggregator(lambda: 0.0)
    for depth in (1, 2, 5, 10):
        steps = 2 ** (depth - 1)
        beside(
            f"standard deviation of a node at depth {depth}",
            math.sqrt(2 ** (depth - 1) / (2**depth - 1)),
            float(np.sqrt(aggregator.variances(steps)[-1])),
        )
    beside(
        '"sigma / sqrt(2) when the tree is very tall"',
        1 / math.sqrt(2),
        float(np.sqrt(aggregator.variances(2**16)[-1])),
        rel=1e-4,
    )
    plain = TreeAggregator(lambda: 1.0)
    state = plain.init_state()
    found = []
    for _ in range(8):
        noise, state = plain.get_cumsum_and_update(state)
        found.append(int(noise))
    beside("nodes of the plain tree at steps 1 to 8", [1, 1, 2, 1, 2, 2, 3, 1], found)


def queries() -> None:
    """Cumulative and residual sums, restarts, and range sums."""
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(
        clip_norm=1.0, noise_multiplier=0.0, record_specs=(2,)
    )
    restarted = RestartQuery(query, PeriodicRoundRestartIndicator(period=2))
    state = restarted.initial_global_state()
    params = restarted.derive_sample_params(state)
    totals = []
    for _ in range(4):
        sample_state = restarted.initial_sample_state(np.zeros(2))
        sample_state = restarted.accumulate_record(params, sample_state, np.array([0.0, 2.0]))
        noised_cumsum, state, _ = restarted.get_noised_result(sample_state, state)
        totals.append(round(float(noised_cumsum[1]), 3))
    beside("running totals of records of norm 2, clipped to 1", [1.0, 2.0, 3.0, 4.0], totals)
    residuals = TreeResidualSumQuery.build_l2_gaussian_query(0.0, 1.0, (2,))
    inner = residuals.initial_global_state()
    sums = residuals.accumulate_record(0.0, residuals.initial_sample_state(), np.array([3.0, 4.0]))
    found, inner, _ = residuals.get_noised_result(sums, inner)
    beside("a residual with a clip of 0", [0.0, 0.0], found.tolist())
    inner = residuals.reset_l2_clip_gaussian_noise(inner, clip_norm=2.0, stddev=1.0)
    beside(
        "leaf of the tree after reset_l2_clip_gaussian_noise",
        1,
        get_step_idx(inner.tree_state),
        "a new tree begins, since a node must not hold records under two clips",
    )
    tree = build_tree_from_leaf([1, 2, 3, 4], arity=2)
    beside("build_tree_from_leaf", [[10], [3, 7], [1, 2, 3, 4]], [row.tolist() for row in tree])
    ranges = TreeRangeSumQuery.build_central_gaussian_query(l2_norm_clip=10.0, stddev=0.0, arity=2)
    of_ranges = ranges.initial_global_state()
    record = ranges.preprocess_record(ranges.derive_sample_params(of_ranges), [1, 0, 0, 2])
    noisy, _, _ = ranges.get_noised_result(record, of_ranges)
    beside(
        "TreeRangeSumQuery, without noise",
        [[3.0], [1.0, 2.0], [1.0, 0.0, 0.0, 2.0]],
        [row.tolist() for row in noisy],
    )


def accounting() -> None:
    """The accountant, and what is refused."""
    orders = [1 + x / 10.0 for x in range(1, 100)] + list(range(12, 64))
    rdp = compute_rdp_tree_restart(1.13, [1600], orders)
    epsilon = get_privacy_spent(orders, rdp, 1e-6)[0]
    # dp_accounting's conversion of the source's divergences, orders as in its docstring.
    beside(
        "epsilon of 1,600 steps at noise multiplier 1.13, delta 1e-6", 18.7096, round(epsilon, 4)
    )
    single = compute_rdp_single_tree(1.0, 8, 1, 0, 2.0)
    beside("one participation in a tree of 8 leaves, order 2", 4.0, single)
    query = TreeCumulativeSumQuery.build_l2_gaussian_query(1.0, 1.0, (2,))
    for what, call in {
        "a seed": lambda: GaussianNoiseGenerator(1.0, seed=1),
        "devices' noise": lambda: TreeRangeSumQuery.build_distributed_discrete_gaussian_query(1, 1),
        "a restart indicator that is a number": lambda: RestartQuery(query, 3),
    }.items():
        try:
            call()
        except UsageError as refused:
            print(f"{what} | accepted | refused | {refused.obstacle}")


if __name__ == "__main__":
    example()
    deviations()
    queries()
    accounting()
