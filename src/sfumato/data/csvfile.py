"""CSV files: types are declared by the domain, never inferred from the data.

The file has a header, commas, and quotation marks where needed; ``.csv.gz`` is decompressed. Missing is: nothing, ``NA``,
``N/A``, ``NaN``, ``nan``, ``NULL``, ``null`` and a few like them (pyarrow's list), unless the domain lists it as a label.
Of each column the form is settled on the first block of 4 MB: dates or times, with or without a zone; whole numbers or
numbers with a point; true and false. A file that is ragged, or holds text where numbers are declared, is refused: in the first block before
anything is charged, later on during the scan. That a file is well formed is taken for public.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyarrow import csv

from sfumato.data.columns import Column, forms
from sfumato.data.tables import Columns, Single, check_file, guarded, guarded_batches
from sfumato.domain import LabelAxis
from sfumato.errors import DataError

BLOCK_BYTES = 2**22
MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)


class CsvFile(Single):
    """A CSV file, read block by block."""

    in_memory, has_schema = False, False

    def __init__(self, path: Path, name: str, person: str | None = None) -> None:
        self.path, self.name = path, name
        self._person = person

    def _open(self, types: dict[str, Any]) -> Any:
        check_file(self.path, self.name)
        convert = csv.ConvertOptions(column_types=types, include_columns=list(types), check_utf8=False)
        parse = csv.ParseOptions(newlines_in_values=True)  # without, a line break in quotation marks tears a row apart
        return csv.open_csv(self.path, csv.ReadOptions(block_size=BLOCK_BYTES), parse, convert)

    def names(self) -> list[str]:
        """Names of the columns, from the header."""
        check_file(self.path, self.name)
        return list(guarded(self.name, lambda: self._open({}).schema.names))

    def schema(self, columns: Columns) -> Any:
        """Settle the form of each column."""
        candidates = {name: self._forms(name, column) for name, column in columns.items()}
        types = {name: several[0] for name, several in candidates.items()}
        if not self._reads(types):
            types = {name: self._form(name, several) for name, several in candidates.items()}
        return pa.schema(list(types.items()))

    def _forms(self, name: str, column: Column) -> tuple[Any, ...]:
        """What a column may be read as. No value may choose for others between forms in which they are not the same."""
        if name == self._person and pa.float64() in forms(column):
            raise DataError(
                f"{self.name}, column {name!r}",
                "it names the person, as text, and is an axis of numbers at the same time",
                "Write it twice, under two names, or write the table as Parquet",
            )
        return (pa.float64(),) if _is_whole(column) else forms(column)

    def _form(self, name: str, candidates: tuple[Any, ...]) -> Any:
        for type_ in candidates[:-1]:
            if self._reads({name: type_}):
                return type_
        guarded(f"{self.name}, column {name!r}", lambda: self._open({name: candidates[-1]}).close())
        return candidates[-1]

    def _reads(self, types: dict[str, Any]) -> bool:
        try:
            self._open(types).close()
        except Exception:  # whatever it is, the last form tried says so
            return False
        return True

    def rows(self) -> int | None:
        """Not known before the end."""
        return None

    def batches(self, columns: Columns) -> Iterator[Any]:
        """Read the columns wanted, in the form settled."""
        schema = self.schema(columns)
        types = {name: pa.string() if _is_whole(column) else schema.field(name).type for name, column in columns.items()}
        for batch in guarded_batches(self.name, lambda: self._open(types)):
            yield guarded(self.name, lambda batch=batch: _read(batch, columns))  # type: ignore[misc]


def _read(batch: Any, columns: Columns) -> Any:
    read = {name: _with_missing(batch[name], column) for name, column in columns.items()}
    read |= {name: _whole(read[name], column) for name, column in columns.items() if _is_whole(column)}
    return pa.RecordBatch.from_arrays(list(read.values()), names=list(read))


def _is_whole(column: Column) -> bool:
    """Whether labels are whole numbers: read one by one, since as doubles long ones would meet."""
    return isinstance(column, LabelAxis) and pa.int64() in forms(column)


def _whole(texts: Any, axis: Any) -> Any:
    """Labels that are listed as they are, and some number that is not listed for all others."""
    other = next(number for number in count() if number not in axis.listed)
    encoded = texts.dictionary_encode()
    found = [_number(text) for text in encoded.dictionary.to_pylist()]
    numbers = pa.array([number if number in axis.listed else other for number in found], pa.int64())
    return pa.DictionaryArray.from_arrays(encoded.indices, numbers)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _with_missing(array: Any, column: Column) -> Any:
    """Text that stands for a missing value becomes null, unless the domain lists it."""
    if not pt.is_string(array.type):
        return array
    listed = column.listed if isinstance(column, LabelAxis) else ()
    missing = pa.array([text for text in MISSING if text not in listed])
    return pc.if_else(pc.is_in(array, missing), None, array)
