"""Weighted k-means on released points: post-processing, which costs nothing and sees nothing that was not paid for.

k-means++ (Arthur and Vassilvitskii, SODA 2007) with a few candidates per centre, Lloyd's steps, the best of several starts. The random
choices come from a fixed public seed: the same released numbers give the same centres.
"""

from __future__ import annotations

import numpy as np

STARTS, STEPS, TOLERANCE = 10, 100, 1e-6
SAMPLE = 5_000  # starts are tried on so many points, or fifty for each centre; the best one goes on with all


def weighted_kmeans(points: np.ndarray, weights: np.ndarray, spare: np.ndarray) -> np.ndarray:
    """Centres that lie near the points, each by its weight.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
    weights : float64 ndarray of shape (n,)
        Points whose weight is not positive are left out.
    spare : float64 ndarray of shape (k, d)
        Public points; the last ones of them stand in where fewer than k distinct points have weight.

    Returns
    -------
    float64 ndarray of shape (k, d), sorted by falling weight of their groups.
    """
    k = len(spare)
    held = weights > 0
    points, weights = points[held], weights[held]
    sample = max(SAMPLE, 50 * k)
    few = points if len(points) > sample else np.unique(points, axis=0)
    if len(few) <= k:
        return _by_weight(np.concatenate([few, spare[len(few) :]]), points, weights)
    rng = np.random.default_rng(0)
    some, by = points, weights
    if len(points) > sample:
        drawn = rng.choice(len(points), sample, p=weights / weights.sum())
        some, by = points[drawn], np.ones(sample)
    tried = [_lloyd(some, by, _plus_plus(some, by, k, rng)) for _ in range(STARTS)]
    centres = min(tried, key=lambda found: found[0])[1]
    return _by_weight(centres if some is points else _lloyd(points, weights, centres)[1], points, weights)


def squared_distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Squared distances of points to centres: float64 ndarray of shape (n, k)."""
    found = (points**2).sum(axis=1)[:, None] - 2 * (points @ centres.T) + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(found, 0))


def non_negative(counts: np.ndarray) -> np.ndarray:
    """The non-negative numbers of the same sum that lie nearest to noisy counts: all less one number, cut at 0.

    Cutting at 0 alone would turn the noise of empty cells into rows that are nowhere.

    >>> non_negative(np.array([7, 2, -1])).tolist()
    [6.5, 1.5, 0.0]
    """
    total = float(counts.sum())
    if total <= 0:
        return np.asarray(np.maximum(counts, 0), dtype=float)
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - excess[np.flatnonzero(falling > excess)[-1]], 0))


def _by_weight(centres: np.ndarray, points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    if not len(points):
        return centres
    groups = squared_distances(points, centres).argmin(axis=1)
    order = np.argsort(-np.bincount(groups, weights, len(centres)), kind="stable")
    return np.asarray(centres[order])


def _plus_plus(points: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Centres far apart: each the best of a few candidates drawn by weight times squared distance."""
    candidates = 2 + int(np.log(k))
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    least = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < k:
        pull = weights * least
        if pull.sum() <= 0:
            pull = weights
        drawn = rng.choice(len(points), candidates, p=pull / pull.sum())
        nearer = np.minimum(least[:, None], squared_distances(points, points[drawn]))
        best = int((weights @ nearer).argmin())
        chosen.append(int(drawn[best]))
        least = nearer[:, best]
    return np.asarray(points[chosen])


def _lloyd(points: np.ndarray, weights: np.ndarray, centres: np.ndarray) -> tuple[float, np.ndarray]:
    """Lloyd's steps until the loss stands still; a centre without weight stays where it is."""
    centres, k, before = centres.copy(), len(centres), np.inf
    for _ in range(STEPS):
        distances = squared_distances(points, centres)
        groups = distances.argmin(axis=1)
        loss = float(weights @ distances[np.arange(len(points)), groups])
        if before - loss <= TOLERANCE * loss:
            break
        before = loss
        held = np.bincount(groups, weights, k)
        for axis in range(points.shape[1]):
            sums = np.bincount(groups, weights * points[:, axis], k)
            centres[held > 0, axis] = sums[held > 0] / held[held > 0]
    return loss, centres
