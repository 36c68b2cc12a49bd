"""One scan of a table fills the cubes of all lattices.

Memory: without a person column the cubes and one batch, whatever the number of rows. A sparse cube
holds its occupied cells, and while it grows at most as many rows again; with keys, so do the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from sfumato.arrays import Array
from sfumato.cube import DENSE_LIMIT, Cube
from sfumato.data.bounding import Bounder
from sfumato.data.columns import Labels, numbers, of_known_types
from sfumato.data.guard import guarded, guarded_batches
from sfumato.data.keys import KeyNumbers, named
from sfumato.data.reader import Columns, Progress, RowReader
from sfumato.lattice import DROPPED, KeyAxis, LabelAxis, Lattice, LatticeAxis

CHUNK_ROWS = 2**16  # temporaries of a chunk stay in the second-level cache
FULL = 2**32 - 1  # rows that a counter of 32 bits can hold
PENDING_ROWS = 2**20
WORD = 2**62  # packed cells stay below this


def scan(
    reader: RowReader,
    columns: Columns,
    lattices: Sequence[Lattice],
    *,
    person: str | None = None,
    bounder: Bounder | None = None,
    progress: Progress | None = None,
) -> list[Cube]:
    """Count every lattice in one pass over the columns named."""
    kernel = Kernel(lattices)
    tallies = [tally(packing) for packing in kernel.packings]
    done = 0
    total = guarded(reader.name, reader.rows) if progress else None
    try:
        for chunk in _chunks(reader, columns, person, kernel):
            keys = guarded(reader.name, partial(kernel.keys, chunk))
            if bounder is None:
                _count(tallies, keys)
            else:
                narrow = [
                    _narrow(packing, key)
                    for packing, key in zip(kernel.packings, keys, strict=True)
                ]
                guarded(reader.name, partial(bounder.add, chunk[person], narrow))
            done += len(chunk)
            if progress:
                progress(done, total)
        if bounder is not None:
            for keys in guarded_batches(reader.name, bounder.bounded):
                _count(tallies, keys)
    finally:  # also on Ctrl-C
        if bounder is not None:
            bounder.close()
    return [named(each.cube(), kernel.numbers) for each in tallies]


def _count(tallies: Sequence[Tally], keys: list[list[Array]]) -> None:
    for each, key in zip(tallies, keys, strict=True):
        each.add(key)


def _chunks(
    reader: RowReader, columns: Columns, person: str | None, kernel: Kernel
) -> Iterator[pa.RecordBatch]:
    given = guarded_batches(reader.name, partial(reader.batches, columns))
    batches = of_known_types(reader.name, columns, person, given)
    for batch in _gathered(reader.name, batches, kernel) if kernel.numbers else batches:
        start = 0
        while start < len(batch):
            # Keys become known while a batch is counted: the next chunk begins where this one ends.
            chunk_rows = max(CHUNK_ROWS, kernel.known)
            yield batch.slice(start, chunk_rows)
            start += chunk_rows


def _gathered(
    name: str, batches: Iterator[pa.RecordBatch], kernel: Kernel
) -> Iterator[pa.RecordBatch]:
    """Let batches wait until they are as many rows as keys are known, so that looking keys up stays linear in all."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        if waiting and batch.schema != waiting[0].schema:
            yield guarded(name, partial(_together, waiting))
            waiting = []
        waiting.append(batch)
        if sum(map(len, waiting)) >= kernel.known:
            yield guarded(name, partial(_together, waiting))
            waiting = []
    if waiting:
        yield guarded(name, partial(_together, waiting))


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return pa.RecordBatch.from_arrays(
        [column.chunk(0) for column in whole.columns], schema=whole.schema
    )


class Kernel:
    """Rows to packed cells, each distinct axis located once and each column converted once."""

    def __init__(self, lattices: Sequence[Lattice]) -> None:
        self._axes = list(dict.fromkeys(axis for lattice in lattices for axis in lattice.axes))
        place = {axis: i for i, axis in enumerate(self._axes)}
        self._places = [[place[axis] for axis in lattice.axes] for lattice in lattices]
        self._labels = {axis: Labels(axis) for axis in self._axes if isinstance(axis, LabelAxis)}
        self.numbers = {axis: KeyNumbers() for axis in self._axes if isinstance(axis, KeyAxis)}
        self.packings = [Packing(lattice) for lattice in lattices]

    @property
    def known(self) -> int:
        """How many keys the largest axis of keys has so far."""
        return max(map(len, self.numbers.values()), default=0)

    def keys(self, batch: pa.RecordBatch) -> list[list[Array]]:
        """Packed cells of a batch, per lattice."""
        converted: dict[str, Array] = {}
        cells = [self._cells(batch, axis, converted) for axis in self._axes]
        return [
            packing.pack([cells[i] for i in places])
            for packing, places in zip(self.packings, self._places, strict=True)
        ]

    def _cells(
        self, batch: pa.RecordBatch, axis: LatticeAxis, converted: dict[str, Array]
    ) -> Array:
        if isinstance(axis, LabelAxis):
            return self._labels[axis].cells(batch[axis.name])
        if isinstance(axis, KeyAxis):
            return self.numbers[axis].cells(batch[axis.name])
        if axis.name not in converted:
            converted[axis.name] = numbers(batch[axis.name], axis.time)
        return axis.locate(converted[axis.name])


