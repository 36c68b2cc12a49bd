"""The columns of an engine's result, as they come in Arrow's form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.arrays import Array
from sfumato.data.engines.groups import Column


def columns_of(table: pa.Table) -> list[Column]:
    """Give the columns: whole numbers as int64 where they fit, anything else one by one."""
    return [_column(table.column(place)) for place in range(table.num_columns)]


def _column(column: pa.ChunkedArray) -> Column:
    if pt.is_decimal(column.type):
        return _whole_numbers(column.combine_chunks())
    if pt.is_integer(column.type):
        return np.asarray(column.to_numpy(), np.int64)
    keys: Sequence[str] = column.to_pylist()
    return keys


def _whole_numbers(decimals: pa.Array) -> Column:
    """Decimals of 128 bits without a fraction."""
    if isinstance(decimals, pa.ChunkedArray):
        decimals = pa.concat_arrays(decimals.chunks) if decimals.chunks else decimals
    words: Array = np.frombuffer(decimals.buffers()[1], np.int64)
    words = words.reshape(-1, 2)[decimals.offset : decimals.offset + len(decimals)]
    low, high = words[:, 0], words[:, 1]
    if (high == low >> 63).all():
        return np.ascontiguousarray(low)
    return [int(each) for each in decimals.to_pylist()]
