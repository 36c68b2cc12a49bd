"""Estimates from the noisy counts of a grid: the counts themselves, and sums over ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import half_widths, spread
from sfumato.partition.grid import Grid
from sfumato.partition.tree.cover import whole_cells
from sfumato.partition.tree.walker import Ranges


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
        return whole_cells(self.noisy) if whole else self.noisy

    @property
    def variances(self) -> Array:
        """Variances of the noisy counts: float64 ndarray of shape (cells,)."""
        return values_per_cell([spread(law) for law in self.laws], self.which, len(self.noisy))

    def half_widths(self, variances: Array, alpha: float) -> Array:
        """Half-widths of sums of these variances: float64 ndarray like ``variances``."""
        return half_widths(variances, [(law, 1.0) for law in self.laws], alpha)

    def cell_half_widths(self, alpha: float) -> Array:
        """Half-widths of the noisy counts, which nothing else informs: float64 ndarray (cells,)."""
        half = [float(law.half_width(alpha)) for law in self.laws]
        return values_per_cell(half, self.which, len(self.noisy))

    def sums(
        self, ranges: Ranges, number: int, alpha: float, *, exact: bool, whole: bool
    ) -> tuple[Array, Array, Array]:
        """Sums over ranges, as ``TreeEstimates.sums`` gives them. They are always exact."""
        unbiased, effective = self.grid.sums(self.noisy, ranges, number)
        half = widest_law(self.laws, self.which).sum_half_width(effective, alpha)
        if not whole:
            return unbiased, unbiased, half
        shown, _ = self.grid.sums(self.cells(whole=True), ranges, number)
        return unbiased, shown, half


def values_per_cell(per_law: list[float] | list[int], which: Array | None, cells: int) -> Array:
    """Values of laws, handed out to the cells: ndarray of shape (cells,)."""
    if which is None:
        return np.full(cells, per_law[0])
    return np.array(per_law)[which]


def widest_law(laws: tuple[Law, ...], which: Array | None) -> Law:
    """The law of the largest variance among those of the cells."""
    if which is None:
        return laws[0]
    used: list[Law] = [laws[i] for i in np.unique(which).tolist()]
    return max(used, key=spread)
