"""Read tables and streams that have the Arrow C stream, and datasets of pyarrow."""

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
        """Read anything that has a stream, of any package."""
        if isinstance(data, pa.RecordBatch):
            return cls(pa.Table.from_batches([data]))
        return cls(data) if _is_streamed(data) else None

    def __init__(self, data: _Streamed) -> None:
        self._data = data
        self.name = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
        self._reader: pa.RecordBatchReader | None = None
        self._spent = False
        # A table never changes, and a reader is read once.
        is_fixed = isinstance(data, pa.Table | pa.RecordBatchReader)
        self.same_rows = "" if is_fixed else _SAME_ROWS_OF_STREAMS

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
        """Give the names of the columns."""
        return list(self._open().schema.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of all columns."""
        return self._open().schema

    def rows(self) -> int | None:
        """Give the number of rows, if the object has a length."""
        return len(self._data) if isinstance(self._data, Sized) else None

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the stream."""
        reader = self._open()
        self._reader = None
        self._spent = True
        for batch in reader:
            yield batch.select(list(columns))


class ArrowDataset(RowReader):
    """A dataset of pyarrow on any of its file systems, read fragment by fragment in its order."""

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
        yield from self._dataset.to_batches(
            columns=list(columns),
            batch_size=BATCH_ROWS,
            batch_readahead=2,
            fragment_readahead=1,
            use_threads=False,
            fragment_scan_options=_scan_options(self._dataset),
        )

    def label(self, name: str | None) -> str:
        """Give the name, and a digest of the state of the files if there are any."""
        states = _file_states(self._dataset)
        if not states:
            return name or ""
        return f"{name} modified {hashlib.sha256(repr(states).encode()).hexdigest()}"


def _scan_options(dataset: pa.dataset.Dataset) -> pa.dataset.FragmentScanOptions | None:
    file_format = getattr(dataset, "format", None)
    if getattr(file_format, "default_extname", None) != "parquet":
        return None
    from pyarrow.dataset import ParquetFragmentScanOptions

    return ParquetFragmentScanOptions(pre_buffer=False)


def _column_names(dataset: pa.dataset.Dataset) -> list[set[str]]:
    """The names of the columns of each fragment, in its file or in its partition."""
    if hasattr(dataset, "children"):
        return [names for child in dataset.children for names in _column_names(child)]
    try:
        return [_names_in_fragment(fragment) for fragment in dataset.get_fragments()]
    except ValueError:
        # A dataset with a filter does not hand out its fragments, only its files.
        return _names_in_files(dataset)


def _names_in_fragment(fragment: pa.dataset.Fragment) -> set[str]:
    from pyarrow.dataset import get_partition_keys

    return {
        *fragment.physical_schema.names,
        *get_partition_keys(fragment.partition_expression),
    }


def _names_in_files(dataset: pa.dataset.Dataset) -> list[set[str]]:
    folders = dataset.partitioning.schema.names if dataset.partitioning is not None else []
    return [
        {*dataset.format.inspect(file, dataset.filesystem).names, *folders}
        for file in dataset.files
    ]


def _file_states(dataset: pa.dataset.Dataset) -> list[tuple[str, int | None, int | None]]:
    """The name, size and time of modification of each file of a dataset."""
    if hasattr(dataset, "children"):
        return [state for child in dataset.children for state in _file_states(child)]
    if not hasattr(dataset, "files"):
        return []
    return [
        (info.path, info.size, info.mtime_ns)
        for info in dataset.filesystem.get_file_info(dataset.files)
    ]
