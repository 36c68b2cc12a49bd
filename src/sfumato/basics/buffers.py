"""Arrays of Arrow as arrays of numpy, and the other way, by their buffers.

Arrow's own ways import pandas, where it is installed, before they do anything: ``pa.array``,
``pa.scalar``, ``to_numpy``, ``fill_null`` and whatever takes a plain number. That is half of the
processor time of a small release, and neither a scan nor the table of an answer needs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pyarrow as pa

from sfumato.basics.lazily import Deferred
from sfumato.basics.numbers import Array

if TYPE_CHECKING:
    from pyarrow import compute

    pc = compute
else:
    pc = Deferred("pyarrow.compute")
"""Arrow's functions, which take a tenth of the processor time of a small release to import."""

Column: TypeAlias = "pa.Array | pa.ChunkedArray | Array | Sequence[object]"

_TYPES = {
    np.dtype(np.bool_): pa.bool_(),
    np.dtype(np.int32): pa.int32(),
    np.dtype(np.int64): pa.int64(),
    np.dtype(np.uint64): pa.uint64(),
    np.dtype(np.float64): pa.float64(),
}


def ndarray_of(array: pa.Array | pa.ChunkedArray, missing: float | bool | None = None) -> Array:
    """Return the values of an array of booleans, whole numbers or doubles: ndarray of its length.

    It may share the memory of the array, so it must not be written to.

    Parameters
    ----------
    array : pyarrow.Array
    missing : number, bool or None
        What stands for null. None: NaN among doubles; any other array has no null.

    >>> ndarray_of(pa.array([True, None]), False).tolist()
    [True, False]
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    start = array.offset
    stop = start + len(array)
    # What stands in the buffer of values, also where the array is null.
    buffer = array.buffers()[1]
    if buffer is None or stop == start:
        values = np.zeros(len(array), _dtype_of(array.type))
    elif pa.types.is_boolean(array.type):
        first = start // 8
        packed = np.frombuffer(buffer, np.uint8)[first : -(-stop // 8)]
        bits = np.unpackbits(packed, bitorder="little").view(np.bool_)
        values = bits[start - 8 * first : stop - 8 * first]
    else:
        values = np.frombuffer(buffer, _dtype_of(array.type))[start:stop]
    if not array.null_count:
        return values
    if missing is None:
        assert pa.types.is_floating(array.type)
        missing = np.nan
    return np.where(is_valid(array), values, values.dtype.type(missing))


def is_valid(array: pa.Array | pa.ChunkedArray) -> Array:
    """Tell which values are not null: bool ndarray of shape (rows,)."""
    return ndarray_of(array.is_valid())


def array_of(values: Array, is_null: Array | None = None) -> pa.Array:
    """Return an array of the values, without a copy where it can be.

    Parameters
    ----------
    values : ndarray of shape (rows,)
        Booleans, whole numbers or doubles.
    is_null : bool ndarray of shape (rows,), or None

    >>> array_of(np.array([3, 4]), np.array([False, True])).to_pylist()
    [3, None]
    """
    validity = None if is_null is None else _bits(~is_null)
    own = _bits(values) if values.dtype == np.bool_ else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [validity, own])


def binary_of(texts: Sequence[bytes]) -> pa.Array:
    """Return an array of bytes.

    >>> binary_of([b"a", b"bc"]).to_pylist()
    [b'a', b'bc']
    """
    offsets = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(list(map(len, texts)), out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.binary(), len(texts), buffers)


def column_of(values: Column, is_null: Array | None = None) -> pa.Array | pa.ChunkedArray:
    """Return values as a column of a table, as ``pa.array`` gives it.

    Parameters
    ----------
    values : Array of Arrow, ndarray or sequence
    is_null : bool ndarray of shape (rows,), or None
        Which values of an ndarray are null.

    >>> column_of(["a", "b"]).to_pylist(), column_of(np.array(["2026-01-01"], "M8[D]")).type
    (['a', 'b'], DataType(date32[day]))
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray):
        return _column_of_ndarray(values, is_null)
    types = set(map(type, values))
    if types == {str}:
        texts = [text.encode() for text in cast("Sequence[str]", values)]
        return binary_of(texts).view(pa.string())
    if types in ({int}, {float}):
        # Whole numbers beyond 64 bits become objects of numpy, and are refused as by Arrow.
        return _column_of_ndarray(np.array(values), is_null)
    return pa.array(values)


def _column_of_ndarray(values: Array, is_null: Array | None) -> pa.Array:
    if values.dtype in _TYPES:
        return array_of(values, is_null)
    if values.dtype == "M8[D]" and not np.isnat(values).any():
        return array_of(values.view(np.int64).astype(np.int32), is_null).view(pa.date32())
    return pa.array(values, mask=is_null)


def table_of(columns: Mapping[str, Column]) -> pa.Table:
    """Return a table of columns, as ``pa.table`` gives it.

    >>> table_of({"ward": ["a", "b"], "count": np.array([3, 4])}).to_pylist()
    [{'ward': 'a', 'count': 3}, {'ward': 'b', 'count': 4}]
    """
    return pa.table({name: column_of(values) for name, values in columns.items()})


def copy_of(text: bytes | memoryview) -> pa.Buffer:
    """Return bytes in memory of Arrow's own.

    A thread of Arrow may let go of a stream when Python has already ended. Of memory of Python's it
    could not, and the process would crash.
    """
    copy = pa.allocate_buffer(len(text), pa.system_memory_pool())
    np.frombuffer(copy, np.uint8)[:] = np.frombuffer(text, np.uint8)
    return copy


def without(array: pa.Array, is_gone: pa.Array) -> pa.Array:
    """Return the array with null in some places.

    >>> without(pa.array([3, 4]), pa.array([True, False])).to_pylist()
    [None, 4]
    """
    return pc.if_else(is_gone, pa.nulls(len(array), array.type), array)


def is_true(booleans: pa.Array) -> pa.Array:
    """Return the booleans with false in place of null.

    >>> is_true(pa.array([True, None])).to_pylist()
    [True, False]
    """
    return pc.and_kleene(booleans, booleans.is_valid())


def _dtype_of(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "?"
    kind = "f" if pa.types.is_floating(type_) else "i" if pa.types.is_signed_integer(type_) else "u"
    return f"{kind}{type_.bit_width // 8}"


def _bits(booleans: Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(booleans, bitorder="little"))
