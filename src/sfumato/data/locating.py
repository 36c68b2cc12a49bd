"""Find the cells of rows on the axes of a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from sfumato.basics.numbers import Array
from sfumato.data.calendar_cells import cells_of
from sfumato.data.columns import numbers
from sfumato.data.keys import KeyNumbers
from sfumato.data.row_form import Cells
from sfumato.data.row_priorities import ChosenBy, KeyWords, number_words
from sfumato.domain.lattice import (
    BinsAndMissing,
    EdgesAxis,
    GridAxis,
    KeyAxis,
    LabelAxis,
    LatticeAxis,
)
from sfumato.domain.times import TimeUnit

_Reading: TypeAlias = tuple[str, TimeUnit | None]
"""A column, and what its numbers count."""

_Numeric: TypeAlias = GridAxis | EdgesAxis | BinsAndMissing


class LocatedRows(NamedTuple):
    """The cells of rows, and what chooses among the rows of a person.

    Attributes
    ----------
    cells : mapping of LatticeAxis to int64 ndarray of shape (rows,)
    values : list of ndarray of shape (rows,)
        What is hashed of the values of each axis of the choice.
    key_words : dict of KeyAxis to uint64 ndarray of shape (rows,)
    """

    cells: Cells
    values: list[Array]
    key_words: dict[KeyAxis, Array]

    def kept(self, which: Array) -> LocatedRows:
        """The rows for which a bool ndarray holds."""
        return LocatedRows(
            {axis: cells[which] for axis, cells in self.cells.items()},
            [values[which] for values in self.values],
            {axis: words[which] for axis, words in self.key_words.items()},
        )


class RowLocator:
    """Finds the cells of rows: each distinct axis is located once, each column converted once.

    Parameters
    ----------
    axes : sequence of LatticeAxis
    choice : tuple of LatticeAxis
        Whose columns' values choose among the rows of a person.
    key : bytes of length 32
        The secret of the choice.

    Attributes
    ----------
    key_numbers : dict of KeyAxis to KeyNumbers
        The keys that have occurred, of each axis of keys.
    """

    def __init__(
        self, axes: Sequence[LatticeAxis], choice: ChosenBy = (), key: bytes = bytes(32)
    ) -> None:
        self._axes = list(dict.fromkeys(axes))
        self._choice = choice
        known = dict.fromkeys((*axes, *choice))
        self._labels = {axis: cells_of(axis) for axis in known if isinstance(axis, LabelAxis)}
        self.key_numbers = {axis: KeyNumbers() for axis in known if isinstance(axis, KeyAxis)}
        self._key_words = {
            axis: KeyWords(numbers, key) for axis, numbers in self.key_numbers.items()
        }

    @property
    def known_keys(self) -> int:
        """How many keys have occurred on the axis that has the most."""
        return max(map(len, self.key_numbers.values()), default=0)

    def cells(self, batch: pa.RecordBatch) -> Cells:
        """Give the cells of a batch on each axis: int64 ndarrays of shape (rows,)."""
        return self._cells_on(batch, {})

    def located(self, batch: pa.RecordBatch) -> LocatedRows:
        """Give the cells of a batch, and what chooses among its rows."""
        converted: dict[_Reading, Array] = {}
        cells = self._cells_on(batch, converted)
        for axis in self._choice:
            if axis not in cells and isinstance(axis, LabelAxis | KeyAxis):
                cells[axis] = self._cells(batch, axis, converted)
        key_words = {axis: words.of(cells[axis]) for axis, words in self._key_words.items()}
        values: list[Array] = []
        for axis in self._choice:
            if isinstance(axis, KeyAxis):
                values.append(key_words[axis])
            elif isinstance(axis, LabelAxis):
                values.append(cells[axis])
            else:
                values.append(number_words(_numbers(batch, axis, converted)))
        return LocatedRows(cells, values, key_words)

    def _cells_on(
        self, batch: pa.RecordBatch, converted: dict[_Reading, Array]
    ) -> dict[LatticeAxis, Array]:
        return {axis: self._cells(batch, axis, converted) for axis in self._axes}

    def _cells(
        self, batch: pa.RecordBatch, axis: LatticeAxis, converted: dict[_Reading, Array]
    ) -> Array:
        """The cells of a batch on one axis; ``converted`` keeps the columns of numbers."""
        if isinstance(axis, LabelAxis):
            return self._labels[axis].cells(batch[axis.column_name])
        if isinstance(axis, KeyAxis):
            return self.key_numbers[axis].cells(batch[axis.column_name])
        return axis.locate(_numbers(batch, axis, converted))


def _numbers(batch: pa.RecordBatch, axis: _Numeric, converted: dict[_Reading, Array]) -> Array:
    """The numbers of a batch along an axis; ``converted`` keeps them."""
    # One column may be read as days by one axis, and as microseconds by another.
    reading = (axis.column_name, axis.time)
    if reading not in converted:
        converted[reading] = numbers(batch[axis.column_name], axis.time)
    return converted[reading]
