"""How a person's rows spread over cells, in one number: counted before any limit.

It is one of three, for each person: the number of cells with a row of the person, the L2 norm of
the person's counts in the cells (rounded up), or the largest of these counts.

Guarantee: one person lies in one cell, and moves no other person's: adding or removing a person
changes one count by one.
Holds because: the number follows from the rows of that person alone.
In parts: rows of a person in one cell add up, so parts may be joined as often as wished and in any
order. The result is the same in memory, through files and for every size of batch.
Exact: up to colliding tokens of text ids (see ``persons``), and to persons with more than 10^7 rows
in a cell, whose norms may be rounded by floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from sfumato.answers.counts import Counted
from sfumato.arrays import Array
from sfumato.data.person_records import PersonRecords, person_numbers
from sfumato.data.persons import PersonIds
from sfumato.lattice import DROPPED

_ROWS = "rows"


def _numbers_of_cells(rows: Array, starts: Array) -> Array:
    return np.diff(np.append(starts, len(rows))).astype(float)


def _norms(rows: Array, starts: Array) -> Array:
    """The norms of the persons' counts, rounded up."""
    squares = np.add.reduceat(rows.astype(float) ** 2, starts)
    # A square root is rounded: where the number below it is enough, that one is the norm.
    norms = np.ceil(np.sqrt(squares))
    return np.asarray(norms - ((norms - 1) ** 2 >= squares))


def _largest_counts(rows: Array, starts: Array) -> Array:
    return np.maximum.reduceat(rows, starts).astype(float)


NUMBERS: Mapping[Counted, Callable[[Array, Array], Array]] = {
    "cells of each person": _numbers_of_cells,
    "norm of each person": _norms,
    "largest cell of each person": _largest_counts,
}
"""Each of the numbers, from the rows of each person and cell, and where each person begins."""


class CellNumbers(PersonRecords[Array]):
    """Finds the number of each person.

    A record has 8 bytes for the person (16 for text), 4 or 8 for the cell, and 8 for a number of
    rows.

    Parameters
    ----------
    key : bytes of length 32
        The secret of the tokens.
    counted : {"cells of each person", "norm of each person", "largest cell of each person"}
    """

    def __init__(self, key: bytes, counted: Counted) -> None:
        super().__init__(key)
        self._number = NUMBERS[counted]
        self._cell_fields: list[str] = []

    def add(self, persons: PersonIds, packed: list[Array]) -> None:
        """Take a batch. Rows without a person, or without a cell, are dropped.

        Parameters
        ----------
        persons : PersonIds
        packed : list of int ndarray of shape (rows,)
            The packed cells. DROPPED in the first drops the row.
        """
        counts = packed[0] != DROPPED
        if (has_person := persons.has_person) is not None:
            counts = counts & has_person
        if not counts.all():
            persons = persons.kept(counts)
            packed = [integers[counts] for integers in packed]
        if len(persons):
            self._cell_fields = [f"c{i}" for i in range(len(packed))]
            cells = dict(zip(self._cell_fields, packed, strict=True))
            self._add(persons, {**cells, _ROWS: np.ones(len(persons), np.int64)})

    def of_persons(self) -> Iterator[Array]:
        """Give the number of each person, partition by partition: float64 ndarrays.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Array, splits: int) -> Array:
        joined = self._reduced(records, splits)
        persons = person_numbers(self._token_words(joined))
        starts = np.flatnonzero(np.diff(persons, prepend=-1))
        return self._number(joined[_ROWS], starts)

    def _reduced(self, records: Array, splits: int) -> Array:
        """Join the records of each person in a cell into one; they are then sorted by person."""
        words = self._token_words(records)
        cells = [records[field] for field in self._cell_fields]
        order = np.lexsort([*cells[::-1], *words[::-1]])
        pairs = person_numbers([column[order] for column in (*words, *cells)])
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        joined = records[order[starts]]
        joined[_ROWS] = np.add.reduceat(records[_ROWS][order], starts)
        return joined
