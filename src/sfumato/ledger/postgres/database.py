"""A schema of a ledger on a server: one connection, shared by threads, never by processes.

A transaction that writes takes its turn before it looks at anything: a lock on one table, by which
transactions that write run one after another, and two charges cannot both see the same balance. It
is told its number at once. Where the connection is cut while it commits, the server is asked by
that number whether it is done, and then for what it wrote: this stands, or it is run again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from sfumato.basics.processes import renewed_in_children
from sfumato.errors import LedgerError
from sfumato.ledger.postgres.addresses import driver, public_address
from sfumato.ledger.postgres.failures import (
    TURNED_AWAY,
    UNREACHABLE,
    is_clash,
    is_lost,
    is_refused,
    meaning_of,
)
from sfumato.ledger.postgres.reached import Reached
from sfumato.ledger.postgres.schema import SchemaKind, script
from sfumato.ledger.postgres.statements import Statements, asking, marked, plain, quoted
from sfumato.ledger.sql_public import Ask, Row
from sfumato.ledger.store import StoreError, Unclear
from sfumato.ledger.turns import Turns

if TYPE_CHECKING:
    from datetime import datetime

    import psycopg

    Connection: TypeAlias = psycopg.Connection[Row]

T = TypeVar("T")

PATIENCE = 60.0  # seconds to wait for others, and for a server that is gone
SHORTEST_PAUSE = 0.005  # seconds between two tries
LONGEST_PAUSE = 0.1

# Without these, either side waits for hours for a machine that has lost its power or its network,
# and a server keeps the lock of a client that is gone. What an address says itself comes first.
CONNECTING: dict[str, str | int] = {
    "connect_timeout": 10,  # seconds until a server counts as out of reach
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "application_name": "sfumato",
}
# A plan that was made while a table was small would read all of it when it is large: each statement
# of a charge finds its rows by an index. Where there is none, older servers take the plan for so
# costly that they would compile it.
SETTINGS = """
    SET enable_seqscan = off;
    SET jit = off;
    SET client_encoding = 'UTF8';
    SET standard_conforming_strings = on;
    SET bytea_output = hex;
    SET DateStyle = ISO;
    SET default_transaction_isolation = 'read committed';
    SET default_transaction_read_only = off;
    SET idle_in_transaction_session_timeout = 0;
    SET statement_timeout = 0;
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3;
    SET tcp_user_timeout = 60000
"""
BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    "SELECT take_turn(), clock_timestamp()",
)
AHEAD = (BEGIN[0], "SET LOCAL synchronous_commit = off", BEGIN[1])
FACTS = """
    SELECT current_setting('fsync'), current_setting('full_page_writes'),
           current_setting('server_encoding'), current_setting('synchronous_commit'),
           pg_is_in_recovery()
