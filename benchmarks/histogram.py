"""Histograms: scanning and selecting many distinct keys, 10^6 cells, and bins by records.

Beside the scan are decoding the same column, and Arrow's own count of its values, which is exact
and not private.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measuring import Chart, Row, medians
from benchmarks.measuring import seconds as seconds_of
from sfumato.data import count, source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval, Keys
from sfumato.mechanisms.thresholds import RULES, key_law, released
from sfumato.privacy.measures import ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import current

CHART = Chart("cpu s", ("what", "keys or cells"), others=("decode", "Arrow's value_counts"))
PART_ROWS = 10**6
SCATTER = 2_654_435_761
"""An odd factor that scatters the numbers in the names of keys."""


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^7 distinct keys and selections (10^6 if quick), 10^6 cells, and 1,000 bins."""
    keys = 10**6 if quick else 10**7
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        path = Path(folder) / "keys.parquet"
        _write(path, keys)
        found = [_once(what, keys, work) for what, work in _scans(path).items()]
    counts = np.random.default_rng(1).zipf(1.3, keys).clip(1, 10**6)
    for rule in RULES:
        law = key_law(ApproxDP("1", "1e-6"), Unit(), rule)
        seconds = medians(partial(released, counts, law, current()), 3)
        found.append(_row(f"selecting keys, {rule}", keys, seconds))
    return [*found, _cells(10**6), _by_records(10**6)]


def _write(path: Path, keys: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("key", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, keys, PART_ROWS):
            names = [f"shop-{i * SCATTER % 2**40:013d}" for i in range(start, start + PART_ROWS)]
            writer.write_table(pa.table({"key": names}, schema=schema))


def _scans(path: Path) -> dict[str, Callable[[], object]]:
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
    lattice = question.needs(Domain(x=Interval(0, 1))).lattice
    cube = Cube(lattice, np.random.default_rng(1).integers(0, 100, cells))
    seconds = medians(lambda: question.answer(cube, Unit(), PureDP("0.5"), current()), 5)
    return _row("histogram of known cells", cells, seconds)


def _by_records(rows: int) -> Row:
    question = Histogram("x", records=1000)
    lattice = question.needs(Domain(x=Interval(0, 1))).lattice
    (axis,) = lattice.grids
    cube = Cube.of_cells(lattice, axis.locate(np.random.default_rng(1).beta(2, 5, rows))[:, None])
    seconds = medians(lambda: question.answer(cube, Unit(), PureDP("0.5"), current()), 5)
    return _row("histogram by records", rows // 1000, seconds)


def _once(what: str, size: int, work: Callable[[], object]) -> Row:
    return _row(what, size, seconds_of(work))


def _row(what: str, size: int, seconds: tuple[float, float]) -> Row:
    wall, process = seconds
    return {"what": what, "keys or cells": size, "wall s": wall, "cpu s": process}
