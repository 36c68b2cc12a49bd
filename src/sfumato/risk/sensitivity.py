"""How far a query can move over a universe: empirical sensitivities, in closed form where possible.

Let M(t, k) be the largest |f(T) - f(T without R)| over sets T of t records and subsets R of k of
them. The unbounded sensitivity is the larger of M(size, k), where records are removed, and M(size +
k, k), where records are added: a set and an addition to it are a larger set and what is removed
from it. Throughout, u[0] <= ... <= u[n-1] are the records in order.

Sums over all subsets of one size, and how far a variance can move between two sets.

Sums are counted on a lattice, or added up from two halves.

*How far a variance can move when one record joins or leaves* (``largest_change``), over all sets of
a size.

Let K be t - 1 records and T be K with one more, r. With m and v the mean and variance of K,
var(T) - var(K) = (t - 1) / t^2 (r - m)^2 - v / t. Throughout, u[0] <= ... <= u[n-1] are the records
in order.

*Rise.* For a fixed r it is a convex function of the sum of K less a multiple of its sum of squares.
It is hence a supremum of linear functions of the two. Each of these is largest for the t - 1
records nearest to some point, a run of neighbours without r. For a fixed T the rise is largest if r
is an end of T. So K is a run of neighbours, and r is u[0] or u[n-1].

*Fall.* For a fixed r it is strictly convex in each record of K (t >= 3; for t = 2 there is none). A
record of K with free ones on both sides could therefore be moved outwards, so K is the lowest a and
the highest b records without r. If r lies between them, it is the free record nearest to m.
Otherwise T itself is the lowest and the highest records, and r is the one in it nearest to its
mean.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple, TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.errors import Infeasible, InternalError, explained
from sfumato.risk.universe import (
    Column,
    Query,
    QueryName,
    Universe,
    answers,
    by_column,
    distance_of,
    how_many,
    log_choose,
    parse,
)

# The most records in all data sets that are compared one by one.
MOST_NUMBERS = 40_000_000
# Up to this many records, variances are computed set by set: no difference of large numbers is
# taken.
FEW = 100
BATCH = 1_000_000

# A linear combination of order statistics: the weight of each rank.
Coefficients: TypeAlias = dict[int, float]


@explained
def unbounded_sensitivity(
    universe: Universe, size: int, query: QueryName, distance: int = 1
) -> float | dict[str, float]:
    """How far does an answer move when ``distance`` records are added or removed?

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n - 1.
    query : str or ("percentile", q)
        "mean", "median", "sum", "count", "var" or "std" (both with ddof 0). Percentiles interpolate
        linearly.
    distance : int
        At most size - 1, and at most n - size.

    Returns
    -------
    float, or a dict by column

    Raises
    ------
    Infeasible
        For std, and for var at a distance above 1, unless size is n - 1 or the data sets are few
        enough to be enumerated.

    Source: Lee and Clifton 2011, Def. 2 and section 5.1.

    >>> round(unbounded_sensitivity([1, 2, 3, 4], 3, "mean"), 12)
    0.833333333333
    """
    parsed = parse(query)

    def of_column(column: Column, _: object) -> float:
        return unbounded(column, parsed, distance_of(distance, column))

    return by_column(universe, size, of_column)


@explained
def bounded_sensitivity(
    universe: Universe, size: int, query: QueryName, distance: int = 1
) -> float | dict[str, float]:
    """How far does an answer move when ``distance`` records are exchanged for others?

    The others come from the universe.

    Parameters
    ----------
    universe : array of shape (n,), or a frame or dict of columns
    size : int
        The number of records in a published set, 1 to n - 1.
    query : str or ("percentile", q)
        As for ``unbounded_sensitivity``.
    distance : int
        At most size - 1, and at most n - size.

    Returns
    -------
    float, or a dict by column

    Raises
    ------
    Infeasible
        As for ``unbounded_sensitivity``.

    >>> bounded_sensitivity([1, 2, 3, 10], 3, "mean")
    3.0
    """
    parsed = parse(query)

    def of_column(column: Column, _: object) -> float:
        return bounded(column, parsed, distance_of(distance, column))

    return by_column(universe, size, of_column)


def unbounded(column: Column, query: Query, distance: int) -> float:
    """Return the larger change of records removed and records added."""
    if query.name in ("var", "std") and column.leaves_one_out and column.n > FEW:
        return _spread_leave_one_out(column.centred, query)
    added = _removed(column, query, column.size + distance, distance)
    return max(_removed(column, query, column.size, distance), added)


def _removed(column: Column, query: Query, size: int, k: int) -> float:
    """Return M(size, k)."""
    match query.name:
        case "count":
            return float(k)
        case "sum":
            # Whichever set they are taken from: the k largest records, or the k smallest.
            ends = (column.ordered[-k:], column.ordered[:k])
            return max(abs(float(end.sum())) for end in ends)
        case "mean":
            # |mean(T) - mean(K)|, where T is K together with R, is (k / t) |mean(R) - mean(K)|. Two
            # disjoint sets have means furthest apart when one holds the largest records and the
            # other the smallest.
            high_removed = float(column.ordered[-k:].mean() - column.ordered[: size - k].mean())
            low_removed = float(column.ordered[k - size :].mean() - column.ordered[:k].mean())
            return max(high_removed, low_removed) * k / size
        case "var" if k == 1 and size >= 2:
            return largest_change(column.centred, size, query)
        case "var" | "std":
            return _enumerated_removed(column, query, size, k)
        case "median" | "percentile":
            return _of_ranks(column.ordered, query, size, k)


def _of_ranks(u: Array, query: Query, size: int, k: int) -> float:
    """Return the largest change of an order statistic.

    For a fixed T, f(K) is least when the k largest records are removed (K[r] = T[r]), and largest
    when the k smallest are (K[r] = T[r+k]). Either difference is a sum of c[r] T[r] in which no
    negative c follows a positive one in rank: the rank of f in K, (t-k-1) q, is at most that in T,
    (t-1) q, and at least that less k. T[r] ranges over u[r] .. u[n-t+r]. All bounds are reached at
    once, with ranks below the first positive c as low as can be and the others as high.
    """
    whole = _order_statistic(query, size, 0)
    high_removed = _order_statistic(query, size - k, 0)
    low_removed = _order_statistic(query, size - k, k)
    return max(
        _widest(u, size, plus=whole, minus=high_removed),
        _widest(u, size, plus=low_removed, minus=whole),
    )


def _order_statistic(query: Query, size: int, shift: int) -> Coefficients:
    """Return the weights of the ranks that the query interpolates, ``shift`` ranks further up."""
    rank, weight = query.rank(size)
    coefficients = {rank + shift: 1 - weight}
    if weight:
        coefficients[rank + shift + 1] = weight
    return coefficients


def _widest(u: Array, size: int, *, plus: Coefficients, minus: Coefficients) -> float:
    """Return the largest sum of (plus - minus)[r] T[r] over sets T of ``size`` records.

    See ``_of_ranks`` for why each rank may be put at its own bound.
    """
    total = 0.0
    for rank in sorted({*plus, *minus}):
        c = plus.get(rank, 0.0) - minus.get(rank, 0.0)
        index = len(u) - size + rank if c > 0 else rank
        total += c * float(u[index])
    return max(total, 0.0)


def bounded(column: Column, query: Query, k: int) -> float:
    """Return the largest |f(D) - f(D')| over D, D' of one size that share all but k records.

    Sum and mean: the k records that differ are the largest and the smallest. They are disjoint,
    since 2k <= size + k <= n.

    Order statistics: let V be the size + k records of both sets. Then D[r] <= V[r+k] and D'[r] >=
    V[r]. Both bounds are reached if D is the upper part of V and D' the lower one, which share size
    - k records. V is then chosen as in ``_of_ranks``.
    """
    u = column.ordered
    size = column.size
    match query.name:
        case "count":
            return 0.0
        case "sum":
            return _apart(u, k)
        case "mean":
            return _apart(u, k) / size
        case "var" | "std" if column.leaves_one_out:
            return world_range(column, query)
        case "var" | "std":
            # By enumeration of the sets: V runs over
            # all sets of size + k records, and out of each two disjoint parts of k are left out.
            both = column.size + k
            rows = _sets(column, both, how_many(both, k), query)
            without = {}
            for left_out in itertools.combinations(range(both), k):
                kept = np.delete(np.arange(both), left_out)
                without[frozenset(left_out)] = answers(query, rows[:, kept])
            worst = 0.0
            for left, right in itertools.combinations(without, 2):
                if not left & right:
                    worst = max(worst, _largest_gap(without[left], without[right]))
            return worst
        case "median" | "percentile":
            upper = _order_statistic(query, size, k)
            return _widest(u, size + k, plus=upper, minus=_order_statistic(query, size, 0))


def world_range(column: Column, query: Query) -> float:
    """Return the largest |f(D) - f(D')| over all pairs of worlds, at any distance.

    Sum, mean and order statistics: the largest records against the smallest.
    """
    # Two worlds may have records in common, which cancel.
    differing = min(column.size, column.n - column.size)
    match query.name:
        case "count":
            return 0.0
        case "sum":
            return _apart(column.ordered, differing)
        case "mean":
            return _apart(column.ordered, differing) / column.size
        case "var" | "std":
            return _range_of_spread(column, query)
        case "median" | "percentile":
            u = column.ordered
            highest = u[column.n - column.size :]
            ranks = _order_statistic(query, column.size, 0)
            return sum(c * float(highest[rank] - u[rank]) for rank, c in ranks.items())


def _apart(u: Array, k: int) -> float:
    """Return the sum of the k largest records less that of the k smallest."""
    return float(u[-k:].sum() - u[:k].sum())


def _range_of_spread(column: Column, query: Query) -> float:
    """Return the range of variances or standard deviations.

    Variance is convex in each record, so the largest is reached by the smallest a records with the
    largest size - a. It is the least over m of the mean of (x - m)^2, so the smallest is reached by
    the ``size`` records nearest to some m: neighbours in order.
    """
    if column.size == 1:
        return 0.0
    if column.leaves_one_out and column.n <= FEW:
        return float(np.ptp(answers(query, _sets(column, column.size, 1, query))))
    x = column.centred - column.centred.mean()
    low = _smallest_variance(x, column.size)
    high = _largest_variance(x, column.size)
    return math.sqrt(high) - math.sqrt(low) if query.name == "std" else high - low


def _largest_variance(x: Array, size: int) -> float:
    """Return the largest variance of any ``size`` records; they may go around the end."""
    if size == len(x) - 1:
        squares = x**2
        return float(((squares.sum() - squares * (len(x) / size)) / size).max())
    return float(_window_variances(np.concatenate([x, x[: size - 1]]), size).max())


def _smallest_variance(x: Array, size: int) -> float:
    """Return the smallest variance of any ``size`` records: of a window of neighbours in order.

    Running sums give all windows in O(n), but as a difference of squares, which may miss a small
    variance by the rounding of a large one. A standard deviation would then be wrong by the square
    root of that. So they only say which windows can be the smallest, and the variance of these is
    computed again from the distances of their own records from their own mean.
    """
    if x[0] == x[-1]:
        return 0.0
    starts = np.arange(len(x) - size + 1)
    # A window of equal records has variance 0, exactly.
    if (x[starts] == x[starts + size - 1]).any():
        return 0.0
    rough = _window_variances(x, size)
    # A running sum of n numbers errs by at most n eps times the sum of their sizes.
    sizes = np.abs(x)
    erring = float((sizes**2).sum() + 2 * sizes.max() * sizes.sum())
    in_doubt = 4 * len(x) * float(np.finfo(float).eps) * erring / size
    candidates = np.flatnonzero(rough <= rough.min() + in_doubt)
    # Of very many candidates the likeliest are computed again, so that the work stays linear.
    # Windows of so many records in all are computed a second time, record by record.
    most = max(1, 1_000_000 // size)
    if len(candidates) > most:
        candidates = candidates[np.argsort(rough[candidates], kind="stable")[:most]]
    return min(float(x[start : start + size].var()) for start in candidates.tolist())


def _window_variances(x: Array, size: int) -> Array:
    """Return the variance of every ``size`` neighbours of x, by running sums."""
    sums = np.cumsum(np.concatenate([[0.0], x]))
    squares = np.cumsum(np.concatenate([[0.0], x**2]))
    of_sets = sums[size:] - sums[:-size]
    means = of_sets / size
    return np.asarray((squares[size:] - squares[:-size]) / size - means**2)


def _spread_leave_one_out(x: Array, query: Query) -> float:
    """Return the largest change of a variance or standard deviation at size n - 1, in O(n log n).

    T is the universe, or lacks one record y. Holds because, with d = r - mean(T), var(T without r)
    = (t var(T) - d^2 t / (t-1)) / (t-1) falls as |d| grows. So for each T the extreme changes are
    at the r furthest from its mean, which is an end of T, and at the r nearest to it, which
    bisection finds among the sorted records but y.
    """
    x = x - x.mean()
    n = len(x)
    whole = float((x**2).sum())
    nothing_missing = np.array([-1])
    worst = _changes(x, n, np.array([0.0]), np.array([whole]), nothing_missing, query)
    if n == 2:
        return worst
    for start in range(0, n, BATCH):
        missing = np.arange(start, min(start + BATCH, n))
        # A difference that rounding may take below 0, where no sum of squares lies.
        squares = np.clip(whole - x[missing] ** 2 * (n / (n - 1)), 0, None)
        means = -x[missing] / (n - 1)
        worst = max(worst, _changes(x, n - 1, means, squares, missing, query))
    return worst


def _changes(x: Array, t: int, mean: Array, squares: Array, missing: Array, query: Query) -> float:
    """Return the largest change over all sets T of a batch.

    Parameters
    ----------
    x : float64 ndarray of shape (n,)
        Ascending, with mean 0.
    t : int
        The size of T.
    mean, squares : float64 ndarrays of shape (batch,)
        Of each T, its mean and the sum of squares about it.
    missing : int64 ndarray of shape (batch,)
        The record that each T lacks; -1 for none.
    query : Query
    """
    last = len(x) - 1
    nearest = np.searchsorted(x, mean)
    right = nearest + (nearest == missing)
    left = nearest - 1
    left -= (left == missing) & (left >= 0)
    low = (missing == 0).astype(int)
    high = last - (missing == last)
    worst = 0.0
    for removed in (low, high, np.clip(left, low, high), np.clip(right, low, high)):
        left_over = squares - (x[removed] - mean) ** 2 * (t / (t - 1))
        after = np.clip(left_over, 0, None) / (t - 1)
        before = squares / t
        if query.name == "std":
            before = np.sqrt(before)
            after = np.sqrt(after)
        change = before - after
        worst = max(worst, float(np.abs(change).max()))
    return worst


def _sets(column: Column, size: int, ways: int, query: Query) -> Array:
    """Return all sets of ``size`` records, each in order: an ndarray of shape (sets, size).

    ``ways`` is the number of subsets of each that will be compared.
    """
    if how_many(column.n, size) * size * ways > MOST_NUMBERS:
        raise Infeasible(
            f"the sensitivity of the {query} of {column.size:,} out of {column.n:,} records",
            "it has no closed form, and there are too many data sets to compare",
            f"Take size = {column.n - 1:,}, or use mean, sum, median or a percentile",
        )
    return subsets_of(column.centred, size)


def _largest_gap(before: Array, after: Array) -> float:
    return float(np.abs(before - after).max())


def _enumerated_removed(column: Column, query: Query, size: int, k: int) -> float:
    too_many = how_many(column.n, size) * size * size > MOST_NUMBERS
    pairs = column.n * how_many(column.n - 1, size - 1)
    if k == 1 and size > 2 and too_many and pairs <= MOST_NUMBERS:
        return _from_moments(column.centred, query, size)
    rows = _sets(column, size, how_many(size, k), query)
    before = answers(query, rows)
    worst = 0.0
    for kept in itertools.combinations(range(size), size - k):
        after = answers(query, rows[:, list(kept)])
        worst = max(worst, _largest_gap(before, after))
    return worst


def _from_moments(x: Array, query: Query, size: int) -> float:
    """Return M(size, 1) for a spread, from the sums of all sets that each record may join."""
    largest = float(np.abs(x).max())
    worst = 0.0
    for i, joining in enumerate(x.tolist()):
        sums, squares = subset_moments(np.delete(x, i), size - 1)
        before = spread(sums, squares, size - 1, largest, query)
        after = spread(sums + joining, squares + joining**2, size, largest, query)
        worst = max(worst, _largest_gap(before, after))
    return worst


# --- sums over subsets ----------------------------------------------------------------------------

# --- sums -----------------------------------------------------------------------------------------

# The most pairs of a sum and a size that are counted at once.
MOST_STATES = 20_000_000
MOST_WORK = 6_000_000_000


def lattice_sums(x: Array, size: int) -> tuple[Array, Array] | None:
    """Return the sums of all subsets of records on a lattice, and ln of how many subsets have each.

    Parameters
    ----------
    x : float64 ndarray of shape (n,)
        The records in ascending order.
    size : int
        The number of records in a subset.

    Returns
    -------
    (sums, logs) or None
        None if the records are neither whole numbers nor short decimals, or the count would take
        too long.

    Holds because: the subsets of k of the first i records with sum s either leave record i out or
    take it: count(i, k, s) = count(i-1, k, s) + count(i-1, k-1, s - x[i]). The complement of a
    subset has the rest of the sum, so the smaller of size and n - size is counted. Counts are
    floats: exact up to 2^53, then accurate to a few units in the last place.
    """
    steps, unit = _steps(x)
    few = min(size, len(x) - size)
    # Beyond that ln no float holds a count.
    if steps is None or log_choose(len(x), few) > 690.0:
        return None
    largest = np.sort(steps)[-few:]
    n_sums = int(largest.sum()) + 1
    if n_sums * (few + 1) > MOST_STATES or n_sums * few * len(x) > MOST_WORK:
        return None
    counts = np.zeros((few + 1, n_sums))
    counts[0, 0] = 1
    for done, step in enumerate(steps.tolist()):
        # Larger subsets first, so that no record is taken twice.
        for k in range(min(few, done + 1), 0, -1):
            counts[k, step:] += counts[k - 1, : n_sums - step]
    at = np.flatnonzero(counts[few])
    logs = np.log(counts[few, at])
    if few != size:
        at = steps.sum() - at[::-1]
        logs = logs[::-1]
    return at * unit + size * x[0], logs


def _steps(x: Array) -> tuple[Array | None, float]:
    """Return distances from the smallest record in whole units, and the unit; None without one."""
    from_least = x - x[0]
    # A decimal record such as 0.1 is a rounded double, and misses its lattice point by that
    # rounding.
    rounding = 8 * np.finfo(float).eps * float(np.abs(x).max())
    for parts in (1, 2, 4, 10, 100, 1000):
        scaled = from_least * parts
        steps = np.rint(scaled)
        if float(steps.max()) < 2**40 and np.abs(scaled - steps).max() <= rounding * parts:
            whole = steps.astype(np.int64)
            # Where all records are equal, all steps are 0, and so is their greatest common divisor.
            common = int(np.gcd.reduce(whole)) or 1
            return whole // common, common / parts
    return None, 1.0


def split_in_half(x: Array, size: int, query: Query) -> Array:
    """Return the answers of all subsets, in no useful order: an ndarray of shape (subsets,)."""
    sums, squares = subset_moments(x, size)
    match query.name:
        case "sum":
            return sums
        case "mean":
            return sums / size
        case "var" | "std":
            return spread(sums, squares, size, float(np.abs(x).max()), query)
        case "count" | "median" | "percentile":
            raise InternalError(f"The {query} is no function of sums and squares.")


def spread(sums: Array, squares: Array, size: int, largest: float, query: Query) -> Array:
    """Return variances or standard deviations from sums and sums of squares.

    ``largest`` is the largest absolute record. A variance that rounding alone could have made is 0.
    """
    means = sums / size
    variance = np.asarray(squares / size - means**2)
    variance[variance < 64 * np.finfo(float).eps * largest**2] = 0
    return np.sqrt(variance) if query.name == "std" else variance


def subset_moments(x: Array, size: int) -> tuple[Array, Array]:
    """Return the sums and the sums of squares of all subsets of ``size`` records.

    Holds because: those of a subset add up from its parts in two halves of the universe, and those
    of a large subset are what its complement leaves of the whole.

    Returns
    -------
    two float64 ndarrays of shape (subsets,)
    """
    if 2 * size > len(x):
        sums, squares = subset_moments(x, len(x) - size)
        return float(x.sum()) - sums, float((x**2).sum()) - squares
    half = len(x) // 2
    all_sums = []
    all_squares = []
    for taken in range(max(0, size - len(x) + half), min(size, half) + 1):
        left_sums, left_squares = _moments(x[:half], taken)
        right_sums, right_squares = _moments(x[half:], size - taken)
        all_sums.append(np.add.outer(left_sums, right_sums).reshape(-1))
        all_squares.append(np.add.outer(left_squares, right_squares).reshape(-1))
    return np.concatenate(all_sums), np.concatenate(all_squares)


def subsets_of(x: Array, size: int) -> Array:
    """Return every subset of a size, record by record: an ndarray of shape (subsets, size).

    They are in the order of ``itertools.combinations``.
    """
    flat = itertools.chain.from_iterable(itertools.combinations(range(len(x)), size))
    # The number of rows is given, since -1 would be ambiguous for subsets of no records.
    return x[np.fromiter(flat, dtype=np.intp).reshape(math.comb(len(x), size), size)]


def _moments(x: Array, size: int) -> tuple[Array, Array]:
    rows = subsets_of(x, size)
    return rows.sum(axis=1), (rows**2).sum(axis=1)


# --- variances ------------------------------------------------------------------------------------


class _Pairs(NamedTuple):
    """Sets K, and the record that joins each of them.

    Attributes
    ----------
    sums, squares : float64 ndarrays of shape (pairs,)
        Of the records of K, and of their squares.
    joining : float64 ndarray of shape (pairs,) or (1,)
    """

    sums: Array
    squares: Array
    joining: Array


class _RunningSums:
    """Records in order, with the sums of their beginnings.

    ``sums[i]`` and ``squares[i]`` add up the first i records and their squares.
    """

    def __init__(self, x: Array) -> None:
        self.x = x
        self.n = len(x)
        self.sums = np.concatenate([[0.0], np.cumsum(x)])
        squares = np.cumsum(x**2)
        self.squares = np.concatenate([[0.0], squares])

    def outer(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the sums over the first ``low`` records and those from ``high`` on."""
        sums = self.sums[low] + self.sums[self.n] - self.sums[high]
        squares = self.squares[low] + self.squares[self.n] - self.squares[high]
        return sums, squares


def largest_change(x: Array, t: int, query: Query) -> float:
    """Return the largest |f(T) - f(K)| over the sets that the module's text names.

    Parameters
    ----------
    x : float64 ndarray of shape (n,)
        Ascending and centred.
    t : int
        The size of T, 2 to n.
    query : Query

    Returns
    -------
    float
        Exact for var. For std it is the change for the sets where the variance moves most, which is
        a lower bound.
    """
    running = _RunningSums(x)
    largest = float(np.abs(x).max())
    worst = 0.0
    for pairs in (*_runs(running, t), *_joining_between(running, t), *_joining_within(running, t)):
        worst = max(worst, _change(pairs, t, largest, query))
    return worst


def _runs(running: _RunningSums, t: int) -> list[_Pairs]:
    """K is a run of neighbours, and r an end of the universe outside it."""
    x = running.x
    start = np.arange(running.n - t + 2)
    sums = running.sums[start + t - 1] - running.sums[start]
    squares = running.squares[start + t - 1] - running.squares[start]
    return [_Pairs(sums[1:], squares[1:], x[:1]), _Pairs(sums[:-1], squares[:-1], x[-1:])]


def _joining_between(running: _RunningSums, t: int) -> list[_Pairs]:
    """K is the lowest and the highest records, and r lies between, next to the mean of K."""
    low = np.arange(t)
    high = running.n - (t - 1 - low)
    sums, squares = running.outer(low, high)
    nearest = np.searchsorted(running.x, sums / (t - 1))
    between = (np.clip(nearest - left, low, high - 1) for left in (0, 1))
    return [_Pairs(sums, squares, running.x[joining]) for joining in between]


def _joining_within(running: _RunningSums, t: int) -> list[_Pairs]:
    """T is the lowest and the highest records, and r the one in T nearest to its mean."""
    x = running.x
    last = running.n - 1
    low = np.arange(t + 1)
    high = running.n - (t - low)
    sums, squares = running.outer(low, high)
    nearest = np.searchsorted(x, sums / t)
    pairs = []
    for left in (0, 1):
        in_lower = x[np.clip(nearest - left, 0, np.maximum(low - 1, 0))]
        in_upper = x[np.clip(nearest - left, np.minimum(high, last), last)]
        for exists, joining in ((low > 0, in_lower), (high < running.n, in_upper)):
            r = joining[exists]
            pairs.append(_Pairs(sums[exists] - r, squares[exists] - r**2, r))
    return pairs


def _change(pairs: _Pairs, t: int, largest: float, query: Query) -> float:
    """Return the largest change over some sets; ``largest`` is the largest absolute record."""
    if not len(pairs.sums):
        return 0.0
    mean = pairs.sums / (t - 1)
    before = pairs.squares / (t - 1) - mean**2
    # A difference of squares: what rounding alone could have made is 0.
    before[before < 64 * np.finfo(float).eps * largest**2] = 0
    change = np.asarray((t - 1) / t**2 * (pairs.joining - mean) ** 2 - before / t)
    if query.name == "std":
        # sqrt(a) - sqrt(b) = (a - b) / (sqrt(a) + sqrt(b)), without cancellation
        roots = np.sqrt(before) + np.sqrt(np.clip(before + change, 0, None))
        change = np.divide(change, roots, out=np.zeros_like(change), where=roots > 0)
    return float(np.abs(change).max())


def least_sensitivity(x: Array, size: int, query: Query) -> float:
    """Return a sensitivity at distance 1 that the query certainly has.

    It is exact for var, and at most the true one for std.
    """
    return max(largest_change(x, t, query) for t in (size, size + 1) if t >= 2)
