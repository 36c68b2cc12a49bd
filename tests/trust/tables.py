"""Pairs of tables that differ in one person, in every way in which a person can differ.

Each pair comes in every form in which a table can lie.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import xlsxwriter

import sfumato as sf
from sfumato.data.options import StatedOptions, file_options
from sfumato.data.readers.files import Files
from support.artefacts import World, touched
from support.postgres import address, schema_of

Row = tuple[str | None, float | None, float | None, str | None, str | None]
COLUMNS = ("who", "x", "y", "kind", "shop")
DOMAIN = sf.Domain(
    x=sf.Interval(0, 16, step=1),
    y=sf.Interval(0, 16, step=1),
    kind=sf.Categories(["a", "b"]),
    shop=sf.Keys(),
)
LIMIT = 2

OTHERS: list[Row] = [
    (f"p{i:02d}", float(i % 16), float((7 * i + j) % 16), "ab"[j % 2], f"shop{(i + j) % 3}")
    for i in range(24)
    for j in range(1 + i % 3)
]

PERSON: dict[str, tuple[list[Row], list[Row]]] = {
    "is new": ([], [("new", 3.0, 4.0, "a", "shop1")]),
    "has more rows than the limit": (
        [("p99", 3.0, 4.0, "a", "shop1")],
        [("p99", float(i % 16), 4.0, "b", "shop2") for i in range(40)],
    ),
    "has other rows": (
        [("p99", 3.0, 4.0, "a", "shop1")],
        [("p99", 15.0, 0.0, "b", "shop0"), ("p99", 1.0, 0.0, "a", "shop0")],
    ),
    "has no id": ([], [(None, 3.0, 4.0, "a", "shop1"), (None, 5.0, 4.0, "b", "theirs")]),
    "has an id like no other": (
        [],
        [("a person with a name that is much longer than all others; '\"", 3.0, 4.0, "a", "shop1")],
    ),
    "has missing values": ([], [("p99", None, 4.0, None, None), ("p99", 4.0, None, "a", None)]),
    "has values out of bounds": (
        [],
        [("p99", 1e300, -5.0, "a", "shop1"), ("p99", -1e19, 2.0**53, "b", "shop1")],
    ),
    "has no numbers": (
        [],
        [
            ("p99", float("nan"), float("inf"), "a", "shop1"),
            ("p99", float("-inf"), 1.0, "b", "shop2"),
        ],
    ),
    "has a fraction": ([], [("p99", 3.25, 1e-300, "a", "shop1")]),
    "has a label that is not listed": (
        [],
        [("p99", 3.0, 4.0, "a label that nobody listed", "shop1"), ("p99", 3.0, 4.0, "", "")],
    ),
    "has a key of their own": (
        [],
        [
            ("p99", 3.0, 4.0, "a", "a key that nobody else has"),
            ("p99", 3.0, 4.0, "a", "\x1b[31m,\"'\n"),
        ],
    ),
}
EVERYTHING: tuple[list[Row], list[Row]] = (
    [],
    [row for _, theirs in PERSON.values() for row in theirs],
)

CSV_ONLY: dict[str, tuple[list[Any], list[Any]]] = {
    "writes what is no number": (
        [],
        [("p99", "12abc", "", "a", "shop1"), ("p99", "0x1F", "1,5", "b", "shop1")],
    ),
    "writes numbers as others write text": (
        [],
        [("p99", "1e400", "0003", "7", "17"), ("17", "3", "4", "true", "2013-01-01")],
    ),
}

Lay = Callable[[Path, list[Row], int], Any]


def rows_of(pair: tuple[list[Row], list[Row]], which: int) -> list[Row]:
    """One table of a pair.

    The person's rows stand in the middle of one, and at the beginning of the other.
    """
    own = pair[which]
    return [*own, *OTHERS] if which else [*OTHERS[:20], *own, *OTHERS[20:]]


def arrow(rows: list[Row]) -> pa.Table:
    """The rows as an Arrow table of fixed types."""
    types = (pa.string(), pa.float64(), pa.float64(), pa.string(), pa.string())
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], type_)
            for i, (name, type_) in enumerate(zip(COLUMNS, types, strict=True))
        }
    )


def parquet(folder: Path, rows: list[Row], which: int) -> Path:
    """One file; the second has other row groups, encoding, size and time."""
    path = folder / "table.parquet"
    if which:
        pq.write_table(
            arrow(rows), path, row_group_size=7, use_dictionary=False, compression="none"
        )
    else:
        pq.write_table(arrow(rows), path)
    return touched(path, 1_700_000_000 + 1_000 * which)


def several(folder: Path, rows: list[Row], which: int) -> Path:
    """A directory of files; the second has more of them, and the rows in another order."""
    target = folder / "parts"
    target.mkdir()
    parts = 3 + which
    for i in range(parts):
        share = rows[i::parts] if not which else rows[::-1][i::parts]
        touched(target / f"part-{i}.parquet", 0) if (
            target / f"part-{i}.parquet"
        ).exists() else None
        pq.write_table(arrow(share), target / f"part-{i}.parquet")
        touched(target / f"part-{i}.parquet", 1_700_000_000 + 1_000 * which + i)
    return target


def comma(folder: Path, rows: list[Any], which: int) -> Path:
    """A CSV file."""
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([["" if entry is None else entry for entry in row] for row in rows])
    return touched(path, 1_700_000_000 + 1_000 * which)


def semicolons(folder: Path, rows: list[Any], which: int) -> Files:
    """Another CSV file: semicolons, decimal commas, UTF-16, and a line above the header."""
    path = folder / "table.txt"
    with path.open("w", newline="", encoding="utf-16") as file:
        file.write("All visits\r\n")
        writer = csv.writer(file, delimiter=";")
        writer.writerow(COLUMNS)
        writer.writerows(
            [["" if each is None else str(each).replace(".", ",") for each in row] for row in rows]
        )
    stated = StatedOptions(separator=";", decimal=",", encoding="utf-16", header_row=2)
    return Files([touched(path, 1_700_000_000 + 1_000 * which)], "who", file_options(stated))


def excel(folder: Path, rows: list[Any], which: int) -> Path:
    """A sheet; in the second table more numbers are stored as text."""
    path = folder / "table.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, COLUMNS)
        for number, row in enumerate(rows, 1):
            for place, entry in enumerate(row):
                if isinstance(entry, float) and math.isfinite(entry) and not which:
                    sheet.write_number(number, place, entry)
                elif entry is not None:
                    sheet.write_string(number, place, str(entry))
    return touched(path, 1_700_000_000 + 1_000 * which)


def pandas(folder: Path, rows: list[Row], which: int) -> pd.DataFrame:
    """A frame of pandas, whose columns of objects have the types of what they hold."""
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    return frame.astype({"who": object, "kind": object, "shop": object})


def duckdb_file(folder: Path, rows: list[Row], which: int) -> str:
    """A table in a file of DuckDB; the second file was written to more often."""
    path = folder / "table.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("given", arrow(rows))
        connection.execute("CREATE TABLE visits AS SELECT * FROM given")
        if which:
            connection.execute("INSERT INTO visits SELECT * FROM given")
            connection.execute("DELETE FROM visits")
            connection.execute("INSERT INTO visits SELECT * FROM given")
    touched(path, 1_700_000_000 + 1_000 * which)
    return f"duckdb:{path}?table=visits"


def postgres(folder: Path, rows: list[Row], which: int) -> str:
    """A table of a server, whose pages are filled otherwise; both runs give it the same name."""
    schema = schema_of(folder)
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        types = "who text, x float8, y float8, kind varchar(40), shop text"
        connection.execute(f"CREATE TABLE {schema}.visits ({types})".encode())
        connection.execute(f"ALTER TABLE {schema}.visits SET (fillfactor = {90 - which})".encode())
        query = f"COPY {schema}.visits FROM STDIN".encode()
        with connection.cursor().copy(query) as copied:
            for row in rows:
                copied.write_row(row)
        if which:
            connection.execute(f"ANALYZE {schema}.visits".encode())
    return f"{address()}&table={schema}.visits"


FORMS: dict[str, Lay] = {
    "parquet": parquet,
    "several": several,
    "csv": comma,
    "csv, semicolons": semicolons,
    "excel": excel,
    "arrow": lambda folder, rows, which: arrow(rows),
    "pandas": pandas,
    "polars": lambda folder, rows, which: pl.from_arrow(arrow(rows)),
    "lazy": lambda folder, rows, which: pl.from_arrow(arrow(rows)).lazy(),  # type: ignore[union-attr]
    "duckdb": lambda folder, rows, which: duckdb.connect().from_arrow(arrow(rows)),
    "duckdb, file": duckdb_file,
    "postgres": postgres,
}


def laid(form: Lay, pair: tuple[list[Any], list[Any]]) -> Callable[[World, int], Any]:
    """How the first and the second table of a pair come into a world."""
    return lambda here, which: form(here.data, rows_of(pair, which), which)


def numbers(pair: tuple[list[Row], list[Row]]) -> Callable[[World, int], Any]:
    """The same as an array of numbers, which holds no persons."""
    return lambda here, which: np.array(
        [[row[1], row[2]] for row in rows_of(pair, which)], dtype=float
    )
