"""Read instants on local clocks, as an expression: a search among the changes of a zone's offset.

The offsets are those that a scan uses (``data/local_times.py``), which come from Python's zone
database: no engine's own database is asked, which may be another edition.

Long before 2101, every zone has come to follow one yearly rule, which depends on the weekday that a
year begins with and on whether it is a leap year. From 2101 to 2128 each of these fourteen kinds of
years occurs. So a later time has the offset of the same time of such a year, and the changes up to
then are all that there are (``tests/data/engines/test_zones.py`` tries this for all zones).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from sfumato.data.engines.cells import searched
from sfumato.data.engines.dialect import Dialect, Named
from sfumato.data.local_times import SECONDS_A_DAY, offset_at
from sfumato.times import MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND

_EPOCH = dt.date(1970, 1, 1).toordinal()
_FIRST = dt.date(1800, 1, 1).toordinal() - _EPOCH
_REPEATS = 2101
_YEARS = 28
_FIRST_DAY = dt.date.min.toordinal() - _EPOCH
_LAST_DAY = dt.date.max.toordinal() - _EPOCH


def _new_year(year: int) -> int:
    return dt.date(year, 1, 1).toordinal() - _EPOCH


@lru_cache(maxsize=64)
def changes(timezone: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """When the offset of a zone changes, and which offsets it has.

    Returns
    -------
    seconds : tuple of int
        Seconds since 1970-01-01 in UTC at which another offset begins, ascending.
    offsets : tuple of int
        In microseconds: before the first change, then from each change on.
    """
    days = range(_FIRST, _new_year(_REPEATS + _YEARS) + 1)
    seconds: list[int] = []
    offsets = [offset_at(timezone, days[0] * SECONDS_A_DAY)]
    for day, (before, after) in zip(days, pairwise(_at_midnight(timezone, days)), strict=False):
        if before != after:
            start = day * SECONDS_A_DAY
            _find(timezone, start, start + SECONDS_A_DAY, seconds, offsets)
    return tuple(seconds), tuple(offsets)


def _at_midnight(timezone: str, days: range) -> Iterator[dt.timedelta | None]:
    """The offsets at the beginning of days in UTC: a third of the time of ``offset_at``."""
    zone = ZoneInfo(timezone)
    epoch = dt.datetime(1970, 1, 1, tzinfo=zone)
    for day in days:
        # What is given to this method shows the time in UTC, although it has the zone.
        yield zone.fromutc(epoch + dt.timedelta(days=day)).utcoffset()


def _find(timezone: str, low: int, high: int, seconds: list[int], offsets: list[int]) -> None:
    """Find the changes after a second and up to another, by bisection."""
    below, above = offset_at(timezone, low), offset_at(timezone, high)
    if below == above:
        return
    if high - low == 1:
        seconds.append(high)
        offsets.append(above)
        return
    middle = (low + high) // 2
    _find(timezone, low, middle, seconds, offsets)
    _find(timezone, middle, high, seconds, offsets)


def local_microseconds(instant: str, timezone: str, dialect: Dialect, read: Named) -> str:
    """What local clocks show at an instant.

    Parameters
    ----------
    instant : str
        Microseconds since 1970-01-01 in UTC, of the years 1 to 9999 or just beyond.
    timezone : str
    dialect : Dialect
    read : callable
        Gives names to expressions.
    """
    seconds, offsets = changes(timezone)
    if not seconds:
        return f"({instant} + {offsets[0]})"
    in_cycle = _repeated(instant, dialect, read)
    edges = [str(second * MICROSECONDS_A_SECOND) for second in seconds]
    return f"({instant} + {searched(edges, [f'({each})' for each in offsets], in_cycle)})"


def _repeated(instant: str, dialect: Dialect, read: Named) -> str:
    """The same time of a year up to 2128 that is of the same kind."""
    above = f"{instant} - ({_FIRST_DAY * MICROSECONDS_A_DAY})"
    day = f"{dialect.quotient(f'greatest({above}, 0)', str(MICROSECONDS_A_DAY))} + ({_FIRST_DAY})"
    year = read(f"{dialect.year(dialect.date(f'least({day}, {_LAST_DAY})'))}", 1)
    begins = read(_begins(f"({year} - 1)", dialect), 2)
    length = f"({_begins(year, dialect)} - {begins})"
    # The day of the week, and whether the year is a leap year, as one number.
    kind = f"(({begins} - ({_FIRST_DAY})) % 7) * 2 + {length} - 365"
    kinds = " ".join(f"WHEN {number} THEN {day}" for number, day in sorted(_kinds().items()))
    moved = f"{instant} + (CASE {kind} {kinds} END - {begins}) * {MICROSECONDS_A_DAY}"
    repeats = _new_year(_REPEATS) * MICROSECONDS_A_DAY
    return read(f"CASE WHEN {instant} >= {repeats} THEN {moved} ELSE {instant} END", 3)


def _begins(years: str, dialect: Dialect) -> str:
    """The day on which the year begins that so many years of the calendar come before."""
    leap_days = (
        f"{dialect.quotient(years, '4')} - {dialect.quotient(years, '100')}"
        f" + {dialect.quotient(years, '400')}"
    )
    return f"({years} * 365 + {leap_days} + ({_FIRST_DAY}))"


def _kinds() -> dict[int, int]:
    """On which day a year of each kind begins."""
    found = {}
    for year in range(_REPEATS, _REPEATS + _YEARS):
        begins = _new_year(year)
        found[(begins - _FIRST_DAY) % 7 * 2 + _new_year(year + 1) - begins - 365] = begins
    return found
