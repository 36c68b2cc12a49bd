"""A column read as a whole gives the same values as its fields read one by one."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data import fields
from sfumato.data.fields import parse
from sfumato.data.options import Notation
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis
from sfumato.domain.times import field_microseconds

NUMBER = grid_axis("x", sf.Interval(0, 9), 3)
DAY = grid_axis("x", sf.Interval("2020-01-01", "2020-01-04"), 3)
TIME = grid_axis("x", sf.Interval("2020-01-01T00:00", "2020-01-04T00:00"), 3)
COLUMNS: dict[str, Any] = {
    "number": NUMBER,
    "day": DAY,
    "time": TIME,
    "whole labels": LabelAxis("x", (1, 2, 2**53, 2**53 + 1)),
    "booleans": LabelAxis("x", (True, False)),
    "text": LabelAxis("x", ("a", "1")),
    "keys": KeyAxis("x"),
    "person": None,
}
DIGITS = st.text("0123456789", min_size=1, max_size=4)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.text("0123456789+-.eE ", max_size=7),
    st.sampled_from(
        [
            "inf",
            "-Infinity",
            "NaN",
            "nan(1)",
            "true",
            " FALSE",
            "0x1",
            "1_0",
            "٣",
            "1e999",
            "+1",
            "1.",
            ".5",
        ]
    ),
)
TIMES = st.one_of(
    st.builds(
        "{:04d}-{:02d}-{:02d}{}{}{}".format,
        st.integers(0, 9999),
        st.integers(0, 13),
        st.integers(0, 32),
        st.sampled_from(
            [
                "",
                "T05",
                " 23:59",
                "T23:59:59",
                " 05:00:00.123",
                " 05:00:00.123456789",
                " 24:00",
                "T00:60",
                "t05",
            ]
        ),
        st.sampled_from(["", "", "Z", "+01", "-0130", "+23:59", "+24:00", "+01:60", " Z"]),
        st.sampled_from(["", "", "", " "]),
    ),
    st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2500, 1, 1)).map(
        lambda when: when.isoformat(" ")
    ),
)
RAW = st.one_of(
    st.one_of(NUMBERS, TIMES).map(str.encode),
    st.binary(max_size=4),
    st.sampled_from([b"a", b"\xff", b"Stra\xdfe", "ß".encode(), b"1.0", b"9007199254740993"]),
    st.none(),
)
PLAIN = st.one_of(
    st.lists(st.floats(-1e6, 1e6).map(lambda x: repr(x).encode()), max_size=6),
    st.lists(TIMES.map(str.encode), max_size=6),
    st.lists(st.dates().map(lambda day: day.isoformat().encode()), max_size=6),
    st.lists(RAW, max_size=6),
)


def plain(array: pa.Array) -> list[object]:
    """Values that compare as they are meant: NaN is missing."""
    values = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
    return [
        None if isinstance(value, float) and math.isnan(value) else value
        for value in values.to_pylist()
    ]


@pytest.mark.parametrize("kind", COLUMNS)
@settings(max_examples=60, deadline=None)
@given(PLAIN, RAW)
def test_a_field_is_read_alike_alone_and_among_others(
    kind: str, column: list[bytes | None], odd: bytes | None
) -> None:
    axis = COLUMNS[kind]
    alone = [plain(parse(pa.array([raw], pa.binary()), axis))[0] for raw in column]
    assert plain(parse(pa.array(column, pa.binary()), axis)) == alone
    among = plain(parse(pa.array([*column, odd, b"\xff\xfe"], pa.binary()), axis))
    assert among[: len(column)] == alone
    assert among[-1] is None


@settings(max_examples=100, deadline=None)
@given(NUMBERS)
def test_numbers_read_as_a_column_are_those_read_one_by_one(text: str) -> None:
    try:
        fast = fields._doubles(pa.array([text.encode()], pa.binary()))
    except pa.ArrowInvalid:
        return
    single = fields._number(text.encode())
    assert plain(fast) == ([None] if single is None or math.isnan(single) else [single])


@settings(max_examples=100, deadline=None)
@given(TIMES)
def test_times_read_as_a_column_are_those_read_one_by_one(text: str) -> None:
    raw = text.encode()
    for type_ in fields._TIME_TYPES:
        times = fields._cast(pa.array([raw], pa.binary()), type_)
        if times is not None:
            assert plain(fields._in_microseconds(times)) == [field_microseconds(raw)], type_


@settings(max_examples=100, deadline=None)
@given(st.datetimes(), st.integers(-23 * 60, 23 * 60))
def test_times_are_those_of_the_calendar(when: dt.datetime, minutes: int) -> None:
    sign = "-" if minutes < 0 else "+"
    text = f"{when.isoformat()}{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    since = (when - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert field_microseconds(text.encode()) == since - minutes * 60 * 10**6


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-(10**12), 10**12)), max_size=6),
    st.sampled_from([(",", "."), (",", None), (",", " "), (",", "'"), (".", ","), (".", "_")]),
)
def test_numbers_are_read_back_in_their_notation(
    numbers: list[float], signs: tuple[str, str | None]
) -> None:
    decimal, thousands = signs
    written = []
    for number in numbers:
        plain_text = f"{number:,}" if isinstance(number, int) else repr(number)
        grouped = plain_text.translate({44: thousands or "", 46: decimal})
        written += [grouped.encode(), f" {grouped}\t".encode()]
    notation = Notation(decimal, thousands)
    found = parse(pa.array(written, pa.binary()), NUMBER, notation).to_pylist()
    assert found == [float(number) for number in numbers for _ in range(2)]


@pytest.mark.parametrize(
    ("decimal", "thousands", "field", "wanted"),
    [
        (",", None, "1.5", None),
        (",", None, "1,5", 1.5),
        (",", None, "1,5e3", 1500.0),
        (",", ".", "1.5", None),
        (",", ".", "1.500", 1500.0),
        (",", ".", "-1.234.567,8", -1234567.8),
        (",", ".", "1.23.456", None),
        (",", ".", "1234,5", 1234.5),
        (".", ",", "1,234.5", 1234.5),
        (".", ",", "1,5", None),
        (".", "'", "1’234", 1234.0),
        (",", " ", "1\u202f234,5", 1234.5),
        (",", " ", "1\u00a0234,5", 1234.5),
        (",", " ", "1 23", None),
    ],
)
def test_a_sign_in_the_wrong_place_is_no_number(
    decimal: str, thousands: str | None, field: str, wanted: float | None
) -> None:
    column = pa.array([field.encode(), b"\xff", None], pa.binary())
    found = parse(column, NUMBER, Notation(decimal, thousands)).to_pylist()
    assert found == [wanted, None, None]
    whole = parse(column, COLUMNS["whole labels"], Notation(decimal, thousands)).to_pylist()
    assert (whole[0] is None) == (wanted is None)


def test_answers_to_yes_or_no() -> None:
    yes = [b"1", b"true", b"TRUE", b" Yes", b"y", b"T", b"1.0"]
    no = [b"0", b"false", b"No ", b"N", b"f", b"0.0"]
    column = pa.array([*yes, *no, b"maybe", b"2", b"ja"], pa.binary())
    assert plain(parse(column, COLUMNS["booleans"])) == [True] * 7 + [False] * 6 + [None] * 3


def test_a_column_that_hardly_parses_keeps_what_does() -> None:
    column = [b"1", b"two", b"\xff", None, b" 3 "] * 1000
    assert (
        parse(pa.array(column, pa.binary()), NUMBER).to_pylist()
        == [1.0, None, None, None, 3.0] * 1000
    )
