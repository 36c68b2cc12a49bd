"""Bound each person to at most r rows per lattice, chosen uniformly at random, in bounded memory.

*Limits by cell* allow a number of rows in a cell, a number of cells, and a norm of counts. A
person's rows are taken in the order of their priorities, as long as they are within the limits:

* A person is counted in at most L0 cells: those of least keyed hash of person and cell. Rows in
  other cells are skipped.
* Rows beyond Linf in their cell are skipped.
* Under a limit c on the L2 norm, rows are taken up to the first with which the sum over cells of
  squared numbers of rows would exceed c^2. To go on after it would favour rare cells.
* At most r rows are taken in all.

Guarantee: what is kept of a person is within all limits, on the cells that they are about. It
depends on that person's rows and the key alone, since priorities do (see below).
In parts: once copies of a row have priorities of their own (see ``person_records``), a person's
rows may come in pieces, and each piece may be reduced by ``reduced``; what is kept in the end is
the same. Holds because of three facts. A cell that is not among the L0 least of a piece is not
among the L0 least of all, and a row with m rows before it in its cell within a piece has at least m
before it among all. Where all cells are counted in, at any priority each cell then has at least as
many rows taken of all as of the piece, so the norm and the number of rows are at least as large:
what does not fit in a piece does not fit among all. Where only some cells are, that may fail, so
pieces are not reduced by the norm or the number of rows.

*The choice of rows.*

Each row has a 64-bit priority: a hash, under a fresh and secret key, of the person and of the row's
values (``priorities``). Rows of a person that are alike in these values are copies. The first
copy has this priority p, and copy number j = 2, 3, ... has the keyed hash of p and j
(``row_order``). On each lattice, a person keeps the r rows of least priority among the person's own
rows that have a cell there.

Guarantee: on each lattice, at most r rows of a person are counted. Which rows these are depends
only on the key and on that person's own rows: not on other persons, nor on the order of the rows,
on files and batches, or on the format of the table. They are a uniformly random subset of size r of
the person's rows that count.
Holds because: for each key, the choice is a map of each person's rows alone. So if one person is
added or removed, or their rows are replaced, everyone else keeps the same rows, and the cubes
differ by the at most r rows of that person, or r removed and r added. A mechanism that is private
for such cubes is private under each key, hence also on average over keys, whoever knows the key.
The same holds jointly for several lattices. No property of the hash is needed for this.
Uniform because: AES-256 is taken for a pseudorandom function. The rows of a person differ in their
values or in their copy number, so their priorities are as if drawn independently of one
distribution. Then every order of the rows is as likely, and copies lie in the same cells, so it
does not matter which of them has which number. The person is hashed as well, so different persons
with the same rows keep different ones.
The same rows on a lattice and on its refinement: what is hashed are values and not cells, and for
all counts of one release they are the values of the same columns (``publishing.counting`` sees to
this). A row that lacks a value on one lattice only is dropped there, with all its copies, and the
other rows keep their priorities. So a person keeps the same rows in both scans, and parallel
composition may span both.
In parts: rows are partitioned by person tokens (see ``priorities``), so all rows of a person meet
in one partition. Copy numbers are known only where all copies of a row are together, so until then
no row is dropped; see ``person_records`` for partitions beyond memory. The r least of a set are the
r least of the r least of its pieces. So once copies have their numbers, pieces may be reduced as
often as wished and in any order, and the rows kept are the same in memory, through files and for
every size of batch.
Exact: up to equal hashes of different rows of one person (probability 2**-64 for each pair),
colliding tokens of text ids (see ``priorities``), and AES-256 as a pseudorandom function. Such a
tie is broken by the order in which the person's own rows come, and not by their cells: the number
of a key says which keys of others came before it. So where that order is not fixed, as after a
shuffle of Spark, or where a person's rows are in memory or not, other persons may decide a tie. It
matters at the r-th row of a person alone: for N rows in all, with a probability of at most
N * 2**-64.
Not covered: persons who appear under several ids; the time that a scan takes, and the size of its
temporary files.

*A stacked norm* limits what a person adds to several tables together. A person's rows are taken in
the order of their priorities, up to the first with which the squared norm would exceed the limit,
or the number of rows would.

Guarantee: the rows that are kept of a person have at most the squared norm that is allowed, in all
tables of the family together. Which rows they are depends on that person's rows and the key alone,
since priorities do (see above).
Exact: the squared norm is a sum of integers. With n rows before it in its cell of a table of weight
w, a row adds w (2 n + 1). Sums are computed modulo 2^64, and those up to the first row that does
not fit are below 2^63 in truth (``StackedNorm`` sees to it), so they are what they should be, and
that row is found.
In parts: a squared norm need not grow with every row, since some weights are negative. So pieces of
a person's rows are reduced to their first rows, as many as may be kept at all, and by nothing else.
What is kept in the end is the same.

*Persons in cells* (``PersonsInCells``): each person's values in each cell are added up, and the
cells are chosen that the person is counted in. A person is counted in at most c cells: those of
least keyed hash of person and cell, whether values are added up or not.

Guarantee: what is given of a person has one number of rows and one sum for each of at most c cells.
It depends on that person's rows and the key alone.
In parts: numbers of rows and sums of whole numbers in several parts add up exactly, and a cell that
is not among the c least of a part is not among the c least of all. So parts may be joined as often
as wished and in any order. The result is the same in memory, through files and for every size of
batch and order of rows.
Exact: up to colliding tokens of text ids (see ``priorities``) and equal hashes of two cells, for
persons of at most 2^31 rows, whose sums are below 2^62. The sum of a person with more may be wrong,
but it still depends on that person's rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise

import msgspec
import numpy as np

from sfumato.answers import Needs
from sfumato.basics import Array
from sfumato.data.packed_counts import Cells, PackedRows, Packing, RowForm, packed_cells
from sfumato.data.person_records import (
    PARTITION_BITS,
    PersonRecords,
    Records,
    RowRecords,
    person_numbers,
)
from sfumato.data.priorities import KeyedHash, PersonRows, Scratch
from sfumato.data.row_order import first_rows, ordered_rows, run_starts, spread
from sfumato.domain import DROPPED, KeyAxis, Lattice
from sfumato.privacy import Limits, StackedNorm, Unit
from sfumato.random import bits

# --- limits by cell -------------------------------------------------------------------------------

# A norm that no number of rows exceeds that one partition may hold.
ALWAYS_WITHIN = 2**31


class LimitedRows(msgspec.Struct, frozen=True):
    """Rows that are sorted by person and priority, and all of which have a cell.

    Attributes
    ----------
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row.
    cells : list of int ndarray of shape (rows,)
        The packed cells that the limits are about.
    cell_priorities : uint64 ndarray of shape (rows,), or None
        The keyed hash of person and cell, where the number of cells is limited.
    """

    tokens: list[Array]
    cells: list[Array]
    cell_priorities: Array | None = None

    def take(self, indices: Array) -> LimitedRows:
        """Return some of the rows, in the same order."""
        hashes = self.cell_priorities
        return LimitedRows(
            [word.take(indices) for word in self.tokens],
            [cell.take(indices) for cell in self.cells],
            None if hashes is None else hashes.take(indices),
        )


class LimitsByCell:
    """All limits on a person's rows together.

    Parameters
    ----------
    rows : int
        In all.
    limits : Limits

    Attributes
    ----------
    all_kept : int
        Up to so many rows of a person all are kept, or none of a cell's.
    """

    def __init__(self, rows: int, limits: Limits) -> None:
        self._rows = rows
        # A cell with as many rows as the norm allows fills it: no further row would fit.
        self._rows_per_cell = limits.largest_cell(rows)
        self._cells_per_person = limits.cells_per_person
        self._norm = limits.norm_per_person
        # Without rows to skip, those taken are a person's first ones.
        self._skips = limits.cells_per_person is not None or limits.rows_per_cell is not None
        # So many rows fit in one cell and in all. Where cells are chosen, all rows of the cells
        # that are chosen are kept: that choice does not look at the order of rows.
        self.all_kept = min(rows, self._rows_per_cell)

    def candidates(self, tokens: list[Array]) -> Array | None:
        """Tell which rows need be looked at: int64 ndarray, ascending; None for all.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            Of rows that are sorted by person and priority.
        """
        if self._skips:
            return None
        return np.flatnonzero(first_rows(tokens, self._rows))

    def kept(self, rows: LimitedRows) -> Array:
        """Tell which rows are kept of all rows of some persons: int64 ndarray, ascending."""
        indices, ranks = self._within_cells(rows)
        within = rows.take(indices)
        is_kept = first_rows(within.tokens, self._rows)
        if self._norm is not None and self._norm < ALWAYS_WITHIN:
            # The row of rank m in its cell makes m^2 there to (m + 1)^2.
            squares = _sums_of_persons(2 * ranks + 1, person_numbers(within.tokens))
            is_kept &= squares <= self._norm**2
        return indices[is_kept]

    def reduced(self, rows: LimitedRows) -> Array:
        """Tell which rows may be kept of a part of the rows of some persons: int64 ndarray."""
        return self._within_cells(rows)[0] if self._cells_per_person else self.kept(rows)

    def _within_cells(self, rows: LimitedRows) -> tuple[Array, Array]:
        """Find rows within the limits on cells and on rows in a cell, and their ranks there."""
        by_cell = CellsOfPersons(person_numbers(rows.tokens), rows.cells)
        ranks = by_cell.ranks()
        is_kept = ranks < self._rows_per_cell
        if self._cells_per_person is not None:
            is_kept &= by_cell.in_first_cells(self._cells_per_person, rows.cell_priorities)
        indices = np.flatnonzero(is_kept)
        return indices, ranks[indices]


def _order_by_cell(persons: Array, cells: list[Array]) -> Array:
    """Sort rows by person and cell, in their present order within a cell: int64 ndarray."""
    n_rows = len(persons)
    bits = [int(column.max(initial=0)).bit_length() for column in (persons, *cells)]
    index_bits = n_rows.bit_length()
    # The integers are signed, so they have 63 bits.
    if len(cells) == 1 and sum(bits) + index_bits <= 63:
        # Person, cell and index in one integer: sorting these is several times as fast.
        keys = (persons << (bits[1] + index_bits)) | (cells[0].astype(np.int64) << index_bits)
        # The index stands last, so that a sort that is not stable keeps the order within a cell.
        keys |= np.arange(n_rows)
        keys.sort()
        return np.asarray(keys & ((1 << index_bits) - 1))
    return np.lexsort([*cells[::-1], persons])


class CellsOfPersons:
    """The rows of persons, by cell.

    Parameters
    ----------
    persons : int64 ndarray of shape (rows,)
        The number of each row's person, ascending; a person's rows are sorted by priority.
    cells : list of int ndarray of shape (rows,)
        The packed cells.
    """

    def __init__(self, persons: Array, cells: list[Array]) -> None:
        self._persons = persons
        # Within a cell of a person, rows stay in the order of their priorities.
        self._order = _order_by_cell(self._persons, cells)
        # Taken and not indexed: less than half of the time.
        in_order = [column.take(self._order) for column in (self._persons, *cells)]
        # Of each distinct pair of person and cell, where its rows begin in the order.
        self._starts = run_starts(in_order)
        n_rows = np.diff(self._starts, append=len(self._order))
        self._pair_of_sorted = np.repeat(np.arange(len(self._starts)), n_rows)

    def ranks(self) -> Array:
        """Tell how many rows of the same person precede each row in its cell: int64 ndarray."""
        ranks = np.empty(len(self._order), np.int64)
        ranks[self._order] = np.arange(len(self._order)) - self._starts.take(self._pair_of_sorted)
        return ranks

    def in_first_cells(self, most_cells: int, cell_priorities: Array | None) -> Array:
        """Tell whether each row lies in a cell that its person is counted in: bool ndarray.

        Parameters
        ----------
        most_cells : int
        cell_priorities : uint64 ndarray of shape (rows,), or None
            The keyed hash of person and cell; not needed where nobody has more cells.
        """
        rows_of_pairs = self._order.take(self._starts)
        persons = self._persons.take(rows_of_pairs)
        is_kept = np.ones(len(persons), bool)
        # Only where a person has more cells does the hash decide.
        deciding = np.flatnonzero(np.bincount(persons).take(persons) > most_cells)
        if len(deciding):
            assert cell_priorities is not None
            # All rows of a person in a cell have one hash, so that of the first stands for all.
            hashes = cell_priorities.take(rows_of_pairs.take(deciding))
            deciding_persons = persons.take(deciding)
            by_hash = ordered_rows([spread(deciding_persons)], hashes).order
            is_kept[deciding.take(by_hash)] = first_rows([deciding_persons], most_cells)
        chosen = np.empty(len(self._order), bool)
        chosen[self._order] = is_kept.take(self._pair_of_sorted)
        return chosen


# --- the choice of rows ---------------------------------------------------------------------------

KEY_BYTES = 32


def fresh_key() -> bytes:
    """Draw the secret key of one choice of rows."""
    return bits.current().words(KEY_BYTES // 8).tobytes()


class Bounder(RowRecords[PackedRows]):
    """Remembers what bounding needs of each row until all rows were seen, then gives those kept.

    A record has 8 bytes for the person (16 for text, 4 while all ids are whole numbers below 2^32),
    8 for the priority, and 4 or 8 for each lattice.
    """

    def __init__(self, key: bytes, rows_per_person: int, needs: Sequence[Needs]) -> None:
        super().__init__(key, rows_per_person, all_kept=rows_per_person)
        self._rows_per_person = rows_per_person
        self._forms = [RowForm(need) for need in needs]
        # They begin behind the priority.
        places = accumulate((form.n_integers for form in self._forms), initial=1)
        self._spans = list(pairwise(places))
        self.packings = [
            (start, form.packing) for (start, _), form in zip(self._spans, self._forms, strict=True)
        ]

    def add(self, persons: PersonRows, cells: Cells) -> None:
        """Take a batch, in as few bytes as it fits in."""
        rows = [form.narrowed(form.of(cells)) for form in self._forms]
        fields = [persons.priorities, *(integers for packed in rows for integers in packed)]
        has_cell = np.logical_or.reduce([packed[0] != DROPPED for packed in rows])
        self._add(has_cell, persons.tokens, fields)

    def _lattices(self, records: Records) -> PackedRows:
        fields = records[self._n_tokens :]
        return [fields[start:stop] for start, stop in self._spans]

    def _kept_rows(self, records: Records, splits: int) -> list[Array]:
        """Tell which records each lattice keeps: int64 ndarrays of shape (kept,)."""
        rows = self._in_order(records, splits)
        lattices = self._lattices(records)
        if len(lattices) == 1:
            # Every record has a cell on it.
            return [rows.order[first_rows(rows.tokens, self._rows_per_person)]]
        kept = []
        for packed in lattices:
            counted = np.flatnonzero(packed[0][rows.order] != DROPPED)
            tokens = [word[counted] for word in rows.tokens]
            kept.append(rows.order[counted[first_rows(tokens, self._rows_per_person)]])
        return kept

    def _finished(self, records: Records, splits: int) -> PackedRows:
        indices = self._kept_rows(records, splits)
        return [
            [integers[rows] for integers in packed]
            for packed, rows in zip(self._lattices(records), indices, strict=True)
        ]

    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop the records that no lattice keeps of these alone.

        None of them would be kept among more records either: these only move a row further back.
        """
        is_kept = np.zeros(len(records[0]), bool)
        for rows in self._kept_rows(records, splits):
            is_kept[rows] = True
        return [field[is_kept] for field in records]


