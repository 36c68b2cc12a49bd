"""Read tables that lie in files: one file, several files, directories and patterns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeGuard

import pyarrow as pa

from sfumato.data.column_types import ids_form
from sfumato.data.columns import decoded
from sfumato.data.file_options import NO_OPTIONS, FileOptions
from sfumato.data.guard import guarded, guarded_batches, stat_file
from sfumato.data.reader import Columns, Losses, RowReader
from sfumato.data.readers.csv import CsvFile
from sfumato.data.readers.excel import ExcelFile
from sfumato.data.readers.hive import FileInFolders, folder_values
from sfumato.data.readers.listing import File, called, files_of, is_local, local, state_digest
from sfumato.data.readers.parquet import ParquetFile
from sfumato.errors import DataError


def _is_path(data: object) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(data, str | os.PathLike)


def _are_paths(data: object) -> TypeGuard[Sequence[str | os.PathLike[str]]]:
    return isinstance(data, list | tuple) and bool(data) and all(map(_is_path, data))


READERS: dict[str, Callable[[Path, str, str | None, FileOptions], RowReader]] = {
    "Parquet": lambda path, name, person, options: ParquetFile(path, name),
    "CSV": CsvFile,
    "Excel": ExcelFile,
}
"""Opens a file of each form: takes its path, the name for errors, the person's column, options."""


class Files(RowReader):
    """The files that paths, directories and patterns stand for, one after another, sorted.

    Each file must have all columns wanted, of types that fit. Ids of persons are converted to one
    type.
    """

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Files | None:
        """Read a path or a list of paths. Other addresses than ``file:`` are left to others."""
        if _is_path(data):
            return cls([data], person) if is_local(os.fspath(data)) else None
        return cls(data, person) if _are_paths(data) else None

    def __init__(
        self,
        given: Sequence[str | os.PathLike[str]],
        person: str | None,
        options: FileOptions = NO_OPTIONS,
    ) -> None:
        self._given = [os.fspath(each) for each in given]
        for each in self._given:
            local(each)
        self._person = person
        self._options = options
        self.name = called(self._given)

    def written_as(self, options: FileOptions) -> Self:
        """Give the same files, written as the options say."""
        return type(self)(self._given, self._person, options)

    def parts(self) -> list[RowReader]:
        """Give the files that exist at this moment."""
        return [self._open(file) for file in files_of(self._given)]

    def _open(self, file: File) -> RowReader:
        if file.form not in READERS:
            raise DataError(
                file.name,
                "it is a spreadsheet of another form than .xlsx",
                "Open it, and save it as .xlsx or as CSV",
            )
        self._options.require(file.form, file.name)
        table = READERS[file.form](file.path, file.name, self._person, self._options)
        values = folder_values(file.below[:-1])
        return FileInFolders(table, values, self._person) if values else table

    def names(self) -> list[str]:
        """Give the names of the columns of the first file."""
        first = self.parts()[0]
        return guarded(first.name, first.names)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns of the first file."""
        first = self.parts()[0]
        return guarded(first.name, partial(first.schema, columns))

    def label(self, name: str | None) -> str:
        """Identify the state of the files: it changes when one of them changes, comes or goes.

        The options that are stated belong to it: read otherwise, the files hold other rows.
        """
        stated = self._options.stated()
        state = self._state(name)
        return f"{state} read with {stated}" if stated else state

    def _state(self, name: str | None) -> str:
        files = files_of(self._given)
        if len(files) == 1 and files[0].name == self._given[0]:
            path = files[0].path
            status = stat_file(path, files[0].name)
            state = f"modified {status.st_mtime_ns} of {status.st_size} bytes"
            return f"{name or path.resolve()} {state}"
        digest = state_digest(files, with_paths=name is None)
        return f"{name or 'files'} modified {digest}"

    def rows(self) -> int | None:
        """Give the number of rows, if each file declares it."""
        total = 0
        for part in self.parts():
            rows = guarded(part.name, part.rows)
            if rows is None:
                return None
            total += rows
        return total

    def hints(self) -> Iterable[str]:
        """Give the hints on all files."""
        for part in self.parts():
            yield from guarded_batches(part.name, part.hints)

    def misreading(self) -> tuple[str, str] | None:
        """Say what the first file says."""
        return self.parts()[0].misreading()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read file by file."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read file by file, and add to ``losses`` what is lost in reading text."""
        parts = self.parts()
        id_type = self._id_type(parts, columns)
        for part in parts:
            for batch in guarded_batches(part.name, partial(part.batches_noting, columns, losses)):
                yield batch if id_type is None else self._with_ids(batch, id_type)

    def _id_type(self, parts: Sequence[RowReader], columns: Columns) -> pa.DataType | None:
        """The type to which ids of persons are converted; None if they stay as they are."""
        if self._person is None or len(parts) == 1 or self._person not in columns:
            return None
        schemas = [guarded(part.name, partial(part.schema, columns)) for part in parts]
        return ids_form([schema.field(self._person).type for schema in schemas])

    def _with_ids(self, batch: pa.RecordBatch, type_: pa.DataType) -> pa.RecordBatch:
        index = batch.schema.get_field_index(self._person)
        ids = decoded(batch.column(index)).cast(type_)
        return batch.set_column(index, pa.field(self._person, type_), ids)
