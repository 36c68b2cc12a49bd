"""Choose quantiles by halving: the middle one first, then those on either side of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from sfumato.mechanisms.selection import Ranks
from sfumato.quantiles.cells import Cells

Choose: TypeAlias = Callable[[Ranks, Fraction, int, int], int]
"""A function that chooses an edge.

Its arguments are the edges, the share of their rows that shall lie below the chosen one, the index
of the quantile, and the level of halving.
"""


def choose_by_halving(cells: Cells, at: Sequence[Fraction], choose: Choose) -> list[int]:
    """Choose the middle quantile, then those below it among the rows and edges below, and so on.

    Each level's selections see disjoint rows: a selection sees the rows between the two edges that
    were chosen next to it on earlier levels.

    Returns
    -------
    list of int
        An edge for each quantile, not decreasing.
    """
    chosen = [0] * len(at)

    def visit(first: int, stop: int, lower: int, upper: int, level: int) -> None:
        if first >= stop:
            return
        middle = (first + stop) // 2
        rank = rank_within(at, first, stop)
        edge = choose(cells.edges(lower, upper), rank, middle, level)
        chosen[middle] = edge
        visit(first, middle, lower, edge, level + 1)
        visit(middle + 1, stop, edge, upper, level + 1)

    visit(0, len(at), 0, cells.size, 0)
    return chosen


def rank_within(at: Sequence[Fraction], first: int, stop: int) -> Fraction:
    """The rank of the middle quantile of ``at[first:stop]``, among the rows of its node.

    The node holds the rows between the quantiles ``at[first - 1]`` and ``at[stop]``.
    """
    below = at[first - 1] if first else Fraction(0)
    above = at[stop] if stop < len(at) else Fraction(1)
    return (at[(first + stop) // 2] - below) / (above - below)


def worst_ranks(at: Sequence[Fraction], levels: int) -> list[Fraction]:
    """For each level of halving, the rank that is farthest from the middle, from 1/2 up."""
    worst = [Fraction(1, 2)] * levels

    def visit(first: int, stop: int, level: int) -> None:
        if first >= stop:
            return
        rank = rank_within(at, first, stop)
        worst[level] = max(worst[level], rank, 1 - rank)
        middle = (first + stop) // 2
        visit(first, middle, level + 1)
        visit(middle + 1, stop, level + 1)

    visit(0, len(at), 0)
    return worst
