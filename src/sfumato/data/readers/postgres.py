"""Read a table on a server of PostgreSQL: its catalogs say what it has, and record batches follow.

*The connection* (``Server``) only looks: short questions, and streams of rows. It holds a read-only
transaction over all scans of a release. It answers one question at a time, so what the catalogs say
is asked before the rows are. What the server does is waited for in a thread of its own. While the
driver waits, Python hears no key press: so the calling thread stays free, and has the server stop
when a key is pressed.

*The table.* Columns are sent in forms that are exact in every type:

* A ``numeric`` is sent as text without zeros at its end, so that equal numbers are one person. On
  an axis it is read as the nearest double, and NaN is missing.
* Texts that are padded or listed (``char(n)``, enumerations) and a ``uuid`` are sent as text.
* Dates and times are sent as they are. The driver counts them from 1970 on and not from 2000, and
  what is beyond 64 bits (32 for dates) begins again in the far past: "infinity", and times from the
  year 294247 on. As a person or part of one that is still one to one. On an axis it is put back
  behind all other times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import pyarrow as pa

from sfumato.basics import pc
from sfumato.data.addresses import Address, quoted, table_at
from sfumato.data.fields import parse, unlisted_number
from sfumato.data.reader import Column, Columns, RowReader, driver_of, ids_name, persons_column
from sfumato.data.schema import ENGINE_TYPE
from sfumato.errors import DataError, SfumatoError

if TYPE_CHECKING:
    from adbc_driver_manager import AdbcConnection, AdbcStatement


# --- the connection -----------------------------------------------------------------------------

T = TypeVar("T")

# How large a batch should be: what is read at a time stays small, whatever the table holds.
_BATCHES = {"adbc.postgresql.batch_size_hint_bytes": str(2**21)}

# What an address says of these comes later, and counts.
_CONNECTING = "connect_timeout=10&fallback_application_name=sfumato"

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
        self._has_failed = False
        self._begin()

    def _begin(self) -> None:
        """Hold no connection, and close none."""
        self._connection: AdbcConnection | None = None
        self._opened = ExitStack()  # what is closed with the connection
        self._streaming = ExitStack()  # what is closed when rows are no longer read
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
            # The transaction ends, whatever has become of the connection.
            if self._has_failed:
                self.close()
            elif self._connection is not None:
                with suppress(DataError):
                    self.answer("ROLLBACK")

    def answer_if_supported(self, query: str) -> pa.Table | None:
        """Ask a question that a server may not support of a table; None where it does not."""
        return self._answered(partial(_unless_unsupported, query=query, is_inside=self._is_inside))

    # --- the connection -------------------------------------------------------------------------

    def _ready(self) -> AdbcConnection:
        if self._process != os.getpid():
            # It is the parent's. The driver closes nothing unless it is told to.
            self._begin()
        if self._is_streaming:
            self.close()  # another question would end the rows early, without a word
        if not self._is_inside and (self._has_failed or self._found is None):
            self.close()  # the table may have been made since
        if self._connection is None and self._is_inside:
            raise DataError(self._name, *_LOST)
        return self._connection or self._connected()

    def _connected(self) -> AdbcConnection:
        # If a step fails, what was opened before it is closed again; only a whole connection is
        # kept.
        with ExitStack() as opened:
            driver = driver_of(
                "a table on a server of PostgreSQL", "adbc-driver-postgresql", extra="postgres"
            )
            database = opened.enter_context(driver.connect(self._address))
            connection: AdbcConnection = _manager().AdbcConnection(database)
            opened.enter_context(connection)
            _all_of(connection, "SET client_encoding = 'UTF8'")
            # Looked up now: ``_SET`` takes the user's search path away, by which the table is
            # found.
            if self._found is None:
                names = _all_of(connection, _FOUND.format(literal(self._asked))).to_pylist()
                self._found = ".".join(map(quoted, names[0].values())) if names else None
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

    def close(self) -> None:
        """Close the connection; a child process leaves that of its parent alone."""
        if self._process == os.getpid():
            for held in (self._streaming, self._opened):
                with suppress(Exception):
                    held.close()
        self._connection = None
        self._is_streaming = False

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
        """Return what is wrong, and what to do; a stream of rows fails without a code."""
        if code is None:
            if self._connection is None:
                return _TURNED_AWAY if _is_up(self._address) else _UNREACHABLE
            return _STOPPED if _has_failed_transaction(self._connection) else _LOST
        known = _MEANING.get(code) or _MEANING.get(code[:2])
        if known is None:
            return "the server refused to read it", f"Look for SQLSTATE {code} in the server's log"
        return f"{known[0]} (SQLSTATE {code})", known[1]


def _waited(action: Callable[[], T], cancel: Callable[[], None]) -> T:
    """Do something in a thread; a key press stops it, and is raised when it has ended."""
    gate = Event()
    is_wanted = Event()

    def act() -> T | None:
        gate.wait()
        return action() if is_wanted.is_set() else None

    future: Future[T | None] | None = None
    with ThreadPoolExecutor(1) as threads:
        try:
            # A key may be pressed before the future is at hand. So nothing is done until it is:
            # what nobody could cancel would be waited for.
            future = threads.submit(act)
            is_wanted.set()
            gate.set()
            return cast("T", future.result())
        except BaseException:
            gate.set()
            while future is not None and not future.done():
                with suppress(Exception):
                    cancel()
                # Then it is told again to stop: it may not have heard the question yet.
                wait([future], timeout=1)
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
    """Ask; None where the server does not support the question, which ends no snapshot."""
    # Without a savepoint, the error would end the transaction, and with it the snapshot.
    if is_inside:
        _all_of(connection, "SAVEPOINT tried")
    try:
        return _all_of(connection, query)
    except _manager().Error as error:
        if error.sqlstate != "0A000":  # feature_not_supported
            raise
    if is_inside:
        _all_of(connection, "ROLLBACK TO tried")
    return None


def _has_failed_transaction(connection: AdbcConnection) -> bool:
    """Tell whether the server is there, and waits for the end of a transaction that failed."""
    try:
        _all_of(connection, "SELECT 1")
    except _manager().Error as error:
        return bool(error.sqlstate == "25P02")  # in_failed_sql_transaction
    return False


def _is_up(address: str) -> bool:
    """Tell whether the server answers: why it lets nobody in comes without a code."""
    try:
        from psycopg.pq import PGconn, Ping
    except ImportError:
        return False
    return PGconn.ping(address.encode()) == Ping.OK


def literal(text: str) -> str:
    """Return a text, as queries have it, whatever the server's setting of backslashes."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"


