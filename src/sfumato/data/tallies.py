"""What a scan counts of each chunk: all rows, each person's rows within limits, or persons.

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

*Tallies.* A tally serves several needs. Needs that count rows share one, so that one choice of a
person's rows serves them all. Each is made from needs by their indices; the unit and the key say
what of a person is counted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import structs

from sfumato.answers import Needs
from sfumato.basics import Array
from sfumato.data.bounding import Bounder, CellBounder, CellChoice
from sfumato.data.external_partitions import PARTITION_BITS, Records
from sfumato.data.hashing import Scratch
from sfumato.data.packed_counts import (
    CellCounts,
    Cells,
    Packing,
    RenumberedKeys,
    RowForm,
    empty_counts,
)
from sfumato.data.person_records import NUMBERS, PersonNumbers, PersonRecords
from sfumato.data.priorities import PersonRows
from sfumato.data.row_order import first_rows, ordered_rows
from sfumato.domain import DROPPED, Cube, EdgesAxis, GridAxis
from sfumato.privacy import Unit

# --- persons in cells -----------------------------------------------------------------------------


class PersonsInCells(PersonRecords[Records]):
    """Remembers each person's cells, and what the person's rows add up to in each of them.

    A record has 8 bytes for the person (16 for text, 4 while all ids are whole numbers below 2^32),
    8 for the choice of cells, and 4 or 8 for the cell. Where values are added up, it has 8 for the
    number of rows and 8 for each sum as well.

    Parameters
    ----------
    most : int
        In how many cells a person is counted.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._n_cells = 0
        self._scratch = Scratch()

    def add(
        self,
        tokens: list[Array],
        cell_priorities: Array,
        cells: list[Array],
        values: list[Array],
    ) -> None:
        """Take a batch of rows, all of which have a person.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        cell_priorities : uint64 ndarray of shape (rows,)
            What chooses the cells that a person is counted in.
        cells : list of int ndarray of shape (rows,)
            Packed cells. DROPPED in the first drops the row.
        values : list of int ndarray of shape (rows,)
            Numbers from 0 to 2^31. 10^9 of them add up to less than 2^62.
        """
        self._n_cells = len(cells)
        # Sums of 32-bit integers would wrap around; 10^9 numbers fit in 64 bits.
        sums = [value.astype(np.int64, copy=False) for value in values]
        rows = [np.ones(len(cells[0]), np.int64)] if values else []
        self._add(cells[0] != DROPPED, tokens, [cell_priorities, *cells, *rows, *sums])

    def _finished(self, records: Records, splits: int) -> Records:
        """Give the cells of each person; where values are added up, numbers of rows, and sums."""
        return self._joined(records, splits, self._scratch)[self._n_tokens + 1 :]

    def _reduced(self, records: Records, splits: int) -> Records:
        # Another thread may ask for it, and the arrays that are used again are not for two.
        return self._joined(records, splits, Scratch())

    def _joined(self, records: Records, splits: int, scratch: Scratch) -> Records:
        """Join the rows of each person in a cell into one, and keep each person's least cells."""
        n_choice = self._n_tokens + 1
        tokens = records[: self._n_tokens]
        bits = PARTITION_BITS * (splits + 1)
        rows = ordered_rows(tokens, records[self._n_tokens], bits, scratch)
        # Rows of a person that are alike in the hash of the cell lie in one cell.
        is_new = np.ones(len(rows.order), bool)
        is_new[rows.copies] = False
        starts = np.flatnonzero(is_new)
        is_kept = first_rows([word.take(starts) for word in rows.tokens], self._most)
        kept = rows.order.take(starts[is_kept])
        added = records[n_choice + self._n_cells :]
        return [
            *(field.take(kept) for field in records[: n_choice + self._n_cells]),
            *(np.add.reduceat(field.take(rows.order), starts)[is_kept] for field in added),
        ]


# --- tallies --------------------------------------------------------------------------------------

PackedRows: TypeAlias = list[list[Array]]
"""What is to be counted: of each need, packed cells (see ``packed_counts``)."""


class Tally(ABC):
    """Counts some of the needs of a scan.

    Parameters
    ----------
    needs : mapping of int to Needs
        By their indices.
    records : PersonRecords or None
        What remembers rows until all of a person's were seen. None: all is counted at once.
    """

    def __init__(
        self, needs: Mapping[int, Needs], records: PersonRecords[object] | None = None
    ) -> None:
        self.records = records
        self._forms = {index: RowForm(need) for index, need in needs.items()}
        self._counts: dict[int, CellCounts] = {
            index: empty_counts(self._forms[index].packing, need.sums)
            for index, need in needs.items()
        }

    @abstractmethod
    def take(self, cells: Cells, persons: PersonRows | None) -> PackedRows:
        """Take a chunk, and give what of it can be counted at once; an empty list for nothing.

        Parameters
        ----------
        cells : Cells
        persons : PersonRows or None
            Whose the rows are, where a column names the persons.
        """

    def remaining(self) -> Iterator[PackedRows]:
        """Give what had to wait until all rows were seen; as it stands, nothing waits."""
        return iter(())

    def count(self, packed: PackedRows) -> None:
        """Count what was given."""
        if packed:
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

    def _packed(self, cells: Cells) -> PackedRows:
        """Give what each need keeps of a chunk."""
        return [form.of(cells) for form in self._forms.values()]


