"""Have DuckDB count a relation or a table of a file, or read the rows for ``sfumato check``."""

from __future__ import annotations

import builtins
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import FunctionType
from typing import ClassVar, Protocol, TypeGuard, get_args

import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.cube import Cube
from sfumato.data.engines.addresses import TableAddress, duckdb_address
from sfumato.data.engines.choosing import ChoosingTable
from sfumato.data.engines.duckdb import DuckDB, NamedTable, own_name, secrets_table
from sfumato.data.engines.key_selection import groups_query, unpacked
from sfumato.data.engines.known_schemas import KnownSchemas
from sfumato.data.engines.query import CountQuery, can_count, count_query, looked_at
from sfumato.data.engines.readings import Table
from sfumato.data.engines.results import columns_of
from sfumato.data.reader import Ability, Columns, Progress, RowReader
from sfumato.data.readers.duckdb_file import DuckDatabase
from sfumato.errors import DataError
from sfumato.mechanisms.key_rules import KeyRule
from sfumato.privacy.unit import Unit


class _Relation(Protocol):
    """The methods of a relation that are used."""

    columns: Sequence[str]
    types: Sequence[object]

    def query(self, virtual_table_name: str, sql_query: str) -> _Relation: ...


def _is_relation(data: object) -> TypeGuard[_Relation]:
    return all(hasattr(data, ability) for ability in ("project", "columns", "__arrow_c_stream__"))


class _DuckTable(RowReader, ChoosingTable):
    """What a relation and a table of a file have in common.

    Attributes
    ----------
    table : str
        What a query calls the table.
    """

    abilities: ClassVar[frozenset[Ability]] = frozenset(get_args(Ability))
    table: str
    _known: KnownSchemas
    _state_of_functions = ""

    @abstractmethod
    def ask(self, query: str, secrets: NamedTable | None = None) -> pa.RecordBatchReader:
        """Run a query of ``table``, which may also look at a table of secrets."""

    @abstractmethod
    def _form(self) -> object:
        """What does not change as long as the columns and their types do not; None: not known."""

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted."""
        query = f"SELECT {_listed(columns)} FROM {self.table} LIMIT 0"
        return self._known.schema(columns, self._form(), lambda: self.ask(query).schema)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        with self.snapshot():
            schema = self.schema(columns)
            listed = [self._read(field, is_id=columns[field.name] is None) for field in schema]
            yield from self.ask(f"SELECT {', '.join(listed)} FROM {self.table}")

    @staticmethod
    def _read(field: pa.Field, *, is_id: bool) -> str:
        """A column in a form that Arrow holds; ids stay apart in any form."""
        name = DuckDB().name(field.name)
        return name if is_id else f"{DuckDB().held_by_arrow(name, field.type)} AS {name}"

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether DuckDB can count this. A database that makes functions its own is refused."""
        state = self._state()
        if state != self._state_of_functions:
            self._require_functions()
            self._state_of_functions = state
        return can_count(needs)

    def _state(self) -> str:
        """What changes when the database does, as far as it can be told."""
        return "open"

    def _require_functions(self) -> None:
        """Refuse macros in the place of DuckDB's own functions and operators.

        Queries would call them: a macro may make one person's priorities depend on others' rows, or
        change what is counted.
        """
        own = set(self._functions("NOT internal"))
        taken = sorted(own.intersection(self._functions("internal"))) if own else []
        if taken:
            listed = ", ".join(map(repr, taken))
            raise DataError(
                self.name,
                f"macros in its database take the place of functions: {listed}",
                "Drop them, or give them other names",
            )

    def _functions(self, which: str) -> list[str]:
        query = f"SELECT function_name FROM system.main.duckdb_functions() WHERE {which}"
        names: list[str] = self.ask(query).read_all().column(0).to_pylist()
        return names

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        """Have DuckDB count each need, in a query of its own."""
        secrets = secrets_table(key)
        with self.snapshot():
            return [
                query.cube(columns_of(self.ask(query.text, secrets).read_all()))
                for query in self._queries(needs, unit, DuckDB(secrets.name))
            ]

    def selects(self, needs: Needs, unit: Unit) -> bool:
        """Whether keys are selected from the groups as they come, which then are held nowhere."""
        return self.supports(needs, unit)

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterator[pa.RecordBatch]:
        """Have DuckDB count groups, and apply the rule to one batch of them after another."""
        secrets = secrets_table(key)
        dialect = DuckDB(secrets.name)
        with self.snapshot():
            (query,) = self._queries([needs], unit, dialect)
            groups = self.ask(groups_query(query, dialect), secrets)
            yield from unpacked(needs.lattice, rule.shown_of(groups))

    def _queries(self, needs: Sequence[Needs], unit: Unit, dialect: DuckDB) -> list[CountQuery]:
        names = looked_at(needs, unit, self._choice, self._conditions)
        schema = self.schema(dict.fromkeys(names))
        table = Table(self.table, {name: schema.field(name).type for name in names})
        return [
            count_query(need, unit, table, dialect, self._choice, self._conditions)
            for need in needs
        ]


