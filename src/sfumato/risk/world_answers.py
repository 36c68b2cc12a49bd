"""The answers of all possible worlds, and how many worlds give each.

Few worlds are enumerated, and many are counted. Two answers that differ by no more than rounding
can explain (64 units in the last place of the largest record) are one answer. The same sum, added
up in another order, must not look like a way to tell two worlds apart.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln

from sfumato.basics import Array, as_floats
from sfumato.errors import Infeasible, UsageError
from sfumato.risk.distinct_answers import Answers
from sfumato.risk.sensitivity import FEW
from sfumato.risk.subsets import lattice_sums, split_in_half, subsets_of
from sfumato.risk.universe import ROUNDING, Column, Query, answers, interpolate

OF_SUMS = ("sum", "mean")
# The most worlds that are listed record by record, and the most records in all of them.
MOST_LISTED = 1_000_000
MOST_NUMBERS = 40_000_000


def distinct_answers(column: Column, query: Query) -> Answers:
    """Return all answers and how many worlds give each, under a uniform prior.

    Raises
    ------
    Infeasible
        If no exact count is within the limits.
    """
    if query.name == "count":
        return Answers(np.array([float(column.size)]), np.array([column.log_worlds]))
    # So many pairs of neighbouring order statistics at most.
    if query.at is not None and _pairs(query, column.n, column.size) <= 4_000_000:
        return _order_statistics(column.ordered, column.size, query)
    if column.leaves_one_out and (column.n > FEW or query.name in OF_SUMS):
        without = leave_one_out(column.centred, query)
        return collapse(without, _tolerance_without_one(without, query))
    if column.worlds <= MOST_LISTED and column.worlds * column.size <= MOST_NUMBERS:
        rows = subsets_of(_shiftless(column, query), column.size)
        return collapse(answers(query, rows), _tolerance(column, query))
    return _counted(column, query)


def _tolerance_without_one(listed: Array, query: Query) -> float:
    """Return by how much equal answers may differ where one record is left out of all."""
    # The differences of sums and means are exact there.
    return 0.0 if query.name in OF_SUMS else ROUNDING * float(np.abs(listed).max())


def _counted(column: Column, query: Query) -> Answers:
    """Return the answers of more worlds than are listed, or refuse."""
    counted = lattice_sums(column.ordered, column.size) if query.name in OF_SUMS else None
    if counted is not None:
        sums, logs = counted
        return Answers(sums / column.size if query.name == "mean" else sums, logs)
    # So many worlds at most are made from two halves of the universe.
    if query.at is None and column.worlds <= 20_000_000:
        return collapse(
            split_in_half(column.centred, column.size, query), _tolerance(column, query)
        )
    raise too_many(column, query)


def too_many(column: Column, query: Query) -> Infeasible:
    """Return the refusal of an exact answer, which says what is possible."""
    about = f"there are about 10^{column.log_worlds / np.log(10):.0f} worlds"
    loose = 'Ask for the loose bound (bound="loose"), which errs on the safe side'
    return Infeasible(
        f"the exact risk of the {query} of {column.size:,} out of {column.n:,} records",
        f"{about}, and this query has no count of them within the limits",
        f"{loose}, or take size = {column.n - 1:,}",
    )


def _shiftless(column: Column, query: Query) -> Array:
    """Return the records in order, centred where a common shift does not matter."""
    return column.ordered if query.name in ("sum", "mean") else column.centred


def _tolerance(column: Column, query: Query) -> float:
    largest = float(np.abs(_shiftless(column, query)).max())
    if query.name == "sum":
        return ROUNDING * largest * column.size
    return ROUNDING * (largest**2 if query.name == "var" else largest)


def collapse(values: Array, tolerance: float = 0.0, weight: Array | None = None) -> Answers:
    """Bring the answers of worlds to distinct ones in ascending order.

    Parameters
    ----------
    values : float64 ndarray of shape (worlds,)
    tolerance : float
        Neighbouring answers that differ by at most this are one answer.
    weight : float64 ndarray of shape (worlds,), optional
        The prior of each world. None: worlds are counted.
    """
    if weight is None:
        values = np.sort(values)
    else:
        order = np.argsort(values, kind="stable")
        # A world that is ruled out has no answer to be told apart from.
        order = order[weight[order] > 0]
        values = values[order]
        weight = weight[order]
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > tolerance)
    if weight is None:
        if len(starts) == len(values):
            return Answers(values, np.zeros(len(values)))
        return Answers(values[starts], np.log(np.diff(starts, append=len(values))))
    log_sums = np.log(np.add.reduceat(weight, starts))
    log_tops = np.log(np.maximum.reduceat(weight, starts))
    return Answers(values[starts], log_sums, log_tops)


def leave_one_out(x: Array, query: Query) -> Array:
    """Return the answer without each record: a float64 ndarray of shape (n,).

    Sum, mean, var and std lack a common shift. Order statistics need x in ascending order, and skip
    the record that is missing. Holds because, with n' = n - 1 and d = x - mean: sum and mean fall
    by x and by x / n'; and the sum of squares about the mean falls by d^2 n / n'.
    """
    n = len(x)
    left = n - 1
    match query.name:
        case "count":
            return np.full(n, float(left))
        case "sum":
            return -x
        case "mean":
            return x / -left
        case "var" | "std":
            squares = (x - x.mean()) ** 2
            drop = squares * (n / left**2)
            if query.name == "var":
                return np.asarray(-drop)
            # sqrt(a) - sqrt(a - b) = b / (sqrt(a) + sqrt(a - b)), without cancellation
            whole = squares.sum() / left
            roots = math.sqrt(whole) + np.sqrt(np.clip(whole - drop, 0, None))
            # Where both roots are 0, all records are equal and nothing drops: the quotient is 0.
            return np.asarray(-drop / np.maximum(roots, np.finfo(float).tiny))
        case "median" | "percentile":
            low, weight = query.rank(left)
            missing = np.arange(n)
            above = np.minimum(low + 1 + (missing <= low + 1), n - 1)
            return interpolate(x[low + (missing <= low)], x[above], weight)


def _pairs(query: Query, n: int, size: int) -> int:
    """Return how many pairs of records an interpolated order statistic may lie between."""
    positions = n - size + 1
    return 0 if query.rank(size)[1] == 0 else positions * (positions + 1) // 2


def _order_statistics(x: Array, size: int, query: Query) -> Answers:
    """Count the worlds by the index of their order statistic in the universe.

    Holds because: record i of n (from 0) has rank k of size exactly if k of the i records below it
    and size - k - 1 of those above are taken: C(i, k) C(n-1-i, size-k-1). Records i < j have ranks
    k and k + 1 exactly if none between is taken: C(i, k) C(n-1-j, size-k-2). Equal records stay
    distinct, and their counts add up.
    """
    n = len(x)
    rank, weight = query.rank(size)
    if weight == 0:
        index = np.arange(rank, n - size + rank + 1)
        log_above = _log_choose(n - 1 - index, size - rank - 1)
        return _merge(x[index], _log_choose(index, rank) + log_above)
    first, second = np.triu_indices(n - size + 1)
    low = first + rank
    high = second + rank + 1
    logs = _log_choose(low, rank) + _log_choose(n - 1 - high, size - rank - 2)
    # Interpolation rounds, so that equal answers may differ by a rounding error.
    tolerance = ROUNDING * float(np.abs(x).max())
    return _merge(interpolate(x[low], x[high], weight), logs, tolerance)


def _log_choose(n: Array, k: int) -> Array:
    """Return ln C(n, k) for an array of n >= k >= 0."""
    above = n.astype(float)
    return np.asarray(gammaln(above + 1) - gammaln(k + 1.0) - gammaln(above - k + 1))


def _merge(values: Array, logs: Array, tolerance: float = 0.0) -> Answers:
    order = np.argsort(values, kind="stable")
    values = values[order]
    logs = logs[order]
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > tolerance)
    if len(starts) == len(values):
        return Answers(values, logs)
    return Answers(values[starts], np.logaddexp.reduceat(logs, starts))


def listed_answers(column: Column, query: Query) -> Array:
    """Return the answer of every world, in the order of ``itertools.combinations``.

    Returns
    -------
    float64 ndarray of shape (worlds,)

    Raises
    ------
    Infeasible
        If there are more worlds than can be listed.
    """
    if column.worlds * column.size <= MOST_NUMBERS and column.worlds <= MOST_LISTED:
        rows = subsets_of(column.records, column.size)
        return answers(query, np.sort(rows, axis=1) if query.at is not None else rows)
    if column.leaves_one_out:
        return _listed_leave_one_out(column, query)
    raise Infeasible(
        f"beliefs about every {column.size:,} out of {column.n:,} records",
        f"there are about 10^{column.log_worlds / np.log(10):.0f} worlds, "
        f"and at most {MOST_LISTED:,} are listed",
        f"Take size = {column.n - 1:,}, or ask for the bound, which needs no list",
    )


def _listed_leave_one_out(column: Column, query: Query) -> Array:
    """Return the answers without each record, with the shift that ``leave_one_out`` lacks."""
    listed = _without_each(column, query)
    middle = column.ordered[column.n // 2]
    left = column.n - 1
    match query.name:
        case "sum":
            listed += column.centred.sum() + middle * left
        case "mean":
            listed += column.centred.sum() / left + middle
        case "var":
            listed += ((column.centred - column.centred.mean()) ** 2).sum() / left
        case "std":
            listed += math.sqrt(((column.centred - column.centred.mean()) ** 2).sum() / left)
        case "median" | "percentile":
            listed += middle
    return listed


def _without_each(column: Column, query: Query) -> Array:
    """Return what ``leave_one_out`` does, in the order of combinations.

    The first combination lacks the last record, and the last one lacks the first.
    """
    listed = np.empty(column.n)
    listed[np.argsort(column.records, kind="stable")] = leave_one_out(column.centred, query)
    return listed[::-1].copy()


def prior_answers(column: Column, query: Query, prior: np.typing.ArrayLike) -> Answers:
    """Return distinct answers under a prior that is given world by world."""
    weight = checked_prior(prior, column)
    if column.leaves_one_out and column.n > FEW:
        listed = _without_each(column, query)
        return collapse(listed, _tolerance_without_one(listed, query), weight)
    return collapse(listed_answers(column, query), _tolerance(column, query), weight)


def checked_prior(prior: np.typing.ArrayLike, column: Column) -> Array:
    """Read a prior: the probabilities of all worlds, which add up to 1."""
    remedy = "Give one probability per world"
    if column.n <= 64:
        remedy = f"Give {column.worlds:,} probabilities, in the order of itertools.combinations"
    weight = as_floats(prior)
    if weight.shape != (column.worlds,):
        raise UsageError("a prior", "it does not have one entry for each world", remedy)
    if not np.isfinite(weight).all() or (weight < 0).any() or abs(weight.sum() - 1) > 1e-6:
        raise UsageError(
            "a prior", "its entries must be probabilities that add up to 1", "Divide it by its sum"
        )
    # A prior that is written in decimals misses 1 by their rounding.
    return np.asarray(weight / weight.sum())
