"""The distinct answers of the worlds, how well they can be told apart, and the epsilon for a risk.

*Sums in O(n)* (``Answers``).

The risk of answer i needs S(i) = sum over j of w[j] exp(-rate |v[i] - v[j]|). It is the sum of two
first-order recurrences, one from each side: x[i] = exp(-rate (v[i] - v[i-1])) x[i-1] + w[i]. They
run on chunks side by side. The answers are laid out with one chunk per column, so that each step is
one numpy operation over all chunks. Then the ends of the chunks are chained by the same method, and
carried into the next chunk. Every decay lies in [0, 1] and every term is positive, so nothing
overflows and nothing cancels. Where the weights span more than the range of floats, the same steps
run on logarithms.

*The search for the largest epsilon within a risk* (``tight_epsilon``), in a few scans of all
answers.

Every S_i(rate) falls with the rate, and ln S_i is convex. The risk is within rho as long as every
S_i is at least top_i / rho. Each answer alone thus allows rates up to a root of its own, and the
largest rate is the least of these roots.

The search starts from the loose bound, which is safe. It scans for the worst answer, goes to its
root and scans again. The rate can only fall, and when the same answer is the worst again, its root
is the least. A root takes a few passes over one answer's distances: Newton's method, which by
convexity is monotone from the safe side.

The answers of all possible worlds, and how many worlds give each.

Few worlds are enumerated, and many are counted. Two answers that differ by no more than rounding
can explain (64 units in the last place of the largest record) are one answer. The same sum, added
up in another order, must not look like a way to tell two worlds apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from sfumato.basics import Array, Exactly, as_floats, probability, root
from sfumato.errors import Infeasible, InternalError, UsageError
from sfumato.risk.sensitivity import FEW, lattice_sums, split_in_half, subsets_of
from sfumato.risk.universe import ROUNDING, Column, Query, answers, interpolate

# --- answers --------------------------------------------------------------------------------------

CHUNK = 64
# The widest range of ln of the weights for which plain floats are used.
SPAN = 500.0


class Worst(NamedTuple):
    """The index of the worst answer, and the logarithm of its risk."""

    at: int
    log_risk: float


class _Ring(NamedTuple):
    """How numbers are multiplied and added: plain numbers, or logarithms of them."""

    times: np.ufunc
    plus: np.ufunc
    zero: float


_PLAIN = _Ring(np.multiply, np.add, 0.0)


@dataclass(frozen=True, eq=False)
class Answers:
    """The distinct answers of the worlds in ascending order, and the prior of each.

    Attributes
    ----------
    values : float64 ndarray of shape (answers,)
        Only differences matter, so a common shift may be missing.
    log_weight : float64 ndarray of shape (answers,)
        ln of the sum of the weights of the worlds with that answer. Under a uniform prior every
        world has weight 1.
    log_top : float64 ndarray of shape (answers,) or None
        ln of the largest weight among these worlds. None: 0, as under a uniform prior.
    """

    values: Array
    log_weight: Array
    log_top: Array | None = None

    @property
    def top(self) -> Array | float:
        return 0.0 if self.log_top is None else self.log_top

    @cached_property
    def log_total(self) -> float:
        return log_sum(self.log_weight)

    @cached_property
    def at_zero(self) -> Worst:
        """The worst case of an answer that says nothing."""
        best = 0 if self.log_top is None else int(np.argmax(self.log_top))
        return Worst(best, self.top_of(best) - self.log_total)

    @cached_property
    def at_infinity(self) -> Worst:
        """The worst case of an exact answer."""
        gain = self.top - self.log_weight
        best = int(np.argmax(gain))
        return Worst(best, float(gain[best]))

    def top_of(self, index: int) -> float:
        """Return ln of the largest weight among the worlds of one answer."""
        return 0.0 if self.log_top is None else float(self.log_top[index])

    def limit(self, index: int) -> float:
        """Return ln of the risk at one answer as the rate grows."""
        return self.top_of(index) - float(self.log_weight[index])

    def worst(self, rate: float) -> Worst:
        """Return the worst case over all outputs and worlds; ``rate`` is epsilon / sensitivity."""
        if rate == 0 or len(self.values) == 1:
            return self.at_zero
        # So few answers are compared pair by pair.
        if len(self.values) <= 256:
            exponents = self.log_weight - rate * np.abs(self.values[:, None] - self.values)
            return self._best(np.logaddexp.reduce(exponents, axis=1))
        ring = _PLAIN if np.ptp(self.log_weight) < SPAN else _Ring(np.add, np.logaddexp, -np.inf)
        sums = self._sums(rate, ring)
        if ring is _PLAIN:
            # Return the worst case from sums that are not logarithms. With equal tops the least
            # sum is the worst, so that only one logarithm is taken.
            base = float(self.log_weight.max())
            if self.log_top is not None:
                return self._best(np.log(_flat(sums, len(self.values))) + base)
            rows, columns = sums.shape
            # The last column ends in padding, which must not be the least.
            in_last = len(self.values) - (columns - 1) * rows
            sums[in_last:, -1] = np.inf
            row, column = divmod(int(np.argmin(sums)), columns)
            return Worst(column * rows + row, -float(np.log(sums[row, column])) - base)
        return self._best(_flat(sums, len(self.values)))

    def _best(self, log_sums: Array) -> Worst:
        gain = self.top - log_sums
        best = int(np.argmax(gain))
        return Worst(best, float(gain[best]))

    def _sums(self, rate: float, ring: _Ring) -> Array:
        decays = self._gaps * -rate
        weights = self._weights[ring.zero]
        if ring is _PLAIN:
            np.exp(decays, out=decays)
        total = _scan(decays[:-1], weights, ring)
        # From the other side: rows and columns are reversed, scanned and reversed again.
        reversed_sums = _scan(decays[:0:-1, ::-1], weights[::-1, ::-1], ring)
        right = reversed_sums[::-1, ::-1]
        # Each answer counts once, so that the right side is added as it reaches the answer before.
        for row in range(len(weights) - 1):
            ring.plus(total[row], ring.times(decays[row + 1], right[row + 1]), out=total[row])
        following = np.append(right[0, 1:], ring.zero)
        total[-1] = ring.plus(total[-1], ring.times(decays[-1], following))
        return total

    @cached_property
    def _gaps(self) -> Array:
        """Distances from the answer before: an ndarray of shape (chunk + 1, chunks).

        The last row holds the distance at which the next chunk begins.
        """
        gaps = _laid_out(np.diff(self.values, prepend=-np.inf), np.inf)
        return np.vstack([gaps, np.append(gaps[0, 1:], np.inf)])

    @cached_property
    def _weights(self) -> dict[float, Array]:
        if np.ptp(self.log_weight) < SPAN:
            return {0.0: _laid_out(np.exp(self.log_weight - self.log_weight.max()), 0.0)}
        return {-np.inf: _laid_out(self.log_weight, -np.inf)}

    def one(self, index: int, rate: float) -> tuple[float, float]:
        """Return ln S of one answer at a rate, and its slope in the rate.

        ln S is a log-sum-exp of lines, so it is convex and decreasing.
        """
        distances = np.abs(self.values - self.values[index])
        terms = distances * -rate
        terms += self.log_weight
        peak = float(terms.max())
        terms -= peak
        np.exp(terms, out=terms)
        total = float(terms.sum())
        return peak + float(np.log(total)), -float(terms @ distances) / total


def log_sum(logs: Array) -> float:
    """Return ln of the sum of exponentials."""
    peak = float(logs.max())
    return peak + float(np.log(np.exp(logs - peak).sum()))


def _laid_out(values: Array, padding: float) -> Array:
    """Lay out chunks as columns: an ndarray of shape (chunk, chunks) with contiguous rows."""
    columns = -(-len(values) // CHUNK)
    padded = np.full(columns * CHUNK, padding)
    padded[: len(values)] = values
    return np.ascontiguousarray(padded.reshape(columns, CHUNK).T)


def _flat(laid: Array, size: int) -> Array:
    return laid.T.reshape(-1)[:size]


def _scan(decays: Array, weights: Array, ring: _Ring) -> Array:
    """Run x[i] = decay[i] x[i-1] + weight[i] down the columns, one column after another."""
    sums = np.empty_like(weights)
    sums[0] = weights[0]
    # What a value decays to on its way through a column.
    through = decays[0].copy()
    step = np.empty(weights.shape[1])
    for row in range(1, len(weights)):
        ring.times(decays[row], sums[row - 1], out=step)
        ring.plus(step, weights[row], out=sums[row])
        ring.times(through, decays[row], out=through)
    carry = _chain(through, sums[-1], ring)
    for row in range(len(weights)):
        ring.times(carry, decays[row], out=carry)
        ring.plus(sums[row], carry, out=sums[row])
    return sums


def _chain(decays: Array, weights: Array, ring: _Ring) -> Array:
    """Return what enters each column from those before it."""
    if len(weights) > CHUNK:
        # Padding has weight zero, so that its decay changes nothing.
        ends = _scan(_laid_out(decays, ring.zero), _laid_out(weights, ring.zero), ring)
        flat = _flat(ends, len(weights))
        return np.append(ring.zero, flat[:-1])
    entering = np.empty_like(weights)
    x = ring.zero
    for i in range(len(weights)):
        entering[i] = x
        x = ring.plus(ring.times(decays[i], x), weights[i])
    return entering


# --- the search -----------------------------------------------------------------------------------

# The relative width of the bracket whose lower end is returned.
CLOSE = 1e-9
# A risk that exceeds a limit by less than this meets it.
LEEWAY = 1e-12
MOST_SCANS = 200


def read_risk(risk: Exactly) -> float:
    """Read a risk in (0, 1)."""
    return float(probability(risk, "risk"))


def loose_epsilon(odds: float, slope: float, risk: float) -> float:
    """Return the epsilon at which the loose bound reaches the risk.

    ``odds`` is ln of the odds against the likeliest world, and ``slope`` is Dv / Df.
    """
    gain = odds + math.log(risk) - math.log1p(-risk)
    if gain < -LEEWAY:
        log_prior = -math.log1p(math.exp(odds)) if odds < 700 else -odds
        raise too_low(risk, math.exp(log_prior))
    return math.inf if slope == 0 else max(gain, 0.0) / slope


def too_low(risk: float, prior: float) -> Infeasible:
    """Return the refusal of a risk below what the adversary believes beforehand."""
    enough = f"Allow a risk of at least {prior:.6g}, which is {prior - risk:.6g} more"
    return Infeasible(
        f"a disclosure risk of {risk:.6g}",
        f"the likeliest world has a probability of {prior:.6g} before anything is published",
        f"{enough}, or take a larger universe",
    )


def tight_epsilon(answers: Answers, scale: float, risk: float) -> float:
    """Return the largest epsilon whose tight bound is within the risk."""
    goal = math.log(risk)
    if answers.at_zero.log_risk > goal + LEEWAY:
        raise too_low(risk, math.exp(answers.at_zero.log_risk))
    if len(answers.values) == 1 or scale == 0 or answers.at_infinity.log_risk <= goal + LEEWAY:
        return math.inf
    if answers.at_zero.log_risk >= goal - LEEWAY:
        return 0.0
    return _settle(answers, scale, risk, _largest_rate(answers, goal) * scale)


def _largest_rate(answers: Answers, goal: float) -> float:
    """Return the least of the roots of the single answers."""
    apart = float(answers.values[-1] - answers.values[0])
    top = answers.at_zero.log_risk
    # The rate at which the loose bound reaches the goal: no answer's risk is above it there.
    log_odds = math.log(-math.expm1(top)) - top
    safe = max((log_odds + goal - math.log1p(-math.exp(goal))) / apart, 0.0)
    index = answers.worst(safe).at
    if answers.limit(index) <= goal + LEEWAY:
        # This answer's risk never reaches the goal; that of the worst exact answer does.
        index = answers.at_infinity.at
    rate = _root(answers, index, goal, safe, safe)
    for _ in range(MOST_SCANS):
        worst = answers.worst(rate)
        if worst.at == index or worst.log_risk <= goal + LEEWAY:
            return rate
        index = worst.at
        rate = _root(answers, index, goal, safe, rate)
    raise InternalError("the search for epsilon did not end: please report it")


def _root(answers: Answers, index: int, goal: float, safe: float, start: float) -> float:
    """Return the rate at which one answer's risk reaches the goal."""
    top = answers.top_of(index)
    rate = start
    for _ in range(MOST_SCANS):
        log_sum, slope = answers.one(index, rate)
        excess = log_sum - (top - goal)
        # All other answers have decayed to nothing, so no larger rate changes the sum any more.
        if slope == 0:
            break
        step = -excess / slope
        if abs(excess) <= 1e-13 or abs(step) <= 1e-14 * rate:
            break
        # No root lies below ``safe``: there the loose bound already keeps every risk within the
        # goal.
        rate = max(rate + step, safe)
    return rate


