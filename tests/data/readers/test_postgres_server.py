"""Connections to a server of PostgreSQL: what one shows, and how each of them ends."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import sfumato as sf
from conformance.kinds import people, postgres
from data import random_tables
from sfumato.data import count, snapshot, source
from sfumato.data.readers.postgres import PostgresTable
from sfumato.domain.lattice import Lattice
from support.postgres import address, schema_of
from support.workers import HANG

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


# --- connections that end -------------------------------------------------------------------------

END = (
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
    " WHERE application_name = 'sfumato' AND pid <> pg_backend_pid()"
)
MANY = f"""
    INSERT INTO {{}} (x, who)
    SELECT i % 10, repeat('w', 200) || i FROM generate_series(1, {2**17}) AS rows(i)
"""
"""Rows of several batches, and of more than what the connection holds on its way."""


def ended(src: sf.Source, when: Callable[[], None]) -> sf.DataError:
    """What is raised when something happens after the first rows."""
    done: list[int] = []

    def progress(rows: int, _: int | None) -> None:
        done.append(rows)
        if len(done) == 1:
            when()

    with pytest.raises(sf.DataError) as caught:
        count(src, [LATTICE], progress)
    assert done
    assert caught.value.__context__ is caught.value.__cause__ is None
    return caught.value


def test_a_connection_that_is_lost_while_rows_are_read(held: str, table: str) -> None:
    run(MANY.format(table))
    src = source(held, DOMAIN, person="who")
    assert "the connection to the server was lost" in str(ended(src, lambda: run(END)))
    assert count(src, [LATTICE])[0].total > 2**17


def test_a_connection_that_is_lost_between_two_scans(held: str) -> None:
    """Another one would show another state."""
    src = source(held, DOMAIN)
    with snapshot(src):
        count(src, [LATTICE])
        run(END)
        for _ in range(2):
            with pytest.raises(sf.DataError, match=r"lost|going down"):
                count(src, [LATTICE])
    assert count(src, [LATTICE])[0].total > 0


def test_an_expression_that_fails_tells_no_value(held: str, table: str) -> None:
    """At the first row, and further on."""
    run(MANY.format(table))
    last = f"repeat('w', 200) || {2**17}"
    for name, fails in (("first", "TRUE"), ("later", f"who = {last}")):
        run(
            f"CREATE VIEW {table}_{name} AS SELECT x,"
            f" CASE WHEN {fails} THEN (who || 'canary')::int END AS code_of FROM {table}"
        )
        domain = sf.Domain(code_of=sf.Interval(0, 2))
        src = source(f"{held}_{name}", domain)
        with (
            sf.Publisher(src, budget=1) as publisher,
            pytest.raises(sf.DataError, match="an expression of a view") as caught,
        ):
            publisher.release(sf.Histogram("code_of", bins=2), epsilon=1)
        assert caught.value.__context__ is caught.value.__cause__ is None
        assert "canary" not in str(caught.value)


def test_a_time_limit_of_the_server_is_no_key_press(held: str, table: str) -> None:
    run(f"CREATE VIEW {table}_slow AS SELECT x, pg_sleep(60) IS NULL AS yes FROM {table}")
    src = source(
        f"{held.rpartition('&')[0]}&options=-cstatement_timeout%3D500&table={table}_slow",
        {"yes": DOMAIN["yes"]},
    )
    with pytest.raises(sf.DataError, match="statement_timeout"):
        count(src, [Lattice((random_tables.labels("yes"),))])


SLOW = """
import os, signal, sys, threading
import psycopg
import sfumato as sf
from sfumato.data import count, source
from sfumato.domain.lattice import LabelAxis, Lattice

place, slow, table, asleep = sys.argv[1:]
domain = sf.Domain(yes=sf.Categories([True, False]))
lattice = [Lattice((LabelAxis("yes", (True, False)),))]
src = source(slow, domain)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
handler = signal.getsignal(signal.SIGINT)

def press():
    # Not before the server sleeps in the query, in which no Python runs.
    with psycopg.connect(place, autocommit=True) as connection:
        while not connection.execute(asleep).fetchone()[0]:
            pass
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()
try:
    count(src, lattice)
except KeyboardInterrupt as key:
    print("pressed", key.__context__, key.__cause__)
with psycopg.connect(place, autocommit=True) as connection:
    while connection.execute(asleep).fetchone()[0]:
        pass
assert signal.getsignal(signal.SIGINT) is handler
print(int(count(source(table, domain), lattice)[0].total))
"""
ASLEEP = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query LIKE '%{}%'"


def test_a_key_press_ends_what_the_server_does(held: str, table: str) -> None:
    """A view that sleeps for an hour at its first row, or at its last."""
    n_rows = len([row for row in ROWS if row["yes"] is not None])
    for name, sleeps in (("first", "TRUE"), ("last", "number = 60")):
        run(
            f"CREATE VIEW {table}_{name} AS SELECT CASE WHEN {sleeps}"
            " THEN pg_sleep(3600) IS NOT NULL ELSE yes END AS yes FROM"
            f" (SELECT yes, row_number() OVER () AS number FROM {table}) AS numbered"
        )
        asleep = ASLEEP.format(f"{table.partition('.')[2]}_{name}")
        done = subprocess.run(
            [sys.executable, "-c", SLOW, address(), f"{held}_{name}", held, asleep],
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG,
        )
        assert done.stdout.split("\n") == ["pressed None None", str(n_rows), ""], done.stderr


def test_a_question_while_rows_are_read_ends_them_in_words(held: str, table: str) -> None:
    """On one connection it would end them without a word, and fewer rows were counted."""
    run(MANY.format(table))
    src = source(held, DOMAIN)

    def another() -> None:
        with pytest.raises(sf.DataError, match="lost"):
            src._reader.names()

    assert "lost" in str(ended(src, another))
    assert count(src, [LATTICE])[0].total > 2**17


def test_what_a_server_does_not_support_ends_no_snapshot(held: str) -> None:
    reader = PostgresTable.of(held, (), None)
    assert reader is not None
    server = reader._server
    with server.snapshot():
        assert server.answer_if_supported("SELECT FROM other.public.t") is None
        assert server.answer_if_supported("SELECT 7 AS n").to_pylist() == [{"n": 7}]
    assert server.answer_if_supported("SELECT FROM other.public.t") is None
    with pytest.raises(sf.DataError, match="no such table"):
        server.answer_if_supported("SELECT FROM public.gone")


def test_a_child_process_leaves_the_connection_of_its_parent_alone(held: str, table: str) -> None:
    """Also in the middle of a scan, and when its own Python ends."""
    run(MANY.format(table))
    reader = PostgresTable.of(held, (), None)
    assert reader is not None
    columns = {"x": random_tables.grid("x", 8)}
    batches = reader.batches(columns)
    rows = len(next(batches))

    def child() -> None:
        nonlocal batches
        assert len(reader.names()) == len(DOMAIN) + 1
        del batches

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(HANG)
    assert process.exitcode == 0
    assert rows + sum(map(len, batches)) == len(ROWS) + 2**17
