"""Read a relation of DuckDB, or have DuckDB count it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import ClassVar, Protocol, Self, TypeGuard

import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.data.engines.duckdb import DuckDB, secrets_table
from sfumato.data.engines.key_selection import groups_query, unpacked
from sfumato.data.engines.query import CountQuery, can_count, count_query, looked_at
from sfumato.data.engines.readings import Table
from sfumato.data.engines.results import columns_of
from sfumato.data.reader import Ability, Columns, CountingReader, Progress, RowReader
from sfumato.lattice import LatticeAxis
from sfumato.mechanisms.key_rules import KeyRule
from sfumato.privacy.unit import Unit

_VIEW = "sfumato_counted_rows"
"""What a query calls the relation that it is about."""


class _Relation(Protocol):
    """The methods of a relation that are used."""

    columns: Sequence[str]

    def project(self, listed: str, /) -> _Relation: ...

    def limit(self, rows: int, /) -> _Relation: ...

    def query(self, virtual_table_name: str, sql_query: str) -> _Relation: ...


def _is_relation(data: object) -> TypeGuard[_Relation]:
    return all(hasattr(data, ability) for ability in ("project", "columns", "__arrow_c_stream__"))


class DuckRelation(RowReader, CountingReader):
    """A relation of DuckDB: the engine counts it, and hands out its rows for ``sfumato check``.

    The relation is run again for each scan, on its own connection.
    """

    name = "duckdb relation"
    abilities: ClassVar[frozenset[Ability]] = frozenset(("calendar", "column", "missing", "where"))

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckRelation | None:
        """Read a relation."""
        return cls(data) if _is_relation(data) else None

    def __init__(self, relation: _Relation) -> None:
        self._relation = relation
        self._choice: tuple[LatticeAxis, ...] | None = None
        self._conditions: Sequence[tuple[LatticeAxis, Array]] = ()

    def _wanted(self, columns: Columns) -> _Relation:
        listed = ", ".join(map(DuckDB().name, columns))
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

    # --- counting -------------------------------------------------------------------------------

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether DuckDB can count this."""
        return can_count(needs)

    def choosing(
        self,
        choice: Sequence[LatticeAxis],
        conditions: Sequence[tuple[LatticeAxis, Array]],
    ) -> Self:
        """Give the same table, told how rows are chosen."""
        told = copy.copy(self)
        told._choice = tuple(choice)
        told._conditions = conditions
        return told

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        """Have DuckDB count each need, in a query of its own."""
        return [
            query.cube(columns_of(self._run(query.text, key).read_all()))
            for query in self._queries(needs, unit)
        ]

    def selects(self, needs: Needs, unit: Unit) -> bool:
        """Whether keys are selected from the groups as they come, which then are held nowhere."""
        return self.supports(needs, unit)

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterator[pa.RecordBatch]:
        """Have DuckDB count groups, and apply the rule to one batch of them after another."""
        (query,) = self._queries([needs], unit)
        groups = self._run(groups_query(query, DuckDB()), key)
        yield from unpacked(needs.lattice, rule.shown_of(groups))

    def _queries(self, needs: Sequence[Needs], unit: Unit) -> list[CountQuery]:
        names = looked_at(needs, unit, self._choice, self._conditions)
        schema = self.schema(dict.fromkeys(names))
        table = Table(_VIEW, {name: schema.field(name).type for name in names})
        return [
            count_query(need, unit, table, DuckDB(), self._choice, self._conditions)
            for need in needs
        ]

    def _run(self, query: str, key: bytes) -> pa.RecordBatchReader:
        # DuckDB finds the table by the name of this variable, so the secrets are in no query.
        sfumato_secrets = secrets_table(key)
        found = pa.RecordBatchReader.from_stream(self._relation.query(_VIEW, query))
        del sfumato_secrets
        return found
