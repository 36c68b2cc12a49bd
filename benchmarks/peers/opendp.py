"""OpenDP's exact integer noise, its means of Polars frames, and its quantiles."""

from __future__ import annotations

import importlib
import math
import warnings
from functools import partial

import numpy as np
import opendp.prelude as dp

from benchmarks.measuring import medians


def samples(law: str, scale: float, size: int) -> list[int]:
    """Samples of the noise alone: zeros with noise."""
    return list(_measure(law, scale)([0] * size))


def noise(law: str, scale: float, size: int, runs: int) -> tuple[float, float]:
    """Median wall and processor seconds of ``size`` samples."""
    measure = _measure(law, scale)
    zeros = [0] * size
    return medians(lambda: measure(zeros), runs)


def _measure(law: str, scale: float) -> dp.Measurement:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)


def means(
    path: str, lower: float, upper: float, epsilon: float, runs: int
) -> list[list[list[float | None]]]:
    """Means by group, of several runs; None where the noisy count is 0."""
    # OpenDP adds ``dp`` to Polars' expressions, which their types do not have.
    pl = importlib.import_module("polars")
    dp.enable_features("contrib")
    table = np.load(path)
    groups = np.unique(table["groups"]).tolist()
    frame = pl.DataFrame({"group": table["groups"], "value": table["values"]})
    margins = [
        dp.polars.Margin(max_length=len(frame)),
        dp.polars.Margin(by=["group"], max_length=len(frame), max_groups=len(groups)),
    ]
    keys = pl.DataFrame({"group": groups})
    middle = (lower + upper) / 2
    value = pl.col("value").fill_nan(middle).fill_null(middle)
    found = []
    for _ in range(runs):
        # A context for each run: one of many queries takes ever longer for each of them.
        context = dp.Context.compositor(
            data=frame.lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=epsilon),
            split_evenly_over=1,
            margins=margins,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            query = context.query().group_by("group")
            released = query.agg(value.dp.mean((lower, upper))).with_keys(keys).release().collect()
        means_by_group = dict(released.iter_rows())
        found.append([_finite(means_by_group[group]) for group in groups])
    return [found]


def _finite(mean: float | None) -> float | None:
    return mean if mean is not None and math.isfinite(mean) else None


CANDIDATES = 2**10


def quantiles(
    path: str, at: list[float], lower: float, upper: float, epsilon: float, runs: int
) -> list[list[list[float]]]:
    """Quantiles of each sample, of several runs; they share epsilon evenly.

    Among many candidates, evenly spread: a score for each is computed at every run.
    """
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    candidates = np.linspace(lower, upper, CANDIDATES).tolist()

    def chosen(share: float, scale: float) -> dp.Measurement:
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates, share, scale)

    selections = []
    for share in at:
        scale = dp.binary_search_param(partial(chosen, share), 1, epsilon / len(at), T=float)
        selections.append(chosen(share, scale))
    return [
        [[select(sample.tolist()) for select in selections] for _ in range(runs)]
        for sample in np.load(path)
    ]
