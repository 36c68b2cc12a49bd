"""Sums over all subsets of one size, and how far a variance can move between two sets.

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
from typing import NamedTuple

import numpy as np

from sfumato.basics import Array
from sfumato.errors import InternalError
from sfumato.risk.universe import Query, log_choose

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
    n_sums = int(np.sort(steps)[-few:].sum()) + 1
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
    variance = np.asarray(squares / size - (sums / size) ** 2)
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
        self.squares = np.concatenate([[0.0], np.cumsum(x**2)])

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