class Rows(Tally):
    """Counts each person's rows within the limit of a bounder.

    Without a bounder all rows count: each is a person, or the custodian states the limit.
    """

    def __init__(self, needs: Mapping[int, Needs], bounder: Bounder | None = None) -> None:
        super().__init__(needs, bounder)
        self._bounder = bounder
        if bounder is not None:
            place = 1  # behind the priority
            bounder.packings = packings = []
            for index, form in self._forms.items():
                packings.append((place, form.packing))
                place += form.n_cells + len(needs[index].sums)

    def take(self, cells: Cells, persons: PersonRows | None) -> PackedRows:
        """Give all of a chunk, or remember it in as few bytes as it fits in."""
        packed = self._packed(cells)
        if self._bounder is None:
            return packed
        assert persons is not None
        forms = self._forms.values()
        narrow = [form.narrowed(rows) for form, rows in zip(forms, packed, strict=True)]
        self._bounder.add(persons, narrow)
        return []

    def remaining(self) -> Iterator[PackedRows]:
        """Give the rows that are kept."""
        return iter(()) if self._bounder is None else self._bounder.of_persons()


class RowsWithinCells(Tally):
    """Counts each person's rows within limits that hold on the cells of one need."""

    def __init__(self, needs: Mapping[int, Needs], unit: Unit, key: bytes) -> None:
        (need,) = needs.values()
        self._bounder = CellBounder(key, need, unit)
        super().__init__(needs, self._bounder)

    def take(self, cells: Cells, persons: PersonRows | None) -> PackedRows:
        """Remember a chunk."""
        assert persons is not None
        self._bounder.add(persons, cells)
        return []

    def remaining(self) -> Iterator[PackedRows]:
        """Give the rows that are kept."""
        return ([rows] for rows in self._bounder.of_persons())


class Persons(Tally):
    """Counts persons in the cells of one need, and adds up numbers of each person there.

    The unit says in how many cells a person is counted. No row in these cells is left out.
    """

    def __init__(self, needs: Mapping[int, Needs], unit: Unit, key: bytes) -> None:
        (need,) = needs.values()
        self._need = need
        self._persons = PersonsInCells(unit.cells_of_person)
        super().__init__(needs, self._persons)
        self._row_form = RowForm(structs.replace(need, lattice=need.row_lattice))
        self._persons.packings = [(1, self._row_form.packing)]
        self._cell_choice = CellChoice(key, need.row_lattice)

    def take(self, cells: Cells, persons: PersonRows | None) -> PackedRows:
        """Remember a chunk."""
        form = self._row_form
        integers = form.narrowed(form.of(cells))
        packed = integers[: form.n_cells]
        assert persons is not None
        choice = self._cell_choice.of(persons, packed, cells)
        self._persons.add(persons.tokens, choice, packed, integers[form.n_cells :])
        return []

    def remaining(self) -> Iterator[PackedRows]:
        """Give the cells of each person, and the person's numbers in each of them."""
        n_cells = self._row_form.n_cells
        for records in self._persons.of_persons():
            n_rows = records[n_cells : n_cells + 1]
            numbers = [
                summed.numbers_of_persons(sums, *n_rows)
                for summed, sums in zip(self._need.sums, records[n_cells + 1 :], strict=True)
            ]
            yield [[*self._located(records[:n_cells], numbers), *numbers]]

    def _located(self, packed: list[Array], numbers: list[Array]) -> list[Array]:
        """Give the packed cells of persons, whose rows have the packed cells that are given."""
        lattice = self._need.lattice
        if lattice == self._need.row_lattice:
            return packed
        # Without axes there is one cell, which has no coordinates.
        has_axes = self._need.row_lattice.axes
        coordinates = iter(self._row_form.packing.unpack(packed).T if has_axes else ())
        located = {
            summed.segments: summed.segments.locate(number.astype(np.float64))
            for summed, number in zip(self._need.sums, numbers, strict=True)
            if summed.segments is not None
        }
        cells = [located[axis] if axis in located else next(coordinates) for axis in lattice.axes]
        (form,) = self._forms.values()
        return form.packing.pack(cells)


class NumbersOfPersons(Tally):
    """Counts persons by a number that follows from their rows, or from their rows in cells.

    The needs count by the same number.
    """

    def __init__(self, needs: Mapping[int, Needs]) -> None:
        need = next(iter(needs.values()))
        self._numbers = PersonNumbers(need.counted)
        super().__init__(needs, self._numbers)
        self._cells = None
        if need.cells is not None and need.counted in NUMBERS:
            self._cells = Packing(need.cells)
            self._numbers.packings = [(0, self._cells)]
        axes = dict.fromkeys(need.lattice.axes[0] for need in needs.values())
        self._axes = [axis for axis in axes if isinstance(axis, GridAxis | EdgesAxis)]

    def take(self, cells: Cells, persons: PersonRows | None) -> PackedRows:
        """Remember a chunk."""
        packed: list[Array] = []
        if self._cells is not None:
            coordinates = [cells[axis] for axis in self._cells.lattice.axes]
            packed = self._cells.narrowed(self._cells.pack(coordinates))
        assert persons is not None
        self._numbers.add(persons.tokens, packed)
        return []

    def remaining(self) -> Iterator[PackedRows]:
        """Locate each person's number."""
        for numbers in self._numbers.of_persons():
            yield self._packed({axis: axis.locate(numbers) for axis in self._axes})
