"""Read folders named ``key=value`` as columns, of the types that the domain declares.

The types are never inferred from the values. Values are percent-decoded;
``__HIVE_DEFAULT_PARTITION__`` is missing. A column that is both in the file and in the name of a
folder is refused, because it is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from sfumato.data.columns import decoded
from sfumato.data.fields import parse
from sfumato.data.reader import Column, Columns, Losses, RowReader
from sfumato.data.readers.text_table import text_schema

MISSING = "__HIVE_DEFAULT_PARTITION__"


def folder_values(folders: Sequence[str]) -> list[tuple[str, str | None]]:
    """Read columns and their values from the names of folders.

    >>> folder_values(["data", "year=2013", "place=St.%20Gallen"])
    [('year', '2013'), ('place', 'St. Gallen')]
    """
    values: list[tuple[str, str | None]] = []
    for folder in folders:
        key, equals, value = folder.partition("=")
        if key and equals:
            values.append((unquote(key), None if value == MISSING else unquote(value)))
    return values


class FileInFolders(RowReader):
    """A file, with the columns that the names of its folders add."""

    in_memory = False

    def __init__(
        self, file: RowReader, values: Sequence[tuple[str, str | None]], person: str | None
    ) -> None:
        self.name = file.name
        self.has_schema = file.has_schema
        self._file = file
        self._values = list(values)
        self._person = person

    def names(self) -> list[str]:
        """Give the names of the columns in the file, then of those that folders add."""
        return [*self._file.names(), *(key for key, _ in self._values)]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the file has, and those that the domain declares for folders."""
        of_folders = {key: columns[key] for key, _ in self._values if key in columns}
        in_file = self._file.schema(self._in_file(columns))
        return pa.schema([*in_file, *text_schema(of_folders, self.name, self._person)])

    def rows(self) -> int | None:
        """Give the number of rows of the file."""
        return self._file.rows()

    def hints(self) -> Iterable[str]:
        """Give the hints on the file."""
        return self._file.hints()

    def misreading(self) -> tuple[str, str] | None:
        """Say what the file says."""
        return self._file.misreading()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the file, and add a constant column for each folder."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read the file and add the folders' columns; note what is lost in reading text."""
        constants = self._constants(columns)
        # If no column of the file is wanted, its first one is read to count the rows.
        in_file = self._in_file(columns) or {self._file.names()[0]: None}
        for batch in self._file.batches_noting(in_file, losses):
            arrays = [
                _repeated(constants[name], len(batch)) if name in constants else batch[name]
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _in_file(self, columns: Columns) -> Columns:
        folders = dict(self._values)
        return {name: column for name, column in columns.items() if name not in folders}

    def _constants(self, columns: Columns) -> dict[str, pa.Array]:
        return {
            key: _constant(value, columns[key]) for key, value in self._values if key in columns
        }


def _constant(value: str | None, column: Column) -> pa.Array:
    """A column of one row; the value is missing if it does not parse, as in CSV."""
    raw = None if value is None else value.encode("utf-8", "surrogateescape")
    return decoded(parse(pa.array([raw], pa.binary()), column))


def _repeated(value: pa.Array, n_rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), value)
