"""A connection to a server of PostgreSQL that only looks: short questions, and streams of rows.

One connection holds a read-only transaction over all scans of a release. It answers one question at
a time, so what the catalogs say is asked before the rows are.

What the server does is waited for in a thread of its own. While the driver waits, Python hears no
key press: so the calling thread stays free, and has the server stop when a key is pressed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from sfumato.errors import DataError, SfumatoError, UsageError

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcConnection, AdbcDatabase, AdbcStatement

T = TypeVar("T")

BATCH_BYTES = 2**21
"""How large a batch should be: what is read at a time stays small, whatever the table holds."""

_BATCHES = {"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)}

# What an address says of these comes later, and counts.
_CONNECTING = "connect_timeout=10&fallback_application_name=sfumato"
_PAUSE = 1.0
"""Seconds after which the server is told again to stop: it may not have heard the question yet."""

_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_FOUND = """
    SELECT n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n
    ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE c.oid OPERATOR(pg_catalog.=)
        CAST(pg_catalog.to_regclass(CAST({} AS pg_catalog.text)) AS pg_catalog.oid)
"""

# Functions and operators are those of the server itself. Where others may make some in a schema of
# the search path, theirs would run with the rights of whoever counts, as soon as types fit better.
# A policy that hides rows from the user is refused: it is no part of the question, it may depend on
# other persons' rows, and another user would count others.
_SETTINGS = {
    "search_path": "pg_catalog",
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "row_security": "off",
    "idle_in_transaction_session_timeout": "0",
}
_SET = "SELECT " + ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', false)" for name, value in _SETTINGS.items()
)

_MEANING: dict[str, tuple[str, str]] = {
    "08": ("the connection to the server was lost", "Ask again once the server is up"),
    "28": ("the server does not let this user in", "Check the user's name and password"),
    "3D": ("the server has no such database", "Check the name of the database"),
    "3F": ("the database has no such schema", "Check the name of the table"),
    "22": (
        "an expression of a view, or of a generated column, failed",
        "Write it so that it fails for no value",
    ),
    "42809": ("it is neither a table nor a view", "Check the name of the table"),
    "42P01": ("the database has no such table", "Check the name of the table"),
    "42703": ("a column is gone since the table was looked at", "Ask again"),
    "42501": ("this user may not read it", "Ask the owner of the table for access"),
    "55000": (
        "it holds nothing that can be read, as a materialized view that was never refreshed",
        "Have it filled, and ask again",
    ),
    "HV": (
        "the server cannot read the foreign table from where it lies",
        "Check the table's foreign server",
    ),
    "53": ("the server has no room left for the query", "Free some space or memory on it"),
    "57014": ("the server stopped the query", "Look at its statement_timeout"),
    "57": ("the server is going down", "Ask again once it is up"),
}
_UNREACHABLE = ("the server cannot be reached", "Check its address, and that it is up")
_TURNED_AWAY = (
    "the server is up, and refused the connection",
    "Check the names of user and database, the password, the right to connect, and how many "
    "connections it allows. A server that a plan names must speak TLS, and is given a password "
    "only if PGHOST names it too",
)
_STOPPED = (
    "the server stopped while it gave the rows: an expression of a view or of a generated column"
    " failed, or its statement_timeout is over",
    "Look for the reason in the server's log",
)
_LOST = _MEANING["08"]
_UNSUPPORTED = "0A000"
_IN_FAILED_TRANSACTION = "25P02"
COLUMN_GONE = _MEANING["42703"]


class Server:
    """A connection to one address, made when it is needed, and never shared with a child process.

    Parameters
    ----------
    address : str
        A URL of libpq. It may hold a password, so it is in no message.
    name : str
        What messages call the table.
    table : str
        Its name in quotes, perhaps without a schema.
    """

    def __init__(self, address: str, name: str, table: str) -> None:
        place, _, query = address.partition("?")
        self._address = f"{place}?{_CONNECTING}&{query}" if query else f"{place}?{_CONNECTING}"
        self._name = name
        self._asked = table
        self._found: str | None = None
        self._connection: AdbcConnection | None = None
        self._opened = ExitStack()  # what is closed with the connection
        self._streaming = ExitStack()  # what is closed when rows are no longer read
        self._has_failed = False
        self._is_streaming = False
        self._is_inside = False
        self._process = os.getpid()

    @property
    def table(self) -> str:
        """The table as statements name it: in the schema where the user's search path finds it."""
        if self._found is None:
            self._answered(lambda connection: None)
        return self._found or self._asked

    def answer(self, query: str) -> pa.Table:
        """Ask one short question, and give all that comes back.

        Raises
        ------
        DataError
            If the server cannot be reached, or refuses.
        """
        return self._answered(partial(_all_of, query=query))

    def stream(self, query: str) -> Iterator[pa.RecordBatch]:
        """Give the rows of a query batch by batch, in a snapshot."""
        with self.snapshot():
            reader = self._answered(partial(self._streamed, query=query))
            connection = self._connection
            self._is_streaming = True
            try:
                while (batch := self._next(reader, connection)) is not None:
                    yield batch
                self._is_streaming = False
                self._streaming.close()
            finally:
                if self._is_streaming and self._connection is connection:
                    self.close()  # or the server would send the rest of the rows first

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show one state of the data within this context. In another snapshot, that one's."""
        if self._is_inside:
            yield
            return
        self.answer(_READING)
        self._is_inside = True
        try:
            # Again: a pooler in front of the server may have given it to another connection.
            self.answer(_SET)
            yield
        finally:
            self._is_inside = False
            self._leave()

    def answer_if_supported(self, query: str) -> pa.Table | None:
        """Ask a question that a server may not support of a table; None where it does not."""
        return self._answered(partial(_unless_unsupported, query=query, is_inside=self._is_inside))

    # --- the connection -------------------------------------------------------------------------

    def _ready(self) -> AdbcConnection:
        if self._process != os.getpid():
            # It is the parent's. The driver closes nothing unless it is told to.
            self._connection, self._is_inside, self._is_streaming = None, False, False
            self._opened, self._streaming = ExitStack(), ExitStack()
            self._process = os.getpid()
        if self._is_streaming:
            self.close()  # another question would end the rows early, without a word
        if not self._is_inside and (self._has_failed or self._found is None):
            self.close()  # the table may have been made since
        if self._connection is None and self._is_inside:
            raise DataError(self._name, *_LOST)
        return self._connection or self._connected()

    def _connected(self) -> AdbcConnection:
        with ExitStack() as opened:
            database = opened.enter_context(_database(self._address))
            connection: AdbcConnection = _manager().AdbcConnection(database)
            opened.enter_context(connection)
            _all_of(connection, "SET client_encoding = 'UTF8'")
            if self._found is None:
                found = _all_of(connection, _FOUND.format(literal(self._asked))).to_pylist()
                self._found = ".".join(map(quoted, found[0].values())) if found else None
            _all_of(connection, _SET)
            self._opened = opened.pop_all()
        self._connection = connection
        self._has_failed = False
        return connection

    def _streamed(self, connection: AdbcConnection, query: str) -> pa.RecordBatchReader:
        with ExitStack() as opened:
            statement = opened.enter_context(_manager().AdbcStatement(connection))
            reader = opened.enter_context(_reader_of(statement, query, _BATCHES))
            self._streaming = opened.pop_all()
        return reader

    def _next(
        self, reader: pa.RecordBatchReader, connection: AdbcConnection | None
    ) -> pa.RecordBatch | None:
        if self._connection is not connection:
            raise DataError(self._name, *_LOST)
        return self._guarded(lambda: next(reader, None))

    def _leave(self) -> None:
        """End the transaction, whatever has become of the connection."""
        if self._has_failed:
            self.close()
        elif self._connection is not None:
            with suppress(DataError):
                self.answer("ROLLBACK")

    def close(self) -> None:
        """Close the connection; a child process leaves that of its parent alone."""
        if self._process == os.getpid():
            for held in (self._streaming, self._opened):
                with suppress(Exception):
                    held.close()
        self._connection, self._is_streaming = None, False

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.close()

    # --- questions ------------------------------------------------------------------------------

    def _answered(self, action: Callable[[AdbcConnection], T]) -> T:
        return self._guarded(lambda: action(self._ready()))

    def _guarded(self, action: Callable[[], T]) -> T:
        """Do it in a thread. An error of the server keeps its code and none of its words."""
        try:
            return _waited(action, self._cancel)
        except SfumatoError:
            raise
        except (_manager().Error, OSError, pa.ArrowException) as error:
            self._has_failed = True
            code: str | None = getattr(error, "sqlstate", None)
        except BaseException:
            self._has_failed = True
            raise
        # Raised outside the except block: the context that Python adds there would quote values.
        raise DataError(self._name, *self._meaning(code))

    def _cancel(self) -> None:
        if self._connection is not None:
            self._connection.cancel()

    def _meaning(self, code: str | None) -> tuple[str, str]:
        """What is wrong, and what to do; a stream of rows fails without a code."""
        if code is None and self._connection is None:
            return _TURNED_AWAY if _is_up(self._address) else _UNREACHABLE
        if code is None and self._connection is not None:
            return _STOPPED if _has_failed_transaction(self._connection) else _LOST
        known = _MEANING.get(code or "") or _MEANING.get((code or "")[:2])
        if known is None:
            return "the server refused to read it", f"Look for SQLSTATE {code} in the server's log"
        return f"{known[0]} (SQLSTATE {code})", known[1]


