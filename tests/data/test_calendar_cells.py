"""Cells of dates and times on axes of the calendar."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data.cells import calendar_cells, local_times
from sfumato.domain.lattice import DROPPED, LabelAxis
from sfumato.errors import InternalError

DAY = dt.date(1, 1, 1)
DAYS = [DAY + dt.timedelta(days=offset) for offset in (*range(0, 3_652_058, 997), 3_652_058)]


@pytest.mark.parametrize(
    ("axis", "label"),
    [
        (sf.Month("d"), lambda day: f"{day:%B}"),
        (sf.Weekday("d"), lambda day: f"{day:%A}"),
        (sf.Week("d"), lambda day: day.isocalendar().week),
        (sf.Year("d", 1, 9999), lambda day: day.year),
        (sf.Month("d", "1900-01", "2400-12"), lambda day: f"{day.year:04}-{day.month:02}"),
        (
            sf.Week("d", "1900-W01", "2080-W52"),
            lambda day: f"{day.isocalendar().year:04}-W{day.isocalendar().week:02}",
        ),
    ],
)
def test_days_of_all_years(axis, label):
    """Of the first day and the last, of leap days, and of weeks that belong to another year."""
    lattice_axis = axis.label_axis("axis")
    cells = calendar_cells(pa.array(DAYS, pa.date32()), lattice_axis)
    labels = list(lattice_axis.labels)
    place = {each: cell for cell, each in enumerate(labels)}
    assert cells.tolist() == [place.get(label(day), DROPPED) for day in DAYS]
    assert (cells >= 0).sum() > 60


def test_every_day_of_a_few_years():
    """1900 has no leap day, 2000 has one, and 2020 has 53 weeks."""
    for year in (1900, 1969, 2000, 2020, 2021):
        days = [dt.date(year, 1, 1) + dt.timedelta(days=i) for i in range(365)]
        weeks = calendar_cells(pa.array(days, pa.date32()), sf.Week("d").label_axis("w"))
        assert weeks.tolist() == [day.isocalendar().week - 1 for day in days]
        months = calendar_cells(pa.array(days, pa.date64()), sf.Month("d").label_axis("m"))
        assert months.tolist() == [day.month - 1 for day in days]


FAR = [-(2**62), -62_135_596_800_000_001, 253_402_300_800_000_000, 2**62]


@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
@pytest.mark.parametrize("timezone", [None, "Asia/Tokyo"])
def test_times_outside_the_calendar_are_missing(type_, timezone):
    """Arrow's own functions would wrap around."""
    column = pa.array([*FAR, 0], pa.int64()).cast(type_)
    axis = sf.Weekday("d", timezone=timezone, missing="none").label_axis("w")
    assert calendar_cells(column, axis).tolist() == [7, 7, 7, 7, 3]


def test_a_zone_may_lead_out_of_the_calendar():
    last = pa.array([253_402_300_799_999_999], pa.int64()).cast(pa.timestamp("us", "UTC"))
    for timezone, known in (("Asia/Tokyo", False), ("America/New_York", True)):
        _, is_known = local_times(last, timezone)
        assert is_known.tolist() == [known]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_all_units_give_the_same_hours(unit):
    hours = [dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29, 7), None]
    axis = sf.Hour("t").label_axis("h")
    for column in (pa.array(hours, pa.timestamp(unit)), pa.array(hours, pa.timestamp(unit, "UTC"))):
        for form in (column, column.dictionary_encode(), column.slice(1)):
            cells = calendar_cells(form, axis).tolist()
            assert cells == [23, 7, DROPPED][-len(form) :]


def test_what_is_finer_than_a_microsecond_is_floored():
    column = pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))
    assert calendar_cells(column, sf.Weekday("t").label_axis("w")).tolist() == [2]


def test_a_span_sends_other_rows_where_it_says():
    column = pa.array([dt.date(2019, 12, 31), dt.date(2020, 1, 1), None], pa.date32())
    for other, missing, cells in (
        (None, None, [DROPPED, 0, DROPPED]),
        ("o", None, [2, 0, DROPPED]),
        (None, "m", [DROPPED, 0, 2]),
        ("o", "m", [2, 0, 3]),
    ):
        axis = sf.Year("d", 2020, 2021, other=other, missing=missing).label_axis("y")
        assert calendar_cells(column, axis).tolist() == cells


def test_a_column_of_nulls_is_missing():
    axis = sf.Month("d", missing="none").label_axis("m")
    assert calendar_cells(pa.nulls(3), axis).tolist() == [12] * 3
    assert calendar_cells(pa.array([], pa.date32()), axis).dtype == np.int64


def test_listed_labels_are_none_of_the_calendar():
    with pytest.raises(InternalError):
        calendar_cells(pa.nulls(1), LabelAxis("x", ("a",)))
