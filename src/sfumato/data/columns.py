"""Convert Arrow columns to IEEE doubles or cells of labels, by the same rules for all tables.

* Integers and booleans become doubles. Integers beyond 2**53 are rounded to the nearest double,
  ties to even. A decimal becomes the nearest double, as if read from text.
* A date is a number of days, a time a number of microseconds, since 1970-01-01 in UTC. A time
  without a zone is read as UTC, and finer units are floored. Under an Interval of dates, a time
  counts as its day in UTC; under an Interval of times, a date counts as its midnight.
* Null and NaN are missing.
* Labels are compared by value: text with text, numbers with integers, booleans with booleans.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sfumato.basics import Array, is_valid, ndarray_of, pc
from sfumato.data.dates import times_of
from sfumato.domain import (
    MICROSECONDS_A_DAY,
    MICROSECONDS_A_SECOND,
    SECONDS_A_DAY,
    LabelAxis,
    LabelIndex,
    TimeUnit,
)

TICKS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


# --- numbers ------------------------------------------------------------------------------------


def numbers(array: pa.Array, time: TimeUnit | None) -> Array:
    """Convert a column to doubles: float64 ndarray of shape (rows,), NaN where it is missing.

    The result may share the memory of the column, so it must not be written to.

    Parameters
    ----------
    array : pyarrow.Array
        Of a type that fits; see ``schema.misfit``.
    time : {"day", "microsecond"} or None
        What the axis counts.
    """
    array = decoded(array)
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if time is not None:
        values = whole_times(array, time).astype(np.float64)
        if array.null_count:
            values[~is_valid(array)] = np.nan
        return values
    if pa.types.is_decimal(array.type):
        # Arrow's own cast to doubles rounds twice: 0.7 would become 0.7000000000000001.
        array = array.cast(pa.string())
    if not pa.types.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)
    # Arrow copies only where there are nulls, and makes each of them NaN.
    return ndarray_of(array)


def whole_times(array: pa.Array, time: TimeUnit) -> Array:
    """Convert a plain column of dates or times to days or microseconds, floored: int64 ndarray.

    It is 0 where a value is missing.
    """
    array = times_of(array)
    integer_type = pa.int32() if pa.types.is_date32(array.type) else pa.int64()
    ticks = ndarray_of(array.view(integer_type), 0).astype(np.int64, copy=False)
    if pa.types.is_date32(array.type):
        return ticks if time == "day" else _multiplied(ticks, MICROSECONDS_A_DAY)
    unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
    if time == "day":
        # Without microseconds in between, which far days would overflow: a day may name a person.
        return ticks // (TICKS_A_SECOND[unit] * SECONDS_A_DAY)
    if unit == "ns":
        return ticks // 1000
    return _multiplied(ticks, MICROSECONDS_A_SECOND // TICKS_A_SECOND[unit])


def _multiplied(ticks: Array, factor: int) -> Array:
    """Multiply without overflow.

    A product beyond 64 bits lies beyond every bound that can be declared, and is clamped later.
    """
    if factor == 1:
        return ticks
    limit = (2**63 - 1) // factor
    return np.clip(ticks, -limit, limit) * factor


# --- labels -------------------------------------------------------------------------------------


# How many times as long as a column its dictionary may be to be looked up as a whole.
_MOST_UNUSED = 2


class Labels:
    """Sends the labels of a column to the cells of one axis; looks each distinct value up once."""

    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._index = LabelIndex.of(axis)
        self._dictionary: pa.Array | None = None
        # The cell of each value of the dictionary, then the cell of null.
        self._cells_of_values = np.zeros(0, np.int64)

    def cells(self, array: pa.Array) -> Array:
        """Give the cells of a column: int64 ndarray of shape (rows,)."""
        encoded = dictionary_of(array)
        if pa.types.is_null(encoded.type):
            return np.full(len(array), self._axis.missing_cell, np.int64)
        # Some readers hand out a larger dictionary with each batch, most of which it does not use.
        if len(encoded.dictionary) > _MOST_UNUSED * len(array):
            encoded = decoded(encoded).dictionary_encode()
        dictionary = encoded.dictionary
        last = self._dictionary
        # Chunks of one batch have the same dictionary: it is looked up once.
        if last is None or last.type != dictionary.type or not last.equals(dictionary):
            self._dictionary = dictionary
            cells = self._index.cells(values_of(dictionary))
            self._cells_of_values = np.append(cells, self._axis.missing_cell)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int64())
        places = ndarray_of(indices, len(self._cells_of_values) - 1)
        # Less than half of the time of an index in brackets.
        return np.asarray(self._cells_of_values.take(places))


# --- forms of a column --------------------------------------------------------------------------


def dictionary_of(array: pa.Array) -> pa.Array:
    """Bring a column into dictionary form; a column of the null type stays as it is."""
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_null(array.type) or pa.types.is_dictionary(array.type):
        return array
    return viewless(array).dictionary_encode()


def decoded(array: pa.Array) -> pa.Array:
    """Bring a column into plain form; nulls of a dictionary become nulls of the column."""
    if pa.types.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    if not pa.types.is_dictionary(array.type):
        return viewless(array)
    return viewless(array.dictionary).take(array.indices)


def viewless(array: pa.Array) -> pa.Array:
    """Convert the view types that polars exports: not all of Arrow's functions know them."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pa.types.is_binary_view(array.type) else array


def values_of(dictionary: pa.Array) -> list[object]:
    """Give the values of a dictionary as Python objects; text that is not UTF-8 is missing."""
    try:
        return list(dictionary.to_pylist())
    except UnicodeDecodeError:
        pass
    # Outside the except block: an error in there would carry a value in its context.
    raw = viewless(dictionary).cast(pa.large_binary()).to_pylist()
    return [None if value is None else text_of(value) for value in raw]


def text_of(raw: bytes) -> str | None:
    """Read bytes as UTF-8; None where they are not.

    Parameters
    ----------
    raw : bytes

    Returns
    -------
    str or None

    >>> from sfumato.extending import text_of
    >>> text_of("Zürich".encode()), text_of(bytes([255]))
    ('Zürich', None)
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
