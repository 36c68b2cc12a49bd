"""A tree of splits that grows over counted cells, with the true count of every node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import MOST_PARTITION_CELLS, Array
from sfumato.domain.cube import Cube
from sfumato.errors import UsageError

MOST_CELLS = MOST_PARTITION_CELLS


@dataclass(repr=False, eq=False)
class _Young:
    """The occupied cells in the nodes that the last split made. The next split usually moves these.

    Attributes
    ----------
    entries : int64 ndarray of shape (young,)
        Which occupied cells these are.
    node : int64 ndarray of shape (young,)
        The node of each. It runs ahead of ``Growth._node``, which is written only when it is
        needed.
    weights : float64 ndarray of shape (young,)
        Their rows.
    """

    entries: Array
    node: Array
    weights: Array


class Growth:
    """Boxes of lattice cells and their true counts, while they are split.

    Attributes
    ----------
    lower, upper : int64 ndarrays of shape (nodes, d)
        Lattice points between which each node lies.
    true : int64 ndarray of shape (nodes,)
        True counts, which must never be shown.
    axis, cut, child, parent : int64 ndarrays of shape (nodes,)
        Along which axis and at which lattice point a node is split, the first of its two children,
        and its parent; -1 where there is none. Nodes stand in the order in which they were made.
    """

    def __init__(self, cube: Cube) -> None:
        shape = cube.lattice.shape
        self.cells, self.weights = _occupied(cube)
        self._node = np.zeros(len(self.weights), np.int64)
        self._first_young = 0
        # None: any occupied cell may move with the next split.
        self._young: _Young | None = None
        self.lower = np.zeros((1, len(shape)), np.int64)
        self.upper = np.array([shape], np.int64)
        self.true = np.array([cube.total], np.int64)
        self.axis = np.array([-1], np.int64)
        self.cut = np.array([0], np.int64)
        self.child = np.array([-1], np.int64)
        self.parent = np.array([-1], np.int64)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.axis)

    def split(self, nodes: Array, axis: Array, cut: Array) -> Array:
        """Split nodes in two.

        Parameters
        ----------
        nodes, axis, cut : int64 ndarrays of shape (k,)
            Leaves, and along which axis and at which lattice point each is split.

        Returns
        -------
        int64 ndarray of shape (2k,): the children, lower and upper in turn.

        Raises
        ------
        UsageError
            If there would be more nodes than the public limit allows.
        """
        number = len(nodes)
        first_new = self.size
        if number and nodes.min() < self._first_young:
            # An older node is split too, so any occupied cell may move.
            self._node = self._current_node
            self._young = None
        self._first_young = first_new
        if first_new + 2 * number > 2 * MOST_CELLS:
            raise UsageError(
                "a partition",
                f"it would have more than {MOST_CELLS:,} cells",
                "Choose a smaller epsilon, or fewer levels",
            )
        self.axis[nodes] = axis
        self.cut[nodes] = cut
        self.child[nodes] = first_new + 2 * np.arange(number)
        self._append_children(nodes, axis, cut)
        counts = self._move(first_new, 2 * number, np.unique(axis))
        self.true = np.concatenate([self.true, counts])
        return np.arange(first_new, first_new + 2 * number)

    def _append_children(self, nodes: Array, axis: Array, cut: Array) -> None:
        number = len(nodes)
        lower = np.repeat(self.lower[nodes], 2, axis=0)
        upper = np.repeat(self.upper[nodes], 2, axis=0)
        left = 2 * np.arange(number)
        upper[left, axis] = cut
        lower[left + 1, axis] = cut
        self.lower = np.concatenate([self.lower, lower])
        self.upper = np.concatenate([self.upper, upper])
        self.axis = np.concatenate([self.axis, np.full(2 * number, -1)])
        self.cut = np.concatenate([self.cut, np.zeros(2 * number, np.int64)])
        self.child = np.concatenate([self.child, np.full(2 * number, -1)])
        self.parent = np.concatenate([self.parent, np.repeat(nodes, 2)])

    def _move(self, first_new: int, number: int, axes: Array) -> Array:
        """Move the rows of nodes that were split to the children, and count them there.

        Parameters
        ----------
        first_new, number : int
            The first child that was made, and how many there are.
        axes : int64 ndarray
            The distinct axes along which nodes were split.

        Returns
        -------
        int64 ndarray of shape (number,): true counts of the children.
        """
        young = self._young
        if young is None:
            every = np.arange(len(self._node))
            young = _Young(every, self._node, self.weights.astype(float))
        child = self.child[young.node]
        moves = child >= 0
        if not moves.all():
            # What stays is written back, and leaves the young for good.
            self._node[young.entries[~moves]] = young.node[~moves]
            young = _Young(young.entries[moves], young.node[moves], young.weights[moves])
            child = child[moves]
        if len(axes) == 1:
            position = self.cells[:, axes[0]]
            # While all entries are young, the column itself is read, without a copy.
            if len(position) != len(child):
                position = position[young.entries]
        else:
            position = self.cells[young.entries, self.axis[young.node]]
        child += position >= self.cut[young.node]
        self._young = _Young(young.entries, child, young.weights)
        counts = np.bincount(child - first_new, young.weights, minlength=number)
        return np.rint(counts).astype(np.int64)

    @property
    def _current_node(self) -> Array:
        """The node of each occupied cell, brought up to date."""
        if self._young is not None:
            self._node[self._young.entries] = self._young.node
        return self._node

    def rows_of(self, nodes: Array) -> Iterator[tuple[Array, Array]]:
        """Occupied cells within each node, and their rows.

        Yields
        ------
        cells, rows : int64 ndarrays of shapes (occupied, d) and (occupied,)
        """
        order = np.argsort(self._current_node, kind="stable")
        sorted_nodes = self._current_node[order]
        starts = np.searchsorted(sorted_nodes, nodes)
        stops = np.searchsorted(sorted_nodes, nodes, side="right")
        for start, stop in zip(starts, stops, strict=True):
            inside = order[start:stop]
            yield self.cells[inside], self.weights[inside]

    def counts_along(self, nodes: Array, axis: Array) -> Iterator[tuple[int, Array]]:
        """The rows of each node along its axis, one node at a time.

        Yields
        ------
        lower : int
            The lattice point at which the node begins.
        counts : int64 ndarray
            True counts of its lattice cells along the axis, which must never be shown.
        """
        for node, along, (cells, weights) in zip(nodes, axis, self.rows_of(nodes), strict=True):
            lower = int(self.lower[node, along])
            width = int(self.widths(node)[along])
            counts = np.bincount(cells[:, along] - lower, weights, minlength=width)
            yield lower, np.rint(counts).astype(np.int64)

    def middles(self, nodes: Array, axis: Array) -> Array:
        """The lattice point in the middle of each node along its axis: int64 ndarray."""
        return np.asarray((self.lower[nodes, axis] + self.upper[nodes, axis]) // 2)

    def widths(self, nodes: Array) -> Array:
        """Lattice cells along each axis: int64 ndarray of shape (nodes, d)."""
        return np.asarray(self.upper[nodes] - self.lower[nodes])

    def has_room_for(self, more: int) -> bool:
        """Whether so many more nodes fit below the public limit on cells."""
        return self.size + more <= 2 * MOST_CELLS - 2

    def levels(self) -> list[Array]:
        """The nodes of each level of two-way splits, in breadth-first order."""
        levels = []
        level = np.zeros(1, np.int64)
        while len(level):
            levels.append(level)
            first = self.child[level[self.axis[level] >= 0]]
            level = np.stack([first, first + 1], axis=1).reshape(-1)
        return levels


def _occupied(cube: Cube) -> tuple[Array, Array]:
    """The occupied cells of a cube, and their rows.

    Each axis of the cells is contiguous in memory, because splits compare one axis at a time. The
    rows are int64, so that sums do not overflow.
    """
    if cube.coordinates is not None:
        return np.asfortranarray(cube.coordinates), cube.counts.astype(np.int64)
    flat = np.flatnonzero(cube.counts)
    cells = np.stack(np.unravel_index(flat, cube.lattice.shape)).T
    return cells, cube.counts[flat].astype(np.int64)
