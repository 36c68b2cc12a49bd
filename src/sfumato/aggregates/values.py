"""Which values are added up: public bounds, clips, and the lattice that values are rounded to."""

from __future__ import annotations

import math
from typing import Literal, SupportsFloat, TypeAlias

import msgspec

from sfumato.answers.counts import MOST_SQUARED, MOST_SUMMED, NearestAxis, PersonStatistic
from sfumato.domain.domain import Interval, grid_axis
from sfumato.domain.lattice import LARGEST_BOUND, GridAxis
from sfumato.errors import UsageError, is_one_of, shown

Clip: TypeAlias = float | tuple[float, float] | Literal["auto"] | None
"""Narrower public bounds: an upper bound, a lower and an upper one, one to be chosen, or none."""

MOST_STEPS = MOST_SUMMED
"""How many steps a value is rounded to at most. 10^9 values then add up to less than 2^62."""

MOST_STEPS_SQUARED = MOST_SQUARED
"""The same where squares are added up."""


class PersonsValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the value of a person is made of.

    Attributes
    ----------
    statistic : {"mean", "sum"}
        Of the values of the person's rows in a group.
    step : float or None
        That of a row's value; a value between two steps counts as the lower one.
    rounding : float
        The largest distance between a row's value and what it counts as, without a step.
    """

    statistic: PersonStatistic
    step: float | None
    rounding: float


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that are added up: the lattice lower, lower + (upper - lower) / points, .., upper.

    Attributes
    ----------
    name : str
        The axis.
    lower, upper : float
        The first and the last lattice value. Values beyond them count as these.
    points : int
        The number of steps between the two.
    rounded : bool
        Whether values between two lattice values occur. They count as the nearest one.
    persons : PersonsValues
        What each value is made of, if it is that of a person; unset for values of rows.
    """

    name: str
    lower: float
    upper: float
    points: int
    rounded: bool
    persons: PersonsValues | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not (self.points >= 1 and -LARGEST_BOUND <= self.lower < self.upper <= LARGEST_BOUND):
            obstacle = "they need at least one step between finite bounds"
            raise UsageError(f"the values of {self.name!r}", obstacle, "Give them a wider Interval")

    @property
    def width(self) -> float:
        """The distance between the bounds."""
        return self.upper - self.lower

    @property
    def cut(self) -> str:
        """A clause for reports: on an axis with a step, values between two steps are cut."""
        step = None if self.rounded else self.width / self.points
        if self.persons is not msgspec.UNSET:
            step = self.persons.step
        return "" if step is None else f", each value cut to its step of {step:g}"

    @property
    def rounding(self) -> float:
        """The largest distance between a value and the lattice value that it counts as."""
        nearest = self.width / self.points / 2 if self.rounded else 0.0
        # The mean of a person is as far off as the values that it is the mean of.
        return nearest if self.persons is msgspec.UNSET else nearest + self.persons.rounding


def _as_float(bound: object) -> float:
    """A number as a float; NaN for what is none, and infinity for what no double holds."""
    is_array = getattr(bound, "ndim", 0) != 0 or isinstance(bound, bool | str)
    if is_array or not isinstance(bound, SupportsFloat):
        return math.nan
    try:
        return float(bound)
    except OverflowError:
        return math.inf


def plain_clip(clip: object) -> Clip:
    """Read a clip as the user wrote it: a number, a pair of numbers, or "auto".

    Raises
    ------
    UsageError
        If it is neither, or a number is not finite.
    """
    if clip is None:
        return None
    if is_one_of(clip, ["auto"]):
        return "auto"
    is_pair = isinstance(clip, list | tuple)
    bounds = clip if isinstance(clip, list | tuple) else [clip]
    numbers = [_as_float(bound) for bound in bounds]
    if not all(map(math.isfinite, numbers)) or len(bounds) not in (1, 2):
        obstacle = "it is neither a number nor a pair of numbers"
        remedy = 'Write clip=200, clip=(0, 200) or clip="auto"'
        raise UsageError("a clip", obstacle, remedy)
    return (numbers[0], numbers[-1]) if is_pair else numbers[0]


def clipped(title: str, axis: Interval, clip: float | tuple[float, float]) -> Interval:
    """Narrow an axis to a clip.

    Raises
    ------
    UsageError
        If the clip does not lie within the bounds of the axis.
    """
    lower, _ = axis.numbers
    last = last_value(axis)
    low, high = (lower, clip) if isinstance(clip, int | float) else clip
    if not lower <= low < high <= last:
        obstacle = f"it does not lie within the bounds, {lower:g} to {last:g}"
        remedy = "Choose a clip within them, or declare wider bounds"
        raise UsageError(f"{title}, clip = {shown(clip)}", obstacle, remedy)
    missing = None if axis.stand_in is None else min(max(axis.stand_in, low), high)
    if axis.stride is None:
        return Interval(low, high, missing=missing, column=axis.column)
    return Interval(low, high + axis.stride, step=axis.step, missing=missing, column=axis.column)


def last_value(interval: Interval) -> float:
    """The largest value that occurs.

    The upper bound of an axis with a step does not occur: its last value is one step below.
    """
    _, upper = interval.numbers
    return upper if interval.stride is None else upper - interval.stride


def most_steps(title: str, name: str, interval: Interval, squared: bool) -> int:
    """How many steps of the finest lattice lie between the bounds of a value.

    Raises
    ------
    UsageError
        If the axis has only one value.
    """
    most = MOST_STEPS_SQUARED if squared else MOST_STEPS
    natural = interval.natural_cells
    if natural is None:
        return most
    if natural < 2:
        raise UsageError(title, f"{name!r} has only one value", "Declare wider bounds")
    return min(natural - 1, most)


def value_axis(name: str, interval: Interval, points: int) -> GridAxis:
    """Lay the axis on which a value is added up, as a number of steps from 0 to ``points``.

    Where these are the axis' own steps, a value counts as the step that it lies in. Otherwise it
    counts as the nearest of equally spaced points, the first and the last of which are the bounds.
    """
    if interval.natural_cells == points + 1:
        return grid_axis(name, interval, points + 1)
    lower, _ = interval.numbers
    return NearestAxis(
        name,
        lower,
        last_value(interval),
        points + 1,
        missing=interval.stand_in,
        column=interval.column,
    )


def values_on(axis: GridAxis) -> Values:
    """The values that are added up on an axis that ``value_axis`` laid."""
    if isinstance(axis, NearestAxis) or axis.step is None:
        return Values(axis.name, axis.lower, axis.upper, axis.cells - 1, True)
    return Values(axis.name, axis.lower, axis.upper - axis.step, axis.cells - 1, False)
