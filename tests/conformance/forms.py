"""One table in many forms, and what is counted of it: the same cubes, bit for bit, of every form.

Also where the rows of persons are cut. A reader is one line of ``FORMS`` or of ``ENGINES``.
``answers`` serves whatever has to start first, such as a session of Spark.
"""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count as counting
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import xlsxwriter

import sfumato as sf
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from support.postgres import address, schema_of
from support.spark_tasks import TableInTasks

KEY = bytes(range(32))
N_ROWS = 700
DOMAIN = sf.Domain(
    x=sf.Interval(-4, 6, step=1),
    kind=sf.Categories(["a", "ß", "c"], other="else"),
    shop=sf.Keys(),
    day=sf.Interval("2020-01-01", "2020-02-01"),
)
LIMITS: dict[str, dict[str, Any]] = {
    "rows": {"person": "who", "rows_per_person": 3},
    "rows in a cell": {"person": "who", "rows_per_person": 5, "rows_per_cell": 1},
    "cells": {"person": "who", "rows_per_cell": 2, "cells_per_person": 2},
    "norm": {"person": "who", "norm_per_person": 2},
    "rows in a period": {"person": ["who", "day"], "rows_per_person": 1},
}
QUESTIONS: dict[str, Needs] = {
    "rows": sf.Histogram(["x", "kind"], bins=5).needs(DOMAIN),
    "keys": sf.Histogram(["shop", "kind"]).needs(DOMAIN),
    "sums": sf.Mean("x", by="kind").needs(DOMAIN),
    "persons": Needs(
        sf.Histogram(["shop", "day"], bins=4).needs(DOMAIN).lattice, 1, counted="persons"
    ),
}


def _rows() -> pa.Table:
    """Persons with few and many rows, some alike; each column lacks some values."""
    draw = np.random.default_rng(5)
    who = np.minimum(draw.integers(0, 90, N_ROWS), draw.integers(0, 90, N_ROWS)) * 7 - 20
    days = [dt.date(2019, 12, 30) + dt.timedelta(int(day)) for day in draw.integers(0, 6, N_ROWS)]
    x = draw.integers(-20, 30, N_ROWS) / 4
    x[::11], x[1::11], x[2::23] = 0.0, -0.0, np.nan
    words = np.array(["a", "ß", "c", "unlisted", "A"])
    shops = np.array([f"shop {number}" for number in range(12)] + ["17", "日本", "ß"])

    def lacking(values: Any, step: int, type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_, mask=np.arange(N_ROWS) % step == step - 1)

    return pa.table(
        {
            "who": lacking(who, 29, pa.int64()),
            "day": lacking(days, 31, pa.date32()),
            "x": lacking(x, 37, pa.float64()),
            "kind": lacking(words[draw.integers(0, 5, N_ROWS)], 41, pa.string()),
            "shop": lacking(shops[draw.integers(0, 15, N_ROWS)], 43, pa.string()),
        }
    )


ROWS = _rows()


def answers(
    opened: Callable[[], object], limits: Iterable[str] = tuple(LIMITS)
) -> dict[tuple[str, str], object]:
    """What each question counts of a table within each of some limits.

    Parameters
    ----------
    opened : callable
        Gives the table, anew for each scan.
    limits : iterable of str
        The names of the limits, by default all.
    """
    found: dict[tuple[str, str], object] = {}
    for limit in limits:
        cubes = count(source(opened(), DOMAIN, **LIMITS[limit]), list(QUESTIONS.values()), key=KEY)
        for question, cube in zip(QUESTIONS, cubes, strict=True):
            arrays = (cube.counts, cube.coordinates, cube.sums)
            found[limit, question] = (
                [None if array is None else (array.dtype.str, array.tolist()) for array in arrays],
                {name: list(keys) for name, keys in cube.keys.items()},
            )
    return found


# --- the forms ------------------------------------------------------------------------------------

Form = Callable[[Path], object]
"""Makes the table anew, in a folder if it takes one."""


def _ordered(by: Any) -> Form:
    return lambda folder: ROWS.take(pa.array(by))


