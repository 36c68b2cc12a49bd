"""One edge of an axis at a given rank: exponential mechanism and permute-and-flip, without slack.

Guarantee: pure epsilon-DP for one person, and (epsilon^2 / 8)-zCDP for the exponential mechanism.
Sensitivity: of n(o) - q n, r max(q, 1 - q) under add-remove, r under replace
(``ranks.rank_sensitivity``).
Holds because
    *The law.* Edge o has weight exp(-a k(o)), k(o) = |w n(o) - z n| for q = z / w, with
    a = epsilon / (2 D w) rounded down to a multiple of 2**-55. Weights are clamped at exp(-128)
    times the best: the utility max(u, max u - U) has the sensitivity of u. So the loss is at most
    epsilon (McSherry, Talwar 2007, Thm 6), and its range is at most epsilon (Cesar, Rogers 2021).
    *The draw is exact.* a k(o) is an integer over 2**55, the *level* of the edge. Its whole part b
    puts the edge into a bucket. A bucket is chosen by its number of edges times exp(-b), an edge
    evenly within it, and the edge accepted with probability exp(-fraction). All three are exact
    (``random.weighted``). Only edges within 128 / a of the best have levels of their own: the
    others share one weight.
    *Permute-and-flip* visits the edges in a random order and takes each with probability
    exp(-a (k - min k)), until one is taken. Its coins do not depend on the order, so it is the same
    to flip all of them and to choose evenly among the heads.
Not covered: the time a draw takes depends on the data.
Source: McSherry, Talwar, FOCS 2007; Smith, STOC 2011 (quantiles); McKenna, Sheldon, NeurIPS 2020
(permute-and-flip).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array, positive
from sfumato.errors import UsageError
from sfumato.mechanisms.ranks import Ranks, common_denominator, rank_sensitivity
from sfumato.mechanisms.scripts import Script, Selection
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.random.discrete import index_by_exponential, integer_below, survives, surviving

SHIFT = 55
"""Levels a k(o) are integers over 2**55."""

CLAMP = 128
"""Nats below the best at which all weights are the same: so no edge farther off is looked at."""

FEW_EDGES = 2**16 + 1


class RankLaw:
    """The law of a selected edge. Made of true counts: it is drawn from and thrown away.

    Parameters
    ----------
    ranks : Ranks
        The allowed edges.
    q : Fraction
        The quantile, strictly between 0 and 1.
    epsilon : Fraction
        What the selection spends, above 0.
    unit : Unit
        What one person can change. In a node of a tree, or of a table divided by labels, give what
        ``ranks.nested`` returns.

    >>> from sfumato.random import current
    >>> cells = np.zeros(1000, np.int64)
    >>> cells[[0, 499, 500, 999]] = 1_000_000
    >>> RankLaw(Ranks.of_counts(cells), Fraction(1, 2), Fraction(1), Unit()).draw(current())
    500
    """

    __slots__ = ("_levels", "_ranks", "_start", "_stop")

    def __init__(self, ranks: Ranks, q: Fraction, epsilon: Fraction, unit: Unit) -> None:
        ((numerator,), whole) = common_denominator([q])
        sensitivity = rank_sensitivity(Fraction(numerator, whole), unit)
        # Rounded down, so that no selection spends more than epsilon; one beyond the clamp changes
        # nothing more.
        exact_rate = positive(epsilon, "epsilon") / (2 * sensitivity * whole)
        rate = min(int(exact_rate * 2**SHIFT), CLAMP << SHIFT)
        self._ranks = ranks
        below = ranks.below
        target = numerator * ranks.total
        # The best edge has the rank next below or next above the target.
        above = int(np.searchsorted(below, target // whole, side="right"))
        least = min(abs(int(n) * whole - target) for n in below[max(above - 1, 0) : above + 1])
        self._start = 0
        self._stop = len(below)
        if rate:
            # Within it, and only there, a (k - min k) is below the clamp. So levels fit 64 bits.
            radius = least + ((CLAMP << SHIFT) - 1) // rate
            self._start = int(np.searchsorted(below, -((radius - target) // whole)))
            self._stop = int(np.searchsorted(below, (target + radius) // whole, side="right"))
        self._levels = (np.abs(below[self._start : self._stop] * whole - target) - least) * rate

    def draw(self, bits: Bits) -> int:
        """Choose an edge by the exponential mechanism."""
        if isinstance(bits, Script):
            return self._scripted(self.log_probabilities, bits)
        first = self._ranks.first
        widths = np.diff(first[self._start : self._stop + 1])
        buckets = self._levels >> SHIFT
        # Sums of integers below 2^53, so the floats of ``bincount`` are exact.
        sizes = [int(size) for size in np.bincount(buckets, weights=widths)]
        far = self._ranks.edges - int(first[self._stop] - first[self._start])
        if far:
            sizes += [0] * (CLAMP - len(sizes)) + [far]
        while True:
            bucket = index_by_exponential(sizes, bits)
            index = integer_below(sizes[bucket], bits)
            if bucket == CLAMP:
                return self._outside(index)
            members = np.flatnonzero(buckets == bucket)
            ends = np.cumsum(widths[members])
            one = int(np.searchsorted(ends, index, side="right"))
            group = int(members[one])
            fraction = int(self._levels[group]) & ((1 << SHIFT) - 1)
            if survives(fraction, SHIFT, bits):
                within = index - int(ends[one] - widths[group])
                return int(first[self._start + group]) + within

    def _outside(self, index: int) -> int:
        """An edge outside the window, counted from the lowest."""
        first = self._ranks.first
        lowest = int(first[0])
        before = int(first[self._start]) - lowest
        if index < before:
            return lowest + index
        return int(first[self._stop]) + index - before

    def flip(self, bits: Bits) -> int:
        """Choose an edge by permute-and-flip: never worse than ``draw``, and up to twice as close.

        Pure epsilon only.

        Raises
        ------
        UsageError
            If more than 2^16 + 1 edges are allowed, which is public. With many edges as good as the
            best the two laws are nearly the same, and ``draw`` is quick.
        """
        if self._ranks.edges > FEW_EDGES:
            raise UsageError(
                f"permute-and-flip over {self._ranks.edges} edges",
                f"the limit is {FEW_EDGES}",
                "Use the exponential mechanism",
            )
        if isinstance(bits, Script):
            return self._scripted(self.flip_log_probabilities, bits)
        levels = np.repeat(self._every_level(), self._ranks.widths)
        # The best edge has level 0 and always shows heads, so there is one to choose.
        heads = np.flatnonzero(surviving(levels, SHIFT, bits))
        return int(self._ranks.first[0]) + int(heads[integer_below(len(heads), bits)])

    def _scripted(self, log_probabilities: Callable[[], Array], script: Script) -> int:
        """The edge that a script chooses, in place of a draw by these probabilities."""
        first = int(self._ranks.first[0])

        def log_probability(edges: Array) -> float:
            return float(log_probabilities()[int(edges[0]) - first])

        selection = Selection(first, self._ranks.edges, 1, False, log_probability)
        return int(script.choose(selection)[0])

    @property
    def log_total(self) -> float:
        """ln of the sum of all weights, the best being 1.

        For audits, as is ``log_probabilities``: they hold true counts.
        """
        weights = np.exp(self._every_level() / -(2.0**SHIFT)) * self._ranks.widths
        return float(np.log(weights.sum()))

    def log_probabilities(self) -> Array:
        """ln P of every allowed edge under ``draw``, in order: float64 ndarray."""
        return np.repeat(self._every_level() / -(2.0**SHIFT) - self.log_total, self._ranks.widths)

    def flip_log_probabilities(self) -> Array:
        """ln P of every allowed edge under ``flip``: the integral over t in [0, 1] of p_o times the
        product of (1 - t p) of the others.

        For a few edges: the quadrature is exact for the polynomial that it is.
        """
        p = np.exp(np.repeat(self._every_level() / -(2.0**SHIFT), self._ranks.widths))
        nodes, weights = _quadrature(len(p) // 2 + 1)
        missed = 1 - np.outer((nodes + 1) / 2, p)
        others = np.stack([np.delete(missed, i, axis=1).prod(axis=1) for i in range(len(p))])
        return np.asarray(np.log(p * (others @ weights) / 2))

    def _every_level(self) -> Array:
        """The level of every group: the clamp outside the window."""
        levels = np.full(len(self._ranks.below), CLAMP << SHIFT, np.int64)
        levels[self._start : self._stop] = self._levels
        return levels


@lru_cache(maxsize=64)
def _quadrature(points: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights
