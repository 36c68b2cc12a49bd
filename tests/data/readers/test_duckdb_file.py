"""Tables in files of DuckDB as sources, also of files that come from somebody else."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sfumato as sf
from conformance.kinds import KINDS, people
from data import random_tables
from data.trips import TRIPS, TRIPS_BY_AGE
from sfumato.data import count, snapshot, source
from sfumato.data.readers.duckdb import DuckFile
from support.frames import escaped

ROWS = people(60, seed=3)
NEED = random_tables.LATTICES[0]
AGES = "SELECT range % 9 * 10 AS age, range // 9 AS who FROM range(99)"


@pytest.fixture
def held(tmp_path: Path) -> str:
    return str(KINDS["duckdb, file"](ROWS, tmp_path))


def made(path: Path, *statements: str) -> str:
    """The beginning of the address of a table in a new file."""
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return f"duckdb:{path}?table="


def reader_of(src: sf.Source) -> DuckFile:
    reader = src._reader
    assert isinstance(reader, DuckFile)
    return reader


def test_nobody_writes_to_a_file_while_it_is_read(held: str, tmp_path: Path) -> None:
    src = source(held, random_tables.DOMAIN, person="who", rows_per_person=3)
    before = src.label
    with snapshot(src):
        first = count(src, [NEED], key=bytes(32))[0].counts.tolist()
        with pytest.raises(duckdb.Error):
            duckdb.connect(str(tmp_path / "t.db"))
        assert count(src, [NEED], key=bytes(32))[0].counts.tolist() == first
    made(tmp_path / "t.db", 'DELETE FROM "a.b"')
    assert count(src, [NEED])[0].total == 0
    assert src.label != before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_this_process_has_open_is_refused(held: str, read_only: bool) -> None:
    """It would be read with the settings of the other connection."""
    src = source(held, random_tables.DOMAIN)
    path = held.removeprefix("duckdb:").split("?")[0]
    with (
        sf.Publisher(src, budget=1) as publisher,
        duckdb.connect(path, read_only=read_only) as connection,
    ):
        with pytest.raises(sf.DataError, match="or give a relation of that connection"):
            publisher.release(sf.Histogram("x", bins=7), epsilon=1)
        assert publisher.remaining == 1
        own = count(source(connection.table('"a.b"'), random_tables.DOMAIN), [NEED])[0]
    assert own.total == count(src, [NEED])[0].total > 0


def setting(src: sf.Source, name: str) -> object:
    with reader_of(src).snapshot() as connection:
        return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def test_only_the_owner_can_read_what_does_not_fit_memory(held: str) -> None:
    folder = setting(source(held, random_tables.DOMAIN), "temp_directory")
    assert Path(str(folder)).stat().st_mode & 0o777 == 0o700


def test_settings_cannot_be_changed(held: str) -> None:
    with reader_of(source(held, random_tables.DOMAIN)).snapshot() as connection:
        for changed in ("enable_external_access = true", "temp_directory = '/tmp'", "threads = 1"):
            with pytest.raises(duckdb.Error):
                connection.execute(f"SET {changed}")


@pytest.fixture
def with_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in notebooks: connections begin with a bar, which would go to standard output."""

    connect = duckdb.connect

    def connected(*arguments: Any, **named: Any) -> Any:
        opened = connect(*arguments, **named)
        with suppress(duckdb.InvalidInputException):  # where settings are locked
            opened.execute("SET enable_progress_bar = true")
        return opened

    monkeypatch.setattr(duckdb, "connect", connected)


@pytest.mark.usefixtures("with_a_bar")
def test_how_far_a_query_has_come_is_not_printed(held: str) -> None:
    """In any thread, also where another one has locked the settings."""
    src = source(held, random_tables.DOMAIN)
    shown: list[object] = []

    def look() -> None:
        shown.append(setting(src, "enable_progress_bar"))

    with snapshot(src):
        look()
        other = threading.Thread(target=look)
        other.start()
        other.join()
    assert shown == [False, False]


