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
from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import Records
from sfumato.data.person_records import PersonRecords, joined_by, person_numbers
from sfumato.domain.lattice import DROPPED


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
    counted : {"cells of each person", "norm of each person", "largest cell of each person"}
    """

    def __init__(self, counted: Counted) -> None:
        super().__init__()
        self._number = NUMBERS[counted]

    def add(self, tokens: list[Array], packed: list[Array]) -> None:
        """Take a batch of rows, all of which have a person. Rows without a cell are dropped.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        packed : list of int ndarray of shape (rows,)
            The packed cells. DROPPED in the first drops the row.
        """
        counts = packed[0] != DROPPED
        if not counts.all():
            tokens = [word[counts] for word in tokens]
            packed = [integers[counts] for integers in packed]
        if len(tokens[0]):
            self._add(tokens, [*packed, np.ones(len(tokens[0]), np.int64)])

    def of_persons(self) -> Iterator[Array]:
        """Give the number of each person, partition by partition: float64 ndarrays.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Records, splits: int) -> Array:
        joined = self._reduced(records, splits)
        persons = person_numbers(joined[: self._n_tokens])
        starts = np.flatnonzero(np.diff(persons, prepend=-1))
        return self._number(joined[-1], starts)

    def _reduced(self, records: Records, splits: int) -> Records:
        """Join the records of each person in a cell into one; they are then sorted by person."""
        return joined_by(records, len(records) - 1)
