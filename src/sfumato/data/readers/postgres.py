"""Read a table on a server of PostgreSQL: its catalogs say what it has, and record batches follow.

Columns are sent in forms that are exact in every type:

* A ``numeric`` is sent as text without zeros at its end, so that equal numbers are one person. On
  an axis it is read as the nearest double, and NaN is missing.
* Texts that are padded or listed (``char(n)``, enumerations) and a ``uuid`` are sent as text.
* Dates and times are sent as they are. The driver counts them from 1970 on and not from 2000, and
  what is beyond 64 bits (32 for dates) begins again in the far past: "infinity", and times from the
  year 294247 on. As a person or part of one that is still one to one. On an axis it is put back
  behind all other times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.data.addresses import TableAddress, postgres_address
from sfumato.data.column_types import ENGINE_TYPE
from sfumato.data.fields import parse
from sfumato.data.reader import Column, Columns, RowReader, ids_name, persons_column
from sfumato.data.readers.postgres_server import COLUMN_GONE, Server, literal, quoted
from sfumato.errors import DataError

_SAME_ROWS_ELSEWHERE = (
    "What the table of PostgreSQL takes from foreign tables and functions was the same in all"
    " queries of this release: nobody wrote to it meanwhile."
)

# --- types --------------------------------------------------------------------------------------

_AS_THEY_ARE: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    19: pa.string(),  # name
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1043: pa.string(),  # varchar
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
}
"""The types of PostgreSQL, by their numbers, which never change."""

_AS_TEXT = (18, 1042, 2950)  # "char", char(n), uuid
_NUMERIC = 1700
_ANY_NUMERIC = pa.decimal256(76, 38)
"""Stands for a numeric that is not read."""
_OTHER = pa.list_(pa.null())
"""Stands for a type that no axis and no person can have."""

_SHIFT = {pa.int32(): 10_957, pa.int64(): 10_957 * 86_400 * 10**6}
"""The days, and the microseconds, from 1970-01-01 to 2000-01-01."""

_COLUMNS = """
    WITH RECURSIVE listed AS (
        SELECT attnum, attname::text AS name, atttypid AS type FROM pg_attribute
        WHERE attrelid = {}::regclass AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT attnum, name, typbasetype FROM listed JOIN pg_type ON oid = type
        WHERE typtype = 'd'
    )
    SELECT name, type::int8 AS number, typtype = 'e' OR typcategory = 'S' AS is_text,
        format_type(type, NULL) AS called
    FROM listed JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY attnum