class CellBounder(RowRecords[PackedRows]):
    """The same under limits by cell, for one need: these hold on its own cells alone.

    A record has 8 bytes for the person (16 for text), 8 for the priority, 8 for the priority of the
    cell if there is one, 4 or 8 for the cell that the limits are about, and what is counted of the
    row.
    """

    def __init__(self, key: bytes, need: Needs, unit: Unit) -> None:
        assert unit.limits is not msgspec.UNSET
        self._form = RowForm(msgspec.structs.replace(need, lattice=need.row_lattice))
        # Limits on the cells that are counted need no cells of their own.
        self._limited = None if need.cells is None else Packing(need.cells)
        limited_lattice = need.cells or need.row_lattice
        self._limits: LimitsByCell | StackedLimits = LimitsByCell(unit.rows_per_person, unit.limits)
        if need.norm is not None:
            self._limits = StackedLimits(need.norm, Packing(limited_lattice))
        self._cell_priorities = None
        if unit.limits.cells_per_person is not None:
            self._cell_priorities = CellPriorities(key, limited_lattice)
        super().__init__(key, unit.rows_per_person, self._limits.all_kept)
        self._n_cell_priorities = 0 if self._cell_priorities is None else 1
        place = 1 + self._n_cell_priorities  # behind the priority
        self._counted_place = place
        self.packings = [(place, self._form.packing)]
        self._n_limited = self._form.n_cells
        if self._limited is not None:
            self._n_limited = len(self._limited.groups)
            self._counted_place = place + self._n_limited
            self.packings = [(place, self._limited), (self._counted_place, self._form.packing)]

    def add(self, persons: PersonRows, cells: Cells) -> None:
        """Take a batch. A row without a cell that is limited, or counted, is dropped."""
        counted = self._form.narrowed(self._form.of(cells))
        limited = counted[: self._form.n_cells]
        if self._limited is not None:
            limited = self._limited.narrowed(packed_cells(self._limited, cells))
        fields = [persons.priorities]
        if self._cell_priorities is not None:
            fields.append(self._cell_priorities.of(persons, limited, cells))
        needed = limited[0] != DROPPED
        # Where the limits are about the cells that are counted, these are remembered once.
        if self._limited is not None:
            needed &= counted[0] != DROPPED
            fields += limited
        self._add(needed, persons.tokens, [*fields, *counted])

    def _sorted_rows(
        self, records: Records, splits: int, *, only_candidates: bool = True
    ) -> tuple[Array, LimitedRows]:
        """Return the order of the records by person and priority, and their rows in it.

        Records that the limits need not look at are left out.
        """
        rows = self._in_order(records, splits)
        order = rows.order
        tokens = rows.tokens
        places = self._limits.candidates(tokens) if only_candidates else None
        if places is not None:
            order = order[places]
            tokens = [word[places] for word in tokens]
        first = self._n_tokens + 1
        end = first + self._n_cell_priorities
        cell_priorities = [field.take(order) for field in records[first:end]]
        first = end
        cells = [field.take(order) for field in records[first : first + self._n_limited]]
        return order, LimitedRows(tokens, cells, cell_priorities[0] if cell_priorities else None)

    def _finished(self, records: Records, splits: int) -> PackedRows:
        order, rows = self._sorted_rows(records, splits)
        kept = order[self._limits.kept(rows)]
        return [[field[kept] for field in records[self._n_tokens + self._counted_place :]]]

    def _reduced(self, records: Records, splits: int) -> Records:
        order, rows = self._sorted_rows(records, splits)
        kept = order[self._limits.reduced(rows)]
        return [field[kept] for field in records]


