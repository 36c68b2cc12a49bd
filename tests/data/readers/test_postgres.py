"""Tables on a server of PostgreSQL as sources."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sfumato.data.engines.secrets import text_of_secret

import sfumato as sf
from conformance.kinds import people, postgres
from data import random_tables
from sfumato.data import count, snapshot, source
from sfumato.data.readers.postgres import PostgresTable
from sfumato.lattice import Lattice
from support.postgres import address, schema_of

ROWS = people(60, seed=3)
DOMAIN = random_tables.DOMAIN
LATTICE = Lattice((random_tables.grid("x", 8),))
PASSWORD = "pass-of-ada-51"


@pytest.fixture
def held(tmp_path: Path) -> str:
    return postgres(ROWS, tmp_path)


@pytest.fixture
def table(held: str) -> str:
    return held.rpartition("=")[2]


def run(*statements: str) -> None:
    with psycopg.connect(address(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.fixture
def logged() -> Iterator[Any]:
    """What the server writes to its log, which is told to write every statement."""
    run("ALTER SYSTEM SET log_statement = 'all'", "ALTER SYSTEM SET log_min_duration_statement = 0")
    run("ALTER SYSTEM SET log_connections = on", "SELECT pg_reload_conf()")
    with psycopg.connect(address()) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)

    def read() -> str:
        paths = [path for path in Path(folder).parent.rglob("*log*") if path.is_file()]
        return "\n".join(path.read_text(errors="replace") for path in paths)

    yield read
    run("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


def test_the_key_is_in_no_log_of_the_server(held: str, logged: Any) -> None:
    key = bytes(range(32))
    src = source(held, DOMAIN, person="who", rows_per_person=1)
    assert count(src, [LATTICE], key=key)[0].total > 0
    run("SELECT 'the log was written to'")
    text = logged()
    assert "the log was written to" in text
    assert "row_number()" in text
    secrets = [text_of_secret(key, "rows"), text_of_secret(key, "cells")]
    for secret in (*secrets, key.hex()):
        assert secret not in text


def test_a_release_sees_one_state_and_writes_nothing(held: str, table: str) -> None:
    src = source(held, DOMAIN, person="who", rows_per_person=2)
    with snapshot(src):
        before = count(src, [LATTICE], key=bytes(32))[0]
        run(f"DELETE FROM {table}")
        again = count(src, [LATTICE], key=bytes(32))[0]
    assert before.counts.tolist() == again.counts.tolist()
    assert before.total > 0
    assert count(src, [LATTICE])[0].total == 0


def test_a_read_only_user_may_count(held: str, table: str, tmp_path: Path) -> None:
    """Nothing is written, so a copy of a server can be read as well."""
    user = "reader_of_" + schema_of(tmp_path)
    schema = table.partition(".")[0]
    run(
        f"CREATE ROLE {user} LOGIN",
        f"ALTER ROLE {user} SET default_transaction_read_only = on",
        f"REVOKE TEMP ON DATABASE postgres FROM {user}",
        f"GRANT USAGE ON SCHEMA {schema} TO {user}",
        f"GRANT SELECT ON {table} TO {user}",
    )
    src = source(f"{held}&user={user}", DOMAIN, person="who", rows_per_person=2)
    assert count(src, [LATTICE])[0].total > 0


def test_the_label_changes_with_the_rows_and_not_with_counting(held: str, table: str) -> None:
    src = source(held, DOMAIN, person="who", rows_per_person=2)
    first = src.label
    count(src, [LATTICE])
    assert src.label == first == source(held, DOMAIN).label
    run(f"DELETE FROM {table} WHERE code = 1")
    assert src.label != first
    assert source(held, DOMAIN, name="people").label != source(held, DOMAIN, name="other").label


def test_no_function_of_another_user_runs_with_the_rights_of_who_counts(
    held: str, table: str
) -> None:
    """In a schema of the search path, where everybody may make functions; as by habit in public."""
    schema, _, name = table.partition(".")
    run(
        f"CREATE TABLE {schema}.ran (x text)",
        f"CREATE FUNCTION {schema}.convert_to(text, text) RETURNS bytea LANGUAGE plpgsql"
        f" AS $$ BEGIN RAISE EXCEPTION 'ran'; END $$",
        f"CREATE FUNCTION {schema}.seen(text) RETURNS text LANGUAGE plpgsql"
        f" AS $$ BEGIN RAISE EXCEPTION 'ran'; END $$",
        f"CREATE FUNCTION {schema}.to_regclass(varchar) RETURNS regclass LANGUAGE plpgsql"
        f" AS $$ BEGIN RAISE EXCEPTION 'ran'; END $$",
    )
    place = held.rpartition("&")[0]
    by_path = f"{place}&options=-csearch_path%3D{schema}&table={name}"
    for given in (by_path, f"{by_path.rpartition('=')[0]}={schema}.{name}"):
        src = source(given, DOMAIN, person="who", rows_per_person=2)
        assert count(src, [LATTICE], key=bytes(32))[0].total > 0
        assert src.label != ""
    later = source(f"{place}&options=-csearch_path%3D{schema}&table=later", DOMAIN)
    with pytest.raises(sf.DataError, match="no such table"):
        later.require([LATTICE])
    run(f"CREATE TABLE {schema}.later (LIKE {table})")
    assert count(later, [LATTICE])[0].total == 0


def test_a_named_table_that_is_made_anew_is_not_taken_for_unchanged(held: str, table: str) -> None:
    """Whatever its statistics say, which lag behind, and begin anew with it."""
    labels = [source(held, DOMAIN, name="people").label]
    for statements in (
        [f"TRUNCATE {table}"],
        [f"CREATE TABLE {table}_new (LIKE {table})", f"DROP TABLE {table}"],
    ):
        run(*statements)
        if len(statements) > 1:
            run(f"ALTER TABLE {table}_new RENAME TO {table.rpartition('.')[2]}")
        labels.append(source(held, DOMAIN, name="people").label)
    assert len(set(labels)) == 3


def test_a_view_is_a_data_set_of_its_own(held: str, table: str) -> None:
    run(f"CREATE VIEW {table}_seen AS SELECT * FROM {table} WHERE x > 0")
    one, other = (source(f"{held}_seen", DOMAIN) for _ in range(2))
    assert one.label != other.label
    assert 0 < count(one, [LATTICE])[0].total < len(ROWS)


def test_the_answer_is_found_again(held: str, tmp_path: Path) -> None:
    for replayed in (False, True):
        publisher = sf.Publisher(
            source(held, DOMAIN), ledger=tmp_path / "budget.db", account="a", budget=1
        )
        with publisher:
            answer = publisher.release(sf.Histogram("yes"), epsilon="0.5")
            assert answer.replayed == replayed
            assert publisher.check(sf.Histogram("yes")).rows == len(ROWS)


def test_a_password_is_shown_nowhere(table: str) -> None:
    given = f"postgresql://ada:{PASSWORD}@127.0.0.1:1/db?connect_timeout=1&table={table}"
    src = source(given, DOMAIN)
    shown = [repr(src), src.title, src._repr_html_()]
    with pytest.raises(sf.DataError, match="cannot be reached") as caught:
        src.require([LATTICE])
    error: BaseException | None = caught.value
    while error is not None:
        shown += [str(error), repr(error)]
        error = error.__cause__ or error.__context__
    assert not any(PASSWORD in text for text in shown)


def test_a_server_that_turns_a_user_away_is_told_from_one_that_is_down(held: str) -> None:
    for wrong in ("nobody:@", f"nobody:{PASSWORD}@"):
        src = source(held.replace("postgres:@", wrong), DOMAIN)
        with pytest.raises(sf.DataError, match="is up, and refused the connection") as caught:
            src.require([LATTICE])
        assert PASSWORD not in str(caught.value)


def test_what_is_wrong_is_said_without_a_value(held: str, table: str) -> None:
    with pytest.raises(sf.DataError, match="no such table"):
        source(f"{held}_gone", DOMAIN).require([LATTICE])
    with pytest.raises(sf.UsageError, match="none is named"):
        source(address(), DOMAIN)
    with pytest.raises(sf.UsageError, match="not the name of a table"):
        source(address(), DOMAIN, table='a";drop table b')
    with pytest.raises(sf.UsageError, match="no database"):
        source("people.csv", DOMAIN, table="people")
    with pytest.raises(sf.DataError, match="no column of that name"):
        source(held, DOMAIN, person="whom")
    run(f"ALTER TABLE {table} ALTER COLUMN x TYPE text")
    with pytest.raises(sf.DataError, match="of type string"):
        source(held, DOMAIN).require([LATTICE])
    src = source(held, {"code": DOMAIN["code"]})
    publisher = sf.Publisher(src, budget=1)
    run(f"DROP TABLE {table}")
    with pytest.raises(sf.DataError, match="no such table"):
        publisher.release(sf.Histogram("code"), epsilon=1)
    assert publisher.remaining == 1


def _refused(address: str) -> None:
    """Before the charge; and rows without persons are counted all the same."""
    assert count(source(address, DOMAIN), [LATTICE])[0].total > 0
    with sf.Publisher(source(address, DOMAIN, person="who"), budget=1) as publisher:
        with pytest.raises(sf.DataError, match="chosen on a second connection") as caught:
            publisher.release(sf.Histogram("yes"), epsilon=1)
        assert publisher.remaining == 1
    assert caught.value.__context__ is caught.value.__cause__ is None


@pytest.mark.parametrize("role", ["CONNECTION LIMIT 1", "INHERIT"])
def test_a_server_that_cannot_choose_rows_is_refused_before_the_charge(
    role: str, held: str, table: str, tmp_path: Path
) -> None:
    """It takes one connection only, or it exports no snapshot to this user."""
    user = f"u{schema_of(tmp_path)}"
    run(
        f"CREATE ROLE {user} LOGIN {role}",
        f"GRANT USAGE ON SCHEMA {table.partition('.')[0]} TO {user}",
        f"GRANT SELECT ON {table} TO {user}",
    )
    exporting = "EXECUTE ON FUNCTION pg_export_snapshot()"
    if role == "INHERIT":
        run(f"REVOKE {exporting} FROM PUBLIC")
    try:
        _refused(f"{held}&user={user}")
    finally:
        run(f"GRANT {exporting} TO PUBLIC")


@pytest.mark.parametrize("how", ["refused", "left out", "of another"])
def test_a_pooler_that_gives_no_settings_is_refused_before_the_charge(
    how: str, held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = psycopg.connect

    def pooled(*arguments: Any, **named: Any) -> Any:
        options = named.get("options", "")
        if "sfumato." in options:
            if how == "refused":
                raise psycopg.OperationalError("unsupported startup parameter: options")
            other = "-c sfumato.rows=theirs -c sfumato.cells=theirs"
            named["options"] = other if how == "of another" else ""
        return connect(*arguments, **named)

    monkeypatch.setattr(psycopg, "connect", pooled)
    _refused(held)


def test_a_lost_connection_is_said_and_another_is_made(held: str) -> None:
    src = source(held, DOMAIN)
    src.require([LATTICE])
    with snapshot(src):
        run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'sfumato'"
        )
        with pytest.raises(sf.DataError, match=r"lost|reached|going down") as caught:
            count(src, [LATTICE])
        assert caught.value.__context__ is None
    assert count(src, [LATTICE])[0].total > 0


AWKWARD = {
    "x": ["1e400", "-1e400", "1e-400", "-1e-400", "NaN", "0.1", "Infinity", "2.5e-324", "3"],
    "word": ["ß", "a ", "\\x61", "a'b", "日本", "A", "", "a", "é"],
}


def test_values_that_no_double_holds_are_counted(tmp_path: Path) -> None:
    """A cast that fails for some values alone would tell of them."""
    name = f"{schema_of(tmp_path)}.t"
    run(
        f"CREATE SCHEMA {schema_of(tmp_path)}",
        f"CREATE TABLE {name} (x numeric, day date, at timestamptz, word char(5))",
    )
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
    src = source(f"{address()}&table={name}", domain)
    asked = {"x": 4, "day": 62, "at": 48, "word": None, "hour": None}
    needs = [sf.Histogram(axis, bins=bins).needs(domain) for axis, bins in asked.items()]
    x, day, at, word, hour = (random_tables.found(cube) for cube in count(src, needs))
    assert x == {(0,): 5, (3,): 3}
    assert day == {(0,): 4, (6,): 1, (61,): 4}
    assert at == {(0,): 4, (47,): 5}
    assert word == {(0,): 2, (1,): 1, (2,): 1, (3,): 1, (4,): 4}
    assert sum(hour.values()) == len(AWKWARD["x"])
    assert hour[(24,)] == 8
    checked = sf.Publisher(src, budget=1).check(sf.Histogram("x", bins=4))
    assert checked.rows == len(AWKWARD["x"])


def test_a_child_process_makes_connections_of_its_own(held: str) -> None:
    reader = PostgresTable.of(held, (), None)
    assert reader is not None
    names = reader.names()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(reader.names) == names
    assert reader.names() == names
