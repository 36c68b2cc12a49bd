"""Dates and times are read and written in one place."""

import datetime as dt
import math

import numpy as np
import pytest

from sfumato.domain import scale, times

MORNING = dt.datetime(2013, 1, 1, 6, 30)
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize("moment", [dt.date(2013, 1, 1), MORNING], ids=repr)
def test_what_is_written_is_read_again(moment):
    assert times.parse(scale.plain_bound(moment)) == moment


def test_a_time_is_written_in_utc_without_its_zone():
    assert scale.plain_bound(MORNING.replace(tzinfo=EAST)) == "2013-01-01T04:30:00"


def test_texts_stand_for_days_or_microseconds():
    assert (scale.unit_of("1970-01-03"), scale.number_of("1970-01-03")) == ("day", 2.0)
    second = "1970-01-01T00:00:01"
    assert (scale.unit_of(second), scale.number_of(second)) == ("microsecond", 1e6)


def test_a_wall_clock_has_no_zone():
    for entry in ("2013-01-01T06:30", " 2013-01-01T06:30+02:00 ", MORNING.replace(tzinfo=EAST)):
        assert times.wall_clock(entry) == MORNING
    assert times.wall_clock(np.datetime64(MORNING)) == MORNING
    assert times.wall_clock(dt.date(2013, 1, 1)) == dt.datetime(2013, 1, 1)
    for wrong in ("monday", 7, None):
        assert times.wall_clock(wrong) is None


def test_python_dates_and_times_have_nanoseconds():
    assert times.nanoseconds(dt.date(1970, 1, 2)) == 86_400 * 10**9
    assert times.nanoseconds(dt.datetime(1970, 1, 1, 2, tzinfo=EAST)) == 0
    assert times.microseconds(dt.datetime(1970, 1, 1, 0, 0, 1)) == 10**6
    for wrong in ("1970-01-01", 0, None, math.nan):
        assert times.nanoseconds(wrong) is None


def test_a_zone_may_move_a_time_out_of_the_calendar():
    assert times.nanoseconds(dt.datetime(1, 1, 1, tzinfo=EAST)) < times.nanoseconds(
        dt.date(1, 1, 1)
    )


@pytest.mark.parametrize(
    ("field", "found"),
    [
        (b"1970-01-01", 0),
        (b" 1970-01-02\t", 86_400 * 10**6),
        (b"1970-01-01 00:00:01", 10**6),
        (b"1970-01-01T00:00:00.1234567", 123_456),
        (b"1970-01-01T02:00+02", 0),
        (b"1970-01-01T02:00+0200", 0),
        (b"1972-02-29", 789 * 86_400 * 10**6),
        (b"1900-02-29", None),
        (b"1970-02-30", None),
        (b"1970-13-01", None),
        (b"1970-01-01T24:00", None),
        (b"1970-01-01T00:00+24:00", None),
        (b"01.01.1970", None),
        (b"", None),
    ],
)
def test_fields_of_files_are_read_strictly(field, found):
    assert times.field_microseconds(field) == found


def test_fields_before_the_year_1_are_read():
    assert times.field_microseconds(b"0000-03-01") < times.field_microseconds(b"0001-01-01")
