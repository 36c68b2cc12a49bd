"""Relations of DuckDB as sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data import random_tables
from data.trips import TRIPS, TRIPS_BY_AGE
from sfumato.data import count, source

AGES = "SELECT range % 9 * 10 AS age, range // 9 AS who FROM range(99)"
KEY = bytes(range(32))
BY_X = sf.Domain(x=sf.Interval(0, 16, step=1))
LIMITED = {"rows_per_person": 2}


def test_a_relation_is_not_disturbed_by_other_queries() -> None:
    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), TRIPS)
    src.require([TRIPS_BY_AGE])
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert count(src, [TRIPS_BY_AGE])[0].total == count(src, [TRIPS_BY_AGE])[0].total == 300_000


def test_a_connection_that_is_busy_is_refused_before_the_charge() -> None:
    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(30)"), TRIPS)
    with sf.Publisher(src, budget=1) as publisher:
        unfinished = connection.sql("SELECT range FROM range(10_000)").to_arrow_reader(10)
        with pytest.raises(sf.DataError, match="its connection has an unfinished result"):
            publisher.release(sf.Histogram("age"), epsilon=1)
        assert publisher.remaining == 1
        unfinished.close()
        publisher.release(sf.Histogram("age"), epsilon=1)


def test_a_scan_that_ends_early_leaves_no_open_result() -> None:
    """A connection has one at a time, and it is the user's."""
    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(300000)"), TRIPS)

    def stop(rows_done: int, all_rows: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(src, [TRIPS_BY_AGE], stop)
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_a_second_scan_of_a_relation_assumes_the_same_rows() -> None:
    src = source(duckdb.sql(AGES), sf.Domain(age=sf.Interval(0, 120)))
    with sf.Publisher(src, budget=9) as publisher:
        releases = [
            publisher.release(sf.UniformPartitioner(partitions=cells), epsilon=1)
            for cells in (10, 70_000)
        ]
    assumed = [
        any("in all scans of this release" in line for line in release.guarantee.assumptions)
        for release in releases
    ]
    assert assumed == [False, True]


def test_columns_that_differ_in_capitals_are_told_apart_or_refused() -> None:
    """DuckDB reads the first of them under both names."""
    domain = sf.Domain(Age=sf.Interval(0, 100), b=sf.Interval(0, 10))
    both = source(duckdb.sql('SELECT 1 AS age, 99 AS "Age", 2 AS b'), domain)
    assert count(both, [sf.Histogram("b", bins=10).needs(domain)])[0].total == 1
    with pytest.raises(sf.DataError, match="if capitals are not told apart"):
        both.require([sf.Histogram("Age", bins=2).needs(domain)])


def test_another_type_of_a_column_of_a_relation_is_seen() -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE visits AS {AGES}")
    src = source(connection.table("visits"), TRIPS)
    assert count(src, [TRIPS_BY_AGE])[0].total == 99
    connection.execute("ALTER TABLE visits ALTER COLUMN age TYPE VARCHAR")
    with pytest.raises(sf.DataError, match="of type string"):
        count(src, [TRIPS_BY_AGE])


def test_a_relation_that_is_closed_is_refused() -> None:
    connection = duckdb.connect()
    src = source(connection.sql("SELECT range % 120 AS age FROM range(30)"), TRIPS)
    publisher = sf.Publisher(src, budget=1)
    connection.close()
    with pytest.raises(sf.DataError, match="cannot be read"):
        publisher.release(sf.Histogram("age"), epsilon=1)
    assert publisher.remaining == 1


def test_a_transaction_of_the_user_holds_one_state_of_a_relation() -> None:
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


# --- kinds of tables and columns ------------------------------------------------------------------

DIGITS = sf.Domain(v=sf.Interval(0, 5, step=1))
BY_DIGIT = sf.Histogram("v", bins=5).needs(DIGITS)


def digits(table: object) -> list[int]:
    counts: list[int] = count(source(table, DIGITS), [BY_DIGIT])[0].counts.tolist()
    return counts


def test_every_kind_of_table_is_counted_as_it_is_selected_from(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "far.db")) as other:
        other.execute("CREATE TABLE far AS SELECT range AS v FROM range(4)")
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        for statement in (
            "CREATE TABLE made (u INTEGER, v INTEGER GENERATED ALWAYS AS (u + 1))",
            "INSERT INTO made VALUES (1), (2), (2)",
            "CREATE SCHEMA s",
            "CREATE TABLE s.t AS SELECT 1 AS v",
            "CREATE TEMP TABLE own AS SELECT 4 AS v",
            f"ATTACH '{tmp_path / 'far.db'}' AS other",
            "CREATE VIEW over AS SELECT v FROM other.far",
            f"COPY made TO '{tmp_path / 'made.parquet'}'",
        ):
            connection.execute(statement)
        far = [1, 1, 1, 1, 0]
        assert digits(connection.table("other.far")) == digits(connection.table("over")) == far
        assert digits(connection.table("own")) == [0, 0, 0, 0, 1]
        assert digits(connection.table("s.t")) == [0, 1, 0, 0, 0]
        written = connection.sql(f"SELECT * FROM '{tmp_path / 'made.parquet'}'")
        assert digits(written) == digits(connection.table("made")) == [0, 0, 1, 2, 0]


