"""Connections that are cut, servers that will not do, and addresses that hold a password."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from conformance.stores import filled, public_rows, reserve
from sfumato.errors import LedgerError, SfumatoError, UsageError
from sfumato.ledger import journal, open_ledger
from sfumato.ledger import postgres_server as database
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sql import Ask
from sfumato.ledger.store import PublicRows
from support import postgres
from support.postgres import schema_of

CUT = "SELECT pg_terminate_backend(%s)"


def cut(store: PostgresStore) -> None:
    """End the connection of a store on the server, as a network that fails would."""
    connection = store.database._connection
    assert connection is not None
    with closing(psycopg.connect(postgres.address(), autocommit=True)) as other:
        other.execute(CUT, (connection.info.backend_pid,))


def wait_for_entry(store: PostgresStore, key: str) -> None:
    """Wait until others see an entry."""
    query = f'SELECT FROM "{store.database.schema}".entries WHERE key = %s'.encode()
    with closing(psycopg.connect(postgres.address(), autocommit=True)) as other:
        while not other.execute(query, (key,)).rowcount:
            time.sleep(0.01)


def test_a_connection_that_was_cut_between_transactions_is_made_again(
    open_store: Callable[[], PostgresStore],
) -> None:
    store = filled(open_store())
    before = public_rows(store)
    cut(store)
    assert public_rows(store) == before
    cut(store)
    store.writing(lambda rows: journal.append(rows, reserve("new")))
    assert len(public_rows(store)["entries"]) == len(before["entries"]) + 1


def test_a_transaction_that_was_cut_runs_again_as_though_it_never_ran(
    open_store: Callable[[], PostgresStore],
) -> None:
    store = filled(open_store())
    tries: list[int] = []

    def charge(rows: PublicRows) -> None:
        journal.append(rows, reserve("new"))
        tries.append(len(list(rows.entries())))
        if len(tries) == 1:
            cut(store)
            rows.identity()

    store.writing(charge)
    assert tries == [7, 7]
    assert store.reading(lambda rows: rows.has("trips", "new", "reserve"))


@pytest.mark.parametrize("committed", [True, False])
def test_a_cut_while_it_commits_is_resolved_by_asking_the_server(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """The answer to COMMIT never arrives: the charge stands once, whatever became of it."""
    store = filled(open_store())
    connection = store.database._connection
    assert connection is not None
    plain = connection.execute
    tries: list[str] = []

    def execute(query: object, *values: object) -> object:
        if query != "COMMIT":
            return plain(query, *values)  # type: ignore[arg-type]
        if committed:
            plain("COMMIT")
            wait_for_entry(store, "new")  # it was sent among others, and nobody has heard of it
        cut(store)
        raise psycopg.OperationalError("the server closed the connection unexpectedly")

    monkeypatch.setattr(connection, "execute", execute)

    def charge(rows: PublicRows) -> None:
        tries.append("try")
        journal.append(rows, reserve("new"))

    store.writing(charge)
    assert len(tries) == (1 if committed else 2)
    kinds = [entry.key for entry in store.reading(lambda rows: list(rows.entries()))]
    assert kinds.count("new") == 1


def test_an_interrupt_before_the_commit_leaves_no_lock(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others would wait for the end of a transaction that nobody ends."""
    store = filled(open_store())
    before = public_rows(store)
    with monkeypatch.context() as patch:

        def interrupt(_statements: database.Statements) -> None:
            raise KeyboardInterrupt

        patch.setattr(database.Statements, "commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.writing(lambda rows: journal.append(rows, reserve("new")))
    assert public_rows(store) == before
    other = PostgresStore(postgres.address(), schema=store.database.schema)
    with closing(psycopg.connect(postgres.address(), autocommit=True)) as seen:
        query = (
            "SELECT FROM pg_locks JOIN pg_class ON pg_class.oid = relation WHERE relnamespace = "
            f"'{store.database.schema}'::regnamespace AND mode = 'ExclusiveLock'"
        ).encode()
        assert not seen.execute(query).rowcount
    other.writing(lambda rows: journal.append(rows, reserve("new")))
    other.close()


class Away:
    """A server that is not up, as psycopg sees it when it is asked what is wrong."""

    @staticmethod
    def ping(conninfo: bytes) -> psycopg.pq.Ping:
        return psycopg.pq.Ping.NO_RESPONSE


def test_secrets_wait_for_a_server_that_their_ledger_has_reached(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    connect = psycopg.connect
    tries: list[str] = []

    def restarting(*args: str, **given: str) -> object:
        tries.append(str(given["application_name"]))
        if len(tries) < 3:
            raise psycopg.OperationalError("connection refused")
        return connect(*args, **given)

    monkeypatch.setattr(psycopg, "connect", restarting)
    monkeypatch.setattr(psycopg.pq, "PGconn", Away)
    with pytest.raises(LedgerError, match="cannot be reached"):
        open_store()
    with closing(store.secrets(create=True)) as secrets:
        assert secrets.reading(lambda rows: rows.value("none")) is None
    assert len(tries) == 3


def test_a_server_that_stays_away_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(database.CONNECTING, "connect_timeout", 2)
    address = "postgresql://someone:hunter2@127.0.0.1:1/db"
    with pytest.raises(LedgerError, match="cannot be reached") as refusal:
        open_ledger(address)
    assert "hunter2" not in str(refusal.value)
    assert "someone" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize("address", ["postgresql://a:hunter2@[host/db", "postgresql://%"])
def test_an_address_that_is_none_is_refused_without_quoting_it(address: str) -> None:
    with pytest.raises(UsageError, match="no address of a PostgreSQL database") as refusal:
        open_ledger(address)
    assert "hunter2" not in str(refusal.value)


def test_a_schema_of_another_kind_or_version_is_refused(
    open_store: Callable[[], PostgresStore],
) -> None:
    store = open_store()
    name = store.database.schema
    for comment, why in (("sfumato ledger, version 99", "version 99"), ("mine", "no ledger")):
        store.database.apart(lambda ask, c=comment: ask(f"COMMENT ON SCHEMA {name} IS '{c}'", ()))
        with pytest.raises(LedgerError, match=why):
            open_store()


def test_a_missing_ledger_is_not_made_unless_asked_for() -> None:
    with pytest.raises(LedgerError, match="no ledger in this database"):
        PostgresStore(postgres.address(), schema="nobody_made_it", create=False)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (("off", "on", "UTF8", "on", False), "fsync is off"),
        (("on", "off", "UTF8", "on", False), "fsync is off"),
        (("on", "on", "LATIN1", "on", False), "UTF-8"),
        (("on", "on", "UTF8", "on", True), "may lag"),
    ],
)
def test_a_server_that_may_lose_charges_is_refused(
    open_store: Callable[[], PostgresStore], facts: tuple[object, ...], why: str
) -> None:
    store = open_store()
    with pytest.raises(SfumatoError, match=why):
        store.database._require_safe(facts)


