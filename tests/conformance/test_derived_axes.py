"""Axes that are derived, and conditions on rows, give the same cubes from every kind of table."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from conformance.kinds import KINDS, Rows, people
from data import random_tables
from sfumato.data import count, source
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import Lattice

ROWS = people(400, seed=5)
DOMAIN = Domain(
    {
        **random_tables.DOMAIN,
        "month": sf.Month("day", missing="no day"),
        "span": sf.Month("day", "2019-12", "2020-02", other="another month"),
        "weekday": sf.Weekday("day"),
        "week": sf.Week("at"),
        "weeks": sf.Week("day", "2020-W01", "2020-W08"),
        "year": sf.Year("at", 2019, 2020),
        "hour": sf.Hour("at"),
        "size": sf.Interval(-1.5, 8.5, missing=True, column="x"),
        "again": sf.Categories([3, 1, 2], column="code", missing="none"),
    }
)
WHERE = {"weekday": ["Monday", "Tuesday", "Sunday"], "x": (0, None), "yes": [True]}
ASKED = [
    ["month", "weekday"],
    ["span", "again"],
    ["week", "hour"],
    ["weeks", "year"],
    ["size", "day"],
]


def lattices() -> list[Lattice]:
    bins = {"size": 5}
    questions = [sf.Histogram(axes, bins=bins if "size" in axes else None) for axes in ASKED]
    return [question.needs(DOMAIN).lattice for question in questions]


# --- plain Python -------------------------------------------------------------------------------


def label(name: str, row: dict[str, Any]) -> str | int | None:
    """What a row counts as on an axis; None: its row is dropped."""
    if name in ("again", "size", "day"):
        return _plain(name, row)
    day = row["day"]
    at = row["at"]
    value = at if name in ("week", "year", "hour") else day
    if value is None:
        return "no day" if name == "month" else None
    iso = value.isocalendar()
    found: dict[str, str | int] = {
        "month": f"{value:%B}",
        "span": f"{value:%Y-%m}" if "2019-12" <= f"{value:%Y-%m}" <= "2020-02" else "another month",
        "weekday": f"{value:%A}",
        "week": iso.week,
        "weeks": f"{iso.year}-W{iso.week:02}",
        "year": value.year,
        "hour": getattr(value, "hour", 0),
    }
    return found[name]


def _plain(name: str, row: dict[str, Any]) -> str | int | None:
    if name == "again":
        return "none" if row["code"] is None else row["code"]
    if name == "size":
        x = row["x"]
        if x is None or math.isnan(x):
            return 5
        return math.floor((min(max(x, -1.5), 8.4) + 1.5) / 2)
    day = row["day"]
    if day is None:
        return None
    return min(max((day - dt.date(2019, 12, 30)).days, 0), 61)


def expected(rows: Rows, lattice: Lattice) -> dict[tuple[int, ...], int]:
    found: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        cell = []
        for axis in lattice.axes:
            value = label(axis.name, row)
            known = getattr(axis, "labels", range(axis.size))
            cell.append(list(known).index(value) if value in known else -1)
        if -1 not in cell:
            found[tuple(cell)] += 1
    return dict(found)


def satisfies(row: dict[str, Any]) -> bool:
    x = row["x"]
    above = x is not None and not math.isnan(x) and x >= 0
    return label("weekday", row) in WHERE["weekday"] and above and row["yes"] is True


def test_plain_python_sees_something() -> None:
    assert all(len(expected(ROWS, lattice)) > 7 for lattice in lattices())
    kept = [row for row in ROWS if satisfies(row)]
    assert 20 < len(kept) < len(ROWS) / 2


# --- every kind ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_cubes_of_plain_python(kind: str, tmp_path: Path) -> None:
    cubes = count(source(KINDS[kind](ROWS, tmp_path), DOMAIN), lattices())
    for cube in cubes:
        assert random_tables.found(cube) == expected(ROWS, cube.lattice), cube.lattice.names


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("person", [None, "who"])
def test_every_kind_of_table_keeps_the_rows_of_a_condition(
    kind: str, person: str | None, tmp_path: Path
) -> None:
    src = source(KINDS[kind](ROWS, tmp_path), DOMAIN, person, 10**6, where=WHERE)
    kept = [row for row in ROWS if satisfies(row) and (person is None or row["who"] is not None)]
    for cube in count(src, lattices()):
        assert random_tables.found(cube) == expected(kept, cube.lattice), cube.lattice.names


def test_an_array_has_a_column_for_each_column_of_the_domain() -> None:
    """Axes that are derived from one column share it."""
    domain = Domain(
        month=sf.Month("when"), weekday=sf.Weekday("when"), hour=sf.Hour("when"), at=sf.Keys()
    )
    assert domain.columns == ("when", "at")
    only = Domain(month=sf.Month("when"), weekday=sf.Weekday("when"))
    days = np.array([["2024-02-29"], ["2023-12-31"], ["NaT"]], dtype="datetime64[D]")
    (cube,) = count(source(days, only), [sf.Histogram(list(only)).needs(only)])
    assert random_tables.found(cube) == {(1, 3): 1, (11, 6): 1}


# --- instants -----------------------------------------------------------------------------------

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", None)
ORIGINS = (
    "1893-03-31T22:50:00",  # Berlin leaves its local mean time
    "1945-05-23T23:00:00",
    "1969-12-31T12:00:00",
    "2020-12-31T12:00:00",  # the last days of 2020 lie in week 53
    "2024-02-28T18:00:00",
    "2024-03-31T00:00:00",
    "2024-10-27T00:00:00",
    "2024-11-03T04:00:00",
    "2038-07-01T00:00:00",  # beyond 32 bits
)


def instants() -> list[dt.datetime | None]:
    """Every twenty minutes of half a day after each of the origins, and nothing."""
    found: list[dt.datetime | None] = [None]
    for origin in ORIGINS:
        start = dt.datetime.fromisoformat(origin).replace(tzinfo=dt.UTC)
        found += [start + dt.timedelta(minutes=20 * i, seconds=1) for i in range(72)]
    return found


def zoned_domain(timezone: str | None) -> Domain:
    return Domain(
        weekday=sf.Weekday("when", timezone=timezone, missing="none"),
        hour=sf.Hour("when", timezone=timezone, missing="none"),
        month=sf.Month("when", "1893-03", "2038-07", timezone=timezone, missing="none"),
        week=sf.Week("when", timezone=timezone, missing="none"),
        weeks=sf.Week("when", "2020-W50", "2021-W02", timezone, "other", "none"),
        year=sf.Year("when", 1890, 2040, timezone, missing="none"),
    )


def local_label(name: str, when: dt.datetime | None, timezone: str | None) -> str | int:
    if when is None:
        return "none"
    local = when.astimezone(ZoneInfo(timezone) if timezone else dt.UTC)
    iso = local.isocalendar()
    week = f"{iso.year}-W{iso.week:02}"
    labels: dict[str, str | int] = {
        "weekday": f"{local:%A}",
        "hour": local.hour,
        "month": f"{local.year:04}-{local.month:02}",
        "week": iso.week,
        "weeks": week if "2020-W50" <= week <= "2021-W02" else "other",
        "year": local.year,
    }
    return labels[name]


def _text(moments: list[Any], folder: Path, offset: dt.timedelta) -> Path:
    """Fields with a zone, which is not the axis' own."""
    zone = dt.timezone(offset)
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["when"])
        writer.writerows([["NA" if x is None else x.astimezone(zone).isoformat()] for x in moments])
    return folder / "t.csv"


