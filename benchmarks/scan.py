"""Counting a large Parquet file, beside decoding it and beside the GROUP BY of DuckDB and Polars.

``generate`` makes the file. Every task runs in a process of its own; its processor seconds are
those of all threads, without the imports. The tasks take turns, and medians are shown. Decoding is
pyarrow's own loop over the two columns. DuckDB and Polars count the same cells by the same
expression, in environments of their own.
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

from benchmarks import peers
from benchmarks.measuring import Chart, Row

CHART = Chart("cpu s", ("what", "rows", "cells"), others=("decode", "duckdb", "polars"))
POWERS = (10, 20, 24)
PEERS_POWER = 20
ROWS_PER_PERSON = 4
PEERS = ("duckdb", "polars")
DECODE = "decode"
OURS = "sfumato"
PERSONS = "sfumato, persons bounded"
NORM = "sfumato, norms bounded"
NORM_PER_PERSON = 2  # reached by four rows in four cells


def decode(path: str, side: int) -> Callable[[], object]:
    """Read both columns, and nothing else."""
    import pyarrow.parquet as pq

    def work() -> int:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return sum(len(batch) for batch in file.iter_batches(2**16, columns=["x", "y"]))

    return work


def ours(
    path: str, side: int, person: str | None = None, norm: int | None = None
) -> Callable[[], object]:
    """One scan of a source. A scan of one row makes the imports first."""
    import numpy as np

    from sfumato.data import count, source
    from sfumato.domain.domain import Domain, Interval, grid_axis
    from sfumato.domain.lattice import Lattice

    axes = {name: Interval(0, 1) for name in "xy"}
    lattice = Lattice(tuple(grid_axis(name, axis, side) for name, axis in axes.items()))
    count(source(np.zeros((1, 2)), Domain(axes)), [lattice])
    limit = None if norm else ROWS_PER_PERSON if person else 1
    return lambda: count(
        source(path, Domain(axes), person=person, rows_per_person=limit, norm_per_person=norm),
        [lattice],
    )


def duckdb(path: str, side: int) -> Callable[[], object]:
    """DuckDB's GROUP BY."""
    import duckdb as engine
    import pyarrow as pa

    x, y = (f"floor(least({name} * {side}, {side - 1}))::INTEGER" for name in "xy")
    query = (
        f"SELECT {x} * {side} + {y} * 1 AS cell, count(*) AS rows "
        f"FROM read_parquet('{path}') GROUP BY cell"
    )
    connection = engine.connect()
    connection.execute("SET enable_progress_bar = false")
    return lambda: pa.table(connection.sql(query))


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


TASKS: dict[str, Callable[[str, int], Callable[[], object]]] = {
    DECODE: decode,
    OURS: ours,
    PERSONS: lambda path, side: ours(path, side, "person"),
    NORM: lambda path, side: ours(path, side, "person", NORM_PER_PERSON),
    "duckdb": duckdb,
    "polars": polars,
}


def child(task: str, path: str, power: int) -> None:
    """Measure one task in this process, and print its figures as JSON."""
    work = TASKS[task](path, 2 ** (power // 2))
    written = _written()
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.perf_counter() - started
    figures = {
        "cpu s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "wall s": wall,
        "peak MiB": _peak(),
        "files MiB": sum(written) / 2**20,
    }
    print(json.dumps(figures))


def _peak() -> float:
    """The peak memory of this process in MiB."""
    # Linux begins ``ru_maxrss`` with the memory of the parent; VmHWM is of this process only.
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.findall(r"VmHWM:\s+([0-9]+)", status.read_text())[0]) / 2**10
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _written() -> list[int]:
    """A list to which each temporary file adds its bytes, from now on."""
    from sfumato.data.person_records import ExternalPartitions

    found: list[int] = []
    plain = ExternalPartitions.close

    def close(self: ExternalPartitions) -> None:
        found.append(self.bytes_written)
        plain(self)

    mock.patch.object(ExternalPartitions, "close", close).start()
    return found


def measure(task: str, path: Path, power: int) -> dict[str, float]:
    """Run one task in a fresh process, and count the temporary files that it leaves behind."""
    code = (
        f"import sys; sys.path.insert(0, {str(peers.ROOT)!r}); "
        "from benchmarks.scan import child; "
        f"child({task!r}, {str(path)!r}, {power})"
    )
    command = [str(peers.python(task) or sys.executable), "-c", code]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        return {**figures, "files left": len(os.listdir(folder))}


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^8 rows of 10^7 persons, or a tenth of both; the file takes 24 bytes a row.

    The scan with persons is measured at 2 * 10^7 rows too: the figure to reach differs.
    """
    from benchmarks import generate

    count = 10**7 if quick else 10**8
    rounds = 3 if quick else 5
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        plain = Path(folder) / "plain.parquet"
        generate.write(plain, count)
        found = _compared(plain, count, rounds)
        plain.unlink()
        for size in [count] if quick else [2 * 10**7, count]:
            people = Path(folder) / "persons.parquet"
            generate.write(people, size, size // 10)
            found += _with_persons(people, size, rounds)
            people.unlink()
        return found


def _with_persons(path: Path, count: int, rounds: int) -> list[Row]:
    """The scan of one file with persons bounded, beside that without persons.

    Persons are bounded by rows, and by the norm of their counts.
    """
    runs: dict[str, list[dict[str, float]]] = {OURS: [], PERSONS: [], NORM: []}
    for _ in range(rounds):
        for task, measured in runs.items():
            measured.append(measure(task, path, PEERS_POWER))
    seconds = {task: _medians(measured)["cpu s"] for task, measured in runs.items()}
    by_rows = _row(PERSONS, PEERS_POWER, count, runs[PERSONS])
    by_norm = _row(NORM, PEERS_POWER, count, runs[NORM])
    return [
        by_rows | {"of without persons": seconds[PERSONS] / seconds[OURS]},
        by_norm | {"of bounded rows": seconds[NORM] / seconds[PERSONS]},
    ]


def _compared(path: Path, count: int, rounds: int) -> list[Row]:
    installed = [name for name in PEERS if peers.python(name)]
    tasks = [
        (DECODE, 0),
        *((OURS, power) for power in POWERS),
        *((peer, PEERS_POWER) for peer in installed),
    ]
    measured: dict[tuple[str, int], list[dict[str, float]]] = {task: [] for task in tasks}
    for _ in range(rounds):
        for task, power in tasks:
            measured[task, power].append(measure(task, path, power))
    decoding = _medians(measured[DECODE, 0])["cpu s"]
    found: list[Row] = []
    for (task, power), runs in measured.items():
        row = _row(task, power, count, runs)
        found.append(row | {"of decoding": _medians(runs)["cpu s"] / decoding})
    found += [{"what": peers.absent(name)} for name in PEERS if name not in installed]
    return found


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _row(task: str, power: int, count: int, runs: list[dict[str, float]]) -> Row:
    cells = f"2^{power}" if power else ""
    return {
        "what": task,
        "rows": count,
        "cells": cells,
        **_medians(runs),
        "files left": max(run["files left"] for run in runs),
    }
