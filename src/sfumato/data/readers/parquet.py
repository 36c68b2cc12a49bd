"""Read a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.data.guard import check_file
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader


class ParquetFile(RowReader):
    """A Parquet file, read in batches of the columns wanted."""

    in_memory = False

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name

    def _open(self, labels: Sequence[str] = ()) -> pq.ParquetFile:
        check_file(self.path, self.name)
        return pq.ParquetFile(
            self.path,
            pre_buffer=False,
            read_dictionary=list(labels) or None,
            # As nanoseconds, times after the year 2262 would wrap around.
            coerce_int96_timestamp_unit="us",
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
        """Read row group by row group; labels and ids keep the dictionary form of the file."""
        in_dictionary_form = [
            name
            for name, column in columns.items()
            if column is None or (column.has_labels and column.calendar is msgspec.UNSET)
        ]
        with self._open(in_dictionary_form) as file:
            yield from file.iter_batches(BATCH_ROWS, columns=list(columns), use_threads=True)
