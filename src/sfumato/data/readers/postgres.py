"""Have PostgreSQL count a table, or read its rows for ``sfumato check``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, ClassVar, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.answers.counts import Needs
from sfumato.cube import Cube
from sfumato.data.addresses import TableAddress, postgres_address
from sfumato.data.engines.choosing import ChoosingTable
from sfumato.data.engines.groups import Column
from sfumato.data.engines.key_selection import groups_query, unpacked
from sfumato.data.engines.known_schemas import KnownSchemas
from sfumato.data.engines.postgres import ANY_NUMERIC, Postgres
from sfumato.data.engines.query import CountQuery, can_count, count_query, looked_at
from sfumato.data.engines.readings import Table
from sfumato.data.reader import (
    BATCH_ROWS,
    Ability,
    Columns,
    Progress,
    RowReader,
)
from sfumato.data.readers.postgres_catalog import (
    column_names,
    described,
    reaches_elsewhere,
    state_of,
    what_was_written,
)
from sfumato.data.readers.postgres_server import Server
from sfumato.errors import DataError
from sfumato.mechanisms.key_rules import KEY, KeyRule
from sfumato.privacy.unit import Unit

if TYPE_CHECKING:
    from sfumato.data.readers.postgres_server import Connection

T = TypeVar("T")

_SAME_ROWS_ELSEWHERE = (
    "What the table of PostgreSQL takes from foreign tables and functions was the same in all"
    " queries of this release: nobody wrote to it meanwhile."
)


class PostgresTable(RowReader, ChoosingTable):
    """A table or a view on a server: the server counts it, in one state for all scans of a release.

    The label of a table that has no name changes with every transaction that may have changed it.
    That of a named one changes with what was written to it; see
    ``postgres_catalog.what_was_written``. A view, and a table elsewhere, may show other rows
    without a trace: each such source is a data set of its own, unless it is named.
    """

    in_memory = False
    abilities: ClassVar[frozenset[Ability]] = frozenset(get_args(Ability))

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PostgresTable | None:
        """Read an address such as ``postgresql://host/database?table=trips``."""
        found = postgres_address(data)
        return None if found is None else cls(found)

    def __init__(self, address: TableAddress) -> None:
        self.name = address.table
        self._dialect = Postgres()
        table = ".".join(map(self._dialect.name, address.parts))
        self._server = Server(address.place, address.table, table)
        self._known = KnownSchemas()

    @property
    def _table(self) -> str:
        return self._server.table

    # --- what it has ----------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Give the names of the columns; a user may be one who can read some of them only."""
        table = self._table
        return self._server.looked_at(lambda connection: column_names(connection, table))

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted."""

        def looked_up() -> pa.Schema:
            self._server.looked_at(self._check_encoding)
            listed = ", ".join(map(self._dialect.name, columns)) or "*"
            query = f"SELECT {listed} FROM {self._table} LIMIT 0"
            return self._server.looked_at(lambda connection: described(connection, query))

        return self._known.schema(columns, self._server.snapshot_number, looked_up)

    def _check_encoding(self, connection: Connection) -> None:
        found = connection.execute("SHOW server_encoding").fetchone()
        if found is None or found[0] != "UTF8":
            raise DataError(
                self.name,
                "its database is not encoded in UTF-8, so its texts cannot be compared exactly",
                "Export the table to Parquet, and give that file",
            )

    def label(self, name: str | None) -> str:
        """Identify the state of the data: by the user's name and what was written, or by all."""
        table = self._table

        def looked_up(connection: Connection) -> str:
            state = state_of(connection, table)
            if name is not None:
                if not state.is_local:
                    return name
                return f"{name} {what_was_written(connection, table, state)}"
            if not state.is_local:
                return ""
            found = connection.execute(
                "SELECT system_identifier::text, current_database(), current_user,"
                " pg_current_snapshot()::text FROM pg_control_system()"
            ).fetchone()
            return f"table {state.number} of {found}"

        return self._server.looked_at(looked_up)

    def snapshot(self) -> AbstractContextManager[object]:
        """Hold one read-only transaction, in which every scan sees the same rows."""
        return self._server.snapshot()

    # --- counting -------------------------------------------------------------------------------

    def supports(self, needs: Needs, unit: Unit) -> bool:
        """Whether PostgreSQL can count this. A server that cannot do it for anybody is refused."""
        table = self._table
        self._server.require(choosing=unit.person is not None)
        elsewhere = self._server.looked_at(lambda connection: reaches_elsewhere(connection, table))
        self.same_rows = _SAME_ROWS_ELSEWHERE if elsewhere else ""
        return can_count(needs)

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        """Have the server count each need, in a query of its own and one snapshot."""
        with self.snapshot():
            queries = self._queries(needs, unit)
            return [query.cube(self._run(query, unit, key)) for query in queries]

    def selects(self, needs: Needs, unit: Unit) -> bool:
        """Whether keys are selected from the groups as they come, which then are held nowhere."""
        return can_count(needs)

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterator[pa.RecordBatch]:
        """Have the server count groups, and apply the rule to one batch of them after another."""
        with self.snapshot():
            (query,) = self._queries([needs], unit)
            (keyed,) = (axis.column_name for axis in needs.lattice.axes if axis.has_keys)
            key_type = self.schema({keyed: None}).field(keyed).type
            types = {KEY: pa.string() if pt.is_string(key_type) else key_type}
            groups = self._groups(groups_query(query, self._dialect), types, unit, key)
            yield from unpacked(needs.lattice, rule.shown_of(groups))

    def _queries(self, needs: Sequence[Needs], unit: Unit) -> list[CountQuery]:
        names = looked_at(needs, unit, self._choice, self._conditions)
        schema = self.schema(dict.fromkeys(names))
        table = Table(self._table, {name: schema.field(name).type for name in names})
        return [
            count_query(need, unit, table, self._dialect, self._choice, self._conditions)
            for need in needs
        ]

    def _groups(
        self, query: str, types: Mapping[str, pa.DataType], unit: Unit, key: bytes
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a query as they come, by a cursor on the server: whole numbers, and keys."""

        def asked(action: Callable[[Connection], T]) -> T:
            if unit.person is None:
                return self._server.looked_at(action)
            return self._server.chosen(key, action)

        cursor = asked(lambda connection: connection.cursor(name="sfumato_groups", binary=True))
        asked(lambda _: cursor.execute(query.encode()))
        while rows := asked(lambda _: cursor.fetchmany(BATCH_ROWS)):
            names = [each.name for each in cursor.description or ()]
            yield pa.record_batch(
                {
                    name: pa.array(column, types.get(name, pa.int64()))
                    for name, column in zip(names, zip(*rows, strict=True), strict=True)
                }
            )
        asked(lambda _: cursor.close())

    def _run(self, query: CountQuery, unit: Unit, key: bytes) -> Sequence[Column]:
        def fetched(connection: Connection) -> list[Column]:
            cursor = connection.cursor(binary=True)
            cursor.execute(query.text.encode())
            n_columns = len(cursor.description or ())
            rows = cursor.fetchall()
            return [list(column) for column in zip(*rows, strict=True)] or [[]] * n_columns

        if unit.person is None:
            return self._server.looked_at(fetched)
        return self._server.chosen(key, fetched)

    # --- rows -----------------------------------------------------------------------------------

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        schema = self.schema(columns)
        read = [self._read(self._dialect.name(field.name), field.type) for field in schema]
        query = f"SELECT {', '.join(read)} FROM {self._table}"
        with self.snapshot():
            cursor = self._server.looked_at(
                lambda connection: connection.cursor(name="sfumato_rows", binary=True)
            )
            self._server.looked_at(lambda _: cursor.execute(query.encode()))
            while rows := self._server.looked_at(lambda _: cursor.fetchmany(BATCH_ROWS)):
                arrays = [
                    _array(column, field.type)
                    for column, field in zip(zip(*rows, strict=True), schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            cursor.close()

    def _read(self, column: str, type_: pa.DataType) -> str:
        """A column in a form that Python holds, whatever its value."""
        if pt.is_date(type_):
            return self._dialect.days(column, type_)
        if pt.is_timestamp(type_):
            return self._dialect.microseconds(column, type_)
        if type_ == ANY_NUMERIC:
            held = f"least(greatest({column}, -1e37), 1e37)"
            return f"CASE WHEN {column} <> 'NaN'::numeric THEN round({held}, 38) END"
        if pt.is_decimal(type_):
            return f"nullif({column}, 'NaN'::numeric)"
        return self._dialect.written(column, type_) if pt.is_string(type_) else column


def _array(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    if pt.is_date(type_):
        return pa.array(values, pa.int32()).view(type_)
    if pt.is_timestamp(type_):
        return pa.array(values, pa.int64()).view(type_)
    if pt.is_floating(type_):
        numbers = np.array([np.nan if each is None else each for each in values], np.float64)
        return pa.array(numbers, mask=np.array([each is None for each in values])).cast(type_)
    return pa.array(values, type_)
