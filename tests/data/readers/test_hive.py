"""Folders named key=value are columns of the declared types."""

from __future__ import annotations

from pathlib import Path

from data.refusals import CANARY
from data.trips import BY_YEAR, TRIPS, TRIPS_BY_AGE, parquet, refused_in_both, tens
from sfumato.data import count, source
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.errors import DataError

BY_DAY = Lattice((grid_axis("day", TRIPS["day"], 4),))  # type: ignore[arg-type]


BY_PLACE = Lattice((LabelAxis("place", ("a", "b c/d", "2013")),))


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
    refused_in_both(
        source(f"{tmp_path}/d/year=2013/*", TRIPS), DataError, "no column", lattice=BY_YEAR
    )
    src = source(tmp_path / "d", TRIPS, person="year", rows_per_person=1)
    assert count(src, [TRIPS_BY_AGE])[0].total == 3
    # As numbers, 2015 and 02015 would be one person.
    refused_in_both(src, DataError, "names the person, as text", lattice=BY_YEAR)
    src = source(tmp_path / "d", TRIPS, person=["place", "day"], rows_per_person=1)
    assert count(src, [TRIPS_BY_AGE])[0].total == 2
    parquet(tmp_path / "d" / f"year=x{CANARY}" / "place=a" / "day=2020-01-02" / "t.parquet", [1])
    assert tens(tmp_path / "d", BY_YEAR) == {
        13: 2,
        14: 2,
        15: 2,
    }  # the folder's value does not parse: missing


def test_folders_that_do_not_name_all_columns_alike(tmp_path: Path) -> None:
    parquet(tmp_path / "d" / "year=2013" / "t.parquet", [1])
    parquet(tmp_path / "d" / "t.parquet", [1])
    refused_in_both(
        source(tmp_path / "d", TRIPS), DataError, "no column of that name", lattice=BY_YEAR
    )
    (tmp_path / "d" / "t.parquet").unlink()
    parquet(tmp_path / "d" / "year=2014" / "t.parquet", [1], year=[2014])
    refused_in_both(source(tmp_path / "d", TRIPS), DataError, "several columns", lattice=BY_YEAR)


def test_csv_files_in_folders_have_the_columns_of_the_folders(tmp_path: Path) -> None:
    (tmp_path / "d" / "year=2013").mkdir(parents=True)
    (tmp_path / "d" / "year=2013" / "t.csv").write_text("age\n11\n12\n")
    assert tens(tmp_path / "d", BY_YEAR) == {13: 2}
    assert tens(tmp_path / "d") == {1: 2}
