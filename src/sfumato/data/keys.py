"""Number the keys of a column as they occur, and sort them at the end of a scan.

A key is text, an integer or a boolean that is not known beforehand; text that is not UTF-8 is
missing. The same keys get the same cells, whatever the engine, the batches and the order of the
rows: keys are sorted (text by code points), so the order of a file does not show.
Memory: the distinct keys, and at most as many rows again while they are looked up. No key is shown
before it is paid for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import pyarrow as pa

from sfumato.basics import Array, pc
from sfumato.data.columns import decoded, dictionary_of, text_of
from sfumato.domain import DROPPED, Cube, KeyAxis, KeyColumn, KeyList, Label
from sfumato.errors import UsageError


class SortedKeys:
    """Keys in sorted order, without a sorted copy: few of many keys are ever looked at."""

    def __init__(self, keys: pa.Array, order: Array) -> None:
        self._keys = keys
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> Label:
        return self.take(np.array([place]))[0]

    def take(self, places: Array) -> list[Label]:
        """Give the keys at some indices."""
        return list(self._keys.take(pa.array(self._order[places])).to_pylist())

    def to_pylist(self) -> list[Label]:
        """Give all keys."""
        return self.take(np.arange(len(self)))

    def __reduce__(self) -> NoReturn:
        raise UsageError("pickling keys", "they are true data", "Publish a release and save that")


class KeyNumbers:
    """Numbers the keys of one axis in the order in which they occur."""

    def __init__(self) -> None:
        self._known: pa.Array | None = None  # distinct keys, in the order of their numbers
        # The last dictionary of a column, and the numbers of its values, then DROPPED for nulls.
        self._last_dictionary: pa.Array | None = None
        self._last_numbers = np.zeros(0, np.int64)
        self._order = np.zeros(0, np.int64)
        self._ranks: Array | None = None

    def __len__(self) -> int:
        return 0 if self._known is None else len(self._known)

    def known_from(self, number: int) -> pa.Array:
        """Give the keys from a number on, of which there must be one."""
        assert self._known is not None
        return self._known.slice(number)

    def numbers_of(self, other: KeyNumbers) -> Array:
        """Number the keys of another one as well: int64 ndarray of shape (keys,), in its order."""
        return np.zeros(0, np.int64) if other._known is None else self._numbers(other._known)

    def cells(self, array: pa.Array) -> Array:
        """Give the numbers of a column's keys: int64 ndarray of shape (rows,)."""
        if pa.types.is_null(array.type):
            return np.full(len(array), DROPPED, np.int64)
        if not pa.types.is_dictionary(array.type):
            return self._numbers(decoded(array))
        encoded = dictionary_of(array)
        dictionary = encoded.dictionary
        last = self._last_dictionary
        if last is None or last.type != dictionary.type or not last.equals(dictionary):
            self._last_dictionary = dictionary
            self._last_numbers = np.append(self._numbers(decoded(dictionary)), DROPPED)
        indices = encoded.indices
        if indices.null_count:
            indices = indices.cast(pa.int64()).fill_null(len(self._last_numbers) - 1)
        return np.asarray(self._last_numbers[indices.to_numpy(zero_copy_only=False)])

    def _numbers(self, values: pa.Array) -> Array:
        if pa.types.is_null(values.type):
            return np.full(len(values), DROPPED, np.int64)
        values = _of_one_type(values)
        present = values.drop_null() if values.null_count else values
        known = present.slice(0, 0) if self._known is None else self._known
        # A dictionary lists values in the order in which they occur: known keys keep their numbers.
        encoded = pa.concat_arrays([known, present]).dictionary_encode()
        new_numbers = encoded.indices.slice(len(known)).to_numpy().astype(np.int64)
        self._known = encoded.dictionary
        if not values.null_count:
            return np.asarray(new_numbers)
        numbers = np.full(len(values), DROPPED, np.int64)
        numbers[values.is_valid().to_numpy(zero_copy_only=False)] = new_numbers
        return numbers

    def ranks(self) -> Array:
        """Give the rank of each number's key among the sorted keys: int64 ndarray of (keys,)."""
        if self._ranks is None:
            if self._known is not None and len(self._known):
                # Arrow cannot sort booleans that it holds as a dictionary.
                is_boolean = pa.types.is_boolean(self._known.type)
                sortable = self._known.cast(pa.int8()) if is_boolean else self._known
                self._order = pc.array_sort_indices(sortable).to_numpy().astype(np.int64)
            self._ranks = np.empty_like(self._order)
            self._ranks[self._order] = np.arange(len(self._order))
        return np.asarray(self._ranks)

    @property
    def sorted(self) -> KeyColumn:
        """The keys in sorted order."""
        self.ranks()
        return KeyList() if self._known is None else SortedKeys(self._known, self._order)


def _of_one_type(values: pa.Array) -> pa.Array:
    """Text as large strings, integers as int64; text that is not UTF-8 becomes null."""
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    if pa.types.is_boolean(values.type):
        return values
    texts = values.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        pass
    else:
        return texts
    # Outside the except block: an error in there would carry a value in its context.
    raw = texts.cast(pa.large_binary()).to_pylist()
    valid = [None if value is None else text_of(value) for value in raw]
    return pa.array(valid, pa.large_string())


def with_sorted_keys(cube: Cube, key_numbers: dict[KeyAxis, KeyNumbers]) -> Cube:
    """Turn the cells of a cube from numbers of keys into ranks, and give it the sorted keys."""
    # Several axes may read one column, so an axis is known by all that it is.
    numbers = {
        index: key_numbers[axis]
        for index, axis in enumerate(cube.lattice.axes)
        if isinstance(axis, KeyAxis)
    }
    if not numbers or cube.coordinates is None:
        return cube
    # Numbers tell in which order keys came: ranks take their place, so that no order of rows shows.
    coordinates = cube.coordinates.copy()
    for index, of_axis in numbers.items():
        coordinates[:, index] = of_axis.ranks()[coordinates[:, index]]
    order = np.lexsort(coordinates.T[::-1])
    keys = {cube.lattice.axes[index].name: of_axis.sorted for index, of_axis in numbers.items()}
    sums = None if cube.sums is None else cube.sums[order]
    counts = cube.counts[order]
    return replace(cube, counts=counts, coordinates=coordinates[order], keys=keys, sums=sums)