def _asked(relation: _Relation, table: str, query: str) -> _Relation:
    return relation.query(table, query)


def _listed(columns: Columns) -> str:
    return ", ".join(map(DuckDB().name, columns)) or "*"


class DuckRelation(_DuckTable):
    """A relation of DuckDB, which is run again for each query, on its own connection.

    It holds no snapshot over several queries. A transaction would have to be begun on the caller's
    connection, and a query that fails would leave it aborted: nothing that a relation can do ends
    an aborted one.
    """

    name = "duckdb relation"
    same_rows = (
        "The relation of DuckDB had the same rows in all queries of this release: nobody wrote to "
        "its tables or files meanwhile."
    )

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckRelation | None:
        """Read a relation."""
        return cls(data) if _is_relation(data) else None

    def __init__(self, relation: _Relation) -> None:
        self._relation = relation
        # One name for each source: DuckDB before version 2 leaves a temporary view of it.
        self.table = own_name("rows")
        self._known = KnownSchemas()

    def _form(self) -> object:
        # DuckDB itself looks whether a statement has changed them since.
        return [*self._relation.columns, *map(str, self._relation.types)]

    def names(self) -> list[str]:
        """Give the names of the columns."""
        # Each question asks for them first, before its charge: since the last one, anybody may have
        # made macros on the connection.
        self._state_of_functions = ""
        return list(self._relation.columns)

    def ask(self, query: str, secrets: NamedTable | None = None) -> pa.RecordBatchReader:
        """Run a query of the relation."""
        seen: dict[str, object] = {"__builtins__": builtins}
        if secrets is not None:
            seen[secrets.name] = secrets.rows
        # DuckDB finds a table by the name of a variable of the function that asks, so the secrets
        # are in no query. The function sees these variables and no others.
        asked = FunctionType(_asked.__code__, seen)
        return pa.RecordBatchReader.from_stream(asked(self._relation, self.table, query))


_SAME_ROWS_OF_OTHERS = (
    "The view of DuckDB showed the same rows in all queries of this release: nobody wrote to the"
    " other files that it reads meanwhile."
)


class DuckFile(_DuckTable):
    """A table or a view in a file of DuckDB, which is only read."""

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DuckFile | None:
        """Read an address such as ``duckdb:file.db?table=trips``."""
        found = duckdb_address(data)
        return None if found is None else cls(found)

    def __init__(self, address: TableAddress) -> None:
        self._path = Path(address.place).expanduser()
        self.name = f"{address.place}?table={address.table}"
        self.table = ".".join(map(DuckDB().name, address.parts))
        self._file = DuckDatabase(self._path, address.place, address.table)
        self._seen = ("", False)  # a state of the file, and whether the table shows others then
        self._known = KnownSchemas()

    def _form(self) -> object:
        return self._file.snapshot_number

    def names(self) -> list[str]:
        """Give the names of the columns."""
        return list(self.ask(f"SELECT * FROM {self.table} LIMIT 0").schema.names)

    def label(self, name: str | None) -> str:
        """Identify the state of the file, and of what was written and is not yet part of it.

        A view of other files may show other rows without a trace: it is a data set of its own each
        time that it is opened, unless it is named.
        """
        if self._shows_others():
            return "" if name is None else f"{name} table {self.table}"
        return f"{name or self._path.resolve()} table {self.table} {self._seen[0]}"

    def _shows_others(self) -> bool:
        """Whether the table is a view of other files, which may change when this one does not."""
        state = self._file.state()
        if state != self._seen[0]:
            self._seen = (state, self._file.shows_others(self.table))
        return self._seen[1]

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether DuckDB can count this, as for a relation."""
        supported = super().supports(needs, unit)
        self.same_rows = _SAME_ROWS_OF_OTHERS if self._shows_others() else ""
        return supported

    def _state(self) -> str:
        return self._file.state()

    def snapshot(self) -> AbstractContextManager[object]:
        """Hold one read-only transaction, in which every scan sees the same rows."""
        return self._file.snapshot()

    def ask(self, query: str, secrets: NamedTable | None = None) -> pa.RecordBatchReader:
        """Run a query of the table."""
        return self._file.ask(query, secrets)
