"""Relations of DuckDB as sources."""

from __future__ import annotations

from data.trips import TRIPS, TRIPS_BY_AGE
from sfumato.data import count, source


def test_a_relation_is_not_disturbed_by_other_queries() -> None:
    import duckdb

    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), TRIPS)
    src.require([TRIPS_BY_AGE])
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert count(src, [TRIPS_BY_AGE])[0].total == count(src, [TRIPS_BY_AGE])[0].total == 300_000
