"""Ranks of the edges of one axis: public edges, grouped by the number of rows below them.

An axis of W cells has the edges o = 0..W; n(o) rows lie in cells below o. Edges between two
occupied cells share n(o), so they form one group that is drawn by its number of edges; each edge is
in exactly one group. Two intervals closed at both ends would give an occupied point two weights:
that was measured to spend 0.7 at a nominal 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NoReturn

import numpy as np

from sfumato.basics.numbers import Array, Exactly, decimal, probability
from sfumato.errors import UsageError
from sfumato.privacy.unit import Unit

FINEST_RANK = 2**22
"""The largest common denominator of quantiles: others are rounded to multiples of its inverse,
which is public.
"""
CLOSEST = Fraction(1, 10**6)
"""The least distance of two quantiles that a user states, and of a quantile from 0 and 1."""
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
        return cls(below[full], np.append(ends[:-1][full], upper), int(below[-1]))

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
    found = tuple(_rounded(probability(q, "a quantile")) for q in _as_list(given))
    if not found or len(found) > MOST_QUANTILES:
        raise UsageError(
            f"{len(found)} quantiles",
            f"there must be 1 to {MOST_QUANTILES:,}",
            "Write at=[0.25, 0.5, 0.75]",
        )
    steps = pairwise((Fraction(0), *found, Fraction(1)))
    if any(above - below < CLOSEST for below, above in steps):
        raise UsageError(
            f"quantiles at {', '.join(map(decimal, found[:6]))}",
            "they must increase, by 10^-6 or more",
            "Sort them, and name each once",
        )
    return found


def _as_list(given: Exactly | Sequence[Exactly]) -> Sequence[Exactly]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        return given
    return [given]


def _rounded(q: Fraction) -> Fraction:
    # A float such as 0.3333333333333333 is read as the simple fraction that it stands for.
    simple = q.limit_denominator(1000)
    if abs(simple - q) < Fraction(1, 10**12):
        return simple
    return Fraction(round(q / CLOSEST)) * CLOSEST
