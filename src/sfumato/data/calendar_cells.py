"""Find the cells of dates and times on axes of the calendar, such as months and weekdays.

Three forms of a column have a calendar:

* dates, and times of a type without a zone: they are local already;
* times of a type with a zone: they are instants, which are read on the clocks of the axis' zone;
* text and Python objects, of which each value by itself is one or the other. They are handed on as
  *moments*: an instant in UTC, or the local time as if it were, and which of the two it is.

What is finer than a microsecond is dropped. A time outside the years 1 to 9999, in UTC or on local
clocks, is missing.
"""

from __future__ import annotations

import datetime as dt
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.data.columns import Labels, decoded, whole_times
from sfumato.data.local_times import local
from sfumato.data.moments import is_moments, zoned_moments
from sfumato.domain.lattice import LabelAxis
from sfumato.domain.times import DAYS_BEFORE_EPOCH, MICROSECONDS_A_DAY, Part, period_number
from sfumato.errors import InternalError

_EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_FIRST = (1 - _EPOCH_ORDINAL) * MICROSECONDS_A_DAY
_END = (dt.date.max.toordinal() + 1 - _EPOCH_ORDINAL) * MICROSECONDS_A_DAY
_MICROSECONDS_AN_HOUR = MICROSECONDS_A_DAY // 24


class CellsOfColumn(Protocol):
    """Sends a column to the cells of one axis of labels."""

    def cells(self, array: pa.Array) -> Array:
        """Give the cells of a column: int64 ndarray of shape (rows,)."""


class CalendarCells:
    """Sends dates and times to the cells of one axis of the calendar."""

    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis

    def cells(self, array: pa.Array) -> Array:
        """Give the cells of a column: int64 ndarray of shape (rows,)."""
        return calendar_cells(array, self._axis)


def cells_of(axis: LabelAxis) -> CellsOfColumn:
    """What finds the cells of an axis: its labels stand in the column, or are derived from it."""
    return Labels(axis) if axis.calendar is msgspec.UNSET else CalendarCells(axis)


def calendar_cells(column: pa.Array, axis: LabelAxis) -> Array:
    """Give the cells of a column on an axis of the calendar: int64 ndarray of shape (rows,).

    Parameters
    ----------
    column : pyarrow.Array
        Of a type that fits; see ``column_types.misfit``.
    axis : LabelAxis
        With a field of the calendar.
    """
    field = axis.calendar
    if field is msgspec.UNSET:
        raise InternalError("An axis of listed labels shows no field of the calendar.")
    times, is_known = local_times(column, field.timezone)
    cells = np.full(len(times), axis.missing_cell, np.int64)
    numbers = _numbers(times[is_known], field.part, spanned=field.first is not None)
    if field.first is not None:
        numbers = numbers - (period_number(field.part, field.first) or 0)
    outside = (numbers < 0) | (numbers >= axis.n_listed)
    cells[is_known] = np.where(outside, axis.unlisted_cell, numbers)
    return cells


def local_times(column: pa.Array, timezone: str | None) -> tuple[Array, Array]:
    """What local clocks show, and in which rows they show it.

    Returns
    -------
    times : int64 ndarray of shape (rows,)
        Microseconds since 1970-01-01 of the local clocks; anything where it is not known.
    is_known : bool ndarray of shape (rows,)
        False where the time is missing, or outside the years 1 to 9999.
    """
    array = decoded(column)
    n_rows = len(array)
    if pt.is_null(array.type):
        return np.zeros(n_rows, np.int64), np.zeros(n_rows, bool)
    is_known = array.is_valid().to_numpy(zero_copy_only=False)
    times = whole_times(array, "microsecond")
    is_known = is_known & (times >= _FIRST) & (times < _END)
    is_zoned = _is_zoned(array)
    if timezone is not None and is_zoned is not None:
        read = is_known & is_zoned
        times = times.copy()
        times[read] = local(times[read], timezone)
        is_known = is_known & (times >= _FIRST) & (times < _END)
    return times, is_known


def _is_zoned(array: pa.Array) -> Array | None:
    """Which rows hold instants: bool ndarray of shape (rows,); None where none does."""
    if is_moments(array.type):
        return zoned_moments(array)
    if pt.is_timestamp(array.type) and array.type.tz is not None:
        return np.ones(len(array), bool)
    return None


def _numbers(times: Array, part: Part, *, spanned: bool) -> Array:
    """Number the fields of local times as the labels of an axis are numbered, from 0 on."""
    days = times // MICROSECONDS_A_DAY
    if part == "hour":
        return (times % MICROSECONDS_A_DAY) // _MICROSECONDS_AN_HOUR
    if part == "weekday":
        return (days + DAYS_BEFORE_EPOCH) % 7
    if part == "week":
        return (days + DAYS_BEFORE_EPOCH) // 7 if spanned else _weeks_of_year(days) - 1
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 1970 * 12
    if part == "month":
        return months if spanned else months % 12
    return months // 12


def _weeks_of_year(days: Array) -> Array:
    """The numbers of weeks by ISO 8601, 1 to 53."""
    dates = pa.array(days.astype(np.int32)).view(pa.date32())
    return np.asarray(pc.iso_week(dates).to_numpy(zero_copy_only=False))
