"""Whole answers on all cores, beside DuckDB and Polars on as many threads, in the same run.

Each task runs in a process of its own. Wall and processor seconds are those of one answer, from the
file to the released numbers, without the imports. The peers count the same cells by a GROUP BY;
where persons are bounded, they number the rows of each person by a hash and keep the first. Of a
small file the whole command is measured, with its start. The tasks take turns; medians are shown.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks import peers
from benchmarks.measuring import Chart, Row, seconds

CHART = Chart("wall s", ("who", "what", "rows"), others=("duckdb", "polars"))
OURS = "sfumato"
WHO = (OURS, "duckdb", "polars")
KINDS = ("bus", "car", "metro", "taxi", "tram")
LIMIT = 4
MOST_WAGE = 2_000
SMALL = "small release, with its start"

Work = Callable[[], object]

SQL = {
    "one label": "SELECT kind, count(*) FROM t GROUP BY ALL",
    "two axes": "SELECT kind, hour, count(*) FROM t GROUP BY ALL",
    "three axes": "SELECT kind, hour, floor(x * 10)::INT, count(*) FROM t GROUP BY ALL",
    "mean": f"SELECT kind, count(*), sum(least(wage, {MOST_WAGE})) FROM t GROUP BY ALL",
    "persons, 4 rows": f"""SELECT kind, hour, count(*) FROM (SELECT kind, hour, row_number() OVER
        (PARTITION BY person ORDER BY hash(person, kind, hour, x)) AS n FROM t)
        WHERE n <= {LIMIT} GROUP BY ALL""",
    "persons counted": "SELECT kind, count(DISTINCT person) FROM t GROUP BY ALL",
}
"""What is asked, by name, in DuckDB's words."""
# What is asked of each large file, and what it is called.
ASKED = {
    "large.parquet": ("parquet", tuple(SQL)),
    "large.csv": ("csv", ("two axes", "persons, 4 rows")),
    "quoted.csv": ("csv with quotation marks", ("two axes",)),
}
SETTINGS = ("tables over 4^13 cells", "10^6 listed labels", "report of 100 answers")


def ours(what: str, path: str) -> Work:
    """One answer of ours. A small one before it makes the imports."""
    import pyarrow as pa

    import sfumato as sf

    domain = sf.Domain(
        kind=sf.Categories(KINDS),
        hour=sf.Interval(0, 24, step=1),
        x=sf.Interval(0, 1),
        wage=sf.Interval(0, MOST_WAGE),
    )
    question = {
        "one label": sf.Histogram("kind"),
        "two axes": sf.Histogram(["kind", "hour"]),
        "three axes": sf.Histogram(["kind", "hour", "x"], bins={"x": 10}),
        "mean": sf.Mean("wage", by="kind"),
        "persons, 4 rows": sf.Histogram(["kind", "hour"]),
        "persons counted": sf.Histogram("kind", count="persons"),
    }[what]
    person = "person" if "persons" in what else None

    def answer(data: object) -> object:
        limit = None if person is None else LIMIT
        source = sf.source(data, domain, name="cores", person=person, rows_per_person=limit)
        with sf.Publisher(source, budget="10") as publisher:
            return publisher.release(question, epsilon="1")

    one = {"kind": ["bus"], "hour": [1], "x": [0.5], "wage": [1.0], "person": [1]}
    answer(pa.table(one))
    return lambda: answer(path)


def duckdb(what: str, path: str) -> Work:
    """DuckDB's answer without privacy."""
    import duckdb as engine

    connection = engine.connect()
    connection.execute(f"SET threads = {os.environ['SFUMATO_THREADS']}")
    connection.execute("SET enable_progress_bar = false")
    reader = "read_csv" if path.endswith(".csv") else "read_parquet"
    connection.execute(f"CREATE VIEW t AS SELECT * FROM {reader}('{path}')")
    return lambda: connection.sql(SQL[what]).fetchall()


