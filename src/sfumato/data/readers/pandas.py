"""Read a frame of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeGuard, TypeVar, overload

import numpy as np
import pyarrow as pa

from sfumato.basics.numbers import Array
from sfumato.data.column_types import AS_DECLARED
from sfumato.data.fields import declared, require_exact_ids
from sfumato.data.objects import parse, whole_numbers
from sfumato.data.reader import BATCH_ROWS, Column, Columns, RowReader

S_co = TypeVar("S_co", covariant=True)


class _Rows(Protocol[S_co]):
    def __getitem__(self, rows: slice[int, int, None], /) -> S_co: ...


class _Series(Protocol):
    """The methods of a column that are used."""

    @property
    def dtype(self) -> object: ...

    @property
    def iloc(self) -> _Rows[_Series]: ...

    def tolist(self) -> list[object]: ...

    def to_numpy(self) -> Array: ...


class _Frame(Protocol):
    """The methods of a frame that are used."""

    @property
    def columns(self) -> Iterable[object]: ...

    @property
    def iloc(self) -> _Rows[_Frame]: ...

    @overload
    def __getitem__(self, name: str, /) -> _Series: ...
    @overload
    def __getitem__(self, names: list[str], /) -> _Frame: ...

    def __len__(self) -> int: ...


def _is_frame(data: object) -> TypeGuard[_Frame]:
    return hasattr(data, "iloc") and hasattr(data, "columns")


class PandasFrame(RowReader):
    """A pandas frame. Only the columns wanted are converted, part by part; the index is ignored."""

    name = "pandas DataFrame"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PandasFrame | None:
        """Read a frame."""
        return cls(data, person) if _is_frame(data) else None

    def __init__(self, frame: _Frame, person: str | None = None) -> None:
        self._frame = frame
        self._person = person

    def names(self) -> list[str]:
        """Give the names of the columns whose name is a text."""
        return [name for name in self._frame.columns if isinstance(name, str)]

    def index_names(self) -> list[str]:
        """Give the names of the index, which is not read."""
        names = getattr(getattr(self._frame, "index", None), "names", ())
        return [name for name in names if isinstance(name, str)]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted, without reading a value.

        A column of objects has the type that the domain declares.
        """
        objects = {name: column for name, column in columns.items() if self._holds_objects(name)}
        require_exact_ids(self.name, self._person, objects, objects=True)
        return pa.schema([self._field(name, column) for name, column in columns.items()])

    def _field(self, name: str, column: Column) -> pa.Field:
        if self._holds_objects(name):
            return pa.field(name, declared(column), metadata=AS_DECLARED)
        if self._widened(name, column):
            return pa.field(name, pa.int64())
        return pa.field(name, self._converted([name], 0, 0, None).schema.field(name).type)

    def _holds_objects(self, name: str) -> bool:
        return self._frame[name].dtype == object

    def _widened(self, name: str, column: Column) -> bool:
        """Whether keys are held as doubles or as unsigned integers.

        This is how pandas holds whole numbers beside a missing or a very large one.
        """
        has_keys = column is not None and column.has_keys
        return has_keys and self._frame[name].dtype in (np.float64, np.uint64)

    def rows(self) -> int | None:
        """Give the number of rows."""
        return len(self._frame)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Convert the columns wanted, part by part."""
        schema = self.schema(columns)
        for start in range(0, len(self._frame), BATCH_ROWS):
            yield from self._part(columns, start, start + BATCH_ROWS, schema).to_batches()

    def _part(self, columns: Columns, start: int, stop: int, schema: pa.Schema) -> pa.Table:
        values: dict[str, pa.Array] = {}
        others: list[str] = []
        for name, column in columns.items():
            series = self._frame[name].iloc[start:stop]
            if self._holds_objects(name):
                values[name] = parse(series.tolist(), column)
            elif self._widened(name, column):
                values[name] = whole_numbers(series.to_numpy())
            else:
                others.append(name)
        if others:
            typed = pa.schema([schema.field(name) for name in others])
            table = self._converted(others, start, stop, typed)
            values |= {name: table[name] for name in others}
        return pa.table({name: values[name] for name in columns}, schema=schema)

    def _converted(
        self, names: list[str], start: int, stop: int, schema: pa.Schema | None
    ) -> pa.Table:
        part = self._frame[names].iloc[start:stop]
        return pa.Table.from_pandas(part, schema=schema, preserve_index=False)