def test_threads_read_a_file_at_the_same_time(held: str) -> None:
    """Each of them has a connection of its own, whose result no other one ends."""
    src = source(held, random_tables.DOMAIN)
    columns = {"x": None}
    totals: list[int] = []

    def read_all() -> None:
        totals.append(sum(map(len, reader_of(src).batches(columns))))

    with snapshot(src):
        mine = reader_of(src).batches(columns)
        rows = len(next(mine))
        other = threading.Thread(target=read_all)
        other.start()
        other.join()
        rows += sum(map(len, mine))
    assert totals == [rows] == [60]


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, held: str) -> None:
    with pytest.raises(sf.DataError, match=r"""no table 'gone'; there are '"a\.b"'\. Name"""):
        source(held.replace('"a.b"', "gone"), TRIPS).require([TRIPS_BY_AGE])
    with pytest.raises(sf.DataError, match="no such file"):
        source(f"duckdb:{tmp_path / 'none.db'}", TRIPS, table="t").require([TRIPS_BY_AGE])
    (tmp_path / "text.db").write_text("hello")
    with pytest.raises(sf.DataError, match="no file of DuckDB"):
        source(f"duckdb:{tmp_path / 'text.db'}?table=t", TRIPS).require([TRIPS_BY_AGE])
    with pytest.raises(sf.UsageError, match="in memory"):
        source("duckdb:?table=t", TRIPS)


def test_a_table_is_named_with_its_schema_and_in_any_capitals(tmp_path: Path) -> None:
    address = made(
        tmp_path / "t.db",
        "CREATE SCHEMA s",
        "CREATE TABLE t AS SELECT 10 AS age",
        "CREATE TABLE s.t AS SELECT 20 AS age FROM range(2)",
        'CREATE TABLE s."x.y" AS SELECT 20 AS age FROM range(3)',
        "CREATE VIEW seen AS SELECT age FROM s.t WHERE age > 0",
    )
    rows = {"t": 1, "T": 1, "main.t": 1, "s.t": 2, "S.T": 2, "t.s.t": 2, 's."x.y"': 3, "seen": 2}
    for name, total in rows.items():
        src = source(f"{address}{name}", TRIPS)
        assert count(src, [TRIPS_BY_AGE])[0].total == total, name
    for name in ("x.y", "y", "other.s.t", "pg_catalog.pg_class", "duckdb_tables"):
        with pytest.raises(sf.DataError, match="the file has no table"):
            source(f"{address}{name}", TRIPS).require([TRIPS_BY_AGE])


def test_a_view_assumes_that_it_draws_nothing_at_random(tmp_path: Path) -> None:
    address = made(
        tmp_path / "t.db", f"CREATE TABLE visits AS {AGES}", "CREATE VIEW seen AS FROM visits"
    )
    domain = sf.Domain(age=sf.Interval(0, 120))
    assumed = []
    for name in ("visits", "seen"):
        with sf.Publisher(source(f"{address}{name}", domain), budget=9) as publisher:
            twice = publisher.release(sf.UniformPartitioner(partitions=70_000), epsilon=1)
        assumed += [line for line in twice.guarantee.assumptions if "in all scans" in line]
    assert len(assumed) == 1
    assert "view" in assumed[0]


# --- files from somebody else ---------------------------------------------------------------------

CANARY = "8675309"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with files of several kinds, each of which holds a column of canaries."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with duckdb.connect(str(folder / "far.db")) as connection:
        connection.execute(f"CREATE TABLE far AS SELECT {CANARY} AS age FROM range(9)")
        for name in ("far.csv", "far.parquet", "far.json"):
            connection.execute(f"COPY far TO '{folder / name}'")
    return folder


