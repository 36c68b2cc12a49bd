"""How far the cells of a family's tables are from the truth: half-widths, by the laws of the noise.

A cell's error is a weighted sum of independent draws (``Family.error_of``), whose law is computed
by ``mechanisms.weighted_sums``. It is the same for all cells of a table that are nested alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.weighted_sums import FEW, Weighted, weighted_half_widths
from sfumato.tables.design import Measurement, family_of
from sfumato.tables.levels import Levels
from sfumato.tables.nesting import Margin
from sfumato.tables.residuals import Family, Paths

Draws: TypeAlias = tuple[tuple[Law, tuple[tuple[float, int], ...]], ...]
"""For each law, the weights of its draws in a sum, and how many draws have each of them."""


@dataclass(frozen=True)
class CellErrors:
    """The errors of the cells of a family's tables.

    Attributes
    ----------
    axes : tuple of Levels
    measured : tuple of Measurement
    known : tuple of tuple of int
        The tables that are known without being measured.
    """

    axes: tuple[Levels, ...]
    measured: tuple[Measurement, ...]
    known: tuple[Margin, ...] = ()

    @cached_property
    def family(self) -> Family:
        """The family with the variances of the noise."""
        return family_of(self.axes, self.measured, self.known)

    def variances(self, margin: Margin) -> Array:
        """The variance of the error of each cell of a table.

        Returns
        -------
        float64 ndarray of shape ``family.shape(margin)``
        """
        return self._of_each_kind(margin, lambda paths, _: self.family.variance_of(margin, paths))

    def half_widths(self, margin: Margin, alpha: float) -> Array:
        """For each cell of a table a t with P(abs(error) > t) <= alpha.

        Returns
        -------
        float64 ndarray of shape ``family.shape(margin)``
        """

        def half_width(paths: Paths, kinds: int) -> float:
            return self._half_width(margin, paths, alpha, kinds > FEW)

        return self._of_each_kind(margin, half_width)

    def _of_each_kind(self, margin: Margin, number: Callable[[Paths, int], float]) -> Array:
        """What is the same for all cells that are nested alike; ``number`` also gets how many kinds
        of cells there are.
        """
        kinds, places = (
            zip(
                *(
                    axis.kinds(level, within=any(each.whole for each in self.measured))
                    for axis, level in zip(self.axes, margin, strict=True)
                ),
                strict=True,
            )
            if self.axes
            else ((), ())
        )
        every = list(product(*kinds))
        found = np.array([number(paths, len(every)) for paths in every])
        of_kinds = found.reshape([len(each) for each in kinds])
        return np.asarray(of_kinds[np.ix_(*places)] if places else of_kinds)

    def _half_width(self, margin: Margin, paths: Paths, alpha: float, of_many: bool) -> float:
        by_law: dict[Law, list[tuple[float, int]]] = {}
        for weight in self.family.error_of(margin, paths):
            draws = by_law.setdefault(self.measured[weight.measured].law, [])
            draws.append((abs(weight.factor), weight.times))
        if not by_law:  # all of it is known
            return 0.0
        # Tables that are alike have equal sums, whose law is computed once.
        rounded = (
            (law, tuple(sorted((float(f"{weight:.12g}"), times) for weight, times in draws)))
            for law, draws in by_law.items()
        )
        return _half_width(tuple(sorted(rounded, key=str)), alpha, of_many)


@lru_cache(maxsize=4096)
def _half_width(draws: Draws, alpha: float, of_many: bool) -> float:
    """The half-width of a sum of draws of several laws."""
    parts = []
    for law, of_law in draws:
        weights = np.array([weight for weight, _ in of_law])
        numbers = np.array([float(times) for _, times in of_law])
        parts.append(Weighted.of(law, weights, numbers))
    # Weights were rounded to twelve digits.
    return float(weighted_half_widths(parts, alpha, of_many=of_many)[0]) * (1 + 1e-10)
