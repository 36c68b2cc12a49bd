"""How far the cells of a family's tables are from the truth, and a preview.

``CellErrors`` gives the half-widths of cells, by the laws of the noise.

A cell's error is a weighted sum of independent draws (``Family.error_of``), whose law is computed
by ``mechanisms.noise_sums``. It is the same for all cells of a table that are nested alike.

``TablesPreview`` says how accurate the tables of a family would be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product, starmap
from typing import TypeAlias

import numpy as np

from sfumato.answers import Preview, error_probability, half_width_text
from sfumato.basics import Array, Exactly
from sfumato.mechanisms import FEW_SUMS, Law, Weighted, weighted_half_widths
from sfumato.questions.tables.design import Measurement, described, family_of
from sfumato.questions.tables.levels import Levels, Margin, Path
from sfumato.questions.tables.residuals import Family, Paths, Weight
from sfumato.questions.tables.trees import UnevenFamily

# --- errors of cells ------------------------------------------------------------------------------

# For each law, the weights of its draws in a sum, and how many draws have each of them.
Draws: TypeAlias = tuple[tuple[Law, tuple[tuple[float, int], ...]], ...]

# The way to a cell along each axis; along a tree of ``UnevenFamily``, a cell of that kind.
Kind: TypeAlias = tuple[Path | int, ...]


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
        """Return the variance of the error of each cell of a table.

        Returns
        -------
        float64 ndarray of shape ``family.nesting.shape(margin)``
        """
        return self._of_each_kind(margin, lambda kind, _: self._variance(margin, kind))

    def half_widths(self, margin: Margin, alpha: float) -> Array:
        """For each cell of a table a t with P(abs(error) > t) <= alpha.

        Returns
        -------
        float64 ndarray of shape ``family.nesting.shape(margin)``
        """

        def half_width(kind: Kind, kinds: int) -> float:
            by_law: dict[Law, list[tuple[float, int]]] = {}
            for weight in self._error(margin, kind):
                draws = by_law.setdefault(self.measured[weight.measured].law, [])
                draws.append((abs(weight.factor), weight.times))
            if not by_law:  # all of it is known
                return 0.0
            # Tables that are alike have equal sums, whose law is computed once.
            rounded = (
                (law, tuple(sorted((float(f"{weight:.12g}"), times) for weight, times in draws)))
                for law, draws in by_law.items()
            )
            return _half_width(tuple(sorted(rounded, key=str)), alpha, kinds > FEW_SUMS)

        return self._of_each_kind(margin, half_width)

    def _of_each_kind(self, margin: Margin, number: Callable[[Kind, int], float]) -> Array:
        """What is the same for all cells that are nested alike; ``number`` also gets how many kinds
        of cells there are.
        """
        if not self.axes:
            return np.array(number((), 1))
        of_axes = starmap(self._kinds, enumerate(margin))
        kinds, places = zip(*of_axes, strict=True)
        every = list(product(*kinds))
        numbers = np.array([number(kind, len(every)) for kind in every])
        by_axis = numbers.reshape([len(kinds_of_axis) for kinds_of_axis in kinds])
        return np.asarray(by_axis[np.ix_(*places)])

    def _kinds(self, at: int, level: int) -> tuple[Sequence[Path | int], Array]:
        """Return the kinds of cells that an axis has at a level, and of which kind each cell is."""
        if self._uneven is not None and at == self._uneven.tree:
            return self._uneven.kinds(level)
        has_whole = any(measurement.whole for measurement in self.measured)
        return self.axes[at].kinds(level, within=has_whole)

    def _variance(self, margin: Margin, kind: Kind) -> float:
        if self._uneven is not None:
            return self._uneven.variance_of(margin, _cell(kind, self._uneven))
        return self.family.variance_of(margin, _paths(kind))

    def _error(self, margin: Margin, kind: Kind) -> list[Weight]:
        if self._uneven is not None:
            return self._uneven.error_of(margin, _cell(kind, self._uneven))
        return self.family.error_of(margin, _paths(kind))


def _paths(kind: Kind) -> Paths:
    return tuple(path for path in kind if isinstance(path, Path))


def _cell(kind: Kind, uneven: UnevenFamily) -> int:
    cell = kind[uneven.tree]
    assert isinstance(cell, int)
    return cell


@lru_cache(maxsize=4096)
def _half_width(draws: Draws, alpha: float, of_many: bool) -> float:
    parts = []
    for law, of_law in draws:
        weights = np.array([weight for weight, _ in of_law])
        times = np.array([float(times) for _, times in of_law])
        parts.append(Weighted.of(law, weights, times))
    # Weights were rounded to twelve digits.
    return float(weighted_half_widths(parts, alpha, of_many=of_many)[0]) * (1 + 1e-10)


# --- preview --------------------------------------------------------------------------------------


class TablesPreview(Preview, frozen=True):
    """The preview of a family of tables.

    Attributes
    ----------
    axes : tuple
        How the cells of each axis are nested: see ``tables.levels``.
    tables : tuple of tuple of int
        The tables, by the level of each axis.
    names : tuple of str
        What they are called.
    measured : tuple of Measurement
    wished : tuple of float, or None
        The half-width that is asked for of each table.
    known : tuple of tuple of int
        The tables that are public totals.
    totals : tuple of str
        What these are called.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), ward=sf.Categories(["A", "B"]))
    >>> question = sf.Tables([["age", "ward"], "age"], bins=4)
    >>> preview = sf.preview(question, domain=domain, unit=sf.Unit(), rho="0.125")
    >>> preview.cells, [round(preview.accuracy_of(table)) for table in range(2)]
    (12, [4, 5])
    """

    axes: tuple[tuple[tuple[int, ...], ...], ...] = ()
    tables: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = ()
    measured: tuple[Measurement, ...] = ()
    wished: tuple[float, ...] | None = None
    known: tuple[tuple[int, ...], ...] = ()
    totals: tuple[str, ...] = ()

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Half-width of the interval of each number, of the least accurate one.

        ``simultaneous``: all of them hold together.
        """
        return max(self.accuracies(confidence, simultaneous))

    def accuracies(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[float, ...]:
        """The half-width of the counts of each table; for all numbers together, if asked."""
        alpha = error_probability(confidence)
        if simultaneous and self.cells:
            alpha /= self.cells
        levels = tuple(map(Levels, self.axes))
        errors = CellErrors(levels, self.measured, self.known)
        half_widths = [errors.half_widths(table, alpha).max() for table in self.tables]
        return tuple(map(float, half_widths))

    def accuracy_of(self, table: int, confidence: Exactly = "0.95") -> float:
        """The half-width of the counts of one table, by its place."""
        return self.accuracies(confidence)[table]

    def lines(self) -> list[str]:
        """What is added to what, and how accurate each table would be."""
        lines = [f"adds {described(self.measured)}"]
        if self.totals:
            listed = ", ".join(self.totals)
            lines.append(f"has the public totals of {listed} exactly, and spends nothing on them")
        half_widths = self.accuracies()
        of = f"of {self.unit.counted}"
        # More tables are not listed one by one.
        if len(self.tables) > 8:
            ends = f"+-{half_width_text(min(half_widths))} to +-{half_width_text(max(half_widths))}"
            lines.append(f"{of}, each count is within {ends} of the truth with 95% confidence")
        else:
            tables = zip(self.names, half_widths, strict=True)
            listed = ", ".join(f"+-{half_width_text(half)} in {name}" for name, half in tables)
            lines.append(
                f"{of}, each count is this close to the truth with 95% confidence: {listed}"
            )
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            lines.append(f"all of them at once are within +-{half_width_text(every)}")
        if self.wished is not None:
            ratio = float(np.max(np.array(half_widths) / self.wished))
            lines.append(
                f"no table is more than {ratio:.3g} times less accurate than asked for"
                if ratio > 1
                else "every table is as accurate as asked for"
            )
        return lines
