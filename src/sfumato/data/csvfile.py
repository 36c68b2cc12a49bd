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

from sfumato.data.columns import Column, label_kinds
from sfumato.data.tables import Columns, check_file, guarded, guarded_batches
from sfumato.domain import LabelAxis

BLOCK_BYTES = 2**22
MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)

_TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


def forms(column: Column, person: bool = False) -> tuple[Any, ...]:
    """Types that a column may be read as, the first that fits the first block being taken."""
    if column is None:
        return (pa.string(),)
    if isinstance(column, LabelAxis):
        kinds = label_kinds(column)
        if "text" in kinds:
            return (pa.string(),)
        return (pa.int64(), pa.float64()) if "number" in kinds else (pa.bool_(),)
    if column.time is None:
        numeric = (pa.float64(), pa.bool_())
        return (pa.int64(), *numeric) if person else numeric  # two long ids must not become one double
    return (pa.date32(), *_TIMES) if column.time == "day" else (*_TIMES, pa.date32())


class CsvFile:
    """A CSV file, read block by block."""

    in_memory = False

    def __init__(self, path: Path, person: str | None = None) -> None:
        self.path, self.name = path, str(path)
        self._person = person

    def _open(self, types: dict[str, Any]) -> Any:
        check_file(self.path)
        convert = csv.ConvertOptions(column_types=types, include_columns=list(types), check_utf8=False)
        parse = csv.ParseOptions(newlines_in_values=True)  # without, a line break in quotation marks tears a row apart
        return csv.open_csv(self.path, csv.ReadOptions(block_size=BLOCK_BYTES), parse, convert)

    def names(self) -> list[str]:
        """Names of the columns, from the header."""
        check_file(self.path)
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
    listed = column.labels if isinstance(column, LabelAxis) else ()
    missing = pa.array([text for text in MISSING if text not in listed])
    return pc.if_else(pc.is_in(array, missing), None, array)
