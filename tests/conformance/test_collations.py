"""Collations under which different texts are equal: they are counted by their bytes, as in a scan.

Two labels that compare equal would double a row that is joined with them, and two persons who do
would be bounded together here and apart in a file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data import count, source
from support import spark_jobs
from support.collations import ROWS, counted_by_bytes
from support.postgres import address, schema_of


def without_a_collation(folder: Path) -> Any:
    return pa.Table.from_pylist([dict(zip(("kind", "who", "x"), row, strict=True)) for row in ROWS])


def relation(folder: Path) -> Any:
    connection = duckdb.connect()
    columns = "kind VARCHAR COLLATE NOCASE.NOACCENT, who VARCHAR COLLATE NOCASE, x DOUBLE"
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    assert connection.sql("SELECT count(*) FROM t WHERE kind = 'a'").fetchall() == [(6,)]
    return connection.table("t")


def setting(folder: Path) -> Any:
    """A collation of the whole connection."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (kind VARCHAR, who VARCHAR, x DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    connection.execute("SET default_collation = 'nocase'")
    assert connection.sql("SELECT count(*) FROM t WHERE kind = 'a'").fetchall() == [(4,)]
    return connection.table("t")


def server(folder: Path) -> str:
    """ICU's collations alone may be nondeterministic; not every server is built with it."""
    schema = schema_of(folder)
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        try:
            connection.execute(
                f"CREATE COLLATION {schema}.equal"
                " (provider = icu, locale = 'und-u-ks-level1', deterministic = false)".encode()
            )
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("the server is built without ICU")
        columns = f"kind text COLLATE {schema}.equal, who text COLLATE {schema}.equal, x float8"
        connection.execute(f"CREATE TABLE {schema}.t ({columns})".encode())
        insert = f"INSERT INTO {schema}.t VALUES (%s, %s, %s)".encode()
        for row in ROWS:
            connection.execute(insert, row)
        found = connection.execute(f"SELECT count(*) FROM {schema}.t WHERE kind = 'a'".encode())
        assert found.fetchone() == (6,)
    return f"{address()}&table={schema}.t"


@pytest.mark.parametrize(
    "held",
    [without_a_collation, relation, pytest.param(setting, marks=pytest.mark.deep), server],
)
def test_texts_are_counted_by_their_bytes(held: Any, tmp_path: Path) -> None:
    counted_by_bytes(held(tmp_path))


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_texts_are_counted_by_their_bytes_on_spark(kind: str) -> None:
    assert spark_jobs.run("collations", kind) == {"rows": len(ROWS)}


def test_padded_texts_are_counted_without_their_blanks(tmp_path: Path) -> None:
    """Texts of type char(n) are equal whatever blanks end them; as texts they have none."""
    schema = schema_of(tmp_path)
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"CREATE TABLE {schema}.t (who char(3), x float8)".encode())
        rows = "('a', 1), ('a ', 2), ('a  ', 3), ('ab', 1), (NULL, 1)"
        connection.execute(f"INSERT INTO {schema}.t VALUES {rows}".encode())
    domain = sf.Domain(who=sf.Keys(), x=sf.Interval(0, 4))
    src = source(f"{address()}&table={schema}.t", domain, person="who", rows_per_person=2)
    (cube,) = count(src, [sf.Histogram("who").needs(domain)])
    assert cube.keys["who"].to_pylist() == ["a", "ab"]
    assert cube.counts.tolist() == [2, 1]
