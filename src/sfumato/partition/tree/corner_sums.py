"""Range counts on two axes from tables: four look-ups per range, however many cells there are.

The cells are laid on the product of all their edges. A range's estimate is a sum over cells of the share covered times the
estimate, which is a difference of cumulative sums, interpolated between edges. Its variance (``inference``) is

    V = sum of w s  -  sum of b r  +  sum over cut split nodes of b (1 - b) r  -  sum over cut cells of w (1 - w) s,

since w^2 = w - w (1 - w). The first two sums add up over disjoint ranges, so they are cumulative sums again: g(cell), the sum of
r(v) times the share of the cell in b(v) over the nodes v above it, gives m = s - g per cell. For the third, b (1 - b) <= 1/4, and
a node that is cut is crossed by one of the range's four sides: the r of all nodes that a side crosses is a cumulative sum along
the side. The fourth is left out. So what is returned bounds V from above: exact where a range consists of whole cells that have
no counts above them, and else too large by a little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred
from sfumato.partition.tree.ranges import Ranges

LARGEST = 2**22  # points of a table


def edges_of(tree: Tree) -> list[Array]:
    """All lattice points at which a cell begins or ends, per axis: int64 ndarrays, increasing."""
    lower, upper = tree.boxes
    return [np.unique(np.concatenate([lower[:, i], upper[:, i]])) for i in range(len(tree.axes))]


@dataclass(frozen=True)
class Tables:
    """A tree on two axes with what is known of its nodes, ready to be asked for many ranges."""

    tree: Tree
    inferred: Inferred

    @cached_property
    def fits(self) -> bool:
        """Whether there are two axes, and few enough edges."""
        return len(self.tree.axes) == 2 and len(self._edges[0]) * len(self._edges[1]) <= LARGEST

    @cached_property
    def _edges(self) -> list[Array]:
        return edges_of(self.tree)

    @cached_property
    def _positions(self) -> list[Array]:
        return [axis.points(edges) for axis, edges in zip(self.tree.axes, self._edges, strict=True)]

    @cached_property
    def _places(self) -> tuple[Array, Array]:
        """Where each node begins and ends among the edges: two int64 ndarrays of shape (nodes, 2)."""
        found = (
            np.stack(
                [np.searchsorted(edges, box[:, i]) for i, edges in enumerate(self._edges)], axis=1
            )
            for box in self.tree.boxes
        )
        lower, upper = found
        return lower, upper

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Cumulative sums of estimates and of m, at every crossing of two edges."""
        lower, upper = (part[self.tree.leaves] for part in self._places)
        shape = tuple(len(edges) for edges in self._edges)
        label = np.zeros(
            shape, np.int64
        )  # differences of labels, which are whole: the sums below are exact
        mark = np.arange(len(lower))
        for (x, y), sign in (
            ((lower, lower), 1),
            ((lower, upper), -1),
            ((upper, lower), -1),
            ((upper, upper), 1),
        ):
            np.add.at(label, (x[:, 0], y[:, 1]), sign * mark)
        cell = np.cumsum(np.cumsum(label, axis=0), axis=1)[:-1, :-1]
        area = np.multiply.outer(*(np.diff(edges) for edges in self._edges)).astype(float)
        volume = np.prod(
            (self.tree.boxes[1] - self.tree.boxes[0])[self.tree.leaves].astype(float), axis=1
        )
        known, tables = self.inferred, []
        for each in (
            known.estimate[self.tree.leaves],
            (known.own - self._inherited)[self.tree.leaves],
        ):
            table = np.zeros(shape)
            table[1:, 1:] = np.cumsum(np.cumsum((each / volume)[cell] * area, axis=0), axis=1)
            tables.append(table)
        return tables[0], tables[1]

    @cached_property
    def _inherited(self) -> Array:
        """g of every node: float64 ndarray of shape (nodes,)."""
        tree, known = self.tree, self.inferred
        inherited = np.zeros(len(tree.axis))
        for nodes in tree.down():
            for child in (tree.child[nodes], tree.child[nodes] + 1):
                inherited[child] = known.share[child] * (inherited[nodes] + known.gain[nodes])
        return inherited

    @cached_property
    def _crossed(self) -> list[tuple[Array, Array]] | None:
        """Per axis that a side is perpendicular to: r of the nodes over a slab, cumulated along it, by beginnings and by ends."""
        nodes = np.flatnonzero(self.inferred.gain > 0)
        if not len(nodes):
            return None
        gain, (lower, upper) = self.inferred.gain[nodes], (part[nodes] for part in self._places)
        found = []
        for across in (0, 1):
            along, tables = 1 - across, []
            for ends in (lower, upper):
                table = np.zeros((len(self._edges[across]), len(self._edges[along]) + 1))
                np.add.at(table, (lower[:, across], ends[:, along] + 1), gain)
                np.add.at(table, (upper[:, across], ends[:, along] + 1), -gain)
                tables.append(np.cumsum(np.cumsum(table, axis=0), axis=1))
            found.append((tables[0], tables[1]))
        return found

    def sums(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Estimate the count of every range, as ``Walker.sums`` does: values, and bounds of their variances."""
        ends = []
        for i, axis in enumerate(self.tree.axes):
            low, high = ranges.get(i, (np.full(number, axis.lower), np.full(number, axis.upper)))
            ends.append(
                (np.clip(low, axis.lower, axis.upper), np.clip(high, axis.lower, axis.upper))
            )
        values, variances = (self._between(table, ends) for table in self._sums)
        crossed = sum(
            (
                self._side(across, end, ends[1 - across])
                for across in (0, 1)
                for end in ends[across]
            ),
            np.zeros(number),
        )
        empty = (ends[0][0] >= ends[0][1]) | (ends[1][0] >= ends[1][1])
        return np.where(empty, 0, values), np.where(
            empty, 0, np.maximum(variances + crossed / 4, 0)
        )

    def _between(self, table: Array, ends: list[tuple[Array, Array]]) -> Array:
        """The sum over a range: the cumulative sums at its four corners, interpolated."""
        flat, width, total = table.reshape(-1), table.shape[1], np.zeros(len(ends[0][0]))
        places = [[self._place(i, end) for end in pair] for i, pair in enumerate(ends)]
        for a, (x, part_x) in enumerate(places[0]):
            for b, (y, part_y) in enumerate(places[1]):
                at = x * width + y
                below = flat[at] * (1 - part_y) + flat[at + 1] * part_y
                above = flat[at + width] * (1 - part_y) + flat[at + width + 1] * part_y
                total += (1 if a == b else -1) * (below * (1 - part_x) + above * part_x)
        return total

    def _place(self, axis: int, at: Array) -> tuple[Array, Array]:
        """The edge at or below each coordinate, and how far it is on the way to the next."""
        edges = self._positions[axis]
        place = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
        return place, (at - edges[place]) / (edges[place + 1] - edges[place])

    def _side(self, across: int, at: Array, span: tuple[Array, Array]) -> Array:
        """r of all nodes that a side crosses; exactly on an edge, the lesser of what lies on its two sides."""
        if self._crossed is None:
            return np.zeros(len(at))
        edges, along = self._positions[across], self._positions[1 - across]
        begins, ends = self._crossed[across]
        begun, ended = (
            np.searchsorted(along, span[1], side="left"),
            np.searchsorted(along, span[0], side="right"),
        )
        slab = np.searchsorted(edges, at, side="right") - 1
        before = np.searchsorted(edges, at, side="left") - 1
        found = [
            np.where((s < 0) | (s >= len(edges) - 1), 0, begins[s, begun] - ends[s, ended])
            for s in (slab, before)
        ]
        return np.maximum(np.minimum(*found), 0)
