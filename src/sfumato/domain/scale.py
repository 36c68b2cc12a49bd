"""What the numbers of an Interval axis stand for: numbers, dates or times.

Each kind reads what people write (a bound, an edge, a step), turns it into the numbers that cells
are computed from, and prints those numbers again.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from sfumato.basics import float_of_text
from sfumato.domain import times
from sfumato.domain.times import TimeUnit
from sfumato.errors import BoundsRequired, UsageError, shown

if TYPE_CHECKING:
    from sfumato.basics import Array

AxisKind: TypeAlias = Literal["number", "date", "time", "label", "key"]
ValueKind: TypeAlias = Literal["number", "boolean", "text", "time"]


class Scale:
    """Numbers that stand for themselves; dates and times are subclasses.

    Attributes
    ----------
    kind : str
    unit : {"day", "microsecond"} or None
        What the numbers count, as files name it.
    numbers_a_step : int
        How many of the numbers a step or a width of 1 is.
    length_of_step : timedelta
        How long a step or a width of 1 is.
    numbers_a_day : float
        How many of the numbers a day is; 1 where they do not count time.
    value_kinds : frozenset of str
        What kinds of values a column of such an axis holds.
    declared : str
        What the domain declares, for messages.
    ends : tuple of str
        Between which words the edge of the first bin and that of the last one stand.
    outer : tuple of str
        Which words follow the largest value of the first cell and the least one of the last.
    """

    kind: ClassVar[AxisKind] = "number"
    unit: ClassVar[TimeUnit | None] = None
    numbers_a_step: ClassVar[int] = 1
    length_of_step: ClassVar[dt.timedelta] = dt.timedelta(seconds=1)
    numbers_a_day: ClassVar[float] = 1.0
    value_kinds: ClassVar[frozenset[ValueKind]] = frozenset({"number", "boolean"})
    declared: ClassVar[str] = "numbers"
    ends: ClassVar[tuple[str, str]] = ("below", "and above")
    outer: ClassVar[tuple[str, str]] = ("and below", "and above")

    def coordinate(self, value: object, name: str) -> float:
        """Read one coordinate: a number, or a date or time where the axis counts them.

        Raises
        ------
        UsageError
            If the value is none; the message calls it by ``name``.
        """
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(plain_number(value))
        moment = self._moment(value)
        if moment is None:
            raise UsageError(
                f"{name} = {type(value).__name__}",
                "it is not a coordinate of that axis",
                "Give numbers, or dates where the axis is one of dates",
            )
        return moment

    def _moment(self, value: object) -> float | None:
        """A date or time, as numbers of this scale count it; None where they count no time."""
        return None

    def step(self, step: object) -> object:
        """Write a step as files hold it: for a length of time the number of seconds or days."""
        plain = times.plain_value(step)
        if isinstance(plain, dt.timedelta):
            return plain_number(plain / self.length_of_step)
        if isinstance(plain, int | float | Decimal) and not isinstance(plain, bool):
            return plain_number(plain)
        return step

    def array(self, numbers: Array) -> Array:
        """Numbers as a frame shows them well: float64, or datetime64 for dates and times."""
        return numbers

    def text(self, numbers: Array) -> list[str]:
        """Print numbers shortly."""
        return [f"{number:g}" for number in numbers]

    def whole_text(self, numbers: Array) -> list[str]:
        """Print whole numbers with all their digits; days as dates."""
        return [f"{number:.0f}" for number in numbers]

    def picture_text(self, numbers: Array) -> list[str]:
        """Print numbers as pictures show them: with a true minus, and times to the minute."""
        return [text.replace("-", "−") for text in self.text(numbers)]

    def positions(self, numbers: Array) -> Array:
        """Where numbers lie on a picture's axis: as they are; dates and times count days there."""
        return numbers

    def bin_names(self, edges: Sequence[str]) -> list[str]:
        """Name the bins between edges that ``text`` printed.

        The two at the ends are open, because they also hold the values that lie beyond.

        >>> NUMBERS.bin_names(["0", "18", "65", "100"])
        ['below 18', '18 to 65', '65 and above']
        """
        if len(edges) < 3:
            return ["all values"]
        first, last = self.ends
        between = [f"{a} to {b}" for a, b in pairwise(edges[1:-1])]
        return [f"{first} {edges[1]}", *between, f"{edges[-2]} {last}"]

    def value_names(self, lowest: Sequence[str], highest: Sequence[str]) -> list[str]:
        """Name cells by the least and the largest value in each, as printed.

        The two at the ends are open, because they also hold the values that lie beyond.

        >>> NUMBERS.value_names(["0", "18", "65"], ["17", "64", "99"])
        ['17 and below', '18 to 64', '65 and above']
        """
        if len(lowest) < 2:
            return ["all values"]
        pairs = list(zip(lowest, highest, strict=True))[1:-1]
        between = [low if low == high else f"{low} to {high}" for low, high in pairs]
        first, last = self.outer
        return [f"{highest[0]} {first}", *between, f"{lowest[-1]} {last}"]


