"""Public axes as people declare them."""

import datetime as dt
import math
from functools import partial

import numpy as np
import pytest

from sfumato.domain.domain import Categories, Domain, Interval, Keys, fine_lattice, grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis
from sfumato.errors import BoundsRequired, UsageError


@pytest.mark.parametrize(
    ("arguments", "obstacle"),
    [
        ((1, 1), "below upper"),
        ((2, 1), "below upper"),
        ((0, math.nan), "finite"),
        ((0, math.inf), "finite"),
        ((-1e101, 0), "finite"),
        ((0, "2013-01-01"), "one bound is a date"),
        (("2013-01-01", "2013-01-01T06:00"), "one bound is a date"),
        ((0, 10, 3), "does not divide"),
        ((0, 1, 0.3), "does not divide"),
        ((0, 10, 0), "positive number"),
        ((0, 10, -1), "positive number"),
        ((0, 10, math.nan), "positive number"),
        ((0, 10, True), "positive number"),
        ((0, 10, "1"), "positive number"),
        ((0, 2**41, 1), "2\\^40"),
        (("not a date", 1), "a number, a date"),
        ((None, 1), "a number, a date"),
        ((True, 2), "a number, a date"),
    ],
)
def test_an_interval_that_makes_no_sense(arguments, obstacle):
    with pytest.raises(UsageError, match=obstacle):
        Interval(*arguments)


def test_bounds_are_required():
    with pytest.raises(BoundsRequired):
        Interval(None, 1)
    with pytest.raises(BoundsRequired):
        Domain(x=Interval)
    with pytest.raises(BoundsRequired):
        Domain(x=(0, 1))
    with pytest.raises(UsageError):
        Domain()


def test_steps_are_exact():
    assert Interval(0, 1, step=0.1).natural_cells == 10
    assert Interval(0.1, 0.7, step=0.2).natural_cells == 3
    assert Interval(-180, 180).natural_cells is None
    assert Interval(np.int64(0), np.float64(4), step=2).natural_cells == 2


def test_dates_and_times():
    year = Interval(dt.date(2013, 1, 1), "2014-01-01")
    assert (year.time, year.natural_cells, year.numbers) == ("day", 365, (15706.0, 16071.0))
    assert Interval("2013-01-01", "2013-01-15", step=dt.timedelta(days=7)).natural_cells == 2
    day = Interval(dt.datetime(2013, 1, 1), "2013-01-02T00:00", step=dt.timedelta(hours=1))
    assert (day.time, day.natural_cells) == ("microsecond", 24)
    east = dt.timezone(dt.timedelta(hours=2))
    from_the_east = Interval(dt.datetime(2013, 1, 1, 2, tzinfo=east), dt.datetime(2013, 1, 2))
    assert from_the_east.numbers[0] == day.numbers[0]


@pytest.mark.parametrize("labels", [[], ["a", "a"], "ab", [1.5], [None]], ids=repr)
def test_categories_that_make_no_sense(labels):
    with pytest.raises(UsageError):
        Categories(labels)
    with pytest.raises(UsageError):
        Categories(["a", "else"], other="else")


def test_selecting_axes():
    domain = Domain(x=Interval(0, 1), k=Categories(["a"]), y=Interval(0, 1), s=Keys())
    assert domain.select(None) == ("x", "y")
    assert domain.select("k") == ("k",)
    assert list(domain.intervals(["y", "x"])) == ["y", "x"]
    for wrong in ("z", ["x", "x"], []):
        with pytest.raises(UsageError):
            domain.select(wrong)
    for wrong in ("k", "s"):
        with pytest.raises(UsageError, match="Interval axes"):
            domain.intervals(wrong)
    with pytest.raises(KeyError):
        domain["z"]
    assert hash(domain) == hash(Domain(dict(domain)))


def test_default_lattices():
    assert fine_lattice({"x": Interval(0, 1)}).shape == (2**20,)
    assert fine_lattice({"x": Interval(0, 1), "y": Interval(0, 24, step=1)}).shape == (2**12, 24)


def test_a_step_finer_than_doubles_is_refused():
    with pytest.raises(UsageError, match="coarser than that step"):
        Interval(10**9, 10**9 + 1, step=1e-7)


BINS = partial(grid_axis, cells=4)


def test_each_kind_of_axis_lays_its_own_cells():
    assert Interval(0, 8).on_lattice("x", BINS) == grid_axis("x", Interval(0, 8), 4)
    labels = Categories(["a"], other="else", missing="not known")
    laid = labels.on_lattice("k", BINS)
    assert laid == LabelAxis("k", ("a", "else", "not known"), other=True, missing=True)
    assert Keys().on_lattice("s", BINS) == KeyAxis("s")


def test_axes_of_one_kind():
    domain = Domain(x=Interval(0, 1), k=Categories(["a"]), s=Keys())
    assert [*domain.of_kind(Interval)] == ["x"]
    assert [*domain.of_kind(Categories)] == ["k"]
    assert [*domain.of_kind(Keys)] == ["s"]
