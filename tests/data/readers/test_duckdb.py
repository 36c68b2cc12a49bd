"""Relations of DuckDB as sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from conformance.kinds import KINDS, people
from data import random_tables
from data.trips import TRIPS, TRIPS_BY_AGE
from sfumato.data import count, snapshot, source
from sfumato.data.engines.secrets import text_of_secret
from sfumato.data.readers.duckdb_file import DuckDatabase

ROWS = people(60, seed=3)


def test_a_relation_is_not_disturbed_by_other_queries() -> None:
    import duckdb

    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), TRIPS)
    src.require([TRIPS_BY_AGE])
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert count(src, [TRIPS_BY_AGE])[0].total == count(src, [TRIPS_BY_AGE])[0].total == 300_000


@pytest.fixture
def held(tmp_path: Path) -> str:
    return str(KINDS["duckdb, file"](ROWS, tmp_path))


def test_a_file_is_read_while_this_process_writes_to_it(held: str, tmp_path: Path) -> None:
    import duckdb

    src = source(held, random_tables.DOMAIN, person="who", rows_per_person=3)
    need = random_tables.LATTICES[0]
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        before = src.label
        with snapshot(src):
            first = count(src, [need], key=bytes(32))[0].counts.tolist()
            connection.execute('DELETE FROM "a.b"')
            assert count(src, [need], key=bytes(32))[0].counts.tolist() == first
        assert count(src, [need])[0].total == 0
        assert src.label != before


def test_only_the_owner_can_read_what_does_not_fit_memory(held: str) -> None:
    """Also of a file that this process has open already, to read or to write, it is counted."""
    import duckdb

    path = held.removeprefix("duckdb:").split("?")[0]
    src = source(held, random_tables.DOMAIN)
    reader: Any = src._reader
    with reader.snapshot():
        (folder,) = reader.ask("SELECT current_setting('temp_directory') AS t").read_all()["t"]
        assert Path(str(folder)).stat().st_mode & 0o777 == 0o700
    for read_only in (True, False):
        with duckdb.connect(path, read_only=read_only):
            assert count(src, [random_tables.LATTICES[0]])[0].total > 0


def test_the_key_is_in_no_query(monkeypatch: pytest.MonkeyPatch, held: str) -> None:
    asked: list[str] = []
    ask = DuckDatabase.ask

    def noted(self: DuckDatabase, query: str, secrets: Any = None) -> Any:
        asked.append(query)
        return ask(self, query, secrets)

    monkeypatch.setattr(DuckDatabase, "ask", noted)
    key = bytes(range(32))
    src = source(held, random_tables.DOMAIN, person="who", rows_per_person=1)
    count(src, random_tables.LATTICES[:1], key=key)
    assert any("row_number()" in query for query in asked)
    assert not any(text_of_secret(key, "rows") in query for query in asked)


AGES = "SELECT range % 9 * 10 AS age, range // 9 AS who FROM range(99)"
KEYS = (bytes(32), bytes(range(32)))


@pytest.mark.parametrize("is_file", [False, True])
def test_no_table_of_a_user_hides_the_secrets(is_file: bool, tmp_path: Path) -> None:
    import duckdb

    kept = []
    for taken in ((), ("sfumato_secrets", "sfumato_counted_rows")):
        path = tmp_path / f"{len(taken)}.db"
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE TABLE visits AS {AGES}")
            for name in taken:
                connection.execute(
                    f"CREATE TABLE {name} AS SELECT '' AS rows, '' AS cells, 0 AS who"
                )
            table = f"duckdb:{path}?table=visits" if is_file else connection.table("visits")
            src = source(table, TRIPS, person="who", rows_per_person=2)
            kept.append([count(src, [TRIPS_BY_AGE], key=key)[0].counts.tolist() for key in KEYS])
    assert kept[0] == kept[1]
    assert kept[0][0] != kept[0][1]


@pytest.mark.parametrize("is_file", [False, True])
def test_macros_in_place_of_functions_are_refused(is_file: bool, tmp_path: Path) -> None:
    """Before the charge; others are the user's own affair."""
    import duckdb

    path = tmp_path / "t.db"
    for macro in ("mine(a) AS a", "hash(a, b, c) AS 1", '"+"(a, b) AS 0'):
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"CREATE OR REPLACE TABLE visits AS {AGES}")
            connection.execute(f"CREATE MACRO {macro}")
            table = f"duckdb:{path}?table=visits" if is_file else connection.table("visits")
            publisher = sf.Publisher(source(table, TRIPS, person="who"), budget=1)
            if macro.startswith("mine"):
                publisher.release(sf.Histogram("age"), epsilon="0.1")
                continue
            with pytest.raises(sf.DataError, match="take the place of functions: '"):
                publisher.release(sf.Histogram("age"), epsilon="0.1")
            assert publisher.remaining == 1


