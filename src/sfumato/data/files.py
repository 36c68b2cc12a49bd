"""Tables that lie in files: Parquet read here, CSV in ``csvfile``; one file, several, directories and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.data.columns import decoded, ids_form
from sfumato.data.csvfile import CsvFile
from sfumato.data.fields import Losses
from sfumato.data.hive import Partitioned, partitions
from sfumato.data.listing import File, called, files_of, local, stamp
from sfumato.data.tables import BATCH_ROWS, Columns, Part, Single, check_file, guarded, guarded_batches, stat_file
from sfumato.domain import LabelAxis


class ParquetFile(Single):
    """A Parquet file, read by batches of the columns wanted, without holding what was read."""

    in_memory = False

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name

    def _open(self, labels: Sequence[str] = ()) -> Any:
        check_file(self.path, self.name)
        more = {"read_dictionary": list(labels) or None, "coerce_int96_timestamp_unit": "us"}  # nanoseconds would wrap after 2262
        return guarded(self.name, lambda: pq.ParquetFile(self.path, pre_buffer=False, **more))

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


class Files:
    """What paths, directories and patterns stand for: one file after the other, in sorted order.

    Each file is to have all columns wanted, of types that fit; ids of persons are brought to one type.
    """

    in_memory = False

    def __init__(self, given: Sequence[str | os.PathLike[str]], person: str | None) -> None:
        self._given = [os.fspath(each) for each in given]
        for each in self._given:
            local(each)
        self._person, self.name = person, called(self._given)

    def parts(self) -> list[Part]:
        """The files, as they are at this moment."""
        return [self._open(file) for file in files_of(self._given)]

    def _open(self, file: File) -> Part:
        table: Part = CsvFile(file.path, file.name, self._person) if file.is_csv else ParquetFile(file.path, file.name)
        values = partitions(file.below[:-1])
        return Partitioned(table, values, self._person) if values else table

    def label(self, name: str | None) -> str:
        """Name the state of the files: it changes when one of them changes, comes or goes."""
        files = files_of(self._given)
        if len(files) == 1 and files[0].name == self._given[0]:
            state = stat_file(files[0].path, files[0].name)
            return f"{name or files[0].path.resolve()} modified {state.st_mtime_ns} of {state.st_size} bytes"
        return f"{name or 'files'} modified {stamp(files, named=name is not None)}"

    def rows(self) -> int | None:
        """Number of rows, where each file says it."""
        each = [part.rows() for part in self.parts()]
        return None if None in each else sum(rows for rows in each if rows is not None)

    def batches(self, columns: Columns, losses: Losses | None = None) -> Iterator[Any]:
        """Read file by file; what is lost on the way from text is added to ``losses``."""
        parts = self.parts()
        one = None
        if len(parts) > 1 and self._person in columns:
            one = ids_form([part.schema(columns).field(self._person).type for part in parts])
        for part in parts:
            more = () if losses is None or part.has_schema else (losses,)
            for batch in part.batches(columns, *more):
                yield batch if one is None else self._with_ids(batch, one)

    def _with_ids(self, batch: Any, type_: Any) -> Any:
        place = batch.schema.get_field_index(self._person)
        ids = guarded(self.name, lambda: decoded(batch.column(place)).cast(type_))
        return batch.set_column(place, pa.field(self._person, type_), ids)