class CellPriorities:
    """Gives each person's cells priorities, keyed hashes: those of least hash are counted.

    Parameters
    ----------
    key : bytes of length 32
    lattice : Lattice
        Of the cells.
    """

    def __init__(self, key: bytes, lattice: Lattice) -> None:
        self._hash = KeyedHash(key, "cells")
        self._lattice = lattice

    def of(self, persons: PersonRows, packed: list[Array], cells: Cells) -> Array:
        """Give the hash of each row's person and cell: uint64 ndarray of shape (rows,).

        A key counts by what it is, and not by its number in order of occurrence.

        Parameters
        ----------
        persons : PersonRows
        packed : list of int ndarray of shape (rows,)
            The packed cells on the lattice.
        cells : Cells
            The cells on its axes.
        """
        if not self._lattice.keyed:
            return self._hash.of([*persons.words, *packed])
        words = [
            persons.key_words[axis] if isinstance(axis, KeyAxis) else cells[axis]
            for axis in self._lattice.axes
        ]
        return self._hash.of([*persons.words, *words])


# --- a stacked norm -------------------------------------------------------------------------------


class StackedLimits:
    """A limit on the stacked norm of a person's counts.

    Parameters
    ----------
    norm : StackedNorm
    packing : Packing
        How the cells of its lattice are packed.
    """

    def __init__(self, norm: StackedNorm, packing: Packing) -> None:
        self._norm = norm
        self._packing = packing
        self.all_kept = norm.all_kept

    def candidates(self, tokens: list[Array]) -> Array:
        """Tell which rows need be looked at: int64 ndarray, ascending.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            Of rows that are sorted by person and priority.
        """
        return np.flatnonzero(first_rows(tokens, self._norm.rows))

    def kept(self, rows: LimitedRows) -> Array:
        """Tell which rows are kept of all rows of some persons: int64 ndarray, ascending."""
        all_persons = person_numbers(rows.tokens)
        is_kept = np.ones(len(all_persons), bool)
        if not len(all_persons):
            return np.flatnonzero(is_kept)
        deciding = np.flatnonzero(np.bincount(all_persons)[all_persons] > self.all_kept)
        rows = rows.take(deciding)
        persons = person_numbers(rows.tokens)
        squares = _sums_of_persons(self._added(rows, persons), persons)
        fits = (squares <= self._norm.most) & first_rows(rows.tokens, self._norm.rows)
        # No row after the first that does not fit is kept, even if a negative weight lets it fit.
        is_kept[deciding] = _sums_of_persons(~fits, persons) == 0
        return np.flatnonzero(is_kept)

    def reduced(self, rows: LimitedRows) -> Array:
        """Tell which rows may be kept of a part of the rows of some persons: int64 ndarray."""
        return self.candidates(rows.tokens)

    def _added(self, rows: LimitedRows, persons: Array) -> Array:
        """Return what each row adds to the squared norm of those before it: int64 ndarray."""
        # A lattice without axes has one cell, and no coordinates.
        coordinates = list(self._packing.unpack(rows.cells).T) if self._norm.levels else []
        added = np.zeros(len(persons), np.int64)
        for table in self._norm.weighed:
            cells = np.zeros(len(persons), np.int64)
            along = zip(self._norm.levels, table.margin, coordinates, strict=True)
            for fanouts, level, column in along:
                if level:
                    n_cells = sum(fanouts[level - 1])
                    cells *= n_cells
                    # The cell of this level in which each cell of the last one lies.
                    ancestors = reduce(np.repeat, fanouts[level:], np.arange(n_cells))
                    cells += ancestors[column]
            ranks = CellsOfPersons(persons, [cells]).ranks()
            added += table.weight * (2 * ranks + 1)
        return added


