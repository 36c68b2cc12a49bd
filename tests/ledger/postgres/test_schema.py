"""The tables and rules on the server are those that this version makes, and changes show."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import Book
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.postgres_server import BOOK, SECRETS, expected_objects, objects
from support.postgres import address, schema_of

CHANGES = {
    "a rule is dropped": "DROP TRIGGER entries_fit ON entries",
    "a rule is switched off": "ALTER TABLE entries DISABLE TRIGGER entries_stay",
    "a rule is replaced": "CREATE OR REPLACE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql "
    "AS $$ BEGIN RETURN NULL; END $$",
    "a table is added": "CREATE TABLE more (name TEXT)",
    "a constraint is dropped": "ALTER TABLE accounts DROP CONSTRAINT accounts_total_first_check",
    "rows are hidden": "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
}


def test_new_schemas_hold_what_is_expected(open_store: Callable[[], PostgresStore]) -> None:
    store = open_store()
    secrets = store.secrets(create=True)
    assert store.database.reading(objects) == expected_objects(BOOK)
    assert secrets.database.reading(objects) == expected_objects(SECRETS)
    assert store.reading(lambda rows: rows.damage(thorough=True)) == []
    assert secrets.reading(lambda rows: rows.damage()) == []
    secrets.close()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_tables_or_rules_shows(
    open_store: Callable[[], PostgresStore], change: str
) -> None:
    store = open_store()
    store.database.apart(lambda ask: ask(change, ()))
    (found, *_) = store.reading(lambda rows: rows.damage(thorough=False))
    assert found.endswith("was dropped, replaced or added to the ledger's tables and rules")
    assert not Book(open_store()).verify().ok


def test_an_auditor_who_may_read_the_public_part_verifies_it(
    open_store: Callable[[], PostgresStore], tmp_path: Path
) -> None:
    book = Book(open_store())
    book.open_account("trips", "marbles", (100, 0))
    with book.reserve("trips", "k", "asked", (1, 0), "") as hold:
        hold.store(b"noisy")
    name = schema_of(tmp_path)
    with psycopg.connect(address(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN")
        owner.execute(f"GRANT USAGE ON SCHEMA {name} TO {name}")
        owner.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {name}")
    theirs = address().replace("postgres:@", f"{name}:@")
    with Book(PostgresStore(theirs, schema=name, create=False)) as copy:
        assert copy.verify().ok
        with pytest.raises(LedgerError, match="may only read this ledger"):
            copy.reserve("trips", "other", "asked", (1, 0), "")
