"""Range counts of a tree: best unbiased estimates, a walk down the tree, and summed-area tables.

*Constrained inference* (``infer``): the best unbiased estimate that all noisy counts of a tree
together allow.

Every cell has a noisy count, and some nodes above have one. Each count has noise of its own scale.
The true count of a node is the sum of its children's. The generalised least squares estimate under
these constraints is found in two passes over the nodes (Hay, Rastogi, Miklau, Suciu, VLDB 2010,
here with unequal variances; nodes without a count have infinite variance):

upwards    t(v) = s(left) + s(right), u(v) = z(left) + z(right);
           s(v) = 1 / (1/t + 1/variance), and z(v) is the weighted mean of u and the node's own
           count. z(v) is what the subtree says of the node, and s(v) is the variance of z(v).
downwards  x(root) = z(root); x(child) = z(child) + s(child)/t(v) (x(v) - u(v)).

*Variance of a sum.* A weighted sum of cells with weights w is estimated by sum w x. Let b(cell) =
w, and let b(v) be the mean of b over the children, weighted by s(child)/t(v). Then its variance is
exactly

    sum over cells of w^2 s(cell)  -  sum over split nodes v of b(v)^2 (t(v) - s(v)),

since x(v) given z splits into independent innovations.

*Influence of one count.* A noisy count y(v) enters the sum with the coefficient
Cov(sum w x, x(v)) / variance(v). For weights in [0, 1] its size is at most
Var x(v) / variance(v) <= 1: covariances of x(v) with cells below v are not negative and add up to
Var x(v), covariances with other cells are not positive, and all together add up to at least 0.

All of this is post-processing: nothing here can weaken a guarantee.

*What lies in cut cells* (``OfCut``). A range cuts some cells. Where in them their rows lie, no
count says. The rows in the range are at least those in the cells that it covers whole, and at most
those in all cells that it touches. Both are sums of whole cells, so their intervals hold whatever
the rows of cut cells do. The estimate takes them to lie evenly.

*A walk down the tree* (``RangeWalker``), for many ranges at once.

Ranges walk down the tree together, level by level. A node that a range covers whole is added at
once and followed no further. So a range costs as many steps as there are nodes along its faces, not
as many as there are cells within it.

*Summed-area tables* (``SummedAreaTables``), on two axes: four look-ups for each range.

The cells are laid on the product of all their edges. The estimate of a range is the sum over cells
of the covered share times the cell's estimate. With cumulative sums, interpolated between edges, it
is a difference of four look-ups. Its variance (see above) is

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

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.questions.partition.geometry import Tree

# --- constrained inference ------------------------------------------------------------------------


@dataclass(frozen=True)
class Inferred:
    """What all counts of a tree say of every node: float64 ndarrays of shape (nodes,).

    Attributes
    ----------
    estimate, variance
        x: the estimate of every node from all counts, and its variance.
    seen, own
        z and s: what the subtree alone says of the node, and the variance of that.
    gain
        t - s: how much a node's own count takes from the variance of its children's sum; 0 for
        cells.
    share
        s(child) / t(parent): the share of a child in the correction of its parent; 1 for the root.
    """

    estimate: Array
    variance: Array
    seen: Array
    own: Array
    gain: Array
    share: Array


def infer(tree: Tree, counts: Array, variances: Array) -> Inferred:
    """Estimate all nodes.

    Parameters
    ----------
    tree : Tree
    counts : ndarray of shape (nodes,)
        Noisy counts. Those of infinite variance are not used.
    variances : float64 ndarray of shape (nodes,)
        Variances of the noise, finite for every leaf.
    """
    has_count = np.isfinite(variances)
    s = variances.copy()
    z = np.where(has_count, counts, 0).astype(float)
    t = np.zeros(len(s))
    u = np.zeros(len(s))
    for nodes in tree.up():
        left = tree.child[nodes]
        t[nodes] = s[left] + s[left + 1]
        u[nodes] = z[left] + z[left + 1]
        # A node without a count takes what its children say; infinite variances are never divided.
        own_variance = np.where(has_count[nodes], variances[nodes], 1)
        own_weight = np.where(has_count[nodes], t[nodes] / (t[nodes] + own_variance), 0)
        s[nodes] = t[nodes] * (1 - own_weight)
        z[nodes] = u[nodes] + own_weight * (z[nodes] - u[nodes])
    estimate = z.copy()
    variance = s.copy()
    share = np.ones(len(s))
    for nodes in tree.down():
        for child in (tree.child[nodes], tree.child[nodes] + 1):
            part = s[child] / t[nodes]
            share[child] = part
            estimate[child] = z[child] + part * (estimate[nodes] - u[nodes])
            variance[child] = s[child] - part**2 * (t[nodes] - variance[nodes])
    gain = np.where(tree.axis >= 0, t - s, 0)
    return Inferred(estimate, variance, z, s, gain, share)


def influence(tree: Tree, own: Array, inferred: Inferred) -> Array:
    """Return with which coefficients the noisy counts enter the estimate of every node.

    It takes the two passes of ``infer`` with vectors of coefficients in place of numbers.

    Parameters
    ----------
    tree : Tree
    own : float64 ndarray of shape (nodes, counts)
        How each node's own counts are combined into one; 0 where it has none.
    inferred : Inferred

    Returns
    -------
    float64 ndarray of shape (nodes, counts)
    """
    seen = own.copy()
    of_children = np.zeros_like(own)
    for nodes in tree.up():
        left = tree.child[nodes]
        of_children[nodes] = seen[left] + seen[left + 1]
        # s = t (1 - own weight), and the gain is t - s.
        total = inferred.own[nodes] + inferred.gain[nodes]
        own_weight = (inferred.gain[nodes] / total)[:, None]
        seen[nodes] = of_children[nodes] * (1 - own_weight) + own_weight * own[nodes]
    coefficients = seen.copy()
    for nodes in tree.down():
        for child in (tree.child[nodes], tree.child[nodes] + 1):
            part = inferred.share[child][:, None]
            coefficients[child] = seen[child] + part * (coefficients[nodes] - of_children[nodes])
    return coefficients


def whole_counts(tree: Tree, estimate: Array, own: Array) -> Array:
    """Return non-negative whole numbers near the estimates: int64 ndarray of shape (nodes,).

    Every node is the sum of its children. From the root down, a node's whole number is divided
    between its children by their estimates. What is missing is shared in proportion to their
    variances. The result is rounded, and kept between nothing and all.

    Parameters
    ----------
    tree : Tree
    estimate, own : float64 ndarrays of shape (nodes,)
        As in ``Inferred``.
    """
    whole = np.zeros(len(estimate), np.int64)
    whole[0] = max(0, round(float(estimate[0])))
    for nodes in tree.down():
        left = tree.child[nodes]
        # The node's own number is fixed by now, so its children share what it has.
        missing = whole[nodes] - estimate[left] - estimate[left + 1]
        aim = estimate[left] + missing * own[left] / (own[left] + own[left + 1])
        whole[left] = np.clip(np.rint(aim).astype(np.int64), 0, whole[nodes])
        whole[left + 1] = whole[nodes] - whole[left]
    return whole


# --- a walk down the tree -------------------------------------------------------------------------

# How many ranges walk together.
BLOCK = 4096

# From the number of an axis to lower and upper ends: float64 ndarrays of shape (ranges,).
Ranges: TypeAlias = dict[int, tuple[Array, Array]]

# Which part of a cell counts that a range cuts: as much as it covers, nothing, or all of it.
OfCut: TypeAlias = Literal["share", "nothing", "all"]


@dataclass(frozen=True, eq=False)
class _Visits:
    """Ranges at nodes that they touch: int64 ndarrays of shape (visits,).

    Attributes
    ----------
    who : which range.
    node : which node it has reached.
    cut : the axes along which it does not cover the node, as bits.
    parent : the index of the visit to the node's parent, on the level above.
    """

    who: Array
    node: Array
    cut: Array
    parent: Array

    def only(self, which: Array) -> _Visits:
        return _Visits(self.who[which], self.node[which], self.cut[which], self.parent[which])


class _Block:
    """Ranges that walk together, and what has been added up for them so far.

    Attributes
    ----------
    low, high : float64 ndarrays of shape (d, ranges)
    value, variance : float64 ndarrays of shape (ranges,)
    of_cut : {"share", "nothing", "all"}
    """

    def __init__(self, ranges: Ranges, d: int, start: int, stop: int, of_cut: OfCut) -> None:
        size = stop - start
        self.of_cut = of_cut
        self.low = np.full((d, size), -np.inf)
        self.high = np.full((d, size), np.inf)
        for axis, (lower, upper) in ranges.items():
            self.low[axis] = lower[start:stop]
            self.high[axis] = upper[start:stop]
        self.value = np.zeros(size)
        self.variance = np.zeros(size)


@dataclass(frozen=True)
class RangeWalker:
    """A tree and the estimates of its nodes, ready to answer ranges.

    Attributes
    ----------
    tree : Tree
    inferred : Inferred
    """

    tree: Tree
    inferred: Inferred

    @cached_property
    def _splits(self) -> tuple[Array, Array, Array]:
        """Where each split node begins, is cut and ends along its own axis: float64 (nodes,)."""
        tree = self.tree
        lower, upper = tree.boxes
        begins = np.zeros(len(tree.axis))
        cuts = np.zeros(len(tree.axis))
        ends = np.zeros(len(tree.axis))
        for i, axis in enumerate(tree.axes):
            nodes = np.flatnonzero(tree.axis == i)
            begins[nodes] = axis.points(lower[nodes, i])
            cuts[nodes] = axis.points(tree.cut[nodes])
            ends[nodes] = axis.points(upper[nodes, i])
        return begins, cuts, ends

    @cached_property
    def _corners(self) -> tuple[Array, Array, Array]:
        """Lower and upper ends of the cells, and the index of the cell that each leaf is."""
        lower, upper = self.tree.corners()
        index = np.zeros(len(self.tree.axis), np.int64)
        index[self.tree.leaves] = np.arange(len(self.tree.leaves))
        return lower, upper, index

    @cached_property
    def _has_gain(self) -> bool:
        """Whether any node above the cells has a count of its own."""
        return bool((self.inferred.gain > 0).any())

    def sums(self, ranges: Ranges, number: int, of_cut: OfCut = "share") -> tuple[Array, Array]:
        """Estimate the count of every range.

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper), float64 ndarrays of shape (number,)
            Axes that are not named are covered whole.
        number : int
        of_cut : {"share", "nothing", "all"}
            Which part of a cut cell counts.

        Returns
        -------
        values, variances : float64 ndarrays of shape (number,)
            The variances are exact, for the estimates of ``infer``.
        """
        values = np.empty(number)
        variances = np.empty(number)
        for start in range(0, number, BLOCK):
            stop = min(start + BLOCK, number)
            block = _Block(ranges, len(self.tree.axes), start, stop, of_cut)
            self._walk(block)
            values[start:stop] = block.value
            variances[start:stop] = block.variance
        return values, variances

    def _walk(self, block: _Block) -> None:
        """Add up the values on the way down, and the second sum of the variance on the way up."""
        # The walk begins at the root, with the ranges that touch it.
        number = len(block.value)
        cut = np.zeros(number, np.int64)
        touches = np.ones(number, bool)
        for i, axis in enumerate(self.tree.axes):
            low = block.low[i]
            high = block.high[i]
            touches &= (low < axis.upper) & (high > axis.lower)
            cut |= ((low > axis.lower) | (high < axis.upper)).astype(np.int64) << i
        who = np.flatnonzero(touches)
        root = np.zeros(len(who), np.int64)
        visits = self._settle(block, _Visits(who, root, cut[who], root), None)
        # Of each level: its visits, and b of each of them so far (see above).
        levels: list[tuple[_Visits, Array]] = []
        while len(visits.who):
            covered = np.zeros(len(visits.who))
            levels.append((visits, covered))
            visits = self._step(block, visits, covered)
        if not self._has_gain:
            return
        for i in range(len(levels) - 1, -1, -1):
            visits, covered = levels[i]
            gain = self.inferred.gain[visits.node]
            block.variance -= np.bincount(visits.who, covered**2 * gain, minlength=number)
            if i:
                share = self.inferred.share[visits.node]
                above = levels[i - 1][1]
                weights = covered * share
                above += np.bincount(visits.parent, weights, minlength=len(above))

    def _step(self, block: _Block, visits: _Visits, covered: Array) -> _Visits:
        """Go from nodes to those of their children that the range touches."""
        who = visits.who
        node = visits.node
        cut = visits.cut
        axis = self.tree.axis[node]
        begins, middle, ends = (part[node] for part in self._splits)
        flat = axis * block.low.shape[1] + who
        low = block.low.reshape(-1)[flat]
        high = block.high.reshape(-1)[flat]
        bit = np.left_shift(1, axis)
        is_covered_along = (cut & bit) == 0
        left = np.flatnonzero(is_covered_along | (low < middle))
        right = np.flatnonzero(is_covered_along | (high > middle))
        covers_left = (low <= begins) & (high >= middle)
        covers_right = (low <= middle) & (high >= ends)
        cut_left = np.where(covers_left, cut & ~bit, cut)
        cut_right = np.where(covers_right, cut & ~bit, cut)
        parent = np.concatenate([left, right])
        first = self.tree.child[node]
        children = _Visits(
            who[parent],
            np.concatenate([first[left], first[right] + 1]),
            np.concatenate([cut_left[left], cut_right[right]]),
            parent,
        )
        return self._settle(block, children, covered)

    def _settle(self, block: _Block, visits: _Visits, covered: Array | None) -> _Visits:
        """Add nodes that are covered whole, and cells that are cut. Return the other visits.

        Parameters
        ----------
        covered : float64 ndarray or None
            b of the visits to the parents, to which these visits add; None at the root.
        """
        known = self.inferred
        # A node that is covered whole needs no look at what lies below it.
        is_whole = visits.cut == 0
        is_done = is_whole | (self.tree.axis[visits.node] < 0)
        done = visits.only(np.flatnonzero(is_done))
        share = np.ones(len(done.who))
        partly = np.flatnonzero(done.cut != 0)
        share[partly] = self._shares(block, done.who[partly], done.node[partly])
        number = len(block.value)
        values = share * known.estimate[done.node]
        variances = share**2 * known.own[done.node]
        block.value += np.bincount(done.who, values, minlength=number)
        block.variance += np.bincount(done.who, variances, minlength=number)
        if covered is not None and self._has_gain:
            part = share * known.share[done.node]
            covered += np.bincount(done.parent, part, minlength=len(covered))
        return visits.only(np.flatnonzero(~is_done))

    def _shares(self, block: _Block, who: Array, node: Array) -> Array:
        """Return which share of a cell counts for each range: by volume, or all or nothing."""
        lower, upper, index = self._corners
        cell = index[node]
        share = np.ones(len(node))
        for i in range(len(block.low)):
            a = lower[cell, i]
            b = upper[cell, i]
            overlap = np.minimum(block.high[i, who], b) - np.maximum(block.low[i, who], a)
            share *= np.clip(overlap / (b - a), 0, 1)
        match block.of_cut:
            case "share":
                return share
            case "nothing":
                return np.floor(share)
            case "all":
                return np.ceil(share)


# --- summed-area tables ---------------------------------------------------------------------------

# Lower and upper ends of ranges along each axis: float64 ndarrays of shape (ranges,).
Ends: TypeAlias = "list[tuple[Array, Array]]"

# For each axis, sums over slabs: cumulated by where nodes begin, and by where they end.
_Slabs: TypeAlias = "list[tuple[Array, Array]]"


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
        return len(self.tree.axes) == 2 and len(self._edges[0]) * len(self._edges[1]) <= 2**22

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
        tree = self.tree
        known = self.inferred
        # g of every node.
        inherited = np.zeros(len(tree.axis))
        for nodes in tree.down():
            for child in (tree.child[nodes], tree.child[nodes] + 1):
                inherited[child] = known.share[child] * (inherited[nodes] + known.gain[nodes])
        lower, upper = tree.boxes
        volume = np.prod((upper - lower)[tree.leaves].astype(float), axis=1)
        m = (known.own - inherited)[tree.leaves]
        estimates = known.estimate[tree.leaves]
        return self._cumulated(estimates / volume), self._cumulated(m / volume)

    def _cumulated(self, density: Array) -> Array:
        """Cumulative sums of densities of cells over the area below and left of each crossing."""
        first, second = self._edges
        area = np.multiply.outer(np.diff(first), np.diff(second)).astype(float)
        table = np.zeros((len(first), len(second)))
        table[1:, 1:] = _cumulated_twice(density[self._cell_between] * area)
        return table

    @cached_property
    def _cell_between(self) -> Array:
        """The cell between each two neighbouring edges of both axes: int64 ndarray."""
        lower, upper = (ends[self.tree.leaves] for ends in self._ends)
        # Each cell adds its index at two corners and takes it away at the other two. The cumulative
        # sums are then the index everywhere inside it. Integers are summed exactly.
        marks = np.zeros([len(edges) for edges in self._edges], np.int64)
        index = np.arange(len(lower))
        for i, first in enumerate((lower[:, 0], upper[:, 0])):
            for j, second in enumerate((lower[:, 1], upper[:, 1])):
                np.add.at(marks, (first, second), index if i == j else -index)
        return _cumulated_twice(marks)[:-1, :-1]

    @cached_property
    def _crossed(self) -> _Slabs | None:
        """The sums of r over the nodes that a side crosses. None where every r is 0."""
        nodes = np.flatnonzero(self.inferred.gain > 0)
        return self._slabs(nodes, self.inferred.gain[nodes]) if len(nodes) else None

    @cached_property
    def _crossed_cells(self) -> tuple[_Slabs, _Slabs]:
        """The sums of the estimates of the cells that a side crosses, and of their variances s."""
        leaves = self.tree.leaves
        known = self.inferred
        return self._slabs(leaves, known.estimate[leaves]), self._slabs(leaves, known.own[leaves])

    def _slabs(self, nodes: Array, amounts: Array) -> _Slabs:
        """Return cumulative sums of amounts of nodes along the slabs between edges of an axis.

        For each axis there are two tables: amounts of the nodes over a slab, cumulated along the
        slab by where the nodes begin, and by where they end.
        """
        lower, upper = (ends[nodes] for ends in self._ends)
        tables = []
        for across in (0, 1):
            along = 1 - across
            shape = (len(self._edges[across]), len(self._edges[along]) + 1)
            by_end = []
            for ends in (lower, upper):
                table = np.zeros(shape)
                np.add.at(table, (lower[:, across], ends[:, along] + 1), amounts)
                np.add.at(table, (upper[:, across], ends[:, along] + 1), -amounts)
                by_end.append(_cumulated_twice(table))
            tables.append((by_end[0], by_end[1]))
        return tables

    def sums(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Estimate the count of every range, as ``RangeWalker.sums`` does.

        Returns
        -------
        values, variances : float64 ndarrays of shape (number,)
            The variances are bounds from above.
        """
        ends = self._clipped(ranges, number)
        values, variances = (self._between(table, ends) for table in self._sums)
        crossed = np.zeros(number)
        if self._crossed is not None:
            for across, side, span in _sides(ends):
                crossed += np.minimum(*self._by_slab(self._crossed, across, side, span))
        bounds = np.maximum(variances + crossed / 4, 0)
        is_empty = _is_empty(ends)
        return np.where(is_empty, 0, values), np.where(is_empty, 0, bounds)

    def cut(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Add up the estimates of all cells that a side of each range crosses, side by side.

        A cell at a corner counts twice. Beside a side that lies on an edge, cells may count that it
        does not cut. So the truth of the sum is never less than the number of rows in cut cells.

        Returns
        -------
        values, deviations : float64 ndarrays of shape (number,)
            The deviations are bounds from above.
        """
        ends = self._clipped(ranges, number)
        values = np.zeros(number)
        deviations = np.zeros(number)
        estimates, variances = self._crossed_cells
        for across, side, span in _sides(ends):
            above, below = self._by_slab(variances, across, side, span)
            is_above = above <= below
            values += np.where(is_above, *self._by_slab(estimates, across, side, span))
            deviations += np.sqrt(np.where(is_above, above, below))
        is_empty = _is_empty(ends)
        return np.where(is_empty, 0, values), np.where(is_empty, 0, deviations)

    def _clipped(self, ranges: Ranges, number: int) -> Ends:
        """Return the lower and upper ends along both axes, within their bounds."""
        ends = []
        for i, axis in enumerate(self.tree.axes):
            whole = (np.full(number, axis.lower), np.full(number, axis.upper))
            low, high = (np.clip(end, axis.lower, axis.upper) for end in ranges.get(i, whole))
            ends.append((low, high))
        return ends

    def _between(self, table: Array, ends: Ends) -> Array:
        """Return the sum over each range: the cumulative sums at its four corners, interpolated."""
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

    def _by_slab(
        self, slabs: _Slabs, across: int, at: Array, span: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """The sums over the nodes that a side of each range crosses, by the slabs next to it.

        A side that lies exactly on an edge crosses neither slab, and all nodes that it cuts lie
        over both. A slab beyond an end of the axis has no nodes.

        Parameters
        ----------
        slabs : pair of tables for each axis
        across : int
            The axis to which the side is perpendicular.
        at : float64 ndarray of shape (ranges,)
            Where the side lies on that axis.
        span : two float64 ndarrays of shape (ranges,)
            From where to where the side extends along the other axis.

        Returns
        -------
        above, below : float64 ndarrays of shape (ranges,)
            Equal where the side lies within a slab.
        """
        edges = self._positions[across]
        along = self._positions[1 - across]
        begins, ends = slabs[across]
        n_begun = np.searchsorted(along, span[1], side="left")
        n_ended = np.searchsorted(along, span[0], side="right")

        def crossed(slab: Array) -> Array:
            is_outside = (slab < 0) | (slab >= len(edges) - 1)
            return np.where(is_outside, 0, begins[slab, n_begun] - ends[slab, n_ended])

        slab_above = np.searchsorted(edges, at, side="right") - 1
        return crossed(slab_above), crossed(np.searchsorted(edges, at, side="left") - 1)


def _cumulated_twice(table: Array) -> Array:
    return np.cumsum(np.cumsum(table, axis=0), axis=1)


def _sides(ends: Ends) -> Iterator[tuple[int, Array, tuple[Array, Array]]]:
    """Yield the four sides of ranges: the axis across, where they lie on it, and their spans."""
    for across in (0, 1):
        for side in ends[across]:
            yield across, side, ends[1 - across]


def _is_empty(ends: Ends) -> Array:
    """Where ranges hold nothing: bool ndarray of shape (ranges,)."""
    (low, high), (other_low, other_high) = ends
    return (low >= high) | (other_low >= other_high)
