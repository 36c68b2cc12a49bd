"""The cell of a date or time on an axis of the calendar, such as months, as an expression.

Days and microseconds are whole numbers since 1970-01-01; a time outside the years 1 to 9999, in UTC
or on local clocks, is missing (``data/calendar_cells.py``). Years, months and weeks of a date are
the engine's own: within these years the Gregorian calendar is one and the same.
"""

from __future__ import annotations

import datetime as dt

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from sfumato.calendar_fields import DAYS_BEFORE_EPOCH, CalendarField, period_number
from sfumato.data.engines.dialect import Dialect, Named, plain
from sfumato.data.engines.zones import local_microseconds
from sfumato.errors import InternalError
from sfumato.lattice import LabelAxis
from sfumato.times import MICROSECONDS_A_DAY

_EPOCH = dt.date(1970, 1, 1).toordinal()
FIRST_DAY = 1 - _EPOCH
END_DAY = dt.date.max.toordinal() + 1 - _EPOCH
_HOUR = MICROSECONDS_A_DAY // 24
# Whole weeks that are added before a division, so that no dividend is negative.
_WEEKS = -(FIRST_DAY // 7) + 1


def of_calendar(
    axis: LabelAxis,
    column: str,
    type_: pa.DataType,
    dialect: Dialect,
    read: Named,
) -> str:
    """The cell of a row along an axis of the calendar; the parameters are those of ``labelled``."""
    field = axis.calendar
    if field is msgspec.UNSET:
        raise InternalError("An axis of listed labels shows no field of the calendar.")
    type_ = plain(type_)
    missing = _cell(axis.missing_cell, dialect)
    if pt.is_null(type_):
        return missing
    if field.part == "hour":
        time = _times(column, type_, field, dialect, read)
        known = _within(time, MICROSECONDS_A_DAY)
        within_day = f"({time} - ({FIRST_DAY * MICROSECONDS_A_DAY})) % {MICROSECONDS_A_DAY}"
        number = dialect.quotient(f"({within_day})", str(_HOUR))
    else:
        day = _days(column, type_, field, dialect, read)
        known = _within(day, 1)
        number = _number(day, field, dialect)
    return f"CASE WHEN {known} THEN {_located(axis, field, number, dialect)} ELSE {missing} END"


def _cell(cell: int, dialect: Dialect) -> str:
    return f"CAST(NULL AS {dialect.integer_type})" if cell < 0 else dialect.integer(cell)


def _within(number: str, a_day: int) -> str:
    return f"{number} >= {FIRST_DAY * a_day} AND {number} < {END_DAY * a_day}"


def _is_moved(type_: pa.DataType, field: CalendarField) -> bool:
    """Whether local clocks differ from the column: only instants are read in a zone."""
    return field.timezone is not None and pt.is_timestamp(type_) and type_.tz is not None


def _times(
    column: str, type_: pa.DataType, field: CalendarField, dialect: Dialect, read: Named
) -> str:
    """The local clocks' microseconds."""
    instant = read(dialect.microseconds(column, type_))
    if field.timezone is None or not _is_moved(type_, field):
        return instant
    local = local_microseconds(instant, field.timezone, dialect, read)
    # An instant outside the calendar is missing, wherever local clocks put it.
    known = _within(instant, MICROSECONDS_A_DAY)
    return read(f"CASE WHEN {known} THEN {local} ELSE {END_DAY * MICROSECONDS_A_DAY} END", 4)


def _days(
    column: str, type_: pa.DataType, field: CalendarField, dialect: Dialect, read: Named
) -> str:
    """The local clocks' days."""
    if not _is_moved(type_, field):
        return read(dialect.days(column, type_))
    time = _times(column, type_, field, dialect, read)
    first = FIRST_DAY - 2  # no local clock is further away from UTC
    above = f"({time} - ({first * MICROSECONDS_A_DAY}))"
    return read(f"{dialect.quotient(above, str(MICROSECONDS_A_DAY))} + ({first})", 5)


def _number(day: str, field: CalendarField, dialect: Dialect) -> str:
    """The number of a day's field, from 0 on where it recurs."""
    weekday = f"({day} + {DAYS_BEFORE_EPOCH + 7 * _WEEKS})"
    if field.part == "weekday":
        return f"{weekday} % 7"
    date = dialect.date(day)
    if field.part == "week":
        if field.first is None:
            return f"{dialect.week(date)} - 1"
        return f"{dialect.quotient(weekday, '7')} - {_WEEKS}"
    if field.part == "year":
        return dialect.year(date)
    if field.first is None:
        return f"{dialect.month(date)} - 1"
    return f"{dialect.year(date)} * 12 + {dialect.month(date)} - 1"


def _located(axis: LabelAxis, field: CalendarField, number: str, dialect: Dialect) -> str:
    """The cell of a number: it lies in the span, or is not listed."""
    if field.first is None:
        return f"({number})"
    first = period_number(field.part, field.first) or 0
    unlisted = _cell(axis.unlisted_cell, dialect)
    return (
        f"CASE WHEN {number} BETWEEN {first} AND {first + axis.n_listed - 1}"
        f" THEN {number} - {first} ELSE {unlisted} END"
    )