class Packing:
    """How the cells of a lattice's axes make one integer, or several where the product exceeds 2**62.

    The order of packed rows is the order of cells, and DROPPED in the first integer drops the row.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.runs: list[list[int]] = [[]]
        self.sizes: list[int] = [1]
        for axis, size in enumerate(lattice.shape):
            if self.runs[-1] and self.sizes[-1] * size > WORD:
                self.runs.append([])
                self.sizes.append(1)
            self.runs[-1].append(axis)
            self.sizes[-1] *= size

    def pack(self, cells: list[Array]) -> list[Array]:
        """Packed rows: one int64 ndarray of shape (rows,) per integer. The arrays given are not changed."""
        if len(cells) == 1:
            return cells
        keys = [self._flat(cells, run) for run in self.runs]
        dropped = [axis < 0 for axis in cells if len(axis) and axis.min() < 0]
        if dropped:
            keys[0] = np.where(np.logical_or.reduce(dropped), DROPPED, keys[0])
        return keys

    def _flat(self, cells: list[Array], run: list[int]) -> Array:
        flat = cells[run[0]]
        for axis in run[1:]:
            flat = flat * self.lattice.shape[axis]
            flat += cells[axis]
        return flat

    def unpack(self, keys: list[Array]) -> Array:
        """Coordinates of packed rows: int64 ndarray of shape (rows, axes)."""
        parts: list[Array] = []
        for key, run in zip(keys, self.runs, strict=True):
            parts.extend(np.unravel_index(key, tuple(self.lattice.shape[axis] for axis in run)))
        return np.stack(parts, axis=1).astype(np.int64, copy=False)


def _narrow(packing: Packing, keys: list[Array]) -> list[Array]:
    """Halve what must be remembered of each row, where it fits."""
    return [
        key.astype(np.int32) if size < 2**31 else key
        for key, size in zip(keys, packing.sizes, strict=True)
    ]


class Tally(Protocol):
    """Counts packed rows."""

    def add(self, keys: list[Array]) -> None:
        """Count a batch."""

    def cube(self) -> Cube:
        """Return what was counted."""


def tally(packing: Packing) -> Tally:
    """Choose how to count: dense or sparse is representation, never semantics."""
    return Dense(packing) if packing.lattice.size <= DENSE_LIMIT else Sparse(packing)


class Dense:
    """One counter per cell, of 32 bits until the rows might not fit: the cube of 2**20 cells stays nearer in the cache."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._counts: Array = np.zeros(packing.lattice.size, np.uint32)
        self._rows = 0

    def add(self, keys: list[Array]) -> None:
        """Count a batch: small lattices by ``bincount``, which costs one pass over the lattice, others in place."""
        key = keys[0]
        if len(key) and key.min() < 0:
            key = key[key >= 0]
        self._rows += len(key)
        if self._rows > FULL and self._counts.dtype == np.uint32:
            self._counts = self._counts.astype(np.int64)
        if len(self._counts) <= len(key):
            np.add(
                self._counts,
                np.bincount(key, minlength=len(self._counts)),
                out=self._counts,
                casting="unsafe",
            )
        else:
            np.add.at(self._counts, key, self._counts.dtype.type(1))

    def cube(self) -> Cube:
        """Return what was counted."""
        return Cube(self._packing.lattice, self._counts.astype(np.int64, copy=False))


class Sparse:
    """Occupied cells only: batches wait until they are as many as the cells, then they are merged."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._pending: list[list[Array]] = []
        self._rows = 0
        self._keys = [np.zeros(0, np.int64) for _ in packing.runs]
        self._counts = np.zeros(0, np.int64)

    def add(self, keys: list[Array]) -> None:
        """Count a batch."""
        counted = keys[0] != DROPPED
        self._pending.append([key[counted] for key in keys])
        self._rows += len(self._pending[-1][0])
        if self._rows >= max(PENDING_ROWS, len(self._counts)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        rows = [np.concatenate(parts) for parts in zip(*self._pending, strict=True)]
        self._pending = []
        self._rows = 0
        fresh, counts = _distinct(_sorted(rows))
        keys = [np.concatenate(pair) for pair in zip(self._keys, fresh, strict=True)]
        order = _order(keys)
        self._keys, self._counts = _distinct(
            [key[order] for key in keys], np.concatenate([self._counts, counts])[order]
        )

    def cube(self) -> Cube:
        """Return what was counted."""
        self._merge()
        return Cube(self._packing.lattice, self._counts, self._packing.unpack(self._keys))


def _order(keys: list[Array]) -> Array:
    """How to sort; two sorted runs of one key are merged in linear time."""
    return np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])


def _sorted(keys: list[Array]) -> list[Array]:
    """Sort rows; a sort of one key itself is many times as fast as finding its order."""
    if len(keys) == 1:
        return [np.sort(keys[0])]
    order = _order(keys)
    return [key[order] for key in keys]


def _distinct(keys: list[Array], weights: Array | None = None) -> tuple[list[Array], Array]:
    """Distinct rows of sorted ones, and the weight of each, rows weighing one unless it is said."""
    first = np.ones(len(keys[0]), bool)
    first[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    starts = np.flatnonzero(first)
    if weights is None:
        return [key[starts] for key in keys], np.diff(starts, append=len(first))
    return [key[starts] for key in keys], np.add.reduceat(weights, starts) if len(
        starts
    ) else weights