def test_a_macro_that_is_made_later_is_refused_before_the_next_charge() -> None:
    """On the same connection, of a source that was counted before."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS {AGES}")
    src = source(connection.table("visits"), TRIPS, person="who")
    assert count(src, [TRIPS_BY_AGE])[0].total == 11
    publisher = sf.Publisher(src, budget=1)
    for made in ("CREATE MACRO md5_number(a) AS 7", "CREATE TEMP MACRO concat(a, b) AS 'x'"):
        connection.execute(made)
        with pytest.raises(sf.DataError, match="take the place of functions: '"):
            publisher.release(sf.Histogram("age"), epsilon="0.1")
        connection.execute(f"DROP MACRO {made.partition('MACRO ')[2].partition('(')[0]}")
    assert publisher.remaining == 1
    assert count(src, [TRIPS_BY_AGE])[0].total == 11


def test_how_far_a_query_has_come_is_not_printed(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In notebooks, connections begin with a bar, which would go to standard output."""
    import duckdb

    connect = duckdb.connect

    def with_a_bar(*arguments: Any, **named: Any) -> Any:
        opened = connect(*arguments, **named)
        opened.execute("SET enable_progress_bar = true")
        return opened

    monkeypatch.setattr(duckdb, "connect", with_a_bar)
    shown = "SELECT current_setting('enable_progress_bar') AS shown"
    with duckdb.connect(held.removeprefix("duckdb:").split("?")[0]) as theirs:
        reader: Any = source(held, random_tables.DOMAIN)._reader
        assert reader.ask(shown).read_all()["shown"].to_pylist() == [False]
        assert theirs.execute(shown).fetchall() == [(True,)]


