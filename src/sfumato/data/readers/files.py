"""Tables that lie in files: one file, several, directories and patterns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeGuard

import pyarrow as pa

from sfumato.data.column_types import ids_form
from sfumato.data.columns import decoded
from sfumato.data.guard import guarded, guarded_batches, stat_file
from sfumato.data.reader import Columns, Losses, RowReader
from sfumato.data.readers.csv import CsvFile
from sfumato.data.readers.hive import Partitioned, partitions
from sfumato.data.readers.listing import File, called, files_of, is_local, local, stamp
from sfumato.data.readers.parquet import ParquetFile


def _is_path(data: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(data, str | os.PathLike)


def _are_paths(data: object) -> TypeGuard[Sequence[str | os.PathLike[str]]]:
    return isinstance(data, list | tuple) and bool(data) and all(map(_is_path, data))


READERS: dict[str, Callable[[Path, str, str | None], RowReader]] = {
    "Parquet": lambda path, name, person: ParquetFile(path, name),
    "CSV": CsvFile,
}
"""What reads a file of each form, given where it is, what errors call it, and the person's column."""


class Files(RowReader):
    """What paths, directories and patterns stand for: one file after the other, in sorted order.

    Each file is to have all columns wanted, of types that fit; ids of persons are brought to one
    type.
    """

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Files | None:
        """Read a path, or a list of them. Addresses that are not of files are left to others."""
        if _is_path(data):
            return cls([data], person) if is_local(os.fspath(data)) else None
        return cls(data, person) if _are_paths(data) else None

    def __init__(self, given: Sequence[str | os.PathLike[str]], person: str | None) -> None:
        self._given = [os.fspath(each) for each in given]
        for each in self._given:
            local(each)
        self._person = person
        self.name = called(self._given)

    def parts(self) -> list[RowReader]:
        """The files, as they are at this moment."""
        return [self._open(file) for file in files_of(self._given)]

    def _open(self, file: File) -> RowReader:
        table = READERS[file.form](file.path, file.name, self._person)
        values = partitions(file.below[:-1])
        return Partitioned(table, values, self._person) if values else table

    def names(self) -> list[str]:
        """Names of the columns of the first file."""
        first = self.parts()[0]
        return guarded(first.name, first.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Types of the columns of the first file."""
        first = self.parts()[0]
        return guarded(first.name, partial(first.schema, columns))

    def label(self, name: str | None) -> str:
        """Name the state of the files: it changes when one of them changes, comes or goes."""
        files = files_of(self._given)
        if len(files) == 1 and files[0].name == self._given[0]:
            state = stat_file(files[0].path, files[0].name)
            return f"{name or files[0].path.resolve()} modified {state.st_mtime_ns} of {state.st_size} bytes"
        return f"{name or 'files'} modified {stamp(files, named=name is not None)}"

    def rows(self) -> int | None:
        """Number of rows, where each file says it."""
        each = [guarded(part.name, part.rows) for part in self.parts()]
        known = [rows for rows in each if rows is not None]
        return sum(known) if len(known) == len(each) else None

    def hints(self) -> Iterable[str]:
        """Those of all files."""
        for part in self.parts():
            yield from guarded_batches(part.name, part.hints)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read file by file."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read file by file; what is lost on the way from text is added to ``losses``."""
        parts = self.parts()
        one = None
        if self._person is not None and len(parts) > 1 and self._person in columns:
            schemas = [guarded(part.name, partial(part.schema, columns)) for part in parts]
            one = ids_form([schema.field(self._person).type for schema in schemas])
        for part in parts:
            for batch in guarded_batches(part.name, partial(part.batches_noting, columns, losses)):
                yield batch if one is None else self._with_ids(batch, one)

    def _with_ids(self, batch: pa.RecordBatch, type_: pa.DataType) -> pa.RecordBatch:
        place = batch.schema.get_field_index(self._person)
        ids = decoded(batch.column(place)).cast(type_)
        return batch.set_column(place, pa.field(self._person, type_), ids)
