"""Arrays of Arrow and of numpy by their buffers, and releases that import no pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from sfumato.data.buffers import array_of, binary_of, is_true, is_valid, ndarray_of, without

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
        publisher.release(question, epsilon="1")
assert "pandas" not in sys.modules
"""


@pytest.mark.parametrize("person", ["patient", "number"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_from_a_file_imports_no_pandas(ending: str, person: str, tmp_path: Path) -> None:
    """It takes as much time as the release itself."""
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
