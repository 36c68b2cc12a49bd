"""Pack the cells of a row into as few integers as possible, and count packed rows into a cube.

*Packing.* A row has one cell for each axis of a lattice. Packed cells are what a scan sorts, counts
and remembers. They need less memory than a coordinate for each axis, and their order is the order
of the cells.

*Rows.* For one need a scan writes of a row its packed cells, then the values to be added up
(``RowForm``).

*Counts.* There is one counter for each cell, or only for the occupied ones. Dense or sparse is a
matter of memory. Both give the same counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sfumato.answers import Needs, Summed
from sfumato.basics import Array
from sfumato.data.row_order import run_starts
from sfumato.domain import DENSE_LIMIT, DROPPED, WIDE_CELLS, Cube, Lattice, LatticeAxis

# --- packing --------------------------------------------------------------------------------------

# Packed integers stay below this.
MOST_PACKED = 2**62


# Of each axis of keys, the new numbers of its keys: int64 ndarrays of shape (keys,).
RenumberedKeys: TypeAlias = Mapping[LatticeAxis, Array]


class Packing:
    """How the cells of a lattice's axes make one integer, or several beyond ``MOST_PACKED``.

    The order of packed rows is the order of their cells. DROPPED in the first integer drops a row.

    Attributes
    ----------
    lattice : Lattice
    groups : list of lists of int
        The axes that each integer packs.
    sizes : list of int
        How many values each integer can take.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self._shape = lattice.shape
        self.groups: list[list[int]] = [[]]
        self.sizes: list[int] = [1]
        for axis, size in enumerate(self._shape):
            if self.groups[-1] and self.sizes[-1] * size > MOST_PACKED:
                self.groups.append([])
                self.sizes.append(1)
            self.groups[-1].append(axis)
            self.sizes[-1] *= size

    def pack(self, cells: list[Array], n_rows: int = 0) -> list[Array]:
        """Pack rows: one int64 ndarray of shape (rows,) for each integer.

        Parameters
        ----------
        cells : list of int64 ndarray of shape (rows,)
            The cell of each row on each axis. The arrays are not changed.
        n_rows : int
            How many rows there are, if the lattice has no axes: all lie in its one cell.
        """
        if not cells:
            return [np.zeros(n_rows, np.int64)]
        if len(cells) == 1:
            return cells
        packed: list[Array] = []
        for group in self.groups:
            integers = cells[group[0]]
            for axis in group[1:]:
                # The product is a new array, so adding in place changes no array of the caller's.
                integers = integers * self._shape[axis]
                integers += cells[axis]
            packed.append(integers)
        dropped = [column < 0 for column in cells if len(column) and column.min() < 0]
        if dropped:
            packed[0] = np.where(np.logical_or.reduce(dropped), DROPPED, packed[0])
        return packed

    def unpack(self, packed: list[Array]) -> Array:
        """Give the coordinates of packed rows: int64 ndarray of shape (rows, axes)."""
        coordinates: list[Array] = []
        for integers, group in zip(packed, self.groups, strict=True):
            shape = tuple(self._shape[axis] for axis in group)
            coordinates.extend(np.unravel_index(integers, shape))
        return np.stack(coordinates, axis=1).astype(np.int64, copy=False)

    def renumber(self, packed: list[Array], key_numbers: RenumberedKeys) -> None:
        """Give the keys of packed rows other numbers, in place; rows that are dropped stay so.

        Parameters
        ----------
        packed : list of int ndarray of shape (rows,)
        key_numbers : mapping of KeyAxis to int64 ndarray of shape (keys,)
            The new number of each; where an axis is missing, keys keep theirs.
        """
        is_counted = packed[0] >= 0
        for integers, group in zip(packed, self.groups, strict=True):
            shape = [self._shape[axis] for axis in group]
            numbers = [key_numbers.get(self.lattice.axes[axis]) for axis in group]
            if all(new is None for new in numbers):
                continue
            along = zip(np.unravel_index(integers[is_counted], shape), numbers, strict=True)
            cells = [axis if new is None else new[axis] for axis, new in along]
            integers[is_counted] = np.ravel_multi_index(cells, shape)

    def narrowed(self, packed: list[Array]) -> list[Array]:
        """Give packed rows as 32-bit integers where they fit, to halve what is remembered."""
        # Signed, since a row that is dropped has a negative integer.
        return [
            integers.astype(np.int32) if size < 2**31 else integers
            for integers, size in zip(packed, self.sizes, strict=True)
        ]


