"""Arrow streams and datasets of pyarrow as sources."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from data.refusals import AGE, BY_AGE, refused
from data.trips import BY_YEAR, TRIPS, TRIPS_BY_AGE, parquet, refused_in_both, tens
from sfumato.data import count, source
from sfumato.errors import DataError


def test_a_reader_can_be_read_once() -> None:
    src = source(pa.table({"age": [1]}).to_reader(), AGE)
    src.require([BY_AGE])
    assert count(src, [BY_AGE])[0].total == 1
    refused(lambda: src.require([BY_AGE]), DataError, "once")


def test_a_dataset_whose_fragments_differ_is_refused(folder: Path) -> None:
    schema = pa.schema({"age": pa.int64(), "year": pa.int32()})
    parquet(folder / "b.parquet", [1], year=pa.array([2013], pa.int32()))
    refused_in_both(
        source(ds.dataset(folder, schema=schema), TRIPS),
        DataError,
        "fragment 1",
        "'year'",
        lattice=BY_YEAR,
    )
    assert count(source(ds.dataset(folder, schema=schema), TRIPS), [TRIPS_BY_AGE])[0].total == 5


def test_datasets_with_folders_filters_children_and_in_memory(tmp_path: Path) -> None:
    whole = pa.table({"age": [11, 12, 21], "year": pa.array([2013, 2013, 2014], pa.int32())})
    ds.write_dataset(
        whole,
        tmp_path / "d",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive"),
    )
    dataset = ds.dataset(tmp_path / "d", partitioning="hive")
    assert tens(dataset, BY_YEAR) == tens(tmp_path / "d", BY_YEAR) == {13: 2, 14: 1}
    assert tens(dataset.filter(ds.field("year") == 2014)) == {2: 1}
    assert tens(ds.dataset([dataset, ds.dataset(whole)])) == {1: 4, 2: 2}
    named = source(dataset, TRIPS, name="n")
    before = named.label
    assert before != source(dataset, TRIPS).label != source(dataset, TRIPS).label
    os.utime(next(Path(file) for file in dataset.files), ns=(1, 1))
    assert named.label != before
