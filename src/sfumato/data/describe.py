"""Say what a file's schema tells about its columns, and read columns of numbers for ``choose``.

*The schema*: no row is read.

*Columns of numbers* are read whole and in memory: the records that an epsilon protects. ``sfumato
choose`` tries an adversary on them. Nothing here is released.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from operator import call
from typing import Literal, TypeAlias, cast

import numpy as np
import pyarrow.types as pt

from sfumato.basics import Array
from sfumato.data.columns import numbers
from sfumato.data.fields import TextFile
from sfumato.data.options import NO_OPTIONS, FileOptions
from sfumato.data.reader import Losses, RowReader, guarded, guarded_batches, with_rows
from sfumato.data.readers.csv import CsvFile
from sfumato.data.registry import open_reader
from sfumato.data.schema import first_kind, misfit, plain_type
from sfumato.domain import GridAxis, Interval, LabelAxis, grid_axis
from sfumato.errors import DataError, nearest

Kind: TypeAlias = Literal[
    "whole", "number", "date", "time", "text", "yes or no", "other", "unknown"
]


def kinds(path: str | os.PathLike[str], options: FileOptions = NO_OPTIONS) -> dict[str, Kind]:
    """Name the columns of a file or folder, in order, and the kind of values that each holds.

    A CSV file or a sheet declares no types, and neither does the name of a folder: the kinds of
    such columns are unknown.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    table = open_reader(path, (), None, options)
    kinds_of: dict[str, Kind] = dict.fromkeys(guarded(table.name, table.names), "unknown")
    for field in guarded(table.name, table.schema, {}):
        kinds_of[field.name] = cast("Kind", first_kind(_TESTS, plain_type(field.type)))
    return kinds_of


def likely_separator(path: str | os.PathLike[str], options: FileOptions) -> str | None:
    """Say which sign separates the fields of a CSV file, by its header alone.

    Returns
    -------
    str or None
        None if it is the one that is read by default, or the file is no CSV file.
    """
    table = open_reader(path, (), None, options)
    first = guarded(table.name, table.parts)[0]
    if not isinstance(first, CsvFile) or first.other_separator() is None:
        return None
    return first.likely_separator()


def title_form(path: str | os.PathLike[str], options: FileOptions) -> str | None:
    """Say what makes the names of a CSV file or a sheet look like a title, if anything does.

    It depends on the form of their line alone.
    """
    table = open_reader(path, (), None, options)
    first = guarded(table.name, table.parts)[0]
    return guarded(first.name, first.title_form) if isinstance(first, TextFile) else None


_TESTS = {
    "yes or no": (pt.is_boolean,),
    "whole": (pt.is_integer,),
    "number": (pt.is_floating, pt.is_decimal),
    "date": (pt.is_date,),
    "time": (pt.is_timestamp,),
    "text": (pt.is_string, pt.is_large_string),
}


def read_numbers(
    path: str | os.PathLike[str],
    columns: Sequence[str] | None = None,
    options: FileOptions = NO_OPTIONS,
) -> dict[str, Array]:
    """Read columns of numbers of a file.

    Parameters
    ----------
    path : path
        A Parquet, CSV or Excel file, a directory or a pattern, as in ``source``.
    columns : sequence of str or None
        None: all columns that hold numbers.
    options : FileOptions
        How the file is written.

    Returns
    -------
    dict of str to float64 ndarray of shape (rows,)
        NaN where a number is missing.

    Raises
    ------
    DataError
        If the file cannot be read, or a column is missing or does not hold numbers.
    """
    table = _opened(path, options)
    _require_columns(table)
    if columns is None:
        chosen = _names_of_numbers(table)
    else:
        chosen = [_checked(table, name) for name in columns]
    if not chosen:
        return {}
    axes = {name: _axis(name) for name in chosen}
    pieces: dict[str, list[Array]] = {name: [np.zeros(0)] for name in chosen}
    for batch in guarded_batches(table.name, table.batches, axes):
        for name, read in pieces.items():
            read.append(numbers(batch.column(batch.schema.get_field_index(name)), None))
    return {name: np.concatenate(read) for name, read in pieces.items()}


def other_columns(
    path: str | os.PathLike[str], chosen: Sequence[str], options: FileOptions = NO_OPTIONS
) -> list[str]:
    """Name the columns that were not chosen."""
    table = _opened(path, options)
    return [name for name in guarded(table.name, table.names) if name not in chosen]


def _opened(path: str | os.PathLike[str], options: FileOptions) -> RowReader:
    return with_rows(open_reader(path, (), None, options), "the records")


def _require_columns(table: RowReader) -> None:
    """Refuse a file of one column whose first line seems to have several, of another separator.

    Messages name columns. That one would be the whole line, which may turn out to be data.
    """
    for part in guarded(table.name, table.parts):
        seen = part.other_separator if isinstance(part, CsvFile) else part.misreading
        misreading = guarded(part.name, seen)
        if misreading is not None and len(guarded(part.name, part.names)) == 1:
            raise DataError(part.name, *misreading)


def _axis(name: str) -> GridAxis:
    """Return an axis of numbers, whatever its bounds: it tells readers of text to read numbers."""
    return grid_axis(name, Interval(0, 1), 2)


def _names_of_numbers(table: RowReader) -> list[str]:
    """Name the columns that hold numbers in all files of a table."""
    parts = guarded(table.name, table.parts)
    names = guarded(parts[0].name, parts[0].names)
    return [name for name in names if all(_holds_numbers(part, name) for part in parts)]


def _holds_numbers(part: RowReader, name: str) -> bool:
    if not part.has_schema:
        return guarded(part.name, _parses, part, name)
    axis = _axis(name)
    schema = guarded(part.name, part.schema, {name: axis})
    type_ = plain_type(schema.field(name).type)
    return not pt.is_boolean(type_) and not pt.is_null(type_) and misfit(axis, type_) is None


def _parses(part: RowReader, name: str) -> bool:
    """Tell whether the first piece of a text file holds numbers and no booleans in a column.

    A text file declares no types, so this looks at values.
    """
    losses = Losses()
    booleans = LabelAxis(name, ("true", "false", "True", "False", "TRUE", "FALSE"))
    pieces = part.pieces_noting({name: _axis(name)}, losses)
    batch = next(chain.from_iterable(map(call, pieces)), None)
    texts = next(part.batches({name: booleans}), None)
    if batch is None or texts is None:
        return True
    cells = booleans.lookup(texts[name].unique().to_pylist())
    return not losses.unparsed[name] and not (cells >= 0).any()


def _checked(table: RowReader, name: str) -> str:
    for part in guarded(table.name, table.parts):
        names = guarded(part.name, part.names)
        column = f"{part.name}, column {name!r}"
        if names.count(name) != 1:
            raise DataError(
                column,
                f"there is no one column of that name; {nearest(name, names)}",
                "Name another",
            )
        if not _holds_numbers(part, name):
            raise DataError(column, "it does not hold numbers", "Name columns of numbers")
    return name
