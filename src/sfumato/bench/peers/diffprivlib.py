"""IBM's diffprivlib: k-means after DPLloyd."""

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
