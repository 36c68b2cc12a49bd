"""Least squares along a tree whose cells have different numbers of children.

The cells of some levels were measured, with independent noise of one variance for each level. Two
passes give the best linear unbiased estimates of all cells:

* *Up.* What is known of a cell from within it, z with variance v, joins its own measurement with
  the sum of its children's z, by precision.
* *Down.* The children of a cell get what their sum lacks, in proportion to their variances: with
  k = v / (sum of the siblings' v), the estimate is z + k (estimate of the parent - sum of z).

Holds because the part z - k (sum of z) of a child is uncorrelated with the sum of z, by which alone
anything outside of the parent enters. So the covariance of the estimates of

* a cell and what lies in it is the variance of the cell times all k on the way;
* two siblings is k k' V - v v' / (sum of v), with V the variance of their parent's estimate, and v
  more if they are the same;
* any other two cells follows from these and the k on the way down from the siblings.

The weight of a measurement in an estimate is its precision times the covariance of the two cells.

Source: Hay, Rastogi, Miklau, Suciu, PVLDB 2010, section 4, for levels of different precision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.tables.levels import Levels


@dataclass(frozen=True)
class TreeFit:
    """How the cells of a tree are estimated.

    Parameters
    ----------
    axis : Levels
    precisions : tuple of float
        Of the measurements of each level, from the total on; 0 where there are none, infinite where
        the cells are known.

    >>> fit = TreeFit(Levels(((2,), (3, 1))), (0.0, 1.0, 1.0))
    >>> fit.variances(1).tolist()
    [0.75, 0.5]
    """

    axis: Levels
    precisions: tuple[float, ...]

    @cached_property
    def last(self) -> int:
        """The last level that was measured."""
        return max(level for level, precision in enumerate(self.precisions) if precision)

    @cached_property
    def _upward(self) -> tuple[list[Array], list[Array]]:
        """Of each level, the variances of z, and how much the cells' own measurements weigh."""
        variances: list[Array] = []
        weights: list[Array] = []
        for level in range(self.last, -1, -1):
            precision = self.precisions[level]
            own = np.full(self.axis.cells(level), 1 / precision if precision else math.inf)
            if level == self.last:
                inside = np.full_like(own, math.inf)
            else:
                inside = self.axis.summed(variances[-1], 0, level + 1, level)
            # What is known needs nothing else.
            with np.errstate(divide="ignore", invalid="ignore"):
                joined = np.where(np.isinf(inside), own, 1 / (1 / own + 1 / inside))
                weight = np.where(np.isinf(inside) | (own == 0), 1.0, joined / own)
            is_known = (own == 0) | (inside == 0)
            variances.append(np.where(is_known, 0.0, joined))
            weights.append(np.where((inside == 0) & (own > 0), 0.0, weight))
        return variances[::-1], weights[::-1]

    @cached_property
    def _gains(self) -> list[Array]:
        """Of each level, k; of the total, which has no siblings, 1."""
        gains = [np.ones(1)]
        for level in range(1, self.last + 1):
            inside = self._upward[0][level]
            of_siblings = self._of_siblings(inside, level)
            gains.append(inside / np.where(of_siblings > 0, of_siblings, 1))
        return gains

    @cached_property
    def _variances(self) -> list[Array]:
        found = [self._upward[0][0]]
        for level in range(1, self.last + 1):
            inside, gain = self._upward[0][level], self._gains[level]
            of_parent = self.axis.repeated(found[-1], 0, level)
            found.append(inside * (1 - gain) + gain**2 * of_parent)
        return found

    def variances(self, level: int) -> Array:
        """The variance of the estimate of each cell of a level: float64 ndarray."""
        return self._variances[level]

    def _of_siblings(self, numbers: Array, level: int) -> Array:
        """For each cell of a level, the sum over it and its siblings."""
        return self.axis.repeated(self.axis.summed(numbers, 0, level, level - 1), 0, level)

    def estimates(self, measured: Mapping[int, Array], along: int) -> list[Array]:
        """The estimates of the cells of each level, the total first.

        Parameters
        ----------
        measured : dict of float64 ndarrays
            What was measured, by level.
        along : int
            Which of the dimensions of the arrays is the tree.
        """
        axis = self.axis
        inside: list[Array] = []
        for level in range(self.last, -1, -1):
            if level == self.last:
                inside.append(measured[level])
                continue
            sums = axis.summed(inside[-1], along, level + 1, level)
            if level in measured:
                weight = _laid_along(self._upward[1][level], along, sums.ndim)
                sums = weight * measured[level] + (1 - weight) * sums
            inside.append(sums)
        inside.reverse()
        found = [inside[0]]
        for level in range(1, self.last + 1):
            lacking = found[-1] - axis.summed(inside[level], along, level, level - 1)
            gain = _laid_along(self._gains[level], along, lacking.ndim)
            found.append(inside[level] + gain * axis.repeated(lacking, along, level))
        return found

    def covariances(self, level: int, cell: int) -> list[Array]:
        """The covariances of the estimate of a cell with those of the cells of each level."""
        way = [self.axis.ancestors(above, level)[cell] for above in range(level + 1)]
        on_way = [self._gains[at][one] for at, one in enumerate(way)]
        found = [self._variances[0] * math.prod(on_way[1:])]
        for at in range(1, self.last + 1):
            gain = self._gains[at]
            covariance = self.axis.repeated(found[-1], 0, at) * gain
            if at <= level:
                # The children of the cell on the way are siblings of the next one on it.
                inside, above, here = self._upward[0][at], way[at - 1], way[at]
                first = int(np.sum(self.axis.fanouts[at - 1][:above]))
                children = slice(first, first + self.axis.fanouts[at - 1][above])
                own = gain[children] * gain[here] * self._variances[at - 1][above]
                own = own - inside[children] * gain[here]
                own[here - first] += inside[here]
                covariance[children] = own * math.prod(on_way[at + 1 :])
            found.append(covariance)
        return found


def _laid_along(numbers: Array, along: int, dimensions: int) -> Array:
    """Numbers of the cells of a level as an array that fits others."""
    return numbers.reshape([-1 if at == along else 1 for at in range(dimensions)])


def shapes(axis: Levels) -> list[Array]:
    """For each level, which cells are nested alike, and so are all that they lie in.

    Returns
    -------
    list of int64 ndarray
        Cells of a level with equal numbers have estimates of the same law.

    >>> [found.tolist() for found in shapes(Levels(((3,), (2, 1, 2))))]
    [[0], [1, 0, 1], [1, 1, 0, 1, 1]]
    """
    inside = [np.zeros(axis.cells(axis.depth), np.int64)]
    for level in range(axis.depth, 0, -1):
        ends = np.cumsum(axis.fanouts[level - 1])[:-1]
        children = [tuple(sorted(part.tolist())) for part in np.split(inside[-1], ends)]
        index = {shape: at for at, shape in enumerate(sorted(set(children)))}
        inside.append(np.array([index[shape] for shape in children], np.int64))
    inside.reverse()
    found = [inside[0]]
    for level in range(1, axis.depth + 1):
        pairs = np.stack([axis.repeated(found[-1], 0, level), inside[level]])
        found.append(np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1))
    return found
