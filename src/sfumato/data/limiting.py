"""Keep of each person what limits by cell allow: rows in a cell, cells, and the norm of counts.

A person's rows are taken in the order of their priorities, as long as they are within the limits:

* A person is counted in at most L0 cells: those of least keyed hash of person and cell. Rows in
  other cells are skipped.
* Rows beyond Linf in their cell are skipped.
* Under a limit c on the L2 norm, rows are taken up to the first with which the sum over cells of
  squared numbers of rows would exceed c^2. To go on after it would favour rare cells.
* At most r rows are taken in all.

Guarantee: what is kept of a person is within all limits, on the cells that they are about. It
depends on that person's rows and the key alone, since priorities do (see ``bounding``).
In parts: once copies of a row have priorities of their own (see ``row_records``), a person's rows
may come in pieces, and each piece may be reduced by ``reduced``; what is kept in the end is the
same. Holds because of three facts. A cell that is not among the L0 least of a piece is not among
the L0 least of all, and a row with m rows before it in its cell within a piece has at least m
before it among all. Where all cells are counted in, at any priority each cell then has at least as
many rows taken of all as of the piece, so the norm and the number of rows are at least as large:
what does not fit in a piece does not fit among all. Where only some cells are, that may fail, so
pieces are not reduced by the norm or the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.data.person_records import person_numbers
from sfumato.data.row_order import first_rows
from sfumato.privacy.limits import Limits

ALWAYS_WITHIN = 2**31
"""A norm that no number of rows exceeds that one partition may hold."""


@dataclass(frozen=True)
class LimitedRows:
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
        """Some of the rows, in the same order."""
        hashes = self.cell_priorities
        return LimitedRows(
            [word[indices] for word in self.tokens],
            [cell[indices] for cell in self.cells],
            None if hashes is None else hashes[indices],
        )


class PersonLimits(Protocol):
    """What of a person's rows is kept, of rows that are sorted by person and priority."""

    @property
    def all_kept(self) -> int:
        """The number of rows up to which the order of a person's rows does not matter."""

    def candidates(self, tokens: list[Array]) -> Array | None:
        """Which rows need be looked at: int64 ndarray, ascending; None for all."""

    def kept(self, rows: LimitedRows) -> Array:
        """Which rows are kept of all rows of some persons: int64 ndarray, ascending."""

    def reduced(self, rows: LimitedRows) -> Array:
        """Which rows may be kept of a part of the rows of some persons: int64 ndarray."""


class RowLimits:
    """All limits on a person's rows together.

    Parameters
    ----------
    rows : int
        In all.
    limits : Limits
    """

    def __init__(self, rows: int, limits: Limits) -> None:
        self._rows = rows
        # A cell with as many rows as the norm allows fills it: no further row would fit.
        self._rows_per_cell = limits.largest_cell(rows)
        self._cells_per_person = limits.cells_per_person
        self._norm = limits.norm_per_person
        # Without rows to skip, those taken are a person's first ones.
        self._skips = limits.cells_per_person is not None or limits.rows_per_cell is not None

    @property
    def all_kept(self) -> int:
        """The number of rows up to which all of a person's rows are kept, or none of a cell's.

        So many rows fit in one cell and in all. Where cells are chosen, all rows of the cells that
        are chosen are kept: that choice does not look at the order of rows.
        """
        return min(self._rows, self._rows_per_cell)

    def candidates(self, tokens: list[Array]) -> Array | None:
        """Which rows need be looked at: int64 ndarray, ascending; None for all.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            Of rows that are sorted by person and priority.
        """
        if self._skips:
            return None
        return np.flatnonzero(first_rows(tokens, self._rows))

    def kept(self, rows: LimitedRows) -> Array:
        """Which rows are kept of all rows of some persons: int64 ndarray, ascending."""
        indices, ranks = self._within_cells(rows)
        return indices[self._within_all(rows.take(indices), ranks)]

    def reduced(self, rows: LimitedRows) -> Array:
        """Which rows may be kept of a part of the rows of some persons: int64 ndarray."""
        return self._within_cells(rows)[0] if self._cells_per_person else self.kept(rows)

    def _within_cells(self, rows: LimitedRows) -> tuple[Array, Array]:
        """Rows within the limits on cells and on rows in a cell, and their ranks in the cells."""
        by_cell = CellsOfPersons(person_numbers(rows.tokens), rows.cells)
        ranks = by_cell.ranks()
        is_kept = ranks < self._rows_per_cell
        if self._cells_per_person is not None:
            is_kept &= by_cell.in_first_cells(self._cells_per_person, rows.cell_priorities)
        indices = np.flatnonzero(is_kept)
        return indices, ranks[indices]

    def _within_all(self, rows: LimitedRows, ranks: Array) -> Array:
        """Whether each row is within the norm and the number of rows: bool ndarray."""
        persons = person_numbers(rows.tokens)
        is_kept: Array = positions(persons) < self._rows
        if self._norm is not None and self._norm < ALWAYS_WITHIN:
            starts = np.flatnonzero(np.diff(persons, prepend=-1))
            # The row of rank m in its cell makes m^2 there to (m + 1)^2.
            squares = np.cumsum(2 * ranks + 1)
            before = np.concatenate([[0], squares[starts[1:] - 1]]) if len(starts) else starts
            is_kept &= squares - before[persons] <= self._norm**2
        return is_kept


