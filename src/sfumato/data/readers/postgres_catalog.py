"""What the catalogs of a server of PostgreSQL say of a table: its columns, types and state.

The functions take a connection that looks up functions in the server's own schema alone, and the
table as statements name it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from sfumato.data.column_types import ENGINE_TYPE
from sfumato.data.engines.postgres import ANY_NUMERIC

if TYPE_CHECKING:
    from sfumato.data.readers.postgres_server import Connection

_TYPES: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    18: pa.string(),  # "char"
    19: pa.string(),  # name
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1042: pa.string(),  # char(n)
    1043: pa.string(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
    2950: pa.string(),  # uuid
}
"""The types of PostgreSQL, by their numbers, which never change."""

_NUMERIC = 1700
_OTHER = pa.list_(pa.null())
"""Stands for a type that no axis and no person can have."""

# --- columns ------------------------------------------------------------------------------------


def column_names(connection: Connection, table: str) -> list[str]:
    """The names of all columns, also of those that this user may not read."""
    query = (
        "SELECT attname::text FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    return [name for (name,) in connection.execute(query, [table])]


def described(connection: Connection, query: str) -> pa.Schema:
    """The types of what a query gives, which is not run.

    A field of a type that no axis can have says what the server calls the type.
    """
    found = connection.execute(query.encode()).description or []
    own = _own_types(connection, [each.type_code for each in found])
    fields = []
    for each in found:
        if each.type_code in own:
            is_text, named = own[each.type_code]
            type_ = pa.string() if is_text else _OTHER
            metadata = None if is_text else {ENGINE_TYPE: named}
            fields.append(pa.field(each.name, type_, metadata=metadata))
        else:
            fields.append(pa.field(each.name, _known(each.type_code, each.precision, each.scale)))
    return pa.schema(fields)


def _known(number: int, precision: int | None, scale: int | None) -> pa.DataType:
    if number != _NUMERIC:
        return _TYPES[number]
    if precision is None or scale is None or not 0 <= scale <= precision <= 38:
        return ANY_NUMERIC
    return pa.decimal128(precision, scale)


def _own_types(connection: Connection, numbers: Sequence[int]) -> Mapping[int, tuple[bool, str]]:
    """Of types that are not known: whether they are texts, and what the server calls them.

    Enumerations are texts, and so are texts that extensions define.
    """
    unknown = [number for number in numbers if number not in _TYPES and number != _NUMERIC]
    if not unknown:
        return {}
    query = (
        "SELECT oid, typtype = 'e' OR typcategory = 'S', format_type(oid, NULL) FROM pg_type"
        " WHERE oid = ANY(%s)"
    )
    found = connection.execute(query, [unknown])
    return {number: (is_text, named) for number, is_text, named in found}


# --- state --------------------------------------------------------------------------------------

READ_IN_FULL = 2**28
"""Of a table of up to so many bytes, what was written to each row is looked at."""

_STATE = """
    WITH RECURSIVE parts AS (
        SELECT %s::regclass::oid AS part
        UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = part
    )
    SELECT bool_and(relkind IN ('r', 'p', 'm')), min(part::text),
        bool_and(relam IN (0, 2)) AND has_table_privilege(%s::regclass, 'SELECT'),
        sum(pg_relation_size(part)),
        concat_ws(' ',
            sum(pg_stat_get_tuples_inserted(part)), sum(pg_stat_get_tuples_updated(part)),
            sum(pg_stat_get_tuples_deleted(part)), 'of', sum(pg_relation_size(part)), 'bytes',
            CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() END
        ),
        concat_ws(' ',
            'in', string_agg(part || ' ' || relfilenode, ', ' ORDER BY part),
            'columns', sum((
                SELECT sum(xmin::text::bigint) FROM pg_attribute WHERE attrelid = part
            )),
            sum((SELECT sum(xmin::text::bigint) FROM pg_attrdef WHERE adrelid = part))
        )
    FROM parts JOIN pg_class ON oid = part
"""


class TableState(NamedTuple):
    """What the catalogs say of a table and of all of its parts.

    Attributes
    ----------
    is_local : bool
        Whether its rows lie in tables of this database.
    number : str
        The table's own number.
    is_readable : bool
        Whether the user may read the columns of the system, and the tables are of the usual kind.
        Who reads a table needs no rights on its parts.
    n_bytes : int
    written : str
        What the server's statistics say was written. A copy of a server has none, so how far it
        follows the other is said as well.
    form : str
        What changes with the table's columns and files.
    """

    is_local: bool
    number: str
    is_readable: bool
    n_bytes: int
    written: str
    form: str


def state_of(connection: Connection, table: str) -> TableState:
    """Look up the state of a table."""
    row = connection.execute(_STATE, [table, table]).fetchone()
    assert row is not None
    return TableState(*row)


def what_was_written(connection: Connection, table: str, state: TableState) -> str:
    """A text that changes with the rows of a table that lies in this database.

    Each row holds the number of the transaction that wrote it, and later transactions have higher
    numbers. So the number of rows and the sum of these numbers change with whatever is written, at
    once. That takes a scan, so of large tables the server's statistics serve: they lag up to ten
    seconds behind a session that has just written something else, and then sits idle.
    """
    if state.is_readable and state.n_bytes <= READ_IN_FULL:
        rows = _rows(connection, table)
        if rows is not None:
            return f"rows {rows} {state.form}"
    return f"written {state.written} {state.form}"


def _rows(connection: Connection, table: str) -> str | None:
    """How many rows there are, and by which transactions; None where rows do not say it."""
    import psycopg

    query = f"SELECT count(*), sum(xmin::text::bigint) FROM {table}"
    try:
        # Some extensions keep rows in another form, and refuse. That ends no snapshot.
        with connection.transaction():
            count, total = connection.execute(query.encode()).fetchone() or (0, 0)
    except psycopg.errors.FeatureNotSupported:
        return None
    return f"{count} by {total}"


_ELSEWHERE = """
    WITH RECURSIVE seen AS (
        SELECT %s::regclass::oid AS part
        UNION SELECT below.part FROM seen CROSS JOIN LATERAL (
            SELECT inhrelid AS part FROM pg_inherits WHERE inhparent = seen.part
            UNION ALL
            SELECT refobjid FROM pg_class AS of
            JOIN pg_rewrite AS rule ON rule.ev_class = of.oid AND of.relkind = 'v'
            JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
            WHERE of.oid = seen.part AND refclassid = 'pg_class'::regclass
        ) AS below
    )
    SELECT coalesce(bool_or(relkind = 'f' OR relkind = 'v' AND EXISTS (
        SELECT FROM pg_rewrite AS rule
        JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = rule.oid
        JOIN pg_proc AS function ON function.oid = refobjid
        WHERE ev_class = part AND refclassid = 'pg_proc'::regclass AND provolatile = 'v'
    )), false)
    FROM seen JOIN pg_class ON oid = part
"""


def reaches_elsewhere(connection: Connection, table: str) -> bool:
    """Whether rows come from foreign tables, or from functions that may give others each time.

    A snapshot of this server holds no state of these. A materialized view has rows of its own.
    """
    row = connection.execute(_ELSEWHERE, [table]).fetchone()
    assert row is not None
    return bool(row[0])
