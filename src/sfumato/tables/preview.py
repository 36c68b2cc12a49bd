"""How accurate the tables of a family would be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.answers.estimate import error_probability, half_width_text
from sfumato.answers.preview import Preview
from sfumato.basics.numbers import Exactly
from sfumato.tables.cell_errors import CellErrors
from sfumato.tables.design import Measurement, described
from sfumato.tables.levels import Levels

MOST_LISTED = 8
"""Tables whose accuracy is listed one by one."""


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

    @property
    def _errors(self) -> CellErrors:
        return CellErrors(tuple(map(Levels, self.axes)), self.measured, self.known)

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
        errors = self._errors
        return tuple(float(errors.half_widths(table, alpha).max()) for table in self.tables)

    def accuracy_of(self, table: int, confidence: Exactly = "0.95") -> float:
        """The half-width of the counts of one table, by its place."""
        errors = self._errors
        return float(errors.half_widths(self.tables[table], error_probability(confidence)).max())

    def lines(self) -> list[str]:
        """What is added to what, and how accurate each table would be."""
        found = [f"adds {described(self.measured)}"]
        if self.totals:
            listed = ", ".join(self.totals)
            found.append(f"has the public totals of {listed} exactly, and spends nothing on them")
        each = self.accuracies()
        of = f"of {self.unit.counted}"
        if len(self.tables) > MOST_LISTED:
            ends = f"+-{half_width_text(min(each))} to +-{half_width_text(max(each))}"
            found.append(f"{of}, each count is within {ends} of the truth with 95% confidence")
        else:
            tables = zip(self.names, each, strict=True)
            listed = ", ".join(f"+-{half_width_text(half)} in {name}" for name, half in tables)
            found.append(
                f"{of}, each count is this close to the truth with 95% confidence: {listed}"
            )
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            found.append(f"all of them at once are within +-{half_width_text(every)}")
        return [*found, *self._wishes(each)]

    def _wishes(self, each: Sequence[float]) -> list[str]:
        """How the accuracy compares with what was asked for."""
        if self.wished is None:
            return []
        ratio = float(np.max(np.array(each) / self.wished))
        if ratio <= 1:
            return ["every table is as accurate as asked for"]
        return [f"no table is more than {ratio:.3g} times less accurate than asked for"]
