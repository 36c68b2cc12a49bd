"""Opening tables: Parquet and CSV files, anything with an Arrow stream, numpy arrays.

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
import pyarrow.parquet as pq

from sfumato.data.columns import Column
from sfumato.domain import LabelAxis
from sfumato.errors import DataError, InternalError, SfumatoError, UsageError

T = TypeVar("T")
Columns = Mapping[str, Column]
BATCH_ROWS = 2**16


class Table(Protocol):
    """Where rows come from."""

    name: str
    in_memory: bool

    def names(self) -> list[str]:
        """Names of the columns."""

    def schema(self, columns: Columns) -> Any:
        """Arrow schema with at least the columns asked for, which exist."""

    def rows(self) -> int | None:
        """How many rows there are, if that is known without reading them: for progress bars only."""

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Arrow record batches with at least the columns asked for."""


def open_table(data: object, axes: Sequence[str], person: str | None) -> Table:
    """Choose how to read what ``source`` was given."""
    from sfumato.data.csvfile import CsvFile

    if isinstance(data, str | os.PathLike):
        path = Path(data).expanduser()
        suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
        return CsvFile(path, person) if ".csv" in suffixes[-1:] or suffixes == [".csv", ".gz"] else ParquetFile(path)
    if isinstance(data, np.ndarray):
        return Array(data, axes)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns"):
        return PandasFrame(data)
    if isinstance(data, pa.RecordBatch):
        return Stream(pa.Table.from_batches([data]))
    if hasattr(data, "__arrow_c_stream__"):
        return Stream(data)
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
    except (SfumatoError, InternalError):
        raise
    except Exception as error:  # engines have trees of errors of their own
        obstacle, remedy = _kind_of(error)
    raise DataError(name, obstacle, remedy)  # outside the except block: no context, which would quote values


def guarded_batches(name: str, open_: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Iterate as the engine does, guarded at each step."""
    batches = guarded(name, lambda: iter(open_()))
    while (batch := guarded(name, lambda: next(batches, None))) is not None:
        yield batch


_KINDS: tuple[tuple[str, str, str], ...] = (
    (r"CSV parse error: Expected", "the file is ragged: rows differ in their number of fields", "Repair the file, or write it as Parquet"),
    (r"straddling object", "a row is longer than a block of 4 MB", "Check the quotation marks of the file, or write it as Parquet"),
    (r"Empty CSV file|CSV file or block", "the file is empty: it has no header", "Write the names of the columns in the first line"),
    (r"CSV", "a column holds text that is not of the declared type", "Repair the file, or declare the column as what it is"),
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


def stat_file(path: Path) -> os.stat_result:
    """Look at a file without opening it."""
    status = guarded(str(path), path.stat)
    if path.is_dir():
        raise DataError(str(path), "it is a directory", "Name one file")
    return status


def check_file(path: Path) -> None:
    """See that a file is there, can be read and holds something."""
    empty = stat_file(path).st_size == 0
    guarded(str(path), lambda: path.open("rb").close())
    if empty:
        raise DataError(str(path), "the file is empty", "Check what wrote it")


# --- tables -------------------------------------------------------------------------------------------------------------


class ParquetFile:
    """A Parquet file, read by batches of the columns wanted, without holding what was read."""

    in_memory = False

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def _open(self, labels: Sequence[str] = ()) -> Any:
        check_file(self.path)
        return guarded(self.name, lambda: pq.ParquetFile(self.path, pre_buffer=False, read_dictionary=list(labels) or None))

    def names(self) -> list[str]:
        """Names of the columns, from the footer."""
        with self._open() as file:
            return list(guarded(self.name, lambda: file.schema_arrow.names))

    def schema(self, columns: Columns) -> Any:
        """Types of all columns, from the footer."""
        with self._open() as file:
            return guarded(self.name, lambda: file.schema_arrow)

    def rows(self) -> int | None:
        """Number of rows, from the footer."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read row group by row group; labels and ids stay in the dictionary form that the file has."""
        coded = [name for name, column in columns.items() if column is None or isinstance(column, LabelAxis)]
        with self._open(coded) as file:
            yield from guarded_batches(self.name, lambda: file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=True))


