"""Calendars: which step a moment lies in, what steps are called, and what is refused."""

from __future__ import annotations

import datetime as dt
import random

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.questions.counters.calendar import ListedSteps


@pytest.mark.parametrize(
    ("first", "last", "every", "steps", "second", "end"),
    [
        ("2013-01-01", "2013-12-31", "1d", 365, "2013-01-02", "2013-12-31"),
        ("2012-02-28", "2012-03-01", "1d", 3, "2012-02-29", "2012-03-01"),
        ("2013-01-01", "2013-12-31", "1w", 53, "2013-01-08", "2013-12-31"),
        ("2012-11-01", "2014-02-15", "1mo", 16, "2012-12-01", "2014-02-01"),
        ("2012-11-01", "2014-02-15", "3mo", 6, "2013-02-01", "2014-02-01"),
        ("2013-01-01", "2013-01-01T23:59", "15min", 96, "2013-01-01T00:15", "2013-01-01T23:45"),
        ("2013-01-01T06:00", "2013-01-02", "6h", 4, "2013-01-01T12:00", "2013-01-02T00:00"),
    ],
)
def test_steps_and_their_names(
    first: str, last: str, every: str, steps: int, second: str, end: str
) -> None:
    calendar = sf.Calendar(first, last, every)
    assert len(calendar) == steps
    assert (calendar.name(1), calendar.name(steps - 1)) == (second, end)
    assert [calendar.place(calendar.name(place)) for place in range(steps)] == list(range(steps))
    assert len({calendar.name(place) for place in range(steps)}) == steps
    assert sf.Calendar.of_length(first, steps, every).name(steps - 1) == end
    assert msgspec.json.decode(msgspec.json.encode(calendar), type=sf.Calendar) == calendar


def test_every_moment_lies_in_the_step_whose_beginning_it_follows() -> None:
    dice = random.Random(3)
    for every in ("1d", "1w", "1mo", "7min", "5h", "2mo"):
        calendar = sf.Calendar("2013-01-01", "2013-12-31", every)
        begins = [dt.datetime.fromisoformat(calendar.name(place)) for place in range(len(calendar))]
        for _ in range(50):
            moment = begins[0] + dt.timedelta(seconds=dice.randrange(364 * 86400))
            assert calendar.place(moment) == sum(begin <= moment for begin in begins) - 1


def test_what_is_no_step_has_no_place() -> None:
    year = sf.Calendar("2013-01-01", dt.date(2013, 12, 31))
    for entry in (
        "2012-12-31T23:59",
        "2014-01-01",
        "rubbish",
        "",
        None,
        5,
        1.5,
        True,
        dt.date(2020, 1, 1),
    ):
        assert year.place(entry) is None
    for entry in (
        "2013-12-31T23:59:59+02:00",
        dt.datetime(2013, 12, 31, 5, tzinfo=dt.UTC),
        np.datetime64("2013-12-31"),
        dt.date(2013, 12, 31),
    ):
        assert year.place(entry) == 364
    week = ListedSteps(["mon", "tue", "3"])
    assert [
        week.place(entry) for entry in ("tue", " tue ", 3, np.int64(3), True, None, 2.5, "wed")
    ] == [1, 1, 2, 2, None, None, None, None]


def test_steps_are_over_when_the_next_begins() -> None:
    year = sf.Calendar("2013-01-01", "2013-12-31")
    for now, over in [
        ("2012-05-05", 0),
        ("2013-01-01T23:59", 0),
        ("2013-01-02", 1),
        ("2013-12-31T12:00", 364),
        ("2020-01-01", 365),
    ]:
        assert year.over(dt.datetime.fromisoformat(now)) == over
    assert ListedSteps(["a", "b"]).over(dt.datetime(2020, 1, 1)) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("2013-13-01", "2013-12-31"),
        ("2013-01-01", "soon"),
        ("2013-01-02", "2013-01-01"),
        ("2013-01-31", "2013-12-31", "1mo"),
        ("2013-01-01", "2013-12-31", "0d"),
        ("2013-01-01", "2013-12-31", "1y"),
        ("2013-01-01", "2013-12-31", 1),
        ("1900-01-01", "2013-12-31", "1min"),
        (5, 6),
    ],
)
def test_wrong_calendars(words: tuple[object, ...]) -> None:
    with pytest.raises(sf.UsageError) as refusal:
        sf.Calendar(*words)  # type: ignore[arg-type]
    assert len(refusal.value.args) == 3


@pytest.mark.parametrize("names", [[], ["a", "a"], ["a", ""], ["a", 5.5]])
def test_wrong_lists(names: list[object]) -> None:
    with pytest.raises(sf.UsageError):
        sf.Counter(names)  # type: ignore[arg-type]


def test_calendars_end() -> None:
    with pytest.raises(sf.UsageError):
        sf.Calendar("2013-01-01", "2013-01-02").name(2)
    with pytest.raises(sf.UsageError):
        ListedSteps(["a"]).name(1)
    for steps, every in ((0, "1d"), (10**7, "999999mo")):
        with pytest.raises(sf.UsageError):
            sf.Calendar.of_length("2013-01-01", steps, every)
    with pytest.raises(sf.UsageError, match="takes no more rows"):
        sf.Counter(sf.Calendar("2013-01-01", "2013-12-31"), late="count")


def test_a_counter_over_a_calendar_is_one_over_as_many_steps() -> None:
    year = sf.Counter(sf.Calendar("2013-01-01", "2013-12-31"))
    mechanism = year.settle(None, sf.Unit(), sf.PureDP(1)).mechanism
    assert mechanism == sf.Counter(365).settle(None, sf.Unit(), sf.PureDP(1)).mechanism
    assert str(year.preview(None, sf.Unit(), sf.PureDP(1))) == str(
        sf.Counter(365).preview(None, sf.Unit(), sf.PureDP(1))
    )
    assert sf.Counter(["a", "b"]).steps == 2
    for counter in (year, sf.Counter(["a", "b"]), sf.Counter(365), sf.Counter(None)):
        assert msgspec.json.decode(msgspec.json.encode(counter), type=sf.Counter) == counter
    assumptions = year.settle(None, sf.Unit(), sf.PureDP(1)).guarantee(True).assumptions
    assert any(line.startswith("The steps are those of a public calendar") for line in assumptions)
    assert not any(line.startswith("Which steps there are") for line in assumptions)
