"""A server of PostgreSQL whose tables are read: connections that only look, in one snapshot.

Two kinds of connections serve one release. The first one holds a read-only transaction over all of
its scans. Where rows are chosen by a secret, another one joins the same snapshot; it brings the
secrets along as settings of its session, in the packet that opens it, so that no statement, no
parameter of one and no plan holds them, and nothing is written, which a copy of a server (a
standby) would refuse.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sfumato.data.engines.dialect import SECRETS
from sfumato.data.engines.postgres import SETTING, Postgres
from sfumato.data.engines.secrets import text_of_secret
from sfumato.errors import DataError, UsageError

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    Connection: TypeAlias = psycopg.Connection[TupleRow]

T = TypeVar("T")

# What an address says of these comes first.
_CONNECTING = {"connect_timeout": "10", "application_name": "sfumato"}

_FOUND = """
    SELECT n.nspname::pg_catalog.text, c.relname::pg_catalog.text
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n
    ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE c.oid OPERATOR(pg_catalog.=) CAST(pg_catalog.to_regclass(%s) AS pg_catalog.oid)
"""

# Functions and operators are those of the server itself. Where others may make some in a schema of
# the search path, theirs would run with the rights of whoever counts, as soon as types fit better.
# A policy that hides rows from the user is refused: it is no part of the question, it may depend on
# other persons' rows, and another user would count others.
_SETTINGS = """
    SET search_path = pg_catalog;
    SET client_encoding = 'UTF8';
    SET DateStyle = ISO;
    SET TimeZone = 'UTC';
    SET extra_float_digits = 1;
    SET row_security = off;
    SET idle_in_transaction_session_timeout = 0
"""
_READ_SECRETS = ", ".join(f"current_setting('{SETTING}.{name}')" for name in SECRETS)
_HELD = f"SELECT {_READ_SECRETS}".encode()
"""The secrets that a connection was given: a pooler might hand out another's connection."""

_KEY_BYTES = 32
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"

_ABANDONED: list[object] = []
"""Connections of a parent process. Closing one here would end it there."""

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
_HIDDEN = (
    "a policy of row-level security hides rows from this user",
    "Count as a user whom no policy concerns (BYPASSRLS), or name a view of the rows that you mean,"
    " whose owner is such a user",
)
_POLICIES = "check_enable_rls"
"""The server's function that refuses to hide rows. The code is that of any missing right."""
_TURNED_AWAY = (
    "the server is up, and refused the connection",
    "Check the names of user and database, the password, the right to connect, and how many "
    "connections it allows",
)
_WITHOUT_SECRETS = (
    "the rows of each person are chosen on a second connection that sees the same snapshot, and"
    " the server opens none",
    "Give the address of the server itself instead of a pooler's, and see that its user may open"
    " two connections and call pg_export_snapshot()",
)


