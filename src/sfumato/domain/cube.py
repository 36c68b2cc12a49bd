"""Counted cells: the only form in which data reaches an algorithm.

A cube holds true counts. It prints its lattice only, and refuses to be pickled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

import numpy as np

from sfumato.basics import Array
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import DROPPED, GridAxis, Label, Lattice
from sfumato.errors import InternalError, UsageError, printable

DENSE_LIMIT = 2**26  # cells; dense or sparse is representation, never semantics

# Counts of up to so many cells have 64 bits; those of more may have 32, as they were counted.
WIDE_CELLS = 2**24


class KeyColumn(Protocol):
    """The keys of an axis, sorted and distinct: true data.

    A source holds all of them in the form of its engine, and hands out the few that are shown.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> Label: ...
    def take(self, places: Array) -> list[Label]: ...
    def to_pylist(self) -> list[Label]: ...


class KeyList(list[Label]):
    """Keys that are held one by one."""

    def take(self, places: Array) -> list[Label]:
        """The keys at some places."""
        return [self[place] for place in places.tolist()]

    def to_pylist(self) -> list[Label]:
        """All keys."""
        return list(self)


@dataclass(frozen=True, repr=False, eq=False)
class Cube:
    """Counts of the occupied cells of a lattice.

    Attributes
    ----------
    lattice : Lattice
    counts : int64 ndarray of shape (lattice.size,) when dense, of shape (occupied,) when sparse
        The last axis runs fastest. Of int32, if there are more than ``WIDE_CELLS`` cells, and
        fewer than 2^31 rows in all: no sum of the counts overflows.
    coordinates : int64 ndarray of shape (occupied, axes), or None when dense
        Sorted, distinct.
    keys : dict
        Of each axis of keys: the keys, sorted and distinct, in whose order its cells stand. True
        data, like the counts.
    sums : ndarray of shape (cells counted, m), or None
        What the rows of each cell add up to, in the order of ``Needs.sums``: each value, then its
        square where it was asked for. Of int64, or of Python's integers where these might not fit.
    summed : tuple of GridAxis
        The axis of each value that is added up. The number of its cell is what a row adds.

    >>> import numpy as np
    >>> from sfumato.extending import Cube, GridAxis, Lattice
    >>> lattice = Lattice((GridAxis("age", 0, 100, cells=4),))
    >>> cube = Cube(lattice, np.array([1, 2, 0, 1]))
    >>> cube.on(Lattice((GridAxis("age", 0, 100, cells=2),))).counts.tolist()
    [3, 1]
    """

    lattice: Lattice
    counts: Array
    coordinates: Array | None = None
    keys: Mapping[str, KeyColumn] = field(default_factory=dict)
    sums: Array | None = None
    summed: tuple[GridAxis, ...] = ()

    @classmethod
    def of_cells(cls, lattice: Lattice, cells: Array) -> Cube:
        """Count rows given by their cell on each axis.

        Parameters
        ----------
        cells : int64 ndarray of shape (rows, axes)
            A negative entry drops its row.
        """
        kept = cells[(cells != DROPPED).all(axis=1)] if len(cells) else cells
        if lattice.size > DENSE_LIMIT:
            counts = np.ones((len(kept), 1), np.int64)
            return cls._sparse(lattice, kept, counts)
        flat = np.zeros(0, np.int64)
        if len(kept):
            flat = np.ravel_multi_index(tuple(kept.T), lattice.shape)
        counts = np.bincount(flat, minlength=lattice.size)
        return cls(lattice, counts.astype(np.int64, copy=False))

    @classmethod
    def _sparse(cls, lattice: Lattice, coordinates: Array, totals: Array) -> Cube:
        """Add up totals of cells: of each the count, then the sums if there are any."""
        # lexsort sorts by its last key first, so cells come out with the last axis running fastest.
        order = np.lexsort(coordinates.T[::-1])
        coordinates = coordinates[order]
        totals = totals[order]
        first = np.ones(len(coordinates), bool)
        first[1:] = (coordinates[1:] != coordinates[:-1]).any(axis=1)
        starts = np.flatnonzero(first)
        added = np.add.reduceat(totals, starts, axis=0) if len(starts) else totals
        return cls._of_totals(lattice, added, coordinates[starts])

    @classmethod
    def _of_totals(cls, lattice: Lattice, totals: Array, coordinates: Array | None = None) -> Cube:
        counts = np.ascontiguousarray(totals[:, 0].astype(np.int64, copy=False))
        has_sums = totals.shape[1] > 1
        sums = np.ascontiguousarray(totals[:, 1:]) if has_sums else None
        return cls(lattice, counts, coordinates, sums=sums)

    @property
    def _totals(self) -> Array:
        """The count of each cell, then its sums: int64 ndarray of shape (cells counted, 1 + m)."""
        counts = self.counts[:, None]
        return counts if self.sums is None else np.concatenate([counts, self.sums], axis=1)

    def occupied(self) -> tuple[Array, Array]:
        """Where the occupied cells are, and how many rows each holds.

        Returns
        -------
        coordinates, counts : int64 ndarrays of shapes (occupied, axes) and (occupied,)
        """
        if self.coordinates is not None:
            return self.coordinates, self.counts
        cells = np.flatnonzero(self.counts)
        # Each column is contiguous, because most users go through the cells axis by axis.
        coordinates = np.stack(np.unravel_index(cells, self.lattice.shape)).T
        return coordinates, self.counts[cells].astype(np.int64, copy=False)

    @property
    def domain(self) -> Domain | None:
        """None: a cube knows its own cells, and not the table that they were counted from."""
        return None

    @property
    def total(self) -> int:
        """The true number of rows: never to be shown."""
        return int(self.counts.sum())

    def __add__(self, other: Cube) -> Cube:
        """Add the cube of another part of the table.

        Each person's rows must have been bounded over both parts together.
        """
        if self.lattice != other.lattice:
            raise InternalError("Cubes on different lattices cannot be added.")
        same_sums = self._totals.shape[1] == other._totals.shape[1]
        if not same_sums or self.summed != other.summed:
            raise InternalError("Cubes with sums of different values cannot be added.")
        if self.coordinates is None or other.coordinates is None:
            totals = self._totals.astype(np.int64, copy=False) + other._totals
            return replace(Cube._of_totals(self.lattice, totals), summed=self.summed)
        coordinates = np.concatenate([self.coordinates, other.coordinates])
        n_own = len(self.coordinates)
        keys: dict[str, KeyColumn] = {}
        # In the midst of a scan cubes have no keys yet, and number them alike.
        keyed = self.lattice.keyed if self.keys or other.keys else {}
        for axis, name in keyed.items():
            own = self.keys[name].to_pylist()
            further = other.keys[name].to_pylist()
            # Sorted, so that neither part nor the order of parts can be told from the cube.
            keys[name] = KeyList(sorted({*own, *further}))
            index = dict(zip(keys[name].to_pylist(), range(len(keys[name])), strict=True))
            # Each part numbers its own keys: from here on both number the keys of both.
            for rows, part in ((slice(n_own), own), (slice(n_own, None), further)):
                numbers = np.fromiter(map(index.__getitem__, part), np.int64, len(part))
                coordinates[rows, axis] = numbers[coordinates[rows, axis]]
        totals = np.concatenate([self._totals, other._totals])
        added = Cube._sparse(self.lattice, coordinates, totals)
        return replace(added, keys=keys, summed=self.summed)

    def serves(self, lattice: Lattice) -> bool:
        """Whether its lattice refines another exactly, so that ``on`` can give its rows there."""
        return self.lattice.refines(lattice)

    def on(self, lattice: Lattice) -> Cube:
        """Give the same rows on a lattice that its own refines, by adding up cells."""
        if lattice == self.lattice:
            return self
        if not self.serves(lattice):
            raise InternalError("This cube cannot be counted again on a finer lattice.")
        into = []
        for fine, coarse in zip(self.lattice.axes, lattice.axes, strict=True):
            # Of an axis of keys only the keys that are there are cells of the cube.
            cells = len(self.keys[fine.name]) if fine.has_keys else fine.size
            ratio = fine.size // coarse.size
            into.append(np.arange(cells) // ratio)
        return replace(self.group(into, lattice), keys=self.keys, summed=self.summed)

    def group(self, into: list[Array], lattice: Lattice) -> Cube:
        """Add up cells: ``into[axis][i]`` is the new cell of cell i on that axis."""
        totals = self._totals
        n_totals = totals.shape[1]
        if self.coordinates is None:
            totals = totals.reshape(*self.lattice.shape, n_totals)
            for axis, target in enumerate(into):
                # Cells that are added up are neighbours: ``target`` never falls along the axis.
                starts = np.searchsorted(target, np.arange(lattice.shape[axis]))
                totals = np.add.reduceat(totals, starts, axis=axis)
            return Cube._of_totals(lattice, totals.reshape(-1, n_totals))
        coordinates = np.stack(
            [target[self.coordinates[:, axis]] for axis, target in enumerate(into)], axis=1
        )
        if lattice.size > DENSE_LIMIT:
            return Cube._sparse(lattice, coordinates, totals)
        dense = np.zeros((lattice.size, n_totals), np.int64)
        if len(coordinates):
            cells = np.ravel_multi_index(tuple(coordinates.T), lattice.shape)
            # One column at a time: ``add.at`` is several times as fast along one axis.
            for column in range(n_totals):
                np.add.at(dense[:, column], cells, totals[:, column])
        return Cube._of_totals(lattice, dense)

    def binned(self, edges: list[Array]) -> Array:
        """Counts in the boxes of a grid whose edges are lattice points: int64 ndarray.

        A box holds its lower edges, not its upper ones.
        """
        into = [
            np.searchsorted(edge, np.arange(axis.size), side="right") - 1
            for axis, edge in zip(self.lattice.axes, edges, strict=True)
        ]
        shape = tuple(len(edge) - 1 for edge in edges)
        # Only the sizes of these axes matter here: a grid's edges stay with the partition.
        sizes = zip(self.lattice.names, shape, strict=True)
        axes = [GridAxis(name, 0.0, 1.0, size) for name, size in sizes]
        boxes = Lattice(tuple(axes))
        return self.group(into, boxes).counts.reshape(shape)

    def __repr__(self) -> str:
        cells = "keys and counts" if self.keys else f"{self.lattice.size} cells, counts"
        return f"<Cube on {' x '.join(map(printable, self.lattice.names))}: {cells} not shown>"

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "pickling a Cube", "it holds true counts", "Publish a release and save that"
        )