@pytest.mark.parametrize("type_", ["HUGEINT", "UHUGEINT", "DECIMAL(38, 0)"])
def test_numbers_of_39_digits_are_unlisted_labels(type_: str) -> None:
    """No value makes a query fail. Sums of integers are such numbers in DuckDB."""
    huge = "170141183460469231731687303715884105727" if type_ != "DECIMAL(38, 0)" else "9" * 38
    rows = f"SELECT unnest(['{huge}', '3', '3', NULL])::{type_} AS a"
    domain = sf.Domain(a=sf.Categories([1, 3], other="else", missing="not known"))
    src = source(duckdb.connect().sql(rows), domain)
    lattice = sf.Histogram("a").needs(domain)
    assert count(src, [lattice])[0].counts.tolist() == [0, 2, 1, 1]


def test_a_check_finds_numbers_of_39_digits_above_the_bounds() -> None:
    """Arrow holds 38 digits: a larger number of DuckDB's own would turn over there."""
    rows = f"SELECT unnest([{2**128 - 1}, {2**127}, 3, NULL]::UHUGEINT[]) AS a"
    src = source(duckdb.connect().sql(rows), sf.Domain(a=sf.Interval(0, 10)))
    with sf.Publisher(src, budget=1) as publisher:
        (found,) = publisher.check(sf.Histogram("a", bins=2)).axes
    assert (found.missing, found.below, found.above) == (1, 0, 2)


def test_a_column_may_be_person_and_axis() -> None:
    """Bounds clamp what is counted, and not who is who."""
    rows = f"SELECT unnest([{2**128 - 1}, {2**128 - 2}, 3, 3, NULL]::UHUGEINT[]) AS a"
    src = source(duckdb.sql(rows), sf.Domain(a=sf.Interval(0, 10)), person="a")
    cube = count(src, [sf.Histogram("a", bins=2).needs(src.domain)])[0]
    assert cube.counts.tolist() == [1, 2]


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
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'America/New_York'")
    listed = []
    for place, type_ in enumerate(COLUMNS):
        values = ", ".join("NULL" if x is None else f"'{x}'" for x in COLUMNS[type_][0])
        # A list has no collation, so the column is given its own.
        held, _, collation = type_.partition(" COLLATE ")
        collated = f" COLLATE {collation}" if collation else ""
        listed.append(f"unnest([{values}])::{held}{collated} AS c{place}")
    relation = connection.sql(f"SELECT {', '.join(listed)}")
    scanned = relation.to_arrow_table()
    for reading, axis in READ_AS.items():
        names = [f"c{place}" for place, type_ in enumerate(COLUMNS) if reading in COLUMNS[type_][1]]
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
    "TIME_NS": "time_ns",
    "TIMETZ": "time with time zone",
    "INTERVAL": "interval",
    "INTEGER[]": "list",
    "INTEGER[2]": "array",
    "STRUCT(canary INTEGER)": "struct",
    "MAP(VARCHAR, INTEGER)": "map",
    "UNION(canary INTEGER, word VARCHAR)": "union",
    "BIT": "bit",
    "BIGNUM": "bignum",
    "VARIANT": "variant",
}


@pytest.mark.parametrize("settings", ["", "SET arrow_lossless_conversion = true"])
def test_a_column_of_another_type_is_refused_by_its_name(settings: str) -> None:
    """Whatever it is read as, persons included; and no field of it is named."""
    connection = duckdb.connect()
    connection.execute(settings or "SELECT 1")
    names = [f"c{place}" for place in range(len(OTHERS))]
    made = ", ".join(f"{name} {type_}" for name, type_ in zip(names, OTHERS, strict=True))
    connection.execute(f"CREATE TABLE t (blob BLOB, x INTEGER, {made})")
    table = connection.table("t")
    for axis in READ_AS.values():
        domain = sf.Domain(dict.fromkeys([*names, "blob"], axis))
        src = source(table, domain)
        for name, called in zip([*names, "blob"], [*OTHERS.values(), "binary"], strict=True):
            with pytest.raises(sf.DataError, match=f"it is of type {called}, and") as caught:
                src.require([sf.Histogram(name).needs(domain)])
            assert "canary" not in str(caught.value)
    for name, called in zip(names, OTHERS.values(), strict=True):
        by_person = source(table, BY_X, person=name)
        with pytest.raises(sf.DataError, match=f"it is of type {called}, and ids of persons"):
            by_person.require([sf.Histogram("x").needs(BY_X)])


