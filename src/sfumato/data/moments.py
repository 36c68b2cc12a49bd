"""Moments: times of which each by itself has a zone or not, as in text and in Python objects.

The type of a column of times says whether all of them are instants. A field of text says it of
itself alone, so both are handed on.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.domain.times import microseconds

_TIME = pa.timestamp("us", "UTC")
MOMENT = pa.struct([("time", _TIME), ("zoned", pa.bool_())])
"""An instant in UTC, or a local time as if it were in UTC; and which of the two."""

_ZONED_FIELD = r"[0-9]{2}[ T][0-9:.]+(Z|[+-][0-9:]+)[ \t]*$"


def is_moments(type_: pa.DataType) -> bool:
    """Whether a column holds moments."""
    return bool(type_.equals(MOMENT))


def times_of(array: pa.Array) -> pa.Array:
    """The times of a column of moments; any other column as it is."""
    return pc.struct_field(array, "time") if is_moments(array.type) else array


def zoned_moments(array: pa.Array) -> Array:
    """Which of the moments have a zone: bool ndarray of shape (rows,)."""
    return np.asarray(
        pc.struct_field(array, "zoned").fill_null(False).to_numpy(zero_copy_only=False)
    )


def of_fields(texts: pa.Array, times: pa.Array) -> pa.Array:
    """Make moments of fields of text, and of the times that were read from them.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
    times : pyarrow.Array of shape (rows,)
        Null where a field is missing or does not parse.
    """
    zoned = pc.match_substring_regex(texts, _ZONED_FIELD).fill_null(False)
    return _joined(times.cast(_TIME), zoned)


def all_alike(times: pa.Array, *, zoned: bool) -> pa.Array:
    """Make moments of times that all have a zone, or all have none; null where a time is null."""
    return _joined(times.cast(_TIME), pa.array(np.full(len(times), zoned)))


def of_objects(objects: list[object]) -> pa.Array:
    """Make moments of Python objects; null where an object is no date or time."""
    times = [microseconds(each) for each in objects]
    zoned = [isinstance(each, dt.datetime) and each.tzinfo is not None for each in objects]
    return _joined(pa.array(times, pa.int64()).cast(_TIME), pa.array(zoned, pa.bool_()))


def _joined(times: pa.Array, zoned: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(
        [times, zoned], fields=list(MOMENT), mask=pa.compute.is_null(times)
    )


def holds_times(type_: pa.DataType) -> bool:
    """Whether a type is one of dates or times, or of moments."""
    return pt.is_date(type_) or pt.is_timestamp(type_) or is_moments(type_)
