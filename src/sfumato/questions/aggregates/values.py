"""Which values are added up, how they are rounded, and the functions of them whose sums get noise.

``Values`` holds the public bounds, the clip, and the lattice that values are rounded to.

*One value for each person in a group* (``PersonScale``): the mean or the sum of the values of the
person's rows.

A person's value is rounded to a lattice of its own, by integers alone (see
``answers.counts``). It may lie between two steps of a row's value: the mean of 31 and 32
is not a whole number of years. So means are rounded to as fine a lattice as the noise allows. Sums
of rows that lie on steps lie on steps as well, and are exact.

*Partitions of unity* (``Basis``): non-negative integer functions of a value that add up to a
constant.

A value x lies on the integer lattice 0..R. Each function f_j is summed over the rows of a group,
and the sums F_j are published with noise. One row changes the sums of one group by
(f_1(x), .., f_k(x)). The L1 norm of this change is exactly the constant M, and its L2 norm is at
most M. So the noise on each sum is that of one count, in units of M, however many functions there
are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, SupportsFloat, TypeAlias

import msgspec
import numpy as np

from sfumato.answers import (
    MOST_SQUARED,
    MOST_SUMMED,
    NearestAxis,
    PersonLattice,
    PersonStatistic,
    Summed,
)
from sfumato.basics import Array
from sfumato.domain import LARGEST_BOUND, EdgesAxis, GridAxis, Interval
from sfumato.errors import UsageError, is_one_of, not_saved, shown

# --- bounds and steps -----------------------------------------------------------------------------

# Narrower public bounds: an upper bound, a lower and an upper one, one to be chosen, or none.
Clip: TypeAlias = float | tuple[float, float] | Literal["auto"] | None

# How many steps a value is rounded to at most. 10^9 values then add up to less than 2^62.
MOST_STEPS = MOST_SUMMED

# The same where squares are added up.
MOST_STEPS_SQUARED = MOST_SQUARED


class PersonsValues(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the value of a person is made of.

    Attributes
    ----------
    statistic : {"mean", "sum"}
        Of the values of the person's rows in a group.
    step : float or None
        That of a row's value, which counts as a whole number of steps.
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
    nearest : bool
        True where the values of rows are steps: one between two steps counts as the nearest. Unset
        in answers of version 0.2, where it counts as the lower step and the bound as the last one.
    """

    name: str
    lower: float
    upper: float
    points: int
    rounded: bool
    persons: PersonsValues | msgspec.UnsetType = msgspec.UNSET
    nearest: bool | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not (self.points >= 1 and -LARGEST_BOUND <= self.lower < self.upper <= LARGEST_BOUND):
            raise UsageError(
                f"the values of {self.name!r}",
                "they need at least one step between finite bounds",
                "Give them a wider Interval",
            )

    @property
    def width(self) -> float:
        """The distance between the bounds."""
        return self.upper - self.lower

    @property
    def cut(self) -> str:
        """A clause for reports: on an axis with a step, what values between two steps count as."""
        step = None if self.rounded else self.width / self.points
        if self.persons is not msgspec.UNSET:
            step = self.persons.step
        if step is None:
            return ""
        if self.nearest is msgspec.UNSET:
            return f", each value cut to its step of {step:g}"
        return f", each value rounded to the nearest step of {step:g}"

    @property
    def rounding(self) -> float:
        """The largest distance between a value and the lattice value that it counts as."""
        nearest = self.width / self.points / 2 if self.rounded else 0.0
        # The mean of a person is as far off as the values that it is the mean of.
        return nearest if self.persons is msgspec.UNSET else nearest + self.persons.rounding


def _as_float(bound: object) -> float:
    """Return a number as a float; NaN for what is none, and infinity for what no double holds."""
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
        raise UsageError(
            "a clip",
            "it is neither a number nor a pair of numbers",
            'Write clip=200, clip=(0, 200) or clip="auto"',
        )
    return (numbers[0], numbers[-1]) if is_pair else numbers[0]


def clipped(title: str, axis: Interval, clip: float | tuple[float, float]) -> Interval:
    """Narrow an axis to a clip.

    Raises
    ------
    UsageError
        If the clip does not lie within the bounds of the axis.
    """
    lower, upper = axis.numbers
    low, high = (lower, clip) if isinstance(clip, int | float) else clip
    if not lower <= low < high <= upper:
        obstacle = f"it does not lie within the bounds, {lower:g} to {upper:g}"
        raise UsageError(
            f"{title}, clip = {shown(clip)}",
            obstacle,
            "Choose a clip within them, or declare wider bounds",
        )
    missing = None if axis.stand_in is None else min(max(axis.stand_in, low), high)
    # Between two steps there is nothing to round a clipped value to but the clip itself.
    step = axis.step if axis.step and _are_steps(axis, low, high) else None
    return Interval(low, high, step=step, missing=missing, column=axis.column)


def _are_steps(axis: Interval, *bounds: float) -> bool:
    """Whether bounds lie a whole number of steps above the lower end of an axis."""
    lower = exactly(axis.numbers[0])
    step = Fraction(str(axis.step))
    return all(((exactly(bound) - lower) / step).denominator == 1 for bound in bounds)


