"""Count packed rows into a cube: one counter for each cell, or only for the occupied ones.

Dense or sparse is a matter of memory. Both give the same counts.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sfumato.arrays import Array
from sfumato.cube import DENSE_LIMIT, Cube
from sfumato.data.packing import Packing
from sfumato.lattice import DROPPED

MOST_IN_32_BITS = 2**32 - 1
"""How many rows a counter of 32 bits can hold."""

PENDING_ROWS = 2**20
"""How many rows a sparse count lets wait, at least, before it merges them."""


class CellCounts(Protocol):
    """Counts packed rows of one lattice."""

    def add(self, packed: list[Array]) -> None:
        """Count a batch of packed rows."""

    def cube(self) -> Cube:
        """Give the counts."""


def empty_counts(packing: Packing) -> CellCounts:
    """Start to count, densely or sparsely, as the size of the lattice asks for."""
    return DenseCounts(packing) if packing.lattice.size <= DENSE_LIMIT else SparseCounts(packing)


class DenseCounts:
    """One counter for each cell.

    Counters have 32 bits until the rows might not fit: so more of a cube of 2**20 cells stays in
    the processor's cache.
    """

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._counts: Array = np.zeros(packing.lattice.size, np.uint32)
        self._rows = 0

    def add(self, packed: list[Array]) -> None:
        """Count a batch of packed rows."""
        cells = packed[0]
        if len(cells) and cells.min() < 0:
            cells = cells[cells >= 0]
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

    def cube(self) -> Cube:
        """Give the counts."""
        return Cube(self._packing.lattice, self._counts.astype(np.int64, copy=False))


class SparseCounts:
    """One counter for each occupied cell.

    Rows wait until they are as many as the occupied cells, then all are merged at once. So the work
    is linear in the rows, up to the sorting, and the memory is twice that of the cells.
    """

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._pending: list[list[Array]] = []
        self._rows = 0
        self._cells = [np.zeros(0, np.int64) for _ in packing.groups]
        self._counts = np.zeros(0, np.int64)

    def add(self, packed: list[Array]) -> None:
        """Count a batch of packed rows."""
        counted = packed[0] != DROPPED
        rows = [integers[counted] for integers in packed]
        self._pending.append(rows)
        self._rows += len(rows[0])
        if self._rows >= max(PENDING_ROWS, len(self._counts)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        self._pending = []
        self._rows = 0
        new_cells, new_counts = _run_lengths(_sorted(rows))
        cells = [np.concatenate(pair) for pair in zip(self._cells, new_cells, strict=True)]
        counts = np.concatenate([self._counts, new_counts])
        order = _sorting_order(cells)
        in_order = [integers[order] for integers in cells]
        self._cells, self._counts = _summed(in_order, counts[order])

    def cube(self) -> Cube:
        """Give the counts."""
        self._merge()
        return Cube(self._packing.lattice, self._counts, self._packing.unpack(self._cells))


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


def _summed(packed: list[Array], counts: Array) -> tuple[list[Array], Array]:
    """The distinct rows of sorted ones, and the sum of the counts of each."""
    starts = _run_starts(packed)
    # ``reduceat`` refuses an empty list of starts.
    sums = np.add.reduceat(counts, starts) if len(starts) else counts
    return [integers[starts] for integers in packed], sums