"""
"""The columns, also those that this user may not read. Of a domain, the type that it is over."""


class _Field(NamedTuple):
    """A column of the table: its name, and what the catalogs say of its type."""

    name: str
    number: int
    is_text: bool
    called: str

    @property
    def sent(self) -> str:
        """The column in a query."""
        name = quoted(self.name)
        if self.number == _NUMERIC:
            return f"trim_scale(nullif({name}, 'NaN'))::text"
        return name if self.number in _AS_THEY_ARE else f"{name}::text"


def _arrow_field(field: _Field, columns: Columns) -> pa.Field:
    """What is handed out; a type that nothing can have is called as the server calls it."""
    if field.number == _NUMERIC:
        return pa.field(field.name, _numeric_type(field.name, columns))
    if field.number in _AS_THEY_ARE:
        return pa.field(field.name, _AS_THEY_ARE[field.number])
    if field.number in _AS_TEXT or field.is_text:
        return pa.field(field.name, pa.string())
    return pa.field(field.name, _OTHER, metadata={ENGINE_TYPE: field.called})


def _numeric_type(name: str, columns: Columns) -> pa.DataType:
    """What a numeric is handed out as; on an axis that is none of numbers, as what it is."""
    column = columns.get(name)
    if column is None:
        return pa.string() if name in columns else _ANY_NUMERIC
    if column.has_keys or "number" not in column.value_kinds:
        return _ANY_NUMERIC
    return pa.int64() if column.has_labels else pa.float64()


def _on_axis(values: pa.Array, column: Column, type_: pa.DataType) -> pa.Array:
    """What was sent, as it is read on an axis."""
    if column is not None and (pt.is_date(values.type) or pt.is_timestamp(values.type)):
        return _put_back(values)
    if column is None or values.type == type_:
        return values
    if column.has_labels:
        return _labels(values, column.listed)
    return parse(values.cast(pa.binary()), column)


def _put_back(times: pa.Array) -> pa.Array:
    """Put what began again in the far past behind all other times; "-infinity" is before them."""
    ticks = times.view(pa.int32() if pt.is_date32(times.type) else pa.int64())
    most = 2 ** (ticks.type.bit_width - 1) - 1
    began_again = pc.less(ticks, pa.scalar(-most - 1 + _SHIFT[ticks.type], ticks.type))
    return pc.if_else(began_again, pa.scalar(most, ticks.type), ticks).view(times.type)


def _labels(texts: pa.Array, listed: Sequence[object]) -> pa.Array:
    """Read numbers as the whole numbers that are listed; all others become the same one."""
    numbers = [label for label in listed if isinstance(label, int)]
    unlisted = next(number for number in count() if number not in numbers)
    place = pc.index_in(texts, pa.array(map(str, numbers), pa.string())).fill_null(len(numbers))
    place = pc.if_else(texts.is_valid(), place, None)
    return pa.array([*numbers, unlisted], pa.int64()).take(place)


# --- state --------------------------------------------------------------------------------------

_FACTS = """
    WITH RECURSIVE seen AS (
        SELECT {table}::regclass::oid AS part
        UNION SELECT below.part FROM seen CROSS JOIN LATERAL (
            SELECT inhrelid AS part FROM pg_inherits WHERE inhparent = seen.part
            UNION ALL
            SELECT refobjid FROM pg_class AS of
            JOIN pg_rewrite AS rule ON rule.ev_class = of.oid AND of.relkind = 'v'
            JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
            WHERE of.oid = seen.part AND refclassid = 'pg_class'::regclass
        ) AS below
    )
    SELECT current_setting('server_encoding') = 'UTF8' AS is_utf8,
        row_security_active({table}::regclass::oid) AS hides_rows,
        coalesce(bool_or(relkind = 'f' OR relkind = 'v' AND EXISTS (
            SELECT FROM pg_rewrite AS rule
            JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
            JOIN pg_proc AS function ON function.oid = refobjid
            WHERE ev_class = part AND refclassid = 'pg_proc'::regclass AND provolatile = 'v'
        )), false) AS reaches_elsewhere
    FROM seen JOIN pg_class ON oid = part
"""
"""Whether texts can be compared, whether a policy hides rows from this user, and whether rows come
from foreign tables, or from functions that may give others each time: a snapshot of this server
holds no state of these. A materialized view has rows of its own."""

READ_IN_FULL = 2**28
"""Of a table of up to so many bytes, what was written to each row is looked at."""

_STATE = """
    WITH RECURSIVE parts AS (
        SELECT {table}::regclass::oid AS part
        UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = part
    )
    SELECT bool_and(relkind IN ('r', 'p', 'm')) AS is_local, min(part::text) AS number,
        bool_and(relam IN (0, 2)) AND has_table_privilege({table}::regclass, 'SELECT')
            AND sum(pg_relation_size(part)) <= {most} AS is_readable,
        concat_ws(' ',
            sum(pg_stat_get_tuples_inserted(part)), sum(pg_stat_get_tuples_updated(part)),
            sum(pg_stat_get_tuples_deleted(part)), 'of', sum(pg_relation_size(part)), 'bytes',
            CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END
        ) AS written,
        concat_ws(' ',
            'in', string_agg(part || ' ' || relfilenode, ', ' ORDER BY part),
            'columns', sum((
                SELECT sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid = part
            )),
            sum((SELECT sum(xmin::text::bigint) FROM pg_attrdef WHERE adrelid = part))
        ) AS form
    FROM parts JOIN pg_class ON oid = part
"""
"""What the catalogs say of a table and of all of its parts.

It says whether its rows lie in tables of this database, and the table's number; whether all rows
can be looked at (the user may read the columns of the system, and the tables are of the usual kind
and not large; who reads a table needs no rights on its parts); what the server's statistics say was
written (a copy of a server has none, so how far it follows the other is said as well); and what
changes with the table's columns and files.
"""

_WRITTEN = "SELECT count(*) AS n, sum(xmin::text::bigint)::text AS total FROM "
_SERVER = """
    SELECT system_identifier::text AS server, current_database()::text AS database,
        current_user::text AS reader, pg_current_snapshot()::text AS snapshot
    FROM pg_control_system()
