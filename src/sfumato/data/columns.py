"""Arrow columns to cells: every engine's types become IEEE doubles or labels here, once.

Rules, the same for every engine:

* Integers and booleans become doubles; beyond 2**53 they are rounded to the nearest double, ties to
  even. A decimal becomes the double nearest to it, as if read from text.
* A date is a number of days, a time a number of microseconds since 1970-01-01 in UTC; a time
  without a zone is read as UTC, finer units are floored. Under an Interval of dates a time counts
  as its day in UTC; under one of times a date counts as its midnight.
* Null and NaN are missing. Labels are compared by value: text with text, numbers with integers,
  booleans with booleans.

What a column may hold is decided by its type alone, before any value is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.arrays import Array
from sfumato.data.reader import Column, Columns
from sfumato.errors import DataError
from sfumato.lattice import LabelAxis
from sfumato.times import MICROSECONDS_A_DAY, TimeUnit

_TO_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values: that of its dictionary for a dictionary column."""
    return type_.value_type if pt.is_dictionary(type_) or pt.is_run_end_encoded(type_) else type_


def misfit(column: Column, type_: pa.DataType) -> str | None:
    """Say what a column would have to hold instead, or None if its type fits."""
    kind = _kind(plain_type(type_))
    if kind == "null":
        return None
    if column is None:
        return (
            None
            if kind in ("number", "boolean", "text", "bytes", "time")
            else "ids of persons are text or integers"
        )
    # Of the numbers, keys are the integers of 64 bits only.
    fits = keys_kind(type_) is not None if column.has_keys else kind in column.value_kinds
    return None if fits else column.declared


def type_name(type_: pa.DataType) -> str:
    """What to call a type: without names of fields and numbers of digits, which an engine may have read off the values."""
    plain = plain_type(type_)
    if pt.is_decimal(plain):
        return "decimal"
    return (
        str(type_)
        if _kind(plain) != "other" or pt.is_primitive(plain)
        else "an engine's own or a nested one"
    )


def keys_kind(type_: pa.DataType) -> str | None:
    """What keys a column holds: ``"text"``, ``"boolean"``, ``"number"``, ``"null"`` for nothing at all; None for no keys."""
    plain = plain_type(type_)
    kind = _kind(plain)
    if kind == "number":
        return kind if pt.is_integer(plain) and not pt.is_uint64(plain) else None
    return kind if kind in ("text", "boolean", "null") else None


def _kind(type_: pa.DataType) -> str:
    tests = {
        "null": (pt.is_null,),
        "boolean": (pt.is_boolean,),
        "number": (pt.is_integer, pt.is_floating, pt.is_decimal),
        "text": (pt.is_string, pt.is_large_string, pt.is_string_view),
        "bytes": (pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary, pt.is_binary_view),
        "time": (pt.is_date, pt.is_timestamp),
    }
    return next(
        (kind for kind, those in tests.items() if any(test(type_) for test in those)), "other"
    )


