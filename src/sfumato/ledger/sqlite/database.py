"""A file under a ledger: one SQLite connection, shared by threads, safe across a fork.

Write-ahead log with a full sync at each commit. SQLite's own wait for a busy file sleeps ever
longer and starves some processes for seconds (measured: 16 writers, one got 1 turn while another
got 7,910), so waiting is done here, in short uneven sleeps.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from sfumato.errors import LedgerError
from sfumato.ledger.store import FORKED, IN_USE, ONCE_EACH, OUTSIDE, REFUSED, REPORT, StoreError

T = TypeVar("T")
Execute: TypeAlias = Callable[[str, tuple[object, ...]], sqlite3.Cursor]
"""Runs one statement, with the values of its question marks."""


@dataclass(frozen=True)
class Kind:
    """What a file is: how its header marks it, which script makes it, and what messages call it."""

    application: int
    version: int
    script: str
    noun: str
    pragmas: tuple[str, ...] = ()
    owner_only: bool = False


BOOK = Kind(0x53666D74, 4, "book.sql", "the ledger")  # "Sfmt"
SECRETS = Kind(
    0x53666D73,  # "Sfms"
    1,
    "secrets.sql",
    "the secrets of the ledger",
    # What is overwritten or deleted is zeroed in the file, so that a wiped state is gone.
    pragmas=("secure_delete = ON",),
    owner_only=True,
)
OTHERS = 0o077  # the bits of a file's mode that let anyone but its owner in
PATIENCE = 60.0  # seconds to wait for a file that others keep busy
SHORTEST, LONGEST = 0.001, 0.008  # seconds between two tries
PRAGMAS = (
    "synchronous = FULL",
    "fullfsync = ON",
    "checkpoint_fullfsync = ON",
    "foreign_keys = ON",
    "trusted_schema = OFF",
)
OBJECTS = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"

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
UNKNOWN = (
    "the file cannot be used",
    "Verify the ledger, and restore the latest whole copy if it is damaged",
)


@cache
def script(kind: Kind) -> str:
    """The statements that make an empty file one of a kind."""
    folder = resources.files("sfumato.ledger.sqlite")
    return folder.joinpath(kind.script).read_text(encoding="utf-8")


def statements(script: str) -> Iterator[str]:
    """Cut a script into statements; each ends at the end of a line."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""


@cache
def expected_objects(kind: Kind) -> Mapping[str, str]:
    """The tables, indexes and triggers of a kind of file."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in statements(script(kind)):
            db.execute(statement)
        return dict(db.execute(OBJECTS).fetchall())


def differences(db: sqlite3.Connection, kind: Kind) -> list[str]:
    """Tables, indexes and triggers that are not what this version creates."""
    expected = expected_objects(kind)
    found = dict(db.execute(OBJECTS).fetchall())
    known = expected.keys() | found.keys()
    names = sorted(name for name in known if expected.get(name) != found.get(name))
    edited = "was dropped, replaced or added to the ledger's tables and rules"
    return [f"{name!r} {edited}" for name in names]


def damage(db: sqlite3.Connection) -> list[str]:
    """What SQLite itself finds wrong with the file."""
    found = [str(line) for (line,) in db.execute("PRAGMA integrity_check(5)")]
    return [] if found == ["ok"] else [f"the file is damaged: {line}" for line in found]


def code(error: sqlite3.Error) -> int:
    """The primary result code of an error, or -1."""
    number = getattr(error, "sqlite_errorcode", None)
    return -1 if number is None else number & 0xFF


def error_name(error: sqlite3.Error) -> str:
    """The name of an error's result code."""
    return str(getattr(error, "sqlite_errorname", type(error).__name__))


