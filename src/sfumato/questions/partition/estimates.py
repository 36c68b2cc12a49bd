"""Estimates from the noisy counts of a partition, and how far sums of them may be from the truth.

In the order of the code: the stored parts of a partition, which say where its boxes lie and which
noisy counts stand above them; estimates from all noisy counts of a tree; and estimates from those
of a grid, which are the counts themselves, and sums over ranges.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array, largest_remainders
from sfumato.mechanisms import (
    LEAST_SPREAD,
    DiscreteLaplace,
    Law,
    Weighted,
    half_widths,
    spread,
    weighted_half_widths,
)
from sfumato.questions.partition.geometry import Grid, Tree
from sfumato.questions.partition.ranges import (
    Inferred,
    Ranges,
    RangeWalker,
    SummedAreaTables,
    infer,
    influence,
    whole_counts,
)

# --- stored parts ---------------------------------------------------------------------------------


class Edges(msgspec.Struct, frozen=True, tag="grid", eq=False, forbid_unknown_fields=True):
    """A product grid: lattice points between which the boxes lie, one int64 ndarray per axis.

    >>> import numpy as np
    >>> from sfumato.extending import Edges
    >>> Edges((np.array([0, 2, 4]), np.array([0, 8]))).edges[0].tolist()
    [0, 2, 4]
    """

    edges: tuple[Array, ...]


class Splits(msgspec.Struct, frozen=True, tag="tree", eq=False, forbid_unknown_fields=True):
    """A tree of two-way splits, as ``Tree`` describes it: int64 ndarrays of shape (nodes,).

    >>> import numpy as np
    >>> from sfumato.extending import Splits
    >>> Splits(axis=np.array([0, -1, -1]), cut=np.array([2, 0, 0])).cut.tolist()
    [2, 0, 0]
    """

    axis: Array
    cut: Array


Cover: TypeAlias = Edges | Splits


class Counted(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """Noisy counts of nodes, beside those of the cells, in the order in which they were drawn.

    Attributes
    ----------
    node, count, which : int64 ndarrays of equal shape
        Indices of nodes in breadth-first order, their noisy counts, and for each the index of the
        law of its noise among the partition's laws.
    """

    node: Array
    count: Array
    which: Array


def scale_of(law: Law) -> float:
    """Return the scale of Laplace noise, or the standard deviation of Gaussian noise."""
    return float(law.scale) if isinstance(law, DiscreteLaplace) else law.sigma


def are_indices(which: Array | None, size: int) -> bool:
    """Whether all entries are indices into a list of that size."""
    if which is None or not len(which):
        return True
    return int(which.min()) >= 0 and int(which.max()) < size


# --- trees ----------------------------------------------------------------------------------------

# Up to so many noisy counts, half-widths of cells follow from the exact law of their noise.
MOST_DRAWS = 2**11

# How often a cell counts at most: once in the range itself, and once for each of four sides.
MOST_TIMES = 5


@dataclass(frozen=True, eq=False)
class TreeEstimates:
    """Estimates of the nodes and cells of a tree from its noisy counts.

    Attributes
    ----------
    tree : Tree
    noisy : int64 ndarray of shape (cells,)
        Noisy counts of the cells.
    laws : tuple of laws of noise
    which : int64 ndarray of shape (cells,), or None
        The index of each cell's law among ``laws``; None: the first.
    inner : Counted or None
        Noisy counts above the cells.
    """

    tree: Tree
    noisy: Array
    laws: tuple[Law, ...]
    which: Array | None
    inner: Counted | None

    @cached_property
    def _noise_variances(self) -> Array:
        """The variance of the noise of each law: float64 ndarray of shape (laws,)."""
        # Noise that is all but never there has a variance that must not be divided by.
        return np.array([max(spread(law), LEAST_SPREAD) for law in self.laws])

    @cached_property
    def _law_of_cell(self) -> Array:
        """The index of each cell's law: int64 ndarray of shape (cells,)."""
        return np.zeros(self.tree.cells, np.int64) if self.which is None else self.which

    @cached_property
    def inferred(self) -> Inferred:
        """The generalised least squares estimate of every node."""
        tree = self.tree
        counts = np.zeros(len(tree.axis))
        variances = np.full(len(tree.axis), np.inf)
        counts[tree.leaves] = self.noisy
        variances[tree.leaves] = self._noise_variances[self._law_of_cell]
        if self.inner is not None:
            # A cell that was tested has two counts. They are combined with weights by their
            # variances.
            node = self.inner.node
            weight = self._weight_of_inner
            counts[node] += weight * (self.inner.count - counts[node])
            variances[node] = weight * self._noise_variances[self.inner.which]
        return infer(tree, counts, variances)

    @cached_property
    def _whole(self) -> Array:
        """Non-negative whole numbers near the estimates, which add up: int64 ndarray (nodes,)."""
        return whole_counts(self.tree, self.inferred.estimate, self.inferred.own)

    def cells(self, whole: bool) -> Array:
        """Return estimates of the cells: ndarray of shape (cells,).

        Parameters
        ----------
        whole : bool
            True: non-negative whole numbers that add up. False: unbiased estimates.
        """
        return (self._whole if whole else self.inferred.estimate)[self.tree.leaves]

    @property
    def variances(self) -> Array:
        """Variances of the unbiased estimates of the cells: float64 ndarray of shape (cells,)."""
        return self.inferred.variance[self.tree.leaves]

    @cached_property
    def _largest_variances(self) -> Array:
        """For each law, the largest variance of the estimate of a node whose count has that law.

        A float64 ndarray of shape (laws,).
        """
        largest = np.zeros(len(self.laws))
        np.maximum.at(largest, self._law_of_cell, self.variances)
        if self.inner is not None:
            np.maximum.at(largest, self.inner.which, self.inferred.variance[self.inner.node])
        return largest

    def half_widths(self, variances: Array, alpha: float) -> Array:
        """Half-widths of sums of estimates of these variances: float64 ndarray like ``variances``.

        A count y(v) enters a sum of variance V with the coefficient Cov(sum, x(v)) / variance(v).
        Its size is at most Var x(v) / variance(v) (``ranges``), and at most sqrt(V Var x(v)) /
        variance(v) (Cauchy and Schwarz). For the latter, V is rounded up to a power of sqrt 2, so
        that few different bounds are computed.
        """
        half = np.zeros(len(variances))
        # The factor covers the rounding of the variances: a coefficient must not be too small.
        largest = self._largest_variances * (1 + 1e-9)
        exponents = np.ceil(2 * np.log2(np.maximum(variances, 1e-12)))
        for exponent in np.unique(exponents):
            here = exponents == exponent
            by_cauchy_schwarz = np.sqrt(2.0 ** (exponent / 2) * largest)
            size = np.minimum(largest, by_cauchy_schwarz) / self._noise_variances
            terms = list(zip(self.laws, np.minimum(size, 1).tolist(), strict=True))
            half[here] = half_widths(variances[here], terms, alpha)
        return half

    def cell_half_widths(self, alpha: float) -> Array:
        """Return half-widths of the estimates of the cells: float64 ndarray of shape (cells,).

        They follow from the exact law of the noise, by the coefficients with which all counts enter
        an estimate. Where there are more than 2,048 counts, they are bounds: see ``half_widths``.
        """
        if len(self._law_of_draw) > MOST_DRAWS:
            return self.half_widths(self.variances, alpha)
        coefficients = influence(self.tree, self._combined, self.inferred)[self.tree.leaves]
        parts = [
            Weighted.of(law, coefficients[:, self._law_of_draw == at])
            for at, law in enumerate(self.laws)
        ]
        return weighted_half_widths(parts, alpha)

    @cached_property
    def _law_of_draw(self) -> Array:
        """The index of the law of each noisy count, of the cells and then of the others."""
        if self.inner is None:
            return self._law_of_cell
        return np.concatenate([self._law_of_cell, self.inner.which])

    @cached_property
    def _combined(self) -> Array:
        """How a node's own counts are combined: float64 ndarray of shape (nodes, draws)."""
        combined = np.zeros((len(self.tree.axis), len(self._law_of_draw)))
        combined[self.tree.leaves, np.arange(self.tree.cells)] = 1
        if self.inner is not None:
            node = self.inner.node
            draw = self.tree.cells + np.arange(len(node))
            combined[node] *= 1 - self._weight_of_inner[:, None]
            combined[node, draw] = self._weight_of_inner
        return combined

    @cached_property
    def _weight_of_inner(self) -> Array:
        """The weight of each count above the cells, beside that of a cell on the same node."""
        assert self.inner is not None
        variances = np.full(len(self.tree.axis), np.inf)
        variances[self.tree.leaves] = self._noise_variances[self._law_of_cell]
        variance = variances[self.inner.node]
        has_one_count = np.isinf(variance)
        total = np.where(has_one_count, 1, variance + self._noise_variances[self.inner.which])
        return np.where(has_one_count, 1, np.where(has_one_count, 1, variance) / total)

    @cached_property
    def _tables(self) -> SummedAreaTables:
        return SummedAreaTables(self.tree, self.inferred)

    @cached_property
    def _tables_of_whole(self) -> SummedAreaTables:
        return SummedAreaTables(self.tree, dataclasses.replace(self.inferred, estimate=self._whole))

    def sums(self, ranges: Ranges, number: int, *, whole: bool) -> Array:
        """Return sums over ranges, in which rows of cut cells lie evenly: (number,).

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper)
        number : int
            How many ranges there are.
        whole : bool
            Whether whole numbers are added up, or the unbiased estimates.
        """
        tables = self._tables_of_whole if whole else self._tables
        if not tables.fits:
            return RangeWalker(self.tree, tables.inferred).sums(ranges, number)[0]
        return tables.sums(ranges, number)[0]

    def bounds(
        self, ranges: Ranges, number: int, alpha: float, *, exact: bool, evenly: bool
    ) -> tuple[Array, Array]:
        """Bound how many rows lie in ranges.

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper)
        number : int
        alpha : float
            The bounds of each range miss with this probability at most.
        exact : bool
            Whether variances are exact, or bounded from above where that is quicker.
        evenly : bool
            Whether rows of cut cells are taken to lie evenly. False: the bounds hold wherever in
            their cells they lie.

        Returns
        -------
        low, high : float64 ndarrays of shape (number,)

        Holds because: noise is symmetric, so each end of an interval of a sum misses with half of
        alpha. Without evenness the lower end is that of the cells that are covered whole, and the
        upper end that of all that are touched.
        """
        if not exact and self._tables.fits:
            # Wider bounds, from sums over ranges and over the cells that their sides cross.
            values, variances = self._tables.sums(ranges, number)
            if evenly:
                half = self.half_widths(variances, alpha)
                return values - half, values + half
            cut, deviations = self._tables.cut(ranges, number)
            most = ((np.sqrt(variances) + deviations) / MOST_TIMES) ** 2
            half = MOST_TIMES * self.half_widths(most, alpha)
            return values - cut - half, values + cut + half
        walker = RangeWalker(self.tree, self.inferred)
        at_least, spread_of_least = walker.sums(ranges, number, "share" if evenly else "nothing")
        half = self.half_widths(spread_of_least, alpha)
        if evenly:
            return at_least - half, at_least + half
        at_most, spread_of_most = walker.sums(ranges, number, "all")
        return at_least - half, at_most + self.half_widths(spread_of_most, alpha)


