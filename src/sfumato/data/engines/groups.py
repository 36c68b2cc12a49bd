"""Make a cube of what an engine counted: one row for each occupied cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.answers.counts import Summed
from sfumato.arrays import Array
from sfumato.cube import DENSE_LIMIT, Cube, KeyColumn
from sfumato.data.cell_counts import sums_may_overflow
from sfumato.data.groups import indexed_keys
from sfumato.data.packing import Packing
from sfumato.errors import InternalError
from sfumato.lattice import Label, Lattice

Column = Array | Sequence[Label]
"""A column of a result: an int64 ndarray, or keys or large integers one by one."""


def without_keys(lattice: Lattice) -> Packing:
    """How the cells of the axes that have no keys are packed."""
    return Packing(Lattice(tuple(axis for axis in lattice.axes if not axis.has_keys)))


def cube_of(lattice: Lattice, sums: Sequence[Summed], columns: Sequence[Column]) -> Cube:
    """Make a cube of distinct cells, in whatever order the engine gives them.

    Parameters
    ----------
    lattice : Lattice
    sums : sequence of Summed
    columns : sequence of columns of shape (cells,)
        The packed cells of the axes without keys (see ``without_keys``); the keys of each axis of
        keys; the count of each cell; then its sums. Nothing in them is missing.
    """
    packing = without_keys(lattice)
    n_packed, n_keyed = len(packing.groups), len(lattice.keyed)
    packed = [np.asarray(column, np.int64) for column in columns[:n_packed]]
    counts = np.asarray(columns[n_packed + n_keyed], np.int64)
    totals = _sums(columns[n_packed + n_keyed + 1 :], sums, int(counts.sum()))
    _check(packing, packed)
    summed = tuple(each.axis for each in sums)
    if lattice.size <= DENSE_LIMIT:
        dense = np.zeros(lattice.size, np.int64)
        dense[packed[0]] = counts
        if totals is None:
            return Cube(lattice, dense)
        dense_totals = np.zeros((lattice.size, totals.shape[1]), totals.dtype)
        dense_totals[packed[0]] = totals
        return Cube(lattice, dense, sums=dense_totals, summed=summed)
    keys: dict[str, KeyColumn] = {}
    indices: dict[int, Array] = {}
    for place, column in zip(lattice.keyed, columns[n_packed : n_packed + n_keyed], strict=True):
        name = lattice.axes[place].name
        keys[name], indices[place] = indexed_keys(list(column))
    coordinates = _coordinates(lattice, packing, packed, indices)
    order = np.lexsort(coordinates.T[::-1])
    return Cube(
        lattice,
        counts[order],
        coordinates[order],
        keys,
        None if totals is None else np.ascontiguousarray(totals[order]),
        summed,
    )


def _check(packing: Packing, packed: list[Array]) -> None:
    for integers, size in zip(packed, packing.sizes, strict=True):
        if len(integers) and not (integers.min() >= 0 and integers.max() < size):
            raise InternalError("An engine counted a cell that the lattice does not have.")


def _sums(columns: Sequence[Column], sums: Sequence[Summed], n_counted: int) -> Array | None:
    """The sums: of int64, or of Python's integers just where a scan would use these."""
    if not columns:
        return None
    type_ = object if sums_may_overflow(sums, n_counted) else np.int64
    totals = np.zeros((len(columns[0]), len(columns)), type_)
    for place, column in enumerate(columns):
        totals[:, place] = [int(each) for each in column] if type_ is object else column
    return totals


def _coordinates(
    lattice: Lattice, packing: Packing, packed: list[Array], indices: dict[int, Array]
) -> Array:
    n_cells = len(packed[0])
    plain = iter(packing.unpack(packed).T if packing.lattice.axes else ())
    columns = [
        indices[place] if place in indices else next(plain) for place in range(len(lattice.axes))
    ]
    return np.stack(columns, axis=1).reshape(n_cells, len(columns))