def polars(what: str, path: str) -> Work:
    """Polars' answer without privacy."""
    import polars as pl

    scan = pl.scan_csv if path.endswith(".csv") else pl.scan_parquet
    rows = scan(path)
    hashed = pl.struct("person", "kind", "hour", "x").hash()
    first = hashed.rank("ordinal").over("person") <= LIMIT
    answers = {
        "one label": lambda: rows.group_by("kind").len(),
        "two axes": lambda: rows.group_by("kind", "hour").len(),
        "three axes": lambda: rows.group_by("kind", "hour", (pl.col("x") * 10).cast(int)).len(),
        "mean": lambda: rows.group_by("kind").agg(
            pl.len(), pl.col("wage").clip(upper_bound=MOST_WAGE).sum()
        ),
        "persons, 4 rows": lambda: rows.filter(first).group_by("kind", "hour").len(),
        "persons counted": lambda: rows.group_by("kind").agg(pl.col("person").n_unique()),
    }
    return lambda: answers[what]().collect(engine="streaming")


def tables(what: str, path: str) -> Work:
    """Pairs of neighbours of 13 axes of 4, 10^5 rows."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    names = [f"x{at}" for at in range(13)]
    draw = np.random.default_rng(1)
    data = pa.table({name: draw.integers(0, 4, 10**5) for name in names})
    domain = sf.Domain({name: sf.Interval(0, 4, step=1) for name in names})
    question = sf.Tables([[a, b] for a, b in itertools.pairwise(names)])
    source = sf.source(data, domain, name="cores")
    return lambda: sf.Publisher(source, budget="10").release(question, epsilon="1")


def labels(what: str, path: str) -> Work:
    """Counts of 10^6 labels that are listed, 10^6 rows."""
    import numpy as np
    import pyarrow as pa

    import sfumato as sf

    listed = [f"shop {at}" for at in range(10**6)]
    data = pa.table({"shop": np.random.default_rng(1).permutation(listed)})
    source = sf.source(data, sf.Domain(shop=sf.Categories(listed)), name="cores")
    return lambda: sf.Publisher(source, budget="10").release(sf.Histogram("shop"), epsilon="1")


def report(what: str, path: str) -> Work:
    """One page of 100 histograms. A page of one before it makes the imports."""
    import numpy as np

    import sfumato as sf

    names = [f"x{at}" for at in range(100)]
    domain = sf.Domain({name: sf.Interval(0, 100) for name in names})
    source = sf.source(np.random.default_rng(1).random((1000, 100)) * 100, domain, name="cores")
    with sf.Publisher(source, budget="10") as publisher:
        answers = publisher.release([sf.Histogram(name, bins=12) for name in names], epsilon="10")
    page = Path(tempfile.mkdtemp()) / "page.html"
    sf.report(answers[0], page)
    return lambda: sf.report(answers, page)


WORKS: dict[str, Callable[[str, str], Work]] = {
    OURS: ours,
    "duckdb": duckdb,
    "polars": polars,
    **dict(zip(SETTINGS, (tables, labels, report), strict=True)),
}


def child(name: str, what: str, path: str) -> None:
    """Measure one task in this process, and print its figures as JSON."""
    from benchmarks.scan import _peak

    work = WORKS[name](what, path)
    before = sum(os.times()[2:4])
    wall, cpu = seconds(work)
    cpu += sum(os.times()[2:4]) - before  # of the processes that it started
    print(json.dumps({"wall s": wall, "cpu s": cpu, "peak MiB": _peak()}))


def measure(name: str, what: str, path: Path, threads: int) -> dict[str, float]:
    """Run one task in a fresh process."""
    code = (
        f"import sys; sys.path.insert(0, {str(peers.ROOT)!r}); from benchmarks.cores import child; "
        f"child({name!r}, {what!r}, {str(path)!r})"
    )
    done = _run([str(peers.python(name) or sys.executable), "-W", "ignore", "-c", code], threads)
    figures: dict[str, float] = json.loads(done.splitlines()[-1])
    return figures


def _run(command: list[str], threads: int) -> str:
    stated = {"SFUMATO_THREADS": str(threads), "POLARS_MAX_THREADS": str(threads)}
    environment = {**os.environ, **stated}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


SMALL_RELEASE = {
    OURS: "import sys; from sfumato.cli import run; run(['histogram', sys.argv[1], '--axis', "
    "'hour=0..24/1', '--axis', 'kind=bus,car,metro,taxi,tram', '--epsilon', '1', '--budget', '2', "
    "'--ledger', sys.argv[1] + '.db', '--fresh'])",
    "polars": "import sys, polars as pl; "
    "print(pl.read_csv(sys.argv[1]).group_by('hour', 'kind').len())",
    "duckdb": "import sys, duckdb; print(duckdb.sql("
    "f\"SELECT hour, kind, count(*) FROM read_csv('{sys.argv[1]}') GROUP BY ALL\"))",
}


def small(name: str, path: Path, threads: int) -> dict[str, float]:
    """Run one command over a small file, with the start of its interpreter."""
    before = sum(os.times()[2:4])
    started = time.perf_counter()
    command = [str(peers.python(name) or sys.executable), "-c", SMALL_RELEASE[name], str(path)]
    _run(command, threads)
    wall = time.perf_counter() - started
    Path(f"{path}.db").unlink(missing_ok=True)
    Path(f"{path}.db.secrets").unlink(missing_ok=True)
    return {"wall s": wall, "cpu s": sum(os.times()[2:4]) - before}


def write(path: Path, rows: int) -> None:
    """Write a table of rows as Parquet, or as CSV by the ending of the path.

    Most programs put quotation marks where they are needed; Arrow puts them around all text, and so
    does a file that is called quoted.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    draw = np.random.default_rng(20_260_101)
    schema = pa.schema(
        [
            ("kind", pa.dictionary(pa.int32(), pa.string())),
            *(("hour", pa.int32()), ("x", pa.float64()), ("wage", pa.float64())),
            ("person", pa.int64()),
        ]
    )
    is_csv = path.suffix == ".csv"
    plain = schema.set(0, pa.field("kind", pa.string())) if is_csv else schema
    marks = csv.WriteOptions(quoting_style="needed" if path.stem == "quoted" else "none")
    with (
        csv.CSVWriter(path, plain, write_options=marks) if is_csv else pq.ParquetWriter(path, plain)
    ) as target:
        for first in range(0, rows, 2**20):
            n = min(2**20, rows - first)
            kind = pa.DictionaryArray.from_arrays(
                draw.integers(0, len(KINDS), n, np.int32), list(KINDS)
            )
            columns = [
                kind.cast(pa.string()) if is_csv else kind,
                draw.integers(0, 24, n, np.int32),
                draw.random(n),
                draw.gamma(2, 300, n).round(2),
                draw.integers(0, max(rows // 10, 1), n),
            ]
            target.write_table(pa.table(columns, schema=plain))


def rows(quick: bool = False) -> list[Row]:
    """Measure 5 * 10^7 rows of Parquet and 10^7 of each CSV, or a hundredth of all."""
    import pyarrow as pa

    threads = int(os.environ.get("SFUMATO_THREADS") or pa.cpu_count())
    part = 100 if quick else 1
    files = {
        "large.parquet": 5 * 10**7 // part,
        "large.csv": 10**7 // part,
        "quoted.csv": 10**7 // part,
        "small.csv": 300,
    }
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        for file, n_rows in files.items():
            write(Path(folder) / file, n_rows)
        return list(_rows(Path(folder), files, threads, 3 if quick else 5))


def _rows(folder: Path, files: dict[str, int], threads: int, rounds: int) -> Iterator[Row]:
    who = [name for name in WHO if name == OURS or peers.python(name)]
    for file, (called, asked) in ASKED.items():
        path = folder / file
        for what in asked:
            works = {name: partial(measure, name, what, path, threads) for name in who}
            yield from _compared(f"{what}, {called}", files[file], threads, works, rounds)
    path = folder / "small.csv"
    works = {name: partial(small, name, path, threads) for name in who}
    yield from _compared(SMALL, files["small.csv"], threads, works, 2 * rounds + 1)
    for what in SETTINGS:
        for number in dict.fromkeys((1, threads)):
            alone = {OURS: partial(measure, what, what, path, number)}
            yield from _compared(what, 0, number, alone, 1)
    for name in WHO:
        if name not in who:
            yield {"what": peers.absent(name)}


def _compared(
    what: str,
    n_rows: int,
    threads: int,
    works: Mapping[str, Callable[[], dict[str, float]]],
    rounds: int,
) -> Iterator[Row]:
    """Measure a task for all, in turn; ours states its wall and processor time over the best."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            runs[name].append(work())
    medians = {
        name: {figure: statistics.median(run[figure] for run in of_name) for figure in of_name[0]}
        for name, of_name in runs.items()
    }
    for name, figures in medians.items():
        row: Row = {"what": what, "who": name, "rows": n_rows or "", "threads": threads, **figures}
        if name == OURS and len(medians) > 1:
            for figure in ("wall s", "cpu s"):
                best = min(other[figure] for peer, other in medians.items() if peer != OURS)
                row[f"{figure} of the best"] = figures[figure] / best
        yield row