class Server:
    """Connections to one address, made when they are needed, and never shared with a child process.

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
        self._address = address
        self._name = name
        self._asked = table
        self._found: str | None = None
        self._connection: Connection | None = None
        self._process = os.getpid()
        self._is_inside = False
        self._snapshots = 0
        self._with_secrets: tuple[bytes, Connection] | None = None
        self._may_choose = False

    @property
    def snapshot_number(self) -> int | None:
        """Which snapshot is shown; None outside of any."""
        return self._snapshots if self._is_inside else None

    def __getstate__(self) -> tuple[str, str, str]:
        return self._address, self._name, self._asked

    def __setstate__(self, state: tuple[str, str, str]) -> None:
        Server.__init__(self, *state)

    @property
    def table(self) -> str:
        """The table as statements name it: in the schema where the user's search path finds it."""
        if self._found is None:
            self._answered(self._ready)
        return self._found or self._asked

    def looked_at(self, action: Callable[[Connection], T]) -> T:
        """Ask the server something outside of any choice of rows.

        Raises
        ------
        DataError
            If the server cannot be reached, or refuses.
        """
        return self._answered(lambda: action(self._ready()))

    def chosen(self, key: bytes, action: Callable[[Connection], T]) -> T:
        """Ask it something, inside a snapshot, by the secrets that follow from a key."""
        return self._answered(lambda: action(self._knowing(key)))

    def require(self, *, choosing: bool) -> None:
        """Refuse a server that holds no snapshot, or on which no rows can be chosen.

        A pooler in front of a server may refuse settings that a connection brings along, or leave
        them out; some servers export no snapshot. No row is looked at, and the key is another one.

        Parameters
        ----------
        choosing : bool
            Whether rows are to be chosen by secrets. This is tried once for each source.

        Raises
        ------
        DataError
            If the server cannot be reached, or cannot do that.
        """
        with self.snapshot():
            self.looked_at(_nothing)
            if choosing and not self._may_choose:
                with suppress(driver().Error):
                    self._knowing(secrets.token_bytes(_KEY_BYTES))
                    self._may_choose = True
        if choosing and not self._may_choose:
            self.looked_at(_nothing)  # where the server is gone, this says so
            raise DataError(self._name, *_WITHOUT_SECRETS)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show one state of the data within this context. In another snapshot, that one's."""
        if self._is_inside:
            yield
            return
        self.looked_at(lambda connection: connection.execute(_READING))
        self._is_inside = True
        self._snapshots += 1
        try:
            yield
        finally:
            self._is_inside = False
            self._leave()

    # --- connections ----------------------------------------------------------------------------

    def _ready(self) -> Connection:
        if self._process != os.getpid():
            _ABANDONED.extend((self._connection, self._with_secrets))
            self._connection, self._with_secrets, self._is_inside = None, None, False
            self._process = os.getpid()
        if self._found is None and self._connection is not None and not self._is_inside:
            self.close()  # the table may have been made since
        if self._connection is None or (self._connection.closed and not self._is_inside):
            self._connection = self._connect({})
        return self._connection

    def _knowing(self, key: bytes) -> Connection:
        """The connection that knows the secrets of a key, in the snapshot that is held."""
        if self._with_secrets is not None and self._with_secrets[0] == key:
            return self._with_secrets[1]
        self._forget()
        exported = self._ready().execute("SELECT pg_export_snapshot()").fetchone()
        assert exported is not None
        texts: dict[str, str] = {each: text_of_secret(key, each) for each in SECRETS}
        connection = self._connect(texts)
        try:
            connection.execute(_READING)
            connection.execute(f"SET TRANSACTION SNAPSHOT '{exported[0]}'".encode())
            held = connection.execute(_HELD).fetchone()
        except BaseException:
            connection.close()
            raise
        if held != tuple(texts.values()):
            connection.close()
            raise DataError(self._name, *_WITHOUT_SECRETS)
        self._with_secrets = (key, connection)
        return connection

    def _connect(self, settings: dict[str, str]) -> Connection:
        psycopg = driver()
        given = psycopg.conninfo.conninfo_to_dict(self._address)
        options = [str(given.pop("options", "") or "")]
        options += [f"-c {SETTING}.{name}={text}" for name, text in settings.items()]
        arguments = {**_CONNECTING, **given, "options": " ".join(options).strip()}
        connection: Connection = psycopg.connect(autocommit=True, **arguments)
        if self._found is None:
            names = connection.execute(_FOUND.encode(), [self._asked]).fetchone()
            self._found = None if names is None else ".".join(map(Postgres().name, names))
        connection.execute(_SETTINGS.encode())
        return connection

    def _leave(self) -> None:
        """End the transaction, whatever has become of the connection."""
        self._forget()
        if self._connection is not None:
            with suppress(driver().Error):
                self._connection.execute("ROLLBACK")

    def _forget(self) -> None:
        if self._with_secrets is not None and self._process == os.getpid():
            with suppress(Exception):
                self._with_secrets[1].close()
        self._with_secrets = None

    def close(self) -> None:
        """Close the connections; a child process leaves those of its parent alone."""
        self._forget()
        if self._connection is not None and self._process == os.getpid():
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    def __del__(self) -> None:
        with suppress(AttributeError):
            self.close()

    # --- failures -------------------------------------------------------------------------------

    def _answered(self, action: Callable[[], T]) -> T:
        """Do it. An error of the server keeps its code and none of its words."""
        try:
            return action()
        except driver().Error as error:
            obstacle, remedy = _meaning(error)
            is_open = self._connection is not None or error.sqlstate is not None
            if not is_open and isinstance(error, driver().OperationalError) and self._is_up():
                obstacle, remedy = _TURNED_AWAY
        # Raised outside the except block: the context that Python adds there would quote values.
        raise DataError(self._name, obstacle, remedy)

    def _is_up(self) -> bool:
        """Whether the server answers: why it lets nobody in comes without a code."""
        psycopg = driver()
        asked = _CONNECTING | psycopg.conninfo.conninfo_to_dict(self._address)
        found = psycopg.pq.PGconn.ping(psycopg.conninfo.make_conninfo(**asked).encode())
        return bool(found == psycopg.pq.Ping.OK)


def _nothing(connection: Connection) -> None:
    connection.execute("SELECT 1")


def _meaning(error: psycopg.Error) -> tuple[str, str]:
    code = error.sqlstate
    if code is None:
        return _UNREACHABLE
    if error.diag.source_function == _POLICIES:
        return _HIDDEN
    found = _MEANING.get(code) or _MEANING.get(code[:2])
    if found is None:
        return "the server refused to read it", f"Look for SQLSTATE {code} in the server's log"
    return f"{found[0]} (SQLSTATE {code})", found[1]


def driver() -> ModuleType:
    """The package that speaks to servers.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        import psycopg
    except ImportError:
        pass
    else:
        return psycopg
    raise UsageError(
        "a table on a server of PostgreSQL",
        "the package psycopg is not installed",
        'Run pip install "sfumato[postgres]"',
    )