# --- rows -----------------------------------------------------------------------------------------

# The cells of a chunk on each axis: int64 ndarrays of shape (rows,).
Cells: TypeAlias = Mapping[LatticeAxis, Array]


# Rows to be counted: of each need, the integers that it keeps of them (see ``RowForm``).
PackedRows: TypeAlias = list[list[Array]]


class RowForm:
    """The integers that a need keeps of each row. DROPPED in the first of them drops the row.

    Attributes
    ----------
    packing : Packing
        Of the lattice.
    n_cells : int
        How many of the integers are packed cells; the others are values.
    n_integers : int
        How many integers it keeps of a row.
    """

    def __init__(self, needs: Needs) -> None:
        self.packing = Packing(needs.lattice)
        self._values = [summed.axis for summed in needs.sums]
        self.n_cells = len(self.packing.groups)
        self.n_integers = self.n_cells + len(self._values)

    def of(self, cells: Cells) -> list[Array]:
        """Give the integers of a chunk: int64 ndarrays of shape (rows,)."""
        packed = packed_cells(self.packing, cells)
        values = [cells[axis] for axis in self._values]
        missing = [value < 0 for value in values if len(value) and value.min() < 0]
        if missing:
            first = np.where(np.logical_or.reduce(missing), DROPPED, packed[0])
            packed = [first, *packed[1:]]
        return [*packed, *values]

    def narrowed(self, integers: list[Array]) -> list[Array]:
        """Give the same as 32-bit integers where they fit, to halve what is remembered."""
        packed = self.packing.narrowed(integers[: self.n_cells])
        values = [
            value.astype(np.int32) if axis.size < 2**31 else value
            for value, axis in zip(integers[self.n_cells :], self._values, strict=True)
        ]
        return [*packed, *values]


def packed_cells(packing: Packing, cells: Cells) -> list[Array]:
    """Pack the cells of a chunk on the axes of a lattice."""
    n_rows = len(next(iter(cells.values()), ()))
    return packing.pack([cells[axis] for axis in packing.lattice.axes], n_rows)


# --- counts ---------------------------------------------------------------------------------------

# How many rows a counter of 32 bits can hold.
MOST_IN_32_BITS = 2**32 - 1

# Where sums might pass it, they are kept as Python's integers, which never overflow.
MOST_IN_64_BITS = 2**62

