"""The occupied cells of one axis, read from a cube."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.cube import Cube
from sfumato.mechanisms.selection import Ranks
from sfumato.quantiles.subcells import deal


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


def cells_by_axis(cube: Cube, label: int | None) -> list[Cells]:
    """The occupied cells of each numeric axis, among the rows of one label or of all.

    Parameters
    ----------
    cube : Cube
        With a label, the first axis is the one whose labels divide the rows.
    label : int or None
        Index of the label; None: the cube has no axis of labels.
    """
    if cube.coordinates is None:
        return _of_dense_cube(cube, label)
    return _of_sparse_cube(cube, cube.coordinates, label)


def _of_dense_cube(cube: Cube, label: int | None) -> list[Cells]:
    counts = cube.counts.reshape(cube.lattice.shape)
    if label is not None:
        counts = counts[label]
    found = []
    for axis, size in enumerate(counts.shape):
        others = tuple(other for other in range(counts.ndim) if other != axis)
        rows = counts.sum(axis=others, dtype=np.int64)
        occupied = np.flatnonzero(rows)
        found.append(Cells(occupied, rows[occupied], size))
    return found


def _of_sparse_cube(cube: Cube, coordinates: Array, label: int | None) -> list[Cells]:
    entries = slice(None)
    first_axis = 0
    if label is not None:
        # Coordinates are sorted, so the entries of a label stand together.
        start, stop = np.searchsorted(coordinates[:, 0], (label, label + 1))
        entries = slice(start, stop)
        first_axis = 1
    found = []
    for axis, size in enumerate(cube.lattice.shape[first_axis:], first_axis):
        cells = coordinates[entries, axis]
        # Doubles hold these sums exactly: they are integers below 2^53.
        rows = np.bincount(cells, weights=cube.counts[entries], minlength=size)
        occupied = np.flatnonzero(rows)
        found.append(Cells(occupied, rows[occupied].astype(np.int64), size))
    return found