def _arrow(moments: list[Any], type_: pa.DataType) -> pa.Table:
    return pa.table({"when": pa.array(moments, type_)})


def _parquet(moments: list[Any], folder: Path) -> Path:
    pq.write_table(_arrow(moments, pa.timestamp("us", "UTC")), folder / "t.parquet")
    return folder / "t.parquet"


INSTANTS: dict[str, Callable[[list[Any], Path], Any]] = {
    "arrow, us": lambda m, _: _arrow(m, pa.timestamp("us", "UTC")),
    "arrow, s in another zone": lambda m, _: _arrow(m, pa.timestamp("s", "Pacific/Auckland")),
    "arrow, ns": lambda m, _: _arrow(m, pa.timestamp("ns", "UTC")),
    "parquet": _parquet,
    "csv, Z": lambda m, folder: _text(m, folder, dt.timedelta()),
    "csv, offset": lambda m, folder: _text(m, folder, dt.timedelta(hours=-5, minutes=-30)),
    "pandas": lambda m, _: pd.DataFrame({"when": pd.to_datetime(m, utc=True)}),
    "pandas, objects": lambda m, _: pd.DataFrame({"when": pd.Series(m, dtype=object)}),
    "polars": lambda m, _: pl.from_arrow(_arrow(m, pa.timestamp("us", "UTC"))),
    "duckdb": lambda m, _: duckdb.connect().from_arrow(_arrow(m, pa.timestamp("us", "UTC"))),
}


