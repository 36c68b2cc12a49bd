"""Folders named ``key=value`` as columns, with the types that the domain declares: never inferred from what they are called.

Values are percent-decoded; ``__HIVE_DEFAULT_PARTITION__`` is missing. A column that is both in the
file and in a folder's name is refused as doubled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from sfumato.data.fields import declared, parse, whole_number
from sfumato.data.reader import Column, Columns, Losses, RowReader

MISSING = "__HIVE_DEFAULT_PARTITION__"


def partitions(folders: Sequence[str]) -> list[tuple[str, str | None]]:
    """Read columns and their values off the names of folders.

    >>> partitions(["data", "year=2013", "place=St.%20Gallen"])
    [('year', '2013'), ('place', 'St. Gallen')]
    """
    pairs = (folder.partition("=") for folder in folders)
    return [
        (unquote(key), None if value == MISSING else unquote(value))
        for key, equals, value in pairs
        if equals and key
    ]


class Partitioned(RowReader):
    """A file with the columns that its folders name."""

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
        """Names of the columns in the file, then of the folders."""
        return [*self._file.names(), *(key for key, _ in self._values)]

    def schema(self, columns: Columns) -> pa.Schema:
        """Types as the file has them, and as the domain declares them."""
        held = self._file.schema(self._in_file(columns))
        return pa.schema(
            [*held, *((key, value.type) for key, value in self._constants(columns).items())]
        )

    def rows(self) -> int | None:
        """As many as the file has."""
        return self._file.rows()

    def hints(self) -> Iterable[str]:
        """Those of the file."""
        return self._file.hints()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Batches of the file, with a constant for each folder."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """The same; where no column of the file is wanted, its first one counts the rows."""
        constants = self._constants(columns)
        in_file = self._in_file(columns) or {self._file.names()[0]: None}
        for batch in self._file.batches_noting(in_file, losses):
            parts = [
                _repeated(constants[name], len(batch)) if name in constants else batch[name]
                for name in columns
            ]
            yield pa.RecordBatch.from_arrays(parts, names=list(columns))

    def _in_file(self, columns: Columns) -> Columns:
        folders = dict(self._values)
        return {name: column for name, column in columns.items() if name not in folders}

    def _constants(self, columns: Columns) -> dict[str, pa.Array]:
        return {
            key: self._constant(key, value, columns[key])
            for key, value in self._values
            if key in columns
        }

    def _constant(self, key: str, value: str | None, column: Column) -> pa.Array:
        """The folder's value as a column of one row, missing where it does not parse, as in CSV."""
        raw = None if value is None else value.encode("utf-8", "surrogateescape")
        texts = pa.array([raw], pa.binary())
        if key == self._person and declared(column) == pa.float64():
            return pa.array([whole_number(raw)], pa.int64())  # as doubles, two long ids would meet
        read = parse(texts, column)
        return read.cast(read.type.value_type) if pa.types.is_dictionary(read.type) else read


def _repeated(value: pa.Array, rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), value)
