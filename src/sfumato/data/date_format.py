"""Read dates and times that are written as a stated format says, such as 14.03.2024.

A format is written with the usual directives: ``%d.%m.%Y`` or ``%m/%d/%Y %I:%M %p``. They are read
here, and not by Python's ``strptime``, because that reads names of months in the language of the
machine: the same file would count differently elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from sfumato.domain.times import BLANKS, field_microseconds
from sfumato.errors import UsageError

_FULL_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS = tuple(month[:3] for month in _FULL_MONTHS)

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
"""What each directive reads, and how it is written; letters in any case."""

_NEEDS = (
    ("month", "year", "a year: %Y for 2024, %y for 24"),
    ("day", "month", "a month: %m for 3, %b for Mar, %B for March"),
    ("hour", "day", "a day: %d"),
    ("minute", "hour", "an hour: %H, or %I with %p"),
    ("second", "minute", "a minute: %M"),
    ("fraction", "second", "a second: %S"),
)
"""What a part needs beside it."""

PIVOT = 69
"""Of two digits, 69 to 99 are 1969 to 1999, as POSIX has it."""


@dataclass(frozen=True)
class DateFormat:
    """A format of dates or times, ready to read fields.

    Attributes
    ----------
    text : str
        The format as it was stated.
    """

    text: str
    _directives: tuple[str, ...]
    _pattern: re.Pattern[bytes]

    def microseconds(self, field: bytes) -> int | None:
        """Read one field: microseconds since 1970-01-01 in UTC; None where it does not parse.

        >>> date_format("%m/%d/%Y").microseconds(b"1/2/1970") // 86_400_000_000
        1
        >>> date_format("%d.%m.%Y").microseconds(b"1970-01-02") is None
        True
        """
        found = self._pattern.fullmatch(field.strip(BLANKS))
        iso = None if found is None else self._iso(found)
        return None if iso is None else field_microseconds(iso.encode())

    def _iso(self, found: re.Match[bytes]) -> str | None:
        parts = {name: (text or b"").decode().lower() for name, text in found.groupdict().items()}
        date = f"{self._year(parts):04d}-{self._month(parts):02d}-{int(parts.get('day', 1)):02d}"
        if "hour" not in parts:
            return date
        hour = self._hour(parts)
        if hour is None:
            return None
        second = f"{int(parts.get('second', 0)):02d}.{parts.get('fraction', '0')}"
        zone = parts.get("zone", "z").upper()
        return f"{date}T{hour:02d}:{int(parts.get('minute', 0)):02d}:{second}{zone}"

    def _year(self, parts: dict[str, str]) -> int:
        year = int(parts["year"])
        if not self.has_short_years:
            return year
        return year + (1900 if year >= PIVOT else 2000)

    def _month(self, parts: dict[str, str]) -> int:
        if "m" in self._directives:
            return int(parts["month"])
        return MONTHS.index(parts["month"][:3]) + 1 if "month" in parts else 1

    def _hour(self, parts: dict[str, str]) -> int | None:
        hour = int(parts["hour"])
        if "I" not in self._directives:
            return hour
        return hour % 12 + 12 * (parts["half"] == "pm") if 1 <= hour <= 12 else None

    @property
    def has_zone(self) -> bool:
        """Whether every field has a zone; otherwise none has."""
        return "z" in self._directives

    @property
    def pattern(self) -> str | None:
        """The pattern by which Arrow finds the parts of all fields of a column.

        None if the parts have to be found field by field: Arrow's patterns are about ASCII here,
        and a zone is no number.
        """
        return None if self.has_zone or not self.text.isascii() else self._pattern.pattern.decode()

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
    unknown = [letter for letter in directives if letter not in _PARTS]
    if unknown:
        raise _wrong(text, f"%{unknown[0]} is not read here")
    parts = [_PARTS[letter][0] for letter in directives]
    for part in parts:
        if parts.count(part) > 1:
            raise _wrong(text, f"it names the {part} twice")
    if "year" not in parts:
        raise _wrong(text, "it has no year")
    for part, needed, how in _NEEDS:
        if part in parts and needed not in parts:
            raise _wrong(text, f"it has the {part} and lacks {how}")
    if ("I" in directives) != ("half" in parts):
        raise _wrong(text, "hours to twelve are %I, and need %p for AM or PM")
    pattern = _translated(text, lambda letter: "(?P<{}>{})".format(*_PARTS[letter]))
    return DateFormat(text, directives, re.compile(pattern.encode(), re.IGNORECASE))


def _translated(text: str, group_of: Callable[[str], str]) -> str:
    """Write a format as a pattern: each directive as a group, and all else as it stands."""
    pieces = re.split("(%.)", text, flags=re.DOTALL)
    return "".join(
        group_of(piece[1:])
        if piece.startswith("%") and piece != "%%"
        else re.escape("%" if piece == "%%" else piece)
        for piece in pieces
    )


def _wrong(text: str, obstacle: str) -> UsageError:
    return UsageError(
        f"the date format {text!r}",
        obstacle,
        "Write %d for the day, %m for the month, %Y for the year, and for times %H, %M and %S: "
        '14.03.2024 is "%d.%m.%Y", and 3/14/2024 5:30 PM is "%m/%d/%Y %I:%M %p"',
    )
