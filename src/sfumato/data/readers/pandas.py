"""A frame of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeGuard, TypeVar, overload

import numpy as np
import pyarrow as pa

from sfumato.arrays import Array
from sfumato.data.fields import declared
from sfumato.data.objects import parse, whole_numbers
from sfumato.data.reader import BATCH_ROWS, Column, Columns, RowReader

S_co = TypeVar("S_co", covariant=True)


class _Rows(Protocol[S_co]):
    def __getitem__(self, rows: slice[int, int, None], /) -> S_co: ...


class _Series(Protocol):
    """What is used of a column."""

    @property
    def dtype(self) -> object: ...

    @property
    def iloc(self) -> _Rows[_Series]: ...

    def tolist(self) -> list[object]: ...

    def to_numpy(self) -> Array: ...


class _Frame(Protocol):
    """What is used of a frame."""

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
    """A pandas frame. Only the columns wanted are converted, part by part; its index is none."""

    name = "pandas DataFrame"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PandasFrame | None:
        """Read a frame."""
        return cls(data) if _is_frame(data) else None

    def __init__(self, frame: _Frame) -> None:
        self._frame = frame

    def names(self) -> list[str]:
        """Names of the columns that have a text for a name."""
        return [name for name in self._frame.columns if isinstance(name, str)]

    def schema(self, columns: Columns) -> pa.Schema:
        """Types of the columns wanted, without a look at a value.

        Objects have the type that the domain declares.
        """
        return pa.schema([(name, self._type(name, column)) for name, column in columns.items()])

    def _type(self, name: str, column: Column) -> pa.DataType:
        if self._holds_objects(name):
            return declared(column)
        if self._widened(name, column):
            return pa.int64()
        return self._converted([name], 0, 0, None).schema.field(name).type

    def _holds_objects(self, name: str) -> bool:
        return self._frame[name].dtype == object

    def _widened(self, name: str, column: Column) -> bool:
        """Whether keys are held as floats or without a sign.

        So pandas holds whole numbers beside a missing or a huge one.
        """
        has_keys = column is not None and column.has_keys
        return has_keys and self._frame[name].dtype in (np.float64, np.uint64)

    def rows(self) -> int | None:
        """Number of rows."""
        return len(self._frame)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Convert and read part by part."""
        schema = self.schema(columns)
        for start in range(0, len(self._frame), BATCH_ROWS):
            yield from self._part(columns, start, start + BATCH_ROWS, schema).to_batches()

    def _part(self, columns: Columns, start: int, stop: int, schema: pa.Schema) -> pa.Table:
        objects = [name for name in columns if self._holds_objects(name)]
        widened = [name for name, column in columns.items() if self._widened(name, column)]
        others = [name for name in columns if name not in (*objects, *widened)]
        read: dict[str, pa.Array] = {}
        if others:
            typed = pa.schema([schema.field(name) for name in others])
            table = self._converted(others, start, stop, typed)
            read = {name: table[name] for name in others}
        for name in objects:
            read[name] = parse(self._frame[name].iloc[start:stop].tolist(), columns[name])
        for name in widened:
            read[name] = whole_numbers(self._frame[name].iloc[start:stop].to_numpy())
        return pa.table({name: read[name] for name in columns}, schema=schema)

    def _converted(
        self, names: list[str], start: int, stop: int, schema: pa.Schema | None
    ) -> pa.Table:
        part = self._frame[names].iloc[start:stop]
        return pa.Table.from_pandas(part, schema=schema, preserve_index=False)
