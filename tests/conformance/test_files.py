"""Several files as one source: which they are, in which order, what is refused before a charge, and what no error says."""

from __future__ import annotations

import os
import pickle
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data import made
from sfumato.data import Source, count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.errors import DataError, SfumatoError, UsageError
from sfumato.lattice import LabelAxis, Lattice

CANARY = "8675309"
AGE = Domain(
    age=Interval(0, 120, step=1),
    year=Interval(2000, 2030, step=1),
    place=Categories(["a", "b c/d", "2013"]),
    day=Interval("2020-01-01", "2020-01-05"),
)
BY_AGE = Lattice((grid_axis("age", AGE["age"], 12),))  # type: ignore[arg-type]
BY_YEAR = Lattice((grid_axis("year", AGE["year"], 30),))  # type: ignore[arg-type]
BY_DAY = Lattice((grid_axis("day", AGE["day"], 4),))  # type: ignore[arg-type]
BY_PLACE = Lattice((LabelAxis("place", ("a", "b c/d", "2013")),))


def parquet(path: Path, ages: list[int], **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"age": ages, **more}), path)
    return path


def refused(src: Source, kind: type[SfumatoError], *words: str, lattice: Lattice = BY_AGE) -> None:
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


def tens(data: object, lattice: Lattice = BY_AGE) -> dict[int, int]:
    return {
        cell[0]: count for cell, count in made.found(count(source(data, AGE), [lattice])[0]).items()
    }


def test_patterns_and_directories(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = {1: 1, 2: 2, 3: 3}
    for data in (
        folder,
        f"{folder}/",
        f"{folder}/**/*.parquet",
        f"{folder}/**",
        f"{folder}/*",
        f"file://{folder}/**/*",
        folder.as_uri(),
    ):
        assert tens(data) == every, data
    for data in (
        f"{folder}/*.parquet",
        f"{folder}/[ab].parquet",
        folder / "?.parquet",
        [f"{folder}/b*", f"{folder}/a.parquet"],
    ):
        assert tens(data) == {1: 1, 2: 2}, data
    assert tens(f"{folder}/*/*/c.parquet") == tens(f"{folder}/**/er") == {3: 3}
    monkeypatch.chdir(folder.parent)
    assert tens("d") == tens("d/../d/**") == tens(["d/deep", "d/a.parquet", "d/b.parquet"]) == every
    monkeypatch.setenv("HOME", str(folder))
    assert tens("~/*.parquet") == {1: 1, 2: 2}


def test_a_name_with_signs_of_a_pattern_is_the_file_of_that_name(tmp_path: Path) -> None:
    assert tens(parquet(tmp_path / "t[1].parquet", [5])) == {0: 1}


def test_what_is_not_a_table_is_passed_over_in_directories(folder: Path) -> None:
    for name in ("_SUCCESS", "_part.parquet", ".c.parquet", "notes.txt"):
        (folder / name).write_text("x")
    (folder / "_logs").mkdir()
    shutil.copy(folder / "a.parquet", folder / "_logs")
    assert tens(folder) == {1: 1, 2: 2, 3: 3}
    refused(source(f"{folder}/*", AGE), DataError, "file 4 in sorted order", "not a Parquet file")


def test_links_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    parquet(tmp_path / "elsewhere" / "d.parquet", [41])
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "deep" / "circle").symlink_to(folder)
    assert tens(folder) == tens(f"{folder}/**/*.parquet") == {1: 1, 2: 2, 3: 3, 4: 1}
    (folder / "again.parquet").symlink_to(folder / "a.parquet")
    refused(source(folder, AGE), DataError, "there twice")


def test_what_is_refused_of_files(folder: Path, tmp_path: Path) -> None:
    refused(source(f"{tmp_path}/none/*.parquet", AGE), DataError, "no file matches")
    with pytest.raises(DataError, match="no file matches"):
        _ = source(f"{folder}/*.csv", AGE).label
    (tmp_path / "empty").mkdir()
    refused(source(tmp_path / "empty", AGE), DataError, "holds no Parquet or CSV file")
    refused(source([folder / "a.parquet", f"{folder}/*.parquet"], AGE), DataError, "there twice")
    refused(
        source([folder / "a.parquet", folder / "none.parquet"], AGE),
        DataError,
        "no such file",
        "none.parquet",
    )
    (folder / "z.csv").write_text("age\n1\n")
    refused(source(folder, AGE), DataError, "both Parquet and CSV")
    for bad in ("s3://bucket/t.parquet", "https://example.org/t.csv"):
        with pytest.raises(UsageError, match="only local files"):
            source(bad, AGE)
    with pytest.raises(UsageError):
        source([], AGE)