def test_columns_are_looked_up_once_in_a_snapshot(
    held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = DuckDatabase.ask

    def noted(self: DuckDatabase, query: str, secrets: Any = None) -> Any:
        asked.append(query)
        return ask(self, query, secrets)

    monkeypatch.setattr(DuckDatabase, "ask", noted)
    src = source(held, random_tables.DOMAIN)
    for _ in range(2):
        with snapshot(src):
            count(src, random_tables.LATTICES[:1])
            count(src, random_tables.LATTICES[:1])
    looked = [query for query in asked if query.startswith('SELECT "x"')]
    assert len(looked) == 2


def test_another_type_of_a_column_of_a_relation_is_seen() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS {AGES}")
    src = source(connection.table("visits"), TRIPS)
    assert count(src, [TRIPS_BY_AGE])[0].total == 99
    connection.execute("ALTER TABLE visits ALTER COLUMN age TYPE VARCHAR")
    with pytest.raises(sf.DataError, match="of type string"):
        count(src, [TRIPS_BY_AGE])


@pytest.mark.parametrize("type_", ["HUGEINT", "UHUGEINT", "DECIMAL(38, 0)"])
def test_numbers_of_39_digits_are_unlisted_labels(type_: str) -> None:
    """No value makes a query fail. Sums of integers are such numbers in DuckDB."""
    import duckdb

    huge = "170141183460469231731687303715884105727" if type_ != "DECIMAL(38, 0)" else "9" * 38
    rows = f"SELECT unnest(['{huge}', '3', '3', NULL])::{type_} AS a"
    domain = sf.Domain(a=sf.Categories([1, 3], other="else", missing="not known"))
    src = source(duckdb.connect().sql(rows), domain)
    lattice = sf.Histogram("a").needs(domain)
    assert count(src, [lattice])[0].counts.tolist() == [0, 2, 1, 1]


def test_a_check_finds_numbers_of_39_digits_above_the_bounds() -> None:
    """Arrow holds 38 digits: a larger number of DuckDB's own would turn over there."""
    import duckdb

    rows = f"SELECT unnest([{2**128 - 1}, {2**127}, 3, NULL]::UHUGEINT[]) AS a"
    src = source(duckdb.connect().sql(rows), sf.Domain(a=sf.Interval(0, 10)))
    with sf.Publisher(src, budget=1) as publisher:
        (found,) = publisher.check(sf.Histogram("a", bins=2)).axes
    assert (found.missing, found.below, found.above) == (1, 0, 2)


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


def test_a_transaction_of_the_user_holds_one_state_of_a_relation() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS {AGES}")
    src = source(connection.table("visits"), TRIPS)
    found = []
    for begin, end in ((connection.begin, connection.commit), (str, str)):
        begin()
        found.append(count(src, [TRIPS_BY_AGE])[0].total)
        connection.cursor().execute(f"INSERT INTO visits {AGES}")
        found.append(count(src, [TRIPS_BY_AGE])[0].total)
        end()
    assert found == [99, 99, 198, 297]


@pytest.mark.parametrize("is_file", [False, True])
def test_several_queries_of_a_relation_assume_the_same_rows(is_file: bool, tmp_path: Path) -> None:
    """A file holds one state for all of them, and one query needs nothing."""
    import duckdb

    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute(f"CREATE TABLE visits AS {AGES}")
        table = (
            f"duckdb:{tmp_path / 't.db'}?table=visits" if is_file else connection.table("visits")
        )
        publisher = sf.Publisher(source(table, TRIPS), budget=9)
        one = publisher.release(sf.Histogram("age", bins=12), epsilon=1)
        several = publisher.release([sf.Histogram("age"), sf.Sum("age")], epsilon=1)
        assumed = [
            any("in all queries of this release" in line for line in each.guarantee.assumptions)
            for each in (one, *several)
        ]
    assert assumed == [False, not is_file, not is_file]


def test_a_relation_that_is_closed_is_refused() -> None:
    import duckdb

    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(30)"), TRIPS)
    publisher = sf.Publisher(src, budget=1)
    connection.close()
    with pytest.raises(sf.DataError, match="cannot be read"):
        publisher.release(sf.Histogram("age"), epsilon=1)
    assert publisher.remaining == 1


ENDS = ("infinity", "-infinity", "0044-03-15 (BC)", "0001-01-01", "9999-12-31", "10000-01-01")


@pytest.mark.parametrize(
    "type_",
    [
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        pytest.param("TIMESTAMP_S", marks=pytest.mark.deep),
        pytest.param("TIMESTAMP_MS", marks=pytest.mark.deep),
        "TIMESTAMP_NS",
    ],
)
def test_times_beyond_the_calendar_are_counted_as_in_a_scan(type_: str) -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    few = ("1969-12-31", "2020-02-29", "infinity", "-infinity")
    whens = few if type_ == "TIMESTAMP_NS" else (*few, *ENDS)
    values = ", ".join(f"(CAST('{when}' AS {type_}))" for when in (*whens, "1969-12-31"))
    relation = connection.sql(f"SELECT * FROM (VALUES {values}) AS t(w)")
    domain = sf.Domain(
        w=sf.Interval("2019-12-30", "2020-03-01"),
        month=sf.Month("w", missing="none", timezone="Asia/Kathmandu"),
        year=sf.Year("w", 1, 9999, missing="none", other="other"),
    )
    needs = [sf.Histogram(axis, bins=62 if axis == "w" else None).needs(domain) for axis in domain]
    own = count(source(relation, domain), needs)
    scanned = count(source(relation.to_arrow_table(), domain), needs)
    for one, other in zip(own, scanned, strict=True):
        assert random_tables.found(one) == random_tables.found(other), one.lattice.names


@pytest.mark.parametrize(
    ("view", "is_own"),
    [
        ("SELECT a.x FROM rows AS a LEFT JOIN rows AS b USING (x) WHERE b.x > 0", True),
        ("WITH ten AS (SELECT range AS x FROM range(10)) SELECT x FROM ten", True),
        ("SELECT * FROM '{other}'", False),
        # The number of all rows is known without a scan.
        ("SELECT x + (SELECT count(*) FROM read_parquet('{other}')) AS x FROM rows", False),
    ],
)
def test_a_view_of_other_files_is_not_taken_for_unchanged(
    view: str, is_own: bool, tmp_path: Path
) -> None:
    import duckdb

    other = tmp_path / "other.parquet"
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute(f"COPY (SELECT 1 AS x FROM range(9)) TO '{other}'")
        connection.execute("CREATE TABLE rows AS SELECT 1 AS x")
        connection.execute(f"CREATE VIEW seen AS {view.format(other=other)}")
    address, domain = f"duckdb:{tmp_path / 't.db'}?table=seen", sf.Domain(x=sf.Interval(0, 10))
    labels = {sf.source(address, domain).label for _ in range(2)}
    assert (len(labels) == 1) == is_own
    named = {sf.source(address, domain, name="seen").label for _ in range(2)}
    assert len(named) == 1


# --- kinds of tables and columns ------------------------------------------------------------------

DIGITS = sf.Domain(v=sf.Interval(0, 5, step=1))
BY_DIGIT = sf.Histogram("v", bins=5).needs(DIGITS)


def digits(table: object) -> list[int]:
    found: list[int] = count(source(table, DIGITS), [BY_DIGIT])[0].counts.tolist()
    return found


def test_every_kind_of_table_is_counted_as_it_is_selected_from(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "far.db")) as other:
        other.execute("CREATE TABLE far AS SELECT range AS v FROM range(4)")
    address = f"duckdb:{tmp_path / 't.db'}?table="
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        for statement in (
            "CREATE TABLE made (u INTEGER, v INTEGER GENERATED ALWAYS AS (u + 1))",
            "INSERT INTO made VALUES (1), (2), (2)",
            "CREATE VIEW seen AS SELECT v FROM made WHERE v > 2",
            "CREATE SCHEMA s",
            "CREATE TABLE s.t AS SELECT 1 AS v",
            "CREATE TEMP TABLE own AS SELECT 4 AS v",
            f"ATTACH '{tmp_path / 'far.db'}' AS other",
            "CREATE VIEW over AS SELECT v FROM other.far",
            f"COPY made TO '{tmp_path / 'made.parquet'}'",
            f"CREATE VIEW written AS SELECT * FROM '{tmp_path / 'made.parquet'}'",
        ):
            connection.execute(statement)
        far = [1, 1, 1, 1, 0]
        assert digits(connection.table("other.far")) == digits(connection.table("over")) == far
        assert digits(connection.table("own")) == [0, 0, 0, 0, 1]
        assert digits(connection.table("s.t")) == [0, 1, 0, 0, 0]
    for name, counts in {"seen": [0, 0, 0, 2, 0], "written": [0, 0, 1, 2, 0]}.items():
        src = source(f"{address}{name}", DIGITS)
        assert count(src, [BY_DIGIT])[0].counts.tolist() == counts
        assert ("other files that it reads" in src.same_rows) == (name == "written")
    src = source(f"{address}over", DIGITS)
    assert src.label != ""
    with pytest.raises(sf.DataError, match="reads what this file does not hold"):
        src.require([BY_DIGIT])


