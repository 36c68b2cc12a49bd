"""Pack the cells of a row, one for each axis of a lattice, into as few integers as possible.

Packed cells are what a scan sorts, counts and remembers. They need less memory than a coordinate
for each axis, and their order is the order of the cells.
"""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import DROPPED, Lattice

MOST_PACKED = 2**62
"""Packed integers stay below this."""


class Packing:
    """How the cells of a lattice's axes make one integer, or several beyond ``MOST_PACKED``.

    The order of packed rows is the order of their cells. DROPPED in the first integer drops a row.

    Attributes
    ----------
    lattice : Lattice
    groups : list of lists of int
        The axes that each integer packs.
    sizes : list of int
        How many values each integer can take.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.groups: list[list[int]] = [[]]
        self.sizes: list[int] = [1]
        for axis, size in enumerate(lattice.shape):
            if self.groups[-1] and self.sizes[-1] * size > MOST_PACKED:
                self.groups.append([])
                self.sizes.append(1)
            self.groups[-1].append(axis)
            self.sizes[-1] *= size

    def pack(self, cells: list[Array], n_rows: int = 0) -> list[Array]:
        """Pack rows: one int64 ndarray of shape (rows,) for each integer.

        Parameters
        ----------
        cells : list of int64 ndarray of shape (rows,)
            The cell of each row on each axis. The arrays are not changed.
        n_rows : int
            How many rows there are, if the lattice has no axes: all lie in its one cell.
        """
        if not cells:
            return [np.zeros(n_rows, np.int64)]
        if len(cells) == 1:
            return cells
        packed = [self._packed(cells, group) for group in self.groups]
        dropped = [axis < 0 for axis in cells if len(axis) and axis.min() < 0]
        if dropped:
            packed[0] = np.where(np.logical_or.reduce(dropped), DROPPED, packed[0])
        return packed

    def _packed(self, cells: list[Array], group: list[int]) -> Array:
        packed = cells[group[0]]
        for axis in group[1:]:
            # The product is a new array, so adding in place changes no array of the caller's.
            packed = packed * self.lattice.shape[axis]
            packed += cells[axis]
        return packed

    def unpack(self, packed: list[Array]) -> Array:
        """Give the coordinates of packed rows: int64 ndarray of shape (rows, axes)."""
        coordinates: list[Array] = []
        for integers, group in zip(packed, self.groups, strict=True):
            shape = tuple(self.lattice.shape[axis] for axis in group)
            coordinates.extend(np.unravel_index(integers, shape))
        return np.stack(coordinates, axis=1).astype(np.int64, copy=False)

    def narrowed(self, packed: list[Array]) -> list[Array]:
        """Give packed rows as 32-bit integers where they fit, to halve what is remembered."""
        return [
            integers.astype(np.int32) if size < 2**31 else integers
            for integers, size in zip(packed, self.sizes, strict=True)
        ]
