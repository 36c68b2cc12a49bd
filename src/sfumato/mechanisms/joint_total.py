"""m quantiles of one axis at once, given a noisy number of its rows: nearer than JointExp.

JointExp's utility compares the rows of each gap between quantiles with a share of the true number
of rows n. One row more changes a gap and n, and so the share of every gap: the sensitivity is 2r (1
- the least gap). Here a noisy number of rows is paid for first. A tuple of edges o and a number t
near the noisy one have the utility u = -sum over the gaps of |n_l - g_l t|, with n_l rows in gap l,
which shall hold a share g_l of t rows. One row more changes one n_l by 1 and nothing else, so the
sensitivity is r.

Guarantee: pure epsilon-DP for one person, and (epsilon^2 / 8)-zCDP, beside what the noisy number of
rows costs; numerical slack is charged.
Sensitivity: r under add-remove, 2r under replace, for all tuples and all numbers t.
Holds because
    *The law.* Pairs (o, t) have weight exp(a max(u, M - U)), a = epsilon' / (2 D), where M is the
    largest u of any pair: the exponential mechanism. The numbers t are given: they depend on what
    was paid for before. t is drawn with the tuple and forgotten. u and M move by at most D, so
    max(u, M - U) does.
    *The draw.* Given t, the tuples have the chain of ``jointexp``, with targets that are shares of
    t and an end that is n - t off. One of the chains is drawn by the sum of its weights, and then a
    tuple along it; or an even pair. Pairs are kept as there, so that the weight of each comes from
    one of the two. u <= -|n - t|, so numbers with |n - t| > U - M need no chain.
    *Slack.* ln P of every pair is within eta of the law's, as in ``jointexp``, with one stage more
    for the sum over t. A tuple's P is the sum over its pairs, whose errors have the same bound.
Why it is nearer: the terms n_l - g_l t are nearly independent Laplace draws of scale 2r / epsilon
where edges lie densely. JointExp's have the scale 4r (1 - least gap) / epsilon, and a sum of 0,
which takes little of it back. Several numbers t let the sum of the terms be what suits the tuple.
Not covered: the time a draw takes depends on the data.
Source: the chain and the clamp: Gillenwater, Joseph, Kulesza, ICML 2021, and ``jointexp``;
utilities that are norms of what one row changes: Hardt, Talwar, STOC 2010.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms.jointexp import (
    JointLaw,
    clamp_of,
    joint_rate,
    joint_selection,
    joint_slack,
    tuples,
)
from sfumato.mechanisms.noise import Script
from sfumato.mechanisms.selection import Ranks, common_denominator
from sfumato.privacy import Unit
from sfumato.random.bits import Bits
from sfumato.random.discrete import index_by_weight, integer_below


def total_slack(quantiles: int, edges: int, unit: Unit) -> Fraction:
    """By how much less than its epsilon a selection runs: that of one quantile more."""
    return joint_slack(quantiles + 1, edges, unit)


def step_of_totals(quantiles: int, epsilon: Fraction, unit: Unit) -> int:
    """The public step between numbers of rows.

    >>> step_of_totals(3, Fraction(4, 5), Unit())
    14
    """
    # A Laplace draw of scale b has the variance 2 b^2; there is one for each gap.
    deviation = math.sqrt(8 * (quantiles + 1)) * float(unit.rows_per_person / epsilon)
    # The step is two standard deviations of the sum of the gaps' errors: a smaller one makes more
    # chains, and no smaller error.
    return max(1, math.floor(min(2 * deviation, 2.0**30)))


class _GivenTotal(JointLaw):
    """The chain of the tuples for one number of rows t."""

    def __init__(
        self,
        ranks: Ranks,
        numerators: tuple[int, ...],
        whole: int,
        clamp: Fraction,
        total: int,
    ) -> None:
        self._ranks = ranks
        self._distinct = False
        self._at = numerators
        self._whole = whole
        self._clamp = clamp
        self._expected = total
        self._end_offset = (ranks.total - total) * whole
        self._number = tuples(len(numerators), ranks.edges)

    def make(self, exact_rate: Fraction, near: int) -> bool:
        """Sum up the chain, unless no tuple is within reach."""
        self._reach = math.floor(self._clamp / exact_rate) - near
        windows = [self._window(q) for q in self._at]
        if any(start >= stop for start, stop in windows):
            return False
        self._make(exact_rate, near)
        return bool(self._finals.weights.any())


class JointTotalLaw:
    """The law of a tuple of edges. Made of true counts: it is drawn from and thrown away.

    Parameters
    ----------
    ranks : Ranks
        The allowed edges.
    at : sequence of Fraction
        m increasing quantiles, strictly between 0 and 1.
    totals : sequence of int
        Numbers of rows to choose from, all of them paid for or public: see ``totals_around``.
    epsilon : Fraction
        What the selection spends; above ``total_slack``.
    unit : Unit
        What one person can change. In a table divided by labels, give what ``selection.nested``
        returns.

    Raises
    ------
    Infeasible
        If there are too many tuples, which is public.
    UsageError
        If epsilon is at most ``total_slack``.

    >>> from sfumato.random import current
    >>> ranks = Ranks.of_counts(np.full(1000, 1_000_000))
    >>> halves = [Fraction(1, 4), Fraction(1, 2)]
    >>> JointTotalLaw(ranks, halves, [10**9 + 7], Fraction(1), Unit()).draw(current())
    array([250, 500])
    """

    def __init__(
        self,
        ranks: Ranks,
        at: Sequence[Fraction],
        totals: Sequence[int],
        epsilon: Fraction,
        unit: Unit,
    ) -> None:
        numerators, whole = common_denominator(at)
        self._ranks = ranks
        self._size = len(at)
        self._number = tuples(len(at), ranks.edges) * len(totals)
        self._clamp = clamp_of(self._number)
        slack = total_slack(len(at), ranks.edges, unit)
        self._rate = joint_rate(len(at), epsilon, slack, unit.counts_l1 * whole)
        self._given = [
            _GivenTotal(ranks, numerators, whole, self._clamp, total) for total in totals
        ]
        # u of any pair is a lower bound on M.
        near = max(chain.utility(chain.near()) for chain in self._given)
        self._chains = [chain for chain in self._given if chain.make(self._rate, near)]
        self._best = max(chain.best for chain in self._chains)

    def draw(self, bits: Bits) -> Array:
        """Choose a tuple: int64 ndarray of shape (m,), in order."""
        if isinstance(bits, Script):
            return bits.choose(
                joint_selection(self._ranks, self._size, False, self.log_probabilities)
            )
        weights = [chain.final_weights(self._best) for chain in self._chains]
        log_even = math.log(self._number) - float(self._clamp)
        of_chains = [choices.sum() for choices in weights]
        masses = np.array([math.exp(log_even), *of_chains])
        while True:
            # Each pair is kept from one of the two sources only, as in ``JointLaw.draw``.
            which = index_by_weight(masses, bits) - 1
            if which >= 0:
                chain = self._chains[which]
                edges = chain.follow(index_by_weight(weights[which], bits), bits)
            else:
                chain = self._given[integer_below(len(self._given), bits)]
                edges = chain.even(bits)
            worse = self._best - chain.utility(edges)
            if (worse * self._rate <= self._clamp) == (which >= 0):
                return edges

    def log_probabilities(self, edges: Array) -> Array:
        """ln P of tuples: float64 ndarray of shape (k,) for edges of shape (k, m).

        For audits: it holds true counts.
        """
        whole = sum(float(chain.final_weights(self._best).sum()) for chain in self._chains)
        masses = np.zeros(len(edges))
        clamp = float(self._clamp)
        for chain in self._given:
            worse = self._best - chain.score(edges)
            masses += np.exp(-np.minimum(worse * float(self._rate), clamp))
        return np.log(masses) - math.log(whole)


def totals_around(total: int, number: int, step: int) -> list[int]:
    """``number`` multiples of a step on either side of a noisy number of rows, and itself.

    None is below 0: what would be stands for 0.

    >>> totals_around(10, 1, 14)
    [0, 10, 24]
    """
    return [max(total + i * step, 0) for i in range(-number, number + 1)]
