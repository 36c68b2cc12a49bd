"""Add up each person's values in each cell, and choose the cells that the person is counted in.

A person is counted in at most c cells: those of least keyed hash of person and cell, as where
persons are counted without their values.

Guarantee: what is given of a person has one number of rows and one sum for each of at most c cells.
It depends on that person's rows and the key alone.
In parts: numbers of rows and sums of whole numbers in several parts add up exactly, and a cell that
is not among the c least of a part is not among the c least of all. So parts may be joined as often
as wished and in any order. The result is the same in memory, through files and for every size of
batch and order of rows.
Exact: up to colliding tokens of text ids (see ``persons``) and equal hashes of two cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET

from sfumato.arrays import Array
from sfumato.data.limiting import PersonRows, RowLimits
from sfumato.data.person_records import PersonRecords
from sfumato.data.persons import PersonIds
from sfumato.lattice import DROPPED
from sfumato.privacy.unit import Unit

_ROWS = "rows"


@dataclass(frozen=True)
class SumsInCells:
    """What some persons' rows add up to, once for each person and cell.

    Attributes
    ----------
    cells : list of int ndarray of shape (pairs,)
        Packed cells.
    rows : int64 ndarray of shape (pairs,)
        Numbers of rows, at least 1.
    sums : list of int64 ndarray of shape (pairs,)
        Of each value, what its numbers add up to.
    """

    cells: list[Array]
    rows: Array
    sums: list[Array]


class PersonSums(PersonRecords[SumsInCells]):
    """Remembers a number of rows and sums for each person and cell.

    A record has 8 bytes for the person (16 for text), 4 or 8 for the cell, 8 for the number of rows
    and 8 for each sum.

    Parameters
    ----------
    key : bytes of length 32
        The secret of the tokens and of the choice of cells.
    unit : Unit
        Which counts each person once in a cell.
    """

    def __init__(self, key: bytes, unit: Unit) -> None:
        super().__init__(key)
        assert unit.counts_persons
        assert unit.limits is not UNSET
        self._limits = RowLimits(unit.rows_per_person, unit.limits, key)
        self._cell_fields: list[str] = []
        self._sum_fields: list[str] = []

    def add(self, persons: PersonIds, cells: list[Array], values: list[Array]) -> None:
        """Take a batch.

        Parameters
        ----------
        persons : PersonIds
        cells : list of int ndarray of shape (rows,)
            Packed cells. DROPPED in the first drops the row.
        values : list of int ndarray of shape (rows,)
            Numbers from 0 to 2^31. 10^9 of them add up to less than 2^62.
        """
        needed = cells[0] != DROPPED
        if (has_person := persons.has_person) is not None:
            needed &= has_person
        if not needed.any():
            return
        self._cell_fields = [f"c{i}" for i in range(len(cells))]
        self._sum_fields = [f"s{i}" for i in range(len(values))]
        fields = dict(zip(self._cell_fields, cells, strict=True))
        fields[_ROWS] = np.ones(len(persons), np.int64)
        wide = [value.astype(np.int64, copy=False) for value in values]
        fields |= zip(self._sum_fields, wide, strict=True)
        if not needed.all():
            persons = persons.kept(needed)
            fields = {name: column[needed] for name, column in fields.items()}
        self._add(persons, fields)

    def of_persons(self) -> Iterator[SumsInCells]:
        """Give what each person adds up to in the chosen cells, partition by partition.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Array, splits: int) -> SumsInCells:
        del splits
        joined = self._joined(records)
        chosen = joined[self._limits.kept(self._pairs(joined))]
        return SumsInCells(
            [np.ascontiguousarray(chosen[field]) for field in self._cell_fields],
            np.ascontiguousarray(chosen[_ROWS]),
            [np.ascontiguousarray(chosen[field]) for field in self._sum_fields],
        )

    def _reduced(self, records: Array, splits: int) -> Array:
        del splits
        joined = self._joined(records)
        return joined[self._limits.reduced(self._pairs(joined))]

    def _pairs(self, joined: Array) -> PersonRows:
        """One row for each pair of person and cell."""
        return PersonRows(self._token_words(joined), [joined[field] for field in self._cell_fields])

    def _joined(self, records: Array) -> Array:
        """Join the records of each person and cell into one, sorted by person."""
        fields = [*self._token_fields, *self._cell_fields]
        columns = [np.ascontiguousarray(records[field]) for field in fields]
        order = np.lexsort(columns[::-1])
        is_first = np.ones(len(order), bool)
        is_first[1:] = np.logical_or.reduce(
            [column[order[1:]] != column[order[:-1]] for column in columns]
        )
        starts = np.flatnonzero(is_first)
        joined = records[order[starts]]
        for field in (_ROWS, *self._sum_fields):
            joined[field] = np.add.reduceat(records[field][order], starts)
        return joined
