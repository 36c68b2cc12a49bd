"""Read instants on local clocks, as an expression: a search among the changes of a zone's offset.

The offsets are those that a scan uses (``data/local_times.py``), which come from Python's zone
database: no engine's own database is asked, which may be another edition.

From 2038 on, every zone follows one yearly rule, and the Gregorian calendar repeats every 400
years, which are whole weeks. So a time after ``_REPEATS`` has the offset of the time 400 years, or
several times 400 years, before it, and the changes up to ``_END`` are all that there are.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache

import numpy as np

from sfumato.data.engines.cells import searched
from sfumato.data.engines.dialect import Dialect, Named
from sfumato.data.local_times import SECONDS_A_DAY, offset_at
from sfumato.times import MICROSECONDS_A_DAY, MICROSECONDS_A_SECOND

_EPOCH = dt.date(1970, 1, 1).toordinal()
_FIRST = dt.date(1800, 1, 1).toordinal() - _EPOCH
_REPEATS = dt.date(2100, 1, 1).toordinal() - _EPOCH
_CYCLE = 146_097
_END = _REPEATS + _CYCLE


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
    days = range(_FIRST, _END + 1)
    at_midnight = np.array([offset_at(timezone, day * SECONDS_A_DAY) for day in days])
    seconds: list[int] = []
    offsets = [int(at_midnight[0])]
    for index in np.flatnonzero(np.diff(at_midnight)).tolist():
        start = days[index] * SECONDS_A_DAY
        _find(timezone, start, start + SECONDS_A_DAY, seconds, offsets)
    return tuple(seconds), tuple(offsets)


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
    repeats = _REPEATS * MICROSECONDS_A_DAY
    cycle = _CYCLE * MICROSECONDS_A_DAY
    repeated = f"(({instant} - {repeats}) % {cycle} + {repeats})"
    in_cycle = f"CASE WHEN {instant} >= {repeats} THEN {repeated} ELSE {instant} END"
    edges = [str(second * MICROSECONDS_A_SECOND) for second in seconds]
    return f"({instant} + {searched(edges, [f'({each})' for each in offsets], read(in_cycle, 1))})"
