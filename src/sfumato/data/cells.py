"""Find the cells of rows on the axes of a lattice, and keep the rows that satisfy conditions.

*Axes of the calendar*, such as months and weekdays, find the cells of dates and times. Three forms
of a column have a calendar:

* dates, and times of a type without a zone: they are local already;
* times of a type with a zone: they are instants, which are read on the clocks of the axis' zone;
* text and Python objects, of which each value by itself is one or the other. They are handed on as
  *moments*: an instant in UTC, or the local time as if it were, and which of the two it is.

What is finer than a microsecond is dropped. A time outside the years 1 to 9999, in UTC or on local
clocks, is missing.

*Rows* are located on all axes by ``RowLocator``. ``RowFilter`` keeps the rows that satisfy the
public conditions of a source; see ``domain/conditions.py``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.basics import Array, array_of, is_valid, ndarray_of, pc
from sfumato.data.columns import Labels, decoded, numbers, viewless, whole_times
from sfumato.data.dates import is_moments, local, zoned_moments
from sfumato.data.keys import KeyNumbers
from sfumato.data.packed_counts import Cells, RenumberedKeys
from sfumato.data.priorities import (
    ChosenBy,
    KeyedHash,
    KeyWords,
    PersonRows,
    PersonTokens,
    number_words,
    person_ids,
)
from sfumato.domain import (
    DAYS_BEFORE_EPOCH,
    DROPPED,
    MICROSECONDS_A_DAY,
    BinsAndMissing,
    Condition,
    Domain,
    EdgesAxis,
    GridAxis,
    Interval,
    KeyAxis,
    LabelAxis,
    LatticeAxis,
    Listed,
    OneOf,
    Part,
    TimeUnit,
    Within,
    number_of,
    period_number,
)
from sfumato.errors import InternalError

# --- axes of the calendar -------------------------------------------------------------------------

_EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_FIRST = (1 - _EPOCH_ORDINAL) * MICROSECONDS_A_DAY
_END = (dt.date.max.toordinal() + 1 - _EPOCH_ORDINAL) * MICROSECONDS_A_DAY


# Sends a column to its cells on one axis: int64 ndarray of shape (rows,).
CellsOfColumn: TypeAlias = Callable[[pa.Array], Array]


def cells_of(axis: LabelAxis) -> CellsOfColumn:
    """Return what finds the cells of an axis: labels stand in the column, or follow from it."""
    if axis.calendar is msgspec.UNSET:
        return Labels(axis).cells
    return partial(calendar_cells, axis=axis)


def calendar_cells(column: pa.Array, axis: LabelAxis) -> Array:
    """Give the cells of a column on an axis of the calendar: int64 ndarray of shape (rows,).

    Parameters
    ----------
    column : pyarrow.Array
        Of a type that fits; see ``schema.misfit``.
    axis : LabelAxis
        With a field of the calendar.
    """
    field = axis.calendar
    if field is msgspec.UNSET:
        raise InternalError("An axis of listed labels shows no field of the calendar.")
    times, is_known = local_times(column, field.timezone)
    cells = np.full(len(times), axis.missing_cell, np.int64)
    numbers = _calendar_numbers(times[is_known], field.part, spanned=field.first is not None)
    if field.first is not None:
        numbers = numbers - (period_number(field.part, field.first) or 0)
    outside = (numbers < 0) | (numbers >= axis.n_listed)
    cells[is_known] = np.where(outside, axis.unlisted_cell, numbers)
    return cells


def local_times(column: pa.Array, timezone: str | None) -> tuple[Array, Array]:
    """Return what local clocks show, and in which rows they show it.

    Returns
    -------
    times : int64 ndarray of shape (rows,)
        Microseconds since 1970-01-01 of the local clocks; anything where it is not known.
    is_known : bool ndarray of shape (rows,)
        False where the time is missing, or outside the years 1 to 9999.
    """
    array = decoded(column)
    n_rows = len(array)
    if pa.types.is_null(array.type):
        return np.zeros(n_rows, np.int64), np.zeros(n_rows, bool)
    is_known = is_valid(array)
    times = whole_times(array, "microsecond")
    is_known = is_known & (times >= _FIRST) & (times < _END)
    if timezone is None:
        return times, is_known
    if is_moments(array.type):
        is_instant = is_known & zoned_moments(array)
    elif pa.types.is_timestamp(array.type) and array.type.tz is not None:
        is_instant = is_known
    else:
        return times, is_known
    times = times.copy()
    times[is_instant] = local(times[is_instant], timezone)
    # Local clocks may show a year beyond 1 to 9999 where UTC does not.
    return times, is_known & (times >= _FIRST) & (times < _END)


def _calendar_numbers(times: Array, part: Part, *, spanned: bool) -> Array:
    """Number the fields of local times as the labels of an axis are numbered, from 0 on."""
    days = times // MICROSECONDS_A_DAY
    if part == "hour":
        return (times % MICROSECONDS_A_DAY) // (MICROSECONDS_A_DAY // 24)
    if part == "weekday":
        return (days + DAYS_BEFORE_EPOCH) % 7
    if part == "week" and spanned:
        return (days + DAYS_BEFORE_EPOCH) // 7
    if part == "week":
        # By ISO 8601 they are numbered from 1 to 53.
        dates = array_of(days.astype(np.int32)).view(pa.date32())
        return ndarray_of(pc.iso_week(dates)) - 1
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + 1970 * 12
    if part == "month":
        return months if spanned else months % 12
    return months // 12


# --- rows -----------------------------------------------------------------------------------------

# A column, and what its numbers count.
_Reading: TypeAlias = tuple[str, TimeUnit | None]


class RowLocator:
    """Finds the cells of rows: each distinct axis is located once, each column converted once.

    Parameters
    ----------
    axes : sequence of LatticeAxis
    choice : tuple of LatticeAxis
        Whose columns' values choose among the rows of a person.
    key : bytes of length 32
        The secret of the choice.

    Attributes
    ----------
    key_numbers : dict of KeyAxis to KeyNumbers
        The keys that have occurred, of each axis of keys.
    """

    def __init__(
        self, axes: Sequence[LatticeAxis], choice: ChosenBy = (), key: bytes = bytes(32)
    ) -> None:
        self._axes = list(dict.fromkeys(axes))
        self._choice = choice
        known = dict.fromkeys((*axes, *choice))
        self._labels = {axis: cells_of(axis) for axis in known if isinstance(axis, LabelAxis)}
        self.key_numbers = {axis: KeyNumbers() for axis in known if isinstance(axis, KeyAxis)}
        self._key_words = {
            axis: KeyWords(numbers, key) for axis, numbers in self.key_numbers.items()
        }
        self._tokens = PersonTokens(key)
        self._row_hash = KeyedHash(key, "rows")

    @property
    def known_keys(self) -> int:
        """How many keys have occurred on the axis that has the most."""
        return max(map(len, self.key_numbers.values()), default=0)

    def numbers_in(self, other: RowLocator) -> RenumberedKeys:
        """Number the keys that another thread saw as well: of each axis, in its own order."""
        return {
            axis: numbers.numbers_of(other.key_numbers[axis])
            for axis, numbers in self.key_numbers.items()
        }

    def cells(self, batch: pa.RecordBatch) -> Cells:
        """Give the cells of a batch on each axis: int64 ndarrays of shape (rows,)."""
        converted: dict[_Reading, Array] = {}
        return {axis: self._cells(batch, axis, converted) for axis in self._axes}

    def located(
        self, batch: pa.RecordBatch, person_columns: Sequence[str]
    ) -> tuple[Cells, PersonRows]:
        """Give the cells of the rows of a batch that have a person, and whose rows they are."""
        persons = person_ids(batch, person_columns)
        if persons.ids.null_count:
            batch = kept_rows(batch, is_valid(persons.ids))
            persons = person_ids(batch, person_columns)
        converted: dict[_Reading, Array] = {}
        cells: dict[LatticeAxis, Array] = {}
        # Labels and keys are hashed by their cells, also those of axes that are not counted.
        hashed = [axis for axis in self._choice if isinstance(axis, LabelAxis | KeyAxis)]
        for axis in dict.fromkeys([*self._axes, *hashed]):
            cells[axis] = self._cells(batch, axis, converted)
        key_words = {axis: words.of(cells[axis]) for axis, words in self._key_words.items()}
        values: list[Array] = []
        for axis in self._choice:
            if isinstance(axis, KeyAxis):
                values.append(key_words[axis])
            elif isinstance(axis, LabelAxis):
                values.append(cells[axis])
            else:
                values.append(number_words(_numbers(batch, axis, converted)))
        tokens = self._tokens.of_persons(persons)
        words = self._tokens.choice_words(persons, tokens)
        return cells, PersonRows(tokens, words, values, key_words, self._row_hash)

    def _cells(
        self, batch: pa.RecordBatch, axis: LatticeAxis, converted: dict[_Reading, Array]
    ) -> Array:
        if isinstance(axis, LabelAxis):
            return self._labels[axis](batch[axis.column_name])
        column = batch[axis.column_name]
        if isinstance(axis, KeyAxis):
            return self.key_numbers[axis].cells(column)
        if (
            isinstance(axis, GridAxis)
            and axis.holds_whole_numbers
            and pa.types.is_signed_integer(column.type)
            and not column.null_count
        ):
            return axis.locate_whole(ndarray_of(column).astype(np.int64, copy=False))
        return axis.locate(_numbers(batch, axis, converted))


def _numbers(
    batch: pa.RecordBatch,
    axis: GridAxis | EdgesAxis | BinsAndMissing,
    converted: dict[_Reading, Array],
) -> Array:
    # One column may be read as days by one axis, and as microseconds by another.
    reading = (axis.column_name, axis.time)
    if reading not in converted:
        converted[reading] = numbers(batch[axis.column_name], axis.time)
    return converted[reading]


# --- conditions -----------------------------------------------------------------------------------


class RowFilter:
    """Says which rows of a batch satisfy all conditions.

    Parameters
    ----------
    conditions : sequence of OneOf or Within
    domain : Domain
        Its axes say how the columns are read.

    Attributes
    ----------
    axes : tuple of LatticeAxis
        What it looks at.
    """

    def __init__(self, conditions: Sequence[Condition], domain: Domain) -> None:
        compiled = [_compiled(condition, domain) for condition in conditions]
        self.axes: tuple[LatticeAxis, ...] = tuple(axis for axis, _ in compiled)
        self._kept_cells = [kept for _, kept in compiled]
        self._locator = RowLocator(self.axes)

    def apart(self) -> RowFilter:
        """Return one for another thread: what it remembers of labels is its own."""
        other = copy(self)
        other._locator = RowLocator(self.axes)
        return other

    def satisfied(self, batch: pa.RecordBatch) -> Array:
        """Tell which rows satisfy all conditions: bool ndarray of shape (rows,)."""
        satisfied = np.ones(len(batch), bool)
        cells = self._locator.cells(batch)
        for axis, kept in zip(self.axes, self._kept_cells, strict=True):
            own_cells = cells[axis]
            # As an index, -1 would be the last cell, which may satisfy the condition.
            satisfied &= np.where(own_cells == DROPPED, False, kept[own_cells])
        return satisfied

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a batch that satisfy all conditions."""
        return kept_rows(batch, self.satisfied(batch))


