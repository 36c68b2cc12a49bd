"""Read instants on local clocks, with daylight saving.

The offsets from UTC are those of Python's ``zoneinfo``, which knows the rules of every year. Arrow
has such functions too, but looks for its zone database in other places on each platform, and with
some forms of the database it passes over the rules of years to come.

An offset is looked up twice for each day in UTC: at its beginning and its end. Where they agree, it
holds all day (``tests/data/test_local_times.py`` tries this for all zones); on the other days, a
few in a year, it is looked up for each second.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.times import MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND

SECONDS_A_DAY = 86_400
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_ORDINAL = _EPOCH.toordinal()

# Offsets are looked up within these days, so that no time leaves the years that Python knows.
FIRST_DAY = 2 - _EPOCH_ORDINAL
LAST_DAY = dt.date.max.toordinal() - 2 - _EPOCH_ORDINAL


def local(instants: Array, timezone: str | None) -> Array:
    """What local clocks show, as microseconds since 1970-01-01 there: int64 ndarray.

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
    starts, ends = _offsets_of_days(timezone, first, days)
    offsets = starts[days]
    on_change = (starts != ends)[days]
    if on_change.any():
        seconds, again = np.unique(
            instants[on_change] // MICROSECONDS_A_SECOND, return_inverse=True
        )
        found = [offset_at(timezone, second) for second in seconds.tolist()]
        offsets[on_change] = np.array(found, np.int64)[again]
    return np.asarray(instants + offsets)


def _offsets_of_days(timezone: str, first: int, days: Array) -> tuple[Array, Array]:
    """The offsets at the beginning and at the end of days that are counted from the first on.

    They are looked up for the days that occur. All days of the calendar are less than 2^22.
    """
    occurs = np.bincount(days) > 0
    starts = np.zeros(len(occurs), np.int64)
    ends = np.zeros(len(occurs), np.int64)
    for day in np.flatnonzero(occurs).tolist():
        starts[day] = _offset_of_day(timezone, first + day)
        ends[day] = _offset_of_day(timezone, first + day + 1)
    return starts, ends


@lru_cache(maxsize=2**18)
def _offset_of_day(timezone: str, day: int) -> int:
    """The offset at the beginning of a day in UTC."""
    return offset_at(timezone, day * SECONDS_A_DAY)


def offset_at(timezone: str, second: int) -> int:
    """How many microseconds local clocks are ahead of UTC at a second since 1970-01-01."""
    held = min(max(second, FIRST_DAY * SECONDS_A_DAY), LAST_DAY * SECONDS_A_DAY)
    then = (_EPOCH + dt.timedelta(seconds=held)).astimezone(ZoneInfo(timezone))
    offset = then.utcoffset() or dt.timedelta()
    return round(offset.total_seconds()) * MICROSECONDS_A_SECOND
