"""Statements that find nothing are sent with the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from conformance.stores import filled, public_rows, reserve
from sfumato.errors import LedgerError
from sfumato.ledger import Book, Entry, journal
from sfumato.ledger.postgres import PostgresPublicRows, PostgresStore
from sfumato.ledger.postgres_server import Statements, marked, noted
from sfumato.ledger.sql import Row
from sfumato.ledger.store import PublicRows
from support import postgres
from support.wire import Wire

INSERT = "INSERT INTO written VALUES (?)"
COUNT = "SELECT count(*) FROM written"
ABOVE = "SELECT count(*) FROM written WHERE number > ?"


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire(postgres.address())
    yield wire
    wire.close()


def test_they_arrive_in_order_and_in_one_go(wire: Wire) -> None:
    with closing(psycopg.connect(wire.address, autocommit=True)) as db:
        db.execute("CREATE TEMPORARY TABLE written (number INT UNIQUE)")
        db.execute("BEGIN")
        wire.break_at(0)
        statements = Statements(db)
        for number in (1, 2):
            assert statements(INSERT, (number,)) == ()
        assert wire.asked == 0
        assert statements(COUNT, ()) == [(2,)]
        assert wire.asked == 1
        statements(INSERT, (3,))
        statements.commit()
        assert wire.asked == 2
        assert db.execute("SELECT count(*) FROM written").fetchone() == (3,)


def test_what_was_foreseen_is_not_asked_again_until_it_may_have_changed(wire: Wire) -> None:
    with closing(psycopg.connect(wire.address, autocommit=True)) as db:
        db.execute("CREATE TEMPORARY TABLE written (number INT UNIQUE)")
        db.execute("CREATE TEMPORARY TABLE other (number INT)")
        wire.break_at(0)
        begun: list[Row] = []
        statements = Statements(db, ("BEGIN", "SELECT 'a turn'"), begun.append)
        statements.foresee([(COUNT, ()), (ABOVE, (1,))])
        assert (wire.asked, begun) == (1, [("a turn",)])
        assert statements(COUNT, ()) == statements(ABOVE, (1,)) == [(0,)]
        statements("INSERT INTO other VALUES (?)", (1,))
        assert statements(COUNT, ()) == [(0,)]
        assert wire.asked == 1
        assert statements(ABOVE, (0,)) == [(0,)]  # another value
        assert wire.asked == 2
        statements(INSERT, (2,))
        assert statements(COUNT, ()) == statements(ABOVE, (1,)) == [(1,)]
        assert wire.asked == 4
        statements.foresee([(COUNT, ())])
        statements("WITH gone AS (DELETE FROM written RETURNING 1) TABLE gone", ())
        assert statements(COUNT, ()) == [(0,)]
        statements.commit()


def test_a_transaction_that_only_writes_begins_before_it_commits(wire: Wire) -> None:
    with closing(psycopg.connect(wire.address, autocommit=True)) as db:
        db.execute("CREATE TEMPORARY TABLE written (number INT UNIQUE)")
        begun: list[Row] = []
        statements = Statements(db, ("BEGIN", "SELECT 1"), begun.append)
        statements(INSERT, (1,))
        assert begun == []
        statements.commit()
        assert begun == [(1,)]
        assert db.execute("SELECT count(*) FROM written").fetchone() == (1,)


def test_a_spend_takes_four_round_trips(wire: Wire, tmp_path: Path) -> None:
    with Book(PostgresStore(wire.address, schema=postgres.schema_of(tmp_path))) as book:
        book.open_account("trips", "marbles", (100, 0))

        def spend(key: str | None, asked: str) -> bytes:
            with book.reserve("trips", key, asked, (1, 0), "note") as hold:
                return hold.store(b"answer")

        spend("first", "asked")
        for key in ("second", None):
            wire.break_at(0)
            spend(key, f"asked under {key}")
            assert wire.asked == 4
        assert (book.account("trips").spent, book.verify().ok) == ((3, 0), True)


def test_the_entries_of_a_key_are_found_by_it_however_small_the_ledger_was(
    open_store: Callable[[], PostgresStore],
) -> None:
    """A plan that is kept from then would read every entry of the account when it is large."""
    store = filled(open_store())

    def plan(rows: PublicRows) -> str:
        assert isinstance(rows, PostgresPublicRows)
        asked: list[tuple[str, tuple[object, ...]]] = []
        type(rows)(noted(asked), rows._reached).of_key("trips", "k")
        ((query, values),) = asked
        rows._ask("SET LOCAL plan_cache_mode = force_generic_plan", ())
        rows._ask(f"PREPARE of_key AS {query.replace('?', '$1', 1).replace('?', '$2', 1)}", ())
        lines = rows._ask("EXPLAIN EXECUTE of_key('trips', 'k')", ())
        assert values == ("trips", "k")
        return "\n".join(str(line) for (line,) in lines)

    assert "entries_by_key" in store.reading(plan)


def test_one_that_fails_undoes_those_before_it_and_stops_those_after_it() -> None:
    with closing(psycopg.connect(postgres.address(), autocommit=True)) as db:
        db.execute("CREATE TEMPORARY TABLE written (number INT UNIQUE)")
        db.execute("BEGIN")
        statements = Statements(db)
        for number in (1, 2, 2, 3):
            statements(INSERT, (number,))
        with pytest.raises(psycopg.errors.UniqueViolation):
            statements.commit()
        db.rollback()
        assert db.execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_an_entry_that_is_refused_when_it_commits_leaves_nothing(
    open_store: Callable[[], PostgresStore],
) -> None:
    store = filled(open_store())
    before = public_rows(store)

    def twice(rows: PublicRows) -> Entry:
        entry = journal.append(rows, reserve("new"))
        rows.add(entry)
        return entry

    with pytest.raises(LedgerError, match="the ledger's own rules refuse the entry"):
        store.writing(twice)
    assert public_rows(store) == before
    assert store.writing(lambda rows: journal.append(rows, reserve("new"))).key == "new"


def test_marks_of_values_are_those_of_the_driver() -> None:
    assert marked("SELECT ? WHERE a LIKE 'b%'") == b"SELECT %s WHERE a LIKE 'b%%'"
