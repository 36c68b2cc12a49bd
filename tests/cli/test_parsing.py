"""Axes and conditions as the text of an option."""

from __future__ import annotations

import pytest

import sfumato as sf
from sfumato.cli.parsing import parse_axes, parse_bins, parse_clip, parse_totals, parse_where
from sfumato.domain.domain import Axis, Domain


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("weekday:when", sf.Weekday("when")),
        ("weekday:when:Europe/Berlin", sf.Weekday("when", timezone="Europe/Berlin")),
        ("hour:when:Etc/GMT+5", sf.Hour("when", timezone="Etc/GMT+5")),
        ("month:date", sf.Month("date")),
        ("month:date:2024-01..2024-12", sf.Month("date", "2024-01", "2024-12")),
        (
            "week:date:2024-W01..2024-W52:Asia/Tokyo",
            sf.Week("date", "2024-W01", "2024-W52", "Asia/Tokyo"),
        ),
        ("year:date:2019..2024", sf.Year("date", 2019, 2024)),
        ("0..120,missing", sf.Interval(0, 120, missing=True)),
        ("0..120/1, missing", sf.Interval(0, 120, step=1, missing=True)),
        ("month:1,month:2", sf.Categories(["month:1", "month:2"])),
        ("2024-01-01..2025-01-01", sf.Interval("2024-01-01", "2025-01-01")),
        ('Surgery, "Ear, Nose & Throat"', sf.Categories(["Surgery", "Ear, Nose & Throat"])),
        ('"1..2, 3","say ""a"""', sf.Categories(["1..2, 3", 'say "a"'])),
        ('5" pipe,3" pipe', sf.Categories(['5" pipe', '3" pipe'])),
        ("0..1.125/0.125", sf.Interval(0, 1.125, step=0.125)),
    ],
)
def test_axes(text: str, axis: Axis) -> None:
    assert parse_axes((f"x={text}",)) == {"x": axis}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weekday:", "a column, then a span or a time zone"),
        ("weekday:when:1..2", "a column, then a span or a time zone"),
        ("month:when:UTC:UTC", "a column, then a span or a time zone"),
        ("weekday:when:Berlin", "did you mean 'Europe/Berlin'?"),
        ("year:date", "years have no first"),
        ("month:date:2024-01..", "last is no month"),
        ("0..120,mising", "not ',missing'"),
        ("0,5..60", "bounds have a decimal point. Write bounds as in"),
        ("0..60,5", "bounds have a decimal point"),
        ('a,"b, c', "a double quote begins a label, and none ends it"),
        ('a,"b"c', "a double quote begins a label, and none ends it"),
        ('a,""', "one of its labels is empty"),
        ("0..20.000", "Write 20 or 20000"),
        ("-1.500..0", "Write -1.5 or -1500"),
        ("0..100/10.000", "a decimal point or a sign between thousands"),
    ],
)
def test_what_is_no_axis(text: str, words: str) -> None:
    with pytest.raises(sf.UsageError) as caught:
        parse_axes((f"x={text}",))
    assert words in str(caught.value)


DOMAIN = Domain(
    parse_axes(
        (
            "age=0..120",
            "day=2024-01-01..2025-01-01",
            "kind=a,b c",
            'ward="Ear, Nose",Eye',
            "hour=hour:when",
            "month=month:when",
        )
    )
)


@pytest.mark.parametrize(
    ("texts", "where"),
    [
        (("kind=a", "age=18..65"), {"kind": ["a"], "age": (18, 65)}),
        (('ward="Ear, Nose",Eye',), {"ward": ["Ear, Nose", "Eye"]}),
        (("age=..65",), {"age": (None, 65)}),
        (("age= 0.5 .. ",), {"age": (0.5, None)}),
        (("day=2024-02-01..2024-03-01",), {"day": ("2024-02-01", "2024-03-01")}),
        (("hour=8, 9",), {"hour": [8, 9]}),
        (("month=March,April", "kind=b c"), {"month": ["March", "April"], "kind": ["b c"]}),
    ],
)
def test_conditions(texts: tuple[str, ...], where: dict[str, object]) -> None:
    assert parse_where(texts, DOMAIN) == where


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("age",), "names no condition"),
        (("age=",), "names no condition"),
        (("=1..2",), "names no condition"),
        (("age=1..2", "age=3..4"), "given twice"),
        (("age=18",), "the condition on it is a range"),
        (("age=1.000..",), "Write 1 or 1000"),
        (('ward="Ear, Nose',), "a double quote begins a label"),
        (("age=18-65",), "the condition on it is a range"),
    ],
)
def test_what_is_no_condition(texts: tuple[str, ...], words: str) -> None:
    with pytest.raises(sf.UsageError) as caught:
        parse_where(texts, DOMAIN)
    assert words in str(caught.value)


def test_edges_and_clips_with_two_readings_are_refused() -> None:
    with pytest.raises(sf.UsageError, match="Write 10 or 10000"):
        parse_bins(("cost=0,10.000,20000",))
    with pytest.raises(sf.UsageError, match="Write 10 or 10000"):
        parse_clip("0:10.000")


@pytest.mark.parametrize(
    ("text", "obstacle"),
    [
        ("kind=a:1,b", "'a:1' is not a whole number"),
        ("kind=a:1.5,b:2", "'1.5' is not a whole number"),
        ("kind=a:-1,b:2", "'-1' is not a whole number"),
        ("kind=a:1,a:2", "a label has two counts"),
        ("many", "'many' is not a whole number"),
    ],
)
def test_totals_are_whole_numbers_of_labels(text, obstacle):
    with pytest.raises(sf.UsageError, match=obstacle):
        parse_totals([text])


def test_totals_of_one_table_stand_in_one_option():
    assert parse_totals(['kind="a, b:1",c:2'])["kind",] == {"a, b": 1, "c": 2}
    with pytest.raises(sf.UsageError, match="it is given twice"):
        parse_totals(["kind=a:1", "kind=b:2"])
