"""Read relations of DuckDB, and tables in files of DuckDB, as Arrow batches.

DuckDB hands out the batches of a relation as it computes them. A file may come from anybody, and
reads nothing but itself.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, cast

import pyarrow as pa

from sfumato.data.addresses import Address, quoted, table_at
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader, check_file, driver_of, stat_file
from sfumato.data.schema import ENGINE_TYPE
from sfumato.errors import DataError, nearest

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType

_HUGE = pa.decimal256(39, 0)
# The types of DuckDB that are read, beside decimals, and what their values arrive as.
_TYPES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "hugeint": _HUGE,
    "utinyint": pa.uint8(),
    "usmallint": pa.uint16(),
    "uinteger": pa.uint32(),
    "ubigint": pa.uint64(),
    "uhugeint": _HUGE,
    "float": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "enum": pa.string(),
    "uuid": pa.string(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("s"),
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
}

# What is asked for as text: Arrow has 38 digits, and a connection may write UUIDs as bytes.
_AS_TEXT = ("hugeint", "uhugeint", "uuid")


class DuckTable(RowReader):
    """What a relation and a table of a file have in common."""

    @abstractmethod
    def _relation(self) -> AbstractContextManager[duckdb.DuckDBPyRelation]:
        """Give the table as a relation, for as long as the context holds."""

    def names(self) -> list[str]:
        with self._relation() as table:
            return list(table.columns)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted; DuckDB states them, and no row is read."""
        with self._relation() as table:
            return pa.schema([_field(name, type_) for name, type_ in self._wanted(table, columns)])

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted. The connection has an open result until the last batch."""
        with self._relation() as table:
            wanted = self._wanted(table, columns)
            schema = pa.schema([_field(name, type_) for name, type_ in wanted])
            listed = ", ".join(_selected(name, type_) for name, type_ in wanted)
            stream = table.project(listed).to_arrow_reader(BATCH_ROWS)
            try:
                for batch in stream:
                    # Of the types stated; dictionaries and views of text stay as they are.
                    pairs = zip(batch.columns, schema.types, strict=True)
                    arrays = [_plain(column, type_) for column, type_ in pairs]
                    yield pa.RecordBatch.from_arrays(arrays, names=schema.names)
            finally:
                stream.close()

    def _wanted(
        self, table: duckdb.DuckDBPyRelation, columns: Columns
    ) -> list[tuple[str, DuckDBPyType]]:
        """Return the columns wanted, with their types.

        DuckDB takes names that differ in capitals for one name, and reads the first such column.
        """
        types = dict(zip(table.columns, table.types, strict=True))
        folded = [name.lower() for name in table.columns]
        for name in columns:
            if folded.count(name.lower()) > 1:
                raise DataError(
                    f"{self.name}, column {name!r}",
                    "several columns have that name, if capitals are not told apart",
                    "Rename the columns",
                )
        return [(name, types[name]) for name in columns]


def _field(name: str, type_: DuckDBPyType) -> pa.Field:
    """Return a column as it arrives; one that is not read has a type that fits nothing."""
    if type_.id == "decimal":
        return pa.field(name, pa.decimal128(**dict(type_.children)))
    if type_.id in _TYPES:
        return pa.field(name, _TYPES[type_.id])
    # Fields of a struct, and labels of an enumeration, may be data: its kind alone is named.
    return pa.field(name, pa.list_(pa.null()), metadata={ENGINE_TYPE: type_.id.encode()})


def _selected(name: str, type_: DuckDBPyType) -> str:
    """Return a column in a form that tells all values apart."""
    column = quoted(name)
    return f"CAST({column} AS VARCHAR) AS {column}" if type_.id in _AS_TEXT else column


def _plain(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Take off an extension type, by which a connection may write booleans and JSON."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.cast(type_) if type_ in (_HUGE, pa.bool_()) else column


class DuckRelation(DuckTable):
    """A relation of DuckDB, which is run again for each scan, on its own connection.

    It holds no snapshot over several scans. A transaction would have to be begun on the caller's
    connection, and a query that fails would leave it aborted: nothing that a relation can do ends
    an aborted one.
    """

    name = "duckdb relation"
    same_rows = (
        "The relation of DuckDB had the same rows in all scans of this release: nobody wrote to "
        "its tables or files meanwhile."
    )

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckRelation | None:
        abilities = ("project", "columns", "__arrow_c_stream__")
        if not all(hasattr(data, ability) for ability in abilities):
            return None
        return cls(cast("duckdb.DuckDBPyRelation", data))

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._given = relation

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted, if the connection is free to read them."""
        schema = super().schema(columns)
        try:
            self._given.project("NULL").limit(0).to_arrow_reader(BATCH_ROWS).close()
        except driver().ResourceInUseException:
            pass
        else:
            return schema
        raise DataError(
            self.name,
            "its connection has an unfinished result, and can read nothing else meanwhile",
            "Fetch that first, or give a relation of connection.cursor()",
        )

    def _relation(self) -> AbstractContextManager[duckdb.DuckDBPyRelation]:
        return nullcontext(self._given)


