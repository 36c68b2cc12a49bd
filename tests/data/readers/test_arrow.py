"""Arrow streams and datasets of pyarrow as sources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from data import random_tables
from data.refusals import AGE, BY_AGE, CANARY, refused
from sfumato.data import Source, count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.errors import DataError, SfumatoError
from sfumato.lattice import Lattice


def test_a_reader_can_be_read_once() -> None:
    src = source(pa.table({"age": [1]}).to_reader(), AGE)
    src.require([BY_AGE])
    assert count(src, [BY_AGE])[0].total == 1
    refused(lambda: src.require([BY_AGE]), DataError, "once")


TRIPS = Domain(
    age=Interval(0, 120, step=1),
    year=Interval(2000, 2030, step=1),
    place=Categories(["a", "b c/d", "2013"]),
    day=Interval("2020-01-01", "2020-01-05"),
)


TRIPS_BY_AGE = Lattice((grid_axis("age", TRIPS["age"], 12),))  # type: ignore[arg-type]


BY_YEAR = Lattice((grid_axis("year", TRIPS["year"], 30),))  # type: ignore[arg-type]


def parquet(path: Path, ages: list[int], **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"age": ages, **more}), path)
    return path


def refused_in_both(
    src: Source, kind: type[SfumatoError], *words: str, lattice: Lattice = TRIPS_BY_AGE
) -> None:
    """Before a charge as in the count, and without a word of what a name may tell."""
    for action in (lambda: src.require([lattice]), lambda: count(src, [lattice])):
        with pytest.raises(kind) as caught:
            action()
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert CANARY not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parquet(tmp_path / "d" / "b.parquet", [21, 22])
    parquet(tmp_path / "d" / "a.parquet", [11])
    parquet(tmp_path / "d" / "deep" / "er" / "c.parquet", [31, 32, 33])
    return tmp_path / "d"


def tens(data: object, lattice: Lattice = TRIPS_BY_AGE) -> dict[int, int]:
    return {
        cell[0]: count
        for cell, count in random_tables.found(count(source(data, TRIPS), [lattice])[0]).items()
    }


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
