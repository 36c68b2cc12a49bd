"""Count packed rows into a cube: one counter for each cell, or only for the occupied ones.

Dense or sparse is a matter of memory. Both give the same counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sfumato.answers.counts import Summed
from sfumato.basics.numbers import Array
from sfumato.data.packing import Packing
from sfumato.domain.cube import DENSE_LIMIT, Cube
from sfumato.domain.lattice import DROPPED

MOST_IN_32_BITS = 2**32 - 1
"""How many rows a counter of 32 bits can hold."""

MOST_IN_64_BITS = 2**62
"""Where sums might pass it, they are kept as Python's integers, which never overflow."""

PENDING_ROWS = 2**20
"""How many rows a sparse count lets wait, at least, before it merges them."""


class CellCounts(Protocol):
    """Counts packed rows of one lattice, and adds up their values."""

    def add(self, rows: list[Array]) -> None:
        """Count a batch: packed cells, then values (see ``row_form``)."""

    def cube(self) -> Cube:
        """Give the counts, and the sums where there are values."""


def empty_counts(packing: Packing, sums: Sequence[Summed] = ()) -> CellCounts:
    """Start to count, densely or sparsely, as the size of the lattice asks for."""
    if packing.lattice.size <= DENSE_LIMIT:
        return DenseCounts(packing, sums)
    return SparseCounts(packing, sums)


class DenseCounts:
    """One counter for each cell, and one sum for each cell and each value.

    Counters have 32 bits until the rows might not fit: so more of a cube of 2**20 cells stays in
    the processor's cache.
    """

    def __init__(self, packing: Packing, sums: Sequence[Summed] = ()) -> None:
        self._packing = packing
        self._counts: Array = np.zeros(packing.lattice.size, np.uint32)
        self._rows = 0
        self._summed = tuple(summed.axis for summed in sums)
        self._columns = _columns(sums)
        self._sums = np.zeros((len(self._columns), packing.lattice.size), np.int64)

    def add(self, rows: list[Array]) -> None:
        """Count a batch."""
        cells = rows[0]
        values = rows[len(self._packing.groups) :]
        if len(cells) and cells.min() < 0:
            is_counted = cells >= 0
            cells = cells[is_counted]
            values = [value[is_counted] for value in values]
        self._rows += len(cells)
        # No counter holds more than all rows: widening now is early enough for each of them.
        if self._rows > MOST_IN_32_BITS and self._counts.dtype == np.uint32:
            self._counts = self._counts.astype(np.int64)
        # ``bincount`` is fast, and passes over the whole lattice: it pays for small lattices.
        if len(self._counts) <= len(cells):
            counts = np.bincount(cells, minlength=len(self._counts))
            np.add(self._counts, counts, out=self._counts, casting="unsafe")
        else:
            np.add.at(self._counts, cells, self._counts.dtype.type(1))
        if self._sums.dtype != object and _may_overflow(self._columns, self._rows):
            self._sums = self._sums.astype(object)
        for total, column in zip(self._sums, self._columns, strict=True):
            _add_exactly(total, cells, column.of(values))

    def cube(self) -> Cube:
        """Give the counts, and the sums where there are values."""
        sums = np.ascontiguousarray(self._sums.T) if self._columns else None
        counts = self._counts.astype(np.int64, copy=False)
        return Cube(self._packing.lattice, counts, sums=sums, summed=self._summed)