def _patiently(action: Callable[[], T]) -> T:
    """Try until the file is free."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            busy = code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > until:
                raise
        time.sleep(random.uniform(SHORTEST, LONGEST))


def _cut_log(connection: sqlite3.Connection) -> None:
    """Write a log back into its file and truncate it; without waiting for others."""
    with suppress(sqlite3.OperationalError):  # someone else is writing
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _keeps_log(connection: sqlite3.Connection) -> bool:
    """Ask for a write-ahead log; whether the file system allows one."""
    found = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    return bool(found == "wal")


_NUMBERS = itertools.count()


class Database:
    """A file, or one in memory, used through `atomic`, `reading` and `singly` only.

    What is to be done is given to them as a function, and is not the body of a ``with``: an
    interrupt on the way into such a block, or at the first instruction of its end, would leave a
    lock or a transaction behind. The lock's own ``with`` has no such gap.
    """

    def __init__(self, where: str | Path | None, *, kind: Kind = BOOK, create: bool = True) -> None:
        self.kind = kind
        self.number = next(_NUMBERS)
        self.path = None if where is None or str(where) == ":memory:" else os.path.realpath(where)
        whose = "in memory" if self.path is None else repr(str(where))
        self.label = f"{kind.noun} {whose}"
        self._lock = threading.RLock()
        self._entered = False
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._closed = False
        with OPENING:
            self._connect(create=create)
            _LIVE.add(self)

    # --- transactions -----------------------------------------------------------------------------

    def atomic(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """One transaction that writes: durable when this returns, undone if it raises."""
        return self._alone(partial(self._transaction, "BEGIN IMMEDIATE", action))

    def reading(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """One consistent view."""
        return self._alone(partial(self._transaction, "BEGIN", action))

    def singly(self, action: Callable[[Execute], T]) -> T:
        """Statements each of which is a transaction of its own, and durable when it returns."""
        return self._alone(partial(self._singly, action))

    def _alone(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Let nobody else use the connection meanwhile.

        Not even this thread, in a signal handler that interrupts it here.
        """
        with self._lock:
            if self._entered:
                raise LedgerError(self.label, IN_USE, OUTSIDE)
            self._entered = True
            try:
                return action(self._ready())
            finally:
                self._entered = False

    def _transaction(
        self,
        begin: str,
        action: Callable[[sqlite3.Connection], T],
        connection: sqlite3.Connection,
    ) -> T:
        try:
            _patiently(lambda: connection.execute(begin))
            found = action(connection)
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            if isinstance(error, sqlite3.Error):
                raise self._broken(error) from error
            raise
        return found

    def _singly(self, action: Callable[[Execute], T], connection: sqlite3.Connection) -> T:
        def execute(statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
            return _patiently(lambda: connection.execute(statement, values))

        try:
            return action(execute)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def _broken(self, error: sqlite3.Error) -> StoreError:
        self._drop()
        error.__traceback__ = None  # its frames hold what was to be written
        return self._failure(error)

    def _failure(self, error: sqlite3.Error) -> StoreError:
        obstacle, remedy = MEANING.get(code(error), UNKNOWN)
        return StoreError(self.label, f"{obstacle} ({error_name(error)})", remedy)

    # --- the connection ---------------------------------------------------------------------------

    def _ready(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(self.label, "it is closed", "Open it again")
        if self._pid != os.getpid() and (self.path is None or self._connection is not None):
            raise LedgerError(self.label, FORKED, ONCE_EACH)
        if self._connection is None:
            self._connect(create=False)
        else:
            self._check_name()
        assert self._connection is not None
        # Left behind by an interrupt: nobody was told of what is in it.
        if self._connection.in_transaction:
            try:
                self._connection.rollback()
            except sqlite3.Error as error:
                raise self._broken(error) from error
        return self._connection

    def _check_name(self) -> None:
        if self.path is not None and self._identity is not None and self._named() != self._identity:
            raise LedgerError(
                self.label,
                "its file was moved or replaced while it was open",
                "Put the file back, and open it again",
            )

    def _check_mode(self) -> None:
        if self.kind.owner_only and self.open_to_others():
            obstacle = "others than its owner may open it"
            raise LedgerError(self.label, obstacle, f"Run `chmod 600 {self.path}`, then ask again")

    def open_to_others(self) -> bool:
        """Whether anyone but its owner may read or write the file."""
        if self.path is None or os.name != "posix":
            return False
        return bool(os.stat(self.path).st_mode & OTHERS)

    def _named(self) -> tuple[int, int] | None:
        """Which file the path names now.

        A second name for it would mean a second write-ahead log, so there may be only one.
        """
        assert self.path is not None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        if found.st_nlink > 1:
            raise LedgerError(
                self.label,
                "its file has several names (hard links)",
                "Keep one name, and remove the others",
            )
        return found.st_dev, found.st_ino

    def _connect(self, *, create: bool) -> None:
        try:
            self._check_name()
            if self.path is not None and not os.path.lexists(self.path):
                self._create(create)
            address = ":memory:" if self.path is None else f"file:{quote(self.path)}?mode=rw"
            connection = sqlite3.connect(
                address,
                uri=self.path is not None,
                isolation_level=None,
                check_same_thread=False,
                timeout=0,
            )
        except sqlite3.Error as error:
            raise self._failure(error) from error
        try:
            self._check_mode()
            _patiently(lambda: self._prepare(connection))
            if self.kind is SECRETS:
                _cut_log(connection)
            self._check_name()
            identity = None if self.path is None else self._named()
        except sqlite3.Error as error:
            connection.close()
            raise self._failure(error) from error
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._identity = identity
        self._pid = os.getpid()

    def _create(self, create: bool) -> None:
        """Create the file for its owner only, and make its name durable.

        The log files beside it inherit its mode.
        """
        assert self.path is not None
        folder = os.path.dirname(self.path)
        if not create:
            raise LedgerError(self.label, "there is no such file", "Check the path")
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            reason = "its folder does not exist"
            if os.path.isdir(folder):
                reason = f"its file cannot be created ({error.strerror})"
            remedy = "Give a path in a folder that exists and may be written"
            raise LedgerError(self.label, reason, remedy) from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Settle what the file is before anything in it is touched, then fill an empty one."""
        # One view of the header: another process may be creating the ledger at this moment.
        connection.execute("BEGIN")
        try:
            version = self._version(connection)
        finally:
            connection.rollback()
        for pragma in (*PRAGMAS, *self.kind.pragmas):
            connection.execute(f"PRAGMA {pragma}")
        if self.path is not None and not _keeps_log(connection):
            raise LedgerError(
                self.label,
                "its file system allows no write-ahead log",
                "Keep the ledger on a local disk",
            )
        if not version:
            self._make(connection)

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of the file's tables; 0 where there are none yet."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        known = self.kind.version
        if application != self.kind.application:
            filled = connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            if application or version or filled:
                obstacle = "the file is a database, but not a ledger"
                remedy = "Give the path of a ledger, or of a new file"
                raise LedgerError(self.label, obstacle, remedy)
        elif version > known:
            obstacle = f"it has version {version}, and this library knows versions up to {known}"
            raise LedgerError(self.label, obstacle, "Use the newer library that wrote it")
        elif 0 < version < known:
            receipts = "whose receipts give away the size of a data file"
            obstacle = f"it was written by version 0.1, {receipts}"
            remedy = "Run `sfumato ledger upgrade OLD NEW`, and go on with the new file"
            raise LedgerError(self.label, obstacle, remedy)
        return version

    def _make(self, connection: sqlite3.Connection) -> None:
        """Write the tables and rules of an empty file, once, however many processes try."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            if not self._version(connection):
                for statement in statements(script(self.kind)):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self.kind.application}")
                connection.execute(f"PRAGMA user_version = {self.kind.version}")
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.rollback()
            raise

    def forget_log(self) -> None:
        """Move what the log holds into the file and cut the log, so that it holds no older state.

        Others who are reading keep the log alive. Then the next one who opens the file cuts it.
        """
        self._alone(_cut_log)

    def _drop(self) -> None:
        """Forget a connection to a file after an error, so that the next use starts clean.

        One in memory is all there is, and stays.
        """
        if self.path is not None and self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        with self._lock:
            self._closed = True
            if self._connection is not None and (self.path is None or self._pid == os.getpid()):
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.Error):
            self.close()


# A connection must not cross a fork: the child would believe it holds locks that it does not, and
# could write into a log that another process removes. So connections are closed just before, and
# opened again, where needed, on either side. Locks are taken in one order, first OPENING, then
# those of single files as they were made (a ledger before its secrets), and no transaction takes
# OPENING.

OPENING = threading.RLock()
_LIVE: weakref.WeakSet[Database] = weakref.WeakSet()
_FORKING: list[Database] = []


def _before_fork() -> None:
    OPENING.acquire()
    databases = sorted(_LIVE, key=lambda database: database.number)
    for database in databases:
        database._lock.acquire()
        database._drop()
    _FORKING.extend(databases)


def _after_fork() -> None:
    for database in reversed(_FORKING):
        database._lock.release()
    _FORKING.clear()
    OPENING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork,
        after_in_child=_after_fork,
    )