@cache
def local_labels(axis: str, timezone: str | None) -> Counter[Any]:
    """How many instants have each label of an axis."""
    return Counter(local_label(axis, when, timezone) for when in instants())


SLOW = {("duckdb", "America/New_York"), ("duckdb", "Europe/Berlin")}
"""Zones of many changes, which make long queries; one such is enough."""


@pytest.mark.parametrize(
    ("kind", "timezone"),
    [
        pytest.param(*each, marks=[pytest.mark.deep] if each in SLOW else [])
        for each in product(INSTANTS, ZONES)
    ],
)
def test_instants_are_read_on_the_clocks_of_the_zone(
    kind: str, timezone: str | None, tmp_path: Path
) -> None:
    domain = zoned_domain(timezone)
    moments = instants()
    needs = [sf.Histogram(name).needs(domain) for name in domain]
    for cube in count(source(INSTANTS[kind](moments, tmp_path), domain), needs):
        (axis,) = cube.lattice.axes
        found = {axis.labels[cell]: n for (cell,), n in random_tables.found(cube).items()}  # type: ignore[union-attr]
        assert found == local_labels(axis.name, timezone), axis.name


@pytest.mark.parametrize("kind", ["arrow", "csv", "polars", "duckdb", "objects", "array"])
def test_times_without_a_zone_are_local_already(kind: str, tmp_path: Path) -> None:
    """A zone of the axis changes nothing of them; a date counts as its midnight."""
    clock = [dt.datetime(2024, 3, 31, 2, 30), dt.datetime(2024, 6, 30, 23, 59, 59), None]
    whole = _arrow(clock, pa.timestamp("us"))
    tables: dict[str, Callable[[], Any]] = {
        "arrow": lambda: whole,
        "polars": lambda: pl.from_arrow(whole),
        "duckdb": lambda: duckdb.connect().from_arrow(whole),
        "objects": lambda: pd.DataFrame({"when": pd.Series(clock, dtype=object)}),
        "array": lambda: np.array([[x] for x in clock], "datetime64[us]"),
        "csv": lambda: tmp_path / "t.csv",
    }
    (tmp_path / "t.csv").write_text("when\n2024-03-31 02:30\n2024-06-30T23:59:59\nNA\n")
    domain = zoned_domain("America/New_York")
    needs = [sf.Histogram(name).needs(domain) for name in ("weekday", "hour")]
    weekday, hour = count(source(tables[kind](), domain), needs)
    assert random_tables.found(weekday) == {(6,): 2, (7,): 1}
    assert random_tables.found(hour) == {(2,): 1, (23,): 1, (24,): 1}


def test_each_field_of_text_says_by_itself_whether_it_is_an_instant(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("when\n2024-07-01T22:30Z\n2024-07-01T22:30\nsoon\n2024-07-01\n")
    domain = zoned_domain("Europe/Berlin")
    (cube,) = count(source(tmp_path / "t.csv", domain), [sf.Histogram("hour").needs(domain)])
    assert random_tables.found(cube) == {(0,): 2, (22,): 1, (24,): 1}


def test_each_file_says_by_its_type_whether_its_times_are_instants(tmp_path: Path) -> None:
    evening = dt.datetime(2024, 7, 1, 22, 30)
    for name, zone in (("a", None), ("b", "UTC")):
        whole = _arrow([evening], pa.timestamp("us", zone))
        pq.write_table(whole, tmp_path / f"{name}.parquet")
    domain = zoned_domain("Europe/Berlin")
    (cube,) = count(source(tmp_path, domain), [sf.Histogram("hour").needs(domain)])
    assert random_tables.found(cube) == {(0,): 1, (22,): 1}