def most_steps(interval: Interval, squared: bool) -> int:
    """Return how many steps of the finest lattice lie between the bounds of a value."""
    most = MOST_STEPS_SQUARED if squared else MOST_STEPS
    return min(interval.natural_cells or most, most)


def value_axis(name: str, interval: Interval, points: int) -> NearestAxis:
    """Lay the axis on which a value is added up, as a number of steps from 0 to ``points``.

    A value counts as the nearest of equally spaced points, the first and the last of which are the
    bounds. ``step`` says that these points are the axis' own steps.
    """
    lower, upper = interval.numbers
    return NearestAxis(
        name,
        lower,
        upper,
        points + 1,
        missing=interval.stand_in,
        step=interval.stride if interval.natural_cells == points else None,
        column=interval.column,
    )


def values_on(axis: GridAxis) -> Values:
    """Return the values that are added up on an axis that ``value_axis`` laid."""
    bounds = (axis.lower, axis.upper)
    if axis.step is None:
        return Values(axis.name, *bounds, axis.cells - 1, rounded=True)
    return Values(axis.name, *bounds, axis.cells - 1, rounded=False, nearest=True)


# --- one value for each person --------------------------------------------------------------------


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
        return self.rows.step is not None

    @property
    def row_start(self) -> Fraction:
        """The least value of a row."""
        return exactly(self.rows.lower)

    @property
    def row_step(self) -> Fraction:
        """The distance between the values of rows."""
        return (exactly(self.rows.upper) - self.row_start) / (self.rows.cells - 1)

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
        """Return into how many steps, at most so many, the range of a person's value is divided."""
        natural = self.natural_steps
        if natural is None or natural > most:
            return most
        # Sums lie on these steps. Means lie between them, so each is divided further.
        return natural if self.statistic == "sum" else most // natural * natural

    def summed(self, points: int, squares: bool, knots: Array | None) -> Summed:
        """Return what a scan adds up.

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
        """Return how the values are added up, for releases to say."""
        is_exact = self.statistic == "sum" and points == self.natural_steps
        persons = PersonsValues(
            self.statistic,
            float(self.row_step) if self.has_step else None,
            0.0 if self.has_step else float(self.row_step / 2),
        )
        bounds = (float(self.lower), float(self.upper))
        nearest = True if self.has_step else msgspec.UNSET
        return Values(self.rows.name, *bounds, points, not is_exact, persons, nearest)


def rows_axis(name: str, interval: Interval) -> NearestAxis:
    """Lay the axis on which the values of rows are located, as finely as they can be added up."""
    return value_axis(name, interval, most_steps(interval, squared=False))


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
    scale = PersonScale(rows, statistic, exactly(rows.lower), exactly(rows.upper))
    if clip is not None:
        low, high = (rows.lower, clip) if isinstance(clip, int | float) else clip
        scale = replace(scale, lower=exactly(low), upper=exactly(high))
    if statistic == "sum":
        _require_exact_sums(title, scale, clip)
    return scale


def _require_exact_sums(
    title: str, scale: PersonScale, clip: float | tuple[float, float] | None
) -> None:
    """Refuse sums of a person that have no bounds, or do not lie on steps."""
    name = scale.rows.name
    request = f"{title}, clip = {shown(clip)}"
    example = "such as clip=(0, 500)"
    if clip is None:
        raise UsageError(
            title,
            f"the bounds of {name!r} are those of a row, and a person's sum needs its own",
            f"Give them as a clip, {example}",
        )
    if not isinstance(clip, tuple) and scale.rows.lower < 0:
        raise UsageError(
            request,
            f"values of {name!r} may be negative, so a sum has no lower bound",
            f"Give a lower and an upper bound, {example}",
        )
    if not scale.lower < scale.upper:
        raise UsageError(
            request,
            "the lower bound of a person's sum must be below the upper one",
            f"Give both, {example}",
        )
    if not scale.has_step:
        raise UsageError(
            title,
            f"{name!r} has no step, so the sum of a person cannot be exact",
            "Declare its step, such as Interval(0, 500, step=0.01)",
        )
    unit = common_unit(scale.row_start, scale.row_step)
    if any((bound / unit).denominator != 1 for bound in (scale.lower, scale.upper)):
        raise UsageError(
            request,
            f"a person's sum is a multiple of {float(unit):g}, and the clip is not",
            "Choose multiples of it",
        )


def exactly(bound: float) -> Fraction:
    """Return a bound as the decimal number that was declared."""
    return Fraction(str(bound))


def common_unit(*lengths: Fraction) -> Fraction:
    """Return the largest length of which all others are multiples.

    >>> common_unit(Fraction(1, 2), Fraction(3, 4), Fraction(0))
    Fraction(1, 4)
    """
    below = math.lcm(*(length.denominator for length in lengths))
    return Fraction(math.gcd(*(int(length * below) for length in lengths)), below)


# --- partitions of unity --------------------------------------------------------------------------

BasisName: TypeAlias = Literal["pair", "quadratic", "hats"]

OVERSHOOT = 8  # the last knot of hats exceeds R by at most an eighth


class Basis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A partition of unity on 0..R.

    Parameters
    ----------
    name : {"pair", "quadratic", "hats"}
        "pair": R - x and x, with M = R. They give counts, sums and means.
        "quadratic": (R - x)^2, 2x(R - x) and x^2, with M = R^2. They also give variances.
        "hats": linear B-splines on the knots 0, g, 2g, 4g, .., with M the largest gap between two
        knots. They give the count, sum and mean of the values clipped to any knot.
    points : int
        R, at least 1.
    multiple : int
        A factor of all functions. If R is small, it makes the noise finer than a row. Intervals are
        then not widened by the rounding of noise to integers.

    >>> Basis("quadratic", 2).functions(np.arange(3)).tolist()
    [[4, 0, 0], [1, 2, 1], [0, 0, 4]]
    """

    name: BasisName
    points: int
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.points < 1 or self.multiple < 1:
            raise not_saved(
                f"a partition of unity on {self.points} points", "it adds up to nothing"
            )

    @property
    def unity(self) -> int:
        """The constant M that the functions add up to at every value."""
        match self.name:
            case "pair":
                return self.multiple * self.points
            case "quadratic":
                return self.multiple * self.points**2
            case "hats":
                return self.multiple * int(np.diff(self.knots).max())

    @property
    def knots(self) -> Array:
        """Lattice values 0, g, 2g, 4g, .. of the hats: int64 ndarray of shape (k,).

        The last is at least R. There are as many doublings as leave it within R and an eighth.
        """
        return _geometric_knots(self.points)

    @property
    def weights(self) -> Array:
        """Weights w with x / R = sum_j w_j f_j(x) / M: float64 ndarray of shape (k,)."""
        match self.name:
            case "pair":
                return np.array([0.0, 1.0])
            case "quadratic":
                return np.array([0.0, 0.5, 1.0])
            case "hats":
                return self.knots / self.points

    @property
    def size(self) -> int:
        """The number k of functions."""
        return len(self.weights)

    @property
    def squares(self) -> Array:
        """Weights u with (x / R)^2 = sum_j u_j f_j(x) / M: float64 ndarray of shape (k,).

        Raises
        ------
        ValueError
            If the basis has no second moments.
        """
        if self.name != "quadratic":
            raise ValueError(f"the {self.name} has no second moments")
        return np.array([0.0, 0.0, 1.0])

    def functions(self, values: Array) -> Array:
        """Evaluate the functions at lattice values: int64 ndarray of shape (len(values), k)."""
        x = np.asarray(values, dtype=np.int64)
        rest = self.points - x
        match self.name:
            case "pair":
                return self.multiple * np.stack([rest, x], axis=1)
            case "quadratic":
                return self.multiple * np.stack([rest * rest, 2 * x * rest, x * x], axis=1)
            case "hats":
                # The two hats on both sides of each value, and 0 for all others.
                knots = self.knots
                lower = np.minimum(np.searchsorted(knots, x, side="right") - 1, len(knots) - 2)
                # All gaps divide the largest one, so that each amount is a whole number.
                slope = self.unity // (knots[lower + 1] - knots[lower])
                hats = np.zeros((len(x), self.size), np.int64)
                rows = np.arange(len(x))
                hats[rows, lower] = (knots[lower + 1] - x) * slope
                hats[rows, lower + 1] = (x - knots[lower]) * slope
                return hats