class SparseCounts:
    """One counter for each occupied cell, and one sum for each of them and each value.

    Rows wait until they are as many as the occupied cells, then all are merged at once. So the work
    is linear in the rows, up to the sorting, and the memory is twice that of the cells.
    """

    def __init__(self, packing: Packing, sums: Sequence[Summed] = ()) -> None:
        self._packing = packing
        self._summed = tuple(summed.axis for summed in sums)
        self._columns = _columns(sums)
        self._pending: list[list[Array]] = []
        self._rows = 0  # that are pending
        self._all_rows = 0
        self._cells = [np.zeros(0, np.int64) for _ in packing.groups]
        # Of each occupied cell: the number of rows, then the sums.
        self._totals = np.zeros((0, 1 + len(self._columns)), np.int64)

    def add(self, rows: list[Array]) -> None:
        """Count a batch."""
        counted = rows[0] != DROPPED
        kept = [integers[counted] for integers in rows]
        self._pending.append(kept)
        self._rows += len(kept[0])
        self._all_rows += len(kept[0])
        if self._rows >= max(PENDING_ROWS, len(self._totals)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        self._pending = []
        self._rows = 0
        if self._totals.dtype != object and _may_overflow(self._columns, self._all_rows):
            self._totals = self._totals.astype(object)
        new_cells, new_totals = self._run_totals(rows)
        cells = [np.concatenate(pair) for pair in zip(self._cells, new_cells, strict=True)]
        totals = np.concatenate([self._totals, new_totals])
        order = _sorting_order(cells)
        in_order = [integers[order] for integers in cells]
        self._cells, self._totals = _summed(in_order, totals[order])

    def _run_totals(self, rows: list[Array]) -> tuple[list[Array], Array]:
        """The distinct cells of some rows; of each, how many rows it has, and their sums."""
        n_cells = len(self._packing.groups)
        if not self._columns:
            cells, lengths = _run_lengths(_sorted(rows))
            return cells, lengths[:, None]
        order = _sorting_order(rows[:n_cells])
        cells = [integers[order] for integers in rows[:n_cells]]
        values = [integers[order] for integers in rows[n_cells:]]
        ones = np.ones(len(order), np.int64)
        added = np.stack([ones, *(column.of(values) for column in self._columns)], axis=1)
        return _summed(cells, added)

    def cube(self) -> Cube:
        """Give the counts, and the sums where there are values."""
        self._merge()
        counts = np.ascontiguousarray(self._totals[:, 0].astype(np.int64, copy=False))
        sums = np.ascontiguousarray(self._totals[:, 1:]) if self._columns else None
        coordinates = self._packing.unpack(self._cells)
        return Cube(self._packing.lattice, counts, coordinates, sums=sums, summed=self._summed)


class _Column(NamedTuple):
    """What one column of sums adds up: a value, or its square.

    Attributes
    ----------
    value : int
        Which value.
    squared : bool
    largest : int
        What a row adds at most: at most 2^32.
    """

    value: int
    squared: bool
    largest: int

    def of(self, values: list[Array]) -> Array:
        """What each row adds: int64 ndarray of shape (rows,)."""
        value = values[self.value].astype(np.int64, copy=False)
        return value * value if self.squared else value


def _add_exactly(total: Array, cells: Array, added: Array) -> None:
    """Add whole numbers to their cells."""
    # ``bincount`` adds doubles, and is fast: it serves where no sum of a batch can pass 2^53, up to
    # which doubles are exact, and where the batch is not smaller than the lattice.
    is_exact = len(cells) * int(added.max(initial=0)) < 2**53
    if is_exact and len(total) <= len(cells):
        total += np.bincount(cells, weights=added, minlength=len(total)).astype(np.int64)
    else:
        np.add.at(total, cells, added)


def _columns(sums: Sequence[Summed]) -> list[_Column]:
    """The columns of sums, in order."""
    return [
        _Column(index, squared, summed.most ** (2 if squared else 1))
        for index, summed in enumerate(sums)
        for squared in ((False, True) if summed.squares else (False,))
    ]


def _may_overflow(columns: list[_Column], n_rows: int) -> bool:
    """Whether a sum of so many rows might pass ``MOST_IN_64_BITS``: 10^9 rows never do."""
    return any(column.largest * n_rows >= MOST_IN_64_BITS for column in columns)


def sums_may_overflow(sums: Sequence[Summed], n_rows: int) -> bool:
    """Whether sums over so many rows are kept as Python's integers."""
    return _may_overflow(_columns(sums), n_rows)


def _sorting_order(packed: list[Array]) -> Array:
    """The order that sorts packed rows.

    A stable sort of one integer merges two sorted runs in linear time.
    """
    return np.argsort(packed[0], kind="stable") if len(packed) == 1 else np.lexsort(packed[::-1])


def _sorted(packed: list[Array]) -> list[Array]:
    """Sort packed rows."""
    if len(packed) == 1:
        return [np.sort(packed[0])]  # many times as fast as finding the order
    order = _sorting_order(packed)
    return [integers[order] for integers in packed]


def _run_starts(packed: list[Array]) -> Array:
    """Where each run of equal rows begins, of rows that are sorted: int64 ndarray."""
    is_first = np.ones(len(packed[0]), bool)
    is_first[1:] = np.logical_or.reduce([integers[1:] != integers[:-1] for integers in packed])
    return np.flatnonzero(is_first)


def _run_lengths(packed: list[Array]) -> tuple[list[Array], Array]:
    """The distinct rows of sorted ones, and how often each occurs."""
    starts = _run_starts(packed)
    lengths = np.diff(starts, append=len(packed[0]))
    return [integers[starts] for integers in packed], lengths


def _summed(packed: list[Array], totals: Array) -> tuple[list[Array], Array]:
    """The distinct rows of sorted ones, and the sums of the totals of each."""
    starts = _run_starts(packed)
    # ``reduceat`` refuses an empty list of starts.
    sums = np.add.reduceat(totals, starts, axis=0) if len(starts) else totals
    return [integers[starts] for integers in packed], sums
