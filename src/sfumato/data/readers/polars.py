"""Read a frame of polars, eager or lazy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeGuard

import pyarrow as pa

from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.errors import DataError


class _Schema(Protocol):
    def to_frame(self) -> _Eager: ...


class _Frame(Protocol):
    """The methods of any frame that are used."""

    def select(self, names: list[str], /) -> _Frame: ...

    def collect_schema(self) -> _Schema: ...


class _Eager(_Frame, Protocol):
    """The methods of an eager frame that are used."""

    columns: Sequence[str]
    schema: Mapping[str, object]

    def select(self, names: list[str], /) -> _Eager: ...

    def clear(self) -> _Eager: ...

    def __len__(self) -> int: ...


class _Lazy(_Frame, Protocol):
    """The methods of a lazy frame that are used; older versions lack ``collect_batches``."""

    def select(self, names: list[str], /) -> _Lazy: ...

    def collect(self) -> _Eager: ...

    def collect_batches(self, *, chunk_size: int, maintain_order: bool) -> Iterator[_Eager]: ...


def _is_frame(data: object) -> TypeGuard[_Eager | _Lazy]:
    return hasattr(data, "select") and hasattr(data, "collect_schema")


def _is_lazy(frame: _Eager | _Lazy) -> TypeGuard[_Lazy]:
    return hasattr(frame, "collect")


def _is_eager(frame: _Eager | _Lazy) -> TypeGuard[_Eager]:
    return not hasattr(frame, "collect")


_SAME_ROWS_OF_LAZY = (
    "The lazy frame of polars gave the same rows in all scans of this release: nobody wrote to its"
    " files meanwhile, and it draws none at random."
)


class PolarsFrame(RowReader):
    """A polars frame. A lazy one is run again for each scan, in batches.

    Over a frame in memory it gives the same rows again, as long as its query draws none at random.
    Files are opened anew for each scan, and polars holds no state of them.

    The rows keep an order as far as the query has one.
    """

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PolarsFrame | None:
        """Read a frame."""
        return cls(data) if _is_frame(data) else None

    def __init__(self, frame: _Eager | _Lazy) -> None:
        self._frame = frame
        self.name = f"polars {type(frame).__name__}"
        self.same_rows = _SAME_ROWS_OF_LAZY if _is_lazy(frame) else ""

    def _empty(self) -> _Eager:
        """The frame without its rows; a lazy frame is not run for it."""
        frame = self._frame
        return frame.clear() if _is_eager(frame) else frame.collect_schema().to_frame()

    def names(self) -> list[str]:
        """Give the names of the columns."""
        return list(self._empty().columns)

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of the columns wanted.

        Python objects are refused, because polars hands out their addresses in memory instead.
        """
        empty = self._empty().select(list(columns))
        for name, type_ in empty.schema.items():
            kind = type_ if isinstance(type_, type) else type(type_)
            if kind.__name__ == "Object":
                raise DataError(
                    f"{self.name}, column {name!r}",
                    "it holds Python objects",
                    "Convert it to text, numbers or dates",
                )
        return pa.RecordBatchReader.from_stream(empty).schema

    def rows(self) -> int | None:
        """Give the number of rows of an eager frame."""
        frame = self._frame
        return len(frame) if _is_eager(frame) else None

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        for frame in self._frames(list(columns)):
            yield from pa.RecordBatchReader.from_stream(frame)

    def _frames(self, names: list[str]) -> Iterator[_Eager]:
        frame = self._frame
        if _is_eager(frame):
            yield frame.select(names)
        elif _is_lazy(frame):
            wanted = frame.select(names)
            if hasattr(wanted, "collect_batches"):
                yield from wanted.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
            else:
                yield wanted.collect()
