"""PipelineDP's means."""

from __future__ import annotations

import numpy as np
import pipeline_dp
from pipeline_dp import combiners


def means(
    path: str, lower: float, upper: float, epsilon: float, runs: int
) -> list[list[list[float]]]:
    """Means by group, of several runs.

    Its engine adds up the rows of each group in Python, which takes minutes. So they are added up
    once, and its own combiner draws the noise for each run.
    """
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
    params = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.MEAN],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=lower,
        max_value=upper,
    )
    combiner = combiners.create_compound_combiner(params, accountant)
    accountant.compute_budgets()
    table = np.load(path)
    sums = [
        combiner.create_accumulator(table["values"][table["groups"] == group])
        for group in np.unique(table["groups"])
    ]
    found = [[combiner.compute_metrics(each).mean for each in sums] for _ in range(runs)]
    return [found]
