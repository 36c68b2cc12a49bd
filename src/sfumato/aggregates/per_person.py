"""One value for each person in a group: the mean or the sum of the values of the person's rows.

A person's value is rounded to a lattice of its own, by integers alone (see
``answers.person_values``). It may lie between two steps of a row's value: the mean of 31 and 32
is not a whole number of years. So means are rounded to as fine a lattice as the noise allows. Sums
of rows that lie on steps lie on steps as well, and are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.aggregates.values import PersonsValues, Values, most_steps, value_axis
from sfumato.answers.counts import NearestAxis, PersonLattice, PersonStatistic, Summed
from sfumato.basics.numbers import Array
from sfumato.domain.domain import Interval
from sfumato.domain.lattice import EdgesAxis, GridAxis
from sfumato.errors import UsageError, shown


@dataclass(frozen=True)
class PersonScale:
    """Where the values of rows and of persons lie, in exact numbers.

    Attributes
    ----------
    rows : GridAxis
        On which the values of rows are located: see ``rows_axis``.
    statistic : {"mean", "sum"}
    lower, upper : Fraction
        The bounds of a person's value. Values beyond them count as these.
    """

    rows: GridAxis
    statistic: PersonStatistic
    lower: Fraction
    upper: Fraction

    @property
    def has_step(self) -> bool:
        """Whether a row's values are steps, and not the nearest of many points."""
        return not isinstance(self.rows, NearestAxis)

    @property
    def row_start(self) -> Fraction:
        """The least value of a row."""
        return exactly(self.rows.lower)

    @property
    def row_step(self) -> Fraction:
        """The distance between the values of rows."""
        steps = self.rows.cells if self.has_step else self.rows.cells - 1
        return (exactly(self.rows.upper) - self.row_start) / steps

    @property
    def natural_steps(self) -> int | None:
        """The least number of steps on which the bounds and all values of rows lie.

        Sums of rows then lie on steps as well. None where a row may have any value.
        """
        if not self.has_step:
            return None
        unit = common_unit(self.row_start - self.lower, self.row_step, self.upper - self.lower)
        return int((self.upper - self.lower) / unit)

    def points(self, most: int) -> int:
        """Into how many steps, at most so many, the range of a person's value is divided."""
        natural = self.natural_steps
        if natural is None or natural > most:
            return most
        # Sums lie on these steps. Means lie between them, so each is divided further.
        return natural if self.statistic == "sum" else most // natural * natural

    def summed(self, points: int, squares: bool, knots: Array | None) -> Summed:
        """What a scan adds up.

        Parameters
        ----------
        points : int
            The number of steps of a person's value.
        squares : bool
        knots : int64 ndarray of shape (k,), or None
            Between which persons are counted apart.
        """
        step = (self.upper - self.lower) / points
        lengths = (self.row_start, self.row_step, self.lower, step)
        unit = common_unit(*lengths)
        row_start, row_step, start, step_in_units = (int(length / unit) for length in lengths)
        onto = PersonLattice(row_start, row_step, start, step_in_units, points)
        segments = None
        if knots is not None:
            segments = EdgesAxis(self.rows.name, tuple(knots.astype(np.float64).tolist()))
        return Summed(self.rows, squares, self.statistic, onto, segments)

    def values(self, points: int) -> Values:
        """How the values are added up, for releases to say."""
        is_exact = self.statistic == "sum" and points == self.natural_steps
        persons = PersonsValues(
            self.statistic,
            float(self.row_step) if self.has_step else None,
            0.0 if self.has_step else float(self.row_step / 2),
        )
        lower, upper = float(self.lower), float(self.upper)
        return Values(self.rows.name, lower, upper, points, not is_exact, persons)


def rows_axis(title: str, name: str, interval: Interval) -> GridAxis:
    """Lay the axis on which the values of rows are located, as finely as they can be added up.

    Raises
    ------
    UsageError
        If the axis has only one value.
    """
    return value_axis(name, interval, most_steps(title, name, interval, squared=False))


def person_scale(
    title: str, rows: GridAxis, statistic: PersonStatistic, clip: float | tuple[float, float] | None
) -> PersonScale:
    """Lay out the value of a person.

    Parameters
    ----------
    title : str
        The question, for errors.
    rows : GridAxis
        From ``rows_axis``.
    statistic : {"mean", "sum"}
    clip : number, pair of numbers or None
        The bounds of a person's value: an upper bound, or a lower and an upper one. None: for
        means, those of a row.

    Raises
    ------
    UsageError
        If sums have no bounds, the axis has no step to add up exactly, or the bounds of a sum do
        not lie on its steps.
    """
    found = PersonScale(rows, statistic, exactly(rows.lower), exactly(rows.upper))
    lower = found.lower
    # The upper bound of an axis with a step does not occur.
    upper = found.upper - found.row_step if found.has_step else found.upper
    if clip is not None:
        low, high = (rows.lower, clip) if isinstance(clip, int | float) else clip
        lower, upper = exactly(low), exactly(high)
    found = PersonScale(rows, statistic, lower, upper)
    if statistic == "sum":
        _require_exact_sums(title, found, clip)
    return found


def _require_exact_sums(
    title: str, scale: PersonScale, clip: float | tuple[float, float] | None
) -> None:
    """Refuse sums of a person that have no bounds, or do not lie on steps."""
    name = scale.rows.name
    asked = f"{title}, clip = {shown(clip)}"
    example = "such as clip=(0, 500)"
    if clip is None:
        obstacle = f"the bounds of {name!r} are those of a row, and a person's sum needs its own"
        raise UsageError(title, obstacle, f"Give them as a clip, {example}")
    if not isinstance(clip, tuple) and scale.rows.lower < 0:
        obstacle = f"values of {name!r} may be negative, so a sum has no lower bound"
        raise UsageError(asked, obstacle, f"Give a lower and an upper bound, {example}")
    if not scale.lower < scale.upper:
        obstacle = "the lower bound of a person's sum must be below the upper one"
        raise UsageError(asked, obstacle, f"Give both, {example}")
    if not scale.has_step:
        obstacle = f"{name!r} has no step, so the sum of a person cannot be exact"
        raise UsageError(title, obstacle, "Declare its step, such as Interval(0, 500, step=0.01)")
    unit = common_unit(scale.row_start, scale.row_step)
    if any((bound / unit).denominator != 1 for bound in (scale.lower, scale.upper)):
        obstacle = f"a person's sum is a multiple of {float(unit):g}, and the clip is not"
        raise UsageError(asked, obstacle, "Choose multiples of it")


def exactly(bound: float) -> Fraction:
    """A bound as the decimal number that was declared."""
    return Fraction(str(bound))


def common_unit(*lengths: Fraction) -> Fraction:
    """The largest length of which all others are multiples.

    >>> common_unit(Fraction(1, 2), Fraction(3, 4), Fraction(0))
    Fraction(1, 4)
    """
    below = math.lcm(*(length.denominator for length in lengths))
    return Fraction(math.gcd(*(int(length * below) for length in lengths)), below)
