"""What a table is, which kind an object is, and how errors of engines are kept from quoting values.

A table knows the names of its columns, the types of those that are wanted, and its rows in batches.
Errors of engines quote values of the data. They are caught here, reduced to their kind, and raised again as a
``DataError`` that has neither cause nor context.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from sfumato.data.columns import Column
from sfumato.errors import DataError, InternalError, SfumatoError, UsageError

T = TypeVar("T")
Columns = Mapping[str, Column]
BATCH_ROWS = 2**16


class Part(Protocol):
    """Where rows come from, always in the same order."""

    name: str
    in_memory: bool
    has_schema: bool

    def names(self) -> list[str]:
        """Names of the columns; where there is no schema, of what stands in their place."""

    def schema(self, columns: Columns) -> Any:
        """Arrow schema with at least the columns asked for, which exist."""

    def rows(self) -> int | None:
        """How many rows there are, if that is known without reading them: for progress bars only."""

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Arrow record batches with at least the columns asked for."""


class Table(Protocol):
    """What a source reads from: a table, or several of one form, one after the other."""

    name: str
    in_memory: bool

    def parts(self) -> list[Part]:
        """The tables that it is made of, each to be checked: itself, if it is one."""

    def label(self, name: str | None) -> str:
        """What tells this state of the data from others; a table in memory is always given a name."""

    def rows(self) -> int | None:
        """How many rows there are, if that is known without reading them."""

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Arrow record batches with at least the columns asked for."""


class Single:
    """A table that is not made of others."""

    has_schema = True

    def parts(self) -> list[Part]:
        """Itself."""
        return [self]  # type: ignore[list-item]

    def label(self, name: str | None) -> str:
        """The name that it is given."""
        return name or ""


def open_table(data: object, axes: Sequence[str], person: str | None) -> Table:
    """Choose how to read what ``source`` was given, by what it can do: no engine is imported for it."""
    from sfumato.data import frames
    from sfumato.data.files import Files

    if isinstance(data, str | os.PathLike):
        return Files([data], person)
    if isinstance(data, list | tuple) and data and all(isinstance(each, str | os.PathLike) for each in data):
        return Files(data, person)
    if isinstance(data, np.ndarray):
        return frames.Array(data, axes)
    if isinstance(data, pa.RecordBatch):
        return frames.Stream(pa.Table.from_batches([data]))
    package = type(data).__module__.partition(".")[0]
    for kind, (home, abilities) in frames.KINDS.items():
        if package == home and all(hasattr(data, ability) for ability in abilities):
            return kind(data)
    if hasattr(data, "__arrow_c_stream__"):
        return frames.Stream(data)
    raise UsageError(
        f"a source of type {type(data).__name__}",
        "it is no path, no array and has no Arrow stream",
        "Give a Parquet or CSV file, a pyarrow, polars or pandas table, or a numpy array",
    )


# --- errors of engines --------------------------------------------------------------------------------------------------


def guarded(name: str, action: Callable[[], T]) -> T:
    """Do something with an engine; if it fails, say what kind of failure it was, and nothing that it quotes."""
    try:
        return action()
    except (SfumatoError, InternalError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # engines have trees of errors of their own, and some panic
        obstacle, remedy = _kind_of(error)
    raise DataError(name, obstacle, remedy)  # outside the except block: no context, which would quote values


def guarded_batches(name: str, open_: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Iterate as the engine does, guarded at each step."""
    batches = guarded(name, lambda: iter(open_()))
    while (batch := guarded(name, lambda: next(batches, None))) is not None:
        yield batch


_KINDS: tuple[tuple[str, str, str], ...] = (
    (
        r"zlib|[Gg]zip|compressed|decompress",
        "its compression is damaged, or the file is cut off",
        "Copy it again, and test it with gzip -t",
    ),
    (
        r"[Pp]arquet|magic bytes|footer",
        "it is not a Parquet file, or it is damaged",
        "Check the file, or give a CSV file a name ending in .csv",
    ),
)


def _kind_of(error: BaseException) -> tuple[str, str]:
    if isinstance(error, FileNotFoundError):
        return "there is no such file", "Check the path"
    if isinstance(error, PermissionError):
        return "the file may not be read", "Ask for permission to read it"
    if isinstance(error, IsADirectoryError):
        return "it is a directory", "Name one file"
    if isinstance(error, MemoryError):
        return "there is not enough memory", "Give a Parquet file, which is read in parts"
    for pattern, obstacle, remedy in _KINDS:
        if re.search(pattern, str(error)[:200]):
            return obstacle, remedy
    obstacle = f"it cannot be read ({type(error).__name__}; the words are withheld, since engines quote values)"
    return obstacle, "Check the table with the tool that wrote it"


def stat_file(path: Path, name: str) -> os.stat_result:
    """Look at a file without opening it."""
    status = guarded(name, path.stat)
    if path.is_dir():
        raise DataError(name, "it is a directory", "Name files")
    return status


def check_file(path: Path, name: str) -> None:
    """See that a file is there, can be read and holds something."""
    empty = stat_file(path, name).st_size == 0
    guarded(name, lambda: path.open("rb").close())
    if empty:
        raise DataError(name, "the file is empty", "Check what wrote it")
