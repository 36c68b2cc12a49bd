"""How a scan writes a row for one need: its packed cells, then the values to be added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from sfumato.answers.counts import Needs
from sfumato.basics.numbers import Array
from sfumato.data.packing import Packing
from sfumato.domain.lattice import DROPPED, LatticeAxis

Cells: TypeAlias = Mapping[LatticeAxis, Array]
"""The cells of a chunk on each axis: int64 ndarrays of shape (rows,)."""


class RowForm:
    """The integers that a need keeps of each row. DROPPED in the first of them drops the row.

    Attributes
    ----------
    packing : Packing
        Of the lattice.
    """

    def __init__(self, needs: Needs) -> None:
        self.packing = Packing(needs.lattice)
        self._values = [summed.axis for summed in needs.sums]

    @property
    def n_cells(self) -> int:
        """How many of the integers are packed cells; the others are values."""
        return len(self.packing.groups)

    def of(self, cells: Cells) -> list[Array]:
        """Give the integers of a chunk: int64 ndarrays of shape (rows,)."""
        packed = packed_cells(self.packing, cells)
        values = [cells[axis] for axis in self._values]
        missing = [value < 0 for value in values if len(value) and value.min() < 0]
        if missing:
            first = np.where(np.logical_or.reduce(missing), DROPPED, packed[0])
            packed = [first, *packed[1:]]
        return [*packed, *values]

    def narrowed(self, integers: list[Array]) -> list[Array]:
        """Give the same as 32-bit integers where they fit, to halve what is remembered."""
        packed = self.packing.narrowed(integers[: self.n_cells])
        values = [
            value.astype(np.int32) if axis.size < 2**31 else value
            for value, axis in zip(integers[self.n_cells :], self._values, strict=True)
        ]
        return [*packed, *values]


def packed_cells(packing: Packing, cells: Cells) -> list[Array]:
    """Pack the cells of a chunk on the axes of a lattice."""
    n_rows = len(next(iter(cells.values()), ()))
    return packing.pack([cells[axis] for axis in packing.lattice.axes], n_rows)
