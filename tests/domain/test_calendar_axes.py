"""Axes that are derived from a column of dates or times, as they are declared."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.domain import Axis, Listed
from sfumato.domain.lattice import LabelAxis
from sfumato.domain.times import CalendarField


@pytest.mark.parametrize(
    ("axis", "first", "last", "number"),
    [
        (sf.Month("d"), "January", "December", 12),
        (sf.Weekday("d"), "Monday", "Sunday", 7),
        (sf.Hour("d"), 0, 23, 24),
        (sf.Week("d"), 1, 53, 53),
        (sf.Month("d", "2023-11", "2024-02"), "2023-11", "2024-02", 4),
        (sf.Month("d", dt.date(2023, 11, 30), "2024-02-29"), "2023-11", "2024-02", 4),
        (sf.Week("d", "2020-W53", "2021-W02"), "2020-W53", "2021-W02", 3),
        (sf.Week("d", dt.datetime(2021, 1, 3), "2021-W02"), "2020-W53", "2021-W02", 3),
        (sf.Year("d", 999, 1001), 999, 1001, 3),
        (sf.Year("d", "2019", np.int64(2024)), 2019, 2024, 6),
        (sf.Weekday("d", missing="not stated"), "Monday", "not stated", 8),
        (sf.Year("d", 2019, 2020, other="else", missing="none"), 2019, "none", 4),
    ],
)
def test_labels_are_in_the_order_of_the_calendar(
    axis: Listed, first: object, last: object, number: int
) -> None:
    labels = axis.all_labels
    assert (labels[0], labels[-1], len(labels)) == (first, last, number)
    lattice_axis = axis.label_axis("name")
    assert lattice_axis.labels == labels
    assert (lattice_axis.name, lattice_axis.column_name) == ("name", "d")
    assert lattice_axis.listed == ()


@pytest.mark.parametrize(
    "axis",
    [
        sf.Month("d", "2023-11", "2024-02", "Europe/Berlin", "other", "missing"),
        sf.Week("d"),
        sf.Weekday("d", "Asia/Tokyo"),
        sf.Hour("d", missing="none"),
        sf.Year("d", 2019, 2024),
        sf.Interval(0, 9, missing=True, column="AGE"),
        sf.Categories(["a"], column="KIND"),
        sf.Keys(column="SHOP"),
    ],
)
def test_files_give_back_what_was_declared(axis: Axis) -> None:
    written = msgspec.json.encode(axis)
    assert msgspec.json.decode(written, type=Axis) == axis
    assert sf.Domain(x=axis) == sf.Domain({"x": msgspec.json.decode(written, type=Axis)})
    named = {type(axis).__name__: type(axis)}
    assert eval(repr(axis), named) == axis


def test_what_is_stored_of_a_label_axis_stays_as_it_was() -> None:
    plain = sf.Categories(["a", "b"]).label_axis("kind")
    assert msgspec.json.encode(plain) == b'{"type":"labels","name":"kind","labels":["a","b"]}'
    derived = sf.Month("date", "2024-01", "2024-02", "Europe/Berlin").label_axis("month")
    assert derived == LabelAxis(
        "month",
        ("2024-01", "2024-02"),
        column="date",
        calendar=CalendarField("month", "Europe/Berlin", "2024-01"),
    )
    assert msgspec.json.decode(msgspec.json.encode(derived), type=LabelAxis) == derived


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (sf.Month, "none is named"),
        (lambda: sf.Month(""), "a text that is not empty"),
        (lambda: sf.Weekday(3), "a text that is not empty"),
        (lambda: sf.Weekday("d", timezone="Europe/Berln"), "did you mean 'Europe/Berlin'?"),
        (lambda: sf.Weekday("d", timezone="berlin"), "did you mean 'Europe/Berlin'?"),
        (lambda: sf.Weekday("d", timezone="New York"), "did you mean 'America/New_York'?"),
        (lambda: sf.Weekday("d", timezone="Europe"), "no time zone"),
        (lambda: sf.Weekday("d", timezone=""), "no time zone"),
        (lambda: sf.Weekday("d", timezone="../Europe/Berlin"), "no time zone"),
        (lambda: sf.Weekday("d", timezone="/etc/localtime"), "no time zone"),
        (lambda: sf.Weekday("d", timezone="localtime"), "no time zone"),
        (lambda: sf.Weekday("d", timezone="x\0y"), "no time zone"),
        (lambda: sf.Weekday("d", timezone=1), "a time zone is a text"),
        (lambda: sf.Weekday("d", missing="Monday"), "labels must be distinct"),
        (lambda: sf.Weekday("d", missing=True), "missing must be a text"),
        (lambda: sf.Month("d", "2024-01"), "a first and a last period"),
        (lambda: sf.Month("d", last="2024-01"), "a first and a last period"),
        (lambda: sf.Month("d", "2024-13", "2025-01"), "first is no month"),
        (lambda: sf.Month("d", "2024-01", "2024-02-30"), "last is no month"),
        (lambda: sf.Month("d", 2024, 2025), "first is no month"),
        (lambda: sf.Month("d", "2024-02", "2024-01"), "comes before the first"),
        (lambda: sf.Week("d", "2021-W53", "2022-W01"), "first is no week"),
        (lambda: sf.Week("d", "0001-W01", "9999-W01"), "more than 10,000 periods"),
        (lambda: sf.Year("d"), "years have no first"),
        (lambda: sf.Year("d", 2019), "years have no first"),
        (lambda: sf.Year("d", 0, 10), "first is no year"),
        (lambda: sf.Year("d", True, 10), "first is no year"),
        (lambda: sf.Year("d", 2019, 10_000), "last is no year"),
        (lambda: sf.Interval(0, 1, column=""), "a text that is not empty"),
        (lambda: sf.Categories(["a"], column=3), "a text that is not empty"),
        (lambda: sf.Keys(column=""), "a text that is not empty"),
    ],
)
def test_what_is_no_such_axis_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(sf.UsageError) as caught:
        make()
    assert words in caught.value.obstacle
    assert caught.value.remedy
    assert caught.value.__cause__ is None


def test_axes_work_where_categories_do() -> None:
    domain = sf.Domain(weekday=sf.Weekday("when"), month=sf.Month("when"), wage=sf.Interval(0, 100))
    unit = sf.Unit()
    for question in (
        sf.Histogram(["weekday", "month"]),
        sf.Mean("wage", by="month"),
        sf.Quantiles("wage", by="weekday"),
        sf.Counter(10, by="weekday"),
    ):
        assert str(sf.preview(question, domain=domain, unit=unit, epsilon=1))
    window = sf.window(
        sf.Histogram("month"),
        domain=domain,
        unit=unit,
        accuracy=sf.Within(20),
        risk=sf.Risk(advantage=0.5),
    )
    assert window.feasible
    with pytest.raises(sf.UsageError, match="takes Interval axes"):
        sf.Quantiles("month").needs(domain)
    with pytest.raises(sf.UsageError, match="no bins"):
        sf.Histogram("month", bins=3).needs(domain)


def test_a_stream_counts_by_weekday() -> None:
    domain = sf.Domain(weekday=sf.Weekday("when"))
    source = sf.source(np.zeros((0, 1), "datetime64[us]"), domain, name="visits")
    with sf.Publisher(source, budget=10) as publisher:
        stream = publisher.open(sf.Counter(3, by="weekday"), epsilon=10)
        step = stream.push(["Monday", "Sunday", "Monday"])
        assert len(step.value) == 7


MISSING = sf.Domain(age=sf.Interval(0, 100, missing=True), kind=sf.Categories(["a"]))


def test_missing_numbers_have_a_cell_beside_the_bins_and_nowhere_else() -> None:
    names = sf.Histogram("age", bins=2).needs(MISSING).lattice.axes[0].cell_names()
    assert names == ["below 50", "50 and above", "missing"]
    for question in (sf.Quantiles("age"), sf.KMeans(2, "age"), sf.MedianPartitioner("age")):
        (axis,) = question.needs(MISSING).lattice.axes
        assert axis.has_edges
    assert sf.Mean("age", by="kind").needs(MISSING).lattice.size >= 1
    assert sf.Interval(0, 1, missing=False) == sf.Interval(0, 1)
