"""What the columns of a table may hold and must be called, decided before any value is read.

*Types*: what a column may hold is decided by its Arrow type alone. *Uses*: several axes may read
one column, if they read it alike. Both are looked at before any charge: names of columns and their
declared types decide, and never a value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
import pyarrow as pa

from sfumato.data.dates import holds_times
from sfumato.data.reader import Column, Columns, Reader, guarded
from sfumato.domain import GridAxis, LatticeAxis
from sfumato.errors import DataError, UsageError, nearest, printable

# The metadata of a field whose values have no type of their own: each of them is read by itself, as
# the domain declares its column.
AS_DECLARED = {b"sfumato_as_declared": b""}

# The key of a field's metadata under which a reader says what its engine calls the type.
ENGINE_TYPE = b"sfumato_engine_type"

# The types that hold all values of a kind.
_WIDEST = {"text": pa.large_string(), "bytes": pa.large_binary()}

_NESTED = "a nested type, or one of the engine's own"
TypeTest = Callable[[pa.DataType], bool]
_KINDS: dict[str, tuple[TypeTest, ...]] = {
    "null": (pa.types.is_null,),
    "boolean": (pa.types.is_boolean,),
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "bytes": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    ),
    "time": (holds_times,),
}


def _own_name(type_: pa.DataType) -> str:
    """Return what a type is called that no column may have."""
    if (named := getattr(type_, "type_name", None)) is not None:
        return printable(str(named))  # an engine's own
    # Readers write an empty one, or a list of nothing, for types that they do not know.
    if pa.types.is_struct(type_):
        return "struct" if type_.num_fields else _NESTED
    if (
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    ):
        return _NESTED if pa.types.is_null(type_.value_type) else "list"
    tests = {
        "map": pa.types.is_map,
        "union": pa.types.is_union,
        "time": pa.types.is_time,
        "interval": pa.types.is_interval,
    }
    plain = str(type_) if pa.types.is_primitive(type_) else _NESTED
    return next((name for name, is_of in tests.items() if is_of(type_)), plain)


def first_kind(kinds: Mapping[str, Sequence[TypeTest]], type_: pa.DataType) -> str:
    """Return the first of the kinds of which a type is, by tests of each; "other" if of none."""
    fitting = (kind for kind, tests in kinds.items() if any(test(type_) for test in tests))
    return next(fitting, "other")


_kind = partial(first_kind, _KINDS)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of the values: for a dictionary column, that of its dictionary."""
    return (
        type_.value_type
        if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_)
        else type_
    )


def type_name(type_: pa.DataType) -> str:
    """Return what an error calls a type.

    It leaves out names of fields and numbers of digits, which an engine may have read off the
    values.
    """
    plain = plain_type(type_)
    if pa.types.is_decimal(plain):
        return "decimal"
    if _kind(plain) == "other":
        return _own_name(plain)
    return str(type_)


def described_type(field: pa.Field) -> str:
    """Return what an error says of the type of a column."""
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
        and pa.types.is_date(plain_type(type_))
    ):
        return "dates have no hour: it is taken from times"
    # Of the numbers, only integers of 64 bits can be keys.
    fits = keys_kind(type_) is not None if column.has_keys else kind in column.value_kinds
    return None if fits else column.declared


def remedy_of_misfit(name: str, column: Column, type_: pa.DataType) -> str:
    """Say what to do about a column that does not fit."""
    is_of_labels = column is not None and column.calendar is msgspec.UNSET and column.has_labels
    if is_of_labels and pa.types.is_integer(plain_type(type_)):
        listed = "sf.Categories([1, 2]), or labels = [1, 2] in a plan"
        return f"Declare whole numbers: {listed} (command line: --axis {name}=1..3/1)"
    return "Convert the column, or declare it as what it is"


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
        return kind if _fits_in_int64(plain) else None
    return kind if kind in ("text", "boolean", "null") else None


def ids_form(types: Sequence[pa.DataType]) -> pa.DataType | None:
    """Choose the one type to which the ids of persons of several files are converted.

    Returns
    -------
    pyarrow.DataType or None
        None if equal ids might become unequal: 0.1 in single precision is not 0.1 in double.
    """
    distinct = {*map(plain_type, types)} - {pa.null()}
    if len(distinct) < 2:
        return next(iter(distinct), pa.null())
    kind, *others = {*map(_kind, distinct)}
    if kind in _WIDEST and not others:
        return _WIDEST[kind]
    if all(map(_fits_in_int64, distinct)):
        return pa.int64()
    if not all(map(pa.types.is_decimal, distinct)):
        return None
    scale = max(type_.scale for type_ in distinct)
    digits = scale + max(type_.precision - type_.scale for type_ in distinct)
    # A decimal of Arrow has no more digits.
    return pa.decimal256(digits, scale) if digits <= 76 else None


def _fits_in_int64(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) and not pa.types.is_uint64(type_))


# --- types that change while rows are read ------------------------------------------------------