def test_commits_are_durable_whatever_the_role_is_set_to(
    open_store: Callable[[], PostgresStore], tmp_path: Path
) -> None:
    store = open_store()
    name = schema_of(tmp_path)
    with psycopg.connect(postgres.address(), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {name} LOGIN SUPERUSER")
        for setting in ("synchronous_commit = off", "default_transaction_read_only = on"):
            owner.execute(f"ALTER ROLE {name} SET {setting}")
    theirs = postgres.address().replace("postgres:@", f"{name}:@")
    with closing(PostgresStore(theirs, schema=store.database.schema)) as other:
        found = other.database.atomic(
            lambda ask: list(ask("SELECT current_setting('synchronous_commit')", ()))
        )
    assert found == [("on",)]


def test_a_server_that_turns_a_user_away_is_told_from_one_that_is_down() -> None:
    for wrong in ("nobody:@", "postgres:hunter2@"):
        address = postgres.address().replace("postgres:@", wrong)
        address = address.replace("/postgres?", "/hunter2?")
        with pytest.raises(LedgerError, match="is up, and refused the connection") as refusal:
            open_ledger(address)
        assert "hunter2" not in str(refusal.value).replace("/hunter2", "")


def test_a_statement_that_was_cancelled_says_so(open_store: Callable[[], PostgresStore]) -> None:
    store = filled(open_store())
    before = public_rows(store)

    def charge(rows: PublicRows) -> None:
        journal.append(rows, reserve("new"))
        raise psycopg.errors.QueryCanceled

    with pytest.raises(LedgerError, match=r"cancelled it on the server \(SQLSTATE 57014\)"):
        store.writing(charge)
    assert public_rows(store) == before


@pytest.mark.parametrize(
    "clash", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected]
)
@pytest.mark.parametrize("committing", [False, True])
def test_a_transaction_that_clashes_runs_again(
    open_store: Callable[[], PostgresStore],
    monkeypatch: pytest.MonkeyPatch,
    clash: type[psycopg.Error],
    committing: bool,
) -> None:
    """In the middle, or where the server finds it out at the end."""
    store = filled(open_store())
    connection = store.database._connection
    assert connection is not None
    plain = connection.execute
    tries: list[str] = []

    def execute(query: object, *values: object) -> object:
        if query == "COMMIT" and committing and len(tries) == 1:
            plain("ROLLBACK")
            raise clash
        return plain(query, *values)  # type: ignore[arg-type]

    monkeypatch.setattr(connection, "execute", execute)

    def charge(rows: PublicRows) -> None:
        journal.append(rows, reserve("new"))
        tries.append("try")
        if not committing and len(tries) == 1:
            raise clash

    store.writing(charge)
    assert len(tries) == 2
    kinds = [entry.key for entry in store.reading(lambda rows: list(rows.entries()))]
    assert kinds.count("new") == 1


def test_secrets_are_closed_to_others(open_store: Callable[[], PostgresStore]) -> None:
    store = open_store()
    secrets = store.secrets(create=True)
    name = secrets.database.schema

    def open_to_all(ask: Ask) -> None:
        ask(f"GRANT USAGE ON SCHEMA {name} TO PUBLIC", ())

    secrets.database.apart(open_to_all)
    with pytest.raises(LedgerError, match="may open its secrets: PUBLIC"):
        store.secrets(create=False)
    secrets.close()
