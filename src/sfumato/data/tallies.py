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

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import structs

from sfumato.answers import Needs
from sfumato.basics import Array
from sfumato.data.bounding import Bounder, CellBounder, CellPriorities
from sfumato.data.packed_counts import (
    CellCounts,
    Cells,
    PackedRows,
    Packing,
    RenumberedKeys,
    RowForm,
    empty_counts,
)
from sfumato.data.person_records import PARTITION_BITS, PersonNumbers, PersonRecords, Records
from sfumato.data.priorities import PersonRows, Scratch
from sfumato.data.row_order import first_rows, ordered_rows
from sfumato.domain import DROPPED, Cube
from sfumato.privacy import Unit

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
        self._form = RowForm(structs.replace(need, lattice=need.row_lattice))
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
        """Give the cells of each person, and the person's numbers in each of them."""
        joined = self._joined(records, splits, self._scratch)[self._n_tokens + 1 :]
        n_cells = self._form.n_cells
        numbers = [
            summed.numbers_of_persons(sums, joined[n_cells])
            for summed, sums in zip(self._need.sums, joined[n_cells + 1 :], strict=True)
        ]
        return [[*self._located(joined[:n_cells], numbers), *numbers]]

    def _located(self, packed: list[Array], numbers: list[Array]) -> list[Array]:
        """Give the packed cells of persons, whose rows have the packed cells that are given."""
        lattice = self._need.lattice
        if lattice == self._need.row_lattice:
            return packed
        # Without axes there is one cell, which has no coordinates.
        has_axes = self._need.row_lattice.axes
        coordinates = iter(self._form.packing.unpack(packed).T if has_axes else ())
        located = {
            summed.segments: summed.segments.locate(number.astype(np.float64))
            for summed, number in zip(self._need.sums, numbers, strict=True)
            if summed.segments is not None
        }
        cells = [located[axis] if axis in located else next(coordinates) for axis in lattice.axes]
        return self._packing.pack(cells)

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


# --- tallies --------------------------------------------------------------------------------------

Remembered: TypeAlias = Bounder | CellBounder | PersonsInCells | PersonNumbers
"""What remembers rows until all rows of each person were seen, and gives what is to be counted."""


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
