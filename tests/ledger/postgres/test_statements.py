"""Statements that find nothing are sent with the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from conformance.stores import filled, public_rows, reserve
from sfumato.errors import LedgerError
from sfumato.ledger import Entry, journal
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.postgres.statements import Statements, marked
from sfumato.ledger.store import PublicRows
from support import postgres
from support.wire import Wire

INSERT = "INSERT INTO written VALUES (?)"
COUNT = "SELECT count(*) FROM written"


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
            assert statements.ask(INSERT, (number,)) == ()
        assert wire.asked == 0
        assert statements.ask(COUNT, ()) == [(2,)]
        assert wire.asked == 1
        statements.ask(INSERT, (3,))
        statements.commit()
        assert wire.asked == 2
        assert db.execute("SELECT count(*) FROM written").fetchone() == (3,)


def test_one_that_fails_undoes_those_before_it_and_stops_those_after_it() -> None:
    with closing(psycopg.connect(postgres.address(), autocommit=True)) as db:
        db.execute("CREATE TEMPORARY TABLE written (number INT UNIQUE)")
        db.execute("BEGIN")
        statements = Statements(db)
        for number in (1, 2, 2, 3):
            statements.ask(INSERT, (number,))
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
