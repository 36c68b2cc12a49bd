"""One value for each person in a group: the mean or the sum of the values of the person's rows.

A person's value is rounded to a lattice of its own, by integers alone (see
``answers.person_values``). Between two steps of a row's value there may be many of it: the mean of
31 and 32 is not a whole number of years.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.aggregates.values import PersonsValues, Values
from sfumato.answers.counts import MOST_SUMMED, Summed
from sfumato.answers.person_values import PersonLattice, PersonStatistic
from sfumato.domain import Interval, grid_axis
from sfumato.errors import UsageError, shown
from sfumato.lattice import GridAxis

PersonClip = tuple[float, float] | None


@dataclass(frozen=True)
class PersonScale:
    """Where the value of a person lies, in exact numbers.

    Attributes
    ----------
    rows : GridAxis
        On which the values of rows are located.
    row_start, row_step : Fraction
        What a row in cell k counts as: ``row_start + k * row_step``.
    has_step : bool
        Whether rows have exactly these values, and no others.
    statistic : {"mean", "sum"}
    lower, upper : Fraction
        The bounds of a person's value. Values beyond them count as these.
    """

    rows: GridAxis
    row_start: Fraction
    row_step: Fraction
    has_step: bool
    statistic: PersonStatistic
    lower: Fraction
    upper: Fraction

    @property
    def natural_steps(self) -> int | None:
        """How many steps there are at least, if all bounds and row values are to lie on steps.

        Sums of rows then lie on steps as well. None for rows of any value.
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

    def summed(self, points: int, squares: bool) -> Summed:
        """What a scan adds up."""
        step = (self.upper - self.lower) / points
        lengths = (self.row_start, self.row_step, self.lower, step)
        unit = common_unit(*lengths)
        row_start, row_step, start, step_in_units = (int(length / unit) for length in lengths)
        onto = PersonLattice(row_start, row_step, start, step_in_units, points)
        return Summed(self.rows, squares, self.statistic, onto)

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


def person_scale(
    title: str, name: str, interval: Interval, statistic: PersonStatistic, clip: PersonClip
) -> PersonScale:
    """Lay out the value of a person.

    Parameters
    ----------
    title : str
        The question, for errors.
    name : str
        The value.
    interval : Interval
        The axis of rows.
    statistic : {"mean", "sum"}
    clip : pair of numbers or None
        The bounds of a person's value. None: for means, those of the axis.

    Raises
    ------
    UsageError
        If sums have no clip, the axis has no step to add up exactly, or the clip does not lie on
        its steps.
    """
    first, end = (Fraction(str(bound)) for bound in interval.numbers)
    natural = interval.natural_cells
    has_step = natural is not None and natural <= MOST_SUMMED
    cells = natural if natural is not None and has_step else MOST_SUMMED
    step = (end - first) / cells
    rows = grid_axis(name, interval, cells)
    # The upper bound of an axis with a step does not occur. Without one, a row counts as the middle
    # of its cell.
    last = end - step if has_step else end
    start = first if has_step else first + step / 2
    lower, upper = (first, last) if clip is None else (Fraction(str(bound)) for bound in clip)
    found = PersonScale(rows, start, step, has_step, statistic, lower, upper)
    if statistic == "sum":
        _require_exact_sums(title, found, clip)
    return found


def _require_exact_sums(title: str, scale: PersonScale, clip: PersonClip) -> None:
    """Refuse sums of a person that have no bounds, or do not lie on steps."""
    name = scale.rows.name
    if clip is None:
        obstacle = f"the bounds of {name!r} are those of a row, and a person's sum needs its own"
        raise UsageError(title, obstacle, "Give them as a clip, such as clip=(0, 500)")
    if not scale.has_step:
        obstacle = f"{name!r} has no step, so the sum of a person cannot be exact"
        raise UsageError(title, obstacle, "Declare its step, such as Interval(0, 500, step=0.01)")
    unit = common_unit(scale.row_start, scale.row_step)
    if any((bound / unit).denominator != 1 for bound in (scale.lower, scale.upper)):
        obstacle = f"a person's sum is a multiple of {float(unit):g}, and the clip is not"
        raise UsageError(f"{title}, clip = {shown(clip)}", obstacle, "Choose multiples of it")


def common_unit(*lengths: Fraction) -> Fraction:
    """The largest length of which all others are multiples.

    >>> common_unit(Fraction(1, 2), Fraction(3, 4), Fraction(0))
    Fraction(1, 4)
    """
    below = math.lcm(*(length.denominator for length in lengths))
    return Fraction(math.gcd(*(int(length * below) for length in lengths)), below)
