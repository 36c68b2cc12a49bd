"""Counting a large Parquet file: processor time and memory beside decoding it, and beside others' GROUP BY, in one run.

The file is made by ``generate``. Every way runs in a process of its own, whose processor seconds are those of all its
threads from after the imports on; the ways take turns, and medians are shown. Decoding is pyarrow's own loop over the
two columns. DuckDB and Polars count the same cells by the same expression, in environments of their own.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from sfumato.bench import peers
from sfumato.bench.measuring import Chart, Row

CHART = Chart("cpu s", ("what", "rows", "cells"), others=("decode", "duckdb", "polars"))
POWERS = (10, 20, 24)
PEERS_POWER = 20
ROWS_PER_PERSON = 4
PEERS = ("duckdb", "polars")
DECODE, OURS, PERSONS = "decode", "sfumato", "sfumato, persons bounded"


def decode(path: str, side: int) -> Callable[[], object]:
    """Read both columns, and nothing else."""
    import pyarrow.parquet as pq

    def work() -> int:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(len(batch) for batch in file.iter_batches(2**16, columns=["x", "y"]))

    return work


def ours(path: str, side: int, person: str | None = None) -> Callable[[], object]:
    """One scan of a source; imports are made by a scan of nothing."""
    import numpy as np

    from sfumato.data import count, source
    from sfumato.domain import Domain, Interval, grid_axis
    from sfumato.lattice import Lattice

    axes = {name: Interval(0, 1) for name in "xy"}
    lattice = Lattice(tuple(grid_axis(name, axis, side) for name, axis in axes.items()))
    count(source(np.zeros((1, 2)), Domain(axes)), [lattice])
    return lambda: count(
        source(path, Domain(axes), person=person, rows_per_person=ROWS_PER_PERSON if person else 1),
        [lattice],
    )


def duckdb(path: str, side: int) -> Callable[[], object]:
    """DuckDB's GROUP BY."""
    import duckdb as engine
    import pyarrow as pa

    cell = " + ".join(
        f"floor(least({name} * {side}, {side - 1}))::INTEGER * {factor}"
        for name, factor in (("x", side), ("y", 1))
    )
    connection = engine.connect()
    connection.execute("SET enable_progress_bar = false")
    return lambda: pa.table(
        connection.sql(
            f"SELECT {cell} AS cell, count(*) AS rows FROM read_parquet('{path}') GROUP BY cell"
        )
    )


def polars(path: str, side: int) -> Callable[[], object]:
    """Polars' streaming group_by."""
    import polars as pl

    x, y = ((pl.col(name) * side).clip(upper_bound=side - 1).cast(pl.Int32) for name in "xy")
    return lambda: (
        pl.scan_parquet(path)
        .group_by((x * side + y).alias("cell"))
        .len()
        .collect(engine="streaming")
    )


WAYS: dict[str, Callable[[str, int], Callable[[], object]]] = {
    DECODE: decode,
    OURS: ours,
    PERSONS: lambda path, side: ours(path, side, "person"),
    "duckdb": duckdb,
    "polars": polars,
}


def child(way: str, path: str, power: int) -> None:
    """Measure one way in this process, and print what it took."""
    work, written = WAYS[way](path, 2 ** (power // 2)), _written()
    before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work()
    after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        json.dumps(
            {
                "cpu s": cpu,
                "wall s": ended - started,
                "peak MiB": _peak(),
                "files MiB": sum(written) / 2**20,
            }
        )
    )


def _peak() -> float:
    """The most memory that this process held, in MiB; Linux lets ``ru_maxrss`` begin with what the parent held."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+([0-9]+)", status.read_text())[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**20 if sys.platform == "darwin" else 2**10
    )


def _written() -> list[int]:
    """Count what goes to temporary files from now on."""
    from sfumato.data.external_partitions import ExternalPartitions

    found: list[int] = []
    plain = ExternalPartitions.close

    def close(self: ExternalPartitions) -> None:
        found.append(self.bytes_written)
        plain(self)

    mock.patch.object(ExternalPartitions, "close", close).start()
    return found


def measure(way: str, path: Path, power: int) -> dict[str, float]:
    """Run one way in a fresh process, with a folder of its own for temporary files, and count what is left there."""
    with tempfile.TemporaryDirectory() as place:
        call = f"import sys; sys.path.append({str(peers.SOURCES)!r}); from sfumato.bench.scan import child; "
        words = [
            str(peers.python(way) or sys.executable),
            "-c",
            f"{call}child({way!r}, {str(path)!r}, {power})",
        ]
        output = subprocess.run(
            words, env={**os.environ, "TMPDIR": place}, check=True, capture_output=True, text=True
        ).stdout
        return {**json.loads(output.splitlines()[-1]), "files left": len(os.listdir(place))}


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^8 rows of 10^7 persons, or a tenth of both; the file takes 24 bytes a row."""
    from sfumato.bench import generate

    count = 10**7 if quick else 10**8
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as place:
        plain, people = Path(place) / "plain.parquet", Path(place) / "persons.parquet"
        generate.write(plain, count)
        found = _compared(plain, count, 3 if quick else 5)
        plain.unlink()
        generate.write(people, count, count // 10)
        return [*found, _row(PERSONS, PEERS_POWER, count, [measure(PERSONS, people, PEERS_POWER)])]


def _compared(path: Path, count: int, rounds: int) -> list[Row]:
    there = [name for name in PEERS if peers.python(name)]
    tasks = [
        (DECODE, 0),
        *((OURS, power) for power in POWERS),
        *((peer, PEERS_POWER) for peer in there),
    ]
    measured: dict[tuple[str, int], list[dict[str, float]]] = {task: [] for task in tasks}
    for _ in range(rounds):
        for way, power in tasks:
            measured[way, power].append(measure(way, path, power))
    decoding = _medians(measured[DECODE, 0])["cpu s"]
    found = [
        {**_row(way, power, count, runs), "of decoding": _medians(runs)["cpu s"] / decoding}
        for (way, power), runs in measured.items()
    ]
    missing: list[Row] = [{"what": peers.absent(name)} for name in PEERS if name not in there]
    return found + missing


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _row(way: str, power: int, count: int, runs: list[dict[str, float]]) -> Row:
    cells = f"2^{power}" if power else ""
    return {
        "what": way,
        "rows": count,
        "cells": cells,
        **_medians(runs),
        "files left": max(r["files left"] for r in runs),
    }