def _manager() -> ModuleType:
    import adbc_driver_manager

    return adbc_driver_manager


# --- the table ----------------------------------------------------------------------------------

_SAME_ROWS_ELSEWHERE = (
    "What the table of PostgreSQL takes from foreign tables and functions was the same in all"
    " queries of this release: nobody wrote to it meanwhile."
)

# --- types --------------------------------------------------------------------------------------

# The types of PostgreSQL, by their numbers, which never change.
_AS_THEY_ARE: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    19: pa.string(),  # name
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1043: pa.string(),  # varchar
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
}

_AS_TEXT = (18, 1042, 2950)  # "char", char(n), uuid
_NUMERIC = 1700
# Stands for a numeric that is not read.
_ANY_NUMERIC = pa.decimal256(76, 38)

# The days, and the microseconds, from 1970-01-01 to 2000-01-01.
_SHIFT = {pa.int32(): 10_957, pa.int64(): 10_957 * 86_400 * 10**6}

# The columns, also those that this user may not read. Of a domain, the type that it is over.
_COLUMNS = """
    WITH RECURSIVE listed AS (
        SELECT attnum, attname::text AS name, atttypid AS type FROM pg_attribute
        WHERE attrelid = {}::regclass AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT attnum, name, typbasetype FROM listed JOIN pg_type ON oid = type
        WHERE typtype = 'd'
    )
    SELECT name, type::int8 AS number, typtype = 'e' OR typcategory = 'S' AS is_text,
        format_type(type, NULL) AS called
    FROM listed JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY attnum
"""


class _Field(NamedTuple):
    """A column of the table: its name, and what the catalogs say of its type."""

    name: str
    number: int
    is_text: bool
    called: str

    @property
    def sent(self) -> str:
        name = quoted(self.name)
        if self.number == _NUMERIC:
            return f"trim_scale(nullif({name}, 'NaN'))::text"
        return name if self.number in _AS_THEY_ARE else f"{name}::text"


def _arrow_field(field: _Field, columns: Columns) -> pa.Field:
    """Return what is handed out; a type that nothing can have is called as the server calls it."""
    if field.number == _NUMERIC:
        return pa.field(field.name, _numeric_type(field.name, columns))
    if field.number in _AS_THEY_ARE:
        return pa.field(field.name, _AS_THEY_ARE[field.number])
    if field.number in _AS_TEXT or field.is_text:
        return pa.field(field.name, pa.string())
    # No axis and no person can have the type that stands for it.
    return pa.field(field.name, pa.list_(pa.null()), metadata={ENGINE_TYPE: field.called})