def _settle(answers: Answers, scale: float, limit: float, epsilon: float) -> float:
    """Return the lower end of a bracket of relative width 1e-9 around the largest epsilon.

    The risk at the lower end, as it is computed, is within the limit; that at the upper end is not.
    """

    def within(level: float) -> bool:
        return math.exp(answers.worst(level / scale).log_risk) <= limit

    low = epsilon
    high = math.inf
    step = 1e-13
    while not within(low):
        high = low
        low *= 1 - step
        step *= 8
    if high > low * (1 + CLOSE):
        step = CLOSE / 2
        high = min(high, low * (1 + step))
        while within(high) and step < 1:
            low = high
            step *= 4
            high = low * (1 + step)
    return root(lambda level: not within(level), low, high, CLOSE)[0]


# --- answers of all worlds ------------------------------------------------------------------------

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
        # Worlds are counted by the index of their order statistic in the universe. Holds because:
        # record i of n (from 0) has rank k of size exactly if k of the i records below it and
        # size - k - 1 of those above are taken: C(i, k) C(n-1-i, size-k-1). Records i < j have
        # ranks k and k + 1 exactly if none between is taken: C(i, k) C(n-1-j, size-k-2). Equal
        # records stay distinct, and their counts add up.
        n = len(column.ordered)
        rank, weight = query.rank(column.size)
        if weight == 0:
            highest = n - column.size + rank
            index = np.arange(rank, highest + 1)
            log_above = _log_choose(n - 1 - index, column.size - rank - 1)
            return _merge(column.ordered[index], _log_choose(index, rank) + log_above)
        first, second = np.triu_indices(n - column.size + 1)
        low = first + rank
        high = second + rank + 1
        logs = _log_choose(low, rank) + _log_choose(n - 1 - high, column.size - rank - 2)
        # Interpolation rounds, so that equal answers may differ by a rounding error.
        tolerance = ROUNDING * float(np.abs(column.ordered).max())
        return _merge(
            interpolate(column.ordered[low], column.ordered[high], weight), logs, tolerance
        )
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
        # The answers without each record, with the shift that ``leave_one_out`` lacks.
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
    raise Infeasible(
        f"beliefs about every {column.size:,} out of {column.n:,} records",
        f"there are about 10^{column.log_worlds / np.log(10):.0f} worlds, "
        f"and at most {MOST_LISTED:,} are listed",
        f"Take size = {column.n - 1:,}, or ask for the bound, which needs no list",
    )


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