def positions(persons: Array) -> Array:
    """How many rows of the same person precede each row: int64 ndarray of shape (rows,)."""
    starts = np.flatnonzero(np.diff(persons, prepend=-1))
    return np.arange(len(persons)) - starts[persons]


def _order_by_cell(persons: Array, cells: list[Array]) -> Array:
    """Sort rows by person and cell, in their present order within a cell: int64 ndarray."""
    n_rows = len(persons)
    bits = [int(column.max(initial=0)).bit_length() for column in (persons, *cells)]
    index_bits = n_rows.bit_length()
    if len(cells) == 1 and sum(bits) + index_bits <= 63:
        # Person, cell and index in one integer: sorting these is several times as fast.
        keys = (persons << (bits[1] + index_bits)) | (cells[0].astype(np.int64) << index_bits)
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
        in_order = [column[self._order] for column in (self._persons, *cells)]
        is_new = np.ones(len(self._order), bool)
        is_new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in in_order])
        # Of each distinct pair of person and cell, where its rows begin in the order.
        self._starts = np.flatnonzero(is_new)
        self._pair_of_sorted = np.cumsum(is_new) - 1

    def ranks(self) -> Array:
        """How many rows of the same person precede each row in its cell: int64 ndarray."""
        ranks = np.empty(len(self._order), np.int64)
        ranks[self._order] = np.arange(len(self._order)) - self._starts[self._pair_of_sorted]
        return ranks

    def in_first_cells(self, most_cells: int, cell_priorities: Array | None) -> Array:
        """Whether each row lies in one of the cells that its person is counted in: bool ndarray.

        Parameters
        ----------
        most_cells : int
        cell_priorities : uint64 ndarray of shape (rows,), or None
            The keyed hash of person and cell; not needed where nobody has more cells.
        """
        first_rows = self._order[self._starts]
        persons = self._persons[first_rows]
        is_kept = np.ones(len(persons), bool)
        # Only where a person has more cells does the hash decide.
        deciding = np.flatnonzero(np.bincount(persons)[persons] > most_cells)
        if len(deciding):
            assert cell_priorities is not None
            hashes = cell_priorities[first_rows[deciding]]
            by_hash = np.lexsort([hashes, persons[deciding]])
            is_kept[deciding[by_hash]] = _positions_of_runs(persons[deciding]) < most_cells
        chosen = np.empty(len(self._order), bool)
        chosen[self._order] = is_kept[self._pair_of_sorted]
        return chosen


def _positions_of_runs(numbers: Array) -> Array:
    """How many equal numbers precede each one, of numbers that are sorted: int64 ndarray."""
    return positions(np.cumsum(np.diff(numbers, prepend=numbers[:1]) != 0))
