"""Read tables in files of DuckDB: a file may come from anybody, and reads nothing but itself."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from sfumato.data.addresses import TableAddress, duckdb_address
from sfumato.data.guard import check_file, stat_file
from sfumato.data.readers.duckdb import DuckTable, Relation, quoted
from sfumato.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    import duckdb

_SAME_ROWS_OF_VIEWS = (
    "The view of DuckDB showed the same rows in all scans of this release: its query draws none at "
    "random."
)
_ALONE = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
}
"""A file that is opened so reads no other file, no address, and no variable of Python."""


class _Held(NamedTuple):
    """A table or a view that a file holds."""

    parts: tuple[str, ...]
    is_view: bool

    @property
    def shown(self) -> str:
        """The name as an address names it."""
        return ".".join(map(_part, self.parts[1:] if self.parts[1] != "main" else self.parts[2:]))

    def is_named(self, parts: Sequence[str]) -> bool:
        """Whether an address means this one. DuckDB does not tell capitals apart."""
        full = [*(["main"] if len(parts) == 1 else []), *parts]
        return [part.lower() for part in self.parts[-len(full) :]] == list(map(str.lower, full))


class DuckFile(DuckTable):
    """A table or a view in a file of DuckDB, which is only read."""

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckFile | None:
        """Read an address such as ``duckdb:file.db?table=trips``."""
        address = duckdb_address(data)
        return None if address is None else cls(address)

    def __init__(self, address: TableAddress) -> None:
        self._path = Path(address.place).expanduser()
        self._address = address
        self.name = f"{address.place}?table={address.table}"
        self._of_thread = threading.local()

    def label(self, name: str | None) -> str:
        """Identify the state of the file, and of what was written and is not yet part of it."""
        table = ".".join(map(quoted, self._address.parts))
        states = []
        for path in (self._path, self._path.with_name(f"{self._path.name}.wal")):
            if path == self._path or path.exists():
                status = stat_file(path, self._address.place)
                states.append(f"modified {status.st_mtime_ns} of {status.st_size} bytes")
        return f"{name or self._path.resolve()} table {table} {' and '.join(states)}"

    @contextmanager
    def snapshot(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Hold the file open within this context: nobody can write to it.

        A file that is open to be read cannot be opened to write. Each thread opens it for itself,
        because a connection has one open result at a time.
        """
        held: duckdb.DuckDBPyConnection | None = getattr(self._of_thread, "connection", None)
        if held is not None:
            yield held
            return
        check_file(self._path, self._address.place)
        with closing(self._opened()) as opened:
            connection = _locked(opened.cursor())
            self._of_thread.connection = connection
            try:
                yield connection
            finally:
                del self._of_thread.connection

    @contextmanager
    def _relation(self) -> Iterator[Relation]:
        with self.snapshot() as connection:
            table = self._table(connection)
            self.same_rows = _SAME_ROWS_OF_VIEWS if table.is_view else ""
            name = ".".join(map(quoted, table.parts))
            try:
                relation = connection.sql(f"SELECT * FROM {name}")
            except (driver().PermissionException, driver().CatalogException):
                relation = None  # raised outside the except block, where its words stay
            if relation is None:
                raise DataError(
                    self._address.place,
                    f"the view {self._address.table!r} reads what this file does not hold, such as "
                    "another file",
                    "Write what it shows to a table of the file, or give a relation",
                )
            yield relation

    def _table(self, connection: duckdb.DuckDBPyConnection) -> _Held:
        """What the address means among the tables and views that the file holds.

        A name that is looked up nowhere else cannot name a file or an address.
        """
        held = sorted(_tables(connection))
        for table in held:
            if table.is_named(self._address.parts):
                return table
        raise DataError(
            self._address.place,
            f"the file has no table {self._address.table!r}; "
            f"{nearest(self._address.table, [table.shown for table in held])}",
            "Name one of its tables or views",
        )

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """Open the file to read itself and nothing else."""
        package = driver()
        settings = {**_ALONE, "temp_directory": _folder_of(os.getpid())}
        try:
            opened: duckdb.DuckDBPyConnection = package.connect(
                str(self._path), read_only=True, config=settings
            )
        except package.ConnectionException:
            obstacle = "this process has it open already, with other settings"
            remedy = "Close it there, or give a relation of that connection"
        except package.IOException:
            obstacle = "it is no file of DuckDB, or another program has it open to write"
            remedy = "Close it there, and check the file with DuckDB"
        else:
            return opened
        raise DataError(self._address.place, obstacle, remedy)


def _locked(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Let nothing change the settings of a file from here on.

    A bar that shows how far a query has come would write to standard output, among what is printed
    there, and how far it has come is a fact about the rows. In notebooks connections begin with
    one, and cursors without.
    """
    try:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET lock_configuration = true")
    except driver().InvalidInputException:
        pass  # another thread reads the file, and has locked it
    return connection


def _tables(connection: duckdb.DuckDBPyConnection) -> Iterator[_Held]:
    """The tables and views of the file that is open; macros in it cannot change what is found."""
    for kind in ("table", "view"):
        rows = connection.execute(
            f"SELECT database_name, schema_name, {kind}_name, internal"
            f" FROM system.main.duckdb_{kind}s()"
        )
        for *parts, is_internal in rows.fetchall():
            if not is_internal:
                yield _Held(tuple(parts), is_view=kind == "view")


def _part(name: str) -> str:
    """A part of the name of a table; one with a point stands in quotes."""
    return quoted(name) if set(name) & set('."') else name


@cache
def _folder_of(process: int) -> str:
    """Where DuckDB writes what its memory does not hold: a folder that only the owner can read.

    DuckDB itself would let everybody read it, beside the file.
    """
    folder = tempfile.mkdtemp(prefix="sfumato-")
    atexit.register(_remove, folder, process)
    return folder


def _remove(folder: str, process: int) -> None:
    """Remove the folder of this process; a child leaves that of its parent alone."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def driver() -> ModuleType:
    """The package that opens files of DuckDB.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        import duckdb
    except ImportError:
        pass
    else:
        return duckdb
    raise UsageError(
        "a table in a file of DuckDB",
        "the package duckdb is not installed",
        'Run pip install "sfumato[duckdb]"',
    )
