"""A file of a ledger: one SQLite connection, shared by threads, safe across a fork.

In the order of the code:

* What the two kinds of files of a ledger hold: their tables and rules, and how to check them.
* What errors of SQLite mean to the caller.
* One caller at a time (``Turns``): no second thread, and no signal handler within one thread.
* The connection (``Database``). Each commit is synced to a write-ahead log before it returns.
  SQLite's own wait for a busy file sleeps longer each time and leaves some processes without a turn
  for seconds (measured: of 16 writers, one got 1 turn while another got 7,910). So this module
  waits by itself, in short sleeps of random length.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVarTuple
from urllib.parse import quote

import msgspec

from sfumato.errors import LedgerError, missing_file
from sfumato.ledger.store import (
    FORKED,
    IN_USE,
    ONCE_EACH,
    OUTSIDE,
    REFUSED,
    REOPEN,
    REPORT,
    R,
    StoreError,
    T,
)

# --- what the files hold --------------------------------------------------------------------------


class FileKind(msgspec.Struct, frozen=True):
    """One kind of file.

    Attributes
    ----------
    application, version : int
        How the header of the file marks it.
    script : str
        The SQL that makes an empty file one of this kind.
    noun : str
        What messages call it.
    pragmas : tuple of str
        Settings of each connection to it, beside those of every file.
    owner_only : bool
        Whether a file that others than its owner may open is refused.
    later : tuple of str
        SQL that adds to a file what a later use of it needs, each after those before, and makes it
        one of the next version.
    at_once : bool
        Whether each file is made one of the newest version when it is opened.
    """

    application: int
    version: int
    script: str
    noun: str
    pragmas: tuple[str, ...] = ()
    owner_only: bool = False
    later: tuple[str, ...] = ()
    at_once: bool = False

    @property
    def newest(self) -> int:
        """The highest version that such a file may have."""
        return self.version + len(self.later)


BOOK = FileKind(
    0x53666D74,  # "Sfmt"
    4,
    "book.sql",
    "the ledger",
    later=("spenders.sql", "curves.sql"),
)
WITH_SPENDERS = 5

# The versions of a ledger whose tables have spenders, and curves as well.
WITH_CURVES = 6
SECRETS = FileKind(
    0x53666D73,  # "Sfms"
    1,
    "secrets.sql",
    "the secrets of the ledger",
    # What is overwritten or deleted is zeroed in the file, so that a wiped state is gone.
    pragmas=("secure_delete = ON",),
    owner_only=True,
    later=("seeds.sql",),
    at_once=True,
)
OBJECTS = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"


@cache
def script(name: str) -> str:
    """The statements of a script."""
    return (resources.files("sfumato.ledger") / "tables" / "sqlite" / name).read_text("utf-8")


def version_of(db: sqlite3.Connection) -> int:
    """The version of a file's tables; 0 where there are none yet."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def extend(db: sqlite3.Connection, kind: FileKind, version: int) -> None:
    """Make a file one of a later version of its kind, within a transaction."""
    for name in kind.later[version_of(db) - kind.version : version - kind.version]:
        for statement in statements(script(name)):
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {version}")


def statements(script: str) -> Iterator[str]:
    """Cut a script into statements; each ends at the end of a line."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


@cache
def expected_objects(kind: FileKind, version: int) -> Mapping[str, str]:
    """The tables, indexes and triggers of a kind of file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in statements(script(kind.script)):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {kind.version}")
        extend(db, kind, version)
        return dict(db.execute(OBJECTS).fetchall())


def differences(db: sqlite3.Connection, kind: FileKind) -> list[str]:
    """Tables, indexes and triggers that are not what this version creates."""
    expected = expected_objects(kind, version_of(db))
    objects = dict(db.execute(OBJECTS).fetchall())
    known = expected.keys() | objects.keys()
    names = sorted(name for name in known if expected.get(name) != objects.get(name))
    return [
        f"{name!r} was dropped, replaced or added to the ledger's tables and rules"
        for name in names
    ]


def damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    lines = [str(line) for (line,) in db.execute("PRAGMA integrity_check(5)")]
    return [] if lines == ["ok"] else [f"the file is damaged: {line}" for line in lines]


# --- errors ---------------------------------------------------------------------------------------

