"""What is counted of databases shows no more than what is counted here, also where they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import sfumato as sf
from sfumato.data import snapshot
from sfumato.publishing import answering
from support.artefacts import assert_same, both
from support.frames import escaped
from support.postgres import address, schema_of
from trust.tables import EVERYTHING, FORMS, LIMIT, PERSON, laid
from trust.test_frames import CHARGED, DOMAIN, LEFT, NAME, RIGHT, STORED, VALUE, clean, tried
from trust.test_same_bytes import KEYED, PURE, a_few, every_question

ENGINES = ("duckdb", "duckdb, file", "postgres")
TABLE = f"""
    CREATE TABLE visits AS SELECT
        CASE WHEN i % 2 = 0 THEN '{NAME}' ELSE CAST(i AS varchar) END AS who,
        {VALUE}::float8 AS x, {VALUE}::float8 AS y,
        CASE WHEN i <= {LEFT} THEN 'a' ELSE 'b' END AS kind, '{NAME}' AS shop
    FROM generate_series(1, {LEFT + RIGHT}) AS rows(i)
"""
BREAKS = {
    "gone": "DROP TABLE visits",
    "column gone": "ALTER TABLE visits DROP COLUMN x",
    # A cast of the texts fails, and engines quote the text.
    "other type": f"ALTER TABLE visits ALTER COLUMN x TYPE varchar USING '{NAME}'",
    "empty": "DELETE FROM visits",
}
"""What somebody does to the table when it was charged and is not counted yet."""


@contextmanager
def held(engine: str, folder: Path) -> Iterator[tuple[Any, Callable[[str], object]]]:
    """A table of canaries, and a way to change it."""
    if engine == "postgres":
        schema = schema_of(folder)
        with closing(psycopg.connect(address(), autocommit=True)) as server:
            server.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}".encode())
            server.execute(TABLE.encode())
            yield f"{address()}&table={schema}.visits", lambda query: server.execute(query.encode())
        return
    if engine == "duckdb":
        with duckdb.connect() as connection:
            connection.execute(TABLE)
            yield connection.table("visits"), connection.execute
        return

    def change(query: str) -> None:
        with duckdb.connect(str(folder / "t.db")) as connection:
            connection.execute(query)

    change(TABLE)
    yield f"duckdb:{folder / 't.db'}?table=visits", change


def release(src: sf.Source, folder: Path, question: Any) -> None:
    budget = sf.ApproxDP(10**6, "0.9")
    with sf.Publisher(src, ledger=folder / "b.db", account="test", budget=budget) as publisher:
        publisher.release(question, epsilon=1, delta="0.01", fresh=True)


@pytest.mark.deep
@pytest.mark.parametrize("engine", ENGINES)
def test_a_fault_at_any_depth_shows_nothing(engine: str, tmp_path: Path) -> None:
    questions = [PURE["known"], PURE["mean"], KEYED["threshold"]]
    with held(engine, tmp_path) as (table, _):
        src = sf.source(table, DOMAIN, person="who", rows_per_person=LIMIT)
        act = partial(release, src, tmp_path, questions)
        for kind in ("engine", "key press"):
            assert sum(map(clean, tried(act, kind, 4, CHARGED, STORED))) >= 2


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_changes_after_the_charge_shows_nothing(
    engine: str, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(engine, tmp_path) as (table, change):
        done: list[str] = []

        def changed(src: sf.Source) -> Any:
            done.append(broken)
            change(BREAKS[broken])
            return snapshot(src)

        monkeypatch.setattr(answering, "snapshot", changed)
        src = sf.source(table, DOMAIN, person="who")
        found = escaped(partial(release, src, tmp_path, PURE["known"]))
        assert done
        failed = clean(found)
        assert failed or broken == "empty"
        assert all(isinstance(error, sf.SfumatoError) for error in found.errors)


@pytest.mark.deep
@pytest.mark.parametrize("person", PERSON)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_person(engine: str, person: str, tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(FORMS[engine], PERSON[person]), a_few))
    assert not [name for name in seen if name.endswith("raised")]


@pytest.mark.deep
@pytest.mark.parametrize("engine", ENGINES)
def test_every_question(engine: str, tmp_path: Path) -> None:
    seen = assert_same(both(tmp_path / "w", laid(FORMS[engine], EVERYTHING), every_question))
    assert not [name for name in seen if name.endswith("raised")]