def _sums_of_persons(numbers: Array, persons: Array) -> Array:
    """Return the sum of each person's numbers up to each row: int64 ndarray, modulo 2^64."""
    sums = np.cumsum(numbers, dtype=np.int64)
    starts = run_starts([persons])
    before = np.concatenate([[0], sums[starts[1:] - 1]]) if len(starts) else starts
    return np.asarray(sums - before[persons])


# --- persons in cells -----------------------------------------------------------------------------


class PersonsInCells(PersonRecords[PackedRows]):
    """Remembers each person's cells, and what the person's rows add up to in each of them.

    The unit says in how many cells a person is counted. No row in these cells is left out.

    A record has 8 bytes for the person (16 for text, 4 while all ids are whole numbers below 2^32),
    8 for the priority of the cell, and 4 or 8 for the cell. Where values are added up, it has 8 for
    the number of rows and 8 for each sum as well. Values are numbers from 0 to 2^31: 10^9 of them
    add up to less than 2^62.
    """

    def __init__(self, key: bytes, need: Needs, unit: Unit) -> None:
        super().__init__()
        self._need = need
        self._most = unit.cells_of_person
        self._form = RowForm(msgspec.structs.replace(need, lattice=need.row_lattice))
        self.packings = [(1, self._form.packing)]
        self._packing = Packing(need.lattice)
        self._cell_priorities = CellPriorities(key, need.row_lattice)
        self._scratch = Scratch()

    def add(self, persons: PersonRows, cells: Cells) -> None:
        """Take a batch."""
        integers = self._form.narrowed(self._form.of(cells))
        packed = integers[: self._form.n_cells]
        # Sums of 32-bit integers would wrap around; 10^9 numbers fit in 64 bits.
        sums = [value.astype(np.int64, copy=False) for value in integers[len(packed) :]]
        rows = [np.ones(len(packed[0]), np.int64)] if sums else []
        cell_priorities = self._cell_priorities.of(persons, packed, cells)
        self._add(packed[0] != DROPPED, persons.tokens, [cell_priorities, *packed, *rows, *sums])

    def _finished(self, records: Records, splits: int) -> PackedRows:
        joined = self._joined(records, splits, self._scratch)[self._n_tokens + 1 :]
        n_cells = self._form.n_cells
        numbers = [
            summed.numbers_of_persons(sums, joined[n_cells])
            for summed, sums in zip(self._need.sums, joined[n_cells + 1 :], strict=True)
        ]
        packed = joined[:n_cells]
        lattice = self._need.lattice
        if lattice == self._need.row_lattice:
            return [[*packed, *numbers]]
        # Segments of an axis are found by the person's number, all other cells as they were packed.
        # Without axes there is one cell, which has no coordinates.
        has_axes = self._need.row_lattice.axes
        coordinates = iter(self._form.packing.unpack(packed).T if has_axes else ())
        located = {
            summed.segments: summed.segments.locate(number.astype(np.float64))
            for summed, number in zip(self._need.sums, numbers, strict=True)
            if summed.segments is not None
        }
        cells = [located[axis] if axis in located else next(coordinates) for axis in lattice.axes]
        return [[*self._packing.pack(cells), *numbers]]

    def _reduced(self, records: Records, splits: int) -> Records:
        # Another thread may ask for it, and the arrays that are used again are not for two.
        return self._joined(records, splits, Scratch())

    def _joined(self, records: Records, splits: int, scratch: Scratch) -> Records:
        """Join the rows of each person in a cell into one, and keep each person's least cells."""
        tokens = records[: self._n_tokens]
        bits = PARTITION_BITS * (splits + 1)
        rows = ordered_rows(tokens, records[self._n_tokens], bits, scratch)
        # Rows of a person that are alike in the hash of the cell lie in one cell.
        is_new = np.ones(len(rows.order), bool)
        is_new[rows.copies] = False
        starts = np.flatnonzero(is_new)
        is_kept = first_rows([word.take(starts) for word in rows.tokens], self._most)
        kept = rows.order.take(starts[is_kept])
        n_plain = self._n_tokens + 1 + self._form.n_cells
        return [
            *(field.take(kept) for field in records[:n_plain]),
            *(
                np.add.reduceat(field.take(rows.order), starts)[is_kept]
                for field in records[n_plain:]
            ),
        ]
