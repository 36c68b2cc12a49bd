"""k-means without privacy, for numbers that may be seen: noisy counts, reports, synthetic points.

It is post-processing, which costs nothing. ``kmeans`` has scikit-learn do the work, on one thread:
the same numbers and the same seed give the same centres. ``weighted_kmeans`` works on noisy counts:
its random choices come from a fixed public seed, so the same released numbers give the same
centres.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato.basics.numbers import Array

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# How many points are assigned at once.
BLOCK = 2**16


def kmeans(
    points: Array,
    start: int | Array,
    *,
    weights: Array | None = None,
    seed: int | np.random.Generator = 0,
    tries: int = 1,
    steps: int = 300,
    tolerance: float = 1e-4,
) -> Array:
    """Find centres that lie near the points.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d), n from 1 on
    start : int or float64 ndarray of shape (k, d)
        How many centres are sought, from starts far apart (Arthur and Vassilvitskii, SODA 2007); or
        the centres to start from.
    weights : float64 ndarray of shape (n,) or None
        Above 0. None: all points count alike.
    seed : int or numpy Generator
    tries : int
        How many starts are tried; the best result is kept. 1 if ``start`` gives the centres.
    steps : int
        The most steps of Lloyd for each start.
    tolerance : float
        The search ends when the centres move less than this, in units of the mean variance of an
        axis.

    Returns
    -------
    float64 ndarray of shape (k, d). Some are alike where there are fewer than k distinct points.

    >>> kmeans(np.array([[0.0], [0.2], [1.0]]), 2).round(1).tolist()
    [[0.1], [1.0]]
    """
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    k = start if isinstance(start, int) else len(start)
    if len(points) < k:
        # scikit-learn wants at least k points: the same ones are given again.
        points = np.resize(points, (k, points.shape[1]))
        weights = None if weights is None else np.resize(weights, k)
    random = int(seed.integers(2**31)) if isinstance(seed, np.random.Generator) else seed
    first = "k-means++" if isinstance(start, int) else start
    search = KMeans(k, init=first, n_init=tries, max_iter=steps, tol=tolerance, random_state=random)
    with single_thread(), warnings.catch_warnings():
        # It warns where there are fewer than k distinct points.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(search.fit(points, sample_weight=weights).cluster_centers_)


def single_thread() -> AbstractContextManager[object]:
    """A context in which linear algebra and k-means stay on one thread.

    Several threads add up in any order, so results would differ. Small sums only wait for them.
    """
    limits: AbstractContextManager[object] = _threads().limit(limits=1)
    return limits


@cache
def _threads() -> ThreadpoolController:
    """Find the libraries that have threads, once. scikit-learn has loaded them all by then."""
    import sklearn.cluster  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def squared_distances(points: Array, centers: Array) -> Array:
    """Squared distances of points to centres: float64 ndarray of shape (n, k)."""
    squares = (points**2).sum(axis=1)[:, None] - 2 * (points @ centers.T) + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(squares, 0, out=squares))


def assign(points: Array, centers: Array) -> Array:
    """Index of the nearest centre: int64 ndarray of shape (n,)."""
    # The length of a point is the same for all centres, so it is left out.
    lengths = (centers**2).sum(axis=1)
    nearest = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK]
        distances = lengths - 2 * (block @ centers.T)
        nearest[start : start + BLOCK] = distances.argmin(axis=1)
    return nearest


def sse(points: Array, centers: Array) -> float:
    """Sum of squared distances to the nearest centre."""
    return float(((points - centers[assign(points, centers)]) ** 2).sum())


STARTS = 10
STEPS = 100
TOLERANCE = 1e-6
# Starts are tried on so many points, or fifty for each centre; the best one goes on with all.
SAMPLE = 5_000


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
    else:
        centres = _search(points, weights, k, STARTS)
    if not len(points):
        return centres
    group_weights = np.bincount(assign(points, centres), weights, len(centres))
    return centres[np.argsort(-group_weights, kind="stable")]


def grouping(points: Array, weights: Array, k: int) -> Array:
    """Centres of k groups of points, found with few starts: float64 ndarray of shape (k, d).

    ``points`` and ``weights`` are those of ``weighted_kmeans``; at least one weight is positive.
    """
    has_weight = weights > 0
    # Three starts: a grouping only helps to look for rows.
    return _search(points[has_weight], weights[has_weight], k, 3)


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
