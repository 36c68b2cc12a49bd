"""Keep of each person the rows that a stacked norm allows.

A person's rows are taken in the order of their priorities, up to the first with which the squared
norm would exceed the limit, or the number of rows would.

Guarantee: the rows that are kept of a person have at most the squared norm that is allowed, in all
tables of the family together. Which rows they are depends on that person's rows and the key alone,
since priorities do (see ``bounding``).
Exact: the squared norm is a sum of integers. With n rows before it in its cell of a table of weight
w, a row adds w (2 n + 1). Sums are computed modulo 2^64, and those up to the first row that does
not fit are below 2^63 in truth (``StackedNorm`` sees to it), so they are what they should be, and
that row is found.
In parts: a squared norm need not grow with every row, since some weights are negative. So pieces of
a person's rows are reduced to their first rows, as many as may be kept at all, and by nothing else.
What is kept in the end is the same.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.data.limiting import CellsOfPersons, LimitedRows, positions
from sfumato.data.packing import Packing
from sfumato.data.person_records import person_numbers
from sfumato.data.row_order import first_rows
from sfumato.privacy.limits import StackedNorm


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

    def candidates(self, tokens: list[Array]) -> Array | None:
        """Which rows need be looked at: int64 ndarray, ascending.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            Of rows that are sorted by person and priority.
        """
        return np.flatnonzero(first_rows(tokens, self._norm.rows))

    def kept(self, rows: LimitedRows) -> Array:
        """Which rows are kept of all rows of some persons: int64 ndarray, ascending."""
        persons = person_numbers(rows.tokens)
        is_kept = np.ones(len(persons), bool)
        if len(persons):
            deciding = np.flatnonzero(np.bincount(persons)[persons] > self.all_kept)
            is_kept[deciding] = self._fit(rows.take(deciding))
        return np.flatnonzero(is_kept)

    def reduced(self, rows: LimitedRows) -> Array:
        """Which rows may be kept of a part of the rows of some persons: int64 ndarray."""
        return np.flatnonzero(first_rows(rows.tokens, self._norm.rows))

    def _fit(self, rows: LimitedRows) -> Array:
        """Whether each row comes before the first one that does not fit: bool ndarray."""
        persons = person_numbers(rows.tokens)
        squares = _sums_of_persons(self._added(rows, persons), persons)
        fits = (squares <= self._norm.most) & (positions(persons) < self._norm.rows)
        return np.asarray(_sums_of_persons(~fits, persons) == 0)

    def _added(self, rows: LimitedRows, persons: Array) -> Array:
        """What each row adds to the squared norm of those before it: int64 ndarray."""
        # A lattice without axes has one cell, and no coordinates.
        coordinates = list(self._packing.unpack(rows.cells).T) if self._norm.levels else []
        added = np.zeros(len(persons), np.int64)
        for each in self._norm.weighed:
            cells = self._cells(each.margin, coordinates, len(persons))
            ranks = CellsOfPersons(persons, [cells]).ranks()
            added += each.weight * (2 * ranks + 1)
        return added

    def _cells(self, margin: tuple[int, ...], coordinates: list[Array], n_rows: int) -> Array:
        """The cell of each row in a table: int64 ndarray of shape (rows,)."""
        cells = np.zeros(n_rows, np.int64)
        along = zip(self._norm.levels, margin, coordinates, strict=True)
        for fanouts, level, column in along:
            if level:
                cells *= sum(fanouts[level - 1])
                cells += _ancestors(fanouts, level)[column]
        return cells


def _ancestors(fanouts: tuple[tuple[int, ...], ...], level: int) -> Array:
    """The cell of a level in which each cell of the last one lies: int64 ndarray."""
    cells = np.arange(sum(fanouts[level - 1]))
    return reduce(np.repeat, fanouts[level:], cells)


def _sums_of_persons(numbers: Array, persons: Array) -> Array:
    """The sum of each person's numbers up to each row: int64 ndarray, modulo 2^64."""
    sums = np.cumsum(numbers, dtype=np.int64)
    starts = np.flatnonzero(np.diff(persons, prepend=-1))
    before = np.concatenate([[0], sums[starts[1:] - 1]]) if len(starts) else starts
    return np.asarray(sums - before[persons])
