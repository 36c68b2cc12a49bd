"""Read frames: of pandas, and of polars, eager or lazy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeGuard, cast

import numpy as np
import pyarrow as pa

from sfumato.data.fields import declared, require_exact_ids
from sfumato.data.objects import parsed_objects, whole_numbers
from sfumato.data.reader import BATCH_ROWS, Column, Columns, Losses, NotingReader, Piece, RowReader
from sfumato.data.schema import AS_DECLARED
from sfumato.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


# --- pandas ---------------------------------------------------------------------------------------


class PandasFrame(NotingReader):
    """A pandas frame. Only the columns wanted are converted, part by part; the index is ignored."""

    name = "pandas DataFrame"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PandasFrame | None:
        is_frame = hasattr(data, "iloc") and hasattr(data, "columns")
        return cls(cast("pd.DataFrame", data), person) if is_frame else None

    def __init__(self, frame: pd.DataFrame, person: str | None = None) -> None:
        self._frame = frame
        self._person = person

    def names(self) -> list[str]:
        return [name for name in self._frame.columns if isinstance(name, str)]

    def index_names(self) -> list[str]:
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
        return pa.field(name, self._converted([name], slice(0, 0), None).schema.field(name).type)

    def _holds_objects(self, name: str) -> bool:
        return bool(self._frame[name].dtype == object)

    def _widened(self, name: str, column: Column) -> bool:
        """Tell whether keys are held as doubles or as unsigned integers.

        This is how pandas holds whole numbers beside a missing or a very large one.
        """
        has_keys = column is not None and column.has_keys
        return has_keys and self._frame[name].dtype in (np.float64, np.uint64)

    def rows(self) -> int | None:
        return len(self._frame)

    def pieces_noting(self, columns: Columns, losses: Losses) -> list[Piece]:
        """Give the frame in one piece, and add to ``losses`` the objects of another kind."""
        return [partial(self._batches, columns, losses)]

    def _batches(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        schema = self.schema(columns)
        for start in range(0, len(self._frame), BATCH_ROWS):
            rows = slice(start, start + BATCH_ROWS)
            values: dict[str, pa.Array] = {}
            others: list[str] = []
            for name, column in columns.items():
                series = self._frame[name].iloc[rows]
                if self._holds_objects(name):
                    values[name] = parsed_objects(series.tolist(), name, column, losses)
                elif self._widened(name, column):
                    values[name] = whole_numbers(series.to_numpy(), name, losses)
                else:
                    others.append(name)
            if others:
                typed = pa.schema([schema.field(name) for name in others])
                table = self._converted(others, rows, typed)
                values |= {name: table[name] for name in others}
            in_order = {name: values[name] for name in columns}
            yield from pa.table(in_order, schema=schema).to_batches()

    def _converted(
        self, names: list[str], rows: slice[int, int, None], schema: pa.Schema | None
    ) -> pa.Table:
        part = self._frame[names].iloc[rows]
        return pa.Table.from_pandas(part, schema=schema, preserve_index=False)


# --- polars ---------------------------------------------------------------------------------------


def _is_lazy(frame: pl.DataFrame | pl.LazyFrame) -> TypeGuard[pl.LazyFrame]:
    return hasattr(frame, "collect")


def _is_eager(frame: pl.DataFrame | pl.LazyFrame) -> TypeGuard[pl.DataFrame]:
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
        is_frame = hasattr(data, "select") and hasattr(data, "collect_schema")
        return cls(cast("pl.DataFrame | pl.LazyFrame", data)) if is_frame else None

    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame
        self.name = f"polars {type(frame).__name__}"
        self.same_rows = _SAME_ROWS_OF_LAZY if _is_lazy(frame) else ""

    def _empty(self) -> pl.DataFrame:
        """Return the frame without its rows; a lazy frame is not run for it."""
        frame = self._frame
        return frame.clear() if _is_eager(frame) else frame.collect_schema().to_frame()

    def names(self) -> list[str]:
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
        frame = self._frame
        return len(frame) if _is_eager(frame) else None

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        wanted = self._frame.select(list(columns))
        frames: Iterable[pl.DataFrame] = [wanted] if _is_eager(wanted) else []
        if _is_lazy(wanted):
            if hasattr(wanted, "collect_batches"):
                frames = wanted.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)
            else:
                frames = [wanted.collect()]
        for frame in frames:
            yield from pa.RecordBatchReader.from_stream(frame)
