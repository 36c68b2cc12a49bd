r"""Least squares over a family of noisy tables that share axes, without a matrix.

A table names a level of each axis (``levels``); 0 says that the axis is summed over. Such a table,
a *margin*, is the sum of its *residuals*: one for each margin A at or below it, whose values are
the contrasts of A's levels along each axis. What is measured is

* a **whole** table T, with independent noise of variance s_T^2 on each count, or
* a **residual** alone: that of a table whose counts have such noise, of which nothing else is used.

Residuals of different margins are uncorrelated in either. A whole table measures the residual of
each A below it, with noise whose variance on each count of A is that of cells(T) / cells(A) counts.
So with the precisions

    W_A = sum of 1 / s_A^2 over residuals of A that were measured,
          and of cells(A) / (s_T^2 cells(T)) over whole tables T at or above A,

weighing by precision gives the best linear unbiased estimate of each residual (Gauss, Markov). A
margin B is the sum of its residuals, each spread evenly over the cells of B. So any two margins
agree in their common margins, and each cell of B has the variance

    V_B = sum over A of (1 / W_A) times, along each axis with levels a of A and b of B,
          (1 - 1 / f_a) (of level 0: 1) and 1 / f_k^2 for each level k of a + 1, ..., b,

where f_k is the number of siblings at level k on the way to the cell. Axes without levels between
total and cells have f_1 = d, their number of cells: V_B is the sum over subsets A of B of
(1 / W_A) prod(1 - 1 / d_i, i in A) / prod(d_i^2, i in B \ A).

A cell's error is a weighted sum of independent draws of noise. The weight of a draw depends only on
the level at which its cell and that of B part along each axis, so there are few different weights:
see ``error_of``.

Where cells of a level have different numbers of children, the sum of a whole table's counts over a
large region is noisier than over a small one, so residuals of whole tables are correlated, and one
weight for all cells is not the best one. Estimates are still unbiased and add up, and ``error_of``
is exact; V_B is then the sum over all draws. Residuals that are measured alone need no such care.

Source: Xiao, He, Zhang, Kifer, *ResidualPlanner*, NeurIPS 2023, Thm 5; for two axes, Barak et al.,
PODS 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import NamedTuple, TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.questions.tables.levels import Levels, Margin, Nesting, Path, contrast, is_margin

# Along each axis, the way to a cell of a margin.
Paths: TypeAlias = tuple[Path, ...]


class Measured(NamedTuple):
    """A table that was measured, or its residual alone, and the variance of the noise on a count.

    The variance is 0 where the table is known without being measured. ``whole`` says whether the
    table itself was published, and not only its residual.
    """

    margin: Margin
    variance: float
    whole: bool = True


class Weight(NamedTuple):
    """How often, and with which factor, draws of one measurement enter the error of a cell."""

    measured: int
    factor: float
    times: int


def below(margin: Margin) -> Iterator[Margin]:
    """Return all margins at or below one, the total first."""
    return product(*(range(level + 1) for level in margin))


def closure_of(tables: Sequence[Margin]) -> list[Margin]:
    """Return the margins of all tables, those of fewer axes first."""
    margins = set(chain.from_iterable(map(below, tables)))
    return sorted(margins, key=lambda margin: (sum(margin), [-level for level in margin]))


@dataclass(frozen=True)
class Family:
    """Tables over the same axes, and what was measured of them.

    Parameters
    ----------
    axes : tuple of Levels
    measured : tuple of Measured
        At least one of them at or above, or the residual of, each margin that is asked for.

    >>> axes = (Levels.flat(3), Levels.flat(4))
    >>> family = Family(axes, (Measured((1, 1), 2.0), Measured((1, 0), 1.0)))
    >>> family.variance_of((1, 0))
    0.888888888888889
    """

    axes: tuple[Levels, ...]
    measured: tuple[Measured, ...]

    @cached_property
    def nesting(self) -> Nesting:
        """How the cells of the axes are nested."""
        return Nesting(self.axes)

    def estimable(self, margin: Margin) -> Iterator[Margin]:
        """Return the residuals of a table that say anything: no noise was put on the others."""
        return filter(self.nesting.has_residual, below(margin))

    @cached_property
    def precisions(self) -> Mapping[Margin, tuple[tuple[int, float], ...]]:
        """For each residual, which measurements there are of it, and how precise they are.

        Where a table is known, without noise, it alone is there, and infinitely precise.
        """
        precisions: dict[Margin, list[tuple[int, float]]] = {}
        for index, (margin, variance, whole) in enumerate(self.measured):
            for kept in below(margin) if whole else (margin,):
                share = self.nesting.cells(kept) / self.nesting.cells(margin)
                precision = share / variance if variance else math.inf
                precisions.setdefault(kept, []).append((index, precision))
        exact = {
            kept: [pair for pair in precisions[kept] if pair[1] == math.inf] for kept in precisions
        }
        return {kept: tuple(exact[kept][:1] or measured) for kept, measured in precisions.items()}

    @cached_property
    def total_precisions(self) -> Mapping[Margin, float]:
        """W_A for each residual."""
        return {
            kept: math.fsum(precision for _, precision in measured)
            for kept, measured in self.precisions.items()
        }

    def weight(self, kept: Margin, index: int) -> float:
        """How much a measurement weighs in the estimate of a residual; all together weigh 1."""
        precision = dict(self.precisions[kept]).get(index, 0.0)
        return 1.0 if precision == math.inf else precision / self.total_precisions[kept]

    def paths(self, margin: Margin) -> Paths:
        """Return the way to a cell: to any, where a level has as many siblings everywhere."""
        return tuple(axis.kinds(level)[0][0] for axis, level in zip(self.axes, margin, strict=True))

    # --- errors -----------------------------------------------------------------------------------

    def variance_of(self, margin: Margin, paths: Paths | None = None) -> float:
        """V_B: the variance of a cell of a table.

        Parameters
        ----------
        margin : tuple of int
        paths : tuple of Path, or None
            The way to the cell along each axis. None: where all cells have the same.
        """
        paths = paths or self.paths(margin)
        if any(path.within for path in paths):
            return math.fsum(
                factor**2 * times * self.measured[index].variance
                for index, factor, times in self.error_of(margin, paths)
            )
        terms = []
        for kept in self.estimable(margin):
            share = math.prod(map(share_of, kept, paths))
            terms.append(share / self.total_precisions[kept])
        return math.fsum(terms)

    def error_of(self, margin: Margin, paths: Paths | None = None) -> list[Weight]:
        """Return the error of a cell as a weighted sum of independent draws of the noise.

        Every cell with the same paths has an error of this form, with other draws. Parameters are
        those of ``variance_of``.
        """
        paths = paths or self.paths(margin)
        weights = []
        for index, (measured, variance, whole) in enumerate(self.measured):
            # What is known has no error, and a residual enters only tables at or above its own.
            if not variance or (not whole and not is_margin(measured, margin)):
                continue
            common = tuple(map(min, measured, margin))
            for parted in product(*(range(1, level + 2) for level in common)):
                factor = self._factor(index, paths, common, parted)
                times = math.prod(map(parted_cells, self.axes, paths, measured, parted))
                if factor and times:
                    weights.append(Weight(index, factor, times))
        return weights

    def _factor(self, index: int, paths: Paths, common: Margin, parted: Margin) -> float:
        """Give the weight, in a cell, of a count that parts from it at some level of each axis."""
        terms = []
        for kept in self.estimable(common) if self.measured[index].whole else (common,):
            entry = math.prod(map(entry_of, paths, kept, parted))
            terms.append(self.weight(kept, index) * entry)
        return math.fsum(terms)

    # --- estimates --------------------------------------------------------------------------------

    def residual(self, kept: Margin, counts: Sequence[Array]) -> Array:
        """Return the estimate of one residual: float64 ndarray of shape ``nesting.shape(kept)``.

        Parameters
        ----------
        kept : tuple of int
        counts : sequence of int64 ndarrays
            For each measurement the noisy counts of its table, of the table's shape; for one of a
            residual, any counts that have this residual.
        """
        residual = np.zeros(self.nesting.shape(kept))
        if not self.nesting.has_residual(kept):
            return residual
        for index, _ in self.precisions[kept]:
            sums = self.nesting.margin(counts[index], self.measured[index].margin, kept)
            residual += self.weight(kept, index) * sums
        for along, (axis, level) in enumerate(zip(self.axes, kept, strict=True)):
            if level:
                residual = axis.centred(residual, along, level)
        return residual

    def estimate(self, margin: Margin, residuals: Mapping[Margin, Array]) -> Array:
        """Return a table from its residuals: float64 ndarray of shape ``nesting.shape(margin)``."""
        table = np.zeros(self.nesting.shape(margin))
        for kept in self.estimable(margin):
            spread = residuals[kept]
            for along, (axis, level, onto) in enumerate(zip(self.axes, kept, margin, strict=True)):
                spread = axis.spread(spread, along, level, onto)
            table += spread
        return table


def share_of(level: int, path: Path) -> float:
    """Return what one axis multiplies the variance of a residual by in a cell of a margin."""
    own = 1 - 1 / path.fanouts[level - 1] if level else 1.0
    return own / math.prod(path.fanouts[level:]) ** 2


def entry_of(path: Path, level: int, parted: int) -> float:
    """Return what one axis multiplies a count of a residual by in a cell of a margin."""
    return float(contrast(path, level, parted)) / math.prod(path.fanouts[level:])


def parted_cells(axis: Levels, path: Path, level: int, parted: int) -> int:
    """Return how many cells of a level part from the way to a cell at a level."""
    own = len(path.fanouts)
    if path.within:
        inside = path.within[parted - 1]
        last = min(level, own)
        rest = path.within[parted][level - parted] if parted <= last else 0
        return inside[level - parted + 1] - rest
    if parted > min(level, own):
        # The same cell of the last level that both have, and all that is in it.
        return axis.cells(level) // axis.cells(own) if level > own else 1
    after = axis.cells(level) // axis.cells(parted) if level > parted else 1
    return (path.fanouts[parted - 1] - 1) * after
