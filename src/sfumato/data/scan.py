"""Fill the cubes of all needs in one scan of a table.

Memory: without a person column, the cubes and one batch, whatever the number of rows. A sparse cube
holds its occupied cells and, while it grows, at most as many rows again. With an axis of keys, the
distinct keys are held as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.cube import Cube
from sfumato.data.column_types import of_known_types
from sfumato.data.guard import guarded, guarded_batches
from sfumato.data.keys import with_sorted_keys
from sfumato.data.locating import RowLocator
from sfumato.data.persons import person_ids
from sfumato.data.reader import Columns, Progress, RowReader
from sfumato.data.row_form import Cells
from sfumato.data.row_priorities import ChosenBy, PersonRows, RowPriorities
from sfumato.data.tallies import (
    AllRows,
    BoundedRows,
    CellsOfEachPerson,
    PersonsWithValues,
    RowsOfEachPerson,
    RowsWithinCells,
    Tally,
)
from sfumato.data.where import RowFilter
from sfumato.privacy.unit import Unit

CHUNK_ROWS = 2**16
"""How many rows are located at a time: temporary arrays then stay in the second-level cache."""


def scan(
    reader: RowReader,
    columns: Columns,
    needs: Sequence[Needs],
    unit: Unit,
    key: bytes,
    progress: Progress | None = None,
    row_filter: RowFilter | None = None,
    choice: ChosenBy = (),
) -> list[Cube]:
    """Count all needs in one pass over the columns named: one cube for each, in order.

    Parameters
    ----------
    reader : RowReader
    columns : Columns
        What the needs look at, and the person's column.
    needs : sequence of Needs
    unit : Unit
        If it has no person, all rows are counted.
    key : bytes of length 32
        The secret that chooses what of each person is counted.
    progress : callable or None
        Called after each chunk with the rows done, and all rows or None.
    row_filter : RowFilter or None
        Rows that do not satisfy it are no rows of the table.
    choice : tuple of LatticeAxis
        Whose columns' values choose, together with the key, a person's rows. All columns of the
        needs must be among these.
    """
    axes = [axis for need in needs for axis in need.columns]
    locator = RowLocator(axes, choice if unit.person else (), key)
    priorities = RowPriorities(key)
    tallies = _tallies(needs, unit, key)
    rows_done = 0
    all_rows = guarded(reader.name, reader.rows) if progress else None
    try:
        for chunk in _chunks(reader, columns, unit.person, locator):
            rows_done += len(chunk)
            if row_filter is not None:
                chunk = guarded(reader.name, partial(row_filter.kept, chunk))  # noqa: PLW2901
            rows = guarded(reader.name, partial(_located, chunk, unit, locator, priorities))
            if rows is not None:
                for tally in tallies:
                    tally.count(guarded(reader.name, partial(tally.take, *rows)))
            if progress:
                progress(rows_done, all_rows)
        for tally in tallies:
            for packed in guarded_batches(reader.name, tally.remaining):
                tally.count(packed)
    finally:
        # Also on Ctrl-C: a tally may hold a temporary file.
        for tally in tallies:
            tally.close()
    cubes = {index: cube for tally in tallies for index, cube in tally.cubes().items()}
    return [with_sorted_keys(cubes[index], locator.key_numbers) for index in range(len(needs))]


def _located(
    chunk: pa.RecordBatch, unit: Unit, locator: RowLocator, priorities: RowPriorities
) -> tuple[Cells, PersonRows | None] | None:
    """Give the cells of a chunk, and whose its rows are; rows without a person are dropped.

    None: there is no row left.
    """
    if unit.person is None:
        return locator.cells(chunk), None
    persons = person_ids(chunk, unit.person_columns)
    located = locator.located(chunk)
    if (has_person := persons.has_person) is not None:
        persons = persons.kept(has_person)
        located = located.kept(has_person)
    if not len(persons):
        return None
    return located.cells, priorities.of(persons, located.values, located.key_words)


def _tallies(needs: Sequence[Needs], unit: Unit, key: bytes) -> list[Tally]:
    """What counts the needs: together where one choice of rows serves them all."""
    together: dict[int, Needs] = {}
    of_each_person: dict[int, Needs] = {}
    tallies: list[Tally] = []
    for index, need in enumerate(needs):
        if need.counted == "rows of each person":
            of_each_person[index] = need
        elif need.of_each_person:
            tallies.append(CellsOfEachPerson(index, need))
        elif need.counted == "persons":
            within = unit.counting_persons(unit.cells_of_person)
            of_persons = PersonsWithValues if need.sums else RowsWithinCells
            tallies.append(of_persons(index, need, within, key))
        elif unit.by_cell:
            tallies.append(RowsWithinCells(index, need, unit, key))
        else:
            together[index] = need
    if together:
        bounded = unit.person is not None
        tallies.append(BoundedRows(together, unit, key) if bounded else AllRows(together))
    if of_each_person:
        tallies.append(RowsOfEachPerson(of_each_person))
    return tallies


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
