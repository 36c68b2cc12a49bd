"""Least squares with a tree whose cells have different numbers of children.

*Along the tree* (``TreeFit``).

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

*Over a family of tables with one such tree* (``UnevenFamily``).

Noisy tables were measured, not residuals. The residuals along all other axes are orthogonal, as in
any family (see ``residuals``), and each of them is a tree of its own: the tables that contain it
measured its cells at their levels of the tree, with the precision of a residual. ``TreeFit`` gives
the best estimates along each of these trees, and they add up to the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Self

import numpy as np

from sfumato.basics import Array
from sfumato.questions.histogram.strategies import laid_along
from sfumato.questions.tables.levels import Levels, Margin, is_margin
from sfumato.questions.tables.residuals import (
    Family,
    Weight,
    entry_of,
    parted_cells,
    share_of,
)

if TYPE_CHECKING:
    from sfumato.questions.tables.residuals import Measured


# --- along a tree ---------------------------------------------------------------------------------


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
            sums = self.axis.summed(inside, 0, level, level - 1)
            of_siblings = self.axis.repeated(sums, 0, level)
            gains.append(inside / np.where(of_siblings > 0, of_siblings, 1))
        return gains

    @cached_property
    def _variances(self) -> list[Array]:
        variances = [self._upward[0][0]]
        for level in range(1, self.last + 1):
            inside = self._upward[0][level]
            gain = self._gains[level]
            of_parent = self.axis.repeated(variances[-1], 0, level)
            variances.append(inside * (1 - gain) + gain**2 * of_parent)
        return variances

    def variances(self, level: int) -> Array:
        """Return the variance of the estimate of each cell of a level: float64 ndarray."""
        return self._variances[level]

    def estimates(self, measured: Mapping[int, Array], along: int) -> list[Array]:
        """Return the estimates of the cells of each level, the total first.

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
                weight = laid_along(self._upward[1][level], along, sums.ndim)
                sums = weight * measured[level] + (1 - weight) * sums
            inside.append(sums)
        inside.reverse()
        estimates = [inside[0]]
        for level in range(1, self.last + 1):
            sums = axis.summed(inside[level], along, level, level - 1)
            lacking = estimates[-1] - sums
            gain = laid_along(self._gains[level], along, lacking.ndim)
            estimates.append(inside[level] + gain * axis.repeated(lacking, along, level))
        return estimates

    def covariances(self, level: int, cell: int) -> list[Array]:
        """Give the covariances of the estimate of a cell with those of the cells of each level."""
        way = [self.axis.ancestors(above, level)[cell] for above in range(level + 1)]
        on_way = [self._gains[at][cell_on_way] for at, cell_on_way in enumerate(way)]
        covariances = [self._variances[0] * math.prod(on_way[1:])]
        for at in range(1, self.last + 1):
            gain = self._gains[at]
            covariance = self.axis.repeated(covariances[-1], 0, at) * gain
            if at <= level:
                # The children of the cell on the way are siblings of the next one on it.
                inside = self._upward[0][at]
                above = way[at - 1]
                here = way[at]
                fanouts = self.axis.fanouts[at - 1]
                first = sum(fanouts[:above])
                children = slice(first, first + fanouts[above])
                of_parent = self._variances[at - 1][above]
                own = gain[children] * gain[here] * of_parent
                own = own - inside[children] * gain[here]
                own[here - first] += inside[here]
                covariance[children] = own * math.prod(on_way[at + 1 :])
            covariances.append(covariance)
        return covariances


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
    kinds = [inside[0]]
    for level in range(1, axis.depth + 1):
        above = axis.repeated(kinds[-1], 0, level)
        pairs = np.stack([above, inside[level]])
        kinds.append(np.unique(pairs, axis=1, return_inverse=True)[1].ravel())
    return kinds


# --- a family of tables ---------------------------------------------------------------------------

# Of cells with errors of different laws, for which there is time.
MOST_KINDS = 256


