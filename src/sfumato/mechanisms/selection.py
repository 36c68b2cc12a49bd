"""One edge of an axis at a given rank: exponential mechanism and permute-and-flip, without slack.

``Ranks`` are public edges, grouped by the number of rows below them. An axis of W cells has the
edges o = 0..W; n(o) rows lie in cells below o. Edges between two occupied cells share n(o), so they
form one group that is drawn by its number of edges; each edge is in exactly one group. Two
intervals closed at both ends would give an occupied point two weights: that was measured to spend
0.7 at a nominal 0.1.

Guarantee: pure epsilon-DP for one person, and (epsilon^2 / 8)-zCDP for the exponential mechanism.
Sensitivity: of n(o) - q n, r max(q, 1 - q) under add-remove, r under replace
(``rank_sensitivity``).
Holds because
    *The law.* Edge o has weight exp(-a k(o)), k(o) = |w n(o) - z n| for q = z / w, with
    a = epsilon / (2 D w) rounded down to a multiple of 2**-55. Weights are clamped at exp(-128)
    times the best: the utility max(u, max u - U) has the sensitivity of u. So the loss is at most
    epsilon (McSherry, Talwar 2007, Thm 6), and its range is at most epsilon (Cesar, Rogers 2021).
    *The draw is exact.* a k(o) is an integer over 2**55, the *level* of the edge. Its whole part b
    puts the edge into a bucket. A bucket is chosen by its number of edges times exp(-b), an edge
    evenly within it, and the edge accepted with probability exp(-fraction). All three are exact
    (``random.discrete``). Only edges within 128 / a of the best have levels of their own: the
    others share one weight.
    *Permute-and-flip* visits the edges in a random order and takes each with probability
    exp(-a (k - min k)), until one is taken. Its coins do not depend on the order, so it is the same
    to flip all of them and to choose evenly among the heads.
Not covered: the time a draw takes depends on the data.
Source: McSherry, Talwar, FOCS 2007; Smith, STOC 2011 (quantiles); McKenna, Sheldon, NeurIPS 2020
(permute-and-flip).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

import numpy as np

from sfumato.basics import Array, Exactly, decimal, positive, probability
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import Script, Selection
from sfumato.privacy import Unit
from sfumato.random.bits import Bits
from sfumato.random.discrete import index_by_exponential, integer_below, survives, surviving

# --- ranks ----------------------------------------------------------------------------------------

# The largest common denominator of quantiles: others are rounded to multiples of its inverse, which
# is public.
FINEST_RANK = 2**22

# The least distance of two quantiles that a user states, and of a quantile from 0 and 1.
CLOSEST = Fraction(1, 10**6)
MOST_QUANTILES = 10_000


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Ranks:
    """Edges of one axis in groups of equal n(o).

    Holds true counts: it prints none, and is not pickled.

    Attributes
    ----------
    below : int64 ndarray of shape (groups,)
        n(o) of each group, strictly increasing.
    first : int64 ndarray of shape (groups + 1,)
        First allowed edge of each group; the last entry is the end of the allowed range.
    total : int
        Rows on the whole axis, those outside the allowed range included.
    """

    below: Array
    first: Array
    total: int

    @classmethod
    def of_cells(cls, positions: Array, counts: Array, lower: int, upper: int) -> Ranks:
        """Group the edges ``lower <= o < upper``.

        Parameters
        ----------
        positions : int64 ndarray of shape (occupied,)
            Occupied cells, strictly increasing. Edge o lies below cell o.
        counts : int64 ndarray of shape (occupied,)
            Their rows; zeros are allowed and change nothing.
        lower, upper : int
            The allowed edges. For the quantiles of an axis of W cells: 0 and W + 1. For a split
            into boxes that have volume: the box's own ends a and b give a + 1 and b.

        Raises
        ------
        UsageError
            If no edge is allowed.

        >>> ranks = Ranks.of_cells(np.array([1, 2, 4]), np.array([1, 2, 1]), 0, 6)
        >>> ranks.below.tolist(), ranks.widths.tolist()
        ([0, 1, 3, 4], [2, 1, 2, 1])
        """
        if upper <= lower:
            raise UsageError(
                f"edges from {lower} to {upper}",
                "there is none to choose from",
                "Widen the allowed range",
            )
        if len(counts) and not counts.all():
            occupied = np.flatnonzero(counts)
            positions = positions[occupied]
            counts = counts[occupied]
        below = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=below[1:])
        # An edge lies below its cell, so n(o) changes at the edge above an occupied cell.
        ends = np.empty(len(counts) + 2, np.int64)
        ends[0] = lower
        ends[1:-1] = positions
        ends[1:-1] += 1
        ends[-1] = upper
        np.clip(ends, lower, upper, out=ends)
        # Groups that lie outside the allowed range have no edges left.
        full = ends[1:] > ends[:-1]
        first = np.append(ends[:-1][full], upper)
        return cls(below[full], first, int(below[-1]))

    @classmethod
    def of_counts(cls, counts: Array, lower: int = 0, upper: int | None = None) -> Ranks:
        """The same from a dense axis: int64 ndarray of shape (W,); ``upper`` None: W + 1."""
        occupied = np.flatnonzero(counts)
        end = len(counts) + 1 if upper is None else upper
        return cls.of_cells(occupied, counts[occupied], lower, end)

    @property
    def widths(self) -> Array:
        """Number of edges of each group: int64 ndarray of shape (groups,)."""
        return np.diff(self.first)

    @property
    def edges(self) -> int:
        """Number of allowed edges: public."""
        return int(self.first[-1] - self.first[0])

    def group(self, edges: Sequence[int] | Array) -> Array:
        """The group of each edge: int64 ndarray."""
        return np.searchsorted(self.first, np.asarray(edges), side="right") - 1

    def __repr__(self) -> str:
        return f"<Ranks of {self.edges} edges, counts not shown>"

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "pickling Ranks", "they hold true counts", "Publish a release and save that"
        )


def common_denominator(at: Sequence[Fraction]) -> tuple[tuple[int, ...], int]:
    """Quantiles over a common denominator of at most 2^22: (numerators, denominator).

    Quantiles whose own common denominator is larger are rounded to multiples of 2^-22.
    Sensitivities are computed from what this returns, and so are the utilities.

    Raises
    ------
    UsageError
        If they are not between 0 and 1 or do not increase, once rounded.

    >>> common_denominator([Fraction(1, 4), Fraction(1, 3)])
    ((3, 4), 12)
    """
    common = math.lcm(*(q.denominator for q in at)) if at else 1
    whole = common if common <= FINEST_RANK else FINEST_RANK
    numerators = tuple(round(q * whole) for q in at)
    ends = (0, *numerators, whole)
    if not at or any(b <= a for a, b in pairwise(ends)):
        raise UsageError(
            f"{len(at)} quantiles",
            "they must lie between 0 and 1 and increase, 2^-22 apart or more",
            "Write at=[0.25, 0.5, 0.75]",
        )
    return numerators, whole


def rank_sensitivity(q: Fraction, unit: Unit) -> Fraction:
    """How far one person moves n(o) - q n: r under replace, r max(q, 1 - q) under add-remove.

    One row more raises it by 1 - q (below o) or lowers it by q. Under replace a person's a rows
    become b <= r others: min(a, b) rows move across the edge, 1 each, and |a - b| come or go.
    """
    per_row = Fraction(1) if unit.neighbours == "replace" else max(q, 1 - q)
    return unit.rows_per_person * per_row


def joint_sensitivity(at: Sequence[Fraction], unit: Unit) -> Fraction:
    """How far one person moves the utility of a tuple: 2r under replace, 2r (1 - the least gap
    between quantiles) under add-remove.

    One row more in gap i changes that gap's term by at most 1 - g_i and every other by g_l, where g
    are the gaps of (0, at, 1): together 2 (1 - g_i). A row that moves leaves one gap and enters
    another: 2.
    """
    ends = (Fraction(0), *at, Fraction(1))
    least_gap = min(b - a for a, b in pairwise(ends))
    per_row = Fraction(1) if unit.neighbours == "replace" else 1 - least_gap
    return 2 * unit.rows_per_person * per_row


def nested(unit: Unit, epsilon: Fraction) -> tuple[Unit, Fraction]:
    """What a selection among several disjoint nodes may use: under replace, add-remove at half the
    share.

    A node's number of rows is not fixed under replace, and a person may leave one node and enter
    another: each is an add-remove neighbour, and half the share pays for each. Under add-remove
    nothing changes: r rows spread over nodes cost r_i / r each.
    """
    if unit.neighbours == "add-remove":
        return unit, epsilon
    return Unit(rows_per_person=unit.rows_per_person, person=unit.person), epsilon / 2


def read_quantiles(at: Exactly | Sequence[Exactly]) -> tuple[Fraction, ...]:
    """Read quantiles: simple fractions as they are meant, others to six digits.

    >>> read_quantiles([0.3333333333333333, "1/2"])
    (Fraction(1, 3), Fraction(1, 2))
    """
    given = at.tolist() if hasattr(at, "tolist") else at
    if isinstance(given, str) or not isinstance(given, Sequence):
        given = [given]
    quantiles = tuple(_rounded(probability(q, "a quantile")) for q in given)
    if not quantiles or len(quantiles) > MOST_QUANTILES:
        raise UsageError(
            f"{len(quantiles)} quantiles",
            f"there must be 1 to {MOST_QUANTILES:,}",
            "Write at=[0.25, 0.5, 0.75]",
        )
    steps = pairwise((Fraction(0), *quantiles, Fraction(1)))
    if any(above - below < CLOSEST for below, above in steps):
        raise UsageError(
            f"quantiles at {', '.join(map(decimal, quantiles[:6]))}",
            "they must increase, by 10^-6 or more",
            "Sort them, and name each once",
        )
    return quantiles


def _rounded(q: Fraction) -> Fraction:
    # A float such as 0.3333333333333333 is read as the simple fraction that it stands for.
    simple = q.limit_denominator(1000)
    if abs(simple - q) < Fraction(1, 10**12):
        return simple
    return Fraction(round(q / CLOSEST)) * CLOSEST


# --- the mechanisms -------------------------------------------------------------------------------

# Levels a k(o) are integers over 2**55.
SHIFT = 55

# Nats below the best at which all weights are the same: so no edge farther off is looked at.
CLAMP = 128

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
        ``nested`` returns.

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
        distances = np.abs(below[self._start : self._stop] * whole - target)
        self._levels = (distances - least) * rate

    def draw(self, bits: Bits) -> int:
        """Choose an edge by the exponential mechanism."""
        if isinstance(bits, Script):
            return self._scripted(self.log_probabilities, bits)
        first = self._ranks.first
        widths = np.diff(first[self._start : self._stop + 1])
        buckets = self._levels >> SHIFT
        # Sums of integers below 2^53, so the floats of ``bincount`` are exact.
        sizes = [int(size) for size in np.bincount(buckets, weights=widths)]
        near = int(first[self._stop] - first[self._start])
        far = self._ranks.edges - near
        if far:
            sizes += [0] * (CLAMP - len(sizes)) + [far]
        while True:
            bucket = index_by_exponential(sizes, bits)
            index = integer_below(sizes[bucket], bits)
            if bucket == CLAMP:
                # The others are counted from the lowest: some lie below the window, some above.
                lowest = int(first[0])
                before = int(first[self._start]) - lowest
                outside = lowest if index < before else int(first[self._stop]) - before
                return outside + index
            members = np.flatnonzero(buckets == bucket)
            ends = np.cumsum(widths[members])
            place = int(np.searchsorted(ends, index, side="right"))
            group = int(members[place])
            fraction = int(self._levels[group]) & ((1 << SHIFT) - 1)
            if survives(fraction, SHIFT, bits):
                within = index - int(ends[place] - widths[group])
                return int(first[self._start + group]) + within

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
        head = heads[integer_below(len(heads), bits)]
        return int(self._ranks.first[0]) + int(head)

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
        weights = np.exp(self._log_weights()) * self._ranks.widths
        return float(np.log(weights.sum()))

    def log_probabilities(self) -> Array:
        """ln P of every allowed edge under ``draw``, in order: float64 ndarray."""
        return np.repeat(self._log_weights() - self.log_total, self._ranks.widths)

    def flip_log_probabilities(self) -> Array:
        """ln P of every allowed edge under ``flip``: the integral over t in [0, 1] of p_o times the
        product of (1 - t p) of the others.

        For a few edges: the quadrature is exact for the polynomial that it is.
        """
        p = np.exp(np.repeat(self._log_weights(), self._ranks.widths))
        nodes, weights = _quadrature(len(p) // 2 + 1)
        missed = 1 - np.outer((nodes + 1) / 2, p)
        others = np.stack([np.delete(missed, i, axis=1).prod(axis=1) for i in range(len(p))])
        return np.asarray(np.log(p * (others @ weights) / 2))

    def _log_weights(self) -> Array:
        return self._every_level() / -(2.0**SHIFT)

    def _every_level(self) -> Array:
        """The level of every group: the clamp outside the window."""
        levels = np.full(len(self._ranks.below), CLAMP << SHIFT, np.int64)
        levels[self._start : self._stop] = self._levels
        return levels


@lru_cache(maxsize=64)
def _quadrature(points: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights
