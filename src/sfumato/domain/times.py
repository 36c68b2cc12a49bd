"""Dates, times and fields of the calendar: read here, written here, and turned into numbers here.

A date is a number of days and a time a number of microseconds, both since 1970-01-01 in UTC. A time
without a zone is read as UTC. Three forms are read: an ISO text as Python reads it (bounds, edges,
names of steps), Python's own dates and times, and the bytes of one field of a text file, whose
grammar is stricter, so that every engine reads a file alike.

The fields of the calendar are months, weekdays, hours, weeks and years; each has a name. A field is
either *of the year* (or of the week, or of the day), such as "March" or "Monday", or *of a span*:
one period after another, such as the months from 2024-01 to 2024-12. Periods of a span are numbered
one after another: months since January of the year 0, years, and weeks by ISO 8601 since the week
of 1970-01-01, which begins on a Monday as all of them do.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import Literal, TypeAlias

import msgspec

from sfumato.errors import UsageError, nearest, shown

TimeUnit: TypeAlias = Literal["day", "microsecond"]
EPOCH = dt.datetime(1970, 1, 1)
MICROSECONDS_A_SECOND = 10**6
SECONDS_A_DAY = 86_400
MICROSECONDS_A_DAY = SECONDS_A_DAY * MICROSECONDS_A_SECOND

# --- Python's own dates and times -----------------------------------------------------------------


def plain_value(given: object) -> object:
    """Return what a scalar of numpy holds, as Python has it; anything else stays as it is."""
    return given.item() if hasattr(given, "item") else given


def iso_text(value: object) -> object:
    """Write a date or time in ISO form; anything else stays as it is.

    >>> iso_text(dt.date(2013, 1, 31)), iso_text(31)
    ('2013-01-31', 31)
    """
    return value.isoformat() if isinstance(value, dt.date) else value


def parse(text: str) -> dt.date:
    """Read an ISO text: ten characters are a date, any other number is a time.

    Raises
    ------
    ValueError
        If it is neither.
    """
    kind = dt.date if len(text) == 10 else dt.datetime
    return kind.fromisoformat(text)


def wall_clock(entry: object) -> dt.datetime | None:
    """Read a date, a time or an ISO text as it is written: its zone is passed over.

    None for anything else.
    """
    plain = plain_value(entry)
    if isinstance(plain, str):
        try:
            plain = dt.datetime.fromisoformat(plain.strip())
        except ValueError:
            return None
    if isinstance(plain, dt.datetime):
        return plain.replace(tzinfo=None)
    return dt.datetime.combine(plain, dt.time()) if isinstance(plain, dt.date) else None


def nanoseconds(value: object) -> int | None:
    """Turn a date or time into nanoseconds since 1970-01-01 in UTC; None for anything else.

    >>> nanoseconds(dt.date(1970, 1, 2))
    86400000000000
    """
    if not isinstance(value, dt.date) or value != value:  # noqa: PLR0124 - NaT is a time that is not itself
        return None
    when = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
    finer = int(getattr(when, "nanosecond", 0))  # pandas' own times have them
    plain = dt.datetime(
        when.year, when.month, when.day, when.hour, when.minute, when.second, when.microsecond
    )
    # A zone can shift a time out of the years 1 to 9999, which datetime cannot hold. So the offset
    # is taken off the difference, not off the time.
    since = plain - EPOCH - (when.utcoffset() or dt.timedelta())
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000 + finer


def microseconds(value: object) -> int | None:
    """Turn a date or time into microseconds since 1970-01-01 in UTC, dropping what is finer."""
    count = nanoseconds(value)
    return None if count is None else count // 1000


# --- fields of text files -------------------------------------------------------------------------

BLANKS = b" \t"
_FIELD = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    rb"(?:[ T]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    rb"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_SECONDS_IN_400_YEARS = 146_097 * SECONDS_A_DAY


def field_microseconds(field: bytes) -> int | None:
    """Read one field: microseconds since 1970-01-01 in UTC; None where it does not parse.

    The years 0 to 9999 are read, also where a zone moves the time out of them.

    >>> field_microseconds(b"1970-01-01T01:00:00.5+01:00")
    500000
    """
    parts = _FIELD.fullmatch(field.strip(BLANKS))
    if parts is None:
        return None
    numbers = [int(part or 0) for part in parts.groups()[:6]]
    year, month, day, hour, minute, second = numbers
    shift = _zone_seconds(parts[8] or b"Z")
    if shift is None:
        return None
    try:
        # No leap second is read: the count since 1970 has no place for one.
        since = dt.datetime(year or 400, month, day, hour, minute, second) - EPOCH
    except ValueError:
        return None
    seconds = since.days * SECONDS_A_DAY + since.seconds - shift
    if year == 0:
        # Python's calendar begins with the year 1, and any calendar repeats after 400 years.
        seconds -= _SECONDS_IN_400_YEARS
    fraction = (parts[7] or b"").ljust(6, b"0")[:6]
    return seconds * MICROSECONDS_A_SECOND + int(fraction)


def _zone_seconds(zone: bytes) -> int | None:
    """How far a zone is ahead of UTC; None where it is none."""
    if zone == b"Z":
        return 0
    digits = zone[1:].replace(b":", b"").ljust(4, b"0")
    hours = int(digits[:2])
    minutes = int(digits[2:])
    if hours > 23 or minutes > 59:
        return None
    ahead = hours * 3600 + minutes * 60
    return -ahead if zone[:1] == b"-" else ahead


# --- fields of the calendar ---------------------------------------------------------------------

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
# The labels of the fields that recur, in the order of the calendar.
LABELS: dict[Part, tuple[str, ...] | tuple[int, ...]] = {
    "month": MONTHS,
    "weekday": WEEKDAYS,
    "hour": tuple(range(24)),
    "week": tuple(range(1, 54)),
}

# How a period of a span is written, by an example.
FORMS = {"month": "2024-01", "week": "2024-W01", "year": "2024"}

_PATTERNS: dict[Part, re.Pattern[str]] = {
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "week": re.compile(r"([0-9]{4})-W([0-9]{2})"),
    "year": re.compile(r"([0-9]{4})"),
}
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
    parts = _PATTERNS[part].fullmatch(text)
    if parts is None:
        return None
    numbers = [int(group) for group in parts.groups()]
    if numbers[0] == 0:
        return None
    if part == "month":
        year, month = numbers
        return year * 12 + month - 1 if 1 <= month <= 12 else None
    if part == "week":
        try:
            monday = dt.date.fromisocalendar(numbers[0], numbers[1], 1)
        except ValueError:
            return None
        return (monday.toordinal() - _WEEK_0) // 7
    return numbers[0]


def period_text(part: Part, number: int) -> str:
    """Write the period of a number.

    >>> period_text("week", period_number("week", "2020-W53") + 1)
    '2021-W01'
    """
    if part == "month":
        return f"{number // 12:04}-{number % 12 + 1:02}"
    if part == "week":
        monday = dt.date.fromordinal(number * 7 + _WEEK_0)
        year, week, _ = monday.isocalendar()
        return f"{year:04}-W{week:02}"
    return f"{number:04}"


def period_of(part: Part, given: object) -> str | None:
    """Write a period that a user gave: a text, a whole number of a year, or a date in it.

    None for anything else.
    """
    plain = plain_value(given)
    if isinstance(plain, str) and re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", plain.strip()):
        with contextlib.suppress(ValueError):
            plain = dt.date.fromisoformat(plain.strip())
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
    text = plain.strip() if isinstance(plain, str) else ""
    return text if period_number(part, text) is not None else None


# --- time zones ---------------------------------------------------------------------------------

# What the folders of the zone database hold beside its zones: they differ from machine to machine,
# or count leap seconds.
_NO_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory")


def check_zone(stated: str, timezone: object) -> None:
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
        raise UsageError(
            stated,
            f"a time zone is a text, and this is of type {type(timezone).__name__}",
            remedy,
        )
    from zoneinfo import ZoneInfo, available_timezones

    # Names of folders and names that leave the database raise errors of several kinds.
    with contextlib.suppress(KeyError, ValueError, OSError):
        if timezone and not timezone.startswith(_NO_ZONES):
            ZoneInfo(timezone)
            return
    zones = available_timezones()
    # Many write the city alone, or in lower case.
    city = timezone.rpartition("/")[2].replace(" ", "_").casefold()
    same = sorted(zone for zone in zones if zone.rpartition("/")[2].casefold() == city)
    likely = f"did you mean {same[0]!r}?" if same else nearest(timezone, sorted(zones))
    raise UsageError(stated, f"there is no time zone {shown(timezone)}; {likely}", remedy)
