"""What a file's schema says of its columns, and nothing that its rows say."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from pyarrow import types as pt

from sfumato.data.columns import plain_type
from sfumato.data.files import ParquetFile
from sfumato.data.tables import guarded, open_table

Kind: TypeAlias = Literal["whole", "number", "date", "time", "text", "yes or no", "other", "unknown"]


def kinds(path: str | os.PathLike[str]) -> dict[str, Kind]:
    """Name the columns of a file or folder in order, and what kind of values each holds.

    The kinds of a CSV file's columns are unknown: the file declares none.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    part = open_table(path, (), None).parts()[0]
    if not isinstance(part, ParquetFile):
        return dict.fromkeys(part.names(), "unknown")
    schema = guarded(part.name, lambda: part.schema({}))
    return {field.name: _kind(plain_type(field.type)) for field in schema}


def _kind(type_: object) -> Kind:
    tests: dict[Kind, tuple[object, ...]] = {
        "yes or no": (pt.is_boolean,),
        "whole": (pt.is_integer,),
        "number": (pt.is_floating, pt.is_decimal),
        "date": (pt.is_date,),
        "time": (pt.is_timestamp,),
        "text": (pt.is_string, pt.is_large_string),
    }
    return next((kind for kind, several in tests.items() if any(test(type_) for test in several)), "other")  # type: ignore[operator]
