"""Keys to cells: values that are not known beforehand get numbers as they come, and are put in order at the end.

Whatever the engine, the parts and the order of the rows, the same keys get the same cells: keys are
sorted (text by code points), so that the order of a file cannot show. A key is text, an integer or
a boolean; text that is not UTF-8 is missing.
Memory: the distinct keys, and at most as many rows again while they are looked up. Nothing is shown
of them before it is paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from sfumato.arrays import Array
from sfumato.cube import Cube, KeyColumn, KeyList
from sfumato.data.columns import decoded, dictionary_of
from sfumato.errors import UsageError
from sfumato.lattice import DROPPED, KeyAxis, Label

Range: TypeAlias = "slice[int | None, int | None, int | None]"


class Sorted(Sequence[Label]):
    """Keys in order, without a sorted copy of them: few of many are ever looked at."""

    def __init__(self, keys: pa.Array, order: Array) -> None:
        self._keys = keys
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Label: ...
    @overload
    def __getitem__(self, place: Range) -> list[Label]: ...
    def __getitem__(self, place: int | Range) -> Label | list[Label]:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        key: Label = self._keys[int(self._order[place])].as_py()
        return key

    def take(self, places: Array) -> list[Label]:
        """The keys at some places."""
        return list(self._keys.take(pa.array(self._order[places])).to_pylist())

    def to_pylist(self) -> list[Label]:
        """All keys."""
        return self.take(np.arange(len(self)))

    def __reduce__(self) -> NoReturn:
        raise UsageError("pickling keys", "they are true data", "Publish a release and save that")


class KeyNumbers:
    """Numbers keys in the order in which they come."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None  # distinct keys, in the order of their numbers
        self._last: pa.Array | None = (
            None  # the last dictionary of a column, and where its values went
        )
        self._cells = np.zeros(0, np.int64)
        self._order = np.zeros(0, np.int64)
        self._ranks: Array | None = None

    def __len__(self) -> int:
        return 0 if self._known is None else len(self._known)

    def cells(self, array: pa.Array) -> Array:
        """Numbers of the keys of a column: int64 ndarray of shape (rows,)."""
        if pt.is_null(array.type):
            return np.full(len(array), DROPPED, np.int64)
        if not pt.is_dictionary(array.type):
            return self._numbers(decoded(array))
        encoded = dictionary_of(array)
        dictionary = encoded.dictionary
        if (
            self._last is None
            or self._last.type != dictionary.type
            or not self._last.equals(dictionary)
        ):
            self._last = dictionary
            self._cells = np.append(self._numbers(decoded(dictionary)), DROPPED)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(self._cells) - 1)
        return np.asarray(self._cells[indices.to_numpy(zero_copy_only=False)])

    def _numbers(self, values: pa.Array) -> Array:
        if pt.is_null(values.type):
            return np.full(len(values), DROPPED, np.int64)
        values = _one_type(values)
        held = values.drop_null() if values.null_count else values
        known = held.slice(0, 0) if self._known is None else self._known
        both = pa.concat_arrays([known, held]).dictionary_encode()
        found = both.indices.slice(len(known)).to_numpy().astype(np.int64)
        self._known = both.dictionary
        if not values.null_count:
            return np.asarray(found)
        numbers = np.full(len(values), DROPPED, np.int64)
        numbers[values.is_valid().to_numpy(zero_copy_only=False)] = found
        return numbers

    def ranks(self) -> Array:
        """From numbers to places among the sorted keys: int64 ndarray of shape (keys,)."""
        if self._ranks is None:
            order = np.zeros(0, np.int64)
            if self._known is not None and len(
                self
            ):  # Arrow knows no order of booleans as dictionaries have them; there are two at most
                sortable = (
                    self._known.cast(pa.int8()) if pt.is_boolean(self._known.type) else self._known
                )
                order = pc.array_sort_indices(sortable).to_numpy().astype(np.int64)
            self._order = order
            self._ranks = np.empty_like(order)
            self._ranks[order] = np.arange(len(order))
        return np.asarray(self._ranks)

    @property
    def sorted(self) -> KeyColumn:
        """The keys in order."""
        self.ranks()
        return KeyList() if self._known is None else Sorted(self._known, self._order)


def _one_type(values: pa.Array) -> pa.Array:
    """Text as large strings, integers as int64; text that is not UTF-8 becomes null."""
    if pt.is_integer(values.type):
        return values.cast(pa.int64())
    if pt.is_boolean(values.type):
        return values
    values = values.cast(pa.large_string())
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [_text(raw) for raw in values.cast(pa.large_binary()).to_pylist()], pa.large_string()
        )
    return values


def _text(raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return None


def named(cube: Cube, numbers: dict[KeyAxis, KeyNumbers]) -> Cube:
    """Give a cube whose cells are numbers of keys the keys themselves, in order."""
    keyed = {i: numbers[KeyAxis(name)] for i, name in cube.lattice.keyed.items()}
    if not keyed or cube.coordinates is None:
        return cube
    coordinates = cube.coordinates.copy()
    for i, each in keyed.items():
        coordinates[:, i] = each.ranks()[coordinates[:, i]]
    order = np.lexsort(coordinates.T[::-1])
    keys = {cube.lattice.axes[i].name: each.sorted for i, each in keyed.items()}
    return replace(cube, counts=cube.counts[order], coordinates=coordinates[order], keys=keys)
