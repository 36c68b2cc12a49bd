"""Python objects to values, each by itself: the domain says how an object is read, and what is of another kind is missing.

A column of objects has the type of whatever it holds, so that one row could decide how all are
read, or whether they are. Here it is read as the axis declares: numbers (also booleans and
decimals) for an Interval of numbers, dates and times for one of dates or times, text, whole numbers
or booleans for labels, and text for keys, whole numbers and booleans being written out. A person is
text, bytes, a number, a date or time, or a UUID; equal numbers, dates and times are one person.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import count
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.arrays import Array
from sfumato.data.fields import declared
from sfumato.data.reader import Column
from sfumato.lattice import Label
from sfumato.times import microseconds, nanoseconds

_NUMBERS = (int, float, Decimal, np.number, np.bool_)
Single: TypeAlias = Callable[[object], object]
"""Reads one object by itself; None where it is missing or of another kind."""


def parse(objects: Sequence[object], column: Column) -> pa.Array:
    """Read objects as the column is declared: an Arrow array, null where one is missing or of another kind."""
    single = _reader(column)
    type_ = declared(column)
    values = [single(each) for each in objects]
    return pa.array(values, pa.int64() if pt.is_timestamp(type_) else type_).cast(type_)


def _reader(column: Column) -> Single:
    if column is None:
        return person
    if column.has_keys:
        return key
    type_ = declared(column)
    if pt.is_integer(type_):
        return _whole(column.listed)
    if column.has_labels:
        return text if pt.is_string(type_) else _boolean
    return number if pt.is_float64(type_) else microseconds


def text(value: object) -> str | None:
    """Text that is valid Unicode."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return str(value)


def number(value: object) -> float | None:
    """A real number as the nearest double."""
    if not isinstance(value, _NUMBERS) or isinstance(value, np.complexfloating):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return None


def _integer(value: object) -> int:
    """A number without what comes after its point."""
    assert isinstance(value, _NUMBERS)
    return int(value)


def _boolean(value: object) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _whole(listed: Sequence[Label]) -> Single:
    other = next(each for each in count() if each not in listed)

    def single(value: object) -> int | None:
        near = None if isinstance(value, bool | np.bool_) else number(value)
        if near is None or math.isnan(near):
            return None
        return _integer(value) if value in listed else other

    return single


def key(value: object) -> str | None:
    """Text; a whole number or a boolean written out."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return format(value, "d") if abs(int(value)) < 10**100 else None
    return text(value)


def whole_numbers(values: Array) -> pa.Array:
    """Floats, or numbers without a sign, as integers of 64 bits: null where one is none.

    Parameters
    ----------
    values : ndarray of shape (n,) of float64 or uint64
    """
    unsigned = values.dtype == np.uint64
    fits = values < np.uint64(2**63) if unsigned else np.abs(values) < 2.0**63
    whole = fits & (values == np.floor(values))
    return pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole)


def person(value: object) -> str | None:
    """An id as text, of which the first letter says what kind it was, so that 7 and "7" are two persons."""
    if isinstance(value, str):
        found = text(value)
        return None if found is None else f"t{found}"
    if isinstance(value, bytes):
        return f"b{value.hex()}"
    if isinstance(value, uuid.UUID):
        return f"u{value.hex}"
    if isinstance(value, dt.date):
        ticks = nanoseconds(value)
        return None if ticks is None else f"m{ticks}"
    return _number_id(value)


def _number_id(value: object) -> str | None:
    near = number(value)
    if near is None or math.isnan(near):
        return None
    if math.isinf(near) and not isinstance(value, int):
        return f"n{near}"
    whole = _integer(value)
    return f"n{whole:x}" if value == whole else f"n{near!r}"
