"""Add up each person's values in each cell, and choose the cells that the person is counted in.

A person is counted in at most c cells: those of least keyed hash of person and cell, as where
persons are counted without their values.

Guarantee: what is given of a person has one number of rows and one sum for each of at most c cells.
It depends on that person's rows and the key alone.
In parts: numbers of rows and sums of whole numbers in several parts add up exactly, and a cell that
is not among the c least of a part is not among the c least of all. So parts may be joined as often
as wished and in any order. The result is the same in memory, through files and for every size of
batch and order of rows.
Exact: up to colliding tokens of text ids (see ``persons``) and equal hashes of two cells, for
persons of at most 2^31 rows, whose sums are below 2^62. The sum of a person with more may be wrong,
but it still depends on that person's rows alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import UNSET

from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import Records
from sfumato.data.limiting import LimitedRows, RowLimits
from sfumato.data.person_records import PersonRecords, joined_by
from sfumato.domain.lattice import DROPPED
from sfumato.privacy.unit import Unit


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

    A record has 8 bytes for the person (16 for text), 4 or 8 for the cell, 8 for the choice of
    cells, 8 for the number of rows and 8 for each sum.

    Parameters
    ----------
    unit : Unit
        Which counts each person once in a cell.
    """

    def __init__(self, unit: Unit) -> None:
        super().__init__()
        assert unit.counts_persons
        assert unit.limits is not UNSET
        self._limits = RowLimits(unit.rows_per_person, unit.limits)
        self._n_cells = 0

    def add(
        self,
        tokens: list[Array],
        cells: list[Array],
        cell_priorities: Array,
        values: list[Array],
    ) -> None:
        """Take a batch of rows, all of which have a person.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        cells : list of int ndarray of shape (rows,)
            Packed cells. DROPPED in the first drops the row.
        cell_priorities : uint64 ndarray of shape (rows,)
            What chooses the cells that a person is counted in.
        values : list of int ndarray of shape (rows,)
            Numbers from 0 to 2^31. 10^9 of them add up to less than 2^62.
        """
        self._n_cells = len(cells)
        needed = cells[0] != DROPPED
        wide = [value.astype(np.int64, copy=False) for value in values]
        ones = np.ones(len(needed), np.int64)
        fields = [*tokens, *cells, cell_priorities, ones, *wide]
        if not needed.all():
            fields = [field[needed] for field in fields]
        if len(fields[0]):
            self._add(fields[: len(tokens)], fields[len(tokens) :])

    def of_persons(self) -> Iterator[SumsInCells]:
        """Give what each person adds up to in the chosen cells, partition by partition.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Records, splits: int) -> SumsInCells:
        del splits
        joined = self._joined(records)
        kept = self._limits.kept(self._pairs(joined))
        chosen = [field[kept] for field in joined[self._n_tokens :]]
        cells = chosen[: self._n_cells]
        rows, *sums = chosen[self._n_cells + 1 :]
        return SumsInCells(cells, rows, sums)

    def _reduced(self, records: Records, splits: int) -> Records:
        del splits
        joined = self._joined(records)
        kept = self._limits.reduced(self._pairs(joined))
        return [field[kept] for field in joined]

    def _pairs(self, joined: Records) -> LimitedRows:
        """One row for each pair of person and cell."""
        n_pair = self._n_tokens + self._n_cells
        return LimitedRows(
            joined[: self._n_tokens], joined[self._n_tokens : n_pair], joined[n_pair]
        )

    def _joined(self, records: Records) -> Records:
        """Join the records of each person and cell into one, sorted by person."""
        return joined_by(records, self._n_tokens + self._n_cells, kept=1)
