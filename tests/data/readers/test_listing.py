"""Which files a path, a directory or a pattern stands for, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data.trips import TRIPS, parquet, refused_in_both, tens
from sfumato.data import source
from sfumato.errors import DataError, UsageError


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
    for name in ("_SUCCESS", "_part.parquet", ".c.parquet", "notes.md"):
        (folder / name).write_text("x")
    (folder / "_logs").mkdir()
    shutil.copy(folder / "a.parquet", folder / "_logs")
    assert tens(folder) == {1: 1, 2: 2, 3: 3}
    refused_in_both(
        source(f"{folder}/*", TRIPS), DataError, "file 4 in sorted order", "not a Parquet file"
    )


def test_links_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    parquet(tmp_path / "elsewhere" / "d.parquet", [41])
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    (folder / "deep" / "circle").symlink_to(folder)
    assert tens(folder) == tens(f"{folder}/**/*.parquet") == {1: 1, 2: 2, 3: 3, 4: 1}
    (folder / "again.parquet").symlink_to(folder / "a.parquet")
    refused_in_both(source(folder, TRIPS), DataError, "there twice")


def test_files_that_cannot_be_listed_are_refused(folder: Path, tmp_path: Path) -> None:
    refused_in_both(source(f"{tmp_path}/none/*.parquet", TRIPS), DataError, "no file matches")
    with pytest.raises(DataError, match="Write duckdb: before it"):
        source("trips.db?table=t", TRIPS).require([])
    with pytest.raises(DataError, match="no file matches"):
        _ = source(f"{folder}/*.csv", TRIPS).label
    (tmp_path / "empty").mkdir()
    refused_in_both(
        source(tmp_path / "empty", TRIPS), DataError, "holds no Parquet, CSV or Excel file"
    )
    refused_in_both(
        source([folder / "a.parquet", f"{folder}/*.parquet"], TRIPS), DataError, "there twice"
    )
    refused_in_both(
        source([folder / "a.parquet", folder / "none.parquet"], TRIPS),
        DataError,
        "no such file",
        "none.parquet",
    )
    (folder / "z.csv").write_text("age\n1\n")
    refused_in_both(source(folder, TRIPS), DataError, "both Parquet and CSV")
    for bad in ("s3://bucket/t.parquet", "https://example.org/t.csv"):
        with pytest.raises(UsageError, match="only local files"):
            source(bad, TRIPS)
    with pytest.raises(UsageError):
        source([], TRIPS)