"""
WEAK = ("off", "local")
"""Settings of synchronous_commit under which a charge that was told of may be lost."""

_ABANDONED: list[object] = []
"""Connections of a parent process. Closing one here would end it there."""


BEHIND = "it lacks what this process saw in it: an older copy was put back, or a copy that lagged"
RESTORE = "Restore the latest copy, with its secrets, before anybody publishes"


class Lost(Exception):
    """The connection was cut before anything was committed, or cannot be made again yet."""


class Database:
    """A schema, used through `atomic` and `reading` only.

    Parameters
    ----------
    address : str
        Where the server is: a URL.
    schema : str
        The name of the ledger's schema.
    kind : SchemaKind
    create : bool
        Whether a missing schema is made.
    was_reached : bool
        Whether this process has reached the server before: then it waits for one that is gone.
    """

    def __init__(
        self,
        address: str,
        schema: str,
        *,
        kind: SchemaKind,
        create: bool,
        was_reached: bool = False,
    ) -> None:
        self.kind = kind
        self.schema = f"{schema}{kind.suffix}"
        self._address = address
        self.label = f"{kind.noun} {public_address(address)!r}"
        self.reached = Reached()
        self._connection: Connection | None = None
        self._was_reached = was_reached
        self._turns = Turns(self.label)
        renewed_in_children(self, Database._renew)
        self._turns.alone(lambda: self._until_settled(partial(self._prepare, create=create)))

    def _renew(self) -> None:
        """Begin with a new lock and no connection, as a child process must."""
        if self._connection is not None:
            _ABANDONED.append(self._connection)
            self._connection = None
        self._turns.renew()

    # --- transactions -----------------------------------------------------------------------------

    def atomic(self, action: Callable[[Ask], T], *, ahead: bool = False) -> T:
        """Run one transaction that writes: durable when this returns, undone if it raises.

        ``ahead``: it may become durable with the next one of the server that does so at once. The
        server writes down everything in the order in which it is committed.
        """
        begin = AHEAD if ahead else BEGIN
        return self._turns.alone(lambda: self._until_settled(partial(self._write, action, begin)))

    def reading(self, action: Callable[[Ask], T]) -> T:
        """Look at one consistent view."""
        return self._turns.alone(lambda: self._until_settled(partial(self._read, action)))

    def apart(self, action: Callable[[Ask], T]) -> T:
        """Run statements, each a transaction of its own; they may be run again."""
        return self._turns.alone(lambda: self._until_settled(partial(self._apart, action)))

    def at_once(self, query: str, values: tuple[object, ...]) -> Row | None:
        """Run a call that is a transaction of its own: the row that it finds, once it is durable.

        None: it found none, or a rule refused it; nothing was done. `Unclear`: the connection was
        cut. A later transaction that waits for its turn sees what became of it: the turn is free
        only once the server is done with it. One that the server begins later finds nothing to do.
        """
        return self._turns.alone(lambda: self._until_settled(partial(self._call, query, values)))

    def run(self, statements: Sequence[str]) -> None:
        """Run statements without values, which may hold any sign, in one transaction."""

        def run(db: Connection) -> None:
            with db.transaction():
                for statement in statements:
                    db.execute(plain(statement))

        self._turns.alone(lambda: self._until_settled(run))

    def _until_settled(self, action: Callable[[Connection], T]) -> T:
        """Try until no other transaction gets in the way, and the connection holds."""
        import psycopg

        until = time.monotonic() + PATIENCE
        while True:
            try:
                return action(self._ready())
            except Lost:
                self._drop()
                obstacle = "the connection to the server was cut, again and again"
                remedy = "Ask again, under the same key, once the server is up"
                failure = StoreError(self.label, obstacle, remedy)
            except psycopg.Error as error:
                failure = StoreError(self.label, *meaning_of(error))
                if not is_clash(error):
                    self._drop()
                    raise failure from None
            if time.monotonic() > until:
                raise failure
            time.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))

    def _write(self, action: Callable[[Ask], T], begin: Sequence[str], db: Connection) -> T:
        import psycopg

        number = ""

        def begun(row: Row) -> None:
            nonlocal number
            number = str(row[0])
            self.reached.now = cast("datetime", row[1])

        self.reached.begin(None)
        statements = Statements(db, begin, begun)
        try:
            found = action(statements)
        except BaseException as error:
            self._undo(db, error)
            raise
        try:
            statements.commit()
        except psycopg.Error as error:
            if not self._is_cut(db, error):
                self._undo(db, error)
                raise
            self._drop()
            if not number or not self._was_committed(number):
                raise Lost from None
        self.reached.settle()
        return found

    def _read(self, action: Callable[[Ask], T], db: Connection) -> T:
        self.reached.begin(None)
        try:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = action(asking(db))
            db.execute("COMMIT")
        except BaseException as error:
            self._undo(db, error)
            raise
        return found

    def _apart(self, action: Callable[[Ask], T], db: Connection) -> T:
        import psycopg

        try:
            return action(asking(db))
        except psycopg.Error as error:
            if self._is_cut(db, error):
                raise Lost from None
            raise

    def _call(self, query: str, values: tuple[object, ...], db: Connection) -> Row | None:
        import psycopg

        try:
            return db.execute(marked(query), values).fetchone()
        except psycopg.Error as error:
            if self._is_cut(db, error):
                self._drop()
                raise Unclear from None
            if is_refused(error):
                return None
            raise

    def _undo(self, db: Connection, error: BaseException) -> None:
        """Roll back; a connection that was cut has nothing to roll back, and may be made again."""
        import psycopg

        if isinstance(error, psycopg.Error) and self._is_cut(db, error):
            raise Lost from None
        try:
            db.rollback()
        except psycopg.Error:
            self._drop()

    @staticmethod
    def _is_cut(db: Connection, error: psycopg.Error) -> bool:
        return db.broken or is_lost(error)

    def _was_committed(self, number: str) -> bool:
        """What became of a transaction whose commit nobody answered."""
        import psycopg

        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                db = self._ready()
                if not self._is_under_way(db, number):
                    return self._stands(db)
            except (psycopg.Error, Lost):
                self._drop()
            time.sleep(LONGEST_PAUSE)
        raise StoreError(
            self.label,
            "the connection was cut while it committed, and nobody knows whether it did",
            "Ask again, under the same key: what was charged is found by it",
        )

    @staticmethod
    def _is_under_way(db: Connection, number: str) -> bool:
        """Whether the server is still at work on a transaction."""
        import psycopg

        try:
            (status,) = _only(db, f"SELECT pg_xact_status('{int(number)}'::xid8)")
        except psycopg.errors.InvalidParameterValue:
            # A server that crashed before it wrote anything of a transaction gives its number away
            # again; until then, it lies in the future.
            return False
        return status == "in progress"

    def _stands(self, db: Connection) -> bool:
        """Whether what the last transaction wrote is there.

        The status of its number would not do: somebody else may have that number by now. What is
        no fact, such as the name of a question, may be written a second time.
        """
        written = self.reached.written
        return bool(written) and written.stand(asking(db))

    # --- the connection ---------------------------------------------------------------------------

    def _ready(self) -> Connection:
        if self._connection is None:
            db = self._connect()
            try:
                self._require_same_ledger(db)
            except BaseException:
                db.close()
                raise
            self._connection = db
            self._was_reached = True
        return self._connection

    def _connect(self) -> Connection:
        """A connection to a server that is safe."""
        psycopg = driver()
        db = self._reach()
        try:
            db.execute(plain(f"{SETTINGS}; SET lock_timeout = '{PATIENCE:.0f}s'"))
            facts = _only(db, FACTS)
            db.execute(quoted("SET search_path = {}", self.schema))
            if facts[3] in WEAK:
                db.execute("SET synchronous_commit = on")
            self._require_safe(facts)
        except psycopg.Error as error:
            cut = self._is_cut(db, error)
            db.close()
            if cut:
                raise Lost from None
            raise
        except BaseException:
            db.close()
            raise
        return db

    def _reach(self) -> Connection:
        """A connection; wait for a server that was there before, or that is starting up."""
        psycopg = driver()
        asked = CONNECTING | psycopg.conninfo.conninfo_to_dict(self._address)
        try:
            db: Connection = psycopg.connect(**asked, autocommit=True)
        except psycopg.Error:
            # The reason comes without a code, and its text may hold what is secret.
            ping = psycopg.pq.PGconn.ping(psycopg.conninfo.make_conninfo(**asked).encode())
            if self._was_reached or ping == psycopg.pq.Ping.REJECT:
                raise Lost from None
            turned_away = ping == psycopg.pq.Ping.OK
            raise StoreError(self.label, *(TURNED_AWAY if turned_away else UNREACHABLE)) from None
        return db

    def _require_same_ledger(self, db: Connection) -> None:
        """Refuse a server that lacks what this process saw committed on it."""
        import psycopg

        try:
            stands = self.reached.known.stand(asking(db))
        except psycopg.errors.UndefinedTable:
            stands = False
        except psycopg.Error as error:
            if self._is_cut(db, error):
                raise Lost from None
            raise
        if not stands:
            raise LedgerError(self.label, BEHIND, RESTORE)

    def _require_safe(self, facts: Row) -> None:
        """Refuse a server that may lose what it committed, or that only follows another."""
        fsync, full_pages, encoding, _, follows = facts
        if fsync != "on" or full_pages != "on":
            obstacle = "the server may lose charges that it confirmed: fsync is off"
            raise LedgerError(self.label, obstacle, "Set fsync and full_page_writes to on")
        if encoding != "UTF8":
            obstacle = "the database does not keep texts in UTF-8"
            raise LedgerError(self.label, obstacle, "Create it with ENCODING 'UTF8'")
        if follows:
            obstacle = "the server is a copy that follows another, and may lag behind it"
            raise LedgerError(self.label, obstacle, "Give the address of the first server")

    def _prepare(self, db: Connection, *, create: bool) -> None:
        """Check what the schema is before anything in it is touched, and make a missing one."""
        import psycopg

        try:
            version = self._version(db)
            if version is None:
                self._require_makeable(db, create=create)
                self._make(db)
        except psycopg.Error as error:
            # To look again is harmless: what was made in the meantime is found.
            if self._is_cut(db, error):
                raise Lost from None
            raise
        except BaseException:
            self._drop()
            raise

    def _require_makeable(self, db: Connection, *, create: bool) -> None:
        """Refuse to make a ledger that nobody asked for, or that this role may not make."""
        remedy = "Check the address; the custodian makes a ledger there by `sfumato ledger init`"
        obstacle = "there is no ledger in this database"
        (may,) = _only(db, "SELECT has_database_privilege(current_database(), 'create')")
        if not create:
            raise LedgerError(self.label, obstacle, remedy)
        if not may:
            raise LedgerError(self.label, f"{obstacle}, and this role may not make one", remedy)

    def _version(self, db: Connection) -> int | None:
        """The version of the schema's tables; None where there is no schema."""
        query = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s"
        found = db.execute(query, (self.schema,)).fetchall()
        if not found:
            return None
        comment = str(found[0][0] or "")
        _, is_ours, version = comment.rpartition(f"{self.kind.mark} ")
        if not is_ours or not version.isdecimal():
            obstacle = f"the database has a schema {self.schema!r} that is no ledger"
            raise LedgerError(self.label, obstacle, "Name another database")
        known = self.kind.version
        if int(version) != known:
            obstacle = f"it has version {version}, and this library knows {known}"
            remedy = "Use the newer library that wrote it"
            if int(version) < known:
                remedy = (
                    "With the library that wrote it, move it to a file "
                    "(`sfumato ledger migrate`); move that to an empty database with this one"
                )
            raise LedgerError(self.label, obstacle, remedy)
        return known

    def _make(self, db: Connection) -> None:
        """Write the tables and rules, once, however many processes try."""
        with db.transaction():
            # One at a time: the name of the lock is that of the schema.
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.schema,))
            if self._version(db) is not None:
                return
            db.execute(quoted("CREATE SCHEMA {}", self.schema))
            db.execute(plain(script(self.kind)))
            mark = f"{self.kind.mark} {self.kind.version}"
            db.execute(quoted(f"COMMENT ON SCHEMA {{}} IS '{mark}'", self.schema))

    def exists(self, suffix: str) -> bool:
        """Whether the schema of another part of the ledger is there, for this user to look into."""
        name = f"{self.schema}{suffix}"
        query = (
            "SELECT 1 FROM pg_namespace WHERE nspname = ? AND has_schema_privilege(oid, 'usage')"
        )
        return bool(self.reading(lambda ask: list(ask(query, (name,)))))

    def _drop(self) -> None:
        """Forget a connection after an error, so that the next use opens a new one."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        with self._turns.lock:
            self._turns.closed = True
            self._drop()

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.close()


def _only(db: Connection, query: str) -> Row:
    """The only row of a query."""
    found = db.execute(plain(query)).fetchone()
    assert found is not None
    return found
