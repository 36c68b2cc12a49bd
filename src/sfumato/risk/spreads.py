"""How far can a variance move when one record joins or leaves? In closed form, over all sets of a size.

Let K be t - 1 records and T be K with one more, r. With m and v the mean and variance of K,
var(T) - var(K) = (t - 1) / t^2 (r - m)^2 - v / t. Throughout, u[0] <= ... <= u[n-1] are the records in order.

*Rise.* For a fixed r it is a convex function of the sum of K less a multiple of its sum of squares, hence a supremum of
linear functions of the two; each is largest for the t - 1 records nearest to some point, a run of neighbours without r. And for a
fixed T the rise is largest if r is an end of T. So K is a run of neighbours, and r is u[0] or u[n-1].

*Fall.* For a fixed r it is strictly convex in each record of K (t >= 3; for t = 2 there is none), so a record of K with
free ones on both sides could be moved outwards: K is the lowest a and the highest b records without r. If r lies between
them, it is the free record nearest to m; otherwise T itself is the lowest and the highest records, and r is the one in it
nearest to its mean.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array
from sfumato.risk.queries import Query


def largest_change(x: Array, t: int, query: Query) -> float:
    """The largest |f(T) - f(K)| over the sets named above: float.

    Parameters
    ----------
    x : float64 ndarray of shape (n,)
        Ascending and centred.
    t : int
        2 to n.

    Returns
    -------
    float
        Exact for var. For std that of the sets where the variance moves most: a lower bound.
    """
    sums, squares = (np.concatenate([[0.0], np.cumsum(y)]) for y in (x, x**2))
    reach = float(np.abs(x).max())
    worst = 0.0
    for total, total_squares, joining in (
        *_runs(x, t, sums, squares),
        *_ends_of(x, t, sums, squares),
        *_within(x, t, sums, squares),
    ):
        worst = max(worst, _change(total, total_squares, joining, t, reach, query))
    return worst


_Sets = list[tuple[Array, Array, Array]]


def _runs(x: Array, t: int, sums: Array, squares: Array) -> _Sets:
    """K a run of neighbours, r an end of the universe outside it."""
    start = np.arange(len(x) - t + 2)
    total, total_squares = (y[start + t - 1] - y[start] for y in (sums, squares))
    return [(total[1:], total_squares[1:], x[:1]), (total[:-1], total_squares[:-1], x[-1:])]


def _ends_of(x: Array, t: int, sums: Array, squares: Array) -> _Sets:
    """K the lowest and the highest records, r the one between that is nearest to the mean, on either side of it."""
    n, low = len(x), np.arange(t)
    high = n - (t - 1 - low)
    total, total_squares = (y[low] + y[n] - y[high] for y in (sums, squares))
    place = np.searchsorted(x, total / (t - 1))
    return [(total, total_squares, x[np.clip(place - left, low, high - 1)]) for left in (0, 1)]


def _within(x: Array, t: int, sums: Array, squares: Array) -> _Sets:
    """T the lowest and the highest records, r the one in T nearest to its mean: in either part, on either side."""
    n, low = len(x), np.arange(t + 1)
    high = n - (t - low)
    total, total_squares = (y[low] + y[n] - y[high] for y in (sums, squares))
    place = np.searchsorted(x, total / t)
    found = []
    for left in (0, 1):
        for some, joining in (
            (low > 0, x[np.clip(place - left, 0, np.maximum(low - 1, 0))]),
            (high < n, x[np.clip(place - left, np.minimum(high, n - 1), n - 1)]),
        ):
            found.append(
                (
                    total[some] - joining[some],
                    total_squares[some] - joining[some] ** 2,
                    joining[some],
                )
            )
    return found


def _change(
    total: Array, squares: Array, joining: Array, t: int, reach: float, query: Query
) -> float:
    if not len(total):
        return 0.0
    mean = total / (t - 1)
    before = squares / (t - 1) - mean**2
    before[before < 64 * np.finfo(float).eps * reach**2] = 0
    change = np.asarray((t - 1) / t**2 * (joining - mean) ** 2 - before / t)
    if query.name == "std":
        roots = np.sqrt(before) + np.sqrt(np.clip(before + change, 0, None))
        change = np.divide(change, roots, out=np.zeros_like(change), where=roots > 0)
    return float(np.abs(change).max())


def least_sensitivity(x: Array, size: int, query: Query) -> float:
    """A sensitivity that the query certainly has at distance 1: exact for var, at most the true one for std."""
    return max(largest_change(x, t, query) for t in (size, size + 1) if t >= 2)
