"""Sums over all subsets of one size: counted on a lattice, or added up from two halves."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import InternalError
from sfumato.risk.queries import Query
from sfumato.risk.universe import log_choose

# The most pairs of a sum and a size that are counted at once.
MOST_STATES = 20_000_000
MOST_WORK = 6_000_000_000
# ln of the largest count that a float holds.
LARGEST_FLOAT = 690.0
DENOMINATORS = (1, 2, 4, 10, 100, 1000)


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
    if steps is None or log_choose(len(x), few) > LARGEST_FLOAT:
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
    found = np.flatnonzero(counts[few])
    logs = np.log(counts[few, found])
    if few != size:
        found = steps.sum() - found[::-1]
        logs = logs[::-1]
    return found * unit + size * x[0], logs


def _steps(x: Array) -> tuple[Array | None, float]:
    """Return distances from the smallest record in whole units, and the unit; None without one."""
    from_least = x - x[0]
    rounding = 8 * np.finfo(float).eps * float(np.abs(x).max())
    for parts in DENOMINATORS:
        scaled = from_least * parts
        steps = np.rint(scaled)
        if float(steps.max()) < 2**40 and np.abs(scaled - steps).max() <= rounding * parts:
            whole = steps.astype(np.int64)
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
            return np.asarray(sums / size)
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


def _moments(x: Array, size: int) -> tuple[Array, Array]:
    """Return the sums and the sums of squares of all subsets of a size, by enumeration."""
    flat = itertools.chain.from_iterable(itertools.combinations(range(len(x)), size))
    # The number of rows is given, since -1 would be ambiguous for subsets of no records.
    indices = np.fromiter(flat, dtype=np.intp).reshape(math.comb(len(x), size), size)
    rows = x[indices]
    return rows.sum(axis=1), (rows**2).sum(axis=1)
