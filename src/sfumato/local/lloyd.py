"""Weighted k-means on reports or on what was decoded from them: post-processing only."""

from __future__ import annotations

import numpy as np

from sfumato.local.floats import Floats

_BLOCK = 2**16


def squared_distances(points: Floats, centers: Floats) -> Floats:
    """Squared distances, float64 of shape (n, k)."""
    found = (points**2).sum(axis=1)[:, None] - 2 * (points @ centers.T) + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(found, 0, out=found))


def assign(points: Floats, centers: Floats) -> np.ndarray:
    """Index of the nearest centre, int64 of shape (n,)."""
    # The length of a point is the same for all centres.
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        part = points[start : start + _BLOCK]
        found[start : start + _BLOCK] = ((centers**2).sum(axis=1) - 2 * (part @ centers.T)).argmin(axis=1)
    return found


def sse(points: Floats, centers: Floats) -> float:
    """Sum of squared distances to the nearest centre."""
    nearest = assign(points, centers)
    return float(((points - centers[nearest]) ** 2).sum())


def plus_plus(points: Floats, weights: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Starting centres, far apart (Arthur and Vassilvitskii 2007): float64 of shape (k, d)."""
    chosen = [points[rng.choice(len(points), p=weights / weights.sum())]]
    least = ((points - chosen[0]) ** 2).sum(axis=1)
    for _ in range(1, k):
        mass = least * weights
        total = mass.sum()
        at = rng.choice(len(points), p=mass / total) if total > 0 else rng.integers(len(points))
        chosen.append(points[at])
        np.minimum(least, ((points - points[at]) ** 2).sum(axis=1), out=least)
    return np.array(chosen)


def lloyd(points: Floats, weights: Floats, centers: Floats, max_iter: int, tolerance: float = 1e-7) -> Floats:
    """Move each centre to the mean of the points that it is nearest to, until they rest; an empty centre stays."""
    for _ in range(max_iter):
        nearest = assign(points, centers)
        held = np.bincount(nearest, weights, len(centers))
        sums = np.stack([np.bincount(nearest, weights * axis, len(centers)) for axis in points.T], axis=1)
        moved = np.where(held[:, None] > 0, sums / np.maximum(held, 1e-300)[:, None], centers)
        step = float(np.abs(moved - centers).max())
        centers = moved
        if step <= tolerance:
            break
    return centers


def kmeans(points: Floats, weights: Floats, k: int, rng: np.random.Generator, *, max_iter: int = 300, starts: int = 4) -> Floats:
    """The best of several runs: float64 of shape (k, d)."""
    best, least = None, np.inf
    for _ in range(starts):
        centers = lloyd(points, weights, plus_plus(points, weights, k, rng), max_iter, 1e-5)
        nearest = assign(points, centers)
        error = float((weights * ((points - centers[nearest]) ** 2).sum(axis=1)).sum())
        if error < least or best is None:
            best, least = centers, error
    assert best is not None
    return best