# --- grids ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GridEstimates:
    """Estimates of the cells of a grid. It offers what ``TreeEstimates`` offers.

    Attributes
    ----------
    grid : Grid
    noisy : int64 ndarray of shape (cells,)
        Noisy counts of the cells.
    laws : tuple of laws of noise
    which : int64 ndarray of shape (cells,), or None
        The index of each cell's law among ``laws``; None: the first.
    """

    grid: Grid
    noisy: Array
    laws: tuple[Law, ...]
    which: Array | None

    def cells(self, whole: bool) -> Array:
        """The noisy counts, or non-negative whole numbers near them: ndarray of shape (cells,)."""
        if not whole:
            return self.noisy
        # They are in proportion to the noisy counts, and add up to what those do, or to 0.
        total = max(int(self.noisy.sum()), 0)
        positive = np.maximum(self.noisy, 0).astype(float)
        return largest_remainders(positive * (total / max(positive.sum(), 1)), total)

    @property
    def variances(self) -> Array:
        """Variances of the noisy counts: float64 ndarray of shape (cells,)."""
        return values_per_cell([spread(law) for law in self.laws], self.which, len(self.noisy))

    def half_widths(self, variances: Array, alpha: float) -> Array:
        """Return half-widths of sums of these variances: float64 ndarray like ``variances``."""
        return half_widths(variances, [(law, 1.0) for law in self.laws], alpha)

    def cell_half_widths(self, alpha: float) -> Array:
        """Half-widths of the noisy counts, which nothing else informs: float64 ndarray (cells,)."""
        half = [float(law.half_width(alpha)) for law in self.laws]
        return values_per_cell(half, self.which, len(self.noisy))

    def sums(self, ranges: Ranges, number: int, *, whole: bool) -> Array:
        """Return sums over ranges, in which rows of cut cells lie evenly: (number,)."""
        return self.grid.sums(self.cells(whole), ranges, number)[0]

    def bounds(
        self, ranges: Ranges, number: int, alpha: float, *, exact: bool, evenly: bool
    ) -> tuple[Array, Array]:
        """Bound how many rows lie in ranges, as ``TreeEstimates.bounds`` does; always exactly."""
        if evenly:
            return self._interval(ranges, number, alpha)
        low, _ = self._interval(self.grid.snapped(ranges, inwards=True), number, alpha)
        _, high = self._interval(self.grid.snapped(ranges, inwards=False), number, alpha)
        return low, high

    def _interval(self, ranges: Ranges, number: int, alpha: float) -> tuple[Array, Array]:
        unbiased, effective = self.grid.sums(self.noisy, ranges, number)
        # The widest law bounds the noise of every cell that a range may touch.
        half = widest_law(self.laws, self.which).sum_half_width(effective, alpha)
        return unbiased - half, unbiased + half


def values_per_cell(per_law: list[float] | list[int], which: Array | None, cells: int) -> Array:
    """Return values of laws, handed out to the cells: ndarray of shape (cells,)."""
    if which is None:
        return np.full(cells, per_law[0])
    return np.array(per_law)[which]


def widest_law(laws: tuple[Law, ...], which: Array | None) -> Law:
    """Return the law of the largest variance among those of the cells."""
    if which is None:
        return laws[0]
    used: list[Law] = [laws[i] for i in np.unique(which).tolist()]
    return max(used, key=spread)
