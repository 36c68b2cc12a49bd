"""What a column may hold, decided by its Arrow type alone, before any value is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.moments import holds_times
from sfumato.data.reader import Column, Columns
from sfumato.errors import DataError, printable

AS_DECLARED = {b"sfumato_as_declared": b""}
"""The metadata of a field whose values have no type of their own: each of them is read by itself,
as the domain declares its column.
"""

ENGINE_TYPE = b"sfumato_engine_type"
"""The key of a field's metadata under which a reader says what its engine calls the type."""

_MOST_DIGITS = 76  # of a decimal of Arrow
_NESTED = "a nested type, or one of the engine's own"
_TypeTest = Callable[[pa.DataType], bool]
_KINDS: dict[str, tuple[_TypeTest, ...]] = {
    "null": (pt.is_null,),
    "boolean": (pt.is_boolean,),
    "number": (pt.is_integer, pt.is_floating, pt.is_decimal),
    "text": (pt.is_string, pt.is_large_string, pt.is_string_view),
    "bytes": (pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary, pt.is_binary_view),
    "time": (holds_times,),
}


def _own_name(type_: pa.DataType) -> str:
    """What a type is called that no column may have."""
    if (named := getattr(type_, "type_name", None)) is not None:
        return printable(str(named))  # an engine's own
    # Readers write an empty one, or a list of nothing, for types that they do not know.
    if pt.is_struct(type_):
        return "struct" if type_.num_fields else _NESTED
    if pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_):
        return _NESTED if pt.is_null(type_.value_type) else "list"
    tests = {"map": pt.is_map, "union": pt.is_union, "time": pt.is_time, "interval": pt.is_interval}
    plain = str(type_) if pt.is_primitive(type_) else _NESTED
    return next((name for name, is_of in tests.items() if is_of(type_)), plain)


def _kind(type_: pa.DataType) -> str:
    for kind, tests in _KINDS.items():
        if any(test(type_) for test in tests):
            return kind
    return "other"


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values: for a dictionary column, that of its dictionary."""
    return type_.value_type if pt.is_dictionary(type_) or pt.is_run_end_encoded(type_) else type_


def type_name(type_: pa.DataType) -> str:
    """What an error calls a type.

    It leaves out names of fields and numbers of digits, which an engine may have read off the
    values.
    """
    plain = plain_type(type_)
    if pt.is_decimal(plain):
        return "decimal"
    if _kind(plain) == "other":
        return _own_name(plain)
    return str(type_)


def described_type(field: pa.Field) -> str:
    """What an error says of the type of a column."""
    named = (field.metadata or {}).get(ENGINE_TYPE)
    if named is not None:
        return f"of type {printable(named.decode())}"
    name = type_name(field.type)
    return f"of {name}" if name == _NESTED else f"of type {name}"


def misfit(column: Column, type_: pa.DataType) -> str | None:
    """Say what a column would have to hold instead; None if its type fits."""
    kind = _kind(plain_type(type_))
    if kind == "null":
        return None
    if column is None:
        fits = kind in ("number", "boolean", "text", "bytes", "time")
        return None if fits else "ids of persons are text, numbers, booleans, dates or times"
    if (
        column.calendar is not msgspec.UNSET
        and column.calendar.part == "hour"
        and pt.is_date(plain_type(type_))
    ):
        return "dates have no hour: it is taken from times"
    # Of the numbers, only integers of 64 bits can be keys.
    fits = keys_kind(type_) is not None if column.has_keys else kind in column.value_kinds
    return None if fits else column.declared


def keys_kind(type_: pa.DataType) -> str | None:
    """Say what kind of keys a column holds.

    Returns
    -------
    {"text", "boolean", "number", "null"} or None
        "null" for a column of nothing but nulls, None if its values cannot be keys.
    """
    plain = plain_type(type_)
    kind = _kind(plain)
    if kind == "number":
        return kind if pt.is_integer(plain) and not pt.is_uint64(plain) else None
    return kind if kind in ("text", "boolean", "null") else None


def ids_form(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Choose the one type to which the ids of persons of several files are converted.

    Returns
    -------
    pyarrow.DataType or None
        None if equal ids might become unequal: 0.1 in single precision is not 0.1 in double.
    """
    plain = [plain_type(type_) for type_ in types]
    distinct = list(dict.fromkeys(type_ for type_ in plain if not pt.is_null(type_)))
    if not distinct:
        return pa.null()
    if len(distinct) == 1:
        return distinct[0]
    if all(_kind(type_) == "text" for type_ in distinct):
        return pa.large_string()
    if all(_kind(type_) == "bytes" for type_ in distinct):
        return pa.large_binary()
    if all(pt.is_integer(type_) and not pt.is_uint64(type_) for type_ in distinct):
        return pa.int64()
    return _wide_decimal(distinct) if all(map(pt.is_decimal, distinct)) else None


def _wide_decimal(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """A decimal type that holds all values of some; None if there is none."""
    scale = max(type_.scale for type_ in types)
    digits = scale + max(type_.precision - type_.scale for type_ in types)
    return pa.decimal256(digits, scale) if digits <= _MOST_DIGITS else None


# --- types that change while rows are read ------------------------------------------------------


def of_known_types(
    name: str,
    columns: Columns,
    person: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Pass batches on, and refuse one whose types are not those checked before the charge.

    Whether a cast to the expected type succeeds would depend on the values. And if ids of persons
    changed their type within a table, they would name other persons from there on.

    Parameters
    ----------
    name : str
        What errors call the table.
    columns : Columns
    person : str or None
        The person's column.
    batches : iterator of pyarrow.RecordBatch
    """
    last: pa.Schema | None = None
    ids = pa.null()  # what all ids so far can be converted to
    for batch in batches:
        schema = batch.schema
        if last is None or not schema.equals(last):
            _check_batch(name, columns, schema)
            if person is not None:
                ids = _form_with(name, person, ids, schema.field(person).type)
            last = schema
        yield batch


def _check_batch(name: str, columns: Columns, schema: pa.Schema) -> None:
    for column, asked in columns.items():
        index = schema.get_field_index(column)
        if index < 0:
            raise _changed(name, column, "some of its rows come without the column")
        field = schema.field(index)
        if obstacle := misfit(asked, field.type):
            raise _changed(
                name, column, f"some of its rows are {described_type(field)}, and {obstacle}"
            )


def _form_with(name: str, person: str, ids: pa.DataType, type_: pa.DataType) -> pa.DataType:
    form = ids_form([ids, type_])
    if form is None:
        raise _changed(name, person, "ids of persons are of different types in different rows")
    return form


def _changed(name: str, column: str, obstacle: str) -> DataError:
    return DataError(
        f"{name}, column {column!r}", obstacle, "Write the column with one type in all rows"
    )
