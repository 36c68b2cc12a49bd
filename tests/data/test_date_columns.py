"""A column of dates in a format is read as its fields are, whatever they hold."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data import fields
from sfumato.data.dates import DateFormat, date_format
from sfumato.data.options import Notation
from sfumato.data.schema import dates
from sfumato.domain.times import field_microseconds

FORMATS = st.sampled_from(
    [
        "%d.%m.%Y",
        "%m/%d/%y",
        "%Y%m%d",
        "%Y-%m",
        "%Y",
        "%d %b %Y",
        "%B %d, %Y",
        "%d.%m.%Y %H:%M",
        "%d.%m.%Y %H:%M:%S.%f",
        "%m/%d/%Y %I:%M %p",
        "%Y-%m-%d %H:%M%z",
        "%Y年%m月%d日",
    ]
)

MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))


def moments(column: list[bytes | None], format_: DateFormat) -> pa.Array:
    texts = pa.array([b"x", *column], pa.binary())[1:]
    return fields.parse(texts, dates("day"), Notation(dates=format_)).cast(pa.int64())


def read_alike(format_: str, column: list[bytes | None]) -> None:
    ours = date_format(format_)
    written = [None if field is None else ours.iso(field) for field in column]
    single = [None if iso is None else field_microseconds(iso.encode()) for iso in written]
    assert moments(column, ours).to_pylist() == single


@settings(max_examples=150, deadline=None)
@given(FORMATS, st.lists(st.one_of(st.none(), st.binary(max_size=20)), max_size=4), st.data())
def test_a_column_is_read_as_its_fields_are(
    format_: str, noise: list[bytes | None], data: st.DataObject
) -> None:
    """Dates, dates with a few signs changed, and noise."""
    column = noise
    for moment in data.draw(st.lists(MOMENTS, max_size=4)):
        text = bytearray(moment.replace(tzinfo=dt.UTC).strftime(format_).encode())
        column = [*column, b" " + bytes(text) + b"\t"]
        for place in data.draw(st.lists(st.integers(0, len(text) - 1), max_size=3)):
            text[place] = data.draw(st.sampled_from(b"0123456789. /:aA\n\xff"))
        column = [*column, bytes(text), bytes(text).upper()]
    read_alike(format_, column)


def test_every_day_of_two_centuries_and_the_days_that_are_none() -> None:
    column: list[bytes | None] = [
        f"{day}.{month}.{year}".encode()
        for year in (1896, 1900, 1999, 2000, 2023, 2024, 2100)
        for month in range(14)
        for day in range(33)
    ]
    read_alike("%d.%m.%Y", column)
    assert moments(column, date_format("%d.%m.%Y")).null_count == len(column) - 7 * 365 - 3


def test_every_minute_of_a_day() -> None:
    column: list[bytes | None] = [
        f"1/2/2024 {hour}:{minute:02d} {half}".encode()
        for hour in range(14)
        for minute in (0, 59, 60)
        for half in ("AM", "pm", "")
    ]
    read_alike("%m/%d/%Y %I:%M %p", column)
