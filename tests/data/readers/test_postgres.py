"""Kinds of tables and columns of PostgreSQL: each is counted as it stands, or refused in words."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from data import random_tables
from sfumato.data import count, source
from sfumato.data.readers import postgres
from sfumato.data.schema import misfit
from support.postgres import address, schema_of

DIGITS = sf.Domain(v=sf.Interval(0, 5, step=1))
BY_DIGIT = sf.Histogram("v", bins=5).needs(DIGITS)


FLUSH = "SELECT pg_stat_force_next_flush()"
"""Has the session's statistics shown to others at once."""


def run(*statements: str) -> None:
    with psycopg.connect(address(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def schema(tmp_path: Path) -> str:
    name = schema_of(tmp_path)
    run(f"CREATE SCHEMA {name}")
    return name


def at(table: str, user: str = "") -> str:
    return f"{address()}{f'&user={user}' if user else ''}&table={table}"


def digits(table: str, user: str = "") -> list[int]:
    found: list[int] = count(source(at(table, user), DIGITS), [BY_DIGIT])[0].counts.tolist()
    return found


def test_every_kind_of_table_is_counted_as_it_is_selected_from(schema: str) -> None:
    run(
        f"CREATE TABLE {schema}.parted (v int) PARTITION BY RANGE (v)",
        f"CREATE TABLE {schema}.low PARTITION OF {schema}.parted FOR VALUES FROM (0) TO (2)",
        f"CREATE TABLE {schema}.high PARTITION OF {schema}.parted DEFAULT",
        f"INSERT INTO {schema}.parted VALUES (0), (1), (1), (3), (4), (NULL)",
        f"CREATE TABLE {schema}.above (v int)",
        f"CREATE TABLE {schema}.below (more text) INHERITS ({schema}.above)",
        f"INSERT INTO {schema}.above VALUES (1)",
        f"INSERT INTO {schema}.below VALUES (2, 'a')",
        f"CREATE VIEW {schema}.alone AS SELECT v FROM ONLY {schema}.above",
        f"CREATE VIEW {schema}.strict WITH (security_barrier, security_invoker) AS"
        f" SELECT v FROM {schema}.parted WHERE v > 0",
        f"CREATE MATERIALIZED VIEW {schema}.held AS SELECT v FROM {schema}.parted",
        f"CREATE UNLOGGED TABLE {schema}.made (u int, v int GENERATED ALWAYS AS (u + 1) STORED)",
        f"INSERT INTO {schema}.made VALUES (1), (2), (2)",
        f"INSERT INTO {schema}.parted VALUES (3)",
    )
    expected = {
        "parted": [1, 2, 0, 2, 1],
        "low": [1, 2, 0, 0, 0],
        "above": [0, 1, 1, 0, 0],
        "below": [0, 0, 1, 0, 0],
        "alone": [0, 1, 0, 0, 0],
        "strict": [0, 2, 0, 2, 1],
        "held": [1, 2, 0, 1, 1],
        "made": [0, 0, 1, 2, 0],
    }
    assert {name: digits(f"{schema}.{name}") for name in expected} == expected
    with psycopg.connect(address()) as connection:
        if connection.info.server_version < 180_000:
            return
    virtual = "v int GENERATED ALWAYS AS (u + 2) VIRTUAL"
    run(f"CREATE TABLE {schema}.shown (u int, {virtual})", f"INSERT INTO {schema}.shown VALUES (1)")
    assert digits(f"{schema}.shown") == [0, 0, 0, 1, 0]


def test_what_holds_no_rows_of_its_own_is_refused(schema: str) -> None:
    run(
        f"CREATE TABLE {schema}.t (v int)",
        f"CREATE INDEX i ON {schema}.t (v)",
        f"CREATE MATERIALIZED VIEW {schema}.empty AS SELECT v FROM {schema}.t WITH NO DATA",
        f"CREATE FOREIGN DATA WRAPPER w_{schema}",
        f"CREATE SERVER s_{schema} FOREIGN DATA WRAPPER w_{schema}",
        f"CREATE FOREIGN TABLE {schema}.far (v int) SERVER s_{schema}",
    )
    for name, words in {
        "i": "neither a table nor a view",
        "empty": "never refreshed",
        "far": "nothing that can be read",
        "pg_temp.t": "no such",
    }.items():
        src = source(at(name if "." in name else f"{schema}.{name}"), DIGITS)
        with pytest.raises(sf.DataError, match=words):
            src.require([BY_DIGIT])
    other = source(at(f"{schema}.gone"), DIGITS)
    with pytest.raises(sf.DataError, match="no such table"):
        print(other.label)


def test_rows_that_a_policy_hides_are_never_left_out_silently(schema: str) -> None:
    """A policy is no part of the question: it may look at other rows, and at who is asking."""
    run(
        f"CREATE TABLE {schema}.t (v int, who text)",
        f"INSERT INTO {schema}.t VALUES (1, 'a'), (2, 'b'), (2, 'c')",
        f"ALTER TABLE {schema}.t ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY low ON {schema}.t USING (v < 2)",
        f"CREATE VIEW {schema}.meant AS SELECT * FROM {schema}.t",
        f"CREATE ROLE reader_{schema} LOGIN",
        f"CREATE ROLE auditor_{schema} LOGIN BYPASSRLS",
    )
    for role in ("reader", "auditor"):
        run(
            f"GRANT USAGE ON SCHEMA {schema} TO {role}_{schema}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}_{schema}",
        )
    src = source(at(f"{schema}.t", f"reader_{schema}"), DIGITS, "who")
    with sf.Publisher(src, budget=1) as publisher:
        with pytest.raises(sf.DataError, match="hides rows from this user") as caught:
            publisher.release(sf.Histogram("v"), epsilon=1)
        assert publisher.remaining == 1
    assert caught.value.__context__ is caught.value.__cause__ is None
    all_rows = [0, 1, 2, 0, 0]
    assert digits(f"{schema}.meant", f"reader_{schema}") == all_rows
    assert digits(f"{schema}.t", f"auditor_{schema}") == digits(f"{schema}.t") == all_rows


def test_a_user_may_be_one_who_reads_some_columns_only(schema: str) -> None:
    run(
        f"CREATE TABLE {schema}.t (secret text, v int, who text, gone int)",
        f"ALTER TABLE {schema}.t DROP COLUMN gone",
        f"INSERT INTO {schema}.t VALUES ('x', 1, 'a'), ('x', 1, 'a')",
        f"CREATE ROLE reader_{schema} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO reader_{schema}",
        f"GRANT SELECT (v, who) ON {schema}.t TO reader_{schema}",
    )
    src = source(at(f"{schema}.t", f"reader_{schema}"), DIGITS, "who", name="visits")
    assert count(src, [BY_DIGIT])[0].counts.tolist() == [0, 1, 0, 0, 0]
    first = src.label
    run(f"INSERT INTO {schema}.t VALUES ('x', 1, 'a')", FLUSH)
    assert src.label != first
    assert "rows" not in first
    with pytest.raises(sf.DataError, match="may not read"):
        source(at(f"{schema}.t", f"reader_{schema}"), DIGITS, "secret").require([BY_DIGIT])


# --- types ----------------------------------------------------------------------------------------

LABELS = sf.Categories(["a", "b", "c d"], other="else", missing="none")
SPANS = {
    "date": sf.Interval("2019-12-30", "2020-03-01"),
    "time": sf.Interval("2019-12-31T00:00", "2020-01-02T00:00"),
    "number": sf.Interval(0, 5),
    "label": LABELS,
    "code": sf.Categories([1, 2], other="else", missing="none"),
    "key": sf.Keys(),
}
BEFORE, BEYOND = dt.date(1, 1, 1), dt.date(9999, 12, 31)
NOON = dt.datetime(2020, 1, 1, 12)
FIRST, LAST = (dt.datetime.combine(day, dt.time()) for day in (BEFORE, BEYOND))
COLUMNS: dict[str, tuple[list[str | None], pa.Array, str]] = {
    "{s}.small": (["1", "4", None], pa.array([1, 4, None], pa.int32()), "number code key"),
    "{s}.amount": (
        ["4.000", "1", "2.5", None],
        pa.array([4, 1, Decimal("2.5"), None], pa.decimal128(9, 2)),
        "number code",
    ),
    "{s}.word": (["a", "A ", None], pa.array(["a", "A ", None]), "label key"),
    "{s}.mood": (["b", "a", "c d", None], pa.array(["b", "a", "c d", None]), "label key"),
    "char(4)": (["a", "c d", "b  ", None], pa.array(["a", "c d", "b", None]), "label key"),
    "uuid": (
        ["{A0eebc99-9c0b4ef8-bb6d6bb9bd380a11}"],
        pa.array(["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        "label key",
    ),
    "numeric": (
        ["NaN", "Infinity", "-Infinity", "2", "2.0", "1.5", None],
        pa.array([float("nan"), float("inf"), float("-inf"), 2.0, 2.0, 1.5, None]),
        "number code",
    ),
    "numeric(40,22)": (
        ["1.0000000000000000000001", "2.0000000000000000000000", "0.9999999999999999999999"],
        pa.array(
            [Decimal("1.0000000000000000000001"), 2, Decimal("0.9999999999999999999999")],
            pa.decimal256(40, 22),
        ),
        "number code",
    ),
    "numeric(5,-2)": (["12345", "100"], pa.array([Decimal(12300), Decimal(100)]), "number code"),
    "numeric(3,5)": (["0.00123"], pa.array([Decimal("0.00123")]), "number code"),
    "real": (["NaN", "-0", "0.1", "3"], pa.array([None, -0.0, 0.1, 3], pa.float32()), "number"),
    "date": (
        ["2020-01-01", "infinity", "-infinity", "0044-03-15 BC", None],
        pa.array([NOON.date(), BEYOND, BEFORE, BEFORE, None]),
        "date time",
    ),
    "timestamptz": (
        ["2020-01-01 14:00+02", "infinity", "-infinity", "294276-12-31", "4713-01-01 BC"],
        pa.array([NOON, LAST, FIRST, LAST, FIRST], pa.timestamp("us", "UTC")),
        "date time",
    ),
    "timestamp(0)": (["2020-01-01 11:59:59.6"], pa.array([NOON]), "date time"),
}
BINS = {"date": 62, "time": 48, "number": 5}
OTHERS = {
    **{each: each for each in ("money", "interval", "json", "jsonb", "inet", "point", "oid")},
    "bit(3)": "bit",
    "varbit": "bit varying",
    "time": "time without time zone",
    "timetz": "time with time zone",
    "int[]": "integer[]",
    "{s}.many": "integer[]",
    "{s}.pair": "{s}.pair",
}
"""Types that no axis can have, and what the server calls them."""


@pytest.fixture
def own_types(schema: str) -> str:
    run(
        f"CREATE DOMAIN {schema}.small AS int CHECK (VALUE < 9)",
        f"CREATE DOMAIN {schema}.amount AS numeric CHECK (VALUE < 9)",
        f"CREATE DOMAIN {schema}.letters AS text",
        f"CREATE DOMAIN {schema}.word AS {schema}.letters",
        f"CREATE DOMAIN {schema}.many AS int[]",
        f"CREATE TYPE {schema}.mood AS ENUM ('b', 'a', 'c d')",
        f"CREATE TYPE {schema}.pair AS (a int, b text)",
    )
    return schema


def test_a_column_is_counted_as_the_same_values_in_arrow(own_types: str) -> None:
    longest = max(len(values) for values, _, _ in COLUMNS.values())
    listed, arrays = [], {}
    for place, (type_, (values, array, _)) in enumerate(COLUMNS.items()):
        texts = ", ".join("NULL" if each is None else f"'{each}'" for each in values)
        held = f"unnest(ARRAY[{texts}]::text[])::{type_.format(s=own_types)}"
        listed.append(f"{held} AS c{place}")
        padding = pa.nulls(longest - len(values), array.type)
        arrays[f"c{place}"] = pa.concat_arrays([array, padding])
    run(f"CREATE TABLE {own_types}.t AS SELECT {', '.join(listed)}")
    asked = [readings.split() for _, _, readings in COLUMNS.values()]
    for reading, axis in SPANS.items():
        domain = sf.Domain(
            {f"c{place}": axis for place, readings in enumerate(asked) if reading in readings}
        )
        needs = [sf.Histogram(name, bins=BINS.get(reading)).needs(domain) for name in domain]
        own = count(source(at(f"{own_types}.t"), domain), needs)
        scanned = count(source(pa.table(arrays), domain), needs)
        for one, other in zip(own, scanned, strict=True):
            assert random_tables.found(one) == random_tables.found(other), one.lattice.names
            for name, keys in one.keys.items():
                assert keys.to_pylist() == other.keys[name].to_pylist(), name


def test_a_column_of_another_type_is_refused_by_its_name(own_types: str) -> None:
    types = dict(zip((f"c{place}" for place in range(99)), OTHERS, strict=False))
    made = ", ".join(f"{name} {type_.format(s=own_types)}" for name, type_ in types.items())
    run(f"CREATE TABLE {own_types}.t ({made})")
    needs = []
    for axis in (sf.Interval(0, 1), LABELS, sf.Keys(), sf.Interval("2020-01-01", "2020-01-02")):
        domain = sf.Domain(dict.fromkeys(types, axis))
        src = source(at(f"{own_types}.t"), domain)
        for name, type_ in types.items():
            needs = [sf.Histogram(name).needs(domain)]
            with pytest.raises(sf.DataError) as caught:
                src.require(needs)
            assert f"it is of type {OTHERS[type_].format(s=own_types)}, and" in str(caught.value)
    reader = src._reader
    for field in reader.schema(dict.fromkeys(types)):
        assert "ids of persons" in str(misfit(None, field.type))


AWKWARD = {
    "x": ["1e400", "-1e400", "1e-400", "-1e-400", "NaN", "0.1", "Infinity", "2.5e-324", "3"],
    "word": ["ß", "a ", "\\x61", "a'b", "日本", "A", "", "a", "é"],
}


def test_values_that_no_double_holds_are_counted(schema: str) -> None:
    """A cast that fails for some values alone would tell of them."""
    name = f"{schema}.t"
    run(f"CREATE TABLE {name} (x numeric, day date, at timestamptz, word char(5))")
    ends = ["infinity", "-infinity", "0044-03-15 BC", "294276-12-31", "2020-01-05"]
    with psycopg.connect(address()) as connection:
        for place, (x, word) in enumerate(zip(*AWKWARD.values(), strict=True)):
            when = ends[place % len(ends)]
            connection.execute(
                f"INSERT INTO {name} VALUES (%s::numeric, %s, %s, %s)".encode(),
                [x, when, when, word],
            )
    domain = sf.Domain(
        x=sf.Interval(0, 1),
        day=sf.Interval("2019-12-30", "2020-03-01"),
        at=sf.Interval("2019-12-31T00:00", "2020-01-02T00:00"),
        word=sf.Categories(["a", "ß", "\\x61", "a'b"], other="else"),
        hour=sf.Hour("at", timezone="Europe/Berlin", missing="none"),
    )
    src = source(at(name), domain)
    asked = {"x": 4, "day": 62, "at": 48, "word": None, "hour": None}
    needs = [sf.Histogram(axis, bins=bins).needs(domain) for axis, bins in asked.items()]
    x, day, time, word, hour = (random_tables.found(cube) for cube in count(src, needs))
    assert x == {(0,): 5, (3,): 3}
    assert day == {(0,): 4, (6,): 1, (61,): 4}
    assert time == {(0,): 4, (47,): 5}
    assert word == {(0,): 2, (1,): 1, (2,): 1, (3,): 1, (4,): 4}
    assert sum(hour.values()) == len(AWKWARD["x"])
    assert hour[(24,)] == 8
    checked = sf.Publisher(src, budget=1).check(sf.Histogram("x", bins=4))
    assert checked.rows == len(AWKWARD["x"])


# --- the same cubes as of the same rows elsewhere -------------------------------------------------

MANY = 500
HELD = random.Random(8)
IDS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "small": ("int2", pa.int16(), [HELD.randrange(60) for _ in range(MANY)]),
    "large": ("int8", pa.int64(), [HELD.randrange(60) * 10**16 for _ in range(MANY)]),
    "double": ("float8", pa.float64(), [HELD.randrange(60) / 4 - 1 for _ in range(MANY)]),
    "text": ("text", pa.string(), [f"p{HELD.randrange(60)}" for _ in range(MANY)]),
    "digits": ("varchar(9)", pa.string(), [f"{HELD.randrange(60)}" for _ in range(MANY)]),
    "uuid": ("uuid", pa.string(), [str(UUID(int=HELD.randrange(60))) for _ in range(MANY)]),
    "cents": (
        "numeric(12,3)",
        pa.decimal128(12, 3),
        [Decimal(HELD.randrange(60)) / 4 for _ in range(MANY)],
    ),
    "wide": (
        "numeric",
        pa.decimal256(50, 12),
        [Decimal(HELD.randrange(60)).scaleb(-9) for _ in range(MANY)],
    ),
    "day": (
        "date",
        pa.date32(),
        [dt.date(1969, 12, 1) + dt.timedelta(HELD.randrange(60)) for _ in range(MANY)],
    ),
    "at": (
        "timestamp",
        pa.timestamp("us"),
        [dt.datetime(1969, 1, 1) + dt.timedelta(HELD.randrange(60), 7, 9) for _ in range(MANY)],
    ),
    "yes": ("bool", pa.bool_(), [HELD.random() < 0.4 for _ in range(MANY)]),
}
VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "x": ("float8", pa.float64(), [HELD.choice([HELD.gauss(3, 4), 0.1]) for _ in range(MANY)]),
    "n": ("int4", pa.int32(), [HELD.randrange(9) for _ in range(MANY)]),
    "price": (
        "numeric(12,4)",
        pa.decimal128(12, 4),
        [Decimal(HELD.randrange(90000)).scaleb(-4) for _ in range(MANY)],
    ),
    "code": ("numeric", pa.decimal128(30, 2), [Decimal(HELD.randrange(4)) for _ in range(MANY)]),
    "word": ("text", pa.string(), [HELD.choice("abc") for _ in range(MANY)]),
}
COMPARED = sf.Domain(
    x=sf.Interval(0, 9),
    n=sf.Interval(0, 9, step=1),
    price=sf.Interval(0, 9),
    code=sf.Categories([1, 2], other="else", missing="none"),
    word=sf.Keys(),
    day=sf.Interval("1969-12-01", "1970-02-01"),
    month=sf.Month("at", missing="none"),
)
QUESTIONS = (
    sf.Histogram("price", bins=64),
    sf.Histogram(["word", "code"]),
    sf.Histogram(["month", "x"], bins=8),
    sf.Mean("price", by="code"),
    sf.Histogram("n", bins=9, count="persons"),
    sf.Histogram(["day", "n"], bins=[62, 9]),
)
CUT: tuple[dict[str, Any], ...] = (
    {"rows_per_person": 2},
    {"rows_per_person": 3, "where": {"price": (1, 8), "code": [1, "else"]}},
    {"rows_per_cell": 1, "cells_per_person": 3},
    {"norm_per_person": 2},
)


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pa.Table]:
    """The same rows on the server and as a table of Arrow; every 23rd value is missing."""
    columns = {f"id_{name}": held for name, held in IDS.items()} | VALUES
    columns |= {"day": IDS["day"], "at": IDS["at"]}
    rows = {
        name: [None if (place + at) % 23 == 0 else value for place, value in enumerate(values)]
        for at, (name, (_, _, values)) in enumerate(columns.items())
    }
    name = f"{schema_of(tmp_path_factory.mktemp('twins'))}_t"
    made = ", ".join(f"{column} {type_}" for column, (type_, _, _) in columns.items())
    with psycopg.connect(address()) as connection:
        connection.execute(f"CREATE TABLE {name} ({made})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copied:
            for row in zip(*rows.values(), strict=True):
                copied.write_row(row)
    arrays = {name: pa.array(rows[name], type_) for name, (_, type_, _) in columns.items()}
    return at(name), pa.table(arrays)


def bits(cube: Any) -> list[Any]:
    arrays = (cube.counts, cube.coordinates, cube.sums)
    found = [None if array is None else (array.dtype, array.tobytes()) for array in arrays]
    return [*found, {name: keys.to_pylist() for name, keys in cube.keys.items()}]


def types_and_limits() -> Iterator[object]:
    """Each type of ids within one of the limits, in turn; within all in the long tests."""
    for number, ids in enumerate(IDS):
        own = number % len(CUT)
        for at, limits in enumerate(CUT):
            marks = [] if at == own else [pytest.mark.deep]
            yield pytest.param(ids, limits, id=f"{ids}-{' '.join(limits)}", marks=marks)


@pytest.mark.parametrize(("ids", "limits"), list(types_and_limits()))
def test_cubes_are_those_of_the_same_rows_elsewhere(
    ids: str, limits: dict[str, Any], twins: Any
) -> None:
    """Bit for bit, also where persons' rows are cut: by the same secret, the same are kept."""
    needs = [
        question.needs(COMPARED)
        for question in QUESTIONS
        if "norm_per_person" not in limits or question.title.startswith("Histogram")
    ]
    own, other = (
        count(source(data, COMPARED, person=f"id_{ids}", **limits), needs, key=bytes(32))
        for data in twins
    )
    assert sum(cube.total for cube in own) > 0
    assert list(map(bits, own)) == list(map(bits, other))


@pytest.mark.parametrize("ids", ["wide", "at", "day", "double"])
def test_a_column_may_be_an_axis_and_the_persons(ids: str, twins: Any) -> None:
    """Then numbers are read from it, and persons are told apart by its exact values."""
    name = f"id_{ids}"
    spans: dict[str, Any] = {
        "at": sf.Interval("1969-01-01T00:00", "1969-03-01T00:00"),
        "day": sf.Interval("1969-12-01", "1970-02-01"),
    }
    domain = sf.Domain({name: spans.get(ids, sf.Interval(0, 16)), "price": sf.Interval(0, 9)})
    needs = [sf.Histogram([name, "price"], bins=4).needs(domain)]
    unit: Any = {"person": name, "rows_per_person": 2}
    own, other = (count(source(data, domain, **unit), needs, key=bytes(32))[0] for data in twins)
    assert bits(own) == bits(other)
    assert own.total > 60


TIMES = ("infinity", "-infinity", "294276-12-31", "294276-12-30", "12000-01-01", "0044-03-15 BC")
ENDS: dict[str, tuple[tuple[str, ...], sf.Interval, list[int]]] = {
    "date": (
        ("infinity", "-infinity", "12000-01-01", "5874897-12-31", "0044-03-15 BC"),
        sf.Interval("2019-12-30", "2020-03-01"),
        [2, 3],
    ),
    "timestamptz": (TIMES, sf.Interval("2019-12-31T00:00", "2020-01-02T00:00"), [2, 4]),
    "timestamp": (TIMES, sf.Interval("2019-12-31T00:00", "2020-01-02T00:00"), [2, 4]),
    "numeric": (
        ("Infinity", "-Infinity", "1e-400", "-1e-400", "7.000"),
        sf.Interval(0, 10),
        [3, 2],
    ),
}


@pytest.mark.parametrize("type_", ENDS)
def test_persons_at_the_ends_of_a_type_are_told_apart(type_: str, schema: str) -> None:
    """Also where the column is an axis, beyond whose bounds several of them lie."""
    ends, axis, counts = ENDS[type_]
    run(
        f"CREATE TABLE {schema}.t (who {type_}, period date)",
        *(
            f"INSERT INTO {schema}.t VALUES ('{end}', '{period}')"
            for end in ends
            for period in ("infinity", "-infinity", "infinity", "5874897-12-31")
        ),
    )
    domain = sf.Domain(who=axis)
    need = sf.Histogram("who", bins=2).needs(domain)
    (cube,) = count(source(at(f"{schema}.t"), domain, person="who"), [need])
    assert cube.counts.tolist() == counts
    (cube,) = count(source(at(f"{schema}.t"), domain, person=["who", "period"]), [need])
    assert cube.counts.tolist() == [3 * n for n in counts]


def test_a_table_without_rows_and_with_awkward_names(schema: str) -> None:
    name = "daily.\"trips\" of 'ä' \\ {0}"
    axis = 'a."b" \'\\ {1} %s'
    quoted_axis, quoted = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (axis, name))
    run(f"CREATE TABLE {schema}.{quoted} ({quoted_axis} int, who text)")
    domain = sf.Domain({axis: sf.Interval(0, 5, step=1)})
    src = source(address(), domain, person="who", table=f"{schema}.{quoted}")
    needs = [sf.Histogram(axis, bins=5).needs(domain)]
    assert count(src, needs)[0].counts.tolist() == [0] * 5
    run(f"INSERT INTO {schema}.{quoted} VALUES (3, 'a'), (3, 'b')")
    assert count(src, needs)[0].counts.tolist() == [0, 0, 0, 2, 0]
    checked = sf.Publisher(src, budget=1).check(sf.Histogram(axis, bins=5))
    assert checked.rows == 2


def test_a_table_that_is_closed_or_changed_is_refused_before_the_charge(schema: str) -> None:
    run(
        f"CREATE TABLE {schema}.t (v int, w int)",
        f"INSERT INTO {schema}.t VALUES (1, 2)",
        f"CREATE ROLE reader_{schema} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO reader_{schema}",
    )
    with sf.Publisher(source(at(f"{schema}.t", f"reader_{schema}"), DIGITS), budget=1) as closed:
        with pytest.raises(sf.DataError, match="may not read"):
            closed.release(sf.Histogram("v"), epsilon=1)
        assert closed.remaining == 1
    with sf.Publisher(source(at(f"{schema}.t"), DIGITS), budget=1) as changed:
        changed.preview(sf.Histogram("v"), epsilon=1)
        run(f"ALTER TABLE {schema}.t DROP COLUMN v")
        with pytest.raises(sf.DataError, match="no column of that name"):
            changed.release(sf.Histogram("v"), epsilon=1)
        assert changed.remaining == 1


# --- state ----------------------------------------------------------------------------------------


def test_what_is_written_to_a_named_table_is_seen_at_once(schema: str) -> None:
    """Statistics lag ten seconds behind a session that writes twice within one, and then rests."""
    run(f"CREATE TABLE {schema}.t (v int, w int)", f"INSERT INTO {schema}.t VALUES (1, 2), (3, 4)")
    src = source(at(f"{schema}.t"), DIGITS, name="visits")
    labels, name = [src.label], f"{schema}.t".encode()
    with psycopg.connect(address(), autocommit=True) as writer:
        for statement in (
            b"UPDATE {} SET v = v + 1",
            b"UPDATE {} SET v = v - 1",
            b"INSERT INTO {} VALUES (5, 6)",
            b"DELETE FROM {} WHERE v = 1",
            b"ALTER TABLE {} DROP COLUMN w",
            b"ALTER TABLE {} ADD COLUMN w int DEFAULT 7",
            b"TRUNCATE {}",
        ):
            writer.execute(statement.replace(b"{}", name))
            labels.append(src.label)
        assert len(set(labels)) == len(labels)
        with pytest.raises(psycopg.errors.RaiseException):
            writer.execute(
                b"DO $$ BEGIN INSERT INTO %b VALUES (1); RAISE EXCEPTION ''; END $$" % name
            )
        writer.execute(b"VACUUM ANALYZE " + name)
    assert digits(f"{schema}.t") == [0] * 5
    assert src.label == labels[-1]


def test_a_large_named_table_goes_by_the_servers_statistics(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "READ_IN_FULL", 0)
    run(
        f"CREATE TABLE {schema}.parted (v int) PARTITION BY HASH (v)",
        f"CREATE TABLE {schema}.a PARTITION OF {schema}.parted"
        " FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        f"INSERT INTO {schema}.parted VALUES (1), (2)",
    )
    src = source(at(f"{schema}.parted"), DIGITS, name="visits")
    first = src.label
    assert digits(f"{schema}.parted") == [0, 1, 1, 0, 0]
    assert src.label == first
    run(f"DELETE FROM {schema}.parted WHERE v = 1", FLUSH)
    assert src.label != first


def test_who_reads_a_table_needs_no_rights_on_its_parts(schema: str) -> None:
    run(
        f"CREATE TABLE {schema}.parted (v int) PARTITION BY HASH (v)",
        f"CREATE TABLE {schema}.a PARTITION OF {schema}.parted"
        " FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        f"INSERT INTO {schema}.parted VALUES (1), (2)",
        f"CREATE ROLE reader_{schema} LOGIN",
        f"GRANT USAGE ON SCHEMA {schema} TO reader_{schema}",
        f"GRANT SELECT ON {schema}.parted TO reader_{schema}",
    )
    assert digits(f"{schema}.parted", f"reader_{schema}") == [0, 1, 1, 0, 0]
    src = source(at(f"{schema}.parted", f"reader_{schema}"), DIGITS, name="visits")
    assert src.label.startswith("visits rows 2 by ")


def test_several_queries_assume_the_same_of_what_lies_elsewhere(schema: str) -> None:
    """A snapshot of the server holds no state of another, nor of a function's own doing."""
    run(
        f"CREATE TABLE {schema}.t (v int)",
        f"INSERT INTO {schema}.t VALUES (1), (2)",
        f"CREATE FUNCTION {schema}.made() RETURNS SETOF int VOLATILE LANGUAGE sql"
        f" AS 'SELECT v FROM {schema}.t'",
        f"CREATE VIEW {schema}.plain AS SELECT v FROM {schema}.t",
        f"CREATE VIEW {schema}.called AS SELECT made AS v FROM {schema}.made()",
        f"CREATE VIEW {schema}.over AS SELECT v FROM {schema}.called WHERE v > 0",
        f"CREATE MATERIALIZED VIEW {schema}.held AS SELECT v FROM {schema}.over",
    )
    expected = {"t": False, "plain": False, "held": False, "called": True, "over": True}
    for name, is_assumed in expected.items():
        src = source(at(f"{schema}.{name}"), DIGITS)
        src.require([BY_DIGIT])
        assert ("foreign tables and functions" in src.same_rows) == is_assumed, name
    src = source(at(f"{schema}.over"), {"v": sf.Interval(0, 5)})
    scans = {sf.Histogram("v", bins=5): 1, sf.UniformPartitioner("v", partitions=2**16 + 1): 2}
    for question, n_scans in scans.items():
        with sf.Publisher(src, budget=1) as publisher:
            release = publisher.release(question, epsilon=1)
        assert (src.same_rows in release.guarantee.assumptions) == (n_scans > 1)


# --- what the server of the tests lacks -----------------------------------------------------------


def test_foreign_tables_are_counted_and_assumed_to_rest(schema: str) -> None:
    try:
        run("CREATE EXTENSION IF NOT EXISTS file_fdw")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("the server comes without file_fdw")
    run(
        f"CREATE SERVER s_{schema} FOREIGN DATA WRAPPER file_fdw",
        f"CREATE FOREIGN TABLE {schema}.far (v int) SERVER s_{schema}"
        " OPTIONS (program 'printf \"1\n2\n2\n\"', format 'csv')",
    )
    assert digits(f"{schema}.far") == [0, 1, 2, 0, 0]
    src, other = (source(at(f"{schema}.far"), DIGITS) for _ in range(2))
    assert src.label != other.label
    src.require([BY_DIGIT])
    assert "foreign tables" in src.same_rows
    run(f"ALTER FOREIGN TABLE {schema}.far OPTIONS (SET program 'no-such-program')")
    with pytest.raises(sf.DataError, match="SQLSTATE") as caught:
        count(src, [BY_DIGIT])
    assert "no-such-program" not in str(caught.value)
