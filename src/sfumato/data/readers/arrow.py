"""Read what needs Arrow or numpy alone: streams and datasets of Arrow, numpy arrays, Parquet files.

* Tables and streams that have the Arrow C stream, what opens these, and datasets.
* A numpy array, whose columns are the axes of the domain.
* A Parquet file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Protocol, TypeGuard
from weakref import WeakSet

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.basics import Array
from sfumato.data.objects import text
from sfumato.data.reader import BATCH_ROWS, OPENING, Columns, Piece, RowReader, check_file
from sfumato.errors import DataError, UsageError

# --- streams and datasets of Arrow ----------------------------------------------------------------


class _Streamed(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def _is_streamed(data: object) -> TypeGuard[_Streamed]:
    return hasattr(data, "__arrow_c_stream__")


# The readers that were read here: none of them says so itself, and it would seem to be empty.
_READ: WeakSet[pa.RecordBatchReader] = WeakSet()

_ONCE = "a reader can be read once, and it has been"

_SAME_ROWS_OF_STREAMS = (
    "The object gave the same rows each time that this release opened its stream: what it reads did"
    " not change meanwhile, and it draws none at random."
)


class Stream(RowReader):
    """Anything with an Arrow C stream. A stream that can be read only once is opened once.

    An object of another package may run a query each time.
    """

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Stream | None:
        if isinstance(data, pa.RecordBatch):
            return cls(pa.Table.from_batches([data]))
        return cls(data) if _is_streamed(data) else None

    def __init__(self, data: _Streamed) -> None:
        self._data = data
        self.name = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
        self._reader = data if isinstance(data, pa.RecordBatchReader) else None
        is_table = isinstance(data, pa.Table)
        # Objects that hand out a stream once have one of these methods, and whatever holds its rows
        # has none. The type is asked: a frame may have each of its columns as an attribute.
        methods = ("read_next_batch", "get_next", "__next__", "close", "release")
        is_reader = any(hasattr(type(data), method) for method in methods)
        self.read_once = is_reader and not is_table
        self.same_rows = "" if is_table or self.read_once else _SAME_ROWS_OF_STREAMS

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self._data, pa.Table):
            return self._data.to_reader()
        if self._reader is None:
            self._reader = pa.RecordBatchReader.from_stream(self._data)
        if self._reader in _READ:
            raise DataError(self.name, _ONCE, f"Give a table, a file, or {OPENING}")
        return self._reader

    def names(self) -> list[str]:
        return list(self._open().schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        return self._open().schema

    def rows(self) -> int | None:
        return len(self._data) if isinstance(self._data, Sized) else None

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        reader = self._open()
        if not self.read_once:
            self._reader = None
        yield from _read(reader, columns)


def _read(reader: pa.RecordBatchReader, columns: Columns) -> Iterator[pa.RecordBatch]:
    """Read a stream once, and close it: its connection may be able to do nothing else meanwhile."""
    # Marked first: a reader that fails half way cannot begin again either.
    _READ.add(reader)
    try:
        for batch in reader:
            yield batch.select(list(columns))
    finally:
        reader.close()


class StreamFunction(RowReader):
    """A function that opens a stream of the same rows each time it is called, as by a query.

    None is held open between two calls. Before each charge the function is called for the types
    alone, so whatever it does wrong is found then.
    """

    name = "stream of a function"
    same_rows = (
        "The function of the source opened streams of the same rows for all scans of this release: "
        "what it reads did not change meanwhile, and it draws none at random."
    )

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> StreamFunction | None:
        return cls(data) if callable(data) and not isinstance(data, type) else None

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self._first: pa.Schema | None = None
        self._is_checked = False  # since the last scan

    def _opened(self) -> pa.RecordBatchReader:
        given = self._function()
        if not _is_streamed(given):
            raise DataError(
                self.name,
                f"it returned an object of type {type(given).__name__}, which has no Arrow stream",
                "Return a pyarrow.RecordBatchReader",
            )
        reader = given
        if not isinstance(reader, pa.RecordBatchReader):
            reader = pa.RecordBatchReader.from_stream(given)
        if reader in _READ:
            raise DataError(self.name, f"it returned a reader again; {_ONCE}", f"Give {OPENING}")
        if self._first is None:
            self._first = reader.schema
        if not reader.schema.equals(self._first):
            raise DataError(
                self.name,
                "its columns, or their types, are others than when it was called first",
                "Give a new source",
            )
        return reader

    def _looked_at(self) -> pa.Schema:
        reader = self._opened()
        _READ.add(reader)
        reader.close()
        return reader.schema

    def names(self) -> list[str]:
        return list((self._first or self._looked_at()).names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of all columns, which the function is called for once before each scan."""
        if self._first is None or not self._is_checked:
            self._first = self._looked_at()
            self._is_checked = True
        return self._first

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        self._is_checked = False
        yield from _read(self._opened(), columns)