# What a result code of SQLite means to the caller: the obstacle and the remedy.
MEANING: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "Free some space and ask again; what is written stands, what is not was never charged",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk refused to read or write",
        "Check the disk, its quota and its space, then ask again",
    ),
    sqlite3.SQLITE_READONLY: (
        "the file or its folder is read-only",
        "Make both writable, or use another ledger",
    ),
    sqlite3.SQLITE_PERM: (
        "the file may not be opened by this user",
        "Ask its owner for access, or use another ledger",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "Check that its folder exists and that both may be written",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is not a ledger",
        "Give the path of a ledger, or of a file that does not exist yet",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "Keep a copy, do not publish from it, and restore the latest whole copy",
    ),
    sqlite3.SQLITE_BUSY: (
        "other processes kept it busy",
        "Ask again; if it stays so, look for a process that is stopped",
    ),
    sqlite3.SQLITE_CONSTRAINT: (REFUSED, REPORT),
    sqlite3.SQLITE_TOOBIG: ("the answer is too large to be stored", "Ask for fewer cells"),
}
CREATABLE = "Give a path in a folder that exists and may be written"
UNKNOWN = (
    "the file cannot be used",
    "Verify the ledger, and restore the latest whole copy if it is damaged",
)


def primary_code(error: sqlite3.Error) -> int:
    """The primary result code of an error, or -1."""
    number = getattr(error, "sqlite_errorcode", None)
    return -1 if number is None else number & 0xFF


# --- turns ----------------------------------------------------------------------------------------

Given = TypeVarTuple("Given")


class Turns:
    """Gives something that cannot be shared to one caller at a time, until it is closed.

    Parameters
    ----------
    label : str
        What messages call it.

    Attributes
    ----------
    lock : RLock
        Whoever holds it keeps all others out, also from closing.
    closed : bool
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.closed = False
        self.renew()

    def renew(self) -> None:
        """Begin with a new lock, as a child process must: its parent may hold the old one."""
        self.lock = threading.RLock()
        self._entered = False

    def alone(self, action: Callable[[*Given], T], *given: *Given) -> T:
        """Run an action with what it is given, while nobody else can run one.

        Raises
        ------
        LedgerError
            If this thread is in the middle of another one, or it is closed.
        """
        # The lock keeps other threads out, and lets this thread in again. So a flag refuses a
        # signal handler that interrupts this thread here: what it does would become part of the
        # open transaction. The ``with`` of a lock leaves no gap for an interrupt.
        with self.lock:
            if self._entered:
                raise LedgerError(self.label, IN_USE, OUTSIDE)
            if self.closed:
                raise LedgerError(self.label, "it is closed", REOPEN)
            self._entered = True
            try:
                return action(*given)
            finally:
                self._entered = False


# --- the connection -------------------------------------------------------------------------------

OTHERS = 0o077  # the bits of a file's mode that let anyone but its owner in
# The lock for writing is taken at once, so nothing that is read can change before it is written to:
# two charges cannot both see the same balance.
WRITING = ("PRAGMA synchronous = FULL", "BEGIN IMMEDIATE")
READING = ("BEGIN",)  # one consistent view
# What is wiped is written to the disk when the log is cut, which follows, and not before: until
# then the log holds it in any case.
WIPING = ("PRAGMA synchronous = NORMAL", "BEGIN IMMEDIATE")
PATIENCE = 60.0  # seconds to wait for a file that others keep busy
SHORTEST_PAUSE = 0.001  # seconds between two tries
LONGEST_PAUSE = 0.008

# A charge that was told of must survive a loss of power. So each commit is written to the disk, and
# not only to the disk's cache (fullfsync, on macOS). Triggers and views of a file that was edited
# may call harmless functions only (trusted_schema).
PRAGMAS = (
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
    "foreign_keys = ON",
    "trusted_schema = OFF",
)


def _patiently(action: Callable[[*Given], T], *given: *Given) -> T:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return action(*given)
        except sqlite3.OperationalError as error:
            busy = primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > until:
                raise
        time.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))


def _cut_log(connection: sqlite3.Connection) -> None:
    """Write a log back into its file and truncate it, unless someone else is writing."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


_NUMBERS = itertools.count()


