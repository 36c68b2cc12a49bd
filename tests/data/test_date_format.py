"""Dates in a stated format are read as Python reads them, as a column and one by one alike."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data.dates import DateFormat, date_format
from sfumato.data.fields import parse
from sfumato.data.options import Notation
from sfumato.domain.domain import grid_axis
from sfumato.domain.times import field_microseconds

TIME = grid_axis("x", sf.Interval("2020-01-01T00:00", "2020-01-04T00:00"), 3)
EPOCH = dt.datetime(1970, 1, 1)

FORMATS = (
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%y",
    "%Y%m%d",
    "%Y-%m",
    "%d %b %Y",
    "%B %d, %Y",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M:%S.%f",
    "%m/%d/%Y %I:%M %p",
    "%Y-%m-%dT%H:%M:%S%z",
    "100%% on %d.%m.%Y",
    "%Y年%m月%d日",
    "(%d)+[%m]*%Y $^|",
)

MOMENTS = st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(2068, 12, 31))


def moment_of(format_: DateFormat, text: str) -> int | None:
    iso = format_.iso(text.encode())
    return None if iso is None else field_microseconds(iso.encode())


def microseconds(text: str, format_: str) -> int:
    """As Python reads it, in UTC."""
    found = dt.datetime.strptime(text, format_)
    return int((found.replace(tzinfo=None) - EPOCH) / dt.timedelta(microseconds=1)) - int(
        (found.utcoffset() or dt.timedelta()) / dt.timedelta(microseconds=1)
    )


def as_a_column(texts: list[str], format_: DateFormat) -> list[int | None]:
    column = pa.array([text.encode() for text in texts], pa.binary())
    return list(parse(column, TIME, Notation(dates=format_)).cast(pa.int64()).to_pylist())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FORMATS), st.lists(MOMENTS, min_size=1, max_size=5))
def test_what_is_written_in_a_format_is_read_back(format_: str, moments: list[dt.datetime]) -> None:
    texts = [each.replace(tzinfo=dt.UTC).strftime(format_) for each in moments]
    ours = date_format(format_)
    wanted = [microseconds(text, format_) for text in texts]
    assert [moment_of(ours, text) for text in texts] == wanted
    assert as_a_column(texts, ours) == wanted


@pytest.mark.parametrize(
    ("format_", "text", "wanted"),
    [
        ("%m/%d/%Y", " 3/14/2024 ", "2024-03-14"),
        ("%m/%d/%Y", "14/3/2024", None),
        ("%d.%m.%Y", "30.2.2024", None),
        ("%d.%m.%Y", "2024-03-14", None),
        ("%d.%m.%Y", "14.03.24", None),
        ("%d.%m.%y", "14.03.69", "1969-03-14"),
        ("%d.%m.%y", "14.03.68", "2068-03-14"),
        ("%d %b %Y", "14 MAR 2024", "2024-03-14"),
        ("%d %b %Y", "14 März 2024", None),
        ("%m/%d/%Y %I:%M %p", "3/14/2024 12:05 am", "2024-03-14T00:05"),
        ("%m/%d/%Y %I:%M %p", "3/14/2024 12:05 PM", "2024-03-14T12:05"),
        ("%m/%d/%Y %I:%M %p", "3/14/2024 13:05 PM", None),
        ("%Y-%m-%d %H:%M%z", "2024-03-14 01:00+0200", "2024-03-13T23:00"),
        ("%Y", "2024", "2024-01-01"),
    ],
)
def test_fields_are_read_as_the_format_says(format_: str, text: str, wanted: str | None) -> None:
    ours = date_format(format_)
    moment = None if wanted is None else dt.datetime.fromisoformat(wanted)
    number = None if moment is None else int((moment - EPOCH) / dt.timedelta(microseconds=1))
    assert moment_of(ours, text) == number
    assert as_a_column([text, "x"], ours) == [number, None]


@pytest.mark.parametrize(
    ("format_", "words"),
    [
        ("DD.MM.YYYY", "it has no year"),
        ("%d.%m", "it has no year"),
        ("%d.%Y", "lacks a month"),
        ("%m.%Y %H", "lacks a day"),
        ("%d.%m.%Y %M", "lacks an hour"),
        ("%d.%m.%Y %H:%S", "lacks a minute"),
        ("%d.%m.%Y %H:%M.%f", "lacks a second"),
        ("%d.%m.%Y %d", "the day twice"),
        ("%d.%m.%Y %y", "the year twice"),
        ("%d.%m.%Y %I:%M", "need %p"),
        ("%d.%m.%Y %H:%M %p", "need %p"),
        ("%j %Y", "%j is not read"),
        ("%d.%m.%Y %", "% is not read"),
    ],
)
def test_a_format_that_cannot_be_read_is_refused(format_: str, words: str) -> None:
    with pytest.raises(sf.UsageError, match=words) as caught:
        date_format(format_)
    assert "%d.%m.%Y" in str(caught.value)
