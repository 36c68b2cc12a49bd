"""Parquet files: damaged ones are refused, and times beyond nanoseconds are read."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from data.refusals import AGE, BY_AGE, CANARY, refused, refuses, write
from data.releases import released
from sfumato.data import count, source
from sfumato.data.reader import Columns
from sfumato.data.readers.arrow import ParquetFile
from sfumato.domain.lattice import LabelAxis
from sfumato.errors import DataError


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    refuses(write(tmp_path, f"age\n{CANARY}\n", "t.parquet"), "not a Parquet file")
    refuses(write(tmp_path, CANARY * 100, "t"), "not a Parquet file")
    pq.write_table(pa.table({"age": np.arange(10_000)}), tmp_path / "u.parquet")
    whole = (tmp_path / "u.parquet").read_bytes()
    refuses(write(tmp_path, whole[:-100], "t.parquet"), "not a Parquet file")
    refuses(write(tmp_path, whole[-100:], "t.parquet"), "Parquet")


def test_a_database_of_duckdb_is_named_by_its_address(tmp_path: Path) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "k.db")).close()
    refuses(tmp_path / "k.db", "k.db?table=NAME")


def test_parquet_with_damaged_pages_is_refused_in_the_count(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"age": np.random.default_rng(0).integers(0, 100, 50_000)}),
        tmp_path / "t.parquet",
        compression="zstd",
    )
    whole = bytearray((tmp_path / "t.parquet").read_bytes())
    whole[200:5000] = bytes(4800)
    refused(
        lambda: count(source(write(tmp_path, bytes(whole), "t.parquet"), AGE), [BY_AGE]), DataError
    )


ONE_DAY = sf.Interval("2020-01-01T00:00", "2020-01-02T00:00")


def test_times_beyond_the_range_of_nanoseconds_stay_where_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array(
                [dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1, 1)], pa.timestamp("us")
            )
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert released(tmp_path / "t.parquet", "when", ONE_DAY, 2) == [1, 1]


def test_labels_are_read_in_dictionary_form_and_ids_as_they_are(tmp_path: Path) -> None:
    table = pa.table({"word": ["a", "b"], "p": ["x", "y"], "q": ["x", "y"]})
    pq.write_table(table, tmp_path / "t.parquet")
    word, both = (LabelAxis(name, ("a", "b")) for name in ("word", "q"))
    columns: Columns = {"word": word, "p": None, "q": both}
    (batch,) = ParquetFile(tmp_path / "t.parquet", "t").batches(columns)
    assert [str(type_).partition("<")[0] for type_ in batch.schema.types] == [
        "dictionary",
        "string",
        "dictionary",
    ]