def kept_rows(batch: pa.RecordBatch, which: Array) -> pa.RecordBatch:
    """Return the rows of a batch for which a bool ndarray holds."""
    # Not every version of Arrow can filter views.
    columns = [viewless(column) for column in batch.columns]
    plain = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    return plain.filter(array_of(which))


def _compiled(condition: Condition, domain: Domain) -> tuple[LatticeAxis, Array]:
    """Return the axis that a condition looks at, and which of its cells satisfy it."""
    declared = domain[condition.axis]
    match condition:
        case OneOf(axis=name, labels=labels) if isinstance(declared, Listed):
            axis = declared.label_axis(name)
            # To Python, True and 1 are equal; as labels they are two.
            wanted = {(type(label), label) for label in labels}
            return axis, np.array([(type(label), label) in wanted for label in axis.labels])
        case Within() if isinstance(declared, Interval):
            # The axis is cut at the ends of the range, and one of the pieces lies between them.
            low, high = declared.numbers
            lower = low if condition.lower is None else number_of(condition.lower)
            upper = high if condition.upper is None else number_of(condition.upper)
            edges = sorted({low, lower, upper, high})
            cut = EdgesAxis(
                condition.axis,
                tuple(edges),
                declared.time,
                declared.stand_in,
                declared.stride,
                low,
                declared.column,
            )
            return cut, np.array([lower <= edge < upper for edge in edges[:-1]])
        case _:
            raise InternalError("A condition does not fit the axis that it was made for.")
