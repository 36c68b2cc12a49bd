"""Read a whole column of dates that are written as a format says.

Each field is read as ``DateFormat.microseconds`` reads it (``tests/data/test_date_columns.py``).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.basics.numbers import Array
from sfumato.data.date_format import MONTHS, PIVOT, DateFormat
from sfumato.domain.times import MICROSECONDS_A_SECOND


def read_dates(texts: pa.Array, format_: DateFormat) -> pa.Array:
    """Read the fields of a column.

    Parameters
    ----------
    texts : pyarrow.BinaryArray of shape (rows,)
    format_ : DateFormat

    Returns
    -------
    pyarrow.Int64Array of shape (rows,)
        Microseconds since 1970-01-01 in UTC; null where a field is missing or does not parse.
    """
    if format_.pattern is not None:
        parts = pc.extract_regex(texts, rf"(?i)^[ \t]*{format_.pattern}[ \t]*$")
        return _microseconds(parts, format_.has_short_years)
    distinct = texts.dictionary_encode()
    found = [format_.microseconds(field) for field in distinct.dictionary.to_pylist()]
    return pa.array(found, pa.int64()).take(distinct.indices)


def _microseconds(fields: pa.StructArray, has_short_years: bool) -> pa.Array:
    """Turn the parts of fields into microseconds since 1970-01-01; null where there is no field."""
    n_fields = len(fields)
    names = [field.name for field in fields.type]

    def part(name: str, default: int) -> Array:
        if name not in names:
            return np.full(n_fields, default, np.int64)
        return _whole_numbers(pc.struct_field(fields, name), name)

    year = part("year", 0)
    if has_short_years:
        year = year + np.where(year >= PIVOT, 1900, 2000)
    hour = part("hour", 0)
    is_hour = hour <= 23
    if "half" in names:
        is_hour = (hour >= 1) & (hour <= 12)
        hour = hour % 12 + part("half", 0)
    minute = part("minute", 0)
    second = part("second", 0)
    days, is_day = _days(year, part("month", 1), part("day", 1))
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    is_time = is_day & is_hour & (minute <= 59) & (second <= 59)
    is_time &= fields.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(seconds * MICROSECONDS_A_SECOND + part("fraction", 0), mask=~is_time)


def _whole_numbers(texts: pa.Array, name: str) -> Array:
    """One part of all fields as int64 ndarray; 0 where there is no field."""
    texts = texts.cast(pa.string()).fill_null("0")
    if name == "fraction":
        texts = pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 6, "0"), 0, 6)
    elif name == "half":
        is_afternoon = pc.equal(pc.utf8_lower(texts), "pm").to_numpy(zero_copy_only=False)
        return np.where(is_afternoon, 12, 0)
    elif name == "month":
        short = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, 3))
        number = pc.add(pc.index_in(short, pa.array(MONTHS)), 1).cast(pa.string())
        texts = pc.coalesce(number, texts)
    return np.asarray(texts.cast(pa.int64()))


def _days(year: Array, month: Array, day: Array) -> tuple[Array, Array]:
    """Days since 1970-01-01, and whether there is such a day."""
    is_month = (month >= 1) & (month <= 12)
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    next_first = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    return first + day - 1, is_month & (day >= 1) & (day <= next_first - first)
