"""IBM's diffprivlib: k-means after DPLloyd, means, and quantiles."""

from __future__ import annotations

import time
import warnings

import numpy as np


def clusters(path: str, k: int, epsilon: float, runs: int) -> dict[str, object]:
    """Centres of several runs on points in [-1, 1]^d, and the processor seconds of one run."""
    from diffprivlib.models import KMeans

    points = np.load(path)
    d = points.shape[1]
    found = []
    start = time.process_time()
    for _ in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KMeans(n_clusters=k, epsilon=epsilon, bounds=(-np.ones(d), np.ones(d)))
            model.fit(points)
        found.append(model.cluster_centers_.tolist())
    return {"centres": found, "seconds": (time.process_time() - start) / runs}


def means(
    path: str, lower: float, upper: float, epsilon: float, runs: int
) -> list[list[list[float | None]]]:
    """Means by group, of several runs: as a sum over a count, and with public group sizes.

    The sum and the count have half of epsilon each. ``tools.mean`` takes the number of values as
    public and exact.
    """
    from diffprivlib import tools

    table = np.load(path)
    bounds = (lower, upper)
    over_count: list[list[float | None]] = [[] for _ in range(runs)]
    with_public_sizes: list[list[float | None]] = [[] for _ in range(runs)]
    for group in np.unique(table["groups"]):
        values = table["values"][table["groups"] == group]
        for run in range(runs):
            total = tools.sum(values, epsilon=epsilon / 2, bounds=bounds)
            rows = tools.count_nonzero(np.ones(len(values)), epsilon=epsilon / 2)
            over_count[run].append(float(total / rows) if rows > 0 else None)
            mean = tools.mean(values, epsilon=epsilon, bounds=bounds)
            with_public_sizes[run].append(float(mean))
    return [over_count, with_public_sizes]


def quantiles(
    path: str, at: list[float], lower: float, upper: float, epsilon: float, runs: int
) -> list[list[list[float]]]:
    """Quantiles of each sample, of several runs; they share epsilon evenly."""
    from diffprivlib import tools

    return [
        [
            np.atleast_1d(
                tools.quantile(sample, at, epsilon=epsilon, bounds=(lower, upper))
            ).tolist()
            for _ in range(runs)
        ]
        for sample in np.load(path)
    ]
