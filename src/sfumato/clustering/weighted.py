"""Weighted k-means on noisy counts: post-processing, which costs nothing.

The random choices come from a fixed public seed, so the same released numbers give the same
centres.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array
from sfumato.plain_kmeans import assign, kmeans

STARTS = 10
STEPS = 100
TOLERANCE = 1e-6
FEW_STARTS = 3
"""Starts of a grouping that only helps to look for rows."""
SAMPLE = 5_000
"""Starts are tried on so many points, or fifty for each centre; the best one goes on with all."""


def weighted_kmeans(points: Array, weights: Array, spare: Array) -> Array:
    """Centres that lie near the points, each by its weight.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d)
    weights : float64 ndarray of shape (n,)
        Points whose weight is not positive are left out.
    spare : float64 ndarray of shape (k, d)
        Public points. The last of them are used where fewer than k distinct points have weight.

    Returns
    -------
    float64 ndarray of shape (k, d), sorted by falling weight of their groups.
    """
    k = len(spare)
    has_weight = weights > 0
    points = points[has_weight]
    weights = weights[has_weight]
    distinct = points if len(points) > _sample_size(k) else np.unique(points, axis=0)
    if len(distinct) <= k:
        centres = np.concatenate([distinct, spare[len(distinct) :]])
        return _by_weight(centres, points, weights)
    return _by_weight(_search(points, weights, k, STARTS), points, weights)


def grouping(points: Array, weights: Array, k: int) -> Array:
    """Centres of k groups of points, found with few starts: float64 ndarray of shape (k, d).

    ``points`` and ``weights`` are those of ``weighted_kmeans``; at least one weight is positive.
    """
    has_weight = weights > 0
    return _search(points[has_weight], weights[has_weight], k, FEW_STARTS)


def _search(points: Array, weights: Array, k: int, tries: int) -> Array:
    """k-means from several starts. They are tried on a sample where there are many points."""
    sample = _sample_size(k)
    if len(points) <= sample:
        return kmeans(points, k, weights=weights, tries=tries, steps=STEPS, tolerance=TOLERANCE)
    drawn = np.random.default_rng(0).choice(len(points), sample, p=weights / weights.sum())
    start = kmeans(points[drawn], k, tries=tries, steps=STEPS, tolerance=TOLERANCE)
    return kmeans(points, start, weights=weights, steps=STEPS, tolerance=TOLERANCE)


def _sample_size(k: int) -> int:
    return max(SAMPLE, 50 * k)


def non_negative(counts: Array) -> Array:
    """The non-negative numbers nearest to noisy counts that have the same sum.

    One number is subtracted from all counts, and the result is cut at 0. Cutting at 0 alone would
    turn the noise of empty cells into rows that do not exist.

    >>> non_negative(np.array([7, 2, -1])).tolist()
    [6.5, 1.5, 0.0]
    """
    total = float(counts.sum())
    if total <= 0:
        return np.asarray(np.maximum(counts, 0), dtype=float)
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    # The counts that stay positive are the largest ones that exceed their own mean excess.
    last_kept = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(counts - excess[last_kept], 0))


def _by_weight(centres: Array, points: Array, weights: Array) -> Array:
    """The centres, sorted by falling weight of their groups."""
    if not len(points):
        return centres
    group_weights = np.bincount(assign(points, centres), weights, len(centres))
    return np.asarray(centres[np.argsort(-group_weights, kind="stable")])
