"""Range counts on a tree of splits: the cells that a range covers whole, and those that it cuts, many ranges at once.

Ranges walk down the tree together, level by level. A node that a range covers whole is added at once and followed no
further; so a range costs as many steps as there are nodes along its faces, not as there are cells within.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred

BLOCK = 4096  # ranges that walk together

Ranges = dict[int, tuple[Array, Array]]


@dataclass(frozen=True)
class Walker:
    """A tree with what is known of its nodes, ready to be asked for ranges."""

    tree: Tree
    inferred: Inferred

    @cached_property
    def _splits(self) -> tuple[Array, Array, Array]:
        """Of each split node, along its own axis: where it begins, is cut and ends; float64 ndarrays of shape (nodes,)."""
        tree = self.tree
        lower, upper = tree.boxes
        begins, cuts, ends = (np.zeros(len(tree.axis)) for _ in range(3))
        for i, axis in enumerate(tree.axes):
            nodes = np.flatnonzero(tree.axis == i)
            for out, points in (
                (begins, lower[nodes, i]),
                (cuts, tree.cut[nodes]),
                (ends, upper[nodes, i]),
            ):
                out[nodes] = axis.points(points)
        return begins, cuts, ends

    @cached_property
    def _corners(self) -> tuple[Array, Array, Array]:
        lower, upper = self.tree.corners()
        where = np.zeros(len(self.tree.axis), np.int64)
        where[self.tree.leaves] = np.arange(len(self.tree.leaves))
        return lower, upper, where

    @cached_property
    def _has_gain(self) -> bool:
        return bool((self.inferred.gain > 0).any())

    def sums(self, ranges: Ranges, number: int) -> tuple[Array, Array]:
        """Estimate the count of every range, cut cells in proportion to the share covered.

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper), float64 ndarrays of shape (number,)
            Axes not named are covered whole.
        number : int

        Returns
        -------
        values, variances : float64 ndarrays of shape (number,)
            The variance is exact, for the estimates of ``infer``.
        """
        values, variances = np.empty(number), np.empty(number)
        d = len(self.tree.axes)
        for start in range(0, number, BLOCK):
            block = slice(start, min(start + BLOCK, number))
            low, high = (
                np.full((d, block.stop - start), -np.inf),
                np.full((d, block.stop - start), np.inf),
            )
            for axis, (lower, upper) in ranges.items():
                low[axis], high[axis] = lower[block], upper[block]
            values[block], variances[block] = self._walk(low, high)
        return values, variances

    def _walk(self, low: Array, high: Array) -> tuple[Array, Array]:
        number = low.shape[1]
        value, variance = np.zeros(number), np.zeros(number)
        who, node, cut, up = self._enter(low, high, value, variance)
        above: list[
            tuple[Array, Array, Array, Array]
        ] = []  # who, node, where the parent stands, what is covered
        while len(who):
            covered = np.zeros(len(who))
            above.append((who, node, up, covered))
            who, node, cut, up = self._step(low, high, value, variance, who, node, cut, covered)
        for i in range(len(above) - 1, -1, -1):
            who, node, up, covered = above[i]
            if not self._has_gain:
                break
            variance -= np.bincount(who, covered**2 * self.inferred.gain[node], minlength=number)
            if i:
                above[i - 1][3][:] += np.bincount(
                    up, covered * self.inferred.share[node], minlength=len(above[i - 1][0])
                )
        return value, variance

    def _enter(self, low: Array, high: Array, value: Array, variance: Array) -> tuple[Array, ...]:
        """Begin at the root: which axes of it does each range leave uncovered, as bits?"""
        cut = np.zeros(low.shape[1], np.int64)
        touches = np.ones(low.shape[1], bool)
        for i, axis in enumerate(self.tree.axes):
            touches &= (low[i] < axis.upper) & (high[i] > axis.lower)
            cut |= ((low[i] > axis.lower) | (high[i] < axis.upper)).astype(np.int64) << i
        who = np.flatnonzero(touches)
        return self._settle(
            low,
            high,
            value,
            variance,
            who,
            np.zeros(len(who), np.int64),
            cut[who],
            np.zeros(len(who), np.int64),
            None,
        )

    def _step(
        self,
        low: Array,
        high: Array,
        value: Array,
        variance: Array,
        who: Array,
        node: Array,
        cut: Array,
        covered: Array,
    ) -> tuple[Array, ...]:
        """From nodes to those of their children that the range touches."""
        axis = self.tree.axis[node]
        begins, middle, ends = (part[node] for part in self._splits)
        flat = axis * low.shape[1] + who
        a, b = low.reshape(-1)[flat], high.reshape(-1)[flat]
        bit = np.left_shift(1, axis)
        open_ = (cut & bit) == 0
        first = self.tree.child[node]
        left, right = np.flatnonzero(open_ | (a < middle)), np.flatnonzero(open_ | (b > middle))
        covers_left, covers_right = (a <= begins) & (b >= middle), (a <= middle) & (b >= ends)
        cut_left, cut_right = (
            np.where(covers_left, cut & ~bit, cut),
            np.where(covers_right, cut & ~bit, cut),
        )
        up = np.concatenate([left, right])
        child = np.concatenate([first[left], first[right] + 1])
        cuts = np.concatenate([cut_left[left], cut_right[right]])
        return self._settle(low, high, value, variance, who[up], child, cuts, up, covered)

    def _settle(
        self,
        low: Array,
        high: Array,
        value: Array,
        variance: Array,
        who: Array,
        node: Array,
        cut: Array,
        up: Array,
        covered: Array | None,
    ) -> tuple[Array, ...]:
        """Add nodes that are covered whole and cells that are cut; hand back the rest."""
        known = self.inferred
        whole, leaf = cut == 0, self.tree.axis[node] < 0
        done = np.flatnonzero(whole | leaf)
        share = np.ones(len(done))
        partly = np.flatnonzero(~whole[done])
        share[partly] = self._shares(low, high, who[done[partly]], node[done[partly]])
        at, by = node[done], who[done]
        value += np.bincount(by, share * known.estimate[at], minlength=len(value))
        variance += np.bincount(by, share**2 * known.own[at], minlength=len(value))
        if covered is not None and self._has_gain:
            covered += np.bincount(up[done], share * known.share[at], minlength=len(covered))
        rest = np.flatnonzero(~(whole | leaf))
        return who[rest], node[rest], cut[rest], up[rest]

    def _shares(self, low: Array, high: Array, who: Array, node: Array) -> Array:
        """Which share of the volume of a cell each range covers."""
        lower, upper, where = self._corners
        cell, share = where[node], np.ones(len(node))
        for i in range(len(lower[0])):
            a, b = lower[cell, i], upper[cell, i]
            share *= np.clip(
                (np.minimum(high[i, who], b) - np.maximum(low[i, who], a)) / (b - a), 0, 1
            )
        return share
