"""Four times the rows take hardly more memory, whatever kind of source streams them, also where counting is the slower part."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

FEW, FILES, ROWS = 4, 16, 2**20
THREADS = {
    "OMP_NUM_THREADS": "2",
    "POLARS_MAX_THREADS": "2",
}  # memory for each core is another matter

# Counting pauses once: time for an engine to read ahead without bound, if it does. No outcome needs that time.
MEASURE = """
import glob, resource, sys, time
from sfumato.data import count, guard, scan, source
from sfumato.domain import (Domain, Interval, grid_axis)
from sfumato.lattice import Lattice
domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
lattice = Lattice((grid_axis("x", domain["x"], 64), grid_axis("y", domain["y"], 64)))
plain = guard.guarded_batches
def slowly(*arguments):
    for batch in plain(*arguments):
        time.sleep(pauses.pop() if pauses else 0)
        yield batch
scan.guarded_batches = slowly
for pattern in ("few*.parquet", "*.parquet"):
    {make}
    pauses = [0.5]
    print(count(source(data, domain), [lattice])[0].total)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform != "darwin" else 2**20))
"""
MAKE = {
    "files": "data = pattern",
    "dataset": "import pyarrow.dataset; data = pyarrow.dataset.dataset(sorted(glob.glob(pattern)))",
    "polars, lazy": "import polars; data = polars.scan_parquet(pattern)",
    "duckdb": "import duckdb; duckdb.sql('SET enable_progress_bar = 0; SET threads = 2'); data = duckdb.read_parquet(pattern)",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    part = pa.table({name: np.random.default_rng(0).random(ROWS) for name in "xy"})
    file = folder / "few0.parquet"
    pq.write_table(part, file, row_group_size=2**18, use_dictionary=False, compression="none")
    for i in range(1, FILES):
        shutil.copy(file, folder / f"{'few' if i < FEW else 'further'}{i}.parquet")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from the resource module")
@pytest.mark.parametrize("kind", MAKE)
def test_memory_does_not_grow_with_the_rows(kind: str, folder: Path) -> None:
    words = [sys.executable, "-c", MEASURE.format(make=MAKE[kind])]
    environment = {**os.environ, **THREADS}
    output = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout
    few_rows, first, all_rows, second = map(int, output.split())
    assert (few_rows, all_rows) == (FEW * ROWS, FILES * ROWS)
    assert second - first < 120  # MB; the further rows are 200
