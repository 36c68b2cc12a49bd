"""No object decides whether a frame is refused, or how its other objects are read."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from data.refusals import refuses
from data.releases import released
from sfumato.data import count, source
from sfumato.data.objects import person
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import Lattice

ONE_DAY = sf.Interval("2020-01-01T00:00", "2020-01-02T00:00")


TWO = sf.Interval(0, 2)


def frame_of_objects(values: Sequence[object]) -> pd.DataFrame:
    return pd.DataFrame({"when": pd.Series(values, dtype=object), "x": 1.0})


def test_one_date_among_times_leaves_the_times_as_they_are() -> None:
    hours: list[object] = [dt.datetime(2020, 1, 1, hour) for hour in range(24)]
    date = dt.date(2020, 1, 1)
    last = pd.Timestamp("2020-01-01T23:00:00.000000001")
    assert released(frame_of_objects(hours), "when", ONE_DAY, 4) == [6, 6, 6, 6]
    assert released(frame_of_objects([date, *hours]), "when", ONE_DAY, 4) == [7, 6, 6, 6]
    assert released(frame_of_objects([*hours, date, None, pd.NaT]), "when", ONE_DAY, 4) == [
        7,
        6,
        6,
        6,
    ]
    assert released(frame_of_objects([*hours, last.tz_localize("UTC")]), "when", ONE_DAY, 4) == [
        6,
        6,
        6,
        7,
    ]
    for persons, number in (
        (hours, 24),
        ([date, *hours], 24),
        ([pd.Timestamp(i) for i in range(50)], 50),
        ([date, date, None], 1),
    ):
        assert sum(released(frame_of_objects(persons), "x", TWO, 2, person="when")) == number


ODD: list[Any] = [
    None,
    math.nan,
    pd.NA,
    pd.NaT,
    "text",
    "\ud800",
    b"\xff",
    True,
    3,
    10**400,
    2.5,
    -math.inf,
    Decimal("0.5"),
    Decimal("sNaN"),
    1j,
    np.float32(1.5),
    dt.date(2020, 1, 1),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=9))),
    pd.Timestamp("2020-01-01T05:00:00.000000001"),
    dt.timedelta(1),
    uuid.UUID(int=7),
    {"a": 1},
    [1, 2],
    object(),
]


DOMAIN = sf.Domain(
    x=sf.Interval(0, 10, missing=9.5),
    at=sf.Interval("2020-01-01T00:00", "2020-01-02T00:00", missing="2020-01-01T23:30"),
    word=sf.Categories(["text", "3"], other="else", missing="unknown"),
    code=sf.Categories([1, 3], other="else", missing="unknown"),
    yes=sf.Categories([True, False], missing="unknown"),
    key=sf.Keys(),
)


LATTICES = {
    "x": Lattice((grid_axis("x", DOMAIN["x"], 10),)),  # type: ignore[arg-type]
    "at": Lattice((grid_axis("at", DOMAIN["at"], 24),)),  # type: ignore[arg-type]
    **{name: sf.Histogram(name).needs(DOMAIN).lattice for name in ("word", "code", "yes")},
}


PLAIN: dict[str, list[Any]] = {
    "x": [1, 2.5, Decimal("3.5")],
    "at": [dt.datetime(2020, 1, 1, 5), dt.date(2020, 1, 1)],
    "word": ["text", "3"],
    "code": [1, 3, 3.0],
    "yes": [True, np.bool_(False)],
}


def frame(name: str, values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object)})


def counted(name: str, values: list[Any]) -> list[int]:
    src = sf.source(frame(name, values), DOMAIN)
    src.require([LATTICES[name]])
    return [int(each) for each in count(src, [LATTICES[name]])[0].counts]


@pytest.mark.parametrize("name", LATTICES)
def test_one_object_moves_itself_alone(name: str) -> None:
    before = counted(name, PLAIN[name])
    for odd in ODD:
        for values in ([odd, *PLAIN[name]], [*PLAIN[name], odd]):
            after = counted(name, values)
            assert sum(after) == sum(before) + 1, odd
            assert all(b >= a for a, b in zip(before, after, strict=True)), odd


def test_objects_are_read_as_the_domain_declares() -> None:
    assert counted("x", [True, 3, 10**400, -math.inf, Decimal("0.5"), "text", 1j]) == [
        2,
        1,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        3,
    ]
    assert counted("code", [3.0, True, 4, "3", None]) == [0, 1, 1, 3]
    assert counted("word", ["text", 3, "x", b"text"]) == [1, 0, 1, 2]
    keys = count(
        sf.source(frame("key", [5, "5", True, 2.5, "\ud800"]), DOMAIN),
        [sf.Histogram("key").needs(DOMAIN).lattice],
    )[0]
    assert dict(zip(keys.keys["key"].to_pylist(), keys.counts.tolist(), strict=True)) == {
        "5": 2,
        "True": 1,
    }  # type: ignore[index]


def test_ids_of_persons_among_objects_are_told_apart() -> None:
    assert person(7) == person(7.0) == person(Decimal(7)) == person(np.int8(7))
    assert (
        len(
            {
                person(each)
                for each in (7, "7", b"7", 7.5, "n7", uuid.UUID(int=7), dt.date(2020, 1, 7))
            }
        )
        == 7
    )
    assert [person(each) for each in (None, math.nan, pd.NaT, object(), {})] == [None] * 5
    domain = sf.Domain(x=sf.Interval(0, 1))
    for odd in ODD:
        data = frame("p", [1, 1, "a", odd]).assign(x=0.5)
        src = sf.source(data, domain, person="p")
        assert count(src, [Lattice((grid_axis("x", domain["x"], 1),))])[0].total in (2, 3)  # type: ignore[arg-type]


PERIODS = [dt.date(2020, 1, 1), dt.date(2020, 2, 1), None, "text", pd.Timestamp("2020-02-01 09:00")]
AXES_OF_DAYS: dict[str, Any] = {
    "day": sf.Interval("2020-01-01", "2020-03-01"),
    "month": sf.Month("day"),
}


@pytest.mark.parametrize("axes", [(), ("day",), ("month",), ("day", "month")])
def test_dates_among_objects_are_periods(axes: tuple[str, ...]) -> None:
    """As a period, as an axis, and as both; and what they are no value of the frame decides."""
    frame = pd.DataFrame({"p": "a", "x": 1.0, "day": pd.Series(PERIODS * 2, dtype=object)})
    domain = sf.Domain(x=TWO, **{name: AXES_OF_DAYS[name] for name in axes})
    lattice = sf.Histogram(["x", *axes], bins=2).needs(domain).lattice
    by_day = source(frame, domain, person=["p", "day"])
    by_day.require([lattice])
    # Two days of one person, of whom one row each is counted.
    assert count(by_day, [lattice])[0].total == 2
    assert count(source(frame, domain), [lattice])[0].total == (6 if axes else 10)
    times = frame.assign(day=pd.Timestamp("2020-01-01"))
    refuses(times, "a period is a date", domain=domain, lattice=lattice, person=["p", "day"])
