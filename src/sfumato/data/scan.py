"""Fill the cubes of all needs in one scan of a table.

The only code that counts rows: here for every table that hands out its rows, and on the executors
of Spark, where each task counts all rows of its persons (``readers/spark.py``).

Memory: without a person column, the cubes and one batch, whatever the number of rows. A sparse cube
holds its occupied cells and, while it grows, at most as many rows again. With an axis of keys, the
distinct keys are held as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from sfumato.answers import Needs
from sfumato.data.bounding import Bounder
from sfumato.data.cells import RowFilter, RowLocator
from sfumato.data.keys import with_sorted_keys
from sfumato.data.priorities import ChosenBy, PersonRows, RowPriorities, person_ids
from sfumato.data.reader import Columns, Piece, guarded, guarded_batches
from sfumato.data.schema import KnownTypes
from sfumato.data.tallies import (
    NumbersOfPersons,
    PersonsWithValues,
    Rows,
    RowsWithinCells,
    Tally,
)
from sfumato.domain import Cube
from sfumato.privacy import Unit

CHUNK_ROWS = 2**16
"""How many rows are located at a time: temporary arrays then stay in the second-level cache."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Scan:
    """What is counted of a table: a value that can be sent to where the rows are.

    Attributes
    ----------
    name : str
        What errors call the table.
    columns : Columns
        What the needs look at, and the person's column.
    needs : tuple of Needs
    unit : Unit
        If it has no person, all rows are counted.
    key : bytes of length 32
        The secret that chooses what of each person is counted.
    row_filter : RowFilter or None
        Rows that do not satisfy it are no rows of the table.
    choice : tuple of LatticeAxis
        Whose columns' values choose, together with the key, a person's rows. All columns of the
        needs must be among these.
    """

    name: str
    columns: Columns
    needs: tuple[Needs, ...]
    unit: Unit
    key: bytes
    row_filter: RowFilter | None = None
    choice: ChosenBy = ()


class PartialCounts:
    """What was counted, and what is remembered, of some of the rows of a scan.

    It holds temporary files: whoever makes one closes it.
    """

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        axes = [axis for need in scan.needs for axis in need.columns]
        self.locator = RowLocator(axes, scan.choice if scan.unit.person else (), scan.key)
        self.priorities = RowPriorities(scan.key)
        self.tallies = _tallies(scan.needs, scan.unit, scan.key)

    def add(self, chunk: pa.RecordBatch) -> None:
        """Count a chunk, or remember what must wait until all rows of its persons were seen.

        Rows without a person are dropped.
        """
        # Before persons are bounded: rows that are not asked for must not use up a person's limit.
        if self.scan.row_filter is not None:
            chunk = self.scan.row_filter.kept(chunk)
        rows: PersonRows | None = None
        if self.scan.unit.person is None:
            cells = self.locator.cells(chunk)
        else:
            persons = person_ids(chunk, self.scan.unit.person_columns)
            located = self.locator.located(chunk)
            if (has_person := persons.has_person) is not None:
                persons = persons.kept(has_person)
                located = located.kept(has_person)
            # The tallies take rows of at least one person.
            if not len(persons):
                return
            cells = located.cells
            rows = self.priorities.of(persons, located.values, located.key_words)
        for tally in self.tallies:
            tally.count(tally.take(cells, rows))

    def close(self) -> None:
        """Free memory and disk, whatever happened."""
        for tally in self.tallies:
            tally.close()


def partial(
    scan: Scan, pieces: Iterable[Piece], progress: Callable[[int], None] | None = None
) -> PartialCounts:
    """Count pieces of a table, as far as it can be done before all rows were seen.

    Two guards see to it that no error quotes a row: one of all reading, and one of all counting.

    Parameters
    ----------
    scan : Scan
    pieces : iterable of callables
        Each gives the record batches of a part of the table.
    progress : callable or None
        Called after each chunk with the rows done.
    """
    counts = PartialCounts(scan)
    rows_done = 0
    try:
        for chunk in guarded_batches(scan.name, _chunks, scan, pieces, counts.locator):
            guarded(scan.name, counts.add, chunk)
            rows_done += len(chunk)
            if progress:
                progress(rows_done)
    except BaseException:  # also on Ctrl-C
        counts.close()
        raise
    return counts


def finish(counts: PartialCounts) -> list[Cube]:
    """Count what had to wait, and give the cube of each need, in order.

    If the unit has a person, these counts must have seen all rows of each of their persons.
    """
    try:
        for tally in counts.tallies:
            for packed in guarded_batches(counts.scan.name, tally.remaining):
                tally.count(packed)
    finally:
        counts.close()
    cubes = {index: cube for tally in counts.tallies for index, cube in tally.cubes().items()}
    in_order = [cubes[index] for index in range(len(cubes))]
    if key_numbers := counts.locator.key_numbers:
        return [with_sorted_keys(cube, key_numbers) for cube in in_order]
    return in_order


def _tallies(needs: Sequence[Needs], unit: Unit, key: bytes) -> list[Tally]:
    """Return what counts the needs: together where one choice of rows serves them all."""
    rows: dict[int, Needs] = {}
    numbers_of_rows: dict[int, Needs] = {}
    tallies: list[Tally] = []
    for index, need in enumerate(needs):
        alone = {index: need}
        if need.counted == "rows of each person":
            numbers_of_rows |= alone
        elif need.of_each_person:
            tallies.append(NumbersOfPersons(alone))
        elif need.counted == "persons":
            within = unit.counting_persons(unit.cells_of_person)
            of_persons = PersonsWithValues if need.sums else RowsWithinCells
            tallies.append(of_persons(alone, within, key))
        elif unit.by_cell:
            tallies.append(RowsWithinCells(alone, unit, key))
        else:
            rows |= alone
    if rows:
        tallies.append(Rows(rows, Bounder(key, unit.rows_per_person) if unit.person else None))
    if numbers_of_rows:
        tallies.append(NumbersOfPersons(numbers_of_rows))
    return tallies


# --- chunks -------------------------------------------------------------------------------------


def _chunks(scan: Scan, pieces: Iterable[Piece], locator: RowLocator) -> Iterator[pa.RecordBatch]:
    """Cut the batches of pieces into chunks.

    A chunk has at least as many rows as there are known keys, because looking up a chunk passes
    over all of them. So the work stays linear in the number of rows.
    """
    types = KnownTypes(scan.name, scan.columns, scan.unit.person)
    read = chain.from_iterable(map(operator.call, pieces))
    batches: Iterator[pa.RecordBatch] = map(types.checked, read)
    if locator.key_numbers:
        batches = _gathered(batches, locator)
    for batch in batches:
        start = 0
        while start < len(batch):
            # Keys become known while a batch is counted: the next chunk begins where this one ends.
            chunk_rows = max(CHUNK_ROWS, locator.known_keys)
            yield batch.slice(start, chunk_rows)
            start += chunk_rows


def _gathered(batches: Iterator[pa.RecordBatch], locator: RowLocator) -> Iterator[pa.RecordBatch]:
    """Join batches until they have as many rows as there are known keys; see ``_chunks``."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if waiting and batch.schema != waiting[0].schema:
            yield _joined(waiting)
            waiting = []
        waiting.append(batch)
        if sum(map(len, waiting)) >= locator.known_keys:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    columns = [column.chunk(0) for column in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)
