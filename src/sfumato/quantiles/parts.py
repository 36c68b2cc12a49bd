"""Sub-cells: how a quantile can lie inside a cell that holds many rows.

Between the two edges of a cell that holds half of all rows no edge has the rank of the median: all would be equally wrong. So
each cell is divided into T sub-cells, T public, and its rows are dealt to them in a fixed order, one after another: the first to
the middle one, then always into the widest gap (van der Corput's order), from the start again after T rows. A selection chooses
an edge between sub-cells; its answer is the cell in which that edge lies. So an atom of w rows has T edges inside, w / T rows apart,
and is chosen where a quantile lies deeper inside it than w / 2T rows.

Guarantee: dealing costs nothing. Counts of sub-cells are a function of counts of cells under which neighbours stay neighbours.
Holds because: which sub-cell gets the k-th row of a cell depends on k alone. A cell with one row more has one row more in exactly one
sub-cell, and the same in all others; with r rows more, or replaced by others, r rows more or moved. Rows of a node are dealt with all
others, once, so nodes hold disjoint rows. Each proof for edges of cells (``mechanisms``) therefore holds for edges of sub-cells, with
the same sensitivity, in whole rows.

A utility -max(0, #{< o} - q n, q n - #{<= o}) on cells has that sensitivity too, but for one quantile only: halving would have to say which
rows of the chosen cell are on which side. Here an edge says so.

Source: van der Corput 1935 (the order).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import Infeasible
from sfumato.mechanisms.jointexp import tuples
from sfumato.mechanisms.selection import FEW_EDGES

MOST_PARTS = 2**8
MOST_CELLS = 2**24


def parts_for(cells: int, finest: int, *, flips: bool, together: int) -> int:
    """Into how many sub-cells each cell is divided, by public numbers: a power of two.

    Parameters
    ----------
    cells : int
        Of the axis.
    finest : int
        At most so many.
    flips : bool
        Whether permute-and-flip looks at every edge.
    together : int
        How many quantiles are chosen jointly: there must not be too many tuples.

    >>> parts_for(120, 256, flips=False, together=9), parts_for(2**20, 256, flips=False, together=9)
    (256, 16)
    """
    room = min(finest, (FEW_EDGES - 1 if flips else MOST_CELLS) // cells)
    parts = 1 << max(room, 1).bit_length() - 1
    while parts > 1 and not _feasible(together, cells * parts + 1):
        parts //= 2
    return parts


def _feasible(together: int, edges: int) -> bool:
    try:
        tuples(together, edges)
    except Infeasible:
        return False
    return True


@lru_cache(maxsize=16)
def _order(parts: int) -> Array:
    """How many rows come before a sub-cell's first: int64 ndarray of shape (parts,)."""
    bits = parts.bit_length() - 1
    reversed_bits = [int(f"{k:0{bits}b}"[::-1], 2) if bits else 0 for k in range(parts)]
    turn = np.empty(parts, np.int64)
    turn[(np.array(reversed_bits) + parts // 2) % parts] = np.arange(parts)
    return turn


@lru_cache(maxsize=16)
def _spots(parts: int) -> tuple[Array, Array]:
    """The sub-cells that k rows take, in order, for k = 0..parts, one list after another; and where each list begins."""
    turn = _order(parts)
    lists = [np.flatnonzero(turn < k) for k in range(parts + 1)]
    return np.concatenate(lists), np.cumsum([0, *(len(one) for one in lists[:-1])])


def divided(positions: Array, counts: Array, parts: int) -> tuple[Array, Array]:
    """Deal the rows of cells to sub-cells.

    Parameters
    ----------
    positions, counts : int64 ndarray of shape (occupied,)
        Cells, strictly increasing, and their rows.

    Returns
    -------
    positions, counts : int64 ndarray of shape (occupied sub-cells,)

    >>> [x.tolist() for x in divided(np.array([0, 2]), np.array([1, 6]), 4)]
    [[2, 8, 9, 10, 11], [1, 2, 1, 2, 1]]
    """
    if parts == 1:
        return positions, counts
    spots, begins = _spots(parts)
    taken = np.minimum(counts, parts)
    ends = np.cumsum(taken)
    which = np.repeat(begins[taken] - ends + taken, taken)
    which += np.arange(len(which))
    sub = spots[which]
    rows = np.ones(len(sub), np.int64)
    heavy = np.flatnonzero(counts > parts)
    if len(heavy):
        at = (ends[heavy] - parts)[:, None] + np.arange(parts)
        full, left = np.divmod(counts[heavy], parts)
        rows[at] = full[:, None] + (_order(parts) < left[:, None])
    return np.repeat(positions * parts, taken) + sub, rows


def points_of(edges: Array, parts: int, cells: int, snap: bool) -> Array:
    """The lattice points that stand for edges of sub-cells: int64 ndarray like ``edges``.

    On an axis with a step of its own a cell holds one value, its lower edge, which stands for it. Elsewhere the nearer end of the
    cell does: where no cell holds two rows, ranks are as if edges of cells had been chosen.
    """
    if snap:
        return np.asarray(np.minimum(edges // parts, cells - 1))
    return np.asarray((edges + (parts - 1) // 2) // parts)