# How many rows a sparse count lets wait, at least, before it merges them.
PENDING_ROWS = 2**20


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
        self._allow_for(len(cells))
        # ``bincount`` is fast, and passes over the whole lattice: it pays for small lattices.
        if len(self._counts) <= len(cells):
            counts = np.bincount(cells, minlength=len(self._counts))
            # The cast loses nothing: ``_allow_for`` widened the counters if need be.
            np.add(self._counts, counts, out=self._counts, casting="unsafe")
        else:
            np.add.at(self._counts, cells, self._counts.dtype.type(1))
        for total, column in zip(self._sums, self._columns, strict=True):
            np.add.at(total, cells, column.of(values))

    def _allow_for(self, n_rows: int) -> None:
        """Widen the counters and the sums, if more rows might not fit."""
        self._rows += n_rows
        # No counter holds more than all rows: widening now is early enough for each of them.
        if self._rows > MOST_IN_32_BITS and self._counts.dtype == np.uint32:
            self._counts = self._counts.astype(np.int64)
        if self._sums.dtype != object and _may_overflow(self._columns, self._rows):
            self._sums = self._sums.astype(object)

    def merge(self, other: CellCounts, key_numbers: RenumberedKeys) -> None:
        """Add the counts of other rows in the cells of the same lattice, which has no keys."""
        del key_numbers
        assert isinstance(other, DenseCounts)
        self._allow_for(other._rows)
        np.add(self._counts, other._counts, out=self._counts, casting="unsafe")
        self._sums += other._sums

    def cube(self) -> Cube:
        """Give the counts, and the sums where there are values."""
        sums = np.ascontiguousarray(self._sums.T) if self._columns else None
        is_narrow = len(self._counts) > WIDE_CELLS and self._rows < 2**31
        counts = self._counts.view(np.int32) if is_narrow else self._counts.astype(np.int64)
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
        # A merge costs as much as there are totals: if as many rows wait, each costs little.
        if self._rows >= max(PENDING_ROWS, len(self._totals)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        self._pending = []
        self._rows = 0
        # Of each distinct cell of these rows: how many rows it has, then their sums.
        if not self._columns:
            # To sort one integer is many times as fast as to find the order.
            order = _sorting_order(rows) if len(rows) > 1 else None
            cells = [np.sort(rows[0])] if order is None else [integers[order] for integers in rows]
            starts = run_starts(cells)
            lengths = np.diff(starts, append=len(cells[0]))
            self._join([integers[starts] for integers in cells], lengths[:, None])
            return
        n_cells = len(self._packing.groups)
        order = _sorting_order(rows[:n_cells])
        in_order = [integers[order] for integers in rows]
        ones = np.ones(len(order), np.int64)
        values = (column.of(in_order[n_cells:]) for column in self._columns)
        self._join(*_summed(in_order[:n_cells], np.stack([ones, *values], axis=1)))

    def _join(self, new_cells: list[Array], new_totals: Array) -> None:
        if self._totals.dtype != object and _may_overflow(self._columns, self._all_rows):
            self._totals = self._totals.astype(object)
        cells = [np.concatenate(pair) for pair in zip(self._cells, new_cells, strict=True)]
        totals = np.concatenate([self._totals, new_totals])
        order = _sorting_order(cells)
        in_order = [integers[order] for integers in cells]
        self._cells, self._totals = _summed(in_order, totals[order])

    def merge(self, other: CellCounts, key_numbers: RenumberedKeys) -> None:
        """Add the counts of other rows on the same lattice; the keys of these are renumbered."""
        assert isinstance(other, SparseCounts)
        self._merge()
        other._merge()
        # Before the join, which widens the sums if those of so many rows might not fit.
        self._all_rows += other._all_rows
        if len(other._totals):
            self._packing.renumber(other._cells, key_numbers)
            self._join(other._cells, other._totals)

    def cube(self) -> Cube:
        """Give the counts, and the sums where there are values."""
        self._merge()
        counts = np.ascontiguousarray(self._totals[:, 0].astype(np.int64, copy=False))
        sums = np.ascontiguousarray(self._totals[:, 1:]) if self._columns else None
        coordinates = self._packing.unpack(self._cells)
        return Cube(self._packing.lattice, counts, coordinates, sums=sums, summed=self._summed)


# Counts packed rows of one lattice, and adds up their values.
CellCounts: TypeAlias = DenseCounts | SparseCounts


def empty_counts(packing: Packing, sums: Sequence[Summed] = ()) -> CellCounts:
    """Start to count, densely or sparsely, as the size of the lattice asks for."""
    if packing.lattice.size <= DENSE_LIMIT:
        return DenseCounts(packing, sums)
    return SparseCounts(packing, sums)


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
        """Return what each row adds: int64 ndarray of shape (rows,)."""
        # The values may be of 32 bits here, and their squares need not fit.
        value = values[self.value].astype(np.int64, copy=False)
        return value * value if self.squared else value


def _columns(sums: Sequence[Summed]) -> list[_Column]:
    return [
        _Column(index, squared, summed.most ** (2 if squared else 1))
        for index, summed in enumerate(sums)
        for squared in ((False, True) if summed.squares else (False,))
    ]


def _may_overflow(columns: list[_Column], n_rows: int) -> bool:
    """Tell whether a sum of so many rows might pass ``MOST_IN_64_BITS``: 10^9 rows never do."""
    return any(column.largest * n_rows >= MOST_IN_64_BITS for column in columns)


def sums_may_overflow(sums: Sequence[Summed], n_rows: int) -> bool:
    """Tell whether sums over so many rows are kept as Python's integers."""
    return _may_overflow(_columns(sums), n_rows)


def _sorting_order(packed: list[Array]) -> Array:
    """Return the order that sorts packed rows.

    A stable sort of one integer merges two sorted runs in linear time.
    """
    return np.argsort(packed[0], kind="stable") if len(packed) == 1 else np.lexsort(packed[::-1])


def _summed(packed: list[Array], totals: Array) -> tuple[list[Array], Array]:
    """Return the distinct rows of sorted ones, and the sums of the totals of each."""
    starts = run_starts(packed)
    # ``reduceat`` refuses an empty list of starts.
    sums = np.add.reduceat(totals, starts, axis=0) if len(starts) else totals
    return [integers[starts] for integers in packed], sums
