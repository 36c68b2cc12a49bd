"""Several files as one source: what is refused, what identifies them, how much memory they take."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data.refusals import CANARY
from data.trips import TRIPS, TRIPS_BY_AGE, parquet, refused_in_both
from sfumato.data import count, source
from sfumato.errors import DataError


@pytest.mark.parametrize(
    "fault", [{"aeg": [1]}, {"age": [CANARY]}, {"age": [1], "who": [[1]]}, None]
)
def test_one_bad_file_refuses_all_before_the_charge(fault: Any, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", [1], who=["p"])
    bad = tmp_path / f"{CANARY}.parquet"  # a name that was listed may be a value
    bad.write_bytes(b"") if fault is None else pq.write_table(
        pa.table({"who": ["p"], **fault}), bad
    )
    src = source(f"{tmp_path}/*.parquet", TRIPS, person="who")
    refused_in_both(src, DataError, "*.parquet, file 1 in sorted order")
    with sf.Publisher(src, budget="1") as publisher:
        with pytest.raises(DataError):
            publisher.release(sf.Histogram("age"), epsilon="1")
        assert publisher.account.spent == (0, 0)


def test_equal_ids_in_several_files_are_one_person(tmp_path: Path) -> None:
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
        assert count(source(folder, TRIPS, person="who"), [TRIPS_BY_AGE])[0].total == total
    parquet(folder / "z.parquet", [1], who=pa.array(["7"]))
    refused_in_both(
        source(folder, TRIPS, person="who"), DataError, "different types in different files"
    )
    for i, width in enumerate((pa.float32(), pa.float64())):  # 0.1 of one is not 0.1 of the other
        parquet(tmp_path / "floats" / f"{i}.parquet", [1], who=pa.array([0.1], width))
    refused_in_both(
        source(tmp_path / "floats", TRIPS, person="who"),
        DataError,
        "different types in different files",
    )


def test_the_label_changes_with_every_file(folder: Path, tmp_path: Path) -> None:
    sources = [
        source(folder, TRIPS),
        source(folder, TRIPS, name="n"),
        source(f"{folder}/**/*.parquet", TRIPS),
        source([folder / "a.parquet", folder / "deep"], TRIPS),
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
    assert source(moved, TRIPS, name="n").label == before
    assert (
        source([folder / "a.parquet", folder / "b.parquet"], TRIPS).label
        == source([folder / "b.parquet", folder / "a.parquet"], TRIPS).label
    )


def test_titles_of_several_files(folder: Path) -> None:
    assert source(f"{folder}/*.parquet", TRIPS).title == "*.parquet"
    assert source(f"{folder}/", TRIPS).title == "d"
    assert (
        source([folder / "a.parquet", folder / "b.parquet"], TRIPS).title == "a.parquet and 1 more"
    )
    again = pickle.loads(pickle.dumps(source([folder / "a.parquet", folder / "b.parquet"], TRIPS)))
    assert count(again, [TRIPS_BY_AGE])[0].total == 3


FEW = 4
FILES = 16
ROWS_PER_FILE = 2**20


THREADS = {
    "OMP_NUM_THREADS": "2",
    "POLARS_MAX_THREADS": "2",
}  # memory for each core is another matter


# Counting pauses once, so that an engine that reads ahead without bound has the time to do so. No
# outcome depends on that time.
MEASURE = """
import glob, resource, sys, time
from sfumato.data import count, reader as guard, scan, source
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak // (1024 if sys.platform != "darwin" else 2**20))
"""


MAKE = {
    "files": "data = pattern",
    "dataset": "import pyarrow.dataset; data = pyarrow.dataset.dataset(sorted(glob.glob(pattern)))",
    "polars, lazy": "import polars; data = polars.scan_parquet(pattern)",
    "duckdb": "import duckdb; duckdb.sql('SET enable_progress_bar = 0; SET threads = 2'); "
    "data = duckdb.read_parquet(pattern)",
}


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    many_files = tmp_path_factory.mktemp("rows")
    part = pa.table({name: np.random.default_rng(0).random(ROWS_PER_FILE) for name in "xy"})
    file = many_files / "few0.parquet"
    pq.write_table(part, file, row_group_size=2**18, use_dictionary=False, compression="none")
    for i in range(1, FILES):
        shutil.copy(file, many_files / f"{'few' if i < FEW else 'further'}{i}.parquet")
    return many_files


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from the resource module")
@pytest.mark.parametrize(
    "kind",
    [
        "files",
        "duckdb",
        *(pytest.param(kind, marks=pytest.mark.deep) for kind in ("dataset", "polars, lazy")),
    ],
)
def test_memory_does_not_grow_with_the_number_of_files(kind: str, many_files: Path) -> None:
    words = [sys.executable, "-c", MEASURE.format(make=MAKE[kind])]
    environment = {**os.environ, **THREADS}
    output = subprocess.run(
        words, cwd=many_files, env=environment, capture_output=True, text=True, check=True
    ).stdout
    few_rows, first, all_rows, second = map(int, output.split())
    assert (few_rows, all_rows) == (FEW * ROWS_PER_FILE, FILES * ROWS_PER_FILE)
    assert second - first < 120  # MB; the further rows are 200