def assert_refused(address: str, *words: str) -> None:
    """Before the charge, in a sentence that shows nothing of what lies elsewhere."""
    with sf.Publisher(source(address, TRIPS), budget=1) as publisher:
        seen = escaped(lambda: publisher.release(sf.Histogram("age"), epsilon=1))
        assert publisher.remaining == 1
    (error,) = seen.errors
    assert isinstance(error, sf.DataError)
    assert all(word in str(error) for word in words), str(error)
    assert len(str(error).splitlines()) == 1
    assert CANARY not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    "name",
    [
        "{folder}/far.csv",
        "{folder}/far.parquet",
        "{folder}/far.json",
        "{folder}/*.parquet",
        "{folder}/far.db",
        "file://{folder}/far.parquet",
        "http://127.0.0.1:9/far.parquet",
        "s3://bucket/far.parquet",
        "read_csv('{folder}/far.csv')",
        "TRIPS",  # a variable of Python, of the frame that asks
    ],
)
@pytest.mark.parametrize("is_view", [False, True])
def test_a_name_that_is_a_file_is_looked_up_among_the_tables(
    name: str, is_view: bool, elsewhere: Path, tmp_path: Path
) -> None:
    """Also where a table of that name was a view of the file."""
    named = name.format(folder=elsewhere)
    address = made(tmp_path / "t.db", f"CREATE TABLE visits AS {AGES}")
    if is_view:
        quoted = named.replace('"', '""')
        far = elsewhere / "far.csv"
        made(tmp_path / "t.db", f"CREATE VIEW \"{quoted}\" AS FROM read_csv('{far}')")
        assert_refused(f'{address}"{quoted}"', "reads what this file does not hold")
    else:
        assert_refused(f'{address}"{named}"', "the file has no table")


VIEWS = {
    "csv": "FROM read_csv('{folder}/far.csv')",
    "parquet": "FROM '{folder}/far.parquet'",
    "text": "SELECT content AS age FROM read_text('{folder}/far.csv')",
    "names": "SELECT file AS age FROM glob('{folder}/*')",
    "attached": "FROM other.far",
    "python": "FROM TRIPS",
    # A part of the query that no row may need.
    "never": "SELECT CASE WHEN age > 1000 THEN (SELECT max(age) FROM '{folder}/far.parquet') END"
    " AS age FROM visits",
    "counted": "SELECT age + (SELECT count(*) FROM '{folder}/far.parquet') AS age FROM visits",
    "macro": "FROM hidden()",
    "query": "FROM query('FROM read_csv(''{folder}/far.csv'')')",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_what_lies_elsewhere_is_refused(
    view: str, elsewhere: Path, tmp_path: Path
) -> None:
    query = VIEWS[view].format(folder=elsewhere)
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        TRIPS = connection.sql(f"SELECT {CANARY} AS age").to_arrow_table()  # noqa: F841
        for statement in (
            f"ATTACH '{elsewhere / 'far.db'}' AS other (READ_ONLY)",
            f"CREATE TABLE visits AS {AGES}",
            f"CREATE MACRO hidden() AS TABLE FROM read_csv('{elsewhere / 'far.csv'}')",
            f"CREATE VIEW seen AS {query}",
        ):
            connection.execute(statement)
        assert len(connection.table("seen").fetchall()) > 0  # it is what it claims to be
    assert_refused(f"duckdb:{tmp_path / 't.db'}?table=seen", "the view 'seen' reads what this file")


def test_functions_of_a_file_do_not_change_what_is_read(tmp_path: Path) -> None:
    """A macro may stand in the place of a function, an operator or a list of tables."""
    address = made(
        tmp_path / "t.db",
        f"CREATE TABLE visits AS {AGES}",
        "CREATE TABLE others AS SELECT 1 AS age, 1 AS who",
        *(
            f"CREATE MACRO {name}() AS TABLE SELECT 't' AS database_name, 'main' AS schema_name, "
            f"'others' AS {name.removeprefix('duckdb_').removesuffix('s')}_name, FALSE AS internal"
            for name in ("duckdb_tables", "duckdb_views")
        ),
        'CREATE MACRO "="(a, b) AS TRUE',
        "CREATE MACRO hash(a, b) AS 1",
    )
    src = source(f"{address}visits", TRIPS, person="who", rows_per_person=2)
    assert count(src, [TRIPS_BY_AGE])[0].total == 22
