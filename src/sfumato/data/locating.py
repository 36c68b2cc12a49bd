"""Find the cells of rows on the axes of a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from sfumato.arrays import Array
from sfumato.data.calendar_cells import cells_of
from sfumato.data.columns import numbers
from sfumato.data.keys import KeyNumbers
from sfumato.data.row_form import Cells
from sfumato.lattice import KeyAxis, LabelAxis, LatticeAxis
from sfumato.times import TimeUnit

_Reading: TypeAlias = tuple[str, TimeUnit | None]
"""A column, and what its numbers count."""


class RowLocator:
    """Finds the cells of rows: each distinct axis is located once, each column converted once.

    Attributes
    ----------
    key_numbers : dict of KeyAxis to KeyNumbers
        The keys that have occurred, of each axis of keys.
    """

    def __init__(self, axes: Sequence[LatticeAxis]) -> None:
        self._axes = list(dict.fromkeys(axes))
        self._labels = {axis: cells_of(axis) for axis in self._axes if isinstance(axis, LabelAxis)}
        self.key_numbers = {axis: KeyNumbers() for axis in self._axes if isinstance(axis, KeyAxis)}

    @property
    def known_keys(self) -> int:
        """How many keys have occurred on the axis that has the most."""
        return max(map(len, self.key_numbers.values()), default=0)

    def cells(self, batch: pa.RecordBatch) -> Cells:
        """Give the cells of a batch on each axis: int64 ndarrays of shape (rows,)."""
        converted: dict[_Reading, Array] = {}
        return {axis: self._cells(batch, axis, converted) for axis in self._axes}

    def _cells(
        self, batch: pa.RecordBatch, axis: LatticeAxis, converted: dict[_Reading, Array]
    ) -> Array:
        """The cells of a batch on one axis; ``converted`` keeps the columns of numbers."""
        column = batch[axis.column_name]
        if isinstance(axis, LabelAxis):
            return self._labels[axis].cells(column)
        if isinstance(axis, KeyAxis):
            return self.key_numbers[axis].cells(column)
        # One column may be read as days by one axis, and as microseconds by another.
        reading = (axis.column_name, axis.time)
        if reading not in converted:
            converted[reading] = numbers(column, axis.time)
        return axis.locate(converted[reading])