class Dates(Scale):
    """Days since 1970-01-01."""

    kind: ClassVar[AxisKind] = "date"
    unit: ClassVar[TimeUnit | None] = "day"
    value_kinds = frozenset[ValueKind]({"time"})
    declared = "dates or times"
    ends = ("before", "and later")
    outer = ("and earlier", "and later")
    length_of_step = dt.timedelta(days=1)
    datetimes: ClassVar[str] = "datetime64[D]"
    picture_datetimes: ClassVar[str] = "datetime64[D]"

    def _moment(self, value: object) -> float | None:
        # A date is also read on an axis of times, and the other way round, as it always was.
        try:
            number = number_of(plain_bound(value))
        except UsageError:
            return None
        return None if math.isnan(number) else number

    def array(self, numbers: Array) -> Array:
        import numpy as np

        return np.asarray(numbers).astype("int64").astype(self.datetimes)

    def text(self, numbers: Array) -> list[str]:
        return [str(moment) for moment in self.array(numbers)]

    def whole_text(self, numbers: Array) -> list[str]:
        return self.text(numbers)

    def picture_text(self, numbers: Array) -> list[str]:
        return [str(moment) for moment in self.array(numbers).astype(self.picture_datetimes)]


class Times(Dates):
    """Microseconds since 1970-01-01 in UTC."""

    kind = "time"
    unit = "microsecond"
    numbers_a_step = times.MICROSECONDS_A_SECOND
    length_of_step = dt.timedelta(seconds=1)
    numbers_a_day = float(times.MICROSECONDS_A_DAY)
    datetimes = "datetime64[us]"
    picture_datetimes = "datetime64[m]"

    def positions(self, numbers: Array) -> Array:
        return numbers / self.numbers_a_day


NUMBERS = Scale()
DATES = Dates()
TIMES = Times()
_BY_UNIT: dict[TimeUnit | None, Scale] = {scale.unit: scale for scale in (NUMBERS, DATES, TIMES)}


def scale_of(unit: TimeUnit | None) -> Scale:
    """The scale of an axis whose numbers count this unit; None: they stand for themselves."""
    return _BY_UNIT[unit]


# --- bounds as files hold them --------------------------------------------------------------------


def plain_bound(bound: object) -> int | float | str:
    """Bring a bound into the form that a file can hold: a number or ISO text.

    Raises
    ------
    BoundsRequired
        If it is neither a number nor a date or time of the years 1 to 9999.
    """
    if isinstance(bound, dt.date):
        return _plain_moment(bound)
    if isinstance(bound, str):
        try:
            return _plain_moment(times.parse(bound))
        except ValueError:
            pass
    elif isinstance(bound, int | float | Decimal) and not isinstance(bound, bool):
        return plain_number(bound)
    elif hasattr(bound, "item") and getattr(bound, "ndim", 0) == 0:
        # A number or time of numpy; one that is its own item would come here for ever.
        item = bound.item()
        if not isinstance(item, type(bound)):
            return plain_bound(item)
    raise _no_bound(bound)


def _no_bound(bound: object) -> BoundsRequired:
    """The error of a value that is no bound; it says what the text looks like."""
    stated = f"bound of type {type(bound).__name__}"
    if isinstance(bound, str):
        stated = f"bound {shown(bound)}"
        if float_of_text(bound) is not None:
            return BoundsRequired(stated, "it is a number in quotes", "Write it without quotes")
        if re.fullmatch(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}.*", bound, re.S):
            return BoundsRequired(
                stated,
                "it is a date in another form than year-month-day, or no day of the calendar",
                'Write dates as in "2014-01-31"',
            )
    return BoundsRequired(
        stated,
        "a bound is a number, a date or a time",
        'Write a number such as 100, or a date such as "2014-01-31"',
    )


def _plain_moment(moment: dt.date) -> str:
    """Write a date, or a time in UTC without its zone, in ISO form."""
    if not isinstance(moment, dt.datetime):
        return moment.isoformat()
    try:
        aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return aware.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    except (OverflowError, ValueError):  # beyond the calendar, or not a time at all
        raise BoundsRequired(
            "a time as bound",
            "it lies outside the calendar",
            "Choose a time between the years 1 and 9999",
        ) from None


def plain_number(number: float | Decimal) -> int | float:
    """One form for one number: 0.0 is 0, and what no double holds is infinite, which is refused."""
    try:
        near = float(number)
    except (OverflowError, ValueError):
        near = math.inf
    # From 2^53 on the double may be another whole number than the one that was given.
    if math.isfinite(near) and near.is_integer() and abs(near) < 2**53:
        return int(near)
    return near


def unit_of(bound: float | str) -> TimeUnit | None:
    """What a bound counts that ``plain_bound`` wrote."""
    if not isinstance(bound, str):
        return None
    return "day" if len(bound) == 10 else "microsecond"


def number_of(bound: float | str) -> float:
    """Turn a bound that ``plain_bound`` wrote into the number that stands for it.

    Of a date or time, these are the days or microseconds since 1970-01-01.
    """
    if not isinstance(bound, str):
        return float(bound)
    moment = times.parse(bound)
    if isinstance(moment, dt.datetime):
        return float((moment - times.EPOCH) // dt.timedelta(microseconds=1))
    return float((moment - times.EPOCH.date()).days)
