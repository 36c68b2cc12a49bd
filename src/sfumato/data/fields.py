"""Fields of text to values, each by itself: what the domain declares says how a field is read, and nothing else does.

A field that does not parse is a missing value. A column whose fields all have one plain form is
read as a whole, which is fast, and any other field by field; both give the same values
(``tests/data/test_fields.py``).

* Numbers: an optional sign and digits, with a point or an exponent; ``inf``, ``infinity``; ``true``
  is 1, ``false`` 0.
* Dates and times, by ISO 8601: a date; or a date, a space or T, and a time to the hour, the minute,
  the second or a part of it, with or without a zone (``Z``, ``+01``, ``+0100``, ``+01:00``). One
  without a zone is read as UTC.
* Labels: text as it stands; whole numbers by value; booleans as ``true``, ``True``, ``TRUE``, ``1``
  and their opposites.
* Keys and persons: text as it stands.

Blanks around numbers, dates and booleans do not matter. Text that is not UTF-8 does not parse.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.data.columns import text_of
from sfumato.data.reader import Column
from sfumato.lattice import Label
from sfumato.times import BLANKS, field_microseconds

Single: TypeAlias = Callable[[bytes], object]
"""Reads one field by itself; None where it does not parse."""

MOMENT = pa.timestamp("us", "UTC")
_TRUE = (b"1", b"True", b"TRUE", b"true")
_FALSE = (b"0", b"False", b"FALSE", b"false")


def declared(column: Column) -> pa.DataType:
    """The Arrow type of a column of text, by its declaration alone."""
    if column is None or column.has_keys:
        return pa.string()
    if column.has_labels:
        kinds = column.value_kinds
        if "text" in kinds:
            return pa.string()
        return pa.int64() if "number" in kinds else pa.bool_()
    return pa.float64() if column.time is None else MOMENT


def parse(texts: pa.Array, column: Column) -> pa.Array:
    """Read the fields of a column: bytes in, null where a field is missing; values out, null where it does not parse.

    >>> from sfumato.domain import (Interval, grid_axis)
    >>> axis = grid_axis("x", Interval(0, 9), 3)
    >>> parse(pa.array([b"1", b" 2.5", b"two", None, b"true"]), axis).to_pylist()
    [1.0, 2.5, None, None, 1.0]
    """
    type_ = declared(column)
    if pt.is_float64(type_):
        return _numbers(texts)
    if pt.is_timestamp(type_):
        return _moments(texts)
    if pt.is_boolean(type_):
        return _mapped(texts, _boolean, type_)
    if column is not None and pt.is_integer(type_):
        return _whole(texts, column.listed)
    return _texts(texts)


# --- text ---------------------------------------------------------------------------------------------------------------


def _texts(texts: pa.Array) -> pa.Array:
    try:
        return texts.cast(pa.string())
    except pa.ArrowInvalid:
        return _mapped(texts, text_of, pa.string())


def _mapped(texts: pa.Array, single: Single, type_: pa.DataType) -> pa.Array:
    """Read each distinct field once."""
    encoded = texts.dictionary_encode()
    values = pa.array([single(raw) for raw in encoded.dictionary.to_pylist()], type_)
    return values.take(encoded.indices)


def _by_field(
    texts: pa.Array, easy: pa.Array, bulk: Callable[[pa.Array], pa.Array], single: Single
) -> pa.Array:
    """Read the fields that ``easy`` marks together, and the others one by one."""
    easy = easy.fill_null(False)
    values = bulk(pc.if_else(easy, texts, None))
    odd = pc.and_not(texts.is_valid(), easy)
    others = _mapped(
        texts.filter(odd), single, pa.int64() if pt.is_timestamp(values.type) else values.type
    )
    return pc.replace_with_mask(values, odd, others.cast(values.type))


# --- numbers ------------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(rb"[+-]?[0-9]{1,40}")
_EASY_NUMBER = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$"


def _numbers(texts: pa.Array) -> pa.Array:
    try:
        return _floats(texts)
    except pa.ArrowInvalid:
        return _by_field(texts, pc.match_substring_regex(texts, _EASY_NUMBER), _floats, _number)


def _floats(texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string()).cast(pa.float64())


def _number(raw: bytes) -> float | None:
    truth = _boolean(raw)
    return _decimal(raw) if truth is None else float(truth)


def _decimal(raw: bytes) -> float | None:
    raw = raw.strip(BLANKS)
    if _NUMBER.fullmatch(raw):
        return float(raw)
    word = raw.lower().lstrip(b"+-") if raw[:2] not in (b"++", b"--", b"+-", b"-+") else b""
    if word in (b"inf", b"infinity"):
        return float("-inf") if raw.startswith(b"-") else float("inf")
    return float("nan") if word == b"nan" or word.startswith(b"nan(") else None


def whole_number(raw: bytes | None) -> int | None:
    """Read one whole number of 64 bits."""
    if raw is None or not _WHOLE.fullmatch(raw.strip(BLANKS)):
        return None
    number = int(raw)
    return number if -(2**63) <= number < 2**63 else None


def _boolean(raw: bytes) -> bool | None:
    raw = raw.strip(BLANKS)
    return raw in _TRUE if raw in _TRUE or raw in _FALSE else None


def _whole(texts: pa.Array, listed: Sequence[Label]) -> pa.Array:
    """Labels that are listed as they are, and some number that is not listed for all other numbers."""
    other = next(number for number in count() if number not in listed)

    def single(raw: bytes) -> int | None:
        # As doubles, two long labels would meet.
        whole = _WHOLE.fullmatch(raw.strip(BLANKS))
        number = int(raw) if whole else _decimal(raw)
        if number is None or math.isnan(number):
            return None
        return int(number) if number in listed else other

    encoded = texts.dictionary_encode()
    numbers = pa.array([single(raw) for raw in encoded.dictionary.to_pylist()], pa.int64())
    if numbers.null_count:
        return numbers.take(encoded.indices)
    return pa.DictionaryArray.from_arrays(encoded.indices, numbers)


# --- dates and times ----------------------------------------------------------------------------------------------------

_ZONE = r"(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_CLOCK = r"[ T]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"
# Days that every month has, of years that every engine knows; what lies beyond is read one by one.
_EASY_DAY = r"[12][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"
_WAYS = (
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", "UTC"),
)


def _moments(texts: pa.Array) -> pa.Array:
    plain = texts.filter(texts.is_valid()).slice(0, 1)
    for way in _WAYS:
        # The first field only says which way is likely to succeed. Which one does makes no difference.
        if not _cast(plain, way):
            continue
        whole = _cast(texts, way)
        if whole:
            return _in_microseconds(whole[0])
    zoned = pc.match_substring_regex(texts, f"^{_EASY_DAY}{_CLOCK}{_ZONE}$").fill_null(False)
    local = pc.match_substring_regex(texts, f"^{_EASY_DAY}({_CLOCK})?$").fill_null(False)

    def bulk(easy: pa.Array) -> pa.Array:
        with_zone = pc.if_else(zoned, easy, None).cast(pa.string()).cast(MOMENT)
        without = pc.if_else(local, easy, None).cast(pa.string()).cast(pa.timestamp("us"))
        return pc.coalesce(with_zone, without.cast(pa.int64()).cast(MOMENT))

    return _by_field(texts, pc.or_(zoned, local), bulk, field_microseconds)


def _cast(texts: pa.Array, type_: pa.DataType) -> list[pa.Array]:
    """The column as a whole in one type, or nothing if a field is not of it."""
    try:
        return [texts.cast(pa.string()).cast(type_)]
    except pa.ArrowInvalid:
        return []


def _in_microseconds(times: pa.Array) -> pa.Array:
    """Any of the ways as microseconds in UTC, parts of them being dropped."""
    if pt.is_date32(times.type):
        return times.cast(pa.timestamp("us")).cast(pa.int64()).cast(MOMENT)
    if times.type.unit == "ns":
        times = pc.floor_temporal(times, unit="microsecond").cast(pa.timestamp("us", times.type.tz))
    return times.cast(pa.int64()).cast(MOMENT)
