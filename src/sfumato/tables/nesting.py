"""Which table is a margin of which: the axes of a family, each with its nested levels.

A table is named by a level for each axis of the family (see ``levels``). One table is a margin of
another if none of its levels is higher, and the common margin of two tables has the lower level of
each axis.

Arrays have one dimension for each axis of the family. Its length is 1 where the table sums over the
axis. Everything here is public: it depends on the domain and on the question alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.tables.levels import Levels

Margin: TypeAlias = tuple[int, ...]
"""A table, by the level of each axis of the family."""


def is_margin(one: Margin, other: Margin) -> bool:
    """Whether one table is the other one, or a sum of its cells.

    >>> is_margin((1, 0), (1, 1)), is_margin((1, 0), (0, 1))
    (True, False)
    """
    return all(low <= high for low, high in zip(one, other, strict=True))


def common(one: Margin, other: Margin) -> Margin:
    """The largest common margin of two tables.

    >>> common((1, 1, 0), (0, 1, 1))
    (0, 1, 0)
    """
    return tuple(map(min, one, other))


def joined(one: Margin, other: Margin) -> Margin:
    """The smallest table that has both as margins.

    >>> joined((1, 1, 0), (0, 1, 1))
    (1, 1, 1)
    """
    return tuple(map(max, one, other))


@dataclass(frozen=True, eq=False)
class Nesting:
    """The axes of a family, and how the cells of their levels are nested.

    Parameters
    ----------
    parents : tuple of tuples of int ndarrays
        For each axis and each level from 1: the cell one level lower in which each cell lies. At
        level 1 all lie in cell 0.
    """

    parents: tuple[tuple[Array, ...], ...]

    @classmethod
    def plain(cls, sizes: Sequence[int]) -> Nesting:
        """Axes without nested levels, each of so many cells.

        >>> Nesting.plain([3, 4]).shape((1, 0))
        (3, 1)
        """
        return cls(tuple((np.zeros(size, dtype=np.int64),) for size in sizes))

    @classmethod
    def of(cls, axes: Sequence[Levels]) -> Nesting:
        """The same axes, of whose cells the children lie beside one another.

        >>> Nesting.of([Levels(((2,), (3, 1)))]).ancestors(0, 2, 1).tolist()
        [0, 0, 0, 1]
        """
        return cls(
            tuple(
                tuple(np.repeat(np.arange(len(fanouts)), fanouts) for fanouts in axis.fanouts)
                for axis in axes
            )
        )

    def size(self, axis: int, level: int) -> int:
        """How many cells an axis has at a level."""
        return len(self.parents[axis][level - 1]) if level else 1

    def shape(self, table: Margin) -> tuple[int, ...]:
        """The shape of a table's array."""
        return tuple(self.size(axis, level) for axis, level in enumerate(table))

    def cells(self, table: Margin) -> int:
        """How many cells a table has."""
        return math.prod(self.shape(table))

    def ancestors(self, axis: int, level: int, lower: int) -> Array:
        """The cell of the lower level in which each cell of a level lies: int64 ndarray."""
        found: Array = np.arange(self.size(axis, level))
        for step in range(level, lower, -1):
            found = self.parents[axis][step - 1][found]
        return found

    def first_descendants(self, axis: int, lower: int, level: int) -> Array:
        """The first cell of a level that lies in each cell of a lower level: int64 ndarray."""
        _, first = np.unique(self.ancestors(axis, level, lower), return_index=True)
        return first

    def places(self, table: Margin, margin: Margin) -> Array:
        """The flat index in the margin to which each cell of a table is added.

        Returns
        -------
        int32 ndarray of shape (cells,)
        """
        found: Array = np.zeros((), dtype=np.int32)
        stride = self.cells(margin)
        for axis, (level, lower) in enumerate(zip(table, margin, strict=True)):
            stride //= self.size(axis, lower)
            along = (self.ancestors(axis, level, lower) * stride).astype(np.int32)
            found = np.add.outer(found, along)
        return found.reshape(-1)

    def margin(self, values: Array, table: Margin, margin: Margin) -> Array:
        """Sum a table's array to the array of one of its margins."""
        for axis, (level, lower) in enumerate(zip(table, margin, strict=True)):
            if lower == 0 and level:
                values = values.sum(axis=axis, keepdims=True)
            elif lower < level:
                of_cell = self.ancestors(axis, level, lower)
                order = np.argsort(of_cell, kind="stable")
                starts = np.flatnonzero(np.diff(of_cell[order], prepend=-1))
                values = np.add.reduceat(np.take(values, order, axis=axis), starts, axis=axis)
        return values

    def cell_with(
        self, table: Margin, margins: tuple[Margin, Margin], at: Sequence[Array]
    ) -> Array:
        """The first cell of a table that lies in given cells of two of its margins.

        Parameters
        ----------
        table : tuple of int
        margins : two tuples of int
        at : two int arrays of shape (n,)
            Flat indices of cells of the margins that agree in their common margin.

        Returns
        -------
        int64 ndarray of shape (n,)
        """
        one, other = margins
        coordinates = [
            np.unravel_index(cells, self.shape(margin))
            for cells, margin in zip(at, margins, strict=True)
        ]
        found = []
        for axis, level in enumerate(table):
            finer = 0 if one[axis] >= other[axis] else 1
            known = margins[finer][axis]
            found.append(self.first_descendants(axis, known, level)[coordinates[finer][axis]])
        return np.ravel_multi_index(tuple(found), self.shape(table))