class Database:
    """A file, or a database in memory, used through `transaction` only.

    Each runs while nobody else does: ``turns.alone(database.transaction, ...)``. It takes a
    function, and is no context manager: an interrupt on the way into the body of a
    ``with``, or at the first instruction of its end, would leave a lock or a transaction behind.
    The ``with`` of a lock has no such gap.

    Parameters
    ----------
    where : str, Path or None
        None or ``":memory:"``: in memory.
    kind : FileKind
    create : bool
        Whether a missing file is made.
    at_once : bool
        Whether it is made now, and not when it is first written to. Until then, a missing file is
        read as an empty one.
    """

    def __init__(
        self,
        where: str | Path | None,
        *,
        kind: FileKind = BOOK,
        create: bool = True,
        at_once: bool = True,
    ) -> None:
        self.kind = kind
        self._may_create = create
        self.is_made = True
        self.number = next(_NUMBERS)
        self.path = None if where is None or str(where) == ":memory:" else os.path.realpath(where)
        whose = "in memory" if self.path is None else repr(str(where))
        self.label = f"{kind.noun} {whose}"
        self.turns = Turns(self.label)
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._pid = os.getpid()
        with OPENING:
            self._connect(writes=at_once)
            _LIVE.add(self)

    # --- transactions, each to be run alone -------------------------------------------------------

    def transaction(
        self,
        begin: Sequence[str],
        view: Callable[[sqlite3.Connection], R],
        action: Callable[[R], T],
    ) -> T:
        """Run one transaction, `WRITING`, `WIPING` or `READING`, with the rows that a view shows.

        One that writes is durable when this returns, and undone if it raises.
        """
        connection = self._ready(writes=begin is not READING)
        try:
            for statement in begin:
                _patiently(connection.execute, statement)
            result = action(view(connection))
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            if isinstance(error, sqlite3.Error):
                raise self._broken(error) from error
            raise
        return result

    def _broken(self, error: sqlite3.Error) -> StoreError:
        self._drop()
        # The frames of the error hold what was to be written: states, tallies, answers.
        error.__traceback__ = None
        return self._failure(error)

    def _failure(self, error: sqlite3.Error) -> StoreError:
        obstacle, remedy = MEANING.get(primary_code(error), UNKNOWN)
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return StoreError(self.label, f"{obstacle} ({name})", remedy)

    # --- the connection ---------------------------------------------------------------------------

    def _ready(self, *, writes: bool = True) -> sqlite3.Connection:
        """The connection, after a check that it is this process's, to the same file as before."""
        if self._pid != os.getpid() and (self.path is None or self._connection is not None):
            raise LedgerError(self.label, FORKED, ONCE_EACH)
        if self.path is not None and not self.is_made and (writes or os.path.lexists(self.path)):
            self._drop()
        if self._connection is None:
            self._connect(writes=writes)
        elif self.is_made:
            self._checked_identity()
        connection = self._connection
        assert connection is not None
        # An interrupt may have left a transaction open. Nobody was told of what is in it.
        if connection.in_transaction:
            try:
                connection.rollback()
            except sqlite3.Error as error:
                raise self._broken(error) from error
        return connection

    def _checked_identity(self) -> tuple[int, int] | None:
        """Device and number of the file that the path names now; None if there is none.

        It must be the file that this object opened first. The file may have one name only: SQLite
        finds the write-ahead log by the name, so that two processes with two names would not see
        each other's charges.
        """
        if self.path is None:
            return None
        identity = None
        with suppress(OSError):
            facts = os.stat(self.path)
            if facts.st_nlink > 1:
                raise LedgerError(
                    self.label,
                    "its file has several names (hard links)",
                    "Keep one name, and remove the others",
                )
            identity = (facts.st_dev, facts.st_ino)
        if self._identity not in (None, identity):
            raise LedgerError(
                self.label,
                "its file was moved or replaced while it was open",
                "Put the file back, and open it again",
            )
        return identity

    def open_to_others(self) -> bool:
        """Whether anyone but its owner may read or write the file."""
        if self.path is None or not self.is_made or os.name != "posix":
            return False
        return bool(os.stat(self.path).st_mode & OTHERS)

    def _connect(self, *, writes: bool) -> None:
        connection = self._opened(writes=writes)
        try:
            if self.kind.owner_only and self.open_to_others():
                raise LedgerError(
                    self.label,
                    "users other than its owner may open it",
                    f"Run `chmod 600 {self.path}`, then ask again",
                )
            _patiently(self._prepare, connection)
            # Secrets that a stream wiped may still be in a log that could not be cut then.
            if self.kind is SECRETS:
                _cut_log(connection)
            identity = self._checked_identity()
        except sqlite3.Error as error:
            connection.close()
            raise self._failure(error) from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._identity = identity
        self._pid = os.getpid()

    def _opened(self, *, writes: bool) -> sqlite3.Connection:
        """A connection to the file, which is made if it is missing, may be made, and is written to.

        A missing file that is only read is an empty one in memory.
        """
        if self._identity is not None:
            self._checked_identity()
        if self.path is not None and os.path.isdir(self.path):
            raise LedgerError(self.label, "it is a directory", "Name a file in it, as budget.db")
        is_there = self.path is None or os.path.lexists(self.path)
        if not is_there:
            self._create(writes=writes)
        self.is_made = is_there or writes
        is_file = self.path is not None and self.is_made
        try:
            return sqlite3.connect(
                f"file:{quote(str(self.path))}?mode=rw" if is_file else ":memory:",
                uri=is_file,
                isolation_level=None,
                check_same_thread=False,
                timeout=0,
            )
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _create(self, *, writes: bool) -> None:
        """Refuse a file that is not to be made, or whose folder is not there; make one to write to.

        It is made for its owner only, and its name is made durable. The log files that SQLite puts
        beside it inherit its mode.
        """
        assert self.path is not None
        folder = os.path.dirname(self.path)
        # A file that was opened before is not made again: what was charged in it would be lost.
        if not self._may_create or self._identity is not None:
            raise LedgerError(self.label, missing_file(self.path), "Check the path")
        if not os.path.isdir(folder):
            raise LedgerError(self.label, "its folder does not exist", CREATABLE)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise LedgerError(
                self.label, "its file cannot be created: its folder may not be written", CREATABLE
            )
        if not writes:
            return
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            # A file whose name is not on disk may be gone after a loss of power, charges included.
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerError(
                self.label, f"its file cannot be created ({error.strerror})", CREATABLE
            ) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check what the file is before anything in it is touched, then fill an empty one."""
        # One view of both fields of the header: another process may be making the ledger just now.
        connection.execute("BEGIN")
        try:
            version = self._version(connection)
        finally:
            connection.rollback()
        for pragma in (*PRAGMAS, *self.kind.pragmas):
            connection.execute(f"PRAGMA {pragma}")
        if self.path is not None and self.is_made:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise LedgerError(
                    self.label,
                    "its file system allows no write-ahead log",
                    "Keep the ledger on a local disk",
                )
        if not version or (self.kind.at_once and version < self.kind.newest):
            self._make(connection)

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of the file's tables; 0 where there are none yet."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = version_of(connection)
        if application == self.kind.application:
            newest = self.kind.newest
            if version > newest:
                raise LedgerError(
                    self.label,
                    f"it has version {version}, and this library knows versions up to {newest}",
                    "Use the newer library that wrote it",
                )
            if 0 < version < self.kind.version:
                raise LedgerError(
                    self.label,
                    "version 0.1 of Sfumato wrote it, and this version does not read it",
                    "Version 0.2.0 upgrades it: run `sfumato ledger upgrade OLD NEW` there, and go "
                    "on with NEW here",
                )
            return version
        if application or version or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise LedgerError(
                self.label,
                "the file is a database, but not a ledger",
                "Give the path of a ledger, or of a new file",
            )
        return version

    def _make(self, connection: sqlite3.Connection) -> None:
        """Write the tables and rules that a file lacks, once, however many processes try."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have made them since the first look, which took no lock.
            version = self._version(connection)
            if not version:
                for statement in statements(script(self.kind.script)):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self.kind.application}")
                connection.execute(f"PRAGMA user_version = {self.kind.version}")
            if self.kind.at_once and version < self.kind.newest:
                extend(connection, self.kind, self.kind.newest)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.rollback()
            raise

    def forget_log(self) -> None:
        """Move what the log holds into the file and cut the log, so that it holds no older state.

        While others read the log, it cannot be cut. Then the next process that opens the file cuts
        it.
        """
        self.turns.alone(lambda: _cut_log(self._ready()))

    def _drop(self) -> None:
        """Forget a connection to a file after an error, so that the next use opens a new one.

        A database in memory lives in its connection, which stays.
        """
        if self.path is not None and self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        with self.turns.lock:
            self.turns.closed = True
            # A child process must not close a connection that it shares with its parent.
            if self._connection is not None and (self.path is None or self._pid == os.getpid()):
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.Error):
            self.close()


# A connection must not cross a fork: the child would believe it holds locks that it does not, and
# could write into a log that another process removes. So all connections are closed just before a
# fork, and each side opens them again when it needs them. Locks are always taken in one order, or
# two threads could wait for each other: first OPENING, then those of files, in the order in which
# the objects were made (a ledger before its secrets). No transaction takes OPENING.

OPENING = threading.RLock()
_LIVE: weakref.WeakSet[Database] = weakref.WeakSet()
_FORKING: list[Database] = []


def _before_fork() -> None:
    OPENING.acquire()
    databases = sorted(_LIVE, key=lambda database: database.number)
    for database in databases:
        database.turns.lock.acquire()
        database._drop()
    _FORKING.extend(databases)


def _after_fork() -> None:
    for database in reversed(_FORKING):
        database.turns.lock.release()
    _FORKING.clear()
    OPENING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork,
        after_in_child=_after_fork,
    )
