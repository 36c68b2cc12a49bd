"""Say what a file's schema tells about its columns. No row is read."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.column_types import plain_type
from sfumato.data.file_options import NO_OPTIONS, FileOptions
from sfumato.data.guard import guarded
from sfumato.data.readers.csv import CsvFile
from sfumato.data.registry import open_reader

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
    for field in guarded(table.name, partial(table.schema, {})):
        kinds_of[field.name] = _kind(plain_type(field.type))
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
    if not isinstance(first, CsvFile) or first.misreading() is None:
        return None
    return first.likely_separator()


_TESTS: dict[Kind, tuple[Callable[[pa.DataType], bool], ...]] = {
    "yes or no": (pt.is_boolean,),
    "whole": (pt.is_integer,),
    "number": (pt.is_floating, pt.is_decimal),
    "date": (pt.is_date,),
    "time": (pt.is_timestamp,),
    "text": (pt.is_string, pt.is_large_string),
}


def _kind(type_: pa.DataType) -> Kind:
    for kind, tests in _TESTS.items():
        if any(test(type_) for test in tests):
            return kind
    return "other"
