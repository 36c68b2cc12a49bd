"""The geometry of a tree of splits: its boxes, which one a point falls in, and how much of each a range covers.

Every tree is kept as one of two-way splits along one axis, in breadth-first order. A split into more parts is a few two-way
splits, of which those between carry no count. The children of the k-th node that is split are the nodes 2k + 1 and 2k + 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import DROPPED, GridAxis, Lattice
from sfumato.errors import UsageError


@dataclass(frozen=True)
class Tree:
    """Boxes that come from splitting the whole lattice again and again.

    Attributes
    ----------
    lattice : Lattice
        Of grid axes only.
    axis : int64 ndarray of shape (nodes,)
        Along which axis a node is split; -1 for a leaf.
    cut : int64 ndarray of shape (nodes,)
        At which lattice point; 0 for a leaf.

    Raises
    ------
    UsageError
        If the arrays describe no tree, or a cut lies outside its node.
    """

    lattice: Lattice
    axis: Array
    cut: Array

    def __post_init__(self) -> None:
        axis, cut = self.axis, self.cut
        shaped = (
            axis.ndim == cut.ndim == 1 and len(axis) == len(cut) == 2 * int((axis >= 0).sum()) + 1
        )
        if (
            not shaped
            or axis.min() < -1
            or axis.max() >= len(self.lattice.axes)
            or not self._splits_boxes()
        ):
            raise UsageError(
                "a partition",
                "its splits do not cover the domain once",
                "Load a file that release.save wrote",
            )

    def _splits_boxes(self) -> bool:
        if sum(stop - start for start, stop in self.levels) != len(self.axis):
            return False
        inner, (lower, upper) = self.inner, self.boxes
        axis, cut = self.axis[inner], self.cut[inner]
        return bool((lower[inner, axis] < cut).all() and (cut < upper[inner, axis]).all())

    @property
    def cells(self) -> int:
        """How many boxes there are."""
        return len(self.leaves)

    @cached_property
    def inner(self) -> Array:
        """Nodes that are split: int64 ndarray."""
        return np.flatnonzero(self.axis >= 0)

    @cached_property
    def leaves(self) -> Array:
        """Nodes that are cells: int64 ndarray of shape (cells,)."""
        return np.flatnonzero(self.axis < 0)

    @cached_property
    def child(self) -> Array:
        """The lower child of each node, the upper one comes next: int64 ndarray of shape (nodes,); of a leaf, nothing."""
        return 2 * np.cumsum(self.axis >= 0) - 1

    @cached_property
    def parent(self) -> Array:
        """The parent of each node: int64 ndarray of shape (nodes,); the root's is 0."""
        return np.concatenate([[0], np.repeat(self.inner, 2)])

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """First node of each level, and the first beyond it."""
        found, start, stop = [], 0, 1
        while start < stop <= len(self.axis):
            found.append((start, stop))
            start, stop = stop, stop + 2 * int((self.axis[start:stop] >= 0).sum())
        return found

    @cached_property
    def boxes(self) -> tuple[Array, Array]:
        """Lower and upper lattice points of every node: two int64 ndarrays of shape (nodes, d)."""
        lower = np.zeros((len(self.axis), len(self.lattice.axes)), np.int64)
        upper = np.tile(np.array(self.lattice.shape, np.int64), (len(self.axis), 1))
        for start, stop in self.levels:
            split = start + np.flatnonzero(self.axis[start:stop] >= 0)
            first = self.child[split]
            for side in (0, 1):
                lower[first + side], upper[first + side] = lower[split], upper[split]
            upper[first, self.axis[split]] = lower[first + 1, self.axis[split]] = self.cut[split]
        return lower, upper

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        return tuple(axis for axis in self.lattice.axes if isinstance(axis, GridAxis))

    def corners(self) -> tuple[Array, Array]:
        """Lower and upper ends of every cell: two float64 ndarrays of shape (cells, d)."""
        lower, upper = (np.empty((len(self.leaves), len(self.axes))) for _ in range(2))
        for out, box in zip((lower, upper), self.boxes, strict=True):
            for i, axis in enumerate(self.axes):
                points, where = np.unique(box[self.leaves, i], return_inverse=True)
                out[:, i] = axis.points(points)[where]
        return lower, upper

    def assign(self, points: Array) -> Array:
        """Cell of each point, by the kernel that counted: int64 ndarray of shape (n,), -1 where a coordinate is NaN."""
        at = np.stack(
            [
                axis.locate(np.ascontiguousarray(points[:, i], dtype=np.float64))
                for i, axis in enumerate(self.axes)
            ],
            axis=1,
        )
        node = np.zeros(len(points), np.int64)
        moving = np.arange(len(points))
        for _ in self.levels[1:]:
            moving = moving[self.axis[node[moving]] >= 0]
            here = node[moving]
            node[moving] = self.child[here] + (at[moving, self.axis[here]] >= self.cut[here])
        cell = np.searchsorted(self.leaves, node)
        cell[(at == DROPPED).any(axis=1)] = DROPPED
        return cell

    def down(self) -> Iterator[Array]:
        """The split nodes of each level, from the root on."""
        for start, stop in self.levels:
            yield start + np.flatnonzero(self.axis[start:stop] >= 0)

    def up(self) -> Iterator[Array]:
        """The split nodes of each level, from the deepest on."""
        yield from reversed(list(self.down()))