# --- files ----------------------------------------------------------------------------------------

_SAME_ROWS_OF_VIEWS = (
    "The view of DuckDB showed the same rows in all scans of this release: its query draws none at "
    "random."
)


class _Held(NamedTuple):
    """A table or a view that a file holds."""

    parts: tuple[str, ...]
    is_view: bool

    @property
    def shown(self) -> str:
        """The name as an address names it."""
        return ".".join(map(_part, self.parts[1:] if self.parts[1] != "main" else self.parts[2:]))

    def is_named(self, parts: Sequence[str]) -> bool:
        """Tell whether an address means this one. DuckDB does not tell capitals apart."""
        full = [*(["main"] if len(parts) == 1 else []), *parts]
        return [part.lower() for part in self.parts[-len(full) :]] == list(map(str.lower, full))


class DuckFile(DuckTable):
    """A table or a view in a file of DuckDB, which is only read."""

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckFile | None:
        """Read an address such as ``duckdb:file.db?table=trips``."""
        address = table_at("duckdb", data)
        return None if address is None else cls(address)

    def __init__(self, address: Address) -> None:
        self._path = Path(address.place).expanduser()
        self._address = address
        self.name = f"{address.place}?table={address.table}"
        self._of_thread = threading.local()

    def label(self, name: str | None) -> str:
        """Identify the state of the file, and of what was written and is not yet part of it."""
        states = []
        for path in (self._path, self._path.with_name(f"{self._path.name}.wal")):
            if path == self._path or path.exists():
                status = stat_file(path, self._address.place)
                states.append(f"modified {status.st_mtime_ns} of {status.st_size} bytes")
        return f"{self.place(name)} {' and '.join(states)}"

    def place(self, name: str | None) -> str:
        table = ".".join(map(quoted, self._address.parts))
        return f"{name or self._path.resolve()} table {table}"

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
            connection = opened.cursor()
            # Nothing changes the settings of a file from here on. A bar that shows how far a query
            # has come would write to standard output, among what is printed there, and how far it
            # has come is a fact about the rows. In notebooks connections begin with one, and
            # cursors without.
            with suppress(driver().InvalidInputException):
                # Else another thread reads the file, and has locked it.
                connection.execute("SET enable_progress_bar = false")
                connection.execute("SET lock_configuration = true")
            self._of_thread.connection = connection
            try:
                yield connection
            finally:
                del self._of_thread.connection

    @contextmanager
    def _relation(self) -> Iterator[duckdb.DuckDBPyRelation]:
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
                    f"the view {self._address.name!r} reads what this file does not hold, such as "
                    "another file",
                    "Write what it shows to a table of the file, or give a relation",
                )
            yield relation

    def _table(self, connection: duckdb.DuckDBPyConnection) -> _Held:
        """Return what the address means among the tables and views that the file holds.

        A name that is looked up nowhere else cannot name a file or an address.
        """
        held: list[_Held] = []
        for kind in ("table", "view"):
            # From the catalog of DuckDB itself: macros in the file cannot change what is found.
            rows = connection.execute(
                f"SELECT database_name, schema_name, {kind}_name, internal"
                f" FROM system.main.duckdb_{kind}s()"
            )
            for *parts, is_internal in rows.fetchall():
                if not is_internal:
                    held.append(_Held(tuple(parts), is_view=kind == "view"))
        held.sort()
        for table in held:
            if table.is_named(self._address.parts):
                return table
        raise DataError(
            self._address.place,
            f"the file has no table {self._address.name!r}; "
            f"{nearest(self._address.name, [table.shown for table in held])}",
            "Name one of its tables or views",
        )

    def _opened(self) -> duckdb.DuckDBPyConnection:
        package = driver()
        # A file that is opened so reads no other file, no address, and no variable of Python.
        settings = {
            "enable_external_access": "false",
            "autoload_known_extensions": "false",
            "autoinstall_known_extensions": "false",
            "allow_community_extensions": "false",
            "temp_directory": _folder_of(os.getpid()),
        }
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


def _part(name: str) -> str:
    """Return a part of the name of a table; one with a point stands in quotes."""
    return quoted(name) if set(name) & set('."') else name


@cache
def _folder_of(process: int) -> str:
    """Make the folder to which DuckDB writes what its memory does not hold, for its owner alone.

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
    """Return the package that opens files of DuckDB.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    return driver_of("a table in a file of DuckDB", "duckdb", extra="duckdb")
