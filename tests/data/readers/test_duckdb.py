"""Relations of DuckDB as sources."""

from __future__ import annotations

from sfumato.data import count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.lattice import Lattice

TRIPS = Domain(
    age=Interval(0, 120, step=1),
    year=Interval(2000, 2030, step=1),
    place=Categories(["a", "b c/d", "2013"]),
    day=Interval("2020-01-01", "2020-01-05"),
)


TRIPS_BY_AGE = Lattice((grid_axis("age", TRIPS["age"], 12),))  # type: ignore[arg-type]


def test_a_relation_is_not_disturbed_by_other_queries() -> None:
    import duckdb

    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), TRIPS)
    src.require([TRIPS_BY_AGE])
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert count(src, [TRIPS_BY_AGE])[0].total == count(src, [TRIPS_BY_AGE])[0].total == 300_000
