"""Arrays of Arrow and of numpy by their buffers, and what a release does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from sfumato.basics.buffers import (
    Column,
    array_of,
    binary_of,
    column_of,
    is_true,
    is_valid,
    ndarray_of,
    without,
)

TYPES = [pa.bool_(), pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float32(), pa.float64()]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_values_are_those_that_arrow_gives(type_: pa.DataType) -> None:
    column = pa.array([1, 0, None, 1] * 20, pa.int8()).cast(type_)
    for part in (column, column.slice(3), column.slice(13, 9), column.slice(5, 0)):
        plain = part.drop_null()
        assert ndarray_of(plain).tolist() == plain.to_pylist()
        assert ndarray_of(part, 0).tolist() == [value or 0 for value in part.to_pylist()]
        assert is_valid(part).tolist() == [value is not None for value in part.to_pylist()]


def test_null_is_nan_among_doubles() -> None:
    assert np.isnan(ndarray_of(pa.array([None, 2.0]))).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [bool, np.int32, np.int64, np.uint64, np.float64])
def test_an_array_and_back(dtype: type) -> None:
    values = (np.arange(21) % 3).astype(dtype)[::2]
    is_null = np.arange(len(values)) % 4 == 1
    array = array_of(values, is_null)
    array.validate(full=True)
    assert array.equals(pa.array(values, mask=is_null))
    assert array_of(values).equals(pa.array(values))


def test_texts_and_masks() -> None:
    texts = [b"", b"ab", b"c"]
    assert binary_of(texts).equals(pa.array(texts, pa.binary()))
    assert binary_of([]).equals(pa.array([], pa.binary()))
    is_gone = pa.array([True, False, None])
    assert without(pa.array([1, 2, 3]), is_true(is_gone)).to_pylist() == [None, 2, 3]


COLUMNS: dict[str, Column] = {
    "texts": ["a", "", "\u00e9\U0001f600"],
    "none": [],
    "whole numbers": [1, -(2**63), 2**63 - 1],
    "doubles": [0.5, float("nan"), -0.0],
    "mixed": [1, 0.5, None],
    "booleans": [True, False],
    "dates": np.array(["2026-01-01", "1969-12-31"], "M8[D]"),
    "dates, and none": np.array(["2026-01-01", "NaT"], "M8[D]"),
    "moments": np.array([0, -1], "M8[us]"),
    "ndarray": np.array([2, 3], np.uint8),
    "as it is": pa.array([1, None]),
    "in chunks": pa.chunked_array([[1], [None]]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_is_that_of_arrow(kind: str) -> None:
    values = COLUMNS[kind]
    column = column_of(values)
    of_arrow = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
    assert column.type == of_arrow.type
    assert str(column) == str(of_arrow)  # where NaN is like NaN
    if isinstance(values, np.ndarray):
        is_null = np.arange(len(values)) == 1
        masked = column_of(values, is_null)
        masked.validate(full=True)
        assert masked.equals(pa.array(values, mask=is_null))


def test_numbers_that_fit_no_column_are_refused_as_by_arrow() -> None:
    for values in ([2**70], [1, 2**64]):
        with pytest.raises(OverflowError):
            pa.array(values)
        with pytest.raises(OverflowError):
            column_of(values)


UNUSED = {
    "pandas": "pyarrow imports it for a convenience, and it takes as long as the release",
    "scipy": "accuracy of sums",
    "urllib.request": "addresses",
    "importlib.metadata": "readers of other packages",
    "zoneinfo": "local clocks",
    "sfumato.answers.workbooks": "Excel",
    "sfumato.data.readers.excel": "Excel",
    "sfumato.ledger.postgres": "ledgers on a server",
    "sfumato.publishing.stream": "streams",
    "sfumato.streaming": "streams",
    "sfumato.questions.counters": "streams",
    "sfumato.questions.persons": "another question",
    "sfumato.questions.quantiles": "another question",
    "sfumato.questions.tables": "another question",
    "sfumato.questions.clustering": "another question",
    "sfumato.questions.aggregates": "another question",
}
"""Modules that a histogram of a file does not import, and what needs them."""


RELEASE = """
import sys
import sfumato as sf

domain = sf.Domain(
    age=sf.Interval(0, 100, step=1),
    ward=sf.Categories(["a", "b"], other="else", missing="not known"),
    day=sf.Interval("2026-01-01", "2027-01-01"),
)
source = sf.source(sys.argv[1], domain, person=sys.argv[2], rows_per_person=2)
with sf.Publisher(source, ledger=sys.argv[3], account="visits", budget="9") as publisher:
    for question in (sf.Histogram("age", bins=10), sf.Histogram("ward"), sf.Histogram("day")):
        publisher.release(question, epsilon="1").to_frame()
print(*sys.modules)
"""


@pytest.mark.parametrize("person", ["patient", "number"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_from_a_file_imports_what_it_uses(
    ending: str, person: str, tmp_path: Path
) -> None:
    table = pa.table(
        {
            "age": pa.array([31, None, 64, 31]),
            "ward": ["a", None, "b", "c"],
            "day": pa.array([20500, 20510, None, 20520], pa.int32()).cast(pa.date32()),
            "patient": ["p1", "p2", "17", None],
            "number": pa.array([1, 2, None, 2]),
        }
    )
    path = tmp_path / f"visits.{ending}"
    (csv.write_csv if ending == "csv" else pq.write_table)(table, path)
    script = tmp_path / "release.py"
    script.write_text(RELEASE)
    run = [sys.executable, str(script), str(path), person, str(tmp_path / "budget.db")]
    finished = subprocess.run(run, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    # What earlier answers say of the limits on a person is looked for among their titles.
    of_limits = {"sfumato.questions.persons"}
    assert not (UNUSED.keys() - of_limits) & set(finished.stdout.split())
    assert ("pyarrow.parquet" in finished.stdout.split()) == (ending == "parquet")


COMMAND = """
import sys
from sfumato.cli import run
assert run(sys.argv[1:]) == 0
print(*sys.modules)
"""


def test_a_command_that_counts_a_file_imports_what_it_uses(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("age,day,ward\n31,2026-01-05,a\n64,2026-02-01,b\n")
    axes = ["age=0..100/1", "day=2026-01-01..2027-01-01", "ward=a,b"]
    words = ["histogram", "visits.csv", *(word for axis in axes for word in ("--axis", axis))]
    words += ["--bins", "age=10", "--bins", "day=2", "--epsilon", "1", "--budget", "2"]
    finished = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--ledger", "budget.db"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert finished.returncode == 0, finished.stderr
    *rows, modules = finished.stdout.splitlines()
    assert len(rows) == 2 + 10 * 2 * 2  # the title, the names and the cells
    assert not {*UNUSED, "pyarrow.parquet", "rich"} & set(modules.split())
