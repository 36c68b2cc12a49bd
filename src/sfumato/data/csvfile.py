"""CSV files: types are declared by the domain, never inferred from the data.

The file has a header, commas, and quotation marks where needed; ``.csv.gz`` is decompressed. Missing is: nothing, ``NA``,
``N/A``, ``NaN``, ``nan``, ``NULL``, ``null`` and a few like them (pyarrow's list), unless the domain lists it as a label.
Of each column the form is settled on the first block of 4 MB: dates or times, with or without a zone; whole numbers or
numbers with a point; true and false. A file that is ragged, or holds text where numbers are declared, is refused: in the first block before
anything is charged, later on during the scan. That a file is well formed is taken for public.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyarrow import csv

from sfumato.data.columns import Column, forms
from sfumato.data.tables import Columns, Single, check_file, guarded, guarded_batches
from sfumato.domain import LabelAxis

BLOCK_BYTES = 2**22
MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)


class CsvFile(Single):
    """A CSV file, read block by block."""

    in_memory = False

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
        candidates = {name: forms(column, name == self._person) for name, column in columns.items()}
        types = {name: several[0] for name, several in candidates.items()}
        if not self._reads(types):
            types = {name: self._form(name, several) for name, several in candidates.items()}
        return pa.schema(list(types.items()))

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
        types = {name: schema.field(name).type for name in columns}
        for batch in guarded_batches(self.name, lambda: self._open(types)):
            yield pa.RecordBatch.from_arrays([_with_missing(batch[name], columns[name]) for name in columns], names=list(columns))


def _with_missing(array: Any, column: Column) -> Any:
    """Text that stands for a missing value becomes null, unless the domain lists it."""
    if not pt.is_string(array.type):
        return array
    listed = column.listed if isinstance(column, LabelAxis) else ()
    missing = pa.array([text for text in MISSING if text not in listed])
    return pc.if_else(pc.is_in(array, missing), None, array)
