"""Long jobs on Spark, each in a process of its own: ``python -m support.spark_jobs JOB ...``.

A process has one kind of Spark session, and ends with it. A job prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from conformance import reader_contract
from conformance.kinds import people, table
from conformance.toys import Pile, PileReader
from data import random_tables
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.readers.spark import SparkTable
from sfumato.data.registry import open_reader
from sfumato.domain.lattice import KeyAxis, Lattice
from sfumato.errors import DataError
from support import collations as texts_by_bytes
from support import spark
from support.spark import same
from support.spark_cluster import killed
from support.spark_settings import reading, settings

ROWS = people(200, seed=2)
KEY = bytes([0xC3, 0x5A, 0x99, 0x1E] * 8)
VISITS = sf.Domain(x=sf.Interval(0, 100), g=sf.Interval(0, 5, step=1), k=sf.Keys())
SCRIPT = [sys.executable, "-m", "support.spark_jobs"]


def run(job: str, *arguments: str, folder: Path | None = None) -> Any:
    """Run a job in a process of its own, and give its result."""
    spark.require()
    done = subprocess.run(
        [*SCRIPT, job, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    if folder is not None:
        (folder / "stdout").write_text(done.stdout, encoding="utf-8")
        (folder / "stderr").write_text(done.stderr, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


# --- the contract -------------------------------------------------------------------------------


def contract(kind: str) -> dict[str, int]:
    """Spark keeps the contract of readers, and counts whatever a scan counts."""
    session = spark.session(connect=kind == "connect")
    SparkTable.most_numbers = 10**40
    scanned = PileReader(Pile(ROWS))

    def opened() -> Any:
        return open_reader(spark.frame(session, ROWS), tuple(random_tables.DOMAIN), "who")

    reader_contract.says_what_it_has(opened)
    reader_contract.counts_as_a_scan(opened, scanned)
    return {"lattices": len(random_tables.LATTICES), "derived": _derived(session)}


def collations(kind: str) -> dict[str, int]:
    """Texts that a collation takes to be equal are counted by their bytes."""
    session = spark.session(connect=kind == "connect")
    columns = "kind STRING COLLATE UTF8_LCASE, who STRING COLLATE UTF8_LCASE, x DOUBLE"
    frame = session.createDataFrame(texts_by_bytes.ROWS, columns)
    assert frame.filter("kind = 'a'").count() == 4
    texts_by_bytes.counted_by_bytes(frame)
    return {"rows": len(texts_by_bytes.ROWS)}


def _derived(session: Any) -> int:
    """Axes of the calendar, conditions, sums and numbers of persons: as a scan counts them."""
    from conformance.test_derived_axes import DOMAIN, ROWS, WHERE, lattices

    rows = ROWS[:250]
    data = spark.frame(session, rows)
    grouped = Lattice((random_tables.labels("word"),))
    asked = [Needs(each, 1) for each in lattices()]
    mean = sf.Mean("flag", by="word").needs(DOMAIN)
    persons = sf.Histogram("word", count="persons").needs(DOMAIN)
    ours = [
        ({"where": WHERE}, asked),
        ({}, [mean, Needs(grouped, 1)]),
        ({"person": "who", "rows_per_person": 10**6}, [persons]),
        ({"person": "who"}, [sf.Persons(most_rows=50).needs(DOMAIN)]),
    ]
    for unit, needs in ours:
        own = count(source(data, DOMAIN, **unit), needs)
        scan = count(source(table(rows), DOMAIN, **unit), needs)
        for one, other in zip(own, scan, strict=True):
            same(one, other)
    return sum(len(needs) for _, needs in ours)


def keys(kind: str) -> dict[str, bool]:
    """Keys are selected on executors as they are on the driver."""
    session = spark.session(connect=kind == "connect")

    def opened() -> Any:
        return open_reader(spark.frame(session, ROWS, 3), tuple(random_tables.DOMAIN), "who")

    reader_contract.selects_as_it_counts(opened)
    reader_contract.selects_as_it_counts(opened, limit=2)
    return {"on executors": True}


def bare(folder: str) -> list[object]:
    """Ask workers that have all but this package; then do what the refusal says."""
    os.environ["PYSPARK_PYTHON"] = str(_python_without_this_package(Path(folder)))
    session = spark.session()
    rows = pa.table({"who": np.repeat(np.arange(50), 4), "x": np.zeros(200)})
    src = source(spark.of_table(session, rows, 3), {"x": sf.Interval(0, 1)}, "who", 3, name="t")
    with sf.Publisher(src, budget=10**6) as publisher:
        question = sf.Histogram("x", bins=2)
        with pytest.raises(DataError) as refusal:
            publisher.release(question, epsilon=10**5)
        spent = publisher.account.spent
        session.addArtifacts(sf.spark_package(), pyfile=True)
        release = publisher.release(question, epsilon=10**5)
    return [str(refusal.value), list(map(int, spent)), release.values.tolist()]


def _python_without_this_package(folder: Path) -> Path:
    """Python with every package of this environment but ours."""
    packages = folder / "packages"
    packages.mkdir()
    for package in Path(pa.__file__).parents[1].iterdir():
        if "sfumato" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    python = folder / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec {sys.base_prefix}/bin/python3 "$@"\n'
    )
    python.chmod(0o755)
    return python


# --- secrets and errors -------------------------------------------------------------------------


def logs(kind: str, folder: str) -> dict[str, int]:
    """Count with bounded persons while Spark logs what it can, and print its plans."""
    session = spark.session(
        connect=kind == "connect",
        **{
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder}",
            "spark.eventLog.compress": "false",
            # A Connect server that logs at DEBUG writes out whole requests, data included.
            "spark.log.level": "INFO" if kind == "connect" else "DEBUG",
            "spark.sql.planChangeLog.level": "WARN",
            "spark.sql.ui.explainMode": "extended",
        },
    )
    data = spark.frame(session, ROWS)
    src = source(data, random_tables.DOMAIN, person="who", rows_per_person=2)
    (cube,) = count(src, random_tables.LATTICES[:1], key=KEY)
    session.stop()
    return {"rows": int(cube.counts.sum())}


def failures(kind: str) -> list[str]:
    """What is said of a table whose file vanishes, and of a session that is stopped."""
    session = spark.session(connect=kind == "connect")
    said = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.parquet"
        spark.frame(session, ROWS).write.parquet(path)
        src = source(session.read.parquet(path), random_tables.DOMAIN, name="visits")
        for file in Path(path).glob("*.parquet"):
            file.unlink()
        said.append(_said(src))
    src = source(spark.frame(session, ROWS), random_tables.DOMAIN, name="visits")
    session.stop()
    said.append(_said(src))
    return said


def _said(src: Any) -> str:
    with pytest.raises(DataError) as raised:
        count(src, random_tables.LATTICES[:1])
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    return str(raised.value)


# --- figures ------------------------------------------------------------------------------------

VISITS_SQL = (
    "pmod(xxhash64(id, 1L), {persons}L) AS who",
    "CAST(pmod(xxhash64(id, 2L), 100000L) AS DOUBLE) / 1000 AS x",
    "pmod(xxhash64(id, 3L), 5L) AS g",
    "concat('shop ', CAST(pmod(xxhash64(id, 4L), 1000L) AS STRING)) AS k",
)
CELLS = "CAST(floor(x / 100 * 50) AS INT) AS cell, g"
KEY_GROUPS = "SELECT k, count(*) AS n FROM {visits} GROUP BY k"
KEY_WINDOW = """
    SELECT k, count(*) AS n FROM (
        SELECT k, row_number() OVER (PARTITION BY who ORDER BY priority) AS place FROM (
            SELECT who, k, xxhash64(7L, who, k) AS priority FROM {visits}))
    WHERE place <= 4 GROUP BY k"""
GROUPS = f"SELECT cell, g, count(*) AS n FROM (SELECT {CELLS} FROM {{visits}}) GROUP BY cell, g"
WINDOW = f"""
    SELECT cell, g, count(*) AS n FROM (
        SELECT cell, g, row_number() OVER (PARTITION BY who ORDER BY priority) AS place FROM (
            SELECT who, xxhash64(7L, who, x, g) AS priority, {CELLS} FROM {{visits}}))
    WHERE place <= 4 GROUP BY cell, g"""


def costs(rows: str) -> dict[str, Any]:
    """Processor seconds of Java and its workers for our jobs and for those written by hand."""
    session = spark.session(**{"spark.driver.memory": "4g"})
    n = int(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/visits.parquet"
        columns = [each.format(persons=n // 10) for each in VISITS_SQL]
        session.range(n).selectExpr(*columns).write.parquet(path)
        visits = session.read.parquet(path)
        lattice = sf.Histogram(["x", "g"], bins={"x": 50}).needs(VISITS).lattice
        by_key = Lattice((KeyAxis("k"),))

        def ours(asked: Lattice, person: str | None) -> None:
            count(source(visits, VISITS, person, 4 if person else None), [asked])

        def by_hand(query: str) -> None:
            session.sql(query, visits=visits).toArrow()

        jobs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "rows": (lambda: ours(lattice, None), lambda: by_hand(GROUPS)),
            "persons": (lambda: ours(lattice, "who"), lambda: by_hand(WINDOW)),
            "keys": (lambda: ours(by_key, None), lambda: by_hand(KEY_GROUPS)),
            "keys, persons": (lambda: ours(by_key, "who"), lambda: by_hand(KEY_WINDOW)),
        }
        seconds: dict[str, dict[str, list[float]]] = {}
        for name, pair in jobs.items():
            spent: dict[str, list[float]] = {"ours": [], "by hand": []}
            # Java compiles while the first turns run.
            for _ in range(4):
                for who, job in zip(spent, pair, strict=True):
                    before = _processor_seconds()
                    job()
                    spent[who].append(round(_processor_seconds() - before, 2))
            seconds[name] = spent
    best = {
        name: {who: min(turns[1:]) for who, turns in spent.items()}
        for name, spent in seconds.items()
    }
    ratios = {name: spent["ours"] / spent["by hand"] for name, spent in best.items()}
    return {"rows": n, "processor seconds": seconds, "ratios": ratios}


def shuffled(rows: str, folder: str) -> dict[str, dict[str, int]]:
    """The bytes and rows that our jobs shuffle, by Spark's own event log."""
    session = spark.session(
        **{
            "spark.driver.memory": "4g",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{folder}",
            "spark.eventLog.compress": "false",
        }
    )
    n = int(rows)
    path = f"{folder}/visits.parquet"
    columns = [each.format(persons=n // 10) for each in VISITS_SQL]
    session.range(n).selectExpr(*columns).write.parquet(path)
    visits = session.read.parquet(path)
    lattice = sf.Histogram(["x", "g"], bins={"x": 50}).needs(VISITS).lattice
    # Each count is told from the others by the names of its jobs' group.
    for group, unit in (("without persons", {}), ("with persons", PERSONS)):
        session.sparkContext.setJobGroup(group, group)
        count(source(visits, VISITS, **unit), [lattice])
    session.stop()
    return _written_by_shuffles(Path(folder))


PERSONS: dict[str, Any] = {"person": "who", "rows_per_person": 4}


def _written_by_shuffles(folder: Path) -> dict[str, dict[str, int]]:
    (log,) = (path for path in folder.rglob("*") if path.is_file() and _is_event_log(path))
    groups: dict[int, str] = {}
    found: dict[str, dict[str, int]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            group = event["Properties"].get("spark.jobGroup.id", "")
            groups |= dict.fromkeys(event["Stage IDs"], group)
        elif event["Event"] == "SparkListenerTaskEnd" and groups.get(event["Stage ID"]):
            written = event["Task Metrics"]["Shuffle Write Metrics"]
            sums = found.setdefault(groups[event["Stage ID"]], {"bytes": 0, "rows": 0})
            sums["bytes"] += written["Shuffle Bytes Written"]
            sums["rows"] += written["Shuffle Records Written"]
    return found


def _is_event_log(path: Path) -> bool:
    return path.name.startswith(("events_", "local-")) and not path.name.endswith(".crc")


def memory(rows: str) -> dict[str, Any]:
    """The driver's peak memory before and after counting rows that Spark generates."""
    session = spark.session(**{"spark.driver.memory": "2g"})
    lattice = sf.Histogram(["x", "g"], bins={"x": 50}).needs(VISITS).lattice
    found: dict[str, Any] = {}
    for n in (10**5, int(rows)):
        visits = session.range(n).selectExpr(*(each.format(persons=10**6) for each in VISITS_SQL))
        started = time.perf_counter()
        before = _processor_seconds()
        (cube,) = count(source(visits, VISITS), [lattice])
        assert int(cube.counts.sum()) == n
        found[f"{n:,} rows"] = {
            "seconds": round(time.perf_counter() - started, 1),
            "processor seconds": round(_processor_seconds() - before, 1),
            "peak MiB of the driver (Python)": _peak(os.getpid()),
            "peak MiB of Java": _peak(_java()),
        }
    return found


def _processor_seconds() -> float:
    """Processor seconds of this process and all that it started."""
    from benchmarks.server import processor_seconds

    return processor_seconds(os.getpid())


def _java() -> int:
    """The process of Java that this process started."""
    from pyspark import SparkContext

    return int(SparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def _peak(pid: int) -> int:
    """The largest memory of a process by the kernel's figure, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    raise AssertionError("the kernel says no peak")


JOBS: dict[str, Callable[..., Any]] = {
    job.__name__: job
    for job in (
        contract,
        collations,
        keys,
        settings,
        reading,
        bare,
        logs,
        failures,
        costs,
        shuffled,
        memory,
        killed,
    )
}

if __name__ == "__main__":
    os.environ["SPARK_JOB"] = f"{os.getpid()}"
    if shutil.which("java") is None:
        raise SystemExit("There is no Java.")
    # This process runs in the folder of the tests, and the benchmarks are beside it.
    sys.path.append(str(Path(__file__).parents[2]))
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
