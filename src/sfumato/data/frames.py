"""Tables in memory, and what engines hold: read through the Arrow stream protocol or the object's own methods.

No engine is imported here but pyarrow. Each object is asked for the columns wanted, and read part by part: what it would
have to compute or convert is never held as a whole, where the engine allows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.data.columns import Column
from sfumato.data.fields import declared
from sfumato.data.objects import parse, text, whole_numbers
from sfumato.data.tables import BATCH_ROWS, Columns, Single, Table, guarded, guarded_batches
from sfumato.domain import KeyAxis
from sfumato.errors import DataError, UsageError


class Stream(Single):
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


class PolarsFrame(Single):
    """A polars frame. A lazy one is run anew for each scan, in batches; its order is kept as far as its query has one."""

    in_memory = True

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.name = f"polars {type(frame).__name__}"

    def _empty(self) -> Any:
        """A frame without rows; of a lazy one, nothing is run for it."""
        lazy = hasattr(self._frame, "collect_schema") and hasattr(self._frame, "collect")
        return guarded(self.name, lambda: self._frame.collect_schema().to_frame() if lazy else self._frame.clear())

    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._empty().columns)

    def schema(self, columns: Columns) -> Any:
        """Types of the columns wanted. Python objects are refused: polars hands out where they lie in memory, not what they are."""
        empty = guarded(self.name, lambda: self._empty().select(list(columns)))
        for name, type_ in empty.schema.items():
            if type(type_).__name__ == "Object" or getattr(type_, "__name__", "") == "Object":
                raise DataError(f"{self.name}, column {name!r}", "it holds Python objects", "Convert it to text, numbers or dates")
        return guarded(self.name, lambda: pa.RecordBatchReader.from_stream(empty).schema)

    def rows(self) -> int | None:
        """Number of rows of an eager frame."""
        return len(self._frame) if hasattr(self._frame, "__len__") else None

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read the columns wanted."""
        wanted = guarded(self.name, lambda: self._frame.select(list(columns)))
        if hasattr(wanted, "collect_batches"):
            frames = guarded_batches(self.name, lambda: wanted.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True))
        else:
            frames = iter([guarded(self.name, wanted.collect) if hasattr(wanted, "collect") else wanted])
        for frame in frames:
            yield from guarded_batches(self.name, lambda frame=frame: pa.RecordBatchReader.from_stream(frame))  # type: ignore[misc]