def _in_batches(rows: int) -> Form:
    """Batches of so many rows, as a stream that is read once."""
    return lambda folder: ROWS.combine_chunks().to_reader(max_chunksize=rows)


def _as(name: str, *types: pa.DataType, dictionary: bool = False) -> Form:
    """A column cast to one type after another."""

    def made(folder: Path) -> pa.Table:
        column = ROWS[name].combine_chunks()
        for type_ in types:
            column = column.cast(type_)
        if dictionary:
            column = column.dictionary_encode()
        return ROWS.set_column(ROWS.column_names.index(name), name, column)

    return made


def _with_x(changed: Callable[[pa.Array], pa.Array]) -> Form:
    return lambda folder: ROWS.set_column(2, "x", changed(ROWS["x"].combine_chunks()))


def _parquet(folder: Path, **options: Any) -> Path:
    pq.write_table(ROWS, folder / "t.parquet", **options)
    return folder / "t.parquet"


def _added_by_person(folder: Path) -> Path:
    """Files to which persons came one after another: each has all rows of some, of one type."""
    types = [pa.int16(), pa.int64(), pa.uint32(), pa.int32()]
    for number, type_ in enumerate(types):
        own = ROWS.filter(pc.equal(pc.bit_wise_and(pc.fill_null(ROWS["who"], 0), 3), number))
        if pa.types.is_unsigned_integer(type_):
            own = own.filter(pc.greater_equal(own["who"], 0))
        pq.write_table(
            own.set_column(0, "who", own["who"].cast(type_)), folder / f"{number}.parquet"
        )
    left = ROWS.filter(
        pc.and_(pc.equal(pc.bit_wise_and(ROWS["who"], 3), 2), pc.less(ROWS["who"], 0))
    )
    pq.write_table(left, folder / "left.parquet")
    return folder


def _csv(folder: Path) -> Path:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(ROWS.column_names)
        writer.writerows(_texts())
    return folder / "t.csv"


def _texts() -> Iterator[list[object]]:
    for row in ROWS.to_pylist():
        yield ["" if value is None or value != value else value for value in row.values()]  # noqa: PLR0124


def _excel(folder: Path) -> Path:
    with xlsxwriter.Workbook(folder / "t.xlsx") as book:
        date = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ROWS.column_names)
        for number, row in enumerate(_texts(), 1):
            sheet.write_row(number, 0, row)
            if row[1] != "":
                sheet.write_datetime(number, 1, row[1], date)
    return folder / "t.xlsx"


def _folders(folder: Path) -> Path:
    """The kind is in the names of folders only."""
    for number, kind in enumerate(ROWS["kind"].unique().to_pylist()):
        is_kind = pc.is_null(ROWS["kind"]) if kind is None else pc.equal(ROWS["kind"], kind)
        below = folder / f"kind={'__HIVE_DEFAULT_PARTITION__' if kind is None else kind}"
        below.mkdir(exist_ok=True)
        own = ROWS.filter(pc.fill_null(is_kind, False)).drop_columns("kind")
        pq.write_table(own, below / f"{number}.parquet")
    return folder


def _objects(folder: Path) -> pd.DataFrame:
    columns = {name: pd.Series(ROWS[name].to_pylist(), dtype=object) for name in ROWS.column_names}
    return pd.DataFrame(columns)


def _polars(folder: Path) -> pl.DataFrame:
    frame = pl.from_arrow(ROWS)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("kind").cast(pl.Categorical))


_shuffled = np.random.default_rng(1).permutation(N_ROWS)
_OFTEN = np.argsort(ROWS["who"].to_numpy(), kind="stable")

