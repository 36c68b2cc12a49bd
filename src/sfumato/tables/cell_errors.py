"""How far the cells of a family's tables are from the truth: half-widths, by the laws of the noise.

A cell's error is a weighted sum of independent draws (``Family.error_of``), whose law is computed
by ``mechanisms.weighted_sums``. It is the same for all cells of a table that are nested alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import FEW_SUMS, Weighted, weighted_half_widths
from sfumato.tables.design import Measurement, family_of
from sfumato.tables.levels import Levels, Path
from sfumato.tables.nesting import Margin
from sfumato.tables.residuals import Family, Paths, Weight
from sfumato.tables.uneven import UnevenFamily

Draws: TypeAlias = tuple[tuple[Law, tuple[tuple[float, int], ...]], ...]
"""For each law, the weights of its draws in a sum, and how many draws have each of them."""

Kind: TypeAlias = tuple[Path | int, ...]
"""The way to a cell along each axis; along a tree of ``UnevenFamily``, a cell of that kind."""


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

    @cached_property
    def _uneven(self) -> UnevenFamily | None:
        return UnevenFamily.of(self.family)

    def variances(self, margin: Margin) -> Array:
        """The variance of the error of each cell of a table.

        Returns
        -------
        float64 ndarray of shape ``family.shape(margin)``
        """
        return self._of_each_kind(margin, lambda kind, _: self._variance(margin, kind))

    def half_widths(self, margin: Margin, alpha: float) -> Array:
        """For each cell of a table a t with P(abs(error) > t) <= alpha.

        Returns
        -------
        float64 ndarray of shape ``family.shape(margin)``
        """

        def half_width(kind: Kind, kinds: int) -> float:
            return self._half_width(self._error(margin, kind), alpha, kinds > FEW_SUMS)

        return self._of_each_kind(margin, half_width)

    def _of_each_kind(self, margin: Margin, number: Callable[[Kind, int], float]) -> Array:
        """What is the same for all cells that are nested alike; ``number`` also gets how many kinds
        of cells there are.
        """
        if not self.axes:
            return np.array(number((), 1))
        kinds, places = zip(*map(self._kinds, range(len(self.axes)), margin), strict=True)
        every = list(product(*kinds))
        found = np.array([number(kind, len(every)) for kind in every])
        return np.asarray(found.reshape([len(each) for each in kinds])[np.ix_(*places)])

    def _kinds(self, at: int, level: int) -> tuple[Sequence[Path | int], Array]:
        """The kinds of cells that an axis has at a level, and of which kind each cell is."""
        if self._uneven is not None and at == self._uneven.tree:
            return self._uneven.kinds(level)
        return self.axes[at].kinds(level, within=any(each.whole for each in self.measured))

    def _variance(self, margin: Margin, kind: Kind) -> float:
        if self._uneven is not None:
            return self._uneven.variance_of(margin, _cell(kind, self._uneven))
        return self.family.variance_of(margin, _paths(kind))

    def _error(self, margin: Margin, kind: Kind) -> list[Weight]:
        if self._uneven is not None:
            return self._uneven.error_of(margin, _cell(kind, self._uneven))
        return self.family.error_of(margin, _paths(kind))

    def _half_width(self, error: list[Weight], alpha: float, of_many: bool) -> float:
        by_law: dict[Law, list[tuple[float, int]]] = {}
        for weight in error:
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


def _paths(kind: Kind) -> Paths:
    return tuple(one for one in kind if isinstance(one, Path))


def _cell(kind: Kind, uneven: UnevenFamily) -> int:
    cell = kind[uneven.tree]
    assert isinstance(cell, int)
    return cell


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
