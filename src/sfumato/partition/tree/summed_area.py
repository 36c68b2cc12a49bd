"""Range counts on two axes from summed-area tables: four look-ups for each range.

The cells are laid on the product of all their edges. The estimate of a range is the sum over cells
of the covered share times the cell's estimate. With cumulative sums, interpolated between edges, it
is a difference of four look-ups. Its variance (``inference``) is

    V = sum of w s  -  sum of b r  +  sum over cut split nodes of b (1 - b) r
        -  sum over cut cells of w (1 - w) s,

since w^2 = w - w (1 - w). Here w is the covered share of a cell, s its variance, and r is the
``gain`` of a split node. The four sums are treated as follows.

* The first two are sums over disjoint ranges, so cumulative sums give them again. Let g(cell) be
  the sum, over the nodes v above a cell, of r(v) times the share of the cell in b(v). Then m = s -
  g is added up per cell.
* For the third, b (1 - b) <= 1/4, and one of the range's four sides crosses each node that is cut.
  The r of all nodes that a side crosses is a cumulative sum along the side.
* The fourth is left out.

So the result bounds V from above. It is exact where a range consists of whole cells without counts
above them, and otherwise a little too large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred
from sfumato.partition.tree.walker import Ranges

LARGEST_TABLE = 2**22
"""The most entries of a table."""


def edges_of(tree: Tree) -> list[Array]:
    """All lattice points at which a cell begins or ends: one increasing int64 ndarray per axis."""
    lower, upper = tree.boxes
    return [np.unique(np.concatenate([lower[:, i], upper[:, i]])) for i in range(len(tree.axes))]


@dataclass(frozen=True)
class SummedAreaTables:
    """A tree on two axes and the estimates of its nodes, with tables that answer many ranges.

    Attributes
    ----------
    tree : Tree
    inferred : Inferred
    """

    tree: Tree
    inferred: Inferred

    @cached_property
    def fits(self) -> bool:
        """Whether there are two axes, and few enough edges for a table."""
        if len(self.tree.axes) != 2:
            return False
        return len(self._edges[0]) * len(self._edges[1]) <= LARGEST_TABLE

    @cached_property
    def _edges(self) -> list[Array]:
        return edges_of(self.tree)

    @cached_property
    def _positions(self) -> list[Array]:
        """Where the edges lie, in the axes' own units."""
        return [axis.points(edges) for axis, edges in zip(self.tree.axes, self._edges, strict=True)]

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        """Indices of the edges where each node begins and ends: two int64 ndarrays (nodes, 2)."""
        lower, upper = self.tree.boxes
        return self._edge_indices(lower), self._edge_indices(upper)

    def _edge_indices(self, points: Array) -> Array:
        columns = [np.searchsorted(edges, points[:, i]) for i, edges in enumerate(self._edges)]
        return np.stack(columns, axis=1)

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        """Cumulative sums of the cells' estimates and of m, at every crossing of two edges."""
        leaves = self.tree.leaves
        lower, upper = self.tree.boxes
        volume = np.prod((upper - lower)[leaves].astype(float), axis=1)
        estimates = self.inferred.estimate[leaves]
        m = (self.inferred.own - self._inherited)[leaves]
        return self._cumulated(estimates / volume), self._cumulated(m / volume)

    def _cumulated(self, density: Array) -> Array:
        """Cumulative sums of densities of cells over the area below and left of each crossing."""
        first, second = self._edges
        area = np.multiply.outer(np.diff(first), np.diff(second)).astype(float)
        table = np.zeros((len(first), len(second)))
        table[1:, 1:] = np.cumsum(np.cumsum(density[self._cell_between] * area, axis=0), axis=1)
        return table

    @cached_property
    def _cell_between(self) -> Array:
        """The cell between each two neighbouring edges of both axes: int64 ndarray."""
        lower, upper = (ends[self.tree.leaves] for ends in self._ends)
        # Each cell adds its index at two corners and takes it away at the other two. The cumulative
        # sums are then the index everywhere inside it. Integers are summed exactly.
        marks = np.zeros([len(edges) for edges in self._edges], np.int64)
        index = np.arange(len(lower))
        np.add.at(marks, (lower[:, 0], lower[:, 1]), index)
        np.add.at(marks, (lower[:, 0], upper[:, 1]), -index)
        np.add.at(marks, (upper[:, 0], lower[:, 1]), -index)
        np.add.at(marks, (upper[:, 0], upper[:, 1]), index)
        return np.asarray(np.cumsum(np.cumsum(marks, axis=0), axis=1)[:-1, :-1])

    @cached_property
    def _inherited(self) -> Array:
        """g of every node: float64 ndarray of shape (nodes,)."""
        tree = self.tree
        known = self.inferred
        inherited = np.zeros(len(tree.axis))
        for nodes in tree.down():
            for child in (tree.child[nodes], tree.child[nodes] + 1):
                inherited[child] = known.share[child] * (inherited[nodes] + known.gain[nodes])
        return inherited

    @cached_property
    def _crossed(self) -> list[tuple[Array, Array]] | None:
        """Cumulative sums of r along the slabs between neighbouring edges of an axis.

        For each axis there are two tables: r of the nodes over a slab, cumulated along the slab by
        where the nodes begin, and by where they end. None where every r is 0.
        """
        nodes = np.flatnonzero(self.inferred.gain > 0)
        if not len(nodes):
            return None
        gain = self.inferred.gain[nodes]
        lower, upper = (ends[nodes] for ends in self._ends)
        tables = []
        for across in (0, 1):
            along = 1 - across
            shape = (len(self._edges[across]), len(self._edges[along]) + 1)
            by_end = []
            for ends in (lower, upper):
                table = np.zeros(shape)
                np.add.at(table, (lower[:, across], ends[:, along] + 1), gain)
                np.add.at(table, (upper[:, across], ends[:, along] + 1), -gain)
                by_end.append(np.cumsum(np.cumsum(table, axis=0), axis=1))
            tables.append((by_end[0], by_end[1]))
        return tables

    def sums(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Estimate the count of every range, as ``RangeWalker.sums`` does.

        Returns
        -------
        values, variances : float64 ndarrays of shape (number,)
            The variances are bounds from above.
        """
        ends = []
        for i, axis in enumerate(self.tree.axes):
            whole = (np.full(number, axis.lower), np.full(number, axis.upper))
            low, high = ranges.get(i, whole)
            low = np.clip(low, axis.lower, axis.upper)
            high = np.clip(high, axis.lower, axis.upper)
            ends.append((low, high))
        values, variances = (self._between(table, ends) for table in self._sums)
        crossed = np.zeros(number)
        for across in (0, 1):
            for side in ends[across]:
                crossed = crossed + self._crossed_by(across, side, ends[1 - across])
        is_empty = (ends[0][0] >= ends[0][1]) | (ends[1][0] >= ends[1][1])
        bounds = np.maximum(variances + crossed / 4, 0)
        return np.where(is_empty, 0, values), np.where(is_empty, 0, bounds)

    def _between(self, table: Array, ends: list[tuple[Array, Array]]) -> Array:
        """The sum over each range: the cumulative sums at its four corners, interpolated."""
        flat = table.reshape(-1)
        width = table.shape[1]
        total = np.zeros(len(ends[0][0]))
        edges = [[self._edge_below(i, end) for end in pair] for i, pair in enumerate(ends)]
        for a, (x, part_x) in enumerate(edges[0]):
            for b, (y, part_y) in enumerate(edges[1]):
                at = x * width + y
                below = flat[at] * (1 - part_y) + flat[at + 1] * part_y
                above = flat[at + width] * (1 - part_y) + flat[at + width + 1] * part_y
                sign = 1 if a == b else -1
                total += sign * (below * (1 - part_x) + above * part_x)
        return total

    def _edge_below(self, axis: int, at: Array) -> tuple[Array, Array]:
        """The edge at or below each coordinate: its index, and the part of the way to the next."""
        edges = self._positions[axis]
        index = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(edges) - 2)
        return index, (at - edges[index]) / (edges[index + 1] - edges[index])

    def _crossed_by(self, across: int, at: Array, span: tuple[Array, Array]) -> Array:
        """r of all nodes that a side of each range crosses.

        A side that lies exactly on an edge crosses neither slab. The smaller of the two values is
        an upper bound on what it cuts.

        Parameters
        ----------
        across : int
            The axis to which the side is perpendicular.
        at : float64 ndarray of shape (ranges,)
            Where the side lies on that axis.
        span : two float64 ndarrays of shape (ranges,)
            From where to where the side extends along the other axis.
        """
        if self._crossed is None:
            return np.zeros(len(at))
        edges = self._positions[across]
        along = self._positions[1 - across]
        begins, ends = self._crossed[across]
        n_begun = np.searchsorted(along, span[1], side="left")
        n_ended = np.searchsorted(along, span[0], side="right")
        slab_above = np.searchsorted(edges, at, side="right") - 1
        slab_below = np.searchsorted(edges, at, side="left") - 1
        found = []
        for slab in (slab_above, slab_below):
            is_outside = (slab < 0) | (slab >= len(edges) - 1)
            crossing = begins[slab, n_begun] - ends[slab, n_ended]
            found.append(np.where(is_outside, 0, crossing))
        return np.maximum(np.minimum(*found), 0)
