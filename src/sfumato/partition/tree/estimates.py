"""Estimates from all noisy counts of a tree, and how far sums of them may be from the truth."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import (
    LEAST_SPREAD,
    Weighted,
    half_widths,
    spread,
    weighted_half_widths,
)
from sfumato.partition.tree.cover import Counted
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred, infer, influence, whole_counts
from sfumato.partition.tree.summed_area import SummedAreaTables
from sfumato.partition.tree.walker import Ranges, RangeWalker

MOST_DRAWS = 2**11
"""Up to so many noisy counts, half-widths of cells follow from the exact law of their noise."""


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
            other_variance = self._noise_variances[self.inner.which]
            weight = self._weight_of_inner
            counts[node] += weight * (self.inner.count - counts[node])
            variances[node] = weight * other_variance
        return infer(tree, counts, variances)

    @cached_property
    def _whole(self) -> Array:
        """Non-negative whole numbers near the estimates, which add up: int64 ndarray (nodes,)."""
        return whole_counts(self.tree, self.inferred.estimate, self.inferred.own)

    def cells(self, whole: bool) -> Array:
        """Estimates of the cells: ndarray of shape (cells,).

        Parameters
        ----------
        whole : bool
            True: non-negative whole numbers that add up. False: unbiased estimates.
        """
        nodes = self._whole if whole else self.inferred.estimate
        return np.asarray(nodes[self.tree.leaves])

    @property
    def variances(self) -> Array:
        """Variances of the unbiased estimates of the cells: float64 ndarray of shape (cells,)."""
        return np.asarray(self.inferred.variance[self.tree.leaves])

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
        Its size is at most Var x(v) / variance(v) (``inference``), and at most sqrt(V Var x(v)) /
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
            coefficients = np.minimum(size, 1).tolist()
            terms = list(zip(self.laws, coefficients, strict=True))
            half[here] = half_widths(variances[here], terms, alpha)
        return half

    def cell_half_widths(self, alpha: float) -> Array:
        """Half-widths of the estimates of the cells: float64 ndarray of shape (cells,).

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
        found = np.zeros((len(self.tree.axis), len(self._law_of_draw)))
        found[self.tree.leaves, np.arange(self.tree.cells)] = 1
        if self.inner is not None:
            node = self.inner.node
            draw = self.tree.cells + np.arange(len(node))
            found[node] *= 1 - self._weight_of_inner[:, None]
            found[node, draw] = self._weight_of_inner
        return found

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
        whole = dataclasses.replace(self.inferred, estimate=self._whole)
        return SummedAreaTables(self.tree, whole)

    def sums(
        self, ranges: Ranges, number: int, alpha: float, *, exact: bool, whole: bool
    ) -> tuple[Array, Array, Array]:
        """Sums of estimates over ranges.

        Parameters
        ----------
        ranges : dict of axis number -> (lower, upper)
        number : int
            How many ranges there are.
        alpha : float
            The half-widths hold with probability 1 - alpha, each by itself.
        exact : bool
            Whether variances are exact, or bounded from above where that is quicker.
        whole : bool
            Whether whole numbers are shown.

        Returns
        -------
        unbiased, shown, half_widths : float64 ndarrays of shape (number,)
            Sums of the unbiased estimates and of what is shown, and half-widths of the former.
        """
        tables = self._tables
        if exact or not tables.fits:
            unbiased, variances = RangeWalker(self.tree, self.inferred).sums(ranges, number)
        else:
            unbiased, variances = tables.sums(ranges, number)
        half = self.half_widths(variances, alpha)
        if not whole:
            return unbiased, unbiased, half
        of_whole = self._tables_of_whole
        if of_whole.fits:
            shown, _ = of_whole.sums(ranges, number)
        else:
            shown, _ = RangeWalker(self.tree, of_whole.inferred).sums(ranges, number)
        return unbiased, shown, half
