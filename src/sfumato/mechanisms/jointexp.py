"""m quantiles of one axis at once: JointExp on lattice edges.

Guarantee: pure epsilon-DP for one person, and (epsilon^2 / 8)-zCDP; the numerical slack is charged
(below).
Sensitivity: D = 2r under replace, 2r (1 - the least gap) under add-remove
(``ranks.joint_sensitivity``). Holds because
    *The law.* Non-decreasing tuples of edges (``distinct``: increasing ones) have weight exp(a
    max(u, M - U)), a = epsilon' / (2 D), u = -sum over j of |n(o_j) - n(o_(j-1)) - n (q_j -
    q_(j-1))|, with M the largest u of any tuple. u and M move by at most D, so max(u, M - U) does.
    With d_j = n(o_j) - n q_j the terms are |d_j - d_(j-1)|, so a tuple with some |d_j| has u <= -2
    |d_j|.
    *The clamp.* U = C / a with C at least 48 above the logarithm of the number of tuples: it is
    reached with a chance below e^-48, and then by its exact law. F = e^-C is the least weight. A
    draw takes either an even tuple, with mass F times their number, and keeps it if u < M - U; or
    one of the chain below, and keeps it if u >= M - U; otherwise it starts afresh. Every tuple with
    u >= M - U has |d_j| <= (U - M) / 2, so the chain needs the edges in such windows only.
    *The chain.* alpha_j(g) sums the weights of all beginnings that end with o_j in group g. It is
    held as beta e^(a A), A the exact integer of the best beginning. Terms are added, never
    subtracted (``scans``), so that beta has a small relative error. k quantiles in a group of w
    edges are C(w + k - 1, k) multisets (``distinct``: C(w, k) sets), and are drawn as one.
    *Slack.* Let every computed factor exp(x), x in [-700, 0], be right to 2^-41, which IEEE
    libraries exceed a thousandfold. A stage then adds at most delta = (32 + edges / 2^14) 2^-41 +
    2^-38 to the error of ln beta. The draws along the chain are exact given the doubles, and their
    denominators are the sums that the doubles stand for, so the errors of a path telescope: ln P of
    every tuple is within eta = 2 (m + 2) delta of the law's. The weights are made for epsilon' =
    epsilon - 4 r eta: a person's r rows may lie in r nodes or labels, each of which adds 2 eta to
    the loss and 4 eta to its range, which zCDP rests on.
Not covered: the time a draw takes depends on the data.
Source: Gillenwater, Joseph, Kulesza, *Differentially Private Quantiles*, ICML 2021, Alg. 1; range
and zCDP: Cesar, Rogers 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import Infeasible, UsageError
from sfumato.mechanisms.ranks import Ranks, joint_sensitivity, settled
from sfumato.mechanisms.scans import NEVER, Terms, exp_of, running, total, windows
from sfumato.numbers import decimal, positive
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.random.weighted import index_by_weight, multiset, subset

DIGITS = 52  # of the rate: exact as a double
LARGEST_CLAMP, REACH = 640.0, 690.0
BEYOND = 48.0


def joint_slack(quantiles: int, edges: int, unit: Unit) -> Fraction:
    """By how much less than its epsilon a selection runs: 4 r eta, where eta bounds how far ln P of
    any tuple is from the stated law.
    """
    stage = Fraction(32, 2**41) + Fraction(edges, 2**55) + Fraction(1, 2**38)
    return 4 * unit.rows_per_person * 2 * (quantiles + 2) * stage


@lru_cache(maxsize=1024)
def tuples(quantiles: int, edges: int, distinct: bool = False) -> int:
    """How many tuples there are to choose from.

    Raises
    ------
    Infeasible
        If there are fewer edges than distinct quantiles, or so many tuples that doubles cannot tell
        the best from the rest.
    """
    if distinct and edges < quantiles:
        raise Infeasible(
            f"{quantiles} distinct edges",
            f"only {edges} are allowed",
            "Ask for fewer quantiles, or on a finer lattice",
        )
    number = (
        math.comb(edges, quantiles) if distinct else math.comb(edges + quantiles - 1, quantiles)
    )
    if math.log(number) + BEYOND + 1 > LARGEST_CLAMP:
        asked = f"{quantiles} quantiles at once over {edges} edges"
        raise Infeasible(
            asked,
            "there are too many tuples to choose from",
            'Ask for fewer, on a coarser lattice, or with method="recursive"',
        )
    return number


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class _Stage:
    """One quantile's window of groups [start, stop): d of each, and the sums of the beginnings that
    enter it or end in it.
    """

    start: int
    stop: int
    offsets: Array
    entered: Terms
    ended: Terms


class JointLaw:
    """The law of a tuple of edges. Made of true counts: it is drawn from and thrown away.

    Parameters
    ----------
    ranks : Ranks
        The allowed edges.
    at : sequence of Fraction
        m increasing quantiles, strictly between 0 and 1.
    epsilon : Fraction
        What the selection spends; above ``joint_slack``.
    unit : Unit
        What one person can change. In a node of a tree, or of a table divided by labels, give what
        ``ranks.nested`` returns.
    distinct : bool
        True: edges increase strictly, so that no box between two of them is empty of volume.
    clamp : float or None
        C, for tests; None: as above.

    Raises
    ------
    Infeasible
        If there are too few edges or too many tuples: both are public.
    UsageError
        If epsilon is at most ``joint_slack``, or the quantiles are no quantiles.

    >>> from sfumato.random import current
    >>> cells = np.full(1000, 1_000_000)
    >>> JointLaw(Ranks.of_counts(cells), [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], Fraction(1), Unit()).draw(current())
    array([250, 500, 750])
    """

    def __init__(
        self,
        ranks: Ranks,
        at: Sequence[Fraction],
        epsilon: Fraction,
        unit: Unit,
        *,
        distinct: bool = False,
        clamp: float | None = None,
    ) -> None:
        self._ranks, self._distinct = ranks, distinct
        self._at, self._whole = settled(at)
        self._number = tuples(len(at), ranks.edges, distinct)
        self._clamp = Fraction(
            math.ceil(math.log(self._number) + BEYOND) if clamp is None else clamp
        )
        self._exact_rate = self._rate_of(positive(epsilon, "epsilon"), unit)
        self._rate = float(self._exact_rate)
        self._span = REACH - float(self._clamp)
        self._stages = self._forward()
        last = self._stages[-1]
        self._finals = Terms(last.ended.exponents - np.abs(last.offsets), last.ended.weights)
        self._best = int(self._finals.exponents.max())

    def _rate_of(self, epsilon: Fraction, unit: Unit) -> Fraction:
        """a per unit of the scaled ranks, rounded down to a double."""
        left = epsilon - joint_slack(len(self._at), self._ranks.edges, unit)
        if left <= 0:
            asked = f"{len(self._at)} quantiles at epsilon {decimal(epsilon)}"
            raise UsageError(
                asked,
                "that is less than the numerical slack",
                "Choose a larger epsilon, or a coarser lattice",
            )
        sensitivity = joint_sensitivity([Fraction(q, self._whole) for q in self._at], unit)
        rate = left / (2 * sensitivity * self._whole)
        unit_bits = DIGITS - (rate.numerator.bit_length() - rate.denominator.bit_length())
        scale = Fraction(2) ** unit_bits
        return Fraction(math.floor(rate * scale)) / scale

    # -- the chain, forwards

    def _forward(self) -> list[_Stage]:
        radius = (
            math.floor(self._clamp / self._exact_rate) - int(self._score(self._near()[None])[0])
        ) // 2
        stages: list[_Stage] = []
        for j, q in enumerate(self._at):
            start, stop = self._window(q, radius)
            offsets = self._ranks.below[start:stop] * self._whole - q * self._ranks.total
            begun = Terms(-np.abs(offsets), np.ones(len(offsets)))
            entered = self._enter(stages[-1], start, offsets) if j else begun
            stages.append(
                _Stage(start, stop, offsets, entered, self._end(stages, start, stop, entered))
            )
        return stages

    def _window(self, q: int, radius: int) -> tuple[int, int]:
        """The groups with |d| <= radius."""
        target, below = q * self._ranks.total, self._ranks.below
        low, high = -((radius - target) // self._whole), (target + radius) // self._whole
        last = self._ranks.total
        return int(np.searchsorted(below, max(low, 0))), int(
            np.searchsorted(below, min(high, last), side="right")
        )

    def _near(self) -> Array:
        """A tuple that is good, if not the best: the edges nearest to the targets, moved apart
        where they must be distinct.
        """
        below, first, m = self._ranks.below, self._ranks.first, len(self._at)
        edges: list[int] = []
        for j, q in enumerate(self._at):
            target = q * self._ranks.total
            above = min(int(np.searchsorted(below, -(-target // self._whole))), len(below) - 1)
            left = max(above - 1, 0)
            nearer = (
                left
                if abs(int(below[left]) * self._whole - target)
                < abs(int(below[above]) * self._whole - target)
                else above
            )
            lowest = edges[-1] + self._distinct if edges else int(first[0])
            highest = int(first[-1]) - 1 - (m - 1 - j if self._distinct else 0)
            edges.append(min(max(int(first[nearer]), lowest), highest))
        return np.array(edges)

    def _score(self, edges: Array) -> Array:
        """u of tuples, int64 ndarray of shape (k, m), in units of 1 / whole: int64 ndarray of shape
        (k,).
        """
        targets = np.array(self._at, dtype=np.int64) * self._ranks.total
        offsets = self._ranks.below[self._ranks.group(edges)] * self._whole - targets
        return np.asarray(-np.abs(np.diff(offsets, axis=1, prepend=0, append=0)).sum(axis=1))

    def _enter(self, before: _Stage, start: int, offsets: Array) -> Terms:
        """Beginnings that come to each group from a lower one: from d below its own, and from d
        above its own.
        """
        size = before.stop - before.start
        lower = np.clip(np.arange(start, start + len(offsets)) - before.start, 0, size)
        lesser = np.minimum(
            np.searchsorted(before.offsets, offsets, side="right"), lower
        )  # with no rows at all every d is 0
        ended, rate, span = before.ended, self._rate, self._span
        parts = []
        reached = np.flatnonzero(lesser)
        if len(reached):
            rising = running(Terms(ended.exponents + before.offsets, ended.weights), rate, span)
            index = lesser[reached] - 1
            parts.append(
                (reached, Terms(rising.exponents[index] - offsets[reached], rising.weights[index]))
            )
        reached = np.flatnonzero(lesser < lower)
        if len(reached):
            falling = Terms(ended.exponents - before.offsets, ended.weights)
            for which, sums in windows(falling, lesser[reached], lower[reached], rate, span):
                parts.append(
                    (reached[which], Terms(sums.exponents + offsets[reached[which]], sums.weights))
                )
        return (
            total([_spread(part, which, len(offsets)) for which, part in parts], rate)
            if parts
            else _nothing(len(offsets))
        )

    def _end(self, stages: list[_Stage], start: int, stop: int, entered: Terms) -> Terms:
        """Beginnings that end in each group: those that came with this quantile, and those that
        came earlier and stayed.
        """
        widths = self._ranks.widths[start:stop]
        j = len(stages)
        parts = [Terms(entered.exponents, entered.weights * widths)]
        for i in range(j - 1, -1, -1):
            low, high = max(start, stages[i].start), min(stop, stages[i].stop)
            if low >= high:
                break
            came, stay = stages[i].entered, (self._at[j] - self._at[i]) * self._ranks.total
            inside = slice(low - stages[i].start, high - stages[i].start)
            ways = self._ways(widths[low - start : high - start], j - i + 1)
            part = Terms(
                np.where(ways > 0, came.exponents[inside] - stay, NEVER),
                came.weights[inside] * ways,
            )
            parts.append(_spread(part, np.arange(low - start, high - start), stop - start))
        return total(parts, self._rate)

    def _ways(self, widths: Array, count: int) -> Array:
        """In how many ways ``count`` quantiles can lie in a group: float64 ndarray."""
        ways = np.ones(len(widths))
        for i in range(count):
            ways *= (widths - i if self._distinct else widths + i) / (i + 1)
        return np.maximum(ways, 0.0)

    # -- the draw, backwards

    def draw(self, bits: Bits) -> Array:
        """Choose a tuple: int64 ndarray of shape (m,), in order."""
        weights = self._finals.weights * exp_of(self._rate, self._finals.exponents - self._best)
        masses = np.array([math.exp(math.log(self._number) - float(self._clamp)), weights.sum()])
        while True:
            chained = index_by_weight(masses, bits) == 1
            edges = (
                self._follow(int(index_by_weight(weights, bits)), bits)
                if chained
                else self._even(bits)
            )
            if chained == self._above_clamp(edges):
                return edges

    def _even(self, bits: Bits) -> Array:
        pick = subset if self._distinct else multiset
        return np.array(pick(self._ranks.edges, len(self._at), bits), dtype=np.int64) + int(
            self._ranks.first[0]
        )

    def _above_clamp(self, edges: Array) -> bool:
        return (self._best - int(self._score(edges[None])[0])) * self._exact_rate <= self._clamp

    def _follow(self, at: int, bits: Bits) -> Array:
        """Go back from the last quantile's place in its window: where the run in its group began,
        and where from it came.
        """
        edges: list[int] = []
        j = len(self._stages) - 1
        while True:
            group = self._stages[j].start + at
            i = self._run(j, group, bits)
            edges = [
                int(self._ranks.first[group]) + place
                for place in self._places(group, j - i + 1, bits)
            ] + edges
            if i == 0:
                return np.array(edges, dtype=np.int64)
            at, j = self._came_from(i, group, bits), i - 1

    def _run(self, j: int, group: int, bits: Bits) -> int:
        """With which quantile the run in this group began."""
        starts, exponents, weights = [], [], []
        width = self._ranks.widths[group : group + 1]
        for i in range(j, -1, -1):
            stage = self._stages[i]
            if not stage.start <= group < stage.stop:
                break
            weight = float(
                stage.entered.weights[group - stage.start] * self._ways(width, j - i + 1)[0]
            )
            if weight:
                starts.append(i)
                weights.append(weight)
                exponents.append(
                    int(stage.entered.exponents[group - stage.start])
                    - (self._at[j] - self._at[i]) * self._ranks.total
                )
        if len(starts) == 1:
            return starts[0]
        differences = np.array(exponents) - max(exponents)
        return starts[index_by_weight(np.array(weights) * exp_of(self._rate, differences), bits)]

    def _places(self, group: int, count: int, bits: Bits) -> list[int]:
        width = int(self._ranks.first[group + 1] - self._ranks.first[group])
        return (subset if self._distinct else multiset)(width, count, bits)

    def _came_from(self, i: int, group: int, bits: Bits) -> int:
        """The place in the previous window from which quantile i came to this group."""
        stage, before = self._stages[i], self._stages[i - 1]
        size = min(group, before.stop) - before.start
        here = int(stage.offsets[group - stage.start])
        exponents = before.ended.exponents[:size] - np.abs(here - before.offsets[:size])
        differences = exponents - int(stage.entered.exponents[group - stage.start])
        return index_by_weight(before.ended.weights[:size] * exp_of(self._rate, differences), bits)

    def log_probabilities(self, edges: Array) -> Array:
        """ln P of tuples, int64 ndarray of shape (k, m): float64 ndarray of shape (k,).

        For audits: it holds true counts.
        """
        weights = self._finals.weights * exp_of(self._rate, self._finals.exponents - self._best)
        exponents = (self._best - self._score(edges)) * self._rate
        return np.asarray(
            -np.minimum(exponents, float(self._clamp)) - math.log(float(weights.sum()))
        )


def _nothing(size: int) -> Terms:
    return Terms(np.full(size, NEVER), np.zeros(size))


def _spread(terms: Terms, where: Array, size: int) -> Terms:
    """Lay sums into an array of empty ones."""
    laid = _nothing(size)
    laid.exponents[where], laid.weights[where] = terms.exponents, terms.weights
    return laid
