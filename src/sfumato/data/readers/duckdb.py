"""Read a relation of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from sfumato.data.reader import Columns, RowReader


class _Relation(Protocol):
    """The methods of a relation that are used."""

    columns: Sequence[str]

    def project(self, listed: str, /) -> _Relation: ...

    def limit(self, rows: int, /) -> _Relation: ...


def _is_relation(data: object) -> TypeGuard[_Relation]:
    return all(hasattr(data, ability) for ability in ("project", "columns", "__arrow_c_stream__"))


class DuckRelation(RowReader):
    """A relation of DuckDB, which is run again for each scan and streamed.

    The rows keep an order as far as the query has one.
    """

    name = "duckdb relation"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckRelation | None:
        """Read a relation."""
        return cls(data) if _is_relation(data) else None

    def __init__(self, relation: _Relation) -> None:
        self._relation = relation

    def _wanted(self, columns: Columns) -> _Relation:
        listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        return self._relation.project(listed)

    def names(self) -> list[str]:
        """Give the names of the columns."""
        return list(self._relation.columns)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted."""
        return pa.RecordBatchReader.from_stream(self._wanted(columns).limit(0)).schema

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        yield from pa.RecordBatchReader.from_stream(self._wanted(columns))
