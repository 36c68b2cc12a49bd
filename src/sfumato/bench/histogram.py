"""Histograms: scanning many distinct keys, selecting among them, a release of 10^6 cells, and bins by records.

Decoding the same column, and Arrow's own count of its values, which releases everything, stand beside the scan.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sfumato.bench.measuring import Chart, Row, medians
from sfumato.cube import Cube
from sfumato.data import count, source
from sfumato.domain import Domain, Interval, Keys
from sfumato.histogram import Histogram
from sfumato.mechanisms.thresholds import RULES, key_law, released
from sfumato.privacy.measures import ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import current

CHART = Chart("cpu s", ("what", "keys or cells"), others=("decode", "Arrow's value_counts"))
PART = 10**6
ODD = 2_654_435_761  # scatters the numbers in the names of keys


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^7 distinct text keys (10^6 if quick), 10^7 selections, 10^6 cells, and 1,000 bins of 1,000 rows."""
    keys = 10**6 if quick else 10**7
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as place:
        path = Path(place) / "keys.parquet"
        _write(path, keys)
        found = [_once(what, keys, work) for what, work in _ways(path).items()]
    counts = np.random.default_rng(1).zipf(1.3, keys).clip(1, 10**6)
    for rule in RULES:
        law = key_law(ApproxDP("1", "1e-6"), Unit(), rule)
        found.append(
            _median(
                f"selecting keys, {rule}",
                keys,
                medians(partial(released, counts, law, current()), 3),
            )
        )
    return [*found, _cells(10**6), _by_records(10**6)]


def _write(path: Path, keys: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("key", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, keys, PART):
            names = [f"shop-{i * ODD % 2**40:013d}" for i in range(start, start + PART)]
            writer.write_table(pa.table({"key": names}, schema=schema))


def _ways(path: Path) -> dict[str, Callable[[], object]]:
    import pyarrow.parquet as pq

    domain = Domain(key=Keys())
    lattice = Histogram("key").needs(domain).lattice

    def decode() -> int:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(len(batch) for batch in file.iter_batches(2**16))

    return {
        "decode": decode,
        "Arrow's value_counts": lambda: len(pq.read_table(path)["key"].value_counts()),
        "sfumato, scan of keys": lambda: count(source(path, domain), [lattice]),
    }


def _cells(cells: int) -> Row:
    question = Histogram("x", bins=cells)
    cube = Cube(
        question.needs(Domain(x=Interval(0, 1))).lattice,
        np.random.default_rng(1).integers(0, 100, cells),
    )
    return _median(
        "histogram of known cells",
        cells,
        medians(lambda: question.answer(cube, Unit(), PureDP("0.5"), current()), 5),
    )


def _by_records(rows: int) -> Row:
    question = Histogram("x", records=1000)
    lattice = question.needs(Domain(x=Interval(0, 1))).lattice
    (axis,) = lattice.grids
    cube = Cube.of_cells(lattice, axis.locate(np.random.default_rng(1).beta(2, 5, rows))[:, None])
    seconds = medians(lambda: question.answer(cube, Unit(), PureDP("0.5"), current()), 5)
    return _median("histogram by records", rows // 1000, seconds)


def _once(what: str, size: int, work: Callable[[], object]) -> Row:
    wall, process = time.perf_counter(), time.process_time()
    work()
    return _median(what, size, (time.perf_counter() - wall, time.process_time() - process))


def _median(what: str, size: int, seconds: tuple[float, float]) -> Row:
    return {"what": what, "keys or cells": size, "wall s": seconds[0], "cpu s": seconds[1]}
