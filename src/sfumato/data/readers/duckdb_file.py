"""A database file of DuckDB that is only read, in one state for all scans of a release."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa

from sfumato.data.engines.duckdb import NamedTable
from sfumato.data.guard import check_file, stat_file
from sfumato.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    import duckdb


class _Step(TypedDict):
    """What is read of a part of a plan."""

    name: str
    children: list[_Step]


class DuckDatabase:
    """A file, which is opened for each release, and for each question about its form.

    Parameters
    ----------
    path : Path
    name : str
        What messages call it.
    table : str
        The table that is read, as its address names it.
    """

    def __init__(self, path: Path, name: str, table: str) -> None:
        self._path = path
        self._name = name
        self._table = table
        self._held: duckdb.DuckDBPyConnection | None = None
        self._snapshots = 0

    @property
    def snapshot_number(self) -> int | None:
        """Which snapshot is shown; None outside of any."""
        return None if self._held is None else self._snapshots

    def __getstate__(self) -> tuple[Path, str, str]:
        return self._path, self._name, self._table

    def __setstate__(self, state: tuple[Path, str, str]) -> None:
        DuckDatabase.__init__(self, *state)

    def state(self) -> str:
        """What changes when the file does, or the log of what was written to it."""
        found = []
        for path in (self._path, self._path.with_name(f"{self._path.name}.wal")):
            if path == self._path or path.exists():
                status = stat_file(path, self._name)
                found.append(f"modified {status.st_mtime_ns} of {status.st_size} bytes")
        return " and ".join(found)

    def shows_others(self, table: str) -> bool:
        """Whether a table is a view that reads what does not lie in the file, such as other files.

        Parameters
        ----------
        table : str
            As a query names it.
        """
        with self.snapshot():
            connection = self._held
            assert connection is not None
            try:
                # Otherwise a part whose result is known beforehand would not be in the plan.
                connection.execute("PRAGMA disable_optimizer")
                query = f"EXPLAIN (FORMAT json) SELECT * FROM {table}"
                ((_, plan),) = connection.execute(query).fetchall()
            except (driver().CatalogException, driver().BinderException):
                return False  # it is not there, which is said as it is read
            connection.execute("PRAGMA enable_optimizer")
        return not set(_scans(json.loads(plan))) <= _OWN_SCANS

    def ask(self, query: str, secrets: NamedTable | None = None) -> pa.RecordBatchReader:
        """Run a query, which may look at a table of secrets that it does not hold.

        Inside a snapshot, the result is read as it is computed, up to the next query.

        Raises
        ------
        DataError
            If the file cannot be opened, or has no such table.
        """
        if self._held is None:
            with self.snapshot():
                return self.ask(query, secrets).read_all().to_reader()
        connection = self._held
        if secrets is not None:
            connection.register(secrets.name, secrets.rows)
        try:
            return pa.RecordBatchReader.from_stream(connection.sql(query))
        except driver().CatalogException:
            pass
        if self._table in self._tables(connection):
            raise DataError(
                self._name,
                "it is a view that reads what this file does not hold, as an attached database",
                "Write what it shows to a table of the file, or give a relation",
            )
        near = nearest(self._table, self._tables(connection))
        obstacle = f"the file has no table {self._table!r}; {near}"
        raise DataError(self._name, obstacle, "Name one of its tables or views")

    def _tables(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        """The tables and views of the file, as an address names them."""
        found = connection.sql(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_catalog = current_database() ORDER BY ALL"
        ).fetchall()
        return [".".join(map(_part, parts[parts[0] == "main" :])) for parts in found]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Show one state of the data within this context. In another snapshot, that one's.

        The file is open in it alone: a file that is open to be read cannot be opened to write.
        """
        if self._held is not None:
            yield
            return
        check_file(self._path, self._name)
        with self._connect() as connection:
            self._held = connection
            self._snapshots += 1
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                yield
            finally:
                self._held = None

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Open the file to read; where this process has it open already, share that."""
        package = driver()
        path = str(self._path)
        private = {"temp_directory": _folder_of(os.getpid())}
        connection = None
        # What a process opens twice has the same settings both times.
        for settings in ({"read_only": True, "config": private}, {"read_only": True}, {}):
            try:
                connection = package.connect(path, **settings)
                break
            except package.ConnectionException:
                continue
            except package.IOException:
                break
        if connection is None:
            raise DataError(
                self._name,
                "it is no file of DuckDB, or another program has it open to write",
                "Close it there, and check the file with DuckDB",
            )
        opened: duckdb.DuckDBPyConnection = connection
        # Where it is on, as in notebooks, it would write to standard output, among what is printed
        # there, and how far it has come is a fact about the rows. It is this connection's own.
        opened.execute("SET enable_progress_bar = false")
        return opened


_OWN_SCANS = frozenset(
    [
        "SEQ_SCAN",
        "INDEX_SCAN",
        "TABLE_SCAN",
        "EMPTY_RESULT",
        "DUMMY_SCAN",
        "COLUMN_DATA_SCAN",
        "EXPRESSION_SCAN",
        "CTE_SCAN",
        "REC_CTE_SCAN",
        "DELIM_SCAN",
        "RANGE",
        "GENERATE_SERIES",
    ]
)
"""The parts of a plan that read tables of the file, or what the query itself says."""


def _scans(plan: list[_Step]) -> Iterator[str]:
    """The names of the parts of a plan that read something: those that have no parts."""
    for step in plan:
        if step["children"]:
            yield from _scans(step["children"])
        else:
            yield step["name"].strip()


def _part(name: str) -> str:
    """A part of the name of a table; one with a point stands in quotes."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set('."') else name


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
