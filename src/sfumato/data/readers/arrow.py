"""Tables in memory and streams that speak the Arrow protocol, and datasets of pyarrow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Sized
from typing import Protocol, TypeGuard

import pyarrow as pa

from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.errors import DataError


class _Streamed(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


def _is_streamed(data: object) -> TypeGuard[_Streamed]:
    return hasattr(data, "__arrow_c_stream__")


class Stream(RowReader):
    """Anything with an Arrow C stream. What can be read only once is opened once."""

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Stream | None:
        """Read whatever has a stream, of whichever package."""
        if isinstance(data, pa.RecordBatch):
            return cls(pa.Table.from_batches([data]))
        return cls(data) if _is_streamed(data) else None

    def __init__(self, data: _Streamed) -> None:
        self._data = data
        self.name = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
        self._reader: pa.RecordBatchReader | None = None
        self._spent = False

    def _open(self) -> pa.RecordBatchReader:
        if isinstance(self._data, pa.Table):
            return self._data.to_reader()
        once = isinstance(self._data, pa.RecordBatchReader)
        if self._spent and once:
            raise DataError(
                self.name, "a reader can be read once, and it has been", "Give a table, or a file"
            )
        if self._reader is None:
            self._reader = self._data if once else pa.RecordBatchReader.from_stream(self._data)
        return self._reader

    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._open().schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Types of all columns."""
        return self._open().schema

    def rows(self) -> int | None:
        """Number of rows, where the object has a length."""
        return len(self._data) if isinstance(self._data, Sized) else None

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the stream."""
        reader = self._open()
        self._reader = None
        self._spent = True
        for batch in reader:
            yield batch.select(list(columns))


class ArrowDataset(RowReader):
    """A dataset of pyarrow, on any of its file systems: fragment by fragment, in its order."""

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> ArrowDataset | None:
        """Read a dataset."""
        abilities = ("get_fragments", "to_batches", "schema")
        is_dataset = all(hasattr(data, ability) for ability in abilities)
        return cls(data) if is_dataset else None

    def __init__(self, dataset: pa.dataset.Dataset) -> None:
        self._dataset = dataset
        self.name = f"pyarrow {type(dataset).__name__}"

    def names(self) -> list[str]:
        """Names of the columns, of files and of folders."""
        return list(self._dataset.schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Types of all columns.

        A fragment that lacks one would be read as if it were missing in each row, and is refused.
        """
        for number, held in enumerate(_held(self._dataset), 1):
            for name in columns:
                if name not in held:
                    raise DataError(
                        f"{self.name}, fragment {number}, column {name!r}",
                        "other files have a column of that name, and this one does not",
                        "Write the files with the same columns",
                    )
        return self._dataset.schema

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read with little ahead, and without buffering row groups as a whole.

        With threads of its own, Arrow's scanner reads up to 1 GiB ahead wherever counting is slower
        than reading.
        """
        yield from self._dataset.to_batches(
            columns=list(columns),
            batch_size=BATCH_ROWS,
            batch_readahead=2,
            fragment_readahead=1,
            use_threads=False,
            fragment_scan_options=_scan_options(self._dataset),
        )

    def label(self, name: str | None) -> str:
        """The name that it is given, and the state of the files."""
        seen = _states(self._dataset)
        return (
            f"{name} modified {hashlib.sha256(repr(seen).encode()).hexdigest()}"
            if seen
            else name or ""
        )


def _scan_options(dataset: pa.dataset.Dataset) -> pa.dataset.FragmentScanOptions | None:
    form = getattr(dataset, "format", None)
    if getattr(form, "default_extname", None) != "parquet":
        return None
    from pyarrow.dataset import ParquetFragmentScanOptions

    return ParquetFragmentScanOptions(pre_buffer=False)


def _held(dataset: pa.dataset.Dataset) -> list[set[str]]:
    """Names of the columns of each fragment, in the file or in its partition."""
    from pyarrow.dataset import get_partition_keys

    if hasattr(dataset, "children"):
        return [held for child in dataset.children for held in _held(child)]
    try:
        return [
            {*part.physical_schema.names, *get_partition_keys(part.partition_expression)}
            for part in dataset.get_fragments()
        ]
    except ValueError:  # one with a filter shows its files only
        partition = dataset.partitioning.schema.names if dataset.partitioning is not None else []
        form = dataset.format
        return [
            {*form.inspect(file, dataset.filesystem).names, *partition} for file in dataset.files
        ]


def _states(dataset: pa.dataset.Dataset) -> list[tuple[str, int | None, int | None]]:
    """Name, size and time of modification of each file below a dataset."""
    if hasattr(dataset, "children"):
        return [state for child in dataset.children for state in _states(child)]
    if not hasattr(dataset, "files"):
        return []
    return [
        (info.path, info.size, info.mtime_ns)
        for info in dataset.filesystem.get_file_info(dataset.files)
    ]