class DuckRelation(Single):
    """A relation of DuckDB: run anew for each scan, and streamed; its order is kept as far as its query has one."""

    in_memory = True
    name = "duckdb relation"

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def _stream(self, columns: Columns, rows: int | None = None) -> Any:
        listed = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        wanted = self._relation.project(listed)
        return pa.RecordBatchReader.from_stream(wanted if rows is None else wanted.limit(rows))

    def names(self) -> list[str]:
        """Names of the columns."""
        return list(guarded(self.name, lambda: self._relation.columns))

    def schema(self, columns: Columns) -> Any:
        """Types of the columns wanted."""
        return guarded(self.name, lambda: self._stream(columns, 0)).schema

    def rows(self) -> int | None:
        """Not known before the end."""
        return None

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read the columns wanted."""
        yield from guarded_batches(self.name, lambda: self._stream(columns))


class ArrowDataset(Single):
    """A dataset of pyarrow, on any of its file systems: one fragment after the other, in the dataset's order."""

    in_memory = True

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.name = f"pyarrow {type(dataset).__name__}"

    def names(self) -> list[str]:
        """Names of the columns, of files and of folders."""
        return list(self._dataset.schema.names)

    def schema(self, columns: Columns) -> Any:
        """Types of all columns; a fragment that lacks one would be read as if it were missing in each row, and is refused."""
        for number, held in enumerate(guarded(self.name, lambda: _held(self._dataset)), 1):
            for name in columns:
                if name not in held:
                    raise DataError(
                        f"{self.name}, fragment {number}, column {name!r}",
                        "other files have a column of that name, and this one does not",
                        "Write the files with the same columns",
                    )
        return self._dataset.schema

    def rows(self) -> int | None:
        """Not known without work."""
        return None

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read with little ahead, and without buffering row groups as a whole.

        With threads of its own, Arrow's scanner reads up to 1 GiB ahead wherever counting is slower than reading.
        """
        more: dict[str, Any] = {}
        if getattr(getattr(self._dataset, "format", None), "default_extname", None) == "parquet":
            from pyarrow.dataset import ParquetFragmentScanOptions

            more["fragment_scan_options"] = ParquetFragmentScanOptions(pre_buffer=False)
        yield from guarded_batches(
            self.name,
            lambda: self._dataset.to_batches(
                columns=list(columns), batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1, use_threads=False, **more
            ),
        )

    def label(self, name: str | None) -> str:
        """The name that it is given, and the state of the files."""
        seen = guarded(self.name, lambda: _states(self._dataset))
        return f"{name} modified {hashlib.sha256(repr(seen).encode()).hexdigest()}" if seen else name or ""


def _held(dataset: Any) -> list[set[str]]:
    """Names of the columns of each fragment, in the file or in its partition."""
    from pyarrow.dataset import get_partition_keys

    if hasattr(dataset, "children"):
        return [held for child in dataset.children for held in _held(child)]
    try:
        return [{*part.physical_schema.names, *get_partition_keys(part.partition_expression)} for part in dataset.get_fragments()]
    except ValueError:  # one with a filter shows its files only
        partition = dataset.partitioning.schema.names if dataset.partitioning is not None else []
        return [{*dataset.format.inspect(file, dataset.filesystem).names, *partition} for file in dataset.files]


def _states(dataset: Any) -> list[tuple[str, int | None, int | None]]:
    """Name, size and time of modification of each file below a dataset."""
    if hasattr(dataset, "children"):
        return [state for child in dataset.children for state in _states(child)]
    if not hasattr(dataset, "files"):
        return []
    return [(info.path, info.size, info.mtime_ns) for info in dataset.filesystem.get_file_info(dataset.files)]


class PandasFrame(Single):
    """A pandas frame: only the columns wanted are converted, part by part, and its index is no column."""

    in_memory = True
    name = "pandas DataFrame"

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def names(self) -> list[str]:
        """Names of the columns that have a text for a name."""
        return [name for name in self._frame.columns if isinstance(name, str)]

    def _types(self, columns: Columns) -> Any:
        """Types of the columns wanted, without a look at a value; objects have the type that the domain declares."""
        types = {}
        for name, column in columns.items():
            if self._frame[name].dtype == object:
                types[name] = declared(column)
            elif self._widened(name, column):
                types[name] = pa.int64()
            else:
                none = guarded(self.name, lambda name=name: self._converted([name], 0, 0))  # type: ignore[misc]
                types[name] = none.schema.field(name).type
        return pa.schema(list(types.items()))

    def _widened(self, name: str, column: Column) -> bool:
        """Whether keys are held as floats or without a sign, as pandas holds whole numbers beside one missing or huge one."""
        return isinstance(column, KeyAxis) and self._frame[name].dtype in (np.float64, np.uint64)

    def _converted(self, names: list[str], start: int, stop: int, schema: Any = None) -> Any:
        part = self._frame[names].iloc[start:stop]
        return pa.Table.from_pandas(part, schema=schema, preserve_index=False)

    def _part(self, columns: Columns, start: int, stop: int, schema: Any) -> Any:
        objects = [name for name in columns if self._frame[name].dtype == object]
        widened = [name for name, column in columns.items() if self._widened(name, column)]
        others = [name for name in columns if name not in (*objects, *widened)]
        typed = pa.schema([schema.field(name) for name in others])
        table = self._converted(others, start, stop, typed) if others else None
        read = {} if table is None else {name: table[name] for name in others}
        for name in objects:
            read[name] = parse(self._frame[name].iloc[start:stop].tolist(), columns[name])
        for name in widened:
            read[name] = whole_numbers(self._frame[name].iloc[start:stop].to_numpy())
        return pa.table({name: read[name] for name in columns}, schema=schema)

    def schema(self, columns: Columns) -> Any:
        """Types of the columns wanted."""
        return self._types(columns)

    def rows(self) -> int | None:
        """Number of rows."""
        return len(self._frame)

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Convert and read part by part."""
        schema = self._types(columns)
        for start in range(0, len(self._frame), BATCH_ROWS):
            part = partial(self._part, columns, start, start + BATCH_ROWS, schema)
            yield from guarded(self.name, part).to_batches()


class Array(Single):
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
    native = np.float64 if part.dtype.char == "g" else part.dtype.newbyteorder("=")  # Arrow knows neither long doubles nor foreign bytes
    if part.dtype.kind == "U":  # a lone surrogate is no text
        texts = [text(value) for value in np.asarray(part).tolist()]
        return pa.array(texts, pa.string(), mask=mask)
    with np.errstate(over="ignore"):  # whether a value is too large is the data's own affair
        return pa.array(np.ascontiguousarray(part, dtype=native), mask=mask)


KINDS: Mapping[Callable[[Any], Table], tuple[str, tuple[str, ...]]] = {
    PandasFrame: ("pandas", ("iloc", "columns")),
    PolarsFrame: ("polars", ("select", "collect_schema")),
    DuckRelation: ("duckdb", ("project", "columns", "__arrow_c_stream__")),
    ArrowDataset: ("pyarrow", ("get_fragments", "to_batches", "schema")),
}
