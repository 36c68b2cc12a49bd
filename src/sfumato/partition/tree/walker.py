"""Range counts on a tree of splits, many ranges at once.

Ranges walk down the tree together, level by level. A node that a range covers whole is added at
once and followed no further. So a range costs as many steps as there are nodes along its faces, not
as many as there are cells within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred

BLOCK = 4096
"""How many ranges walk together."""

Ranges: TypeAlias = dict[int, tuple[Array, Array]]
"""From the number of an axis to lower and upper ends: float64 ndarrays of shape (ranges,)."""


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
    """

    def __init__(self, ranges: Ranges, d: int, start: int, stop: int) -> None:
        size = stop - start
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

    def sums(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Estimate the count of every range. Cut cells count in proportion to the covered share.

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper), float64 ndarrays of shape (number,)
            Axes that are not named are covered whole.
        number : int

        Returns
        -------
        values, variances : float64 ndarrays of shape (number,)
            The variances are exact, for the estimates of ``infer``.
        """
        values = np.empty(number)
        variances = np.empty(number)
        for start in range(0, number, BLOCK):
            stop = min(start + BLOCK, number)
            block = _Block(ranges, len(self.tree.axes), start, stop)
            self._walk(block)
            values[start:stop] = block.value
            variances[start:stop] = block.variance
        return values, variances

    def _walk(self, block: _Block) -> None:
        """Add up the values on the way down, and the second sum of the variance on the way up."""
        visits = self._enter(block)
        # Of each level: its visits, and b of each of them so far (see ``inference``).
        levels: list[tuple[_Visits, Array]] = []
        while len(visits.who):
            covered = np.zeros(len(visits.who))
            levels.append((visits, covered))
            visits = self._step(block, visits, covered)
        if not self._has_gain:
            return
        number = len(block.value)
        for i in range(len(levels) - 1, -1, -1):
            visits, covered = levels[i]
            gain = self.inferred.gain[visits.node]
            block.variance -= np.bincount(visits.who, covered**2 * gain, minlength=number)
            if i:
                share = self.inferred.share[visits.node]
                above = levels[i - 1][1]
                above += np.bincount(visits.parent, covered * share, minlength=len(above))

    def _enter(self, block: _Block) -> _Visits:
        """Begin at the root, with the ranges that touch it."""
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
        return self._settle(block, _Visits(who, root, cut[who], root), None)

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
        """The share of the volume of a cell that each range covers."""
        lower, upper, index = self._corners
        cell = index[node]
        share = np.ones(len(node))
        for i in range(len(block.low)):
            a = lower[cell, i]
            b = upper[cell, i]
            overlap = np.minimum(block.high[i, who], b) - np.maximum(block.low[i, who], a)
            share *= np.clip(overlap / (b - a), 0, 1)
        return share
