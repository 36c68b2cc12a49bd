"""Read Python objects as values, each object by itself.

The type of a column of objects follows from whatever it holds, so one row could decide how all rows
are read, or whether the column is refused. Here the domain's declaration decides instead, and an
object of another kind is missing:

* under an Interval of numbers: numbers, booleans and decimals;
* under an Interval of dates or times: dates and times;
* under Categories: text, whole numbers or booleans, as the labels are; booleans also under labels
  of text that say true and false;
* under Keys: text; whole numbers and booleans are written out;
* persons: text, bytes, numbers, dates, times or UUIDs. Equal numbers are one person, and so are
  equal dates and times; 7 and "7" are two.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.basics import Array
from sfumato.data.dates import is_moments, of_objects
from sfumato.data.fields import declared, unlisted_number, whole_label
from sfumato.data.priorities import OBJECT
from sfumato.data.reader import Column, Losses
from sfumato.domain import Label, microseconds, nanoseconds

_NUMBERS = (int, float, Decimal, np.number, np.bool_)

# Reads one object by itself; None where it is missing or of another kind.
ReadOne: TypeAlias = Callable[[object], object]


def parse(objects: Sequence[object], column: Column) -> pa.Array:
    """Read objects as the column is declared.

    Returns
    -------
    pyarrow.Array of shape (objects,)
        Null where an object is missing or of another kind.
    """
    type_ = declared(column)
    if is_moments(type_):
        return of_objects(list(objects))
    read_one = _reader_of(column)
    values = [read_one(cell) for cell in objects]
    # Times are read as integers, and cast afterwards.
    return pa.array(values, pa.int64() if pa.types.is_timestamp(type_) else type_).cast(type_)


def parsed_objects(
    objects: Sequence[object], name: str, column: Column, losses: Losses
) -> pa.Array:
    """Read the objects of a column as it is declared, and count those of another kind.

    Parameters
    ----------
    objects : sequence of object
    name : str
    column : Column
    losses : Losses
        Objects that are there, and are of another kind than the column, are added to it.
    """
    values = parse(objects, column)
    if values.null_count:
        nulls = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
        note_others([objects[row] for row in nulls.tolist()], name, losses)
    return values


def note_others(unread: Iterable[object], name: str, losses: Losses) -> None:
    """Count objects of a column that were not read, unless they stand for a missing value."""
    others = Counter(type(cell).__name__ for cell in unread if not _is_missing(cell))
    losses.unparsed[name] += others.total()
    for type_name, n_objects in others.items():
        losses.types[name, type_name] += n_objects


def types_sentences(types: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Say which objects of each column were not read, and what to do."""
    for column in dict.fromkeys(column for column, _ in types):
        numbers = {name: n_objects for (of, name), n_objects in types.items() if of == column}
        listed = ", ".join(f"{name} ({n_objects:,})" for name, n_objects in numbers.items())
        yield (
            f"{column}: the values that do not parse are of other types than the domain declares: "
            f"{listed}. Convert the column, or declare it as what it is."
        )


def _is_missing(value: object) -> bool:
    """Tell whether an object stands for a missing value, as pandas has it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and math.isnan(value)


def _reader_of(column: Column) -> ReadOne:
    if column is None:
        return person
    if column.has_keys:
        return key
    type_ = declared(column)
    if pa.types.is_integer(type_):
        return _whole_label(column.listed)
    if column.has_labels:
        if not pa.types.is_string(type_):
            return _boolean
        return _text_or_boolean if "boolean" in column.value_kinds else text
    return number if pa.types.is_float64(type_) else microseconds


def text(value: object) -> str | None:
    """Read text; None where it is not valid Unicode."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return str(value)


def number(value: object) -> float | None:
    """Read a real number as the nearest double."""
    if not isinstance(value, _NUMBERS) or isinstance(value, np.complexfloating):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return None


def _boolean(value: object) -> bool | None:
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _text_or_boolean(value: object) -> str | None:
    return str(bool(value)) if isinstance(value, bool | np.bool_) else text(value)


def _whole_label(listed: Sequence[Label]) -> ReadOne:
    known = frozenset(listed)
    stand_in = unlisted_number(known)

    def read_one(value: object) -> int | None:
        if not isinstance(value, _NUMBERS) or isinstance(value, bool | np.bool_):
            return None
        double = number(value)
        if double is None or math.isnan(double):
            return None
        plain = value.item() if isinstance(value, np.generic) else value
        return whole_label(plain, known, stand_in)

    return read_one


def key(value: object) -> str | None:
    """Read a key: text, or a whole number or a boolean written out."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return format(value, "d") if abs(int(value)) < 10**100 else None
    return text(value)


def whole_numbers(values: Array, name: str, losses: Losses) -> pa.Array:
    """Convert doubles or unsigned integers to 64-bit integers; null where a value is none.

    Parameters
    ----------
    values : ndarray of shape (n,) of float64 or uint64
    name : str
        The column.
    losses : Losses
        Values that are there, and are no such integers, are added to it.
    """
    is_unsigned = values.dtype == np.uint64
    fits = values < np.uint64(2**63) if is_unsigned else np.abs(values) < 2.0**63
    is_whole = fits & (values == np.floor(values))
    note_others(values[~is_whole], name, losses)
    return pa.array(np.where(is_whole, values, 0).astype(np.int64), mask=~is_whole)


def person(value: object) -> str | None:
    """Write an id as text: text as it stands, and what is no text in a form that no text has.

    >>> person("7"), person(7), person(7.50)
    ('7', '\\x00n7', '\\x00n75E-1')
    """
    if isinstance(value, str):
        valid = text(value)
        return f"{OBJECT}t{valid}" if valid is not None and valid.startswith(OBJECT) else valid
    if isinstance(value, bytes):
        return f"{OBJECT}b{value.hex()}"
    if isinstance(value, uuid.UUID):
        return f"{OBJECT}u{value.hex}"
    if isinstance(value, dt.date):
        ticks = nanoseconds(value)
        return None if ticks is None else f"{OBJECT}m{ticks}"
    written = _written_number(value)
    return None if written is None else f"{OBJECT}n{written}"


def _written_number(value: object) -> str | None:
    """Write a number exactly, so that equal numbers of all types are written alike."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | Decimal):
        return None
    exact = Decimal(plain)
    if exact.is_nan():
        return None
    if exact.is_infinite():
        return str(float(exact))
    sign, digits, exponent = exact.as_tuple()
    # Short whole numbers are written as their digits, as a column of text has them.
    if exact.copy_abs() < 10**20 and exact == exact.to_integral_value():
        return str(int(exact))
    assert isinstance(exponent, int)
    significant = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{significant}E{exponent + len(digits) - len(significant)}"
