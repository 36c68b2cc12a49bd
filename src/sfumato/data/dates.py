"""Read dates and times that are written as a stated format says, and instants on local clocks.

*A format*, such as that of 14.03.2024, is written with the usual directives: ``%d.%m.%Y`` or
``%m/%d/%Y %I:%M %p``. They are read here, and not by Python's ``strptime``, because that reads
names of months in the language of the machine: the same file would count differently elsewhere.

*A whole column* of dates: each field is rewritten as ``DateFormat.iso`` writes it
(``tests/data/test_date_columns.py``), and then read as ISO 8601.

*Local clocks*, with daylight saving. The offsets from UTC are those of Python's ``zoneinfo``, which
knows the rules of every year. Arrow has such functions too, but looks for its zone database in
other places on each platform, and with some forms of the database it passes over the rules of years
to come. An offset is looked up twice for each day in UTC: at its beginning and its end. Where they
agree, it holds all day (``tests/data/test_local_times.py`` tries this for all zones); on the other
days, a few in a year, it is looked up for each second.

*Moments* are times of which each by itself has a zone or not, as in text and in Python objects. The
type of a column of times says whether all of them are instants. A field of text says it of itself
alone, so both are handed on.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from functools import cache, lru_cache

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.basics import Array, pc
from sfumato.domain import (
    BLANKS,
    MICROSECONDS_A_DAY,
    MICROSECONDS_A_SECOND,
    SECONDS_A_DAY,
    microseconds,
)
from sfumato.errors import UsageError

# --- formats --------------------------------------------------------------------------------------

_FULL_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS = tuple(month[:3] for month in _FULL_MONTHS)

# What each directive reads, and how it is written; letters in any case.
_PARTS: dict[str, tuple[str, str]] = {
    "Y": ("year", "[0-9]{4}"),
    "y": ("year", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}"),
    "b": ("month", "|".join(MONTHS)),
    "B": ("month", "|".join(_FULL_MONTHS)),
    "d": ("day", "[0-9]{1,2}"),
    "H": ("hour", "[0-9]{1,2}"),
    "I": ("hour", "[0-9]{1,2}"),
    "M": ("minute", "[0-9]{1,2}"),
    "S": ("second", "[0-9]{1,2}"),
    "f": ("fraction", "[0-9]{1,9}"),
    "p": ("half", "am|pm"),
    "z": ("zone", "z|[+-][0-9]{2}(?::?[0-9]{2})?"),
}

# What a part needs beside it.
_NEEDS = (
    ("month", "year", "a year: %Y for 2024, %y for 24"),
    ("day", "month", "a month: %m for 3, %b for Mar, %B for March"),
    ("hour", "day", "a day: %d"),
    ("minute", "hour", "an hour: %H, or %I with %p"),
    ("second", "minute", "a minute: %M"),
    ("fraction", "second", "a second: %S"),
)

# The hours of half a day, in their order.
_TWELVE = ("12", *(f"{hour:02d}" for hour in range(1, 12)))

# Of two digits, 69 to 99 are 1969 to 1999, as POSIX has it.
PIVOT = 69


class DateFormat(msgspec.Struct, frozen=True):
    """A format of dates or times, ready to read fields.

    Attributes
    ----------
    text : str
        The format as it was stated.
    """

    text: str
    _directives: tuple[str, ...]
    _pattern: re.Pattern[bytes]

    def iso(self, field: bytes) -> str | None:
        """Write one field as ISO 8601; None where it has another form.

        >>> date_format("%d.%m.%Y").iso(b"22.11.2026")
        '2026-11-22'
        >>> date_format("%d.%m.%Y").iso(b"2026-11-22") is None
        True
        """
        written = self._pattern.fullmatch(field.strip(BLANKS))
        if written is None:
            return None
        parts = {name: text.decode().lower() for name, text in written.groupdict().items()}
        year = int(parts["year"])
        if self.has_short_years:
            year += 1900 if year >= PIVOT else 2000
        month = 1
        if "m" in self._directives:
            month = int(parts["month"])
        elif "month" in parts:
            month = MONTHS.index(parts["month"][:3]) + 1
        date = f"{year:04d}-{month:02d}-{int(parts.get('day', 1)):02d}"
        if "hour" not in parts:
            return date
        hour = int(parts["hour"])
        if "I" in self._directives:
            if not 1 <= hour <= 12:
                return None
            # Twelve comes before one on the clock: 12 AM is hour 0, and 12 PM is hour 12.
            hour = hour % 12 + 12 * (parts["half"] == "pm")
        second = f"{int(parts.get('second', 0)):02d}.{parts.get('fraction', '0')}"
        zone = parts.get("zone", "z").upper()
        return f"{date}T{hour:02d}:{int(parts.get('minute', 0)):02d}:{second}{zone}"

    @property
    def has_zone(self) -> bool:
        """Whether every field has a zone; otherwise none has."""
        return "z" in self._directives

    @property
    def has_times(self) -> bool:
        """Whether fields have a time beside the date."""
        return not {"H", "I"}.isdisjoint(self._directives)

    @property
    def has_short_years(self) -> bool:
        """Whether years have two digits."""
        return "y" in self._directives


@cache
def date_format(text: str) -> DateFormat:
    """Read a format.

    Raises
    ------
    UsageError
        If a directive is unknown or there twice, or the format has no year, or leaves a gap, such
        as a day without a month.
    """
    directives = tuple(re.findall("%(.?)", text.replace("%%", ""), re.DOTALL))
    if obstacle := _obstacle(directives):
        raise UsageError(
            f"the date format {text!r}",
            obstacle,
            "Write %d for the day, %m for the month, %Y for the year, and for times %H, %M and "
            '%S: 14.03.2024 is "%d.%m.%Y", and 3/14/2024 5:30 PM is "%m/%d/%Y %I:%M %p"',
        )
    # Each directive becomes a group, and all else stands as it is.
    pattern = "".join(
        "(?P<{}>{})".format(*_PARTS[piece[1:]])
        if piece.startswith("%") and piece != "%%"
        else re.escape("%" if piece == "%%" else piece)
        for piece in re.split("(%.)", text, flags=re.DOTALL)
    )
    return DateFormat(text, directives, re.compile(pattern.encode(), re.IGNORECASE))


def _obstacle(directives: Sequence[str]) -> str | None:
    """Say what is wrong with the directives of a format; None if nothing is."""
    for letter in directives:
        if letter not in _PARTS:
            return f"%{letter} is not read here"
    parts = [_PARTS[letter][0] for letter in directives]
    for part in parts:
        if parts.count(part) > 1:
            return f"it names the {part} twice"
    if "year" not in parts:
        return "it has no year"
    for part, needed, how in _NEEDS:
        if part in parts and needed not in parts:
            return f"it has the {part} and lacks {how}"
    if ("I" in directives) != ("half" in parts):
        return "hours to twelve are %I, and need %p for AM or PM"
    return None


# --- whole columns --------------------------------------------------------------------------------


def iso_fields(texts: pa.Array, format_: DateFormat) -> pa.Array:
    """Write the fields of a column as ISO 8601, as ``DateFormat.iso`` writes each of them.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
    format_ : DateFormat

    Returns
    -------
    pyarrow.BinaryArray of shape (rows,)
        Null where a field is missing or has another form. A day or a time may be none.
    """
    # Arrow's patterns are about ASCII here, and a zone is no number: these are read one by one.
    if format_.has_zone or not format_.text.isascii():
        distinct = texts.dictionary_encode()
        written = [format_.iso(field) for field in distinct.dictionary.to_pylist()]
        return pa.array(written, pa.string()).cast(pa.binary()).take(distinct.indices)
    pattern = format_._pattern.pattern.decode()
    parts = pc.extract_regex(texts, rf"(?i)^[ \t]*{pattern}[ \t]*$")
    names = [part.name for part in parts.type]
    return _joined_parts(dict(zip(names, parts.flatten(), strict=True)), format_)


def _joined_parts(parts: dict[str, pa.Array], format_: DateFormat) -> pa.Array:
    """Write the parts of all fields as ISO 8601."""
    texts = {name: pc.utf8_lower(part.cast(pa.string())) for name, part in parts.items()}
    two_digits = {name: pc.utf8_lpad(text, 2, "0") for name, text in texts.items()}
    year = two_digits["year"]
    if format_.has_short_years:
        year = _texts_joined("", pc.if_else(pc.greater_equal(year, str(PIVOT)), "19", "20"), year)
    month = two_digits.get("month", "01")
    if "month" in texts:
        number = pc.add(pc.index_in(pc.utf8_slice_codeunits(month, 0, 3), pa.array(MONTHS)), 1)
        month = pc.coalesce(pc.utf8_lpad(number.cast(pa.string()), 2, "0"), month)
    date = _texts_joined("-", year, month, two_digits.get("day", "01"))
    if "hour" not in texts:
        return date.cast(pa.binary())
    hour = two_digits["hour"]
    if "half" in texts:
        number = pc.add(
            pc.index_in(hour, pa.array(_TWELVE)), pc.if_else(pc.equal(texts["half"], "pm"), 12, 0)
        )
        hour = pc.utf8_lpad(number.cast(pa.string()), 2, "0")
    clock = _texts_joined(":", hour, two_digits.get("minute", "00"), two_digits.get("second", "00"))
    if "fraction" in texts:
        clock = _texts_joined(".", clock, texts["fraction"])
    return _texts_joined("T", date, clock).cast(pa.binary())


def _texts_joined(separator: str, *texts: pa.Array | str) -> pa.Array:
    """Join texts row by row; null where one of them is."""
    return pc.binary_join_element_wise(*texts, separator)


# --- local clocks ---------------------------------------------------------------------------------

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()

# Offsets are looked up within these days, so that no time leaves the years that Python knows.
FIRST_DAY = 2 - _EPOCH_ORDINAL
LAST_DAY = dt.date.max.toordinal() - 2 - _EPOCH_ORDINAL


def local(instants: Array, timezone: str | None) -> Array:
    """Return what local clocks show, as microseconds since 1970-01-01 there: int64 ndarray.

    Parameters
    ----------
    instants : int64 ndarray of shape (n,)
        Microseconds since 1970-01-01 in UTC, of the years 1 to 9999.
    timezone : str or None
        None: UTC.

    >>> summer = np.array([1_711_846_799_000_000, 1_711_846_800_000_000])
    >>> ((local(summer, "Europe/Berlin") - summer) // 3_600_000_000).tolist()
    [1, 2]
    """
    if timezone is None or not len(instants):
        return instants
    days = instants // MICROSECONDS_A_DAY
    first = int(days.min())
    days -= first
    # Offsets are looked up for the days that occur. All days of the calendar are less than 2^22.
    occurs = np.bincount(days) > 0
    starts = np.zeros(len(occurs), np.int64)
    ends = np.zeros(len(occurs), np.int64)
    for day in np.flatnonzero(occurs).tolist():
        starts[day] = _offset_of_day(timezone, first + day)
        ends[day] = _offset_of_day(timezone, first + day + 1)
    offsets = starts[days]
    on_change = (starts != ends)[days]
    if on_change.any():
        seconds, again = np.unique(
            instants[on_change] // MICROSECONDS_A_SECOND, return_inverse=True
        )
        changed = [offset_at(timezone, second) for second in seconds.tolist()]
        offsets[on_change] = np.array(changed, np.int64)[again]
    return np.asarray(instants + offsets)


@lru_cache(maxsize=2**18)
def _offset_of_day(timezone: str, day: int) -> int:
    """Return the offset at the beginning of a day in UTC."""
    return offset_at(timezone, day * SECONDS_A_DAY)


def offset_at(timezone: str, second: int) -> int:
    """Tell how many microseconds local clocks are ahead of UTC at a second since 1970-01-01."""
    from zoneinfo import ZoneInfo

    held = min(max(second, FIRST_DAY * SECONDS_A_DAY), LAST_DAY * SECONDS_A_DAY)
    then = (_EPOCH + dt.timedelta(seconds=held)).astimezone(ZoneInfo(timezone))
    offset = then.utcoffset() or dt.timedelta()
    return round(offset.total_seconds()) * MICROSECONDS_A_SECOND


# --- moments --------------------------------------------------------------------------------------

_TIME = pa.timestamp("us", "UTC")

# An instant in UTC, or a local time as if it were in UTC; and which of the two.
MOMENT = pa.struct([("time", _TIME), ("zoned", pa.bool_())])

_ZONED_FIELD = r"[0-9]{2}[ T][0-9:.]+(Z|[+-][0-9:]+)[ \t]*$"


def is_moments(type_: pa.DataType) -> bool:
    """Tell whether a column holds moments."""
    return bool(type_.equals(MOMENT))


def times_of(array: pa.Array) -> pa.Array:
    """Return the times of a column of moments; any other column as it is."""
    return pc.struct_field(array, "time") if is_moments(array.type) else array


def zoned_moments(array: pa.Array) -> Array:
    """Tell which of the moments have a zone: bool ndarray of shape (rows,)."""
    return np.asarray(
        pc.struct_field(array, "zoned").fill_null(False).to_numpy(zero_copy_only=False)
    )


def of_fields(texts: pa.Array, times: pa.Array) -> pa.Array:
    """Make moments of fields of text, and of the times that were read from them.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
    times : pyarrow.Array of shape (rows,)
        Null where a field is missing or does not parse.
    """
    zoned = pc.match_substring_regex(texts, _ZONED_FIELD).fill_null(False)
    return _joined(times.cast(_TIME), zoned)


def all_alike(times: pa.Array, *, zoned: bool) -> pa.Array:
    """Make moments of times that all have a zone, or all have none; null where a time is null."""
    return _joined(times.cast(_TIME), pa.array(np.full(len(times), zoned)))


def of_objects(objects: list[object]) -> pa.Array:
    """Make moments of Python objects; null where an object is no date or time."""
    times = [microseconds(moment) for moment in objects]
    zoned = [isinstance(moment, dt.datetime) and moment.tzinfo is not None for moment in objects]
    return _joined(pa.array(times, pa.int64()).cast(_TIME), pa.array(zoned, pa.bool_()))


def _joined(times: pa.Array, zoned: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(
        [times, zoned], fields=list(MOMENT), mask=pa.compute.is_null(times)
    )


def holds_times(type_: pa.DataType) -> bool:
    """Tell whether a type is one of dates or times, or of moments."""
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_) or is_moments(type_)
