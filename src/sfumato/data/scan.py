"""Fill the cubes of all needs in one scan of a table.

The only code that counts rows: here for every table that hands out its rows, and on the executors
of Spark, where each task counts all rows of its persons (``readers/spark.py``).

Memory: without a person column, the cubes and one batch, for each thread, whatever the number of
rows. A sparse cube holds its occupied cells and, while it grows, at most as many rows again. With
an axis of keys, the distinct keys are held as well.

*Threads* share the work of one scan, and end together. Every kernel that a scan spends its time in
releases the interpreter's lock, so threads count at the same time. Each works on what is its own;
what is shared is handed out under a lock (``Turns``). The calling thread works as well, and it
alone calls code of the user. If a thread fails, the others end at their next step, and the first
error is raised in the calling thread. So does an interrupt, which Python delivers to the main
thread: no thread outlives the call.

*Tallies.* A tally serves several needs. Needs that count rows share one, so that one choice of a
person's rows serves them all. Each is made from needs by their indices; the unit and the key say
what of a person is counted.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Generic, Protocol, Self, TypeAlias, TypeVar

import pyarrow as pa

from sfumato.answers import Needs
from sfumato.data.bounding import Bounder, CellBounder, PersonsInCells
from sfumato.data.cells import RowFilter, RowLocator
from sfumato.data.columns import decoded
from sfumato.data.keys import with_sorted_keys
from sfumato.data.packed_counts import (
    CellCounts,
    Cells,
    PackedRows,
    Packing,
    RenumberedKeys,
    RowForm,
    empty_counts,
)
from sfumato.data.person_records import PersonNumbers, PersonRecords, share_partitions
from sfumato.data.priorities import ChosenBy, PersonRows, keep_freed_arrays
from sfumato.data.reader import Columns, Piece, guarded, guarded_batches
from sfumato.data.schema import KnownTypes
from sfumato.domain import DENSE_LIMIT, Cube
from sfumato.privacy import Unit

# How many rows are located at a time: temporary arrays then stay in the second-level cache.
CHUNK_ROWS = 2**16


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


def cubes_of_pieces(
    scan: Scan,
    pieces: Iterable[Piece],
    progress: Callable[[int], None] | None = None,
    threads: int = 1,
) -> list[Cube]:
    """Count the pieces of a table, and give the cube of each need, in order.

    Each thread takes the next piece, and counts it by itself; in the end the counts are added up.
    They are whole numbers, so the cubes are the same for every number of threads. Persons are
    finished when all rows were seen, each by one thread, as far as their rows have to be together.

    A guard of all reading and counting sees to it that no error quotes a row.

    Parameters
    ----------
    scan : Scan
    pieces : iterable of callables
        Each gives the record batches of a part of the table. If there is one alone, the calling
        thread reads it. If the unit has a person, all rows of each person must be in them.
    progress : callable or None
        Called after each chunk with the rows that all threads have done; by the calling thread.
    threads : int
        How many may be used.
    """
    reading = Reading(scan.name, scan.columns, scan.unit.person, pieces, progress)
    # As many threads have counts of their own as do not take too much memory.
    dense = [need for need in scan.needs if need.lattice.size <= DENSE_LIMIT]
    dense_cells = sum(need.lattice.size * (1 + 2 * len(need.sums)) for need in dense)
    most_threads = max(1, DENSE_LIMIT // max(1, dense_cells))
    return reading.counted(partial(PartialCounts, scan), min(threads, most_threads)).cubes()


class PartialCounts:
    """What one thread counted, and what it remembers, of some of the rows of a scan.

    It holds temporary files: whoever makes one closes its records.

    Attributes
    ----------
    rows_done : int
        How many rows were given to it.
    records : list of PersonRecords
        What remembers rows of persons.
    """

    def __init__(self, scan: Scan, threads: int) -> None:
        self.scan = scan
        self.rows_done = 0
        axes = [axis for need in scan.needs for axis in need.columns]
        self.locator = RowLocator(axes, scan.choice if scan.unit.person else (), scan.key)
        self.tallies = _tallies(scan.needs, scan.unit, scan.key)
        self.records = [tally.records for tally in self.tallies if tally.records is not None]
        self._row_filter = None if scan.row_filter is None else scan.row_filter.apart()
        for records in self.records:
            records.share(threads)

    def add(self, chunk: pa.RecordBatch) -> None:
        """Count a chunk, or remember what must wait until all rows of its persons were seen.

        Rows without a person are dropped.
        """
        self.rows_done += len(chunk)
        # Before persons are bounded: rows that are not asked for must not use up a person's limit.
        if self._row_filter is not None:
            chunk = self._row_filter.kept(chunk)
        rows: PersonRows | None = None
        if self.scan.unit.person is None:
            cells = self.locator.cells(chunk)
        else:
            cells, rows = self.locator.located(chunk, self.scan.unit.person_columns)
            # The tallies take rows of at least one person.
            if not len(rows.tokens[0]):
                return
        for tally in self.tallies:
            tally.take(cells, rows)

    def finish(self) -> Iterator[None]:
        """Count what had to wait, in steps."""
        return chain.from_iterable(tally.finish() for tally in self.tallies)

    def merge(self, other: PartialCounts, key_numbers: RenumberedKeys) -> None:
        """Add what another thread counted of other rows; nothing is remembered any more."""
        for own, its in zip(self.tallies, other.tallies, strict=True):
            own.merge(its, key_numbers)

    def cubes(self) -> list[Cube]:
        """Give the cube of each need, in order."""
        cubes = {index: cube for tally in self.tallies for index, cube in tally.cubes().items()}
        in_order = [cubes[index] for index in range(len(cubes))]
        if key_numbers := self.locator.key_numbers:
            return [with_sorted_keys(cube, key_numbers) for cube in in_order]
        return in_order


# --- threads --------------------------------------------------------------------------------------

T = TypeVar("T")


class Turns(Generic[T]):
    """Hands out what an iterator gives to several threads, one at a time."""

    def __init__(self, given: Iterable[T]) -> None:
        self._given = iter(given)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._lock:
            return next(self._given)


class Team:
    """Threads that end together.

    Attributes
    ----------
    is_ending : bool
        Whether a thread has failed, or the calling one was interrupted: work looks at it at each
        step, and ends.
    """

    def __init__(self) -> None:
        self.is_ending = False
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def work(self, parts: Sequence[Callable[[], None]]) -> None:
        """Do the parts at the same time: the first in the calling thread, each other in its own.

        Raises
        ------
        BaseException
            The first error of any part, without the frames of another thread; or the interrupt.
        """
        others = [_Other(partial(self._try, part)) for part in parts[1:]]
        try:
            for other in others:
                other.start()
            try:
                parts[0]()
            # An interrupt, or a request to exit, is no error of a part, and passes at once.
            except Exception as failure:
                self._end_with(failure)
            for other in others:
                other.wait()
        except BaseException:
            self.is_ending = True
            for other in others:
                other.wait()
            raise
        error = self._error
        self._error = None
        if error is not None:
            try:
                raise error
            finally:
                # Otherwise the error and this frame would keep each other alive.
                del error

    def _try(self, part: Callable[[], None]) -> None:
        """Do a part in a thread of its own."""
        if self.is_ending:
            return
        try:
            part()
        except BaseException as error:
            self._end_with(error)
            # Another thread's frames hold rows, and mean nothing here.
            error.__traceback__ = None

    def _end_with(self, error: BaseException) -> None:
        """Let all parts end, as one has failed; the first error is kept."""
        with self._lock:
            if not self.is_ending:
                self.is_ending = True
                self._error = error


class _Other:
    """A thread beside the calling one."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._action()
        finally:
            self._has_ended.set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until it has ended, if it has begun.

        ``join`` alone does not do: interrupted, it takes a thread that runs for one that has ended.
        """
        if self._thread.ident is not None:
            self._has_ended.wait()
            self._thread.join()


class ThreadPart(Protocol):
    """What one thread makes of the rows that it reads.

    Attributes
    ----------
    locator : RowLocator
    rows_done : int
        How many rows were given to it.
    """

    locator: RowLocator
    rows_done: int

    @property
    def records(self) -> Sequence[PersonRecords[object]]:
        """What remembers persons; all parts of a scan have the same, in the same order."""

    def add(self, chunk: pa.RecordBatch, /) -> None:
        """Take a chunk."""

    def finish(self) -> Iterator[None]:
        """Count the persons that it is to finish, in steps."""

    def merge(self, other: Self, key_numbers: RenumberedKeys, /) -> None:
        """Add what another thread counted; its keys have other numbers here."""


ThreadPartT = TypeVar("ThreadPartT", bound=ThreadPart)


class Reading:
    """Reads a table on several threads, each of which has a part of what is counted.

    Parameters
    ----------
    name : str
        What errors call the table.
    columns : Columns
    person : str or None
        The person's column.
    pieces : iterable of callables
    progress : callable or None
        As for ``cubes_of_pieces``.
    """

    def __init__(
        self,
        name: str,
        columns: Columns,
        person: str | None,
        pieces: Iterable[Piece],
        progress: Callable[[int], None] | None,
    ) -> None:
        keep_freed_arrays()
        self._name = name
        self._types = KnownTypes(name, columns, person)
        self._pieces = Turns(pieces)
        self._progress = progress
        self._told = 0
        self._team = Team()

    def counted(self, new_part: Callable[[int], ThreadPartT], threads: int) -> ThreadPartT:
        """Read all pieces, and give one part that has what all threads counted.

        Parameters
        ----------
        new_part : callable
            Makes a part, given the number of threads.
        threads : int
            How many may be used: one piece is read by one.
        """
        ahead = guarded(self._name, list, islice(self._pieces, 2))
        pieces = Turns(chain(ahead, self._pieces))
        n_threads = threads if len(ahead) > 1 else 1
        parts: list[ThreadPartT] = []
        try:
            # One by one, so that those that were made are closed even if the next cannot be made.
            parts += (new_part(n_threads) for _ in range(n_threads))
            mine, *further = (partial(_taken, self._types, pieces, part) for part in parts)
            self._team.work(
                [partial(self._do, mine, parts), *(partial(self._do, steps) for steps in further)]
            )
            self._tell(parts)
            key_numbers = self._joined(parts)
            if parts[0].records:
                self._team.work([partial(self._do, part.finish) for part in parts])
            for part, numbers in zip(parts[1:], key_numbers[1:], strict=True):
                guarded(self._name, parts[0].merge, part, numbers)
            return parts[0]
        finally:
            for part in parts:
                for records in part.records:
                    records.close()

    def _joined(self, parts: Sequence[ThreadPartT]) -> list[RenumberedKeys]:
        """Let each part finish persons of all; return the numbers of its keys in the first."""
        first, *others = parts
        numbers: list[RenumberedKeys] = [
            {},
            *(guarded(self._name, first.locator.numbers_in, part.locator) for part in others),
        ]
        if not first.records:
            return numbers
        if others:
            for records in zip(*(part.records for part in parts), strict=True):
                share_partitions(records, numbers)
        # What is finished has the numbers of the first thread already.
        return [{} for _ in parts]

    def _do(self, steps: Callable[[], Iterator[None]], told: Sequence[ThreadPart] = ()) -> None:
        """Do the steps of a thread, under the one guard of its work; tell how far all parts are."""
        for _ in guarded_batches(self._name, steps):
            self._tell(told)
            if self._team.is_ending:
                return

    def _tell(self, parts: Sequence[ThreadPart]) -> None:
        """Tell how many rows all threads have done, if that has grown."""
        rows_done = sum(part.rows_done for part in parts)
        if self._progress is not None and rows_done > self._told:
            self._told = rows_done
            self._progress(rows_done)


def _taken(types: KnownTypes, pieces: Iterable[Piece], part: ThreadPart) -> Iterator[None]:
    return map(part.add, _chunks(types, pieces, part.locator))


# --- tallies --------------------------------------------------------------------------------------

# What remembers rows until all rows of each person were seen, and gives what is to be counted.
Remembered: TypeAlias = Bounder | CellBounder | PersonsInCells | PersonNumbers


class Tally:
    """Counts some of the needs of a scan.

    Parameters
    ----------
    needs : mapping of int to Needs
        By their indices.
    records : Remembered or None
        None: every row is counted at once.
    """

    def __init__(self, needs: Mapping[int, Needs], records: Remembered | None = None) -> None:
        self.records = records
        self._forms = [RowForm(need) for need in needs.values()]
        self._counts: dict[int, CellCounts] = {
            index: empty_counts(Packing(need.lattice), need.sums) for index, need in needs.items()
        }

    def take(self, cells: Cells, persons: PersonRows | None) -> None:
        """Count a chunk, or remember it.

        Parameters
        ----------
        cells : Cells
        persons : PersonRows or None
            Whose the rows are, where a column names the persons.
        """
        if self.records is None:
            self._count([form.of(cells) for form in self._forms])
            return
        assert persons is not None
        self.records.add(persons, cells)

    def finish(self) -> Iterator[None]:
        """Count what was remembered, in steps."""
        return iter(()) if self.records is None else map(self._count, self.records.of_persons())

    def _count(self, packed: PackedRows) -> None:
        for counts, integers in zip(self._counts.values(), packed, strict=True):
            counts.add(integers)

    def merge(self, other: Tally, key_numbers: RenumberedKeys) -> None:
        """Add what another thread counted of the same needs.

        Parameters
        ----------
        other : Tally
        key_numbers : mapping of KeyAxis to int64 ndarray of shape (keys,)
            The number here of each key that the other one numbered.
        """
        for own, its in zip(self._counts.values(), other._counts.values(), strict=True):
            own.merge(its, key_numbers)

    def cubes(self) -> dict[int, Cube]:
        """Give the cube of each need, by the need's index."""
        return {index: counts.cube() for index, counts in self._counts.items()}


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
            tallies.append(Tally(alone, PersonNumbers([need])))
        elif need.counted == "persons":
            tallies.append(Tally(alone, PersonsInCells(key, need, unit)))
        elif unit.by_cell:
            tallies.append(Tally(alone, CellBounder(key, need, unit)))
        else:
            rows |= alone
    if rows:
        bounder = Bounder(key, unit.rows_per_person, list(rows.values())) if unit.person else None
        tallies.append(Tally(rows, bounder))
    if numbers_of_rows:
        tallies.append(Tally(numbers_of_rows, PersonNumbers(list(numbers_of_rows.values()))))
    return tallies


# --- chunks -------------------------------------------------------------------------------------


def _chunks(
    types: KnownTypes, pieces: Iterable[Piece], locator: RowLocator
) -> Iterator[pa.RecordBatch]:
    """Cut the batches of pieces into chunks.

    A chunk has at least as many rows as there are known keys, because looking up a chunk passes
    over all of them. So the work stays linear in the number of rows.
    """
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
    columns = [
        _chunks_joined(chunks) for chunks in zip(*(batch.columns for batch in batches), strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batches[0].schema.names)


def _chunks_joined(chunks: Sequence[pa.Array]) -> pa.Array:
    # Arrow does not unify dictionaries that hold null.
    if any(pa.types.is_dictionary(chunk.type) and chunk.dictionary.null_count for chunk in chunks):
        chunks = [decoded(chunk) for chunk in chunks]
    return pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
