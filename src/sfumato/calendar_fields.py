"""Fields of the calendar: months, weekdays, hours, weeks and years, and the names of each.

A field is either *of the year* (or of the week, or of the day), such as "March" or "Monday", or
*of a span*: one period after another, such as the months from 2024-01 to 2024-12. Periods of a span
are numbered one after another: months since January of the year 0, years, and weeks by ISO 8601
since the week of 1970-01-01, which begins on a Monday as all of them do.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal, TypeAlias

import msgspec

from sfumato.errors import UsageError, nearest, shown

Part: TypeAlias = Literal["month", "weekday", "hour", "week", "year"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LABELS: dict[Part, tuple[str, ...] | tuple[int, ...]] = {
    "month": MONTHS,
    "weekday": WEEKDAYS,
    "hour": tuple(range(24)),
    "week": tuple(range(1, 54)),
}
"""The labels of the fields that recur, in the order of the calendar."""

FORMS = {"month": "2024-01", "week": "2024-W01", "year": "2024"}
"""How a period of a span is written, by an example."""

_PATTERNS: dict[Part, re.Pattern[str]] = {
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "year": re.compile(r"([0-9]{4})"),
}
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# 1970-01-01 was a Thursday: the fourth day of week 0.
DAYS_BEFORE_EPOCH = 3
_WEEK_0 = dt.date(1970, 1, 1).toordinal() - DAYS_BEFORE_EPOCH


class CalendarField(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which field of the calendar an axis of labels shows.

    Attributes
    ----------
    part : {"month", "weekday", "hour", "week", "year"}
    timezone : str or None
        The zone in which instants are read; None: UTC.
    first : str or None
        The first period of a span, such as "2024-01"; None: the field recurs.
    """

    part: Part
    timezone: str | None = None
    first: str | None = None

    @property
    def words(self) -> str:
        """The field in words, such as "the weekday in Europe/Berlin"."""
        zone = "" if self.timezone is None else f" in {self.timezone}"
        return f"the {self.part}{zone}"


# --- periods ------------------------------------------------------------------------------------


def period_number(part: Part, text: str) -> int | None:
    """Number a period of a span; None if the text names none.

    >>> period_number("month", "1970-02") - period_number("month", "1969-12")
    2
    >>> period_number("week", "2021-W01") - period_number("week", "2020-W53")
    1
    """
    found = _PATTERNS[part].fullmatch(text)
    if found is None:
        return None
    numbers = [int(group) for group in found.groups()]
    if numbers[0] == 0:
        return None
    if part == "month":
        year, month = numbers
        return year * 12 + month - 1 if 1 <= month <= 12 else None
    if part == "week":
        return _week_number(*numbers)
    return numbers[0]


def _week_number(year: int, week: int) -> int | None:
    try:
        monday = dt.date.fromisocalendar(year, week, 1)
    except ValueError:
        return None
    return (monday.toordinal() - _WEEK_0) // 7


def period_text(part: Part, number: int) -> str:
    """Write the period of a number.

    >>> period_text("week", period_number("week", "2020-W53") + 1)
    '2021-W01'
    """
    if part == "month":
        return f"{number // 12:04}-{number % 12 + 1:02}"
    if part == "week":
        year, week, _ = dt.date.fromordinal(number * 7 + _WEEK_0).isocalendar()
        return f"{year:04}-W{week:02}"
    return f"{number:04}"


def period_of(part: Part, given: object) -> str | None:
    """Write a period that a user gave: a text, a whole number of a year, or a date in it.

    None for anything else.
    """
    plain: object = given.item() if hasattr(given, "item") else given
    if isinstance(plain, dt.date):
        year, week, _ = plain.isocalendar()
        texts = {
            "month": f"{plain.year:04}-{plain.month:02}",
            "week": f"{year:04}-W{week:02}",
            "year": f"{plain.year:04}",
        }
        return texts[part]
    if part == "year" and isinstance(plain, int) and not isinstance(plain, bool):
        plain = f"{plain:04}" if 0 < plain < 10_000 else ""
    if not isinstance(plain, str):
        return None
    text = plain.strip()
    if _DATE.fullmatch(text):
        try:
            return period_of(part, dt.date.fromisoformat(text))
        except ValueError:
            return None
    return text if period_number(part, text) is not None else None


# --- time zones ---------------------------------------------------------------------------------

# What the folders of the zone database hold beside its zones: they differ from machine to machine,
# or count leap seconds.
_NO_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory")


def check_zone(asked: str, timezone: object) -> None:
    """Refuse what is not a time zone of the IANA database.

    Raises
    ------
    UsageError
        If there is no such zone; the message names the nearest.
    """
    if timezone is None:
        return
    remedy = 'Write timezone="Europe/Berlin", or leave it out for UTC'
    if not isinstance(timezone, str):
        obstacle = f"a time zone is a text, and this is of type {type(timezone).__name__}"
        raise UsageError(asked, obstacle, remedy)
    if not _is_zone(timezone):
        from zoneinfo import available_timezones

        zones = available_timezones()
        # Many write the city alone, or in lower case.
        city = timezone.rpartition("/")[2].replace(" ", "_").casefold()
        same = sorted(zone for zone in zones if zone.rpartition("/")[2].casefold() == city)
        likely = f"did you mean {same[0]!r}?" if same else nearest(timezone, sorted(zones))
        obstacle = f"there is no time zone {shown(timezone)}; {likely}"
        raise UsageError(asked, obstacle, remedy)


def _is_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo

    if not name or name.startswith(_NO_ZONES):
        return False
    try:
        ZoneInfo(name)
    # Names of folders and names that leave the database raise errors of several kinds.
    except (KeyError, ValueError, OSError):
        return False
    return True
