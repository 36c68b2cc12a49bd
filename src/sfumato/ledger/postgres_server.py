"""A schema of a ledger on a server: one connection, shared by threads, never by processes.

In the order of the code:

*What a process saw committed on a server* (``Reached``), so that it notices a server that has
forgotten it. A server may be replaced while a process uses it: by a copy that lagged behind, or by
its own files of yesterday. Charges that were confirmed may be missing then, and would be spent a
second time.

*What the two schemas of a ledger hold*: their tables and rules, and how to check them.

*What errors of PostgreSQL mean to the caller.* Its own messages quote rows, so they go nowhere.

*Addresses of servers*, and the driver that reads them.

*Sending the statements of a transaction*, as few times as possible. A statement that finds nothing,
such as an insert, waits until the next one that does, or until the transaction is committed; they
are then sent together. Each time that is sent costs a round trip while others wait for their turn.
If one fails, those after it are not carried out.

*The connection* (``Database``). A transaction that writes takes its turn before it looks at
anything: a lock on one table, by which transactions that write run one after another, and two
charges cannot both see the same balance. It is told its number at once. Where the connection is cut
while it commits, the server is asked by that number whether it is done, and then for what it wrote:
this stands, or it is run again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from importlib import resources
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, cast

from sfumato.basics import Deferred, renewed_in_children, require_clear
from sfumato.errors import LedgerError, UsageError
from sfumato.ledger.sql import Ask, Row
from sfumato.ledger.sqlite_file import Turns
from sfumato.ledger.store import REFUSED, REPORT, StoreError, T

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import QueryNoTemplate

    Connection: TypeAlias = psycopg.Connection[Row]
else:
    psycopg = Deferred("psycopg")


# --- what a process saw committed -----------------------------------------------------------------

# The number of an entry or a step, and its hash.
Fact: TypeAlias = tuple[int, str]

ENTRY = "SELECT hash FROM entries WHERE sequence = ?"
STEP = "SELECT hash FROM steps WHERE stream = ? AND step = ?"
VALUE = "SELECT value FROM about WHERE name = ?"


@dataclass
class Facts:
    """Some of what a transaction wrote, by which it is known again.

    Attributes
    ----------
    entry : tuple of int and str, or None
        The last entry: its number and hash.
    steps : dict
        The last step of each stream: its number and hash.
    values : dict
        Secret values, by their names.
    """

    entry: Fact | None = None
    steps: dict[int, Fact] = field(default_factory=dict)
    values: dict[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.entry or self.steps or self.values)

    def stand(self, ask: Ask) -> bool:
        """Whether the part of a ledger that is asked has all of them."""
        marks: list[tuple[str, tuple[object, ...], str | bytes]] = []
        if self.entry is not None:
            number, digest = self.entry
            marks.append((ENTRY, (number,), digest))
        for stream, (number, digest) in self.steps.items():
            marks.append((STEP, (stream, number), digest))
        marks += [(VALUE, (name,), value) for name, value in self.values.items()]
        return all(list(ask(query, values)) == [(expected,)] for query, values, expected in marks)


class Reached:
    """How far one part of a ledger had come when this process last wrote to it.

    Attributes
    ----------
    known : Facts
        What is committed.
    written : Facts
        What the open transaction has written.
    now : datetime or None
        The server's time when the open transaction got its turn; None unless it writes.
    """

    def __init__(self) -> None:
        self.known = Facts()
        self.written = Facts()
        self.now: datetime | None = None

    def begin(self) -> None:
        """Begin a transaction."""
        self.written = Facts()
        self.now = None

    def settle(self) -> None:
        """The transaction is committed."""
        self.known.entry = self.written.entry or self.known.entry
        self.known.steps |= self.written.steps


# --- what the schemas hold ------------------------------------------------------------------------


@dataclass(frozen=True)
class SchemaKind:
    """One kind of schema.

    Attributes
    ----------
    mark : str
        The comment that says what the schema is; its version follows.
    version : int
    scripts : tuple of str
        The SQL that makes an empty schema one of this kind.
    noun : str
        What messages call it.
    suffix : str
        What its name adds to the name of the ledger's schema.
    later : dict
        The SQL that makes a schema of an older version one of this version.
    """

    mark: str
    version: int
    scripts: tuple[str, ...]
    noun: str
    suffix: str
    later: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False)


# What is run at the end of what makes a schema, whatever the kind.
LAST = "only_owner.sql"
BOOK = SchemaKind(
    "sfumato ledger, version",
    6,
    ("book.sql", "curves.sql", "rules.sql", "guard.sql", LAST),
    "the ledger",
    "",
    {5: ("curves.sql", "rules.sql", "calls_begin.sql", "guard.sql", "calls_end.sql")},
)
SECRETS = SchemaKind(
    "sfumato secrets, version",
    3,
    ("secrets.sql", "seeds.sql", LAST),
    "the secrets of the ledger",
    "_secrets",
    {2: ("seeds.sql", LAST)},
)

# One line for each table, column, constraint, index, trigger and function of the schema in use, and
# for each right of a role that no command of this library gives.
OBJECTS = """
    SELECT format('table %s %s rules %s policies %s', c.relname, c.relkind, c.relhasrules,
                  c.relrowsecurity)
    FROM pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind NOT IN ('i', 'S')
    UNION ALL
    SELECT format('column %s.%s %s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                  CASE WHEN a.attnotnull THEN ' not null' ELSE '' END)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
      AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s %s', r.conrelid::regclass, pg_get_constraintdef(r.oid))
    FROM pg_constraint r
    WHERE r.connamespace = current_schema()::regnamespace AND r.contype IN ('c', 'p', 'f', 'u')
    UNION ALL
    SELECT format('index %s', pg_get_indexdef(i.indexrelid, 0, true))
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisprimary
    UNION ALL
    SELECT format('trigger %s %s', t.tgenabled, pg_get_triggerdef(t.oid, true))
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT format('function %s %s guarded %s owned %s', p.oid::regprocedure, md5(p.prosrc),
                  p.prosecdef AND p.proconfig = ARRAY[format('search_path=%s, %s, pg_temp',
                    quote_ident(current_schema() || '_secrets'), quote_ident(current_schema()))],
                  p.proowner = n.nspowner)
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = current_schema()
    UNION ALL
    SELECT format('right to %s %s given to %s', lower(x.privilege_type), of.what,
                  coalesce(r.rolname, 'everybody'))
    FROM (
      SELECT c.relname, c.relowner, c.relacl, 'SELECT'
      FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind <> 'i'
      UNION ALL
      SELECT c.relname, c.relowner, a.attacl, 'SELECT'
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      WHERE c.relnamespace = current_schema()::regnamespace AND a.attacl IS NOT NULL
      UNION ALL
      SELECT p.proname, p.proowner, p.proacl, 'EXECUTE'
      FROM pg_proc p WHERE p.pronamespace = current_schema()::regnamespace
      UNION ALL
      SELECT 'schema', n.nspowner, n.nspacl, 'USAGE'
      FROM pg_namespace n WHERE n.nspname = current_schema()
    ) AS of (what, owner, rights, usual), aclexplode(of.rights) x
    LEFT JOIN pg_roles r ON r.oid = x.grantee
    WHERE x.grantee <> of.owner
      AND (x.privilege_type <> of.usual OR x.grantee = 0 OR x.is_grantable
           OR right(current_schema(), 8) = '_secrets')
"""


TABLES = resources.files("sfumato.ledger") / "tables" / "postgres"


@cache
def script(kind: SchemaKind, version: int = 0) -> str:
    """The statements that make an empty schema, or one of an older version, one of a kind."""
    names = kind.later[version] if version else kind.scripts
    return "\n".join(TABLES.joinpath(name).read_text(encoding="utf-8") for name in names)


@cache
def expected_objects(kind: SchemaKind) -> frozenset[str]:
    """The lines of ``OBJECTS`` for a schema that nobody has touched."""
    name = kind.scripts[0].replace(".sql", ".objects")
    return frozenset(TABLES.joinpath(name).read_text(encoding="utf-8").splitlines())


def objects(ask: Ask) -> frozenset[str]:
    """The lines of ``OBJECTS`` for the schema in use."""
    (schema,) = next(iter(ask("SELECT quote_ident(current_schema())", ())))
    return frozenset(str(line).replace(f"{schema}.", "") for (line,) in ask(OBJECTS, ()))


def differences(ask: Ask, kind: SchemaKind) -> list[str]:
    """Tables, constraints, triggers and functions that are not what this version creates."""
    changed = expected_objects(kind) ^ objects(ask)
    return [
        f"{name!r} was dropped, replaced or added to the ledger's tables and rules"
        for name in sorted({" ".join(line.split()[:3]) for line in changed})
    ]


# --- errors ---------------------------------------------------------------------------------------

NO_SPENDER = "SFM01"  # the codes of guard.sql
MOVED = "SFM02"

# What a class of SQLSTATE codes, or one code, means to the caller: the obstacle and the remedy.
MEANING: dict[str, tuple[str, str]] = {
    "08": ("the connection to the server was lost", "Ask again, under the same key"),
    "22": ("a text in it cannot be stored", "Leave out characters that are not printed"),
    "23": (REFUSED, REPORT),
    "25006": ("the server takes no changes: it is a copy", "Give the address of the first server"),
    "28": ("the server does not let this user in", "Check the user's name and password"),
    "3D": ("the server has no such database", "Check the name of the database"),
    NO_SPENDER: (
        "this role is no spender of the account",
        "Ask the custodian of the ledger to run `sfumato ledger spender add`",
    ),
    MOVED: ("the ledger was moved to another place", "Ask its custodian for the new address"),
    "42501": ("this user may not do that", "Ask the owner of the ledger for access"),
    "53300": ("the server has no connection to spare", "Ask again, or raise its max_connections"),
    "53": ("the server has no room left", "Free some space on it, then ask again"),
    "54000": (
        "a name or key in it is too long for the indexes of the server",
        "Choose names and keys of at most 1,000 bytes",
    ),
    "55P03": (
        "others kept it busy",
        "Ask again; if it stays so, look for a process that is stopped",
    ),
    "57014": ("somebody cancelled it on the server", "Ask again, under the same key"),
    "57": ("the server is going down", "Ask again, under the same key, once it is up"),
}
UNREACHABLE = ("the server cannot be reached", "Check its address, and that it is up")
TURNED_AWAY = (
    "the server is up, and refused the connection",
    "Check the names of user and database, the password, the right to connect, and how many "
    "connections it allows",
)
UNKNOWN = ("the server refused", "Read the server's log")

# Codes of a connection that is gone.
LOST = ("08", "57P")


def meaning_of(error: psycopg.Error) -> tuple[str, str]:
    """The obstacle, with the server's code for it, and the remedy."""
    code = error.sqlstate
    if code is None:
        return UNREACHABLE if is_lost(error) else UNKNOWN
    meaning = MEANING.get(code) or MEANING.get(code[:2]) or UNKNOWN
    return f"{meaning[0]} (SQLSTATE {code})", meaning[1]


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone. No code comes with one that was cut."""
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(LOST)


# --- addresses ------------------------------------------------------------------------------------


def public_address(address: str) -> str:
    """An address without what opens it: neither user, nor password, nor parameters.

    Raises
    ------
    UsageError
        If it is none, or it is not clear where its password ends.
    """
    require_clear(address, "the address of a ledger")
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        raise UsageError(
            "the address of a ledger",
            "it is no address of a PostgreSQL database",
            'Write it as in "postgresql://user@host/database"',
        ) from None
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or ''}"


def driver() -> ModuleType:
    """The driver, which the core does not need."""
    try:
        import psycopg
    except ImportError:
        raise UsageError(
            "a ledger in PostgreSQL",
            "psycopg is not installed",
            "Run: pip install 'sfumato[postgres]'",
        ) from None
    return psycopg


# --- statements -----------------------------------------------------------------------------------


class Statements:
    """The statements of one transaction of a connection; an `Ask`.

    Parameters
    ----------
    db : psycopg.Connection
    opening : sequence of str
        What begins the transaction, sent with its first statement that finds something.
    begun : callable or None
        Given the row that the last statement of the opening finds.
    """

    def __init__(
        self,
        db: Connection,
        opening: Sequence[str] = (),
        begun: Callable[[Row], None] | None = None,
    ) -> None:
        self._db = db
        self._opening = opening
        self._begun = begun
        self._waiting: list[tuple[QueryNoTemplate, tuple[object, ...]]] = []
        self._foreseen: list[tuple[str, tuple[object, ...], list[Row]]] = []

    def __call__(self, query: str, values: tuple[object, ...]) -> Iterable[Row]:
        """Run a statement with the values of its question marks: the rows that it finds."""
        if query.lstrip().startswith("SELECT"):
            for known, of, rows in self._foreseen:
                if known == query and of == values:
                    return rows
            (cursor,) = self._send([(marked(query), values)])
            return cursor.fetchall()
        self._forget(query)
        self._waiting.append((marked(query), values))
        return ()

    def foresee(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Ask together what will be asked one by one, unless it is written to before.

        Nobody else writes meanwhile: the transaction has its turn.
        """
        cursors = self._send([(marked(query), values) for query, values in statements])
        self._foreseen += [
            (query, values, cursor.fetchall())
            for (query, values), cursor in zip(statements, cursors, strict=True)
        ]

    def _forget(self, query: str) -> None:
        """Drop what was foreseen of a table that is written to; in doubt, everything."""
        words = query.split(maxsplit=3)
        table = words[2] if len(words) > 2 else ""
        # Every text holds "": of a statement that names no table, all is dropped.
        # The next word is the only table that these change of those looked at.
        if words[:2] not in (["INSERT", "INTO"], ["DELETE", "FROM"]):
            self._foreseen = []
        self._foreseen = [foreseen for foreseen in self._foreseen if table not in foreseen[0]]

    def commit(self) -> None:
        """Carry out what waits, and commit."""
        if self._opening:
            # Its row is needed before the commit: it tells how to ask what became of that.
            self._send([])
        self._send([("COMMIT", ())])

    def _send(
        self, queries: Sequence[tuple[QueryNoTemplate, tuple[object, ...]]]
    ) -> list[psycopg.Cursor[Row]]:
        """Send the opening, what waits and some queries: the cursors of these."""
        opening = self._opening
        waiting = self._waiting
        # Taken off before they are sent: after an error the transaction is undone, and nothing of
        # it may be sent once more.
        self._opening = ()
        self._waiting = []
        first = [(plain(query), ()) for query in opening]
        everything = [*first, *waiting, *queries]
        if len(everything) == 1:
            return [self._db.execute(*everything[0])]
        with self._db.pipeline():
            cursors = [self._db.execute(*query) for query in everything]
        if opening and self._begun is not None:
            (row,) = cursors[len(opening) - 1].fetchall()
            self._begun(row)
        return cursors[len(first) + len(waiting) :]


def noted(statements: list[tuple[str, tuple[object, ...]]]) -> Ask:
    """Notes each statement, and finds nothing."""

    def ask(query: str, values: tuple[object, ...]) -> Iterable[Row]:
        statements.append((query, values))
        return ()

    return ask


def marked(query: str) -> QueryNoTemplate:
    """A query that this library wrote, with its question marks as the driver wants them."""
    return query.replace("%", "%%").replace("?", "%s").encode()


def asking(db: Connection) -> Ask:
    """Runs each statement at once."""

    def ask(query: str, values: tuple[object, ...]) -> Iterable[Row]:
        cursor = db.execute(marked(query), values)
        return cursor.fetchall() if cursor.description else ()

    return ask


def plain(query: str) -> QueryNoTemplate:
    """A query that this library wrote: no text of a user is part of it."""
    return query.encode()


def quoted(query: str, name: str) -> QueryNoTemplate:
    """A query with the name of a schema in it."""
    return plain(query.format(identifier(name)))


def identifier(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


# --- the connection -------------------------------------------------------------------------------


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
FACTS = """
    SELECT current_setting('fsync'), current_setting('full_page_writes'),
           current_setting('server_encoding'), current_setting('synchronous_commit'),
           pg_is_in_recovery()
"""


# Connections of a parent process. Closing one here would end it there.
_ABANDONED: list[object] = []


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

    Attributes
    ----------
    was_older : bool
        Whether it was of an earlier version, and is one of this version now.
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
        self.was_older = False
        self._connection: Connection | None = None
        self._was_reached = was_reached
        self._turns = Turns(self.label)
        renewed_in_children(self, Database._renew)
        self._turns.alone(self._until_settled, partial(self._prepare, create=create))

    def _renew(self) -> None:
        """Begin with a new lock and no connection, as a child process must."""
        if self._connection is not None:
            _ABANDONED.append(self._connection)
            self._connection = None
        self._turns.renew()

    # --- transactions -----------------------------------------------------------------------------

    def atomic(self, action: Callable[[Ask], T]) -> T:
        """Run one transaction that writes: durable when this returns, undone if it raises."""
        return self._turns.alone(self._until_settled, partial(self._write, action))

    def reading(self, action: Callable[[Ask], T]) -> T:
        """Look at one consistent view."""
        return self._turns.alone(self._until_settled, partial(self._read, action))

    def apart(self, action: Callable[[Ask], T]) -> T:
        """Run statements, each a transaction of its own; they may be run again."""
        return self._turns.alone(self._until_settled, partial(self._apart, action))

    def run(self, statements: Sequence[str]) -> None:
        """Run statements without values, which may hold any sign, in one transaction."""

        def run(db: Connection) -> None:
            with db.transaction():
                for statement in statements:
                    db.execute(plain(statement))

        self._turns.alone(self._until_settled, run)

    def _until_settled(self, action: Callable[[Connection], T]) -> T:
        """Try until no other transaction gets in the way, and the connection holds."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return action(self._ready())
            except Lost:
                self._drop()
                failure = StoreError(
                    self.label,
                    "the connection to the server was cut, again and again",
                    "Ask again, under the same key, once the server is up",
                )
            except psycopg.Error as error:
                failure = StoreError(self.label, *meaning_of(error))
                # With these codes, another transaction got in the way: it may be tried again.
                if error.sqlstate not in ("40001", "40P01"):
                    self._drop()
                    raise failure from None
            if time.monotonic() > until:
                raise failure
            time.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))

    def _write(self, action: Callable[[Ask], T], db: Connection) -> T:
        number = ""

        def begun(row: Row) -> None:
            nonlocal number
            number = str(row[0])
            self.reached.now = cast("datetime", row[1])

        self.reached.begin()
        statements = Statements(db, BEGIN, begun)
        try:
            outcome = action(statements)
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
        except BaseException:
            # Interrupted before the server was told: it would keep the locks of this transaction.
            self._drop()
            raise
        self.reached.settle()
        return outcome

    def _read(self, action: Callable[[Ask], T], db: Connection) -> T:
        self.reached.begin()
        try:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            outcome = action(asking(db))
            db.execute("COMMIT")
        except BaseException as error:
            self._undo(db, error)
            raise
        return outcome

    def _apart(self, action: Callable[[Ask], T], db: Connection) -> T:
        try:
            return action(asking(db))
        except psycopg.Error as error:
            if self._is_cut(db, error):
                raise Lost from None
            raise

    def _undo(self, db: Connection, error: BaseException) -> None:
        """Roll back; a connection that was cut has nothing to roll back, and may be made again."""
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
            # Under these settings a charge that was told of may be lost.
            if facts[3] in ("off", "local"):
                db.execute("SET synchronous_commit = on")
            self._require_safe(facts)
        except BaseException as error:
            cut = isinstance(error, psycopg.Error) and self._is_cut(db, error)
            db.close()
            if cut:
                raise Lost from None
            raise
        return db

    def _reach(self) -> Connection:
        """A connection; wait for a server that was there before, or that is starting up."""
        psycopg = driver()
        options = CONNECTING | psycopg.conninfo.conninfo_to_dict(self._address)
        try:
            db: Connection = psycopg.connect(**options, autocommit=True)
        except psycopg.Error:
            # The reason comes without a code, and its text may hold what is secret.
            ping = psycopg.pq.PGconn.ping(psycopg.conninfo.make_conninfo(**options).encode())
            if self._was_reached or ping == psycopg.pq.Ping.REJECT:
                raise Lost from None
            turned_away = ping == psycopg.pq.Ping.OK
            raise StoreError(self.label, *(TURNED_AWAY if turned_away else UNREACHABLE)) from None
        return db

    def _require_same_ledger(self, db: Connection) -> None:
        """Refuse a server that lacks what this process saw committed on it."""
        try:
            stands = self.reached.known.stand(asking(db))
        except psycopg.errors.UndefinedTable:
            stands = False
        except psycopg.Error as error:
            if self._is_cut(db, error):
                raise Lost from None
            raise
        if not stands:
            raise LedgerError(
                self.label,
                "it lacks what this process saw in it: an older copy was put back, or a copy that "
                "lagged",
                "Restore the latest copy, with its secrets, before anybody publishes",
            )

    def _require_safe(self, facts: Row) -> None:
        """Refuse a server that may lose what it committed, or that only follows another."""
        fsync, full_pages, encoding, _, follows = facts
        if fsync != "on" or full_pages != "on":
            raise LedgerError(
                self.label,
                "the server may lose charges that it confirmed: fsync is off",
                "Set fsync and full_page_writes to on",
            )
        if encoding != "UTF8":
            raise LedgerError(
                self.label,
                "the database does not keep texts in UTF-8",
                "Create it with ENCODING 'UTF8'",
            )
        if follows:
            raise LedgerError(
                self.label,
                "the server is a copy that follows another, and may lag behind it",
                "Give the address of the first server",
            )

    def _prepare(self, db: Connection, *, create: bool) -> None:
        """Check what the schema is before anything in it is touched, and make a missing one."""
        try:
            version = self._version(db)
            if version is None:
                self._require_creatable(db, create=create)
            elif version != self.kind.version:
                query = "SELECT pg_has_role(nspowner, 'usage') FROM pg_namespace WHERE nspname = %s"
                if db.execute(query, (self.schema,)).fetchone() != (True,):
                    raise LedgerError(
                        self.label,
                        "an earlier version of Sfumato made it",
                        "Ask its custodian to open it once with this version: "
                        "`sfumato ledger verify`",
                    )
            if version != self.kind.version:
                self._make(db)
                self.was_older = version is not None
        except psycopg.Error as error:
            # To look again is harmless: what was made in the meantime is found.
            if self._is_cut(db, error):
                raise Lost from None
            raise
        except BaseException:
            self._drop()
            raise

    def _require_creatable(self, db: Connection, *, create: bool) -> None:
        """Refuse a database without a ledger, unless one is to be made there and may be."""
        obstacle = "there is no ledger in this database"
        (may,) = _only(db, "SELECT has_database_privilege(current_database(), 'create')")
        if create and may:
            return
        if create:
            obstacle = f"{obstacle}, and this role may not make one"
        raise LedgerError(
            self.label,
            obstacle,
            "Check the address; the custodian makes a ledger there by `sfumato ledger init`",
        )

    def _version(self, db: Connection) -> int | None:
        """The version of the schema's tables; None where there is no schema."""
        rows = db.execute(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s",
            (self.schema,),
        ).fetchall()
        if not rows:
            return None
        comment = str(rows[0][0] or "")
        _, is_ours, version = comment.rpartition(f"{self.kind.mark} ")
        if not is_ours or not version.isdecimal():
            raise LedgerError(
                self.label,
                f"the database has a schema {self.schema!r} that is no ledger",
                "Name another database",
            )
        known = self.kind.version
        if int(version) != known and int(version) not in self.kind.later:
            obstacle = f"it has version {version}, and this library knows {known}"
            remedy = (
                "With the library that wrote it, move it to a file "
                "(`sfumato ledger migrate`); move that to an empty database with this one"
                if int(version) < known
                else "Use the newer library that wrote it"
            )
            raise LedgerError(self.label, obstacle, remedy)
        return int(version)

    def _make(self, db: Connection) -> None:
        """Write the tables and rules, once, however many processes try."""
        with db.transaction():
            # One at a time: the name of the lock is that of the schema.
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.schema,))
            version = self._version(db)
            if version == self.kind.version:
                return
            if version is None:
                db.execute(quoted("CREATE SCHEMA {}", self.schema))
            db.execute(plain(script(self.kind, version or 0)))
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
    row = db.execute(plain(query)).fetchone()
    assert row is not None
    return row