"""


class PostgresTable(RowReader):
    """A table or a view on a server, which shows one state of it to all scans of a release.

    The label of a table that has no name changes with every transaction that may have changed it.
    That of a named one changes with what was written to it; see ``_what_was_written``. A view, and
    a table elsewhere, may show other rows without a trace: each such source is a data set of its
    own, unless it is named.
    """

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PostgresTable | None:
        """Read an address such as ``postgresql://host/database?table=trips``."""
        address = postgres_address(data)
        return None if address is None else cls(address)

    def __init__(self, address: TableAddress) -> None:
        self.name = address.table
        table = ".".join(map(quoted, address.parts))
        self._server = Server(address.place, address.table, table)

    def names(self) -> list[str]:
        """Give the names of the columns; a user may be one who can read some of them only."""
        return [field.name for field in self._fields()]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted, or of all.

        It tries out whether the user may read them, and finds whether rows come from elsewhere.
        """
        (facts,) = self._server.answer(_FACTS.format(table=self._literal)).to_pylist()
        if not facts["is_utf8"]:
            raise DataError(
                self.name,
                "its database is not encoded in UTF-8, so its texts cannot be compared exactly",
                "Export the table to Parquet, and give that file",
            )
        if facts["hides_rows"]:
            raise DataError(
                self.name,
                "a policy of row-level security hides rows from this user",
                "Count as a user whom no policy concerns (BYPASSRLS), or name a view of the rows"
                " that you mean, whose owner is such a user",
            )
        self.same_rows = _SAME_ROWS_ELSEWHERE if facts["reaches_elsewhere"] else ""
        fields = self._wanted(columns) if columns else self._fields()
        if columns:
            self._server.answer(f"{self._query(fields)} LIMIT 0")
        return pa.schema([_arrow_field(field, columns) for field in fields])

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted; ids that no axis reads as they are come apart from it."""
        with self.snapshot():
            fields = self._wanted(columns)
            handed_out = [_arrow_field(field, columns) for field in fields]
            for batch in self._server.stream(self._query(fields)):
                arrays = {}
                for sent, field in zip(batch.columns, handed_out, strict=bool(columns)):
                    column = columns[field.name]
                    arrays[field.name] = _on_axis(sent, column, field.type)
                    if column is not None and field.name == persons_column(columns):
                        arrays[ids_name(field.name)] = sent
                yield pa.record_batch(arrays) if arrays else batch

    def snapshot(self) -> AbstractContextManager[object]:
        """Hold one read-only transaction, in which every scan sees the same rows."""
        return self._server.snapshot()

    def label(self, name: str | None) -> str:
        """Identify the state of the data: by the user's name and what was written, or by all."""
        query = _STATE.format(table=self._literal, most=READ_IN_FULL)
        (state,) = self._server.answer(query).to_pylist()
        if not state["is_local"]:
            return name or ""
        if name is not None:
            return f"{name} {self._what_was_written(state)}"
        (server,) = self._server.answer(_SERVER).to_pylist()
        return f"table {state['number']} of {tuple(server.values())}"

    def _what_was_written(self, state: Mapping[str, object]) -> str:
        """A text that changes with the rows of a table that lies in this database.

        Each row holds the number of the transaction that wrote it, and later transactions have
        higher numbers. So the number of rows and the sum of these numbers change with whatever is
        written, at once. That takes a scan, so of large tables the server's statistics serve: they
        lag up to ten seconds behind a session that has just written something else, and then sits
        idle. They also serve where an extension keeps rows in a form that has no such numbers.
        """
        if state["is_readable"]:
            rows = self._server.answer_if_supported(_WRITTEN + self._server.table)
            if rows is not None:
                n_rows, total = rows.to_pylist()[0].values()
                return f"rows {n_rows} by {total} {state['form']}"
        return f"written {state['written']} {state['form']}"

    # --- queries --------------------------------------------------------------------------------

    @property
    def _literal(self) -> str:
        return literal(self._server.table)

    def _fields(self) -> list[_Field]:
        listed = self._server.answer(_COLUMNS.format(self._literal))
        return [_Field(**row) for row in listed.to_pylist()]

    def _wanted(self, columns: Columns) -> list[_Field]:
        fields = {field.name: field for field in self._fields()}
        if not columns.keys() <= fields.keys():
            raise DataError(self.name, *COLUMN_GONE)
        return [fields[name] for name in columns]

    def _query(self, fields: Sequence[_Field]) -> str:
        listed = ", ".join(field.sent for field in fields)
        return f"SELECT {listed or 'true'} FROM {self._server.table}"
