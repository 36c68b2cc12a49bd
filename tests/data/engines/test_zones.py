"""Local clocks in an engine show what they show in a scan."""

from __future__ import annotations

import datetime as dt
from zoneinfo import available_timezones

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sfumato.calendar_fields import check_zone
from sfumato.data.engines.duckdb import DuckDB
from sfumato.data.engines.zones import changes, local_microseconds
from sfumato.data.local_times import local
from sfumato.errors import UsageError
from sfumato.times import MICROSECONDS_A_SECOND

FEW = ("Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu")


def in_engine(instants: np.ndarray, timezone: str) -> np.ndarray:
    levels: list[dict[str, str]] = []

    def read(expression: str, level: int = 0) -> str:
        while len(levels) <= level:
            levels.append({})
        return levels[level].setdefault(expression, f"n{level}_{len(levels[level])}")

    found = local_microseconds("x", timezone, DuckDB(), read)
    query = "SELECT x FROM given"
    for level in levels:
        named = ", ".join(f"{each} AS {name}" for each, name in level.items())
        query = f"SELECT *, {named or '1'} FROM ({query})"
    connection = duckdb.connect()
    connection.register("given", pa.table({"x": instants}))
    return connection.sql(f"SELECT {found} AS y FROM ({query})").fetchnumpy()["y"]


def instants_of(timezone: str) -> np.ndarray:
    """The seconds around each change, and random times of all years."""
    draw = np.random.default_rng(5)
    seconds = np.array(changes(timezone)[0], np.int64)
    around = (seconds[:, None] + np.array([-1, 0, 1])).reshape(-1)
    first, last = (
        int((dt.datetime(y, 6, 1) - dt.datetime(1970, 1, 1)).total_seconds()) for y in (2, 9998)
    )
    wide = draw.integers(first, last, 3000)
    return np.concatenate([around, wide]) * MICROSECONDS_A_SECOND + 17


def same_clocks(timezone: str) -> None:
    instants = instants_of(timezone)
    assert in_engine(instants, timezone).tolist() == local(instants, timezone).tolist()


@pytest.mark.parametrize(
    "timezone",
    [*(pytest.param(each, marks=pytest.mark.deep) for each in FEW[:2]), *FEW[2:]],
)
def test_an_engine_reads_instants_as_a_scan_does(timezone: str) -> None:
    same_clocks(timezone)


@pytest.mark.deep
def test_and_so_in_zones_of_all_parts_of_the_world() -> None:
    for timezone in sorted(available_timezones())[::12]:
        try:
            check_zone("", timezone)
        except UsageError:
            continue
        same_clocks(timezone)
