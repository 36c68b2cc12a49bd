"""Twelve times the rows take hardly more memory, whatever kind of source streams them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FILES, ROWS = 12, 2**20

MEASURE = """
import resource, sys
from sfumato.data import count, source
from sfumato.domain import Domain, Interval, Lattice, grid_axis
domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
lattice = Lattice((grid_axis("x", domain["x"], 64), grid_axis("y", domain["y"], 64)))
for pattern in ("0.parquet", "*.parquet"):
    {make}
    print(count(source(data, domain), [lattice])[0].total)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform != "darwin" else 2**20))
"""
MAKE = {
    "files": "data = pattern",
    "dataset": "import glob, pyarrow.dataset; data = pyarrow.dataset.dataset(sorted(glob.glob(pattern)))",
    "polars, lazy": "import polars; data = polars.scan_parquet(pattern)",
    "duckdb": "import duckdb; duckdb.sql('SET enable_progress_bar = false'); data = duckdb.sql(f\"SELECT * FROM '{pattern}'\")",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    part = pa.table({name: np.random.default_rng(0).random(ROWS) for name in "xy"})
    for i in range(FILES):
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=2**18, use_dictionary=False, compression="none")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from the resource module")
@pytest.mark.parametrize("kind", MAKE)
def test_memory_does_not_grow_with_the_rows(kind: str, folder: Path) -> None:
    script = MEASURE.format(make=MAKE[kind])
    output = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True).stdout
    rows, first, all_rows, second = map(int, output.split())
    assert (rows, all_rows) == (ROWS, FILES * ROWS)
    assert second - first < 130  # MB; all rows together are 200