@pytest.mark.parametrize(
    "fault", [{"aeg": [1]}, {"age": [CANARY]}, {"age": [1], "who": [[1]]}, None]
)
def test_one_bad_file_refuses_all_before_the_charge(fault: Any, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", [1], who=["p"])
    bad = tmp_path / f"{CANARY}.parquet"  # a name that was listed may be a value
    bad.write_bytes(b"") if fault is None else pq.write_table(
        pa.table({"who": ["p"], **fault}), bad
    )
    src = source(f"{tmp_path}/*.parquet", AGE, person="who")
    refused(src, DataError, "*.parquet, file 1 in sorted order")
    with sf.Publisher(src, budget="1") as publisher:
        with pytest.raises(DataError):
            publisher.release(sf.Histogram("age"), epsilon="1")
        assert publisher.account.spent == (0, 0)


def test_ids_of_several_files(tmp_path: Path) -> None:
    """Equal ids are one person in whatever file, or the source is refused."""
    alike = [
        pa.array(["p"]),
        pa.array(["p"], pa.large_string()),
        pa.array(["p"]).dictionary_encode(),
        pa.array([None], pa.null()),
    ]
    whole = [pa.array([7], type_) for type_ in (pa.int8(), pa.uint32(), pa.int64())]
    for ids, total in ((alike, 1), (whole, 1)):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for i, column in enumerate(ids):
            parquet(folder / f"{i}.parquet", [1], who=column)
        assert count(source(folder, AGE, person="who"), [BY_AGE])[0].total == total
    parquet(folder / "z.parquet", [1], who=pa.array(["7"]))
    refused(source(folder, AGE, person="who"), DataError, "different types in different files")
    for i, width in enumerate((pa.float32(), pa.float64())):  # 0.1 of one is not 0.1 of the other
        parquet(tmp_path / "floats" / f"{i}.parquet", [1], who=pa.array([0.1], width))
    refused(
        source(tmp_path / "floats", AGE, person="who"),
        DataError,
        "different types in different files",
    )


def test_folders_are_columns_of_the_declared_types(tmp_path: Path) -> None:
    for below in (
        "year=2013/place=a/day=2020-01-02",
        "year=2014/place=b%20c%2Fd/day=2020-01-03",
        "year=02015/place=2013/day=__HIVE_DEFAULT_PARTITION__",
    ):
        parquet(tmp_path / "d" / below / "part-0.parquet", [1, 2])
    for data in (
        tmp_path / "d",
        f"{tmp_path}/d/*",
        f"{tmp_path}/d/**/*.parquet",
        f"{tmp_path}/d/year=*/place=*/*/part-?.parquet",
    ):
        assert tens(data, BY_YEAR) == {13: 2, 14: 2, 15: 2}, data
        assert tens(data, BY_PLACE) == {0: 2, 1: 2, 2: 2}
        assert tens(data, BY_DAY) == {1: 2, 2: 2}
        assert tens(data) == {0: 6}
    refused(source(f"{tmp_path}/d/year=2013/*", AGE), DataError, "no column", lattice=BY_YEAR)
    src = source(tmp_path / "d", AGE, person="year", rows_per_person=1)
    assert count(src, [BY_AGE, BY_YEAR])[0].total == 3
    parquet(tmp_path / "d" / f"year=x{CANARY}" / "place=a" / "day=2020-01-02" / "t.parquet", [1])
    assert tens(tmp_path / "d", BY_YEAR) == {
        13: 2,
        14: 2,
        15: 2,
    }  # the folder's value does not parse: missing


def test_folders_that_do_not_name_all_columns_alike(tmp_path: Path) -> None:
    parquet(tmp_path / "d" / "year=2013" / "t.parquet", [1])
    parquet(tmp_path / "d" / "t.parquet", [1])
    refused(source(tmp_path / "d", AGE), DataError, "no column of that name", lattice=BY_YEAR)
    (tmp_path / "d" / "t.parquet").unlink()
    parquet(tmp_path / "d" / "year=2014" / "t.parquet", [1], year=[2014])
    refused(source(tmp_path / "d", AGE), DataError, "several columns", lattice=BY_YEAR)


def test_csv_in_folders(tmp_path: Path) -> None:
    (tmp_path / "d" / "year=2013").mkdir(parents=True)
    (tmp_path / "d" / "year=2013" / "t.csv").write_text("age\n11\n12\n")
    assert tens(tmp_path / "d", BY_YEAR) == {13: 2}
    assert tens(tmp_path / "d") == {1: 2}


def test_the_label_changes_with_every_file(folder: Path, tmp_path: Path) -> None:
    sources = [
        source(folder, AGE),
        source(folder, AGE, name="n"),
        source(f"{folder}/**/*.parquet", AGE),
        source([folder / "a.parquet", folder / "deep"], AGE),
    ]

    def labels() -> list[str]:
        found = [src.label for src in sources]
        assert found == [src.label for src in sources]
        return found

    seen = [labels()]
    os.utime(folder / "a.parquet", ns=(1, 1))
    seen.append(labels())
    parquet(folder / "deep" / "d.parquet", [1])
    seen.append(labels())
    (folder / "deep" / "d.parquet").rename(folder / "deep" / "e.parquet")
    seen.append(labels())
    (folder / "deep" / "e.parquet").unlink()
    assert labels() == seen[1]
    for one, another in pairwise(seen):
        assert all(a != b for a, b in zip(one, another, strict=True))
    assert seen[0][1].startswith("n modified ")
    assert str(folder) not in seen[0][1]
    before = sources[1].label
    moved = shutil.copytree(folder, tmp_path / "moved", copy_function=shutil.copy2)
    assert source(moved, AGE, name="n").label == before
    assert (
        source([folder / "a.parquet", folder / "b.parquet"], AGE).label
        == source([folder / "b.parquet", folder / "a.parquet"], AGE).label
    )


def test_what_several_files_are_called(folder: Path) -> None:
    assert source(f"{folder}/*.parquet", AGE).title == "*.parquet"
    assert source(f"{folder}/", AGE).title == "d"
    assert source([folder / "a.parquet", folder / "b.parquet"], AGE).title == "a.parquet and 1 more"
    again = pickle.loads(pickle.dumps(source([folder / "a.parquet", folder / "b.parquet"], AGE)))
    assert count(again, [BY_AGE])[0].total == 3


def test_a_dataset_whose_fragments_differ_is_refused(folder: Path) -> None:
    schema = pa.schema({"age": pa.int64(), "year": pa.int32()})
    parquet(folder / "b.parquet", [1], year=pa.array([2013], pa.int32()))
    refused(
        source(ds.dataset(folder, schema=schema), AGE),
        DataError,
        "fragment 1",
        "'year'",
        lattice=BY_YEAR,
    )
    assert count(source(ds.dataset(folder, schema=schema), AGE), [BY_AGE])[0].total == 5


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
    named = source(dataset, AGE, name="n")
    before = named.label
    assert before != source(dataset, AGE).label != source(dataset, AGE).label
    os.utime(next(Path(file) for file in dataset.files), ns=(1, 1))
    assert named.label != before


def test_a_relation_is_not_disturbed_by_other_queries() -> None:
    import duckdb

    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), AGE)
    src.require([BY_AGE])
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert count(src, [BY_AGE])[0].total == count(src, [BY_AGE])[0].total == 300_000


def test_failures_inside_engines_quote_nothing(tmp_path: Path) -> None:
    import duckdb
    import polars as pl

    broken = [
        pl.LazyFrame({"age": [f"x{CANARY}"]}).with_columns(pl.col("age").cast(pl.Int64)),
        duckdb.connect().sql(f"SELECT CAST('x{CANARY}' || range AS INTEGER) AS age FROM range(3)"),
    ]
    for data in broken:
        src = source(data, AGE)
        with pytest.raises(DataError) as caught:
            count(src, [BY_AGE])
        assert CANARY not in str(caught.value)
        assert caught.value.__context__ is None


def test_objects_of_pandas_have_one_type_in_all_parts() -> None:
    import pandas as pd

    ages = np.full(2**16 + 10, None, object)
    ages[-5:] = 33
    assert tens(pd.DataFrame({"age": ages})) == {3: 5}