# --- who is who -----------------------------------------------------------------------------------

BIG = 170141183460469231731687303715884105727
PERSONS = {
    "BIGINT": [-1, 0, 2**63 - 1],
    "UBIGINT": [0, 1, 2**64 - 1],
    "HUGEINT": [-BIG - 1, -BIG, BIG, BIG - 1, 10**38, 10**37, 10**37 + 1, 7, -7],
    "UHUGEINT": [2**128 - 1, 2**128 - 2, 2**127, BIG, 10**37, 10**37 + 1, 1, 0],
    "DOUBLE": ["0.1", "0.2", "7", "inf", "-inf"],
    "DECIMAL(38, 10)": ["9" * 28 + "." + "9" * 10, "9" * 28 + "." + "9" * 9 + "8", "7", "0.1"],
    "DECIMAL(4, 1)": ["0.1", "7", "-7"],
    "UUID": [f"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1{place}" for place in range(3)],
    "ENUM ('b', 'a', 'c d')": ["b", "a", "c d"],
    "VARCHAR": ["7", "7.0", "07", "a", "A", "a "],
    "VARCHAR COLLATE NOCASE": ["a", "A"],
    "JSON": ['{"a":1}', '"a"'],
    "BLOB": ["\\x00", "\\x00\\x00", "\\xff", "a"],
    "DATE": ["0001-01-01", "9999-12-31", "10000-01-01", "infinity", "-infinity"],
    "TIMESTAMP": ["0044-03-15 (BC)", "2020-01-01 00:00:00.000001", "infinity", "-infinity"],
    "TIMESTAMP_S": ["2020-01-01 00:00:01", "2020-01-01 00:00:02"],
    "TIMESTAMP_MS": ["2020-01-01 00:00:00.001", "2020-01-01 00:00:00.002"],
    "TIMESTAMP_NS": ["2020-01-01 00:00:00.000000001", "2020-01-01 00:00:00.000000002"],
    "TIMESTAMPTZ": ["2020-01-01 00:00:00+00", "2020-01-01 00:00:00+01"],
    "BOOLEAN": ["true", "false"],
}


NOT_IN_PARQUET = ("UHUGEINT", "TIMESTAMP_S")


def of_persons(type_: str, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Six rows of each person, and two of nobody."""
    held, _, collation = type_.partition(" COLLATE ")
    collated = f" COLLATE {collation}" if collation else ""
    values = ", ".join(f"('{value}')" for value in 6 * PERSONS[type_])
    return connection.sql(
        f"SELECT CAST(v AS {held}){collated} AS who, (row_number() OVER ()) % 16 AS x"
        f" FROM (VALUES {values}, (NULL), (NULL)) AS t(v)"
    )


@pytest.mark.parametrize(
    "settings",
    ["", "SET arrow_lossless_conversion = true", "SET produce_arrow_string_view = true"],
)
@pytest.mark.parametrize("type_", PERSONS)
def test_equal_ids_are_one_person_and_others_are_others(type_: str, settings: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = 'America/New_York'; {settings}")
    src = source(of_persons(type_, connection), BY_X, person="who", rows_per_person=1)
    assert count(src, [sf.Histogram("x").needs(BY_X)])[0].total == len(PERSONS[type_])


@pytest.mark.parametrize("type_", [type_ for type_ in PERSONS if type_ not in NOT_IN_PARQUET])
def test_each_person_keeps_the_rows_that_are_kept_of_a_file(type_: str, tmp_path: Path) -> None:
    """Also where limits cut, and in a table of a file of DuckDB."""
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        relation = of_persons(type_, connection)
        if type_ == "HUGEINT":  # Parquet has decimals of 38 digits
            relation = relation.filter("who BETWEEN -1e37::HUGEINT AND 1e37::HUGEINT")
        relation.create("visits")
        pq.write_table(relation.to_arrow_table(), tmp_path / "t.parquet")
        kept = [kept_rows(table) for table in (relation, tmp_path / "t.parquet")]
    kept.append(kept_rows(f"duckdb:{tmp_path / 't.db'}?table=visits"))
    assert kept[0] == kept[1] == kept[2]
    assert len(set(map(str, kept[0]))) > 1


def kept_rows(table: Any) -> list[list[int]]:
    needs = [sf.Histogram("x").needs(BY_X)]
    return [
        count(src, needs, key=key)[0].counts.tolist()
        for limits, key in (
            (LIMITED, KEY),
            ({"rows_per_person": 2, "rows_per_cell": 1}, bytes(32)),
        )
        for src in [source(table, BY_X, person="who", **limits)]
    ]
