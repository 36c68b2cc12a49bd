"""The geometry of a tree of splits: its boxes, and the box of a point.

Every tree is kept as a tree of two-way splits along one axis, in breadth-first order. A split into
more parts is a few two-way splits; the nodes between carry no count. The children of the k-th node
that is split are the nodes 2k + 1 and 2k + 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import DROPPED, GridAxis, Lattice
from sfumato.errors import UsageError


@dataclass(frozen=True)
class Tree:
    """Boxes that result from splitting the whole lattice again and again.

    Attributes
    ----------
    lattice : Lattice
        It has grid axes only.
    axis : int64 ndarray of shape (nodes,)
        The axis along which a node is split; -1 for a leaf.
    cut : int64 ndarray of shape (nodes,)
        The lattice point at which it is split; 0 for a leaf.

    Raises
    ------
    UsageError
        If the arrays describe no tree, or a cut lies outside its node.
    """

    lattice: Lattice
    axis: Array
    cut: Array

    def __post_init__(self) -> None:
        # A file may hold anything. Levels and boxes are computed only from arrays of the right
        # form.
        if not self._is_well_formed() or not self._splits_boxes():
            raise UsageError(
                "a partition",
                "its splits do not cover the domain once",
                "Load a file that release.save wrote",
            )

    def _is_well_formed(self) -> bool:
        if not self.axis.ndim == self.cut.ndim == 1:
            return False
        # A tree of two-way splits has one leaf more than it has splits.
        n_splits = int((self.axis >= 0).sum())
        if not len(self.axis) == len(self.cut) == 2 * n_splits + 1:
            return False
        return bool(self.axis.min() >= -1 and self.axis.max() < len(self.lattice.axes))

    def _splits_boxes(self) -> bool:
        """Whether all nodes belong to the tree, and each cut lies strictly inside its node."""
        if sum(stop - start for start, stop in self.levels) != len(self.axis):
            return False
        lower, upper = self.boxes
        axis = self.axis[self.inner]
        cut = self.cut[self.inner]
        above_lower = lower[self.inner, axis] < cut
        below_upper = cut < upper[self.inner, axis]
        return bool(above_lower.all() and below_upper.all())

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
        """The lower child of each node; the upper one comes next: int64 ndarray (nodes,).

        For a leaf the number means nothing.
        """
        return 2 * np.cumsum(self.axis >= 0) - 1

    @cached_property
    def parent(self) -> Array:
        """The parent of each node: int64 ndarray of shape (nodes,); the root's is 0."""
        return np.concatenate([[0], np.repeat(self.inner, 2)])

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """First node of each level, and the first node beyond it."""
        levels = []
        start = 0
        stop = 1
        while start < stop <= len(self.axis):
            levels.append((start, stop))
            n_children = 2 * int((self.axis[start:stop] >= 0).sum())
            start = stop
            stop = stop + n_children
        return levels

    @cached_property
    def boxes(self) -> tuple[Array, Array]:
        """Lower and upper lattice points of every node: two int64 ndarrays of shape (nodes, d)."""
        lower = np.zeros((len(self.axis), len(self.lattice.axes)), np.int64)
        upper = np.tile(np.array(self.lattice.shape, np.int64), (len(self.axis), 1))
        for nodes in self.down():
            left = self.child[nodes]
            for child in (left, left + 1):
                lower[child] = lower[nodes]
                upper[child] = upper[nodes]
            upper[left, self.axis[nodes]] = self.cut[nodes]
            lower[left + 1, self.axis[nodes]] = self.cut[nodes]
        return lower, upper

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the lattice."""
        return self.lattice.grids

    def corners(self) -> tuple[Array, Array]:
        """Lower and upper ends of every cell: two float64 ndarrays of shape (cells, d)."""
        lower, upper = self.boxes
        return self._positions(lower[self.leaves]), self._positions(upper[self.leaves])

    def node_corners(self) -> tuple[Array, Array]:
        """Lower and upper ends of every node: two float64 ndarrays of shape (nodes, d)."""
        lower, upper = self.boxes
        return self._positions(lower), self._positions(upper)

    def _positions(self, points: Array) -> Array:
        """Lattice points in the axes' own units: float64 ndarray like ``points``, (n, d)."""
        positions = np.empty(points.shape)
        for i, axis in enumerate(self.axes):
            # Many boxes share an edge, so each distinct point is converted once.
            distinct, which = np.unique(points[:, i], return_inverse=True)
            positions[:, i] = axis.points(distinct)[which]
        return positions

    def assign(self, points: Array) -> Array:
        """The cell of each point: int64 ndarray of shape (n,), -1 where a coordinate is NaN.

        Points are located by the same kernel that counted the rows.
        """
        columns = [np.ascontiguousarray(column, dtype=np.float64) for column in points.T]
        located = [axis.locate(column) for axis, column in zip(self.axes, columns, strict=True)]
        lattice_cell = np.stack(located, axis=1)
        node = np.zeros(len(points), np.int64)
        moving = np.arange(len(points))
        for _ in self.levels[1:]:
            moving = moving[self.axis[node[moving]] >= 0]
            here = node[moving]
            is_upper = lattice_cell[moving, self.axis[here]] >= self.cut[here]
            node[moving] = self.child[here] + is_upper
        cell = np.searchsorted(self.leaves, node)
        cell[(lattice_cell == DROPPED).any(axis=1)] = DROPPED
        return cell

    def down(self) -> Iterator[Array]:
        """The split nodes of each level, from the root on."""
        for start, stop in self.levels:
            yield start + np.flatnonzero(self.axis[start:stop] >= 0)

    def up(self) -> Iterator[Array]:
        """The split nodes of each level, from the deepest on."""
        yield from reversed(list(self.down()))