DIGITS_39 = "170141183460469231731687303715884105727"
COLUMNS = {
    "ENUM ('b', 'a', 'c d')": (["b", "a", "c d", None], "label key"),
    "VARCHAR COLLATE NOCASE": (["a", "A", None], "label key"),
    "VARCHAR COLLATE NOACCENT": (["a", "á"], "label key"),
    "UUID": (["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "label key"),
    "JSON": (['{"a":1}', '"a"', "1"], "label key"),
    "HUGEINT": ([DIGITS_39, f"-{DIGITS_39}", "1", None], "number code"),
    "UHUGEINT": ([DIGITS_39, "1", None], "number code"),
    "UBIGINT": ([str(2**64 - 1), "1", None], "number code"),
    "UTINYINT": (["255", "1", None], "number code key"),
    "DECIMAL(38, 10)": (["9999999999999999999999999999.9999999999", "1.5", "2"], "number code"),
    "FLOAT": (["NaN", "-0", "0.1", "3"], "number"),
    "DOUBLE": (["NaN", "inf", "-inf", "1"], "number code"),
    "BOOLEAN": (["true", "false", None], "key"),
    "TIMESTAMPTZ_NS": (["2020-01-01 12:00+01", "1969-12-31 00:00+00", "infinity", None], "time"),
}
"""Types, values, and what these are read as; dates and times are above."""

READ_AS = {
    "label": sf.Categories(["a", "b"], other="else", missing="none"),
    "code": sf.Categories([1, 2], other="else", missing="none"),
    "key": sf.Keys(),
    "number": sf.Interval(0, 5),
    "time": sf.Interval("2019-12-31T00:00", "2020-01-02T00:00"),
}


def test_a_column_is_counted_as_its_values_are_in_a_scan() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    is_old = int(duckdb.__version__.partition(".")[0]) < 2
    known = [type_ for type_ in COLUMNS if not (is_old and type_ == "TIMESTAMPTZ_NS")]
    listed = []
    for place, type_ in enumerate(known):
        values = ", ".join("NULL" if x is None else f"'{x}'" for x in COLUMNS[type_][0])
        # A list has no collation, so the column is given its own.
        held, _, collation = type_.partition(" COLLATE ")
        collated = f" COLLATE {collation}" if collation else ""
        listed.append(f"unnest([{values}])::{held}{collated} AS c{place}")
    relation = connection.sql(f"SELECT {', '.join(listed)}")
    scanned = relation.to_arrow_table()
    for reading, axis in READ_AS.items():
        names = [f"c{place}" for place, type_ in enumerate(known) if reading in COLUMNS[type_][1]]
        domain = sf.Domain(dict.fromkeys(names, axis))
        bins = {"number": 5, "time": 48}.get(reading)
        needs = [sf.Histogram(name, bins=bins).needs(domain) for name in names]
        cubes = (count(source(table, domain), needs) for table in (relation, scanned))
        for one, other in zip(*cubes, strict=True):
            assert random_tables.found(one) == random_tables.found(other), one.lattice.names
            for name, keys in one.keys.items():
                assert keys.to_pylist() == other.keys[name].to_pylist(), name


OTHERS = {
    "TIME": "time",
    "INTERVAL": "interval",
    "INTEGER[]": "list",
    "INTEGER[2]": "list",
    "STRUCT(a INTEGER)": "struct",
    "MAP(VARCHAR, INTEGER)": "map",
    "UNION(num INTEGER, word VARCHAR)": "union",
    "BLOB": "binary",
    "BIT": "binary",
}


def test_a_column_of_another_type_is_refused_by_its_name() -> None:
    import duckdb

    connection = duckdb.connect()
    names = [f"c{place}" for place in range(len(OTHERS))]
    made = ", ".join(f"{name} {type_}" for name, type_ in zip(names, OTHERS, strict=True))
    connection.execute(f"CREATE TABLE t ({made})")
    for axis in READ_AS.values():
        domain = sf.Domain(dict.fromkeys(names, axis))
        src = source(connection.table("t"), domain)
        for name, called in zip(names, OTHERS.values(), strict=True):
            with pytest.raises(sf.DataError, match=rf"it is of type {called}, and"):
                src.require([sf.Histogram(name).needs(domain)])
