"""Read a numpy array, whose columns are the axes of the domain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from sfumato.basics.numbers import Array
from sfumato.data.objects import text
from sfumato.data.reader import BATCH_ROWS, Columns, RowReader
from sfumato.errors import DataError, UsageError

_LONG_DOUBLE = "g"


class NumpyArray(RowReader):
    """A numpy array of shape (rows, axes), its columns in the domain's order."""

    name = "numpy array"

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> NumpyArray | None:
        """Read an array.

        Raises
        ------
        UsageError
            If its columns are not the axes, or none of them can name the person.
        DataError
            If ids of persons are long doubles: as doubles, two of them could become equal.
        """
        if not isinstance(data, np.ndarray):
            return None
        if person is not None and person not in axes:
            raise UsageError(
                f"person = {person!r}",
                "an array's columns are the domain's axes, and none has that name",
                "Give a frame, or declare the axis",
            )
        if person is not None and data.dtype.char == _LONG_DOUBLE:
            raise DataError(
                f"person = {person!r}",
                f"ids of persons in an array of dtype {data.dtype} may not fit a double",
                'Give array.astype("float64"), if that leaves them as they are, or a frame',
            )
        return cls(data, axes)

    def __init__(self, array: Array, axes: Sequence[str]) -> None:
        if array.ndim != 2 or array.shape[1] != len(axes):
            shape = f"(n, {len(axes)})"
            found = f"{array.ndim}-dimensional numpy array"
            if array.ndim == 2:
                found = f"numpy array of shape (n, {array.shape[1]})"
            number = "one axis" if len(axes) == 1 else f"{len(axes)} axes"
            remedy = f"Give an array of shape {shape}, or declare the axes that it has"
            if array.ndim == 1 and len(axes) == 1:
                remedy = "Write array.reshape(-1, 1)"
            raise UsageError(
                f"a {found}",
                f"the domain has {number}, and the array needs one column for each: shape {shape}",
                remedy,
            )
        self._array = array
        self._axes = list(axes)

    def names(self) -> list[str]:
        """Give the names of the domain's axes."""
        return self._axes

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the type of the array for each column."""
        return self._batch(0, 0, columns).schema

    def rows(self) -> int | None:
        """Give the number of rows."""
        return len(self._array)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Copy the columns wanted, part by part."""
        for start in range(0, len(self._array), BATCH_ROWS):
            yield self._batch(start, start + BATCH_ROWS, columns)

    def _batch(self, start: int, stop: int, columns: Columns) -> pa.RecordBatch:
        if self._array.dtype.kind not in "biufMU":
            asked = f"a numpy array of dtype {self._array.dtype}"
            raise DataError(asked, "it holds no plain values", "Give numbers, or a frame")
        parts = [self._array[start:stop, self._axes.index(name)] for name in columns]
        return pa.RecordBatch.from_arrays([_column(part) for part in parts], names=list(columns))


def _column(part: Array) -> pa.Array:
    mask = np.ma.getmaskarray(part) if isinstance(part, np.ma.MaskedArray) else None
    if part.dtype.kind == "U":
        # A lone surrogate is no valid text, and counts as missing.
        texts = [text(value) for value in np.asarray(part).tolist()]
        return pa.array(texts, pa.string(), mask=mask)
    # Arrow knows neither long doubles nor other byte orders.
    native = (
        np.dtype(np.float64) if part.dtype.char == _LONG_DOUBLE else part.dtype.newbyteorder("=")
    )
    # numpy would warn that a value is too large: a warning must not depend on values.
    with np.errstate(over="ignore"):
        return pa.array(np.ascontiguousarray(part, dtype=native), mask=mask)
