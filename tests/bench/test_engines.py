"""Queries by hand are of the same rows and cells as our own."""

from __future__ import annotations

from contextlib import closing, nullcontext
from typing import Any

import psycopg
import pytest

from sfumato.bench import engines
from support.postgres import address

ROWS = 2000


def measured(engine: Any) -> None:
    asked: list[list[tuple[Any, ...]]] = []

    def fetched(query: str) -> object:
        asked.append(engine.fetched(query))
        return asked[-1]

    found = engines._of_engine(engine._replace(fetched=fetched), 1, 1)
    assert [row["who"] for row in found] == ["sfumato", "by hand"] * 4
    assert [len(row) for row in found] == [7, 6] * 4
    totals = [sum(row[-1] for row in rows) for rows in asked]
    # Of rows of persons, those beyond four are left out.
    assert totals[:-1] == [ROWS] * 3
    assert 0.7 * ROWS < totals[-1] < ROWS


def test_duckdb_is_measured() -> None:
    with engines._duckdb(ROWS) as engine:
        measured(engine)


@pytest.mark.deep
def test_a_server_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_BENCH_POSTGRES", address())
    with engines._postgres(ROWS) as engine:
        measured(engine)
    with closing(psycopg.connect(address(), autocommit=True)) as server:
        server.execute("DROP TABLE visits")


def test_that_there_is_no_server_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "measured_server", lambda _: nullcontext())
    monkeypatch.setattr(engines, "_of_engine", lambda *_: [])
    duckdb = engines._duckdb
    monkeypatch.setattr(engines, "_duckdb", lambda _: duckdb(ROWS))
    (row,) = engines.rows(quick=True)
    assert "not installed" in str(row["what"])