class ArrowDataset(RowReader):
    """A dataset of pyarrow on any of its file systems, read fragment by fragment in its order."""

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> ArrowDataset | None:
        abilities = ("get_fragments", "to_batches", "schema")
        return cls(data) if all(hasattr(data, ability) for ability in abilities) else None

    def __init__(self, dataset: pa.dataset.Dataset) -> None:
        self._dataset = dataset
        self.name = f"pyarrow {type(dataset).__name__}"

    def names(self) -> list[str]:
        """Give the names of the columns, of files and of folders."""
        return list(self._dataset.schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of all columns.

        A fragment that lacks a column is refused: pyarrow would read it as missing in each row.
        """
        for number, names in enumerate(_column_names(self._dataset), 1):
            for name in columns:
                if name not in names:
                    raise DataError(
                        f"{self.name}, fragment {number}, column {name!r}",
                        "other files have a column of that name, and this one does not",
                        "Write the files with the same columns",
                    )
        return self._dataset.schema

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted, with little read ahead and no whole row groups buffered.

        If Arrow's scanner used threads of its own, it would read up to 1 GiB ahead wherever
        counting is slower than reading.
        """
        options = None
        file_format = getattr(self._dataset, "format", None)
        if getattr(file_format, "default_extname", None) == "parquet":
            from pyarrow.dataset import ParquetFragmentScanOptions

            options = ParquetFragmentScanOptions(pre_buffer=False)
        yield from self._dataset.to_batches(
            columns=list(columns),
            batch_size=BATCH_ROWS,
            batch_readahead=2,
            fragment_readahead=1,
            use_threads=False,
            fragment_scan_options=options,
        )

    def label(self, name: str | None) -> str:
        """Give the name, and a digest of the state of the files if there are any."""
        states = _file_states(self._dataset)
        if not states:
            return name or ""
        return f"{name} modified {hashlib.sha256(repr(states).encode()).hexdigest()}"


def _column_names(dataset: pa.dataset.Dataset) -> list[set[str]]:
    """Return the names of the columns of each fragment, in its file or in its partition."""
    if hasattr(dataset, "children"):
        return [names for child in dataset.children for names in _column_names(child)]
    from pyarrow.dataset import get_partition_keys

    try:
        return [
            {*part.physical_schema.names, *get_partition_keys(part.partition_expression)}
            for part in dataset.get_fragments()
        ]
    except ValueError:
        # A dataset with a filter does not hand out its fragments, only its files.
        folders = dataset.partitioning.schema.names if dataset.partitioning is not None else []
        return [
            {*dataset.format.inspect(file, dataset.filesystem).names, *folders}
            for file in dataset.files
        ]


def _file_states(dataset: pa.dataset.Dataset) -> list[tuple[str, int | None, int | None]]:
    """Return the name, size and time of modification of each file of a dataset."""
    if hasattr(dataset, "children"):
        return [state for child in dataset.children for state in _file_states(child)]
    if not hasattr(dataset, "files"):
        return []
    return [
        (info.path, info.size, info.mtime_ns)
        for info in dataset.filesystem.get_file_info(dataset.files)
    ]


# --- numpy arrays ---------------------------------------------------------------------------------

_LONG_DOUBLE = "g"


class NumpyArray(RowReader):
    """A numpy array of shape (rows, axes), its columns in the domain's order."""

    name = "numpy array"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> NumpyArray | None:
        """Read an array.

        Raises
        ------
        UsageError
            If its columns are not the axes, or none of them can name the person.
        DataError
            If ids of persons are long doubles: as doubles, two of them could become equal.
        """
        if not isinstance(data, np.ndarray):
            return None
        if person is not None and person not in axes:
            raise UsageError(
                f"person = {person!r}",
                "an array's columns are the domain's axes, and none has that name",
                "Give a frame, or declare the axis",
            )
        if person is not None and data.dtype.char == _LONG_DOUBLE:
            raise DataError(
                f"person = {person!r}",
                f"ids of persons in an array of dtype {data.dtype} may not fit a double",
                'Give array.astype("float64"), if that leaves them as they are, or a frame',
            )
        return cls(data, axes)

    def __init__(self, array: Array, axes: Sequence[str]) -> None:
        if array.ndim != 2 or array.shape[1] != len(axes):
            shape = f"(n, {len(axes)})"
            kind = f"{array.ndim}-dimensional numpy array"
            if array.ndim == 2:
                kind = f"numpy array of shape (n, {array.shape[1]})"
            number = "one axis" if len(axes) == 1 else f"{len(axes)} axes"
            remedy = f"Give an array of shape {shape}, or declare the axes that it has"
            if array.ndim == 1 and len(axes) == 1:
                remedy = "Write array.reshape(-1, 1)"
            raise UsageError(
                f"a {kind}",
                f"the domain has {number}, and the array needs one column for each: shape {shape}",
                remedy,
            )
        self._array = array
        self._axes = list(axes)

    def names(self) -> list[str]:
        return self._axes

    def schema(self, columns: Columns) -> pa.Schema:
        return self._batch(0, 0, columns).schema

    def rows(self) -> int | None:
        return len(self._array)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self._array), BATCH_ROWS):
            yield self._batch(start, start + BATCH_ROWS, columns)

    def _batch(self, start: int, stop: int, columns: Columns) -> pa.RecordBatch:
        if self._array.dtype.kind not in "biufMU":
            raise DataError(
                f"a numpy array of dtype {self._array.dtype}",
                "it holds no plain values",
                "Give numbers, or a frame",
            )
        parts = [self._array[start:stop, self._axes.index(name)] for name in columns]
        return pa.RecordBatch.from_arrays([_column(part) for part in parts], names=list(columns))


