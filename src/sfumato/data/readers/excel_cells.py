"""What a cell of Excel means. A cell that means nothing is missing, whatever it holds.

Excel stores a date as a number of days, and only its number format says that it is one. Section
18.8.30 of ECMA-376 lists the formats that have a number; section 18.17.4.1 says how days count.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TypeAlias

from sfumato.data.readers.xlsx import Element, Parts, RawCell

Cell: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
"""What the reader makes of a cell; a missing one is an empty text."""

NUMBER, MOMENT, DURATION = "number", "moment", "duration"
"""What a number format makes of a number."""

_EPOCH = dt.datetime(1899, 12, 30)
_DAYS_TO_1904 = 1462
_END_OF_DAYS = 2_958_466
"""The day after 9999-12-31."""
_FALSE_LEAP_DAY = 60
"""Excel counts a 29 February 1900, which never was."""

_MOMENTS = frozenset([*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)])
_DURATIONS = frozenset([46])
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.', re.DOTALL)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_OF_MOMENTS = re.compile(r"[dmyhs]", re.IGNORECASE)

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


class Cells:
    """Reads the cells of one file.

    The texts that cells share are read no further than the cells refer to.
    """

    def __init__(self, parts: Parts) -> None:
        self._texts: list[str] = []
        self._more_texts: Iterator[str] = parts.texts()
        self._meanings = meanings(parts.styles())
        self._from_1904 = parts.counts_from_1904()

    def read(self, cell: RawCell | None) -> Cell:
        """Give what a cell means: an empty text if it is missing."""
        if cell is None:
            return ""
        kind, style, text = cell
        if kind == "n":
            return self._number(style, text)
        if kind == "s":
            return self._shared(text)
        if kind in ("str", "inlineStr"):
            return unescaped(text)
        if kind == "b":
            return _BOOLEANS.get(text.strip(), "")
        # An error (e), or a type that there is not.
        return written_moment(text) if kind == "d" else ""

    def _number(self, style: str, text: str) -> Cell:
        number = finite(text)
        if number is None:
            return ""
        meaning = self._meanings.get(style, NUMBER)
        if meaning == NUMBER:
            return number if abs(number) < 2**53 else _long(text)
        return duration(number) if meaning == DURATION else moment(number, self._from_1904)

    def _shared(self, text: str) -> str:
        try:
            place = int(text)
        except ValueError:
            return ""
        while len(self._texts) <= place:
            more = next(self._more_texts, None)
            if more is None:
                return ""
            self._texts.append(unescaped(more))
        return self._texts[place] if place >= 0 else ""


def finite(text: str) -> float | None:
    """Read a number; None if it is none, or not finite.

    >>> finite("1.5"), finite("1e400"), finite("x")
    (1.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _long(text: str) -> int | float:
    """Read a large number: a whole one exactly, in whatever form it is written.

    Excel writes 15 digits; other programs may write an id of more, which no double holds.
    """
    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else float(text)


def unescaped(text: str) -> str:
    """Decode the characters that XML cannot hold.

    >>> unescaped("a_x000D_b")
    'a\\rb'
    """
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


# --- dates, times and durations ---


def moment(number: float, from_1904: bool) -> Cell:
    """Read a number of days: a time below one day, a date if it is whole, missing out of range.

    >>> moment(45365.0, False), moment(0.5, False), moment(-1.0, False)
    (datetime.date(2024, 3, 14), datetime.time(12, 0), '')
    """
    days = number + _DAYS_TO_1904 if from_1904 else number
    if number < 0 or days >= _END_OF_DAYS:
        return ""
    shift = 1 if days < _FALSE_LEAP_DAY else 0
    try:
        found = _EPOCH + dt.timedelta(milliseconds=round((days + shift) * 86_400_000))
    except OverflowError:
        # The last half of a millisecond of the year 9999.
        return ""
    if number < 1:
        return found.time()
    return found.date() if number.is_integer() else found


def duration(number: float) -> Cell:
    """Read a number of days as a duration; missing if it is longer than Python's longest."""
    try:
        return dt.timedelta(milliseconds=round(number * 86_400_000))
    except OverflowError:
        return ""


def written_moment(text: str) -> Cell:
    """Read a date, a time or both, as ISO 8601 writes them; missing if it is none."""
    readings = (dt.date.fromisoformat, dt.time.fromisoformat, dt.datetime.fromisoformat)
    for reading in readings:
        try:
            return reading(text.strip())
        except ValueError:
            continue
    return ""


def meanings(styles: Sequence[Element]) -> dict[str, str]:
    """Give what each place in the list of cell formats makes of a number, where that is no number.

    Parameters
    ----------
    styles : sequence of Element
    """
    codes = {
        each.attributes.get("numFmtId", ""): each.attributes.get("formatCode", "")
        for each in styles
        if each.name == "numFmt"
    }
    formats = [each for each in styles if each.name == "xf" and each.parent == "cellXfs"]
    found = {}
    for place, each in enumerate(formats):
        number = each.attributes.get("numFmtId", "")
        meaning = _of_code(codes[number]) if number in codes else _of_number(number)
        if meaning != NUMBER:
            found[str(place)] = meaning
    return found


def _of_number(number: str) -> str:
    if not (number.isascii() and number.isdigit()) or len(number) > 3:
        return NUMBER
    if int(number) in _DURATIONS:
        return DURATION
    return MOMENT if int(number) in _MOMENTS else NUMBER


def _of_code(code: str) -> str:
    """What a format such as ``dd.mm.yyyy`` makes of a positive number."""
    bare = _LITERAL.sub("", code).split(";")[0]
    if _ELAPSED.search(bare):
        return DURATION
    return MOMENT if _OF_MOMENTS.search(_BRACKETS.sub("", bare)) else NUMBER
