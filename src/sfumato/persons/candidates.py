"""What limits of one kind lead to: the noise that each needs, and the rows that each leaves out.

A limit on rows leaves out what exceeds it. Under a limit on the norm, a person whose counts have
the norm v keeps a random share of about c / v of the rows: the counts shrink in proportion. So a
limit c leaves out the share sum (v - c) / sum v of all rows, over the persons beyond it. The same
formula holds of cells, since those counted are chosen at random, and bounds what a limit on rows in
a cell leaves out, since the cell with most rows loses the largest share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, count_law
from sfumato.persons.release import PersonsRelease
from sfumato.privacy.limits import Limits
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit

MANY = 100  # rows a person: the noise is then so wide that its being whole numbers does not matter


@dataclass(frozen=True)
class Candidates:
    """Limits of one kind for one question, and what else bounds a person beside them.

    Attributes
    ----------
    release : PersonsRelease
        What was measured of each person decides the kind.
    cells : int
        The cells of the question.
    knows_cells : bool
        Whether the noise of the question rests on its number of cells too.
    counts_persons : bool
        Whether the question counts each person once in a cell.
    rows_per_cell, cells_per_person : int or None
        Limits that stand beside those that are compared.
    """

    release: PersonsRelease
    cells: int
    knows_cells: bool = False
    counts_persons: bool = False
    rows_per_cell: int | None = None
    cells_per_person: int | None = None

    def unit(self, limit: int) -> Unit:
        """What one person can change under a limit, as the source states it."""
        one = self.release.unit
        unit = msgspec.structs.replace(one, rows_per_person=1, limits=msgspec.UNSET)
        match self.release.of:
            case "rows":
                return msgspec.structs.replace(unit, rows_per_person=limit)
            case "norm":
                return _within(unit, limit**2, Limits(norm_per_person=limit))
            case "largest-cell":
                cells = min(self.cells_per_person or self.cells, self.cells)
                return _within(unit, limit * cells, Limits(limit, cells))
            case "cells":
                if self.counts_persons:
                    return unit.counting_persons(limit)
                assert self.rows_per_cell is not None
                rows = limit * self.rows_per_cell
                return _within(unit, rows, Limits(self.rows_per_cell, limit))

    def noise(self, limits: Array, cost: CentralMeasure) -> Array:
        """The mean size of the noise on each number that each limit needs: float64 ndarray."""
        many = msgspec.structs.replace(self.unit(1), rows_per_person=MANY, limits=msgspec.UNSET)
        law = count_law(cost, many)
        size_per_row = _mean_size(law) / _sensitivity(many, law)
        units = [self.unit(limit) for limit in limits.tolist()]
        if self.knows_cells:
            units = [unit.on_cells(self.cells) for unit in units]
        return size_per_row * np.array([_sensitivity(unit, law) for unit in units])

    def lost(self, rows: PersonsRelease | int | None) -> Array:
        """The rows (or persons) per cell that each limit of the distribution leaves out.

        Parameters
        ----------
        rows : PersonsRelease, int or None
            How many rows there are, where that does not follow from the release.
        """
        distribution = self.release.distribution
        if self.release.of == "rows" or self.counts_persons:
            return distribution.lost / self.cells
        shares = distribution.lost / max(distribution.rows, 1.0)
        return shares * _number_of_rows(self.release, rows) / self.cells


def _within(unit: Unit, rows: int, limits: Limits) -> Unit:
    return msgspec.structs.replace(unit, rows_per_person=rows, limits=limits)


def _number_of_rows(release: PersonsRelease, rows: object) -> float:
    """How many rows there are: as stated, or from an answer about the rows of each person."""
    asked = f"a recommended limit from {release.title!r}"
    if isinstance(rows, int) and not isinstance(rows, bool) and rows > 0:
        return float(rows)
    if rows is None:
        raise UsageError(
            asked,
            f"how many rows there are does not follow from {release.measured.noun}",
            "Give rows=: the answer to sf.Persons(most_rows=1000), or a number that is public",
        )
    if not isinstance(rows, PersonsRelease) or rows.of != "rows":
        raise UsageError(
            f"{asked}, with rows= of type {type(rows).__name__}",
            "it is neither a whole number nor an answer about the rows of each person",
            "Give the answer to sf.Persons(most_rows=1000)",
        )
    return rows.distribution.rows


def _sensitivity(unit: Unit, law: Law) -> float:
    """How far one person moves counts, in the norm that the noise follows."""
    match law:
        case DiscreteLaplace():
            return float(unit.counts_l1)
        case DiscreteGaussian():
            return math.sqrt(unit.counts_l2_squared)


def _mean_size(law: Law) -> float:
    match law:
        case DiscreteLaplace(scale=scale):
            return float(scale)
        case DiscreteGaussian():
            return math.sqrt(2 / math.pi) * law.sigma
