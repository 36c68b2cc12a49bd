"""Three clusters of people, their reports, and what k-means without trust finds in them."""

from __future__ import annotations

import numpy as np

import sfumato as sf
from sfumato.basics.kmeans import assign, kmeans
from sfumato.local.normal_clusters import Clusters, NormalClusters
from sfumato.random import PublicSeed, override

TRUE_CENTERS = {
    2: np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]]),
    4: np.array([[0.2, 0.2, 0.3, 0.3], [0.8, 0.3, 0.7, 0.2], [0.4, 0.8, 0.2, 0.8]]),
}


TRUE_SHARES = np.array([0.5, 0.3, 0.2])


def people(n: int, d: int, spread: float, seed: int, shape: str = "normal") -> np.ndarray:
    """Points of three clusters of unequal weight: normal ones, or long-tailed to one side."""
    rng = np.random.default_rng([seed, n, d])
    which = rng.choice(3, n, p=TRUE_SHARES)
    away = rng.normal(size=(n, d)) if shape == "normal" else rng.exponential(size=(n, d)) - 1
    return np.clip(TRUE_CENTERS[d][which] + away * spread, 0, 1)


def reported(mechanism: sf.BPM, points: np.ndarray, seed: int) -> np.ndarray:
    with override(PublicSeed(f"intervals {seed} {points.shape}")):
        return mechanism.perturb(points)


def law(d: int, spread: float, certainty: float) -> NormalClusters:
    """The three clusters, known that well."""
    made = Clusters(TRUE_SHARES, TRUE_CENTERS[d], np.full(3, spread**2))
    return NormalClusters(made.vector(), certainty * np.eye(6 + 3 * d), 3)


def rehearsed(points: np.ndarray, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Which intervals hold k-means on the true points, their half-widths, and whether the model
    seemed right.
    """
    found = sf.PrivateKMeans(n_clusters=3, epsilon=epsilon, random_state=seed)
    found.fit_reports(reported(sf.BPM(epsilon, "auto", points.shape[1]), points, seed))
    low, high = found.intervals()
    true = kmeans(points, TRUE_CENTERS[points.shape[1]], steps=50)
    order = assign(true, found.cluster_centers_)
    return (
        (low[order] <= true) & (true <= high[order]),
        (high - low)[order] / 2,
        bool(found.in_model_),
    )