@dataclass(frozen=True)
class UnevenFamily:
    """The best estimates of such a family.

    Parameters
    ----------
    family : Family
    tree : int
        Which of the axes is the tree.

    >>> from sfumato.questions.tables.levels import Levels
    >>> from sfumato.questions.tables.residuals import Measured
    >>> axes = (Levels(((2,), (3, 1))),)
    >>> family = Family(axes, (Measured((1,), 1.0), Measured((2,), 1.0)))
    >>> uneven = UnevenFamily.of(family)
    >>> [uneven.variance_of((1,), cell) for cell in (0, 1)]
    [0.75, 0.5]
    """

    family: Family
    tree: int

    @classmethod
    def of(cls, family: Family) -> Self | None:
        """Return the better estimates; None where there are none, or no time for them."""
        # Residuals that are measured alone need no such care, and one such tree is fitted at most.
        uneven = [at for at, axis in enumerate(family.axes) if not axis.is_even]
        if len(uneven) != 1 or not all(measured.whole for measured in family.measured):
            return None
        uneven_family = cls(family, uneven[0])
        levels = {measured.margin[uneven_family.tree] for measured in family.measured}
        kinds = {int(uneven_family._shapes[level].max()) + 1 for level in levels}
        return uneven_family if len(levels) > 1 and max(kinds) <= MOST_KINDS else None

    @cached_property
    def _shapes(self) -> list[Array]:
        return shapes(self.family.axes[self.tree])

    def kinds(self, level: int) -> tuple[list[int], Array]:
        """Return a cell of each kind at a level of the tree, and of which kind each cell is."""
        _, first, back = np.unique(self._shapes[level], return_index=True, return_inverse=True)
        return first.tolist(), np.asarray(back.ravel())

    def _at(self, margin: Margin, level: int) -> Margin:
        return (*margin[: self.tree], level, *margin[self.tree + 1 :])

    def _below(self, margin: Margin) -> list[Margin]:
        """Return the residuals of the other axes, at the total of the tree."""
        return list(self.family.estimable(self._at(margin, 0)))

    def _precision(self, kept: Margin, measured: Measured) -> float:
        """That of a measurement of a residual of the other axes; 0 where it does not contain it."""
        margin = self._at(measured.margin, 0)
        if not is_margin(kept, margin):
            return 0.0
        if not measured.variance:
            return math.inf
        cells = self.family.nesting.cells
        return cells(kept) / cells(margin) / measured.variance

    @cached_property
    def _fits(self) -> dict[Margin, TreeFit]:
        fits = {}
        axis = self.family.axes[self.tree]
        measured = self.family.measured
        for kept in sorted({kept for table in measured for kept in self._below(table.margin)}):
            precisions = [0.0] * (axis.depth + 1)
            for table in measured:
                precisions[table.margin[self.tree]] += self._precision(kept, table)
            fits[kept] = TreeFit(axis, tuple(precisions))
        return fits

    # --- errors -----------------------------------------------------------------------------------

    def variance_of(self, margin: Margin, cell: int) -> float:
        """Return the variance of the cells of a table that lie in one cell of the tree."""
        paths = self.family.paths(self._at(margin, 0))
        terms = []
        for kept in self._below(margin):
            share = math.prod(map(share_of, kept, paths))
            variances = self._fits[kept].variances(margin[self.tree])
            terms.append(share * variances[cell])
        return math.fsum(terms)

    def error_of(self, margin: Margin, cell: int) -> list[Weight]:
        """Return the error of such a cell as a weighted sum of independent draws of the noise."""
        level = margin[self.tree]
        covariances = {
            kept: self._fits[kept].covariances(level, cell) for kept in self._below(margin)
        }
        weights = []
        for index, table in enumerate(self.family.measured):
            if not table.variance:
                continue
            common = self._at(tuple(map(min, table.margin, margin)), 0)
            for parted in product(*(range(1, top + 2) for top in common)):
                times = self._times(table, margin, parted)
                factors = self._factors(table, margin, common, parted, covariances)
                # Draws with the same weight count together, up to rounding.
                distinct, number = np.unique(np.abs(factors), return_counts=True)
                weights += [
                    Weight(index, float(factor), times * int(draws))
                    for factor, draws in zip(distinct, number, strict=True)
                    if factor and times
                ]
        return weights

    def _factors(
        self,
        measured: Measured,
        margin: Margin,
        common: Margin,
        parted: Margin,
        covariances: dict[Margin, list[Array]],
    ) -> Array:
        """Give the weights of the counts of a table that part so from a cell along the other axes.

        Returns
        -------
        float64 ndarray of shape (cells of the tree,)
        """
        level = measured.margin[self.tree]
        paths = self.family.paths(self._at(margin, 0))
        factors = np.zeros(self.family.axes[self.tree].cells(level))
        for kept in self._below(common):
            if level > self._fits[kept].last or not (of_kept := self._precision(kept, measured)):
                continue
            if math.isinf(self._fits[kept].precisions[level]):
                continue  # it is known
            entry = math.prod(map(entry_of, paths, kept, parted))
            factors += of_kept * entry * covariances[kept][level]
        # Those that differ by rounding alone are the same; see ``CellErrors``.
        parts, exponents = np.frexp(factors)
        return np.asarray(np.ldexp(np.rint(parts * 2.0**38), exponents - 38))

    def _times(self, measured: Measured, margin: Margin, parted: Margin) -> int:
        times = 1
        for at, axis in enumerate(self.family.axes):
            if at != self.tree:
                path = axis.kinds(margin[at])[0][0]
                times *= parted_cells(axis, path, measured.margin[at], parted[at])
        return times

    # --- estimates --------------------------------------------------------------------------------

    def residuals(self, counts: Sequence[Array]) -> dict[Margin, Array]:
        """Return the estimates of the residuals along all axes, by which tables are made.

        Parameters
        ----------
        counts : sequence of int64 ndarrays
            The noisy counts of each table that was measured.
        """
        axis = self.family.axes[self.tree]
        residuals = {}
        for kept, fit in self._fits.items():
            estimates = fit.estimates(self._measured(kept, fit, counts), self.tree)
            residuals[kept] = estimates[0]
            for level in range(1, fit.last + 1):
                numbers = axis.centred(estimates[level], self.tree, level)
                residuals[self._at(kept, level)] = numbers
        return residuals

    def _measured(self, kept: Margin, fit: TreeFit, counts: Sequence[Array]) -> dict[int, Array]:
        """Return what the tables say of a residual of the other axes, at each level of the tree."""
        sums: dict[int, Array] = {}
        for table, counts_of_table in zip(self.family.measured, counts, strict=True):
            level = table.margin[self.tree]
            precision = self._precision(kept, table)
            weight = precision / fit.precisions[level] if precision else 0.0
            if math.isinf(fit.precisions[level]):
                weight = float(math.isinf(precision) and level not in sums)
            if weight:
                centred = self._centred(kept, table, counts_of_table)
                sums[level] = sums.get(level, 0.0) + weight * centred
        return sums

    def _centred(self, kept: Margin, measured: Measured, table: Array) -> Array:
        numbers = np.asarray(table, dtype=float)
        for along, (axis, level, onto) in enumerate(
            zip(self.family.axes, measured.margin, kept, strict=True)
        ):
            if along != self.tree:
                numbers = axis.summed(numbers, along, level, onto)
                numbers = axis.centred(numbers, along, onto) if onto else numbers
        return numbers
