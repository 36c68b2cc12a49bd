"""What cannot be counted is refused before anything is charged, and no refusal holds a value of the data."""

from __future__ import annotations

import copy
import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.data import Source, count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.errors import BoundsRequired, DataError, SfumatoError, UsageError
from sfumato.lattice import LabelAxis, Lattice

CANARY = "8675309"
AGE = Domain(age=Interval(0, 120, step=1))
BY_AGE = Lattice((grid_axis("age", AGE["age"], 12),))
KIND = Domain(kind=Categories(["a"]))
BY_KIND = Lattice((LabelAxis("kind", ("a",)),))


def _no_value(error: BaseException) -> None:
    """Neither the error nor what it hangs from holds the canary."""
    assert error.__cause__ is None
    assert error.__context__ is None
    for text in (
        str(error),
        repr(error),
        "".join(traceback.format_exception(error)),
        repr(vars(error)),
    ):
        assert CANARY not in text


def refused(action: Callable[[], object], kind: type[SfumatoError], *words: str) -> None:
    with pytest.raises(kind) as caught:
        action()
    _no_value(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def refuses(
    data: object, *words: str, domain: Domain = AGE, lattice: Lattice = BY_AGE, **more: Any
) -> None:
    """Both before the charge and in the count."""
    src = source(data, domain, **more)
    refused(lambda: src.require([lattice]), DataError, *words)
    refused(lambda: count(src, [lattice]), DataError, *words)


def write(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_files_that_are_not_there(name: str, tmp_path: Path) -> None:
    refuses(tmp_path / name, "no such file", name)
    refused(lambda: source(tmp_path / name, AGE).label, DataError, "no such file")
    (tmp_path / name).mkdir()
    refuses(tmp_path / name, "is a directory")
    (tmp_path / name).rmdir()
    refuses(write(tmp_path, "", name), "the file is empty")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_files_that_may_not_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "age\n1\n", name)

    def forbidden(self: Path, *args: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbidden)
    refuses(path, "may not be read")


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    refuses(write(tmp_path, f"age\n{CANARY}\n", "t.parquet"), "not a Parquet file")
    refuses(write(tmp_path, CANARY * 100, "t"), "not a Parquet file")
    pq.write_table(pa.table({"age": np.arange(10_000)}), tmp_path / "u.parquet")
    whole = (tmp_path / "u.parquet").read_bytes()
    refuses(write(tmp_path, whole[:-100], "t.parquet"), "not a Parquet file")
    refuses(write(tmp_path, whole[-100:], "t.parquet"), "Parquet")


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


CSV: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "no such column": (f"agee,p\n{CANARY},u\n".encode(), ("no column", "did you mean 'agee'")),
    "twice the same column": (f"age,age\n{CANARY},2\n".encode(), ("several columns",)),
    "a header in Latin-1": (
        f"age,Gr\xf6\xdfe\n{CANARY},2\n".encode("latin-1"),
        ("first line", "not UTF-8"),
    ),
    "UTF-16": (f"age,p\n{CANARY},2\n".encode("utf-16"), ("first line", "not UTF-8")),
    "blank lines only": (b"\n\r\n\n", ("no header",)),
    "a mark alone": (b"\xef\xbb\xbf", ("no header",)),
    "an open mark in the header": (
        f'age,"p\n{CANARY},2\n'.encode(),
        ("first line", "quotation mark"),
    ),
    "a header without an end": (b"age," + b"p" * 2**20, ("first line", "1 MB")),
}


@pytest.mark.parametrize("case", CSV)
def test_csv_files_whose_header_is_wrong(case: str, tmp_path: Path) -> None:
    content, words = CSV[case]
    refuses(write(tmp_path, content), *words)


def test_csv_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    refuses(write(tmp_path, b"\x1f\x8b" + CANARY.encode(), "t.csv.gz"), "t.csv.gz", "compression")


NUMBER, DATES, TIMES = (
    Interval(0, 9),
    Interval("2020-01-01", "2021-01-01"),
    Interval("2020-01-01T00:00", "2021-01-01T00:00"),
)
MISFITS: list[tuple[Any, pa.Array]] = [
    (NUMBER, pa.array([CANARY])),
    (NUMBER, pa.array([CANARY]).dictionary_encode()),
    (NUMBER, pa.array([int(CANARY)], pa.date32())),
    (NUMBER, pa.array([int(CANARY)], pa.timestamp("us"))),
    (NUMBER, pa.array([int(CANARY)], pa.duration("us"))),
    (NUMBER, pa.array([int(CANARY)], pa.time64("us"))),
    (NUMBER, pa.array([[int(CANARY)]])),
    (NUMBER, pa.array([CANARY.encode()])),
    (DATES, pa.array([int(CANARY)])),
    (TIMES, pa.array([CANARY])),
    (TIMES, pa.array([int(CANARY)], pa.time64("us"))),
    (Categories(["a"]), pa.array([int(CANARY)])),
    (Categories([1], other="else"), pa.array([CANARY])),
    (Categories([1]), pa.array([True])),
    (Categories([True]), pa.array([int(CANARY)])),
    (Categories(["a"]), pa.array([int(CANARY)], pa.timestamp("us"))),
]