def of_known_types(
    name: str,
    columns: Columns,
    person: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Refuse a batch whose columns are not of the types that were checked before the charge.

    A cast to the type expected would succeed or fail by what the values are. And ids of persons
    that change their type in the middle of a table would be other persons from there on.
    """
    seen: pa.Schema | None = None
    for batch in batches:
        schema = batch.schema
        if seen is None or not schema.equals(seen):
            _check_batch(name, columns, schema)
            if person is not None and seen is not None:
                types = [seen.field(person).type, schema.field(person).type]
                if ids_form(types) is None:
                    raise _changed(
                        name, person, "ids of persons are of different types in different rows"
                    )
            seen = schema
        yield batch


def _check_batch(name: str, columns: Columns, schema: pa.Schema) -> None:
    for column, asked in columns.items():
        place = schema.get_field_index(column)
        if place < 0:
            raise _changed(name, column, "some of its rows come without the column")
        type_ = schema.field(place).type
        if wanted := misfit(asked, type_):
            raise _changed(
                name, column, f"some of its rows are of type {type_name(type_)}, and {wanted}"
            )


def _changed(name: str, column: str, obstacle: str) -> DataError:
    return DataError(
        f"{name}, column {column!r}", obstacle, "Write the column with one type in all rows"
    )


# --- types of ids -----------------------------------------------------------------------------------------------------


def ids_form(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """The one type to which ids of persons from several files are brought, or None if equal ids might not become equal."""
    plain = list(
        dict.fromkeys(plain_type(type_) for type_ in types if not pt.is_null(plain_type(type_)))
    )
    if len(plain) < 2:
        return plain[0] if plain else pa.null()
    if all(_kind(type_) == "text" for type_ in plain):
        return pa.large_string()
    if all(_kind(type_) == "bytes" for type_ in plain):
        return pa.large_binary()
    if all(pt.is_integer(type_) and not pt.is_uint64(type_) for type_ in plain):
        return pa.int64()
    return None


# --- numbers ------------------------------------------------------------------------------------------------------------


def numbers(array: pa.Array, time: TimeUnit | None) -> Array:
    """Read a column as doubles, NaN where it is missing: float64 ndarray of shape (rows,), not to be written to.

    Parameters
    ----------
    array : pyarrow.Array
        Of a type that fits.
    time : {"day", "microsecond"} or None
        What the axis counts.
    """
    array = decoded(array)
    if pt.is_null(array.type):
        return np.full(len(array), np.nan)
    if time is not None:
        return _times(array, time)
    if pt.is_decimal(array.type):
        array = array.cast(
            pa.string()
        )  # Arrow's own cast rounds twice: 0.7 would become 0.7000000000000001
    if not pt.is_float64(array.type):
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(
        array.to_numpy(zero_copy_only=False)
    )  # no copy without nulls; NaN for each null


def _times(array: pa.Array, time: TimeUnit) -> Array:
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    whole = (
        array.view(pa.int32()) if pt.is_date32(array.type) else array.view(pa.int64())
    ).fill_null(0)
    ticks = whole.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    if pt.is_date32(array.type):
        ticks = ticks if time == "day" else _times_factor(ticks, MICROSECONDS_A_DAY)
    else:
        unit = "ms" if pt.is_date64(array.type) else array.type.unit
        ticks = ticks // 1000 if unit == "ns" else _times_factor(ticks, _TO_MICROSECONDS[unit])
        ticks = ticks // MICROSECONDS_A_DAY if time == "day" else ticks
    values = ticks.astype(np.float64)
    if missing is not None:
        values[missing] = np.nan
    return values


def _times_factor(ticks: Array, factor: int) -> Array:
    """Multiply; what does not fit lies beyond every bound that can be declared, and is clamped as such."""
    limit = (2**63 - 1) // factor
    return ticks if factor == 1 else np.clip(ticks, -limit, limit) * factor


# --- labels -------------------------------------------------------------------------------------------------------------


class Labels:
    """Sends columns to the cells of one axis; each distinct value is looked up once."""

    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._dictionary: pa.Array | None = None
        self._table = np.zeros(0, np.int64)

    def cells(self, array: pa.Array) -> Array:
        """Cells of a column: int64 ndarray of shape (rows,)."""
        encoded = dictionary_of(array)
        if pt.is_null(encoded.type):
            return np.full(len(array), self._axis.missing_cell, np.int64)
        self._learn(encoded.dictionary)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(self._table) - 1)
        return np.asarray(self._table[indices.to_numpy(zero_copy_only=False)])

    def _learn(self, dictionary: pa.Array) -> None:
        """Look up a dictionary, unless it is the last one again, as with parts of one batch; null has the last place."""
        known = self._dictionary
        if known is not None and known.type == dictionary.type and known.equals(dictionary):
            return
        self._dictionary = dictionary
        self._table = np.append(self._axis.lookup(_values(dictionary)), self._axis.missing_cell)


def dictionary_of(array: pa.Array) -> pa.Array:
    """Bring a column into dictionary form; a column of the null type stays as it is."""
    if pt.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pt.is_null(array.type):
        return array
    return array if pt.is_dictionary(array.type) else viewless(array).dictionary_encode()


def decoded(array: pa.Array) -> pa.Array:
    """Bring a dictionary column into plain form; nulls of the dictionary become nulls of the column."""
    if pt.is_run_end_encoded(array.type):
        return pc.run_end_decode(array)
    if not pt.is_dictionary(array.type):
        return viewless(array)
    return viewless(array.dictionary).take(array.indices)


def viewless(array: pa.Array) -> pa.Array:
    """Arrow's kernels do not all know the view types that polars exports."""
    if pt.is_string_view(array.type):
        return array.cast(pa.large_string())
    return array.cast(pa.large_binary()) if pt.is_binary_view(array.type) else array


def _values(dictionary: pa.Array) -> list[object]:
    """Distinct values as Python objects. Text that is not UTF-8 is missing, as in every kind of table."""
    try:
        return list(dictionary.to_pylist())
    except UnicodeDecodeError:
        pass
    raw = viewless(dictionary).cast(pa.large_binary()).to_pylist()
    return [None if value is None else text_of(value) for value in raw]


def text_of(raw: bytes) -> str | None:
    """Read bytes as UTF-8; None where they are not."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