class Stream:
    """Anything that speaks the Arrow C stream protocol. What can be read only once is opened once."""

    in_memory = True

    def __init__(self, data: Any) -> None:
        self._data = data
        self.name = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
        self._reader: Any = None
        self._spent = False

    def _open(self) -> Any:
        if isinstance(self._data, pa.Table):
            return self._data.to_reader()
        if self._spent and isinstance(self._data, pa.RecordBatchReader):
            raise DataError(self.name, "a reader can be read once, and it has been", "Give a table, or a file")
        if self._reader is None:
            own = isinstance(self._data, pa.RecordBatchReader)
            self._reader = self._data if own else guarded(self.name, lambda: pa.RecordBatchReader.from_stream(self._data))
        return self._reader

    def names(self) -> list[str]:
        """Names of the columns."""
        return list(guarded(self.name, lambda: self._open().schema.names))

    def schema(self, columns: Columns) -> Any:
        """Types of all columns."""
        return guarded(self.name, lambda: self._open().schema)

    def rows(self) -> int | None:
        """Number of rows, where the object has a length."""
        return len(self._data) if hasattr(self._data, "__len__") else None

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read the stream."""
        reader = self._open()
        self._reader, self._spent = None, True
        for batch in guarded_batches(self.name, lambda: reader):
            yield batch.select(list(columns))


class PandasFrame:
    """A pandas frame: only the columns wanted are converted, and its index is no column."""

    in_memory = True
    name = "pandas DataFrame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def names(self) -> list[str]:
        """Names of the columns that have a text for a name."""
        return [name for name in self._frame.columns if isinstance(name, str)]

    def _table(self, columns: Columns) -> Any:
        return guarded(self.name, lambda: pa.Table.from_pandas(self._frame[list(columns)], preserve_index=False))

    def schema(self, columns: Columns) -> Any:
        """Types of the columns wanted."""
        return self._table(columns).schema

    def rows(self) -> int | None:
        """Number of rows."""
        return len(self._frame)

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Convert and read."""
        yield from self._table(columns).to_batches()


class Array:
    """A numpy array of shape (rows, axes), its columns in the domain's order."""

    in_memory = True
    name = "numpy array"

    def __init__(self, array: np.ndarray, axes: Sequence[str]) -> None:
        if array.ndim != 2 or array.shape[1] != len(axes):
            raise UsageError(
                f"a numpy array of {array.ndim} dimensions" if array.ndim != 2 else f"a numpy array of {array.shape[1]} columns",
                f"the domain has {len(axes)} axes, and the array needs one column for each: shape (n, {len(axes)})",
                "Reshape the array, or declare the axes that it has",
            )
        self._array, self._axes = array, list(axes)

    def names(self) -> list[str]:
        """Names of the domain's axes."""
        return self._axes

    def schema(self, columns: Columns) -> Any:
        """The type of the array, for each column."""
        return self._batch(0, 0, columns).schema

    def _batch(self, start: int, stop: int, columns: Columns) -> Any:
        if self._array.dtype.kind not in "biufMU":
            raise DataError(f"a numpy array of dtype {self._array.dtype}", "it holds no plain values", "Give numbers, or a frame")
        parts = [self._array[start:stop, self._axes.index(name)] for name in columns]
        return guarded(self.name, lambda: pa.RecordBatch.from_arrays([_column(part) for part in parts], names=list(columns)))

    def rows(self) -> int | None:
        """Number of rows."""
        return len(self._array)

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Copy part by part."""
        for start in range(0, len(self._array), BATCH_ROWS):
            yield self._batch(start, start + BATCH_ROWS, columns)


def _column(part: np.ndarray) -> Any:
    mask = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
    return pa.array(np.ascontiguousarray(part), mask=mask)