@pytest.mark.parametrize("case", range(len(MISFITS)))
def test_columns_of_the_wrong_type(case: int, tmp_path: Path) -> None:
    axis, column = MISFITS[case]
    domain = Domain(v=axis)
    lattice = Lattice(
        (
            grid_axis("v", axis, 2)
            if isinstance(axis, Interval)
            else LabelAxis("v", axis.all_labels, axis.other is not None),
        )
    )
    table = pa.table({"v": column})
    pq.write_table(
        table.set_column(0, "v", column) if not pa.types.is_duration(column.type) else table,
        tmp_path / "t.parquet",
    )
    for data in (table, tmp_path / "t.parquet"):
        refuses(data, "column 'v'", "it is of type", domain=domain, lattice=lattice)


def test_columns_that_are_missing_or_doubled() -> None:
    for frame in (
        pd.DataFrame({"agge": [1]}),
        pl.DataFrame({"agge": [1]}),
        pa.table({"agge": [1]}),
    ):
        refuses(frame, "no column of that name", "did you mean 'agge'")
    refuses(pa.table([[1], [2]], names=["age", "age"]), "several columns")
    refuses(pd.DataFrame([[1, 2]], columns=["age", "age"]), "several columns")
    refuses(pa.table({"age": [1], "rider": [1]}), "'ridr'", "did you mean 'rider'", person="ridr")
    refuses(pa.table({"age": [1], "p": [[1]]}), "'p'", "ids of persons", person="p")


def test_what_source_refuses_at_once() -> None:
    for data in (None, 5, [[1.0]], {"age": [1]}):
        refused(lambda data=data: source(data, AGE), UsageError, "source of type")
    for shape in ((3,), (3, 2), (3, 1, 1)):
        refused(lambda shape=shape: source(np.zeros(shape), AGE), UsageError, "(n, 1)")
    frame = pa.table({"age": [1]})
    refused(lambda: source(frame, None), UsageError, "Domain")
    refused(lambda: source(frame, {}), UsageError)
    refused(lambda: source(frame, {"age": Interval}), BoundsRequired)
    refused(
        lambda: source(frame, AGE, person="p", rows_per_person=0), UsageError, "rows_per_person"
    )
    refused(lambda: source(frame, AGE, neighbours="both"), UsageError, "neighbours")  # type: ignore[arg-type]
    for bad in ("", 3):
        refused(lambda bad=bad: source(frame, AGE, person=bad), UsageError, "person")
        refused(lambda bad=bad: source(frame, AGE, name=bad), UsageError, "name")
    refused(lambda: source(np.zeros((2, 1)), AGE, person="p"), UsageError, "person")
    refused(lambda: source(frame, AGE).require([BY_KIND]), UsageError, "no axis")
    refuses(np.array([[1j]]), "complex128")
    refuses(np.array([[CANARY]], object), "dtype object")
    refuses(np.array([[CANARY]]), "column 'age'")


def test_a_reader_can_be_read_once() -> None:
    src = source(pa.table({"age": [1]}).to_reader(), AGE)
    src.require([BY_AGE])
    assert count(src, [BY_AGE])[0].total == 1
    refused(lambda: src.require([BY_AGE]), DataError, "once")


def test_what_a_source_shows(tmp_path: Path) -> None:
    frame = pa.table({"age": [int(CANARY)] * 7, "p": [CANARY] * 7})
    for data in (frame, pl.from_arrow(frame), frame.to_pandas()):
        shown = repr(source(data, AGE, person="p"))
        assert CANARY not in shown
        assert "7" not in shown
        assert "age" in shown


def test_labels_tell_data_sets_apart(tmp_path: Path) -> None:
    frame = pa.table({"age": [1]})
    one, two = source(frame, AGE), source(frame, AGE)
    assert one.label == one.label != two.label
    assert source(frame, AGE, name="census").label == "census"
    path = write(tmp_path, "age\n1\n")
    src, named = source(path, AGE), source(str(path), AGE, name="census")
    before = src.label, named.label
    assert str(path.resolve()) in before[0]
    assert str(path.resolve()) not in before[1]
    assert before[1].startswith("census modified ")
    os.utime(path, ns=(1, 1))
    assert (src.label, named.label) == (
        f"{path.resolve()} modified 1 of 6 bytes",
        "census modified 1 of 6 bytes",
    )
    assert before[0] != src.label
    path.write_text("age\n1\n2\n")
    os.utime(path, ns=(1, 1))
    assert named.label == "census modified 1 of 8 bytes"


def test_only_files_are_pickled(tmp_path: Path) -> None:
    for data in (
        pa.table({"age": [1]}),
        np.zeros((2, 1)),
        pd.DataFrame({"age": [1]}),
        pl.DataFrame({"age": [1]}),
    ):
        refused(lambda data=data: pickle.dumps(source(data, AGE)), UsageError, "in memory")
        refused(lambda data=data: copy.copy(source(data, AGE)), UsageError, "in memory")
    again = pickle.loads(
        pickle.dumps(
            source(write(tmp_path, "age,p\n1,u\n"), AGE, person="p", rows_per_person=2, name="n")
        )
    )
    assert isinstance(again, Source)
    assert (
        again.unit.rows_per_person,
        again.label.split()[0],
        count(again, [BY_AGE])[0].total,
    ) == (2, "n", 1)


def test_the_first_row_of_a_file_without_a_header_is_not_quoted(tmp_path: Path) -> None:
    refuses(
        write(tmp_path, f"x{CANARY},a\nx31,b\n"),
        "column 'age'",
        "no column of that name",
        "give the file a header",
    )
    refuses(
        write(tmp_path, f"{CANARY},a\n31,b\n"),
        "column 'age'",
        "no column of that name",
        "give the file a header",
    )
