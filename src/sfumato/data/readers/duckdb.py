"""Read relations of DuckDB as Arrow batches, which it hands out as it computes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeGuard

import pyarrow as pa

from sfumato.data.column_types import ENGINE_TYPE
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.errors import DataError

_HUGE = pa.decimal256(39, 0)
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
"""The types of DuckDB that are read, beside decimals, and what their values arrive as."""

_AS_TEXT = ("hugeint", "uhugeint", "uuid")
"""What is asked for as text: Arrow has 38 digits, and a connection may write UUIDs as bytes."""


class _Type(Protocol):
    """A type of DuckDB."""

    @property
    def id(self) -> str: ...

    @property
    def children(self) -> Sequence[tuple[str, object]]: ...


class Relation(Protocol):
    """The methods of a relation that are used."""

    @property
    def columns(self) -> list[str]: ...

    @property
    def types(self) -> Sequence[_Type]: ...

    def project(self, *expressions: str) -> Relation: ...

    def limit(self, n: int, /) -> Relation: ...

    def to_arrow_reader(self, batch_size: int = ..., /) -> pa.RecordBatchReader: ...


def _is_relation(data: object) -> TypeGuard[Relation]:
    return all(hasattr(data, ability) for ability in ("project", "columns", "__arrow_c_stream__"))


class DuckTable(RowReader):
    """What a relation and a table of a file have in common."""

    @abstractmethod
    def _relation(self) -> AbstractContextManager[Relation]:
        """Give the table as a relation, for as long as the context holds."""

    def names(self) -> list[str]:
        """Give the names of the columns."""
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
                    yield _of_schema(batch, schema)
            finally:
                stream.close()

    def _wanted(self, table: Relation, columns: Columns) -> list[tuple[str, _Type]]:
        """The columns wanted, with their types.

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


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _field(name: str, type_: _Type) -> pa.Field:
    """A column as it arrives; one that is not read has a type that fits nothing."""
    if type_.id == "decimal":
        return pa.field(name, pa.decimal128(**dict(type_.children)))
    if type_.id in _TYPES:
        return pa.field(name, _TYPES[type_.id])
    # Fields of a struct, and labels of an enumeration, may be data: its kind alone is named.
    return pa.field(name, pa.list_(pa.null()), metadata={ENGINE_TYPE: type_.id.encode()})


def _selected(name: str, type_: _Type) -> str:
    """A column in a form that tells all values apart."""
    column = quoted(name)
    return f"CAST({column} AS VARCHAR) AS {column}" if type_.id in _AS_TEXT else column


def _of_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch of the types stated; dictionaries and views of text stay as they are."""
    columns = [_plain(*pair) for pair in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _plain(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column without an extension type, by which a connection may write booleans and JSON."""
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
        """Read a relation."""
        return cls(data) if _is_relation(data) else None

    def __init__(self, relation: Relation) -> None:
        self._given = relation

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted, if the connection is free to read them."""
        import duckdb

        schema = super().schema(columns)
        try:
            self._given.project("NULL").limit(0).to_arrow_reader(BATCH_ROWS).close()
        except duckdb.ResourceInUseException:
            pass
        else:
            return schema
        raise DataError(
            self.name,
            "its connection has an unfinished result, and can read nothing else meanwhile",
            "Fetch that first, or give a relation of connection.cursor()",
        )

    def _relation(self) -> AbstractContextManager[Relation]:
        return nullcontext(self._given)