class KnownTypes:
    """Refuses batches whose types are not those that were checked before the charge.

    Whether a cast to the expected type succeeds would depend on the values. And if ids of persons
    changed their type within a table, they would name other persons from there on.

    Parameters
    ----------
    name : str
        What errors call the table.
    columns : Columns
    person : str or None
        The person's column.
    """

    def __init__(self, name: str, columns: Columns, person: str | None) -> None:
        self._name = name
        self._columns = columns
        self._person = person
        self._last: pa.Schema | None = None
        self._ids = pa.null()  # what all ids so far can be converted to
        self._lock = threading.Lock()

    def checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Pass the next batch on, or refuse it by its schema."""
        schema = batch.schema
        # Several threads read at once, and the ids must be of one form over what all of them read.
        with self._lock:
            if self._last is not None and schema.equals(self._last):
                return batch
            for column, use in self._columns.items():
                index = schema.get_field_index(column)
                if index < 0:
                    raise self._changed(column, "some of its rows come without the column")
                field = schema.field(index)
                if obstacle := misfit(use, field.type):
                    held = described_type(field)
                    raise self._changed(column, f"some of its rows are {held}, and {obstacle}")
            if self._person is not None:
                ids = ids_form([self._ids, schema.field(self._person).type])
                if ids is None:
                    obstacle = "ids of persons are of different types in different rows"
                    raise self._changed(self._person, obstacle)
                self._ids = ids
            self._last = schema
        return batch

    def _changed(self, column: str, obstacle: str) -> DataError:
        return DataError(
            f"{self._name}, column {column!r}",
            obstacle,
            "Write the column with one type in all rows",
        )


# --- columns that several axes read -------------------------------------------------------------


def shared(first: LatticeAxis, second: LatticeAxis) -> LatticeAxis:
    """Tell how a column is read that two axes are about.

    Raises
    ------
    UsageError
        If one of them reads the column as values of another kind.
    """
    if first.name == second.name or _readings(first) == _readings(second):
        return second
    if _reads_times(first) and _reads_times(second):
        # Moments say more than times: whether each of them has a zone.
        return first if first.calendar is not msgspec.UNSET else second
    raise UsageError(
        f"axes {first.name!r} and {second.name!r}",
        f"both are about the column {second.column_name!r}, and read it as values of another kind",
        "Ask them one after another, or write the column twice, under two names",
    )


def _readings(axis: LatticeAxis) -> object:
    """Return what decides how the fields of a column are read."""
    return axis.has_keys, axis.has_labels, axis.listed, axis.value_kinds, axis.calendar


def _reads_times(axis: LatticeAxis) -> bool:
    return axis.value_kinds == {"time"}


def counts_days(column: LatticeAxis) -> bool:
    """Tell whether a column may hold a period: it is read as dates, or a calendar is made of it."""
    if column.calendar is not msgspec.UNSET:
        return True
    return column.has_edges and column.scale.kind == "date"


def dates(name: str) -> GridAxis:
    """Return an axis of all dates that Python knows, by which readers read a column as dates."""
    return GridAxis(name, -719_162.0, 2_932_897.0, 1, "day")


def check_names(table: Reader, columns: Iterable[str], person: Sequence[str] = ()) -> None:
    """Refuse a table that has not each of these columns once; some of them name the person."""
    names = guarded(table.name, table.names)
    for name in columns:
        if name not in names:
            explained = guarded(table.name, table.misreading)
            header = not table.has_schema
            obstacle, remedy = explained or _no_column(name, names, header=header)
            if explained is None and name in person:
                remedy = "Give person the name of a column"
            if name in table.index_names():
                obstacle = "it is the index of the frame, and no column"
                remedy = "Give frame.reset_index()"
            raise DataError(f"{table.name}, column {name!r}", obstacle, remedy)
        if names.count(name) > 1:
            raise DataError(
                f"{table.name}, column {name!r}",
                "several columns have that name",
                "Rename the columns",
            )


def check_person_names(table: Reader, person: Sequence[str]) -> None:
    """Find a misspelt person at once: an account is bound to the person's column for good.

    What else is wrong with the table is said when a question is asked, before the charge.
    """
    if not person:
        return
    try:
        # The part knows whether its first line may hold data, which is not quoted then.
        first = guarded(table.name, table.parts)[0]
        guarded(first.name, first.names)
    except DataError:
        return
    check_names(first, person, person)


def _no_column(name: str, names: Sequence[str], header: bool) -> tuple[str, str]:
    """Say what stands in the way, and what to do, if a table lacks a column.

    The first line of a file may hold data: it is quoted only where it nearly is the name asked for.
    """
    suggestion = nearest(name, names)
    if header and not suggestion.startswith("did you mean"):
        return (
            "there is no column of that name in the first line",
            "Name the axis as the column is named, or give the file a header; if lines stand above "
            "it, add header_row=3 (command line: --header-row 3)",
        )
    return f"there is no column of that name; {suggestion}", "Name the axis as the column is named"
