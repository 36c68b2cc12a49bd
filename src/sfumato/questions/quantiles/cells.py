"""The occupied cells of one axis, read from a cube and divided into sub-cells.

Sub-cells let a quantile lie inside a cell that holds many rows.

If one cell holds half of all rows, neither of its two edges has the rank of the median: all edges
are about equally wrong. So each cell is divided into T sub-cells, where T is public. Its rows are
dealt to them one after another, in a fixed order: the first row to the middle sub-cell, each next
row into the widest gap (van der Corput's order), and after T rows from the start again. A selection
chooses an edge between sub-cells. Its answer is the cell in which that edge lies. A cell of w rows
then has T edges inside, w / T rows apart, and it is chosen whenever a quantile lies more than w /
2T rows inside it.

Guarantee: dealing costs nothing. The counts of sub-cells are a function of the counts of cells, and
this function maps neighbours to neighbours.
Holds because: which sub-cell gets the k-th row of a cell depends on k alone. If a cell has one row
more, exactly one of its sub-cells has one row more, and all others stay the same. If a person's r
rows are added or replaced, r rows of sub-cells are added or moved. All rows are dealt once, before
they are divided among nodes, so nodes hold disjoint rows. Each proof for edges of cells
(``mechanisms``) therefore holds for edges of sub-cells, with the same sensitivity in whole rows.

The utility -max(0, #{< o} - q n, q n - #{<= o}) on cells has the same sensitivity, but serves a
single quantile only: halving would have to say which rows of the chosen cell are on which side. An
edge between sub-cells says so.

Source: van der Corput 1935 (the order).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sfumato.basics import Array
from sfumato.domain import Cube
from sfumato.errors import Infeasible
from sfumato.mechanisms import FEW_EDGES, Ranks, tuples

# The most sub-cells of a cell.
MOST_SUBCELLS = 2**8


def subcells_for(cells: int, most: int, *, permute_and_flip: bool, together: int) -> int:
    """Choose the number of sub-cells of each cell from public numbers: a power of two.

    Parameters
    ----------
    cells : int
        Cells of the axis.
    most : int
        Upper limit of the answer.
    permute_and_flip : bool
        Whether selections look at every edge; then there are at most ``FEW_EDGES``.
    together : int
        How many quantiles one selection chooses. The tuples of edges must not be too many.

    >>> subcells_for(120, 256, permute_and_flip=False, together=9)
    256
    >>> subcells_for(2**20, 256, permute_and_flip=False, together=9)
    16
    """
    limit = FEW_EDGES - 1 if permute_and_flip else 2**24
    room = max(min(most, limit // cells), 1)
    subcells = 1 << (room.bit_length() - 1)
    while subcells > 1 and not can_select(together, cells * subcells + 1):
        subcells //= 2
    return subcells


def can_select(together: int, edges: int) -> bool:
    """Tell whether one selection can choose so many quantiles from so many edges."""
    try:
        tuples(together, edges)
    except Infeasible:
        return False
    return True


@lru_cache(maxsize=16)
def _turns(subcells: int) -> Array:
    """The turn of each sub-cell in the order of dealing, from 0: int64 ndarray (subcells,)."""
    n_bits = subcells.bit_length() - 1
    # Van der Corput's order is that of the reversed bits; half a turn puts the middle first.
    reversed_bits = [int(f"{k:0{n_bits}b}"[::-1], 2) if n_bits else 0 for k in range(subcells)]
    turns = np.empty(subcells, np.int64)
    turns[(np.array(reversed_bits) + subcells // 2) % subcells] = np.arange(subcells)
    return turns


@lru_cache(maxsize=16)
def _occupied_by(subcells: int) -> tuple[Array, Array]:
    """Return which sub-cells k rows occupy, for k = 0..subcells.

    Returns
    -------
    subcells, starts : int64 ndarrays
        The increasing lists of sub-cells, one after another, and where the list of each k starts.
    """
    turns = _turns(subcells)
    lists = [np.flatnonzero(turns < k) for k in range(subcells + 1)]
    lengths = [len(subcells_of_rows) for subcells_of_rows in lists[:-1]]
    return np.concatenate(lists), np.cumsum([0, *lengths])


def deal(positions: Array, counts: Array, subcells: int) -> tuple[Array, Array]:
    """Deal the rows of cells to sub-cells.

    Parameters
    ----------
    positions, counts : int64 ndarrays of shape (occupied,)
        Occupied cells, strictly increasing, and their rows.
    subcells : int
        Sub-cells of each cell, a power of two.

    Returns
    -------
    positions, counts : int64 ndarrays of shape (occupied sub-cells,)

    >>> [found.tolist() for found in deal(np.array([0, 2]), np.array([1, 6]), 4)]
    [[2, 8, 9, 10, 11], [1, 2, 1, 2, 1]]
    """
    if subcells == 1:
        return positions, counts
    lists, starts = _occupied_by(subcells)
    n_occupied = np.minimum(counts, subcells)
    ends = np.cumsum(n_occupied)
    # The list of each cell's sub-cells is copied to [end - n_occupied, end).
    which = np.repeat(starts[n_occupied] - ends + n_occupied, n_occupied)
    which += np.arange(len(which))
    subcell = lists[which]
    rows = np.ones(len(subcell), np.int64)
    heavy = np.flatnonzero(counts > subcells)
    if len(heavy):
        entries = (ends[heavy] - subcells)[:, None] + np.arange(subcells)
        full_rounds, remainder = np.divmod(counts[heavy], subcells)
        rows[entries] = full_rounds[:, None] + (_turns(subcells) < remainder[:, None])
    return np.repeat(positions * subcells, n_occupied) + subcell, rows


def points_of(edges: Array, subcells: int, cells: int, snap: bool) -> Array:
    """Return the lattice points that stand for edges of sub-cells: int64 ndarray like ``edges``.

    On an axis with a step of its own, a cell holds one value, its lower edge, and that value stands
    for it. On other axes the nearer end of the cell does. Where no cell holds two rows, ranks are
    then the same as if edges of cells had been chosen.
    """
    if snap:
        return np.asarray(np.minimum(edges // subcells, cells - 1))
    return np.asarray((edges + (subcells - 1) // 2) // subcells)


@dataclass(frozen=True, repr=False, eq=False)
class Cells:
    """Occupied cells of one axis. There is no repr, because the counts are true counts.

    Attributes
    ----------
    positions, counts : int64 ndarrays of shape (occupied,)
        Cells, strictly increasing, and their rows.
    size : int
        The number of all cells of the axis.
    """

    positions: Array
    counts: Array
    size: int

    def divided(self, subcells: int) -> Cells:
        """The same rows on the sub-cells of each cell."""
        positions, counts = deal(self.positions, self.counts, subcells)
        return Cells(positions, counts, self.size * subcells)

    def edges(self, lower: int, upper: int) -> Ranks:
        """The edges from ``lower`` to ``upper``, both included, with the rows between them."""
        start, stop = np.searchsorted(self.positions, (lower, upper))
        inside = slice(start, stop)
        return Ranks.of_cells(self.positions[inside], self.counts[inside], lower, upper + 1)


def cells_by_axis(cube: Cube, *, by_label: bool = False) -> Iterator[list[Cells]]:
    """Yield the occupied cells of each numeric axis, among all rows or those of each label in turn.

    Parameters
    ----------
    cube : Cube
    by_label : bool
        Whether the first axis is the one whose labels divide the rows.
    """
    coordinates, counts = cube.occupied()
    if not by_label:
        yield _cells_of(coordinates, counts, cube.lattice.shape)
        return
    labels, *sizes = cube.lattice.shape
    # Coordinates are sorted, so the entries of a label stand together.
    ends = np.searchsorted(coordinates[:, 0], np.arange(labels + 1))
    for start, stop in pairwise(ends.tolist()):
        yield _cells_of(coordinates[start:stop, 1:], counts[start:stop], sizes)


def _cells_of(coordinates: Array, counts: Array, sizes: Sequence[int]) -> list[Cells]:
    cells_of_axes = []
    for cells, size in zip(coordinates.T, sizes, strict=True):
        # Doubles hold these sums exactly: they are integers below 2^53.
        rows = np.bincount(cells, weights=counts, minlength=size)
        occupied = np.flatnonzero(rows)
        cells_of_axes.append(Cells(occupied, rows[occupied].astype(np.int64), size))
    return cells_of_axes
