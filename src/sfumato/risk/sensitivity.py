"""How far can a query move over this universe? Empirical sensitivities, in closed form wherever there is one.

Let M(t, k) be the largest |f(T) - f(T without R)| over T of t records and R of k of them. The unbounded sensitivity is the
larger of M(size, k), records taken away, and M(size + k, k), records added: a set and an addition to it are a larger set
and what is taken from it. Throughout, u[0] <= ... <= u[n-1] are the records in order.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import Infeasible
from sfumato.risk.queries import Query, QueryName, answers, parse
from sfumato.risk.spreads import largest_change
from sfumato.risk.subsets import spread, subset_moments
from sfumato.risk.universe import Column, Universe, by_column, distance_of, how_many

MOST_NUMBERS = 40_000_000  # records in all data sets that are compared
FEW = 100  # records below which variances are computed set by set, without a difference of large numbers
BATCH = 1_000_000


def unbounded_sensitivity(
    universe: Universe, size: int, query: QueryName, distance: int = 1
) -> float | dict[str, float]:
    """How far does an answer move when ``distance`` records are added or removed?

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        Records of a published set, 1 to n - 1.
    query : str or ("percentile", q)
        "mean", "median", "sum", "count", "var" or "std" (both with ddof 0). Percentiles interpolate linearly.
    distance : int
        At most size - 1, and at most n - size.

    Returns
    -------
    float, or a dict by column

    Raises
    ------
    Infeasible
        For std, and for var at a distance above 1, unless size is n - 1 or the data sets can be enumerated.

    Source: Lee and Clifton 2011, Def. 2 and section 5.1.

    >>> round(unbounded_sensitivity([1, 2, 3, 4], 3, "mean"), 12)
    0.833333333333
    """
    asked = parse(query)
    return by_column(
        universe, size, lambda column, _: unbounded(column, asked, distance_of(distance, column))
    )


def bounded_sensitivity(
    universe: Universe, size: int, query: QueryName, distance: int = 1
) -> float | dict[str, float]:
    """How far does an answer move when ``distance`` records are exchanged for others of the universe?

    Parameters, returns and errors as for ``unbounded_sensitivity``.

    >>> bounded_sensitivity([1, 2, 3, 10], 3, "mean")
    3.0
    """
    asked = parse(query)
    return by_column(
        universe, size, lambda column, _: bounded(column, asked, distance_of(distance, column))
    )


def unbounded(column: Column, query: Query, distance: int) -> float:
    """Look at both ways: records taken away, and records added."""
    if query.name in ("var", "std") and column.leaves_one_out and column.n > FEW:
        return _spread_leave_one_out(column.centred, query)
    return max(
        _removed(column, query, size, distance) for size in (column.size, column.size + distance)
    )


def _removed(column: Column, query: Query, size: int, k: int) -> float:
    """M(size, k)."""
    match query.name:
        case "count":
            return float(k)
        case "sum":
            return _of_sums(column.ordered, k)
        case "mean":
            return _of_means(column.ordered, size, k)
        case "var" if k == 1 and size >= 2:
            return largest_change(column.centred, size, query)
        case "var" | "std":
            return _enumerated_removed(column, query, size, k)
        case "median" | "percentile":
            return _of_ranks(column.ordered, query, size, k)


def _of_sums(u: Array, k: int) -> float:
    """The sum over R, whichever set it is taken from: the k largest records, or the k smallest."""
    return max(abs(float(u[-k:].sum())), abs(float(u[:k].sum())))


def _of_means(u: Array, size: int, k: int) -> float:
    """mean(T) - mean(K) = (k / t) (mean(R) - mean(K)) for T = K and R.

    Two disjoint sets have means furthest apart when one is the largest records and the other the smallest.
    """
    kept = size - k
    apart = max(float(u[-k:].mean() - u[:kept].mean()), float(u[-kept:].mean() - u[:k].mean()))
    return apart * k / size


def _of_ranks(u: Array, query: Query, size: int, k: int) -> float:
    """Order statistics: for a fixed T, f(K) is least when the k largest go (K[r] = T[r]), largest when the k smallest go (K[r] = T[r+k]).

    Either difference is a sum of c[r] T[r] in which no negative c follows a positive one in rank (the rank of f in K,
    (t-k-1) q, is at most that in T, (t-1) q, and at least that less k). T[r] ranges over u[r] .. u[n-t+r], and all bounds
    are reached at once: ranks below the first positive c as low as can be, the others as high.
    """
    return max(
        _widest(u, size, _placed(query, size, 0), _placed(query, size - k, 0)),
        _widest(u, size, _placed(query, size - k, k), _placed(query, size, 0)),
    )


def _placed(query: Query, size: int, moved: int) -> dict[int, float]:
    rank, weight = query.rank(size)
    return {rank + moved: 1 - weight} | ({rank + moved + 1: weight} if weight else {})


def _widest(u: Array, size: int, plus: dict[int, float], minus: dict[int, float]) -> float:
    """The largest sum of (plus - minus)[r] T[r] over all T of ``size`` records; see ``_of_ranks``."""
    total = 0.0
    for rank in sorted({*plus, *minus}):
        c = plus.get(rank, 0.0) - minus.get(rank, 0.0)
        total += c * float(u[len(u) - size + rank] if c > 0 else u[rank])
    return max(total, 0.0)


def bounded(column: Column, query: Query, k: int) -> float:
    """The largest |f(D) - f(D')| over D, D' of one size that share all but k records.

    Sum and mean: the k records that differ are the largest and the smallest (2k <= size + k <= n, so they are disjoint).
    Order statistics: with V the size + k records of both, D[r] <= V[r+k] and D'[r] >= V[r]; both are reached by D the upper
    part of V and D' the lower one, which share size - k records; then V is chosen as in ``_of_ranks``.
    """
    u, size = column.ordered, column.size
    match query.name:
        case "count":
            return 0.0
        case "sum":
            return float(u[-k:].sum() - u[:k].sum())
        case "mean":
            return float(u[-k:].sum() - u[:k].sum()) / size
        case "var" | "std":
            return (
                world_range(column, query)
                if column.leaves_one_out
                else _enumerated_exchanged(column, query, k)
            )
        case "median" | "percentile":
            return _widest(u, size + k, _placed(query, size, k), _placed(query, size, 0))


def world_range(column: Column, query: Query) -> float:
    """The largest |f(D) - f(D')| over all pairs of worlds, at any distance: what the loose bound needs.

    Sum, mean, order statistics: the largest records against the smallest. Variance is convex in each record, so the
    largest is reached by the smallest a records with the largest size - a; it is the least over m of the mean of
    (x - m)^2, so the smallest is reached by neighbours in order (the size records nearest to m).
    """
    u, size = column.ordered, column.size
    match query.name:
        case "count":
            return 0.0
        case "sum" | "mean":
            apart = (
                float(u[-size:].sum() - u[:size].sum())
                if size * 2 <= column.n
                else _ends(u, column.n - size)
            )
            return apart if query.name == "sum" else apart / size
        case "var" | "std":
            return _range_of_spread(column, query)
        case "median" | "percentile":
            placed = _placed(query, size, 0)
            return sum(c * float(u[column.n - size + rank] - u[rank]) for rank, c in placed.items())


def _ends(u: Array, rest: int) -> float:
    """Sum of the largest n - rest records less that of the smallest: what both share cancels."""
    return float(u[-rest:].sum() - u[:rest].sum())


def _range_of_spread(column: Column, query: Query) -> float:
    """Windows of neighbours, around the end too: their variances from running sums of centred records."""
    x, size = column.centred - column.centred.mean(), column.size
    if column.leaves_one_out and column.n <= FEW:
        return float(np.ptp(answers(query, _sets(column, size, 1, query))))
    if column.leaves_one_out:
        squares = x**2
        variances = (squares.sum() - squares * (column.n / size)) / size
    else:
        around = np.concatenate([x, x[: size - 1]])
        sums, squares = (np.cumsum(np.concatenate([[0.0], y])) for y in (around, around**2))
        variances = (squares[size:] - squares[:-size]) / size - (
            (sums[size:] - sums[:-size]) / size
        ) ** 2
    low, high = max(float(variances.min()), 0.0), float(variances.max())
    return math.sqrt(high) - math.sqrt(low) if query.name == "std" else high - low


def _spread_leave_one_out(x: Array, query: Query) -> float:
    """Variance or standard deviation at size n - 1, where T is the universe or lacks one record y.

    Holds because, with d = r - mean(T): var(T without r) = (t var(T) - d^2 t / (t-1)) / (t-1) falls as |d| grows. So for
    each T the extreme changes are at the r furthest from its mean, an end of T, and at the r nearest to it, found by
    bisection among the sorted records but y: O(n log n) over all y.
    """
    x = x - x.mean()
    n = len(x)
    whole = float((x**2).sum())
    every = np.array([-1])
    worst = _changes(x, n, np.array([0.0]), np.array([whole]), every, query)
    if n > 2:
        for start in range(0, n, BATCH):
            missing = np.arange(start, min(start + BATCH, n))
            squares = np.clip(whole - x[missing] ** 2 * (n / (n - 1)), 0, None)
            worst = max(worst, _changes(x, n - 1, -x[missing] / (n - 1), squares, missing, query))
    return worst


def _changes(x: Array, t: int, mean: Array, squares: Array, missing: Array, query: Query) -> float:
    """The largest change over all T of a batch, given their means and sums of squares about them."""
    n = len(x)
    right = np.searchsorted(x, mean)
    right += right == missing
    left = np.searchsorted(x, mean) - 1
    left -= (left == missing) & (left >= 0)
    low, high = (missing == 0).astype(int), n - 1 - (missing == n - 1)
    worst = 0.0
    for at in (low, high, np.clip(left, low, high), np.clip(right, low, high)):
        after = np.clip(squares - (x[at] - mean) ** 2 * (t / (t - 1)), 0, None) / (t - 1)
        before = squares / t
        change = np.sqrt(before) - np.sqrt(after) if query.name == "std" else before - after
        worst = max(worst, float(np.abs(change).max()))
    return worst


# --- by enumeration -------------------------------------------------------------------------------------------------------


def _sets(column: Column, size: int, ways: int, query: Query) -> Array:
    """All sets of ``size`` records, each in order: (sets, size)."""
    if how_many(column.n, size) * size * ways > MOST_NUMBERS:
        raise Infeasible(
            f"the sensitivity of the {query} of {column.size:,} out of {column.n:,} records",
            "it has no closed form, and there are too many data sets to compare",
            f"Take size = {column.n - 1:,}, or use mean, sum, median or a percentile",
        )
    flat = itertools.chain.from_iterable(itertools.combinations(range(column.n), size))
    return np.asarray(column.centred[np.fromiter(flat, dtype=np.intp).reshape(-1, size)])


def _enumerated_removed(column: Column, query: Query, size: int, k: int) -> float:
    """M(size, k), set by set; with k = 1 and many sets, from the sums of K for each record that joins it."""
    if (
        k == 1
        and size > 2
        and how_many(column.n, size) * size * size > MOST_NUMBERS
        and _pairs(column, size) <= MOST_NUMBERS
    ):
        return _from_moments(column.centred, query, size)
    rows = _sets(column, size, how_many(size, k), query)
    before = answers(query, rows)
    return max(
        float(np.abs(before - answers(query, rows[:, list(kept)])).max())
        for kept in itertools.combinations(range(size), size - k)
    )


def _pairs(column: Column, size: int) -> int:
    return column.n * how_many(column.n - 1, size - 1)


def _from_moments(x: Array, query: Query, size: int) -> float:
    reach, worst = float(np.abs(x).max()), 0.0
    for i, joining in enumerate(x.tolist()):
        sums, squares = subset_moments(np.delete(x, i), size - 1)
        before = spread(sums, squares, size - 1, reach, query)
        after = spread(sums + joining, squares + joining**2, size, reach, query)
        worst = max(worst, float(np.abs(after - before).max()))
    return worst


def _enumerated_exchanged(column: Column, query: Query, k: int) -> float:
    """All sets V of size + k records, and all ways to take two different parts of k out of each."""
    both = column.size + k
    rows = _sets(column, both, how_many(both, k), query)
    parts = {
        frozenset(gone): np.delete(np.arange(both), gone)
        for gone in map(list, itertools.combinations(range(both), k))
    }
    found = {gone: answers(query, rows[:, kept]) for gone, kept in parts.items()}
    return max(
        float(np.abs(found[a] - found[b]).max())
        for a, b in itertools.combinations(found, 2)
        if not a & b
    )