def _numeric_type(name: str, columns: Columns) -> pa.DataType:
    """Return what a numeric is handed out as; on an axis that is none of numbers, as what it is."""
    column = columns.get(name)
    if column is None:
        return pa.string() if name in columns else _ANY_NUMERIC
    if column.has_keys or "number" not in column.value_kinds:
        return _ANY_NUMERIC
    return pa.int64() if column.has_labels else pa.float64()


def _on_axis(values: pa.Array, column: Column, type_: pa.DataType) -> pa.Array:
    """Return what was sent, as it is read on an axis."""
    if column is not None and (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        # What began again in the far past is put behind all other times; "-infinity" is before
        # them.
        ticks = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
        most = 2 ** (ticks.type.bit_width - 1) - 1
        began_again = pc.less(ticks, pa.scalar(-most - 1 + _SHIFT[ticks.type], ticks.type))
        return pc.if_else(began_again, pa.scalar(most, ticks.type), ticks).view(values.type)
    if column is None or values.type == type_:
        return values
    if not column.has_labels:
        return parse(values.cast(pa.binary()), column)
    # Numbers are read as the whole numbers that are listed; all others become the same one.
    numbers = [label for label in column.listed if isinstance(label, int)]
    unlisted = unlisted_number(frozenset(numbers))
    listed = pa.array(map(str, numbers), pa.string())
    place = pc.index_in(values, listed).fill_null(len(numbers))
    place = pc.if_else(values.is_valid(), place, None)
    return pa.array([*numbers, unlisted], pa.int64()).take(place)


# --- state --------------------------------------------------------------------------------------

# Whether texts can be compared, whether a policy hides rows from this user, and whether rows come
# from foreign tables, or from functions that may give others each time: a snapshot of this server
# holds no state of these. A materialized view has rows of its own.
_FACTS = """
    WITH RECURSIVE seen AS (
        SELECT {table}::regclass::oid AS part
        UNION SELECT below.part FROM seen CROSS JOIN LATERAL (
            SELECT inhrelid AS part FROM pg_inherits WHERE inhparent = seen.part
            UNION ALL
            SELECT refobjid FROM pg_class AS of
            JOIN pg_rewrite AS rule ON rule.ev_class = of.oid AND of.relkind = 'v'
            JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
            WHERE of.oid = seen.part AND refclassid = 'pg_class'::regclass
        ) AS below
    )
    SELECT current_setting('server_encoding') = 'UTF8' AS is_utf8,
        row_security_active({table}::regclass::oid) AS hides_rows,
        coalesce(bool_or(relkind = 'f' OR relkind = 'v' AND EXISTS (
            SELECT FROM pg_rewrite AS rule
            JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
            JOIN pg_proc AS function ON function.oid = refobjid
            WHERE ev_class = part AND refclassid = 'pg_proc'::regclass AND provolatile = 'v'
        )), false) AS reaches_elsewhere
    FROM seen JOIN pg_class ON oid = part
"""

# Of a table of up to so many bytes, what was written to each row is looked at.
READ_IN_FULL = 2**28

# What the catalogs say of a table and of all of its parts.
#
# It says whether its rows lie in tables of this database, and the table's number; whether all rows
# can be looked at (the user may read the columns of the system, and the tables are of the usual
# kind and not large; who reads a table needs no rights on its parts); what the server's statistics
# say was written (a copy of a server has none, so how far it follows the other is said as well);
# and what changes with the table's columns and files.
_STATE = """
    WITH RECURSIVE parts AS (
        SELECT {table}::regclass::oid AS part
        UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = part
    )
    SELECT bool_and(relkind IN ('r', 'p', 'm')) AS is_local, min(part::text) AS number,
        bool_and(relam IN (0, 2)) AND has_table_privilege({table}::regclass, 'SELECT')
            AND sum(pg_relation_size(part)) <= {most} AS is_readable,
        concat_ws(' ',
            sum(pg_stat_get_tuples_inserted(part)), sum(pg_stat_get_tuples_updated(part)),
            sum(pg_stat_get_tuples_deleted(part)), 'of', sum(pg_relation_size(part)), 'bytes',
            CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END
        ) AS written,
        concat_ws(' ',
            'in', string_agg(part || ' ' || relfilenode, ', ' ORDER BY part),
            'columns', sum((
                SELECT sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid = part
            )),
            sum((SELECT sum(xmin::text::bigint) FROM pg_attrdef WHERE adrelid = part))
        ) AS form
    FROM parts JOIN pg_class ON oid = part
"""

_WRITTEN = "SELECT count(*) AS n, sum(xmin::text::bigint)::text AS total FROM "
_SERVER = """
    SELECT system_identifier::text AS server, current_database()::text AS database,
        current_user::text AS reader, pg_current_snapshot()::text AS snapshot
    FROM pg_control_system()
"""


class PostgresTable(RowReader):
    """A table or a view on a server, which shows one state of it to all scans of a release.

    The label of a table that has no name changes with every transaction that may have changed it.
    That of a named one changes with what was written to it; see ``_what_was_written``. A view, and
    a table elsewhere, may show other rows without a trace: each such source is a data set of its
    own, unless it is named.
    """

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PostgresTable | None:
        """Read an address such as ``postgresql://host/database?table=trips``."""
        address = table_at("postgresql", data)
        return None if address is None else cls(address)

    def __init__(self, address: Address) -> None:
        self.name = address.name
        table = ".".join(map(quoted, address.parts))
        self._server = Server(address.url, address.name, table)

    def names(self) -> list[str]:
        """Give the names of the columns; a user may be one who can read some of them only."""
        return [field.name for field in self._fields()]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted, or of all.

        It tries out whether the user may read them, and finds whether rows come from elsewhere.
        """
        (facts,) = self._server.answer(_FACTS.format(table=literal(self._server.table))).to_pylist()
        if not facts["is_utf8"]:
            raise DataError(
                self.name,
                "its database is not encoded in UTF-8, so its texts cannot be compared exactly",
                "Export the table to Parquet, and give that file",
            )
        if facts["hides_rows"]:
            raise DataError(
                self.name,
                "a policy of row-level security hides rows from this user",
                "Count as a user whom no policy concerns (BYPASSRLS), or name a view of the rows"
                " that you mean, whose owner is such a user",
            )
        self.same_rows = _SAME_ROWS_ELSEWHERE if facts["reaches_elsewhere"] else ""
        fields = self._wanted(columns) if columns else self._fields()
        if columns:
            # A query without rows fails where this user may not read one of the columns.
            self._server.answer(f"{self._query(fields)} LIMIT 0")
        return pa.schema([_arrow_field(field, columns) for field in fields])

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted; ids that no axis reads as they are come apart from it."""
        with self.snapshot():
            fields = self._wanted(columns)
            handed_out = [_arrow_field(field, columns) for field in fields]
            for batch in self._server.stream(self._query(fields)):
                arrays = {}
                # Without columns the query sends a constant for each row, which stands for no
                # field.
                for sent, field in zip(batch.columns, handed_out, strict=bool(columns)):
                    column = columns[field.name]
                    arrays[field.name] = _on_axis(sent, column, field.type)
                    if column is not None and field.name == persons_column(columns):
                        arrays[ids_name(field.name)] = sent
                yield pa.record_batch(arrays) if arrays else batch

    def snapshot(self) -> AbstractContextManager[object]:
        return self._server.snapshot()

    def label(self, name: str | None) -> str:
        """Identify the state of the data: by the user's name and what was written, or by all."""
        query = _STATE.format(table=literal(self._server.table), most=READ_IN_FULL)
        (state,) = self._server.answer(query).to_pylist()
        if not state["is_local"]:
            return name or ""
        if name is not None:
            return f"{name} {self._what_was_written(state)}"
        (server,) = self._server.answer(_SERVER).to_pylist()
        return f"table {state['number']} of {tuple(server.values())}"

    def _what_was_written(self, state: Mapping[str, object]) -> str:
        """Return a text that changes with the rows of a table that lies in this database.

        Each row holds the number of the transaction that wrote it, and later transactions have
        higher numbers. So the number of rows and the sum of these numbers change with whatever is
        written, at once. That takes a scan, so of large tables the server's statistics serve: they
        lag up to ten seconds behind a session that has just written something else, and then sits
        idle. They also serve where an extension keeps rows in a form that has no such numbers.
        """
        if state["is_readable"]:
            rows = self._server.answer_if_supported(_WRITTEN + self._server.table)
            if rows is not None:
                n_rows, total = rows.to_pylist()[0].values()
                return f"rows {n_rows} by {total} {state['form']}"
        return f"written {state['written']} {state['form']}"

    # --- queries --------------------------------------------------------------------------------

    def _fields(self) -> list[_Field]:
        listed = self._server.answer(_COLUMNS.format(literal(self._server.table)))
        return [_Field(**row) for row in listed.to_pylist()]

    def _wanted(self, columns: Columns) -> list[_Field]:
        fields = {field.name: field for field in self._fields()}
        if not columns.keys() <= fields.keys():
            raise DataError(self.name, *_MEANING["42703"])
        return [fields[name] for name in columns]

    def _query(self, fields: Sequence[_Field]) -> str:
        listed = ", ".join(field.sent for field in fields)
        return f"SELECT {listed or 'true'} FROM {self._server.table}"