def _column(part: Array) -> pa.Array:
    mask = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
    if part.dtype.kind == "U":
        # A lone surrogate is no valid text, and counts as missing.
        texts = [text(value) for value in np.asarray(part).tolist()]
        return pa.array(texts, pa.string(), mask=mask)
    # Arrow knows neither long doubles nor other byte orders.
    native = (
        np.dtype(np.float64) if part.dtype.char == _LONG_DOUBLE else part.dtype.newbyteorder("=")
    )
    # numpy would warn that a value is too large: a warning must not depend on values.
    with np.errstate(over="ignore"):
        return pa.array(np.ascontiguousarray(part, dtype=native), mask=mask)


# --- Parquet files --------------------------------------------------------------------------------

# How many rows a piece of a file has at least: for fewer, opening the file takes too long.
PIECE_ROWS = 2**18


class ParquetFile(RowReader):
    """A Parquet file, read in batches of the columns wanted; its footer says all else of it."""

    in_memory = False

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    def _open(
        self, labels: Sequence[str] = (), footer: pq.FileMetaData | None = None
    ) -> pq.ParquetFile:
        check_file(self.path, self.name)
        try:
            return pq.ParquetFile(
                self.path,
                metadata=footer,
                pre_buffer=False,
                read_dictionary=list(labels) or None,
                # As nanoseconds, times after the year 2262 would wrap around.
                coerce_int96_timestamp_unit="us",
            )
        except pa.ArrowInvalid:
            # The first page of a database of DuckDB has a checksum of 8 bytes, and then this.
            with self.path.open("rb") as file:
                is_database = file.read(12)[8:] == b"DUCK"
            if not is_database:
                raise
        raise DataError(
            self.name,
            "it is a database of DuckDB",
            f'Name a table in it: "duckdb:{self.name}?table=NAME"',
        )

    def names(self) -> list[str]:
        with self._open() as file:
            return list(file.schema_arrow.names)

    def schema(self, columns: Columns) -> pa.Schema:
        with self._open() as file:
            return file.schema_arrow

    def rows(self) -> int | None:
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read row group by row group; labels keep the dictionary form of the file.

        Ids of persons do not: where there are many, joining their dictionaries takes most time.
        """
        with self._open(_in_dictionary_form(columns)) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=True)

    def pieces(self, columns: Columns) -> Iterable[Piece]:
        """Give consecutive row groups, as many as have ``PIECE_ROWS`` rows together."""
        with self._open() as file:
            # Read once and handed on: otherwise each piece would parse it again.
            footer = file.metadata
        groups: list[list[int]] = [[]]
        rows = 0
        for number in range(footer.num_row_groups):
            if rows >= PIECE_ROWS:
                groups.append([])
                rows = 0
            groups[-1].append(number)
            rows += footer.row_group(number).num_rows
        if len(groups) < 2:
            return super().pieces(columns)
        return [partial(self._batches_of, numbers, columns, footer) for numbers in groups]

    def _batches_of(
        self, row_groups: list[int], columns: Columns, footer: pq.FileMetaData
    ) -> Iterator[pa.RecordBatch]:
        """Read some row groups, as ``batches``, without threads of Arrow's own."""
        with self._open(_in_dictionary_form(columns), footer) as file:
            yield from file.iter_batches(
                BATCH_ROWS, row_groups=row_groups, columns=list(columns), use_threads=False
            )


def _in_dictionary_form(columns: Columns) -> list[str]:
    return [
        name
        for name, column in columns.items()
        if column is not None and column.has_labels and column.calendar is msgspec.UNSET
    ]
