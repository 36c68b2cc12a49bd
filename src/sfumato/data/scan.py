"""Fill the cubes of all lattices in one scan of a table.

Memory: without a person column, the cubes and one batch, whatever the number of rows. A sparse cube
holds its occupied cells and, while it grows, at most as many rows again. With an axis of keys, the
distinct keys are held as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.data.bounding import Bounder
from sfumato.data.cell_counts import CellCounts, empty_counts
from sfumato.data.column_types import of_known_types
from sfumato.data.columns import Labels, numbers
from sfumato.data.guard import guarded, guarded_batches
from sfumato.data.keys import KeyNumbers, with_sorted_keys
from sfumato.data.packing import Packing
from sfumato.data.reader import Columns, Progress, RowReader
from sfumato.lattice import KeyAxis, LabelAxis, Lattice, LatticeAxis

CHUNK_ROWS = 2**16
"""How many rows are located at a time: temporary arrays then stay in the second-level cache."""


def scan(
    reader: RowReader,
    columns: Columns,
    lattices: Sequence[Lattice],
    *,
    person: str | None = None,
    bounder: Bounder | None = None,
    progress: Progress | None = None,
) -> list[Cube]:
    """Count every lattice in one pass over the columns named.

    Parameters
    ----------
    reader : RowReader
    columns : Columns
        What the lattices need, and the person's column.
    lattices : sequence of Lattice
    person : str or None
        The person's column.
    bounder : Bounder or None
        Bounds each person's rows; it is closed at the end. None: all rows are counted.
    progress : callable or None
        Called after each chunk with the rows done, and all rows or None.
    """
    locator = RowLocator(lattices)
    counts = [empty_counts(packing) for packing in locator.packings]
    rows_done = 0
    all_rows = guarded(reader.name, reader.rows) if progress else None
    try:
        for chunk in _chunks(reader, columns, person, locator):
            packed = guarded(reader.name, partial(locator.packed_cells, chunk))
            if bounder is None:
                _count(counts, packed)
            else:
                narrowed = locator.narrowed(packed)
                guarded(reader.name, partial(bounder.add, chunk[person], narrowed))
            rows_done += len(chunk)
            if progress:
                progress(rows_done, all_rows)
        if bounder is not None:
            for packed in guarded_batches(reader.name, bounder.bounded):
                _count(counts, packed)
    finally:
        # Also on Ctrl-C: the bounder may hold a temporary file.
        if bounder is not None:
            bounder.close()
    return [with_sorted_keys(each.cube(), locator.key_numbers) for each in counts]


def _count(counts: Sequence[CellCounts], packed: list[list[Array]]) -> None:
    for each, integers in zip(counts, packed, strict=True):
        each.add(integers)


# --- chunks -------------------------------------------------------------------------------------


def _chunks(
    reader: RowReader, columns: Columns, person: str | None, locator: RowLocator
) -> Iterator[pa.RecordBatch]:
    """Cut the batches of a table into chunks.

    A chunk has at least as many rows as there are known keys, because looking up a chunk passes
    over all of them. So the work stays linear in the number of rows.
    """
    read = guarded_batches(reader.name, partial(reader.batches, columns))
    batches = of_known_types(reader.name, columns, person, read)
    if locator.key_numbers:
        batches = _gathered(reader.name, batches, locator)
    for batch in batches:
        start = 0
        while start < len(batch):
            # Keys become known while a batch is counted: the next chunk begins where this one ends.
            chunk_rows = max(CHUNK_ROWS, locator.known_keys)
            yield batch.slice(start, chunk_rows)
            start += chunk_rows


def _gathered(
    name: str, batches: Iterator[pa.RecordBatch], locator: RowLocator
) -> Iterator[pa.RecordBatch]:
    """Join batches until they have as many rows as there are known keys; see ``_chunks``."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if waiting and batch.schema != waiting[0].schema:
            yield guarded(name, partial(_joined, waiting))
            waiting = []
        waiting.append(batch)
        if sum(map(len, waiting)) >= locator.known_keys:
            yield guarded(name, partial(_joined, waiting))
            waiting = []
    if waiting:
        yield guarded(name, partial(_joined, waiting))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    columns = [column.chunk(0) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


# --- rows to cells ------------------------------------------------------------------------------


class RowLocator:
    """Finds the cells of rows: each distinct axis is located once, each column converted once.

    Attributes
    ----------
    packings : list of Packing
        How the cells of each lattice are packed.
    key_numbers : dict of KeyAxis to KeyNumbers
        The keys that have occurred, of each axis of keys.
    """

    def __init__(self, lattices: Sequence[Lattice]) -> None:
        self._axes = list(dict.fromkeys(axis for lattice in lattices for axis in lattice.axes))
        index_of = {axis: index for index, axis in enumerate(self._axes)}
        self._axis_indices = [[index_of[axis] for axis in lattice.axes] for lattice in lattices]
        self._labels = {axis: Labels(axis) for axis in self._axes if isinstance(axis, LabelAxis)}
        self.key_numbers = {axis: KeyNumbers() for axis in self._axes if isinstance(axis, KeyAxis)}
        self.packings = [Packing(lattice) for lattice in lattices]

    @property
    def known_keys(self) -> int:
        """How many keys have occurred on the axis that has the most."""
        return max(map(len, self.key_numbers.values()), default=0)

    def packed_cells(self, batch: pa.RecordBatch) -> list[list[Array]]:
        """Give the packed cells of a batch on each lattice."""
        converted: dict[str, Array] = {}
        cells = [self._cells(batch, axis, converted) for axis in self._axes]
        return [
            packing.pack([cells[index] for index in indices])
            for packing, indices in zip(self.packings, self._axis_indices, strict=True)
        ]

    def narrowed(self, packed: list[list[Array]]) -> list[list[Array]]:
        """Give packed cells in fewer bytes where they fit."""
        return [
            packing.narrowed(integers)
            for packing, integers in zip(self.packings, packed, strict=True)
        ]

    def _cells(
        self, batch: pa.RecordBatch, axis: LatticeAxis, converted: dict[str, Array]
    ) -> Array:
        """The cells of a batch on one axis; ``converted`` keeps the columns of numbers."""
        if isinstance(axis, LabelAxis):
            return self._labels[axis].cells(batch[axis.name])
        if isinstance(axis, KeyAxis):
            return self.key_numbers[axis].cells(batch[axis.name])
        if axis.name not in converted:
            converted[axis.name] = numbers(batch[axis.name], axis.time)
        return axis.locate(converted[axis.name])
