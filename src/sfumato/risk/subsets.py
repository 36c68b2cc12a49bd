"""Sums over all subsets of one size: counted on a lattice, or made from two halves."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import InternalError
from sfumato.risk.queries import Query
from sfumato.risk.universe import log_choose

MOST_STATES = 20_000_000  # sums times sizes that are counted at once
MOST_WORK = 6_000_000_000
LARGEST_FLOAT = 690.0  # natural logarithm of a count that a float holds
DENOMINATORS = (1, 2, 4, 10, 100, 1000)


def lattice_sums(x: Array, size: int) -> tuple[Array, Array] | None:
    """Sums of all subsets of ``size`` records that lie on a lattice, and ln of how many subsets have each.

    Parameters
    ----------
    x : float64 ndarray of shape (n,)
        Ascending.

    Returns
    -------
    (sums, logs) or None
        None, if the records are neither whole numbers nor short decimals, or the count would be too long.

    Holds because: the subsets of k of the first i records with sum s either leave record i out or take it:
    count(i, k, s) = count(i-1, k, s) + count(i-1, k-1, s - x[i]). The complement of a subset has the rest of the sum, so
    the smaller of size and n - size is counted. Counts are floats: exact to 2^53, then to a few units in the last place.
    """
    steps, unit = _steps(x)
    few = min(size, len(x) - size)
    if steps is None or log_choose(len(x), few) > LARGEST_FLOAT:
        return None
    reach = int(np.sort(steps)[-few:].sum()) + 1
    if reach * (few + 1) > MOST_STATES or reach * few * len(x) > MOST_WORK:
        return None
    counts = np.zeros((few + 1, reach))
    counts[0, 0] = 1
    for done, step in enumerate(steps.tolist()):
        for k in range(min(few, done + 1), 0, -1):
            counts[k, step:] += counts[k - 1, : reach - step]
    found = np.flatnonzero(counts[few])
    logs = np.log(counts[few, found])
    if few != size:
        found, logs = steps.sum() - found[::-1], logs[::-1]
    return found * unit + size * x[0], logs


def _steps(x: Array) -> tuple[Array | None, float]:
    """Distances from the smallest record in whole units, and the unit; None, if there is no short one."""
    from_least = x - x[0]
    reach = float(np.abs(x).max())
    for parts in DENOMINATORS:
        steps = np.rint(from_least * parts)
        if (
            float(steps.max()) < 2**40
            and np.abs(from_least * parts - steps).max() <= 8 * np.finfo(float).eps * reach * parts
        ):
            whole = steps.astype(np.int64)
            common = int(np.gcd.reduce(whole)) or 1
            return whole // common, common / parts
    return None, 1.0


def split_in_half(x: Array, size: int, query: Query) -> Array:
    """Answers of all subsets of ``size`` records, in no useful order: float64 ndarray of shape (subsets,)."""
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


def spread(sums: Array, squares: Array, size: int, reach: float, query: Query) -> Array:
    """Variances or standard deviations from sums and sums of squares; what rounding could have made is 0."""
    variance = np.asarray(squares / size - (sums / size) ** 2)
    variance[variance < 64 * np.finfo(float).eps * reach**2] = 0
    return np.sqrt(variance) if query.name == "std" else variance


def subset_moments(x: Array, size: int) -> tuple[Array, Array]:
    """Sums and sums of squares of all subsets of ``size`` records: two float64 ndarrays of shape (subsets,).

    Holds because: those of a subset are added up from its parts in two halves of the universe; those of a large subset are
    what its complement leaves of the whole.
    """
    if 2 * size > len(x):
        sums, squares = subset_moments(x, len(x) - size)
        return float(x.sum()) - sums, float((x**2).sum()) - squares
    half = len(x) // 2
    both: list[list[Array]] = [[], []]
    for taken in range(max(0, size - len(x) + half), min(size, half) + 1):
        left, right = _moments(x[:half], taken), _moments(x[half:], size - taken)
        for parts, one, other in zip(both, left, right, strict=True):
            parts.append(np.add.outer(one, other).reshape(-1))
    return np.concatenate(both[0]), np.concatenate(both[1])


def _moments(x: Array, size: int) -> tuple[Array, Array]:
    """The sums and the sums of squares of all subsets of a size, one by one."""
    flat = itertools.chain.from_iterable(itertools.combinations(range(len(x)), size))
    rows = x[np.fromiter(flat, dtype=np.intp).reshape(math.comb(len(x), size), size)]
    return rows.sum(axis=1), (rows**2).sum(axis=1)