def _waited(action: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do something in a thread; a key press stops it, and is raised when it has ended."""
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(action)
        try:
            return future.result()
        except BaseException:
            while not future.done():
                with suppress(Exception):
                    cancel()
                wait([future], _PAUSE)
            raise
        finally:
            del future  # it holds an error, whose frames hold it


def _reader_of(
    statement: AdbcStatement, query: str, options: Mapping[str, str]
) -> pa.RecordBatchReader:
    statement.set_options(**options)
    statement.set_sql_query(query)
    return pa.RecordBatchReader.from_stream(statement.execute_query()[0])


def _all_of(connection: AdbcConnection, query: str) -> pa.Table:
    with _manager().AdbcStatement(connection) as statement:
        return _reader_of(statement, query, {}).read_all()


def _unless_unsupported(connection: AdbcConnection, query: str, is_inside: bool) -> pa.Table | None:
    """The answer; None where the server does not support the question, which ends no snapshot."""
    if is_inside:
        _all_of(connection, "SAVEPOINT tried")
    try:
        return _all_of(connection, query)
    except _manager().Error as error:
        if error.sqlstate != _UNSUPPORTED:
            raise
    if is_inside:
        _all_of(connection, "ROLLBACK TO tried")
    return None


def _has_failed_transaction(connection: AdbcConnection) -> bool:
    """Whether the server is there, and waits for the end of a transaction that failed."""
    try:
        _all_of(connection, "SELECT 1")
    except _manager().Error as error:
        return bool(error.sqlstate == _IN_FAILED_TRANSACTION)
    return False


def _is_up(address: str) -> bool:
    """Whether the server answers: why it lets nobody in comes without a code."""
    try:
        from psycopg.pq import PGconn, Ping
    except ImportError:
        return False
    return PGconn.ping(address.encode()) == Ping.OK


def quoted(name: str) -> str:
    """The name of a table or of a column, as queries have it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text, as queries have it, whatever the server's setting of backslashes."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def _database(address: str) -> AdbcDatabase:
    try:
        import adbc_driver_postgresql
    except ImportError:
        pass
    else:
        database: AdbcDatabase = adbc_driver_postgresql.connect(address)
        return database
    raise UsageError(
        "a table on a server of PostgreSQL",
        "the package adbc-driver-postgresql is not installed",
        'Run pip install "sfumato[postgres]"',
    )


def _manager() -> ModuleType:
    import adbc_driver_manager

    return adbc_driver_manager
