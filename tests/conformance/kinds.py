"""One table as every kind of source, and its counts with bounded persons in plain Python."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import math
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import count as counting
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import xlsxwriter

from data import random_tables
from sfumato.data import registry
from sfumato.data.options import StatedOptions, file_options
from sfumato.data.readers.files import Files
from support.postgres import address, schema_of

Rows = list[dict[str, Any]]
TYPES = {**random_tables.TYPES, "who": pa.string()}
CODES = [
    1,
    2,
    3,
    4,
    None,
]  # values of the column that becomes a folder, in the order in which folders are sorted
CUTS = (0, 140, 141, 400)


def people(count: int, seed: int) -> Rows:
    """Rows with a person each; a few persons have most of the rows.

    The rows are in the order of ``code``, so that folders keep their order.
    """
    draw = random.Random(seed)
    names = ["Ada", "Ada ", "ada", "Zoë", "日本", "7", "07", 'q"\n,', *(f"p{i}" for i in range(60))]
    rows = [
        {**row, "who": None if draw.random() < 0.05 else draw.choice(names)}
        for row in random_tables.rows(count, seed)
    ]
    return sorted(rows, key=lambda row: CODES.index(row["code"]))


def table(rows: Rows, **types: Any) -> pa.Table:
    return pa.table(
        {
            name: pa.array([row[name] for row in rows], type_)
            for name, type_ in {**TYPES, **types}.items()
        }
    )


def _pieces(rows: Rows) -> list[Rows]:
    return [rows[start:stop] for start, stop in zip(CUTS, (*CUTS[1:], len(rows)), strict=True)]


def write_csv(rows: Rows, path: Path) -> Path:
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        writer.writerows(
            [["" if row[name] is None else row[name] for name in TYPES] for row in rows]
        )
    return path


def _parquet(rows: Rows, folder: Path, group: int = 1000) -> Path:
    pq.write_table(table(rows), folder / "t.parquet", row_group_size=group)
    return folder / "t.parquet"


def _several(rows: Rows, folder: Path) -> list[Path]:
    paths = [folder / f"part-{i}.parquet" for i in range(len(CUTS))]
    types: list[dict[str, Any]] = [
        {},
        {"who": pa.large_string(), "code": pa.int64()},
        {"at": pa.timestamp("ns", "UTC")},
        {},
    ]
    for path, piece, type_ in zip(paths, _pieces(rows), types, strict=True):
        whole = table(piece, **type_).select(
            sorted(TYPES) if path.stem.endswith("2") else list(TYPES)
        )
        pq.write_table(whole, path, row_group_size=50, use_dictionary=path.stem.endswith("1"))
    return paths


def _glob(rows: Rows, folder: Path) -> str:
    _several(rows, folder)
    return str(folder / "part-*.parquet")


def _hive(rows: Rows, folder: Path) -> Path:
    """``code`` is in the names of folders only, and of each folder the rows lie in two files."""
    for value in CODES:
        piece = [row for row in rows if row["code"] == value]
        below = (
            folder
            / "table"
            / ("code=__HIVE_DEFAULT_PARTITION__" if value is None else f"code={value}")
        )
        below.mkdir(parents=True)
        for i, part in enumerate((piece[:30], piece[30:])):
            pq.write_table(table(part).drop_columns("code"), below / f"part-{i}.parquet")
    (folder / "table" / "_SUCCESS").touch()
    (folder / "table" / ".hidden.parquet").write_text("x")
    return folder / "table"


def _csv_files(rows: Rows, folder: Path) -> list[str]:
    ends = ["csv", "csv.gz", "CSV", "csv"]
    return [
        str(write_csv(piece, folder / f"{i}.{end}"))
        for i, (piece, end) in enumerate(zip(_pieces(rows), ends, strict=True))
    ]


def _empty_chunks(rows: Rows, folder: Path) -> pa.Table:
    whole = table(rows)
    return pa.concat_tables(
        [
            whole.slice(0, 0),
            whole.slice(0, 33),
            whole.slice(5, 0),
            whole.slice(33),
            whole.slice(0, 0),
        ]
    )


def _dictionaries(rows: Rows, folder: Path) -> pa.Table:
    whole = table(rows)
    for i, name in enumerate(whole.column_names):
        parts = [
            piece.dictionary_encode(null_encoding="encode")
            for piece in (whole[name].slice(0, 41), whole[name].slice(41))
        ]
        whole = whole.set_column(
            i, name, pa.chunked_array([chunk for piece in parts for chunk in piece.chunks])
        )
    return whole


def _dataset(rows: Rows, folder: Path) -> ds.Dataset:
    _several(rows, folder)
    return ds.dataset(folder, format="parquet", schema=table(rows).schema)


def _pandas(rows: Rows, folder: Path) -> pd.DataFrame:
    frame = table(rows).to_pandas(types_mapper=pd.ArrowDtype)
    frame["word"] = frame["word"].astype("category")
    frame["who"] = frame["who"].astype("category")
    frame["x"] = frame["x"].astype("float64")
    frame["code"] = frame["code"].astype("Int64")
    return frame.set_index(frame.index[::-1])


def _polars(rows: Rows, folder: Path) -> pl.DataFrame:
    frame = pl.from_arrow(table(rows))
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("word").cast(pl.Categorical), ignored=pl.lit(1))


def _lazy(rows: Rows, folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(_parquet(rows, folder, 60)).with_columns(ignored=pl.col("x") + 1)


def _duckdb(rows: Rows, folder: Path) -> duckdb.DuckDBPyRelation:
    path = str(_parquet(rows, folder, 60)).replace("'", "''")
    return duckdb.connect().sql(f'SELECT *, 1 AS "odd""name" FROM read_parquet(\'{path}\')')


def _duckdb_file(rows: Rows, folder: Path) -> str:
    path = folder / "t.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table(rows))
        connection.execute('CREATE TABLE "a.b" AS SELECT * FROM rows')
    return f'duckdb:{path}?table="a.b"'


POSTGRES_TYPES = {
    "x": "float8",
    "n": "int8",
    "price": "numeric(12, 4)",
    "flag": "bool",
    "day": "date",
    "at": "timestamp",
    "word": "varchar(20)",
    "code": "int2",
    "yes": "bool",
    "who": "text",
}


def postgres(rows: Rows, folder: Path, **types: str) -> str:
    """A table of a server, in a schema of its own for each folder."""
    listed = {**POSTGRES_TYPES, **types}
    schema = schema_of(folder)
    with psycopg.connect(address()) as connection:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        name = f"{schema}.t{next(_NUMBERS)}"
        columns = ", ".join(f"{column} {type_}" for column, type_ in listed.items())
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copied:
            for row in rows:
                copied.write_row([row[column] for column in listed])
    return f"{address()}&table={name}"


_NUMBERS = counting()


def as_people_write(rows: Rows, folder: Path) -> Files:
    """CSV with semicolons, decimal commas, points between thousands, and two formats of dates."""
    path = folder / "people.txt"
    with path.open("w", newline="", encoding="utf-16") as file:
        file.write("Table of people\n\n")
        writer = csv.writer(file, delimiter=";")
        writer.writerow([f" {name} " for name in TYPES])
        writer.writerows([[_by_hand(row[name]) for name in TYPES] for row in rows])
    stated = StatedOptions(
        separator=";",
        decimal=",",
        thousands=".",
        encoding="utf-16",
        date_format={"day": "%d.%m.%Y", "at": "%m/%d/%Y %I:%M:%S.%f %p"},
        header_row=3,
    )
    return Files([path], "who", file_options(stated))


def _by_hand(value: Any) -> str:
    if isinstance(value, dt.datetime):
        return value.strftime("%m/%d/%Y %I:%M:%S.%f %p").lstrip("0")
    if isinstance(value, dt.date):
        return f" {value.day}.{value.month}.{value.year}"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return f"{value:,}".replace(",", ".")
    if isinstance(value, float | Decimal):
        return str(value).replace(".", ",")
    return value or ""


def excel(rows: Rows, folder: Path) -> Files:
    """A sheet of several, whose third row names the columns; some numbers are stored as text."""
    path = folder / "people.xlsx"
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("notes").write(0, 0, "see the other sheet")
        sheet = book.add_worksheet("people")
        sheet.merge_range(0, 1, 0, 4, "Table of people")
        sheet.write_row(2, 1, list(TYPES))
        formats = [
            book.add_format({"num_format": f"yyyy-mm-dd{more}"}) for more in ("", " hh:mm:ss")
        ]
        for number, row in enumerate(rows, 4):
            for place, name in enumerate(TYPES, 1):
                _write_cell(sheet, number, place, row[name], formats)
    stated = StatedOptions(sheet="people", header_row=3)
    return Files([path], "who", file_options(stated))


def _write_cell(sheet: Any, row: int, column: int, value: Any, formats: list[Any]) -> None:
    if isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, dt.datetime) and value.microsecond == 0:
        sheet.write_datetime(row, column, value, formats[1])
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        sheet.write_datetime(row, column, value, formats[0])
    elif isinstance(value, int | float | Decimal) and _fits_a_cell(value):
        sheet.write_number(row, column, value)
    elif value is not None:
        # What no cell of Excel holds exactly is there as text.
        sheet.write_string(row, column, str(value))


def _fits_a_cell(number: float | Decimal) -> bool:
    """Whether a cell holds a number exactly: Excel writes 15 digits, and no infinity."""
    return math.isfinite(number) and float(f"{number:.15g}") == number


KINDS: dict[str, Callable[[Rows, Path], Any]] = {
    "parquet": _parquet,
    "parquet, many row groups": lambda rows, folder: _parquet(rows, folder, 37),
    "parquet, glob": _glob,
    "parquet, list out of order": lambda rows, folder: _several(rows, folder)[::-1],
    "parquet, file URI": lambda rows, folder: "file://" + quote(str(_parquet(rows, folder))),
    "parquet, directory": lambda rows, folder: _several(rows, folder)[0].parent,
    "parquet, hive": _hive,
    "csv": lambda rows, folder: write_csv(rows, folder / "t.csv"),
    "csv.gz": lambda rows, folder: write_csv(rows, folder / "t.csv.gz"),
    "csv, several": _csv_files,
    "csv, as people write it": as_people_write,
    "excel": excel,
    "arrow": lambda rows, folder: table(rows),
    "arrow, empty chunks": _empty_chunks,
    "arrow, dictionaries": _dictionaries,
    "arrow, record batch": lambda rows, folder: table(rows).combine_chunks().to_batches()[0],
    "arrow, reader": lambda rows, folder: table(rows).to_reader(31),
    "arrow, function": lambda rows, folder: lambda: table(rows).to_reader(31),
    "arrow, dataset": _dataset,
    "pandas": lambda rows, folder: table(rows).to_pandas(),
    "pandas, its own types": _pandas,
    "polars": _polars,
    "polars, lazy": _lazy,
    "duckdb": _duckdb,
    "duckdb, file": _duckdb_file,
    "postgres": postgres,
}


# --- plain Python ---------------------------------------------------------------------------------


def names_of_readers() -> set[str]:
    """Name all readers that are known, those of other packages as well."""
    own = {engine.reader.partition(":")[2] for engine in (*registry.ENGINES, *registry.ANY_STREAM)}
    return own | {reader.__name__ for reader in registry._outside}
