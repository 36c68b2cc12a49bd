"""Read a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.data.guard import check_file
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.errors import DataError

_START_OF_DUCKDB = b"DUCK"
"""What the first page of a database begins with, after its checksum of 8 bytes."""


def _is_of_duckdb(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(12)[8:] == _START_OF_DUCKDB


class ParquetFile(RowReader):
    """A Parquet file, read in batches of the columns wanted."""

    in_memory = False

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    def _open(self, labels: Sequence[str] = ()) -> pq.ParquetFile:
        check_file(self.path, self.name)
        try:
            return pq.ParquetFile(
                self.path,
                pre_buffer=False,
                read_dictionary=list(labels) or None,
                # As nanoseconds, times after the year 2262 would wrap around.
                coerce_int96_timestamp_unit="us",
            )
        except pa.ArrowInvalid:
            if not _is_of_duckdb(self.path):
                raise
        raise DataError(
            self.name,
            "it is a database of DuckDB",
            f'Name a table in it: "duckdb:{self.name}?table=NAME"',
        )

    def names(self) -> list[str]:
        """Give the names of the columns, from the footer."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of all columns, from the footer."""
        with self._open() as file:
            return file.schema_arrow

    def rows(self) -> int | None:
        """Give the number of rows, from the footer."""
        with self._open() as file:
            return int(file.metadata.num_rows)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read row group by row group; labels keep the dictionary form of the file.

        Ids of persons do not: where there are many, joining their dictionaries takes most time.
        """
        in_dictionary_form = [
            name
            for name, column in columns.items()
            if column is not None and column.has_labels and column.calendar is msgspec.UNSET
        ]
        with self._open(in_dictionary_form) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=True)
