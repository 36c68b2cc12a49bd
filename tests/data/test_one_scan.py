"""One scan, whatever is asked; memory that does not grow with the rows; nothing read before the charge."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import made
from sfumato.data import count, source
from sfumato.data.cell_counts import PENDING_ROWS, DenseCounts, SparseCounts
from sfumato.data.packing import Packing
from sfumato.domain import Domain, Keys
from sfumato.lattice import GridAxis, KeyAxis, Lattice

THREE = made.LATTICES[:3]


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(made.table(made.rows(500, 3)), tmp_path / "t.parquet", row_group_size=100)
    return tmp_path / "t.parquet"


def test_three_lattices_take_one_scan_of_the_columns_they_need(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []
    plain = pq.ParquetFile.iter_batches

    def counted(self: pq.ParquetFile, *args: object, **kwargs: object) -> object:
        read.append(list(kwargs["columns"]))
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    src = source(parquet, made.DOMAIN)
    src.require(THREE)
    assert read == []  # no column is touched before the charge
    count(src, THREE)
    assert [sorted(columns) for columns in read] == [["flag", "n", "word", "x"]]
    assert count(src, []) == []


def test_each_row_is_counted_once_when_one_batch_brings_more_and_more_keys() -> None:
    """Chunks grow with the number of known keys; they never overlap."""
    n_keys = 300_000
    table = pa.table({"shop": np.arange(n_keys)})
    (batch,) = table.to_batches()
    assert len(batch) == n_keys
    lattice = Lattice((KeyAxis("shop"),))
    progress: list[int] = []
    (cube,) = count(
        source(table, Domain(shop=Keys())),
        [lattice],
        lambda done, total: progress.append(done),
    )
    assert cube.total == n_keys
    assert cube.counts.max() == 1
    assert progress[-1] == n_keys


def test_progress_ends_at_the_number_of_rows(parquet: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    count(source(parquet, made.DOMAIN), THREE, lambda done, total: steps.append((done, total)))
    assert steps[-1] == (500, 500)
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


def test_errors_of_progress_are_the_callers_own(parquet: Path) -> None:
    def stop(done: int, total: int | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        count(source(parquet, made.DOMAIN), THREE, stop)


def test_what_is_given_is_not_changed() -> None:
    values = np.random.default_rng(0).random((1000, 1))
    before = values.copy()
    frame = pa.table({"x": values[:, 0]})
    count(
        source(frame, {"x": made.DOMAIN["x"]}),
        [Lattice((made.grid("x", 5),)), Lattice((made.grid("x", 7), made.grid("x", 5)))],
    )
    assert (values == before).all()


def test_a_sparse_cube_grows_with_its_cells_not_with_the_rows() -> None:
    lattice = Lattice((GridAxis("a", 0.0, 1.0, 2**20), GridAxis("b", 0.0, 1.0, 2**20)))
    tally = SparseCounts(Packing(lattice))
    draw = np.random.default_rng(0)
    cells = draw.integers(0, 2**40, 1000)
    held, rows = 0, 0
    for _ in range(80):
        tally.add([draw.choice(cells, 2**15)])
        rows += 2**15
        held = max(held, tally._rows + len(tally._counts))
    assert held <= PENDING_ROWS + 2**15 + 1000
    assert tally.cube().total == rows


def test_counters_are_widened_before_they_run_over(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),))))
    monkeypatch.setattr("sfumato.data.cell_counts.MOST_IN_32_BITS", 1000)
    tally._counts[1] = 2**32 - 1 - 1000  # as full as it can be, with a thousand rows to come
    for _ in range(4):
        tally.add([np.array([1, 3, -1])])
        tally.add([np.full(299, 1)])
    assert tally.cube().counts.tolist() == [0, 2**32 - 1 - 1000 + 4 * 300, 0, 4]
    assert (
        DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),)))).cube().counts.dtype == np.int64
    )


MEASURE = """
import resource, sys
from sfumato.data import count, source
from sfumato.domain import Domain, Interval, grid_axis
from sfumato.lattice import Lattice
domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
lattice = Lattice((grid_axis("x", domain["x"], 64), grid_axis("y", domain["y"], 64)))
for path in sys.argv[1:]:
    assert count(source(path, domain), [lattice])[0].total > 0
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 if sys.platform != "darwin" else 1024))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from the resource module")
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_rows(ending: str, tmp_path: Path) -> None:
    part = pa.table({name: np.random.default_rng(0).random(2**17) for name in "xy"})
    small, large = tmp_path / f"small.{ending}", tmp_path / f"large.{ending}"
    _write(part, small, 4)
    _write(part, large, 48 if ending == "parquet" else 16)
    words, environment = (
        [sys.executable, "-c", MEASURE, str(small), str(large)],
        {**os.environ, "OMP_NUM_THREADS": "2"},
    )
    output = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True
    ).stdout
    first, second = (int(line) / 1024 for line in output.split())
    assert second - first < 40  # MB; all rows together are 100 MB as doubles, 70 MB as text


def _write(part: pa.Table, path: Path, times: int) -> None:
    from pyarrow import csv

    writer = (
        pq.ParquetWriter(path, part.schema)
        if path.suffix == ".parquet"
        else csv.CSVWriter(path, part.schema)
    )
    with writer:
        for _ in range(times):
            writer.write_table(part)
