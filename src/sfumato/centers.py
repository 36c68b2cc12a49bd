"""k-means on what may be seen: noisy counts, reports, points drawn from a fitted law. Post-processing, which costs nothing.

scikit-learn does the work, on one thread: the same numbers and the same seed give the same centres.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sfumato.arrays import Array

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_BLOCK = 2**16


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
    """Centres that lie near the points.

    Parameters
    ----------
    points : float64 ndarray of shape (n, d), n from 1 on
    start : int or float64 ndarray of shape (k, d)
        How many centres are sought, from starts far apart (Arthur and Vassilvitskii, SODA 2007); or where they start.
    weights : float64 ndarray of shape (n,) or None
        Above 0; None: all alike.
    seed : int or numpy Generator
    tries : int
        Starts, of which the best is kept; 1 where ``start`` says where.
    steps : int
        Most steps of Lloyd for each.
    tolerance : float
        Of the mean variance of an axis: below it the centres rest.

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
        points, weights = (
            np.resize(points, (k, points.shape[1])),
            None if weights is None else np.resize(weights, k),
        )
    random = int(seed.integers(2**31)) if isinstance(seed, np.random.Generator) else seed
    first = "k-means++" if isinstance(start, int) else start
    search = KMeans(k, init=first, n_init=tries, max_iter=steps, tol=tolerance, random_state=random)
    with single_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer than k distinct points
        return np.asarray(search.fit(points, sample_weight=weights).cluster_centers_)


def single_thread() -> AbstractContextManager[object]:
    """A context in which linear algebra and k-means stay on one thread: threads add up in any order, and small sums only wait for them."""
    limits: AbstractContextManager[object] = _threads().limit(limits=1)
    return limits


@cache
def _threads() -> ThreadpoolController:
    """Looks once for the libraries that have threads; scikit-learn has loaded them all by then."""
    import sklearn.cluster  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def squared_distances(points: Array, centers: Array) -> Array:
    """Squared distances of points to centres: float64 ndarray of shape (n, k)."""
    found = (points**2).sum(axis=1)[:, None] - 2 * (points @ centers.T) + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(found, 0, out=found))


def assign(points: Array, centers: Array) -> Array:
    """Index of the nearest centre: int64 ndarray of shape (n,)."""
    # The length of a point is the same for all centres.
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        part = points[start : start + _BLOCK]
        found[start : start + _BLOCK] = ((centers**2).sum(axis=1) - 2 * (part @ centers.T)).argmin(
            axis=1
        )
    return found


def sse(points: Array, centers: Array) -> float:
    """Sum of squared distances to the nearest centre."""
    return float(((points - centers[assign(points, centers)]) ** 2).sum())