FORMS: dict[str, Form] = {
    "shuffled": _ordered(_shuffled),
    "reversed": _ordered(np.arange(N_ROWS)[::-1]),
    "sorted by person": _ordered(_OFTEN),
    "sorted by person, backwards": _ordered(_OFTEN[::-1]),
    **{f"batches of {rows}": _in_batches(rows) for rows in (1, 7, 64, 5000)},
    "a function that opens a stream": lambda folder: ROWS.to_reader,
    "files by person added": _added_by_person,
    **{
        f"ids as {type_}": _as("who", type_)
        for type_ in (pa.int16(), pa.int32(), pa.float32(), pa.float64())
    },
    "ids as decimal": _as("who", pa.decimal128(22, 3)),
    "ids as decimal of whole numbers": _as("who", pa.decimal128(19, 0)),
    "ids as wide decimal": _as("who", pa.decimal256(60, 30)),
    "ids as text": _as("who", pa.string()),
    "ids as large text": _as("who", pa.large_string()),
    "ids as views": _as("who", pa.string(), pa.string_view()),
    "ids as bytes": _as("who", pa.string(), pa.binary()),
    "ids as a dictionary": _as("who", dictionary=True),
    "ids as a dictionary of text": _as("who", pa.string(), dictionary=True),
    **{
        f"{name} as {form}": made
        for name in ("kind", "shop")
        for form, made in {
            "a dictionary": _as(name, dictionary=True),
            "large text": _as(name, pa.large_string()),
            "views": _as(name, pa.string_view()),
            "a dictionary of large text": _as(name, pa.large_string(), dictionary=True),
        }.items()
    },
    "x in single precision": _with_x(lambda x: x.cast(pa.float32())),
    "x without negative zeros": _with_x(lambda x: pc.add(x, 0.0)),
    "x with negative zeros alone": _with_x(lambda x: pc.if_else(pc.equal(x, 0), -0.0, x)),
    "x with null for NaN": _with_x(lambda x: pc.if_else(pc.is_nan(x), None, x)),
    "x with NaN for null": _with_x(lambda x: pc.fill_null(x, float("nan"))),
    "days as date64": _as("day", pa.date64()),
    "days as a dictionary": _as("day", dictionary=True),
    "parquet, many row groups": lambda folder: _parquet(folder, row_group_size=37),
    "parquet, no dictionaries": lambda folder: _parquet(folder, use_dictionary=False),
    "parquet, folders": _folders,
    "parquet, dataset": lambda folder: ds.dataset(_parquet(folder)),
    "csv": _csv,
    "excel": _excel,
    "pandas": lambda folder: ROWS.to_pandas(),
    "pandas, objects": _objects,
    "pandas, types of Arrow": lambda folder: ROWS.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": _polars,
    "polars, lazy": lambda folder: pl.scan_parquet(_parquet(folder)),
}


# --- engines --------------------------------------------------------------------------------------


def _relation(ids: str) -> Form:
    def made(folder: Path) -> duckdb.DuckDBPyRelation:
        connection = duckdb.connect()
        connection.register("rows", ROWS)
        return connection.sql(f"SELECT * REPLACE (CAST(who AS {ids}) AS who) FROM rows")

    return made


def _database(folder: Path) -> str:
    path = folder / "t.db"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.register("rows", ROWS)
            connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
    return f"duckdb:{path}?table=visits"


_NUMBERS = counting()


def _server(ids: str) -> Form:
    def made(folder: Path) -> str:
        schema = schema_of(folder)
        name = f"{schema}.forms{next(_NUMBERS)}"
        with psycopg.connect(address()) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(
                f"CREATE TABLE {name} (who {ids}, day date, x float8, kind text, shop text)"
            )
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copied:
                for row in ROWS.to_pylist():
                    copied.write_row(list(row.values()))
        return f"{address()}&table={name}"

    return made


ENGINES: Mapping[str, Form] = {
    **{
        f"duckdb, ids as {ids}": _relation(ids)
        for ids in ("BIGINT", "DOUBLE", "DECIMAL(12, 3)", "VARCHAR")
    },
    "duckdb, file": _database,
    **{
        f"postgres, ids as {ids}": _server(ids)
        for ids in ("int8", "float8", "numeric(12, 3)", "text")
    },
    **{
        f"spark, {tasks} tasks": lambda folder, tasks=tasks: TableInTasks(ROWS, tasks)  # type: ignore[misc]
        for tasks in (1, 5)
    },
}
"""Databases, and the tasks of Spark without Spark."""
