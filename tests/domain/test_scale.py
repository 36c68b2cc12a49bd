"""What the numbers of an axis stand for: read, printed and drawn by kind."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pytest

from sfumato.domain.scale import DATES, NUMBERS, TIMES, number_of, plain_bound, scale_of
from sfumato.errors import BoundsRequired, UsageError

SCALES = [NUMBERS, DATES, TIMES]
JANUARY = np.array([0.0, 31.0])
TWO_HOURS = np.array([0.0, 7.2e9])


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
def test_a_scale_is_found_by_its_unit(scale):
    assert scale_of(scale.unit) is scale


def test_coordinates_are_numbers_and_where_axes_count_time_dates():
    assert DATES.coordinate(dt.date(1970, 1, 2), "x") == 1.0
    assert TIMES.coordinate("1970-01-01T00:00:01", "x") == 1e6
    for scale in SCALES:
        assert scale.coordinate(7, "x") == 7.0
    for wrong in ("word", None, dt.date(2013, 1, 1)):
        with pytest.raises(UsageError, match="x = "):
            NUMBERS.coordinate(wrong, "x")


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: scale.kind)
@pytest.mark.parametrize("wrong", ["word", None, True, [1]], ids=repr)
def test_anything_else_is_no_coordinate(scale, wrong):
    with pytest.raises(UsageError, match="not a coordinate"):
        scale.coordinate(wrong, "x")


def test_a_step_is_a_number_in_files():
    hour = dt.timedelta(hours=1)
    assert NUMBERS.step(Decimal("0.5")) == 0.5
    assert NUMBERS.step(np.float64(2)) == 2
    assert DATES.step(dt.timedelta(weeks=1)) == 7
    assert DATES.step(hour) == 1 / 24
    assert TIMES.step(hour) == 3600
    assert TIMES.numbers_a_step == TIMES.coordinate("1970-01-01T00:00:01", "a second")


def test_numbers_are_printed_shortly():
    assert NUMBERS.text(np.array([-1.5, 20.0])) == ["-1.5", "20"]
    assert NUMBERS.picture_text(np.array([-1.5, 20.0])) == ["−1.5", "20"]


def test_dates_and_times_are_printed_in_iso_form():
    assert DATES.text(JANUARY) == ["1970-01-01", "1970-02-01"]
    assert DATES.picture_text(JANUARY) == DATES.text(JANUARY)
    assert TIMES.text(TWO_HOURS)[1] == "1970-01-01T02:00:00.000000"


def test_pictures_show_times_to_the_minute():
    assert TIMES.picture_text(TWO_HOURS) == ["1970-01-01T00:00", "1970-01-01T02:00"]


def test_frames_hold_dates_and_times():
    assert NUMBERS.array(JANUARY) is JANUARY
    assert DATES.array(JANUARY).dtype == "datetime64[D]"
    assert TIMES.array(TWO_HOURS).dtype == "datetime64[us]"


def test_pictures_place_dates_and_times_by_the_day():
    assert DATES.positions(JANUARY).tolist() == [0.0, 31.0]
    assert TIMES.positions(np.array([TIMES.numbers_a_day])).tolist() == [1.0]
    assert NUMBERS.positions(JANUARY) is JANUARY


@pytest.mark.parametrize(
    ("bound", "plain"),
    [
        (1.0, 1),
        (-0.0, 0),
        (0.5, 0.5),
        (Decimal("0.5"), 0.5),
        (np.int64(7), 7),
        (np.datetime64("2013-01-01"), "2013-01-01"),
        (dt.date(2013, 1, 1), "2013-01-01"),
        ("2013-01-01T06:00", "2013-01-01T06:00:00"),
        ("2013-01-01T06:00+02:00", "2013-01-01T04:00:00"),
    ],
    ids=repr,
)
def test_bounds_have_one_form(bound, plain):
    assert plain_bound(bound) == plain
    assert type(plain_bound(bound)) is type(plain)


def test_what_no_double_holds_is_infinite():
    assert plain_bound(Decimal("1e9999")) == math.inf
    assert plain_bound(10**400) == math.inf


@pytest.mark.parametrize("wrong", ["word", None, True, [0], np.array([0, 1])], ids=repr)
def test_anything_else_is_no_bound(wrong):
    with pytest.raises(BoundsRequired):
        plain_bound(wrong)


def test_a_zone_may_not_move_a_bound_out_of_the_calendar():
    east = dt.timezone(dt.timedelta(hours=2))
    with pytest.raises(BoundsRequired, match="outside the calendar"):
        plain_bound(dt.datetime(1, 1, 1, tzinfo=east))


def test_a_bound_is_the_number_that_stands_for_it():
    assert number_of("1970-01-02") == 1.0
    assert number_of("1970-01-01T00:00:01") == 1e6
    assert number_of(3) == 3.0