@lru_cache(maxsize=64)
def _geometric_knots(points: int) -> Array:
    """Return the knots of hats on 0..``points``; see ``Basis.knots``."""
    # With 19 doublings of the first knot, clips go down to 2^-19 of the range.
    for doublings in range(19, -1, -1):
        first = -(-points >> doublings)  # rounded up
        if OVERSHOOT * (first << doublings) <= (OVERSHOOT + 1) * points:
            break
    knots = np.concatenate([[0], first * 2 ** np.arange(doublings + 1, dtype=np.int64)])
    knots.flags.writeable = False  # it is shared
    return knots


FINE = 2**16  # the least M, if the noise allows it


def basis_within(name: BasisName, points: int, unity: int) -> Basis | None:
    """Choose the basis with the largest R up to ``points`` whose M is at most ``unity``.

    It is None if even R = 1 has a larger M.

    >>> basis_within("quadratic", 120, 2**40), basis_within("pair", 2**16, 100)
    (Basis(name='quadratic', points=120, multiple=5), Basis(name='pair', points=100, multiple=1))
    """
    # The M of hats is at most R.
    points = min(points, math.isqrt(unity) if name == "quadratic" else unity)
    if points < 1:
        return None
    plain = Basis(name, points)
    multiple_for_fine_noise = -(-FINE // plain.unity)  # rounded up
    multiple = min(multiple_for_fine_noise, unity // plain.unity)
    return Basis(name, points, max(multiple, 1))
