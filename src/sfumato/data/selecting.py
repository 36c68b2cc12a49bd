"""Let Spark's executors select keys where they count: only those that are shown leave them.

Whether they do is decided by the question alone. How many keys there are is not public, so it
decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.answers import Needs, ShownKeys
from sfumato.basics import Array, pc
from sfumato.data.counting import on_executors, scan_of
from sfumato.data.priorities import ChosenBy, chosen_by
from sfumato.data.reader import guarded
from sfumato.data.source import Source
from sfumato.domain import Cube, LabelAxis, Lattice
from sfumato.errors import InternalError
from sfumato.mechanisms import KEY, NOISY_ROWS, KeyRule


def select(
    source: Source,
    needs: Needs,
    rule: KeyRule,
    *,
    key: bytes,
    choice: ChosenBy | None = None,
) -> ShownKeys:
    """Let the engine of a source select keys.

    The counts of cells are true, and none of them may be published.

    Parameters
    ----------
    source : Source
    needs : Needs
        Some for which the engine ``selects`` keys.
    rule : KeyRule
    key : bytes of length 32
        The secret that chooses which rows a person keeps.
    choice : tuple of LatticeAxis or None
        As for ``count``.

    Raises
    ------
    DataError
        As ``Source.require``.
    """
    source.require([needs])
    reader = on_executors(source)
    scan = scan_of(source, (needs,), key, chosen_by([needs]) if choice is None else choice)
    batches = list(reader.select(scan, rule))
    shown = guarded(reader.name, keys_of_groups, needs.lattice, batches)
    if shown is None:
        raise InternalError("Spark selected keys from other groups than were asked for.")
    return shown


def keys_of_groups(lattice: Lattice, batches: Sequence[pa.RecordBatch]) -> ShownKeys | None:
    """Lay out what a ``KeyRule`` gave of all groups; None if they are not those of the lattice.

    Parameters
    ----------
    lattice : Lattice
        With one axis of keys.
    batches : sequence of pyarrow.RecordBatch
        In any order, with the columns ``key`` and ``noisy_rows``; if there are other axes, also
        ``rows``, the count of the group, and ``cell_0``, ``cell_1`` ..., its cell on each of them,
        by the position of the axis in the lattice.
    """
    names = _columns_of_groups(lattice)
    parts = [_plain(batch, names) for batch in batches]
    if None in parts:
        return None
    return _shown_keys(lattice, names, [part for part in parts if part and len(part[0])])


def _columns_of_groups(lattice: Lattice) -> list[str]:
    """Return the columns of groups that are shown."""
    if len(lattice.axes) == 1:
        return [KEY, NOISY_ROWS]
    cells = [f"cell_{index}" for index, axis in enumerate(lattice.axes) if not axis.has_keys]
    return [KEY, NOISY_ROWS, "rows", *cells]


def _plain(batch: pa.RecordBatch, names: list[str]) -> list[pa.Array] | None:
    """Give the columns of groups one type each; None if others are there."""
    if sorted(batch.schema.names) != sorted(names):
        return None
    key, *others = (batch[column] for column in names)
    if pt.is_dictionary(key.type):
        key = key.cast(key.type.value_type)
    if not pt.is_boolean(key.type):
        key = key.cast(pa.int64() if pt.is_integer(key.type) else pa.large_string())
    return [key, *(column.cast(pa.int64()) for column in others)]


def _shown_keys(
    lattice: Lattice, names: list[str], parts: list[list[pa.Array]]
) -> ShownKeys | None:
    """Number the keys in sorted order, and lay out what is shown; None if it is no such thing."""
    (key_index,) = lattice.keyed
    axes = list(lattice.axes)
    columns: dict[str, Array] = {name: np.zeros(0, np.int64) for name in names}
    labels: list[str | int | bool] = []
    if parts:
        keys, *others = (pa.concat_arrays(column) for column in zip(*parts, strict=True))
        ordered = _sorted(pc.unique(keys))
        labels = ordered.to_pylist()
        numbers = pc.index_in(keys, value_set=ordered)
        arrays = [column.to_numpy(zero_copy_only=False) for column in (numbers, *others)]
        columns = dict(zip(names, (array.astype(np.int64) for array in arrays), strict=True))
    axes[key_index] = LabelAxis(axes[key_index].name, tuple(labels))
    return _laid_out(Lattice(tuple(axes)), key_index, columns)


def _sorted(keys: pa.Array) -> pa.Array:
    # Arrow does not sort booleans.
    sortable = keys.cast(pa.int8()) if pt.is_boolean(keys.type) else keys
    return keys.take(pc.array_sort_indices(sortable))


def _laid_out(lattice: Lattice, key_index: int, columns: dict[str, Array]) -> ShownKeys | None:
    """Return what is shown of groups whose keys are numbered."""
    numbers = columns[KEY]
    values = np.zeros(lattice.axes[key_index].size, np.int64)
    values[numbers] = columns[NOISY_ROWS]
    # All groups of a key repeat its one noisy number of rows: two different ones are no answer.
    if (values[numbers] != columns[NOISY_ROWS]).any():
        return None
    coordinates = np.stack(
        [
            numbers if index == key_index else columns[f"cell_{index}"]
            for index in range(len(lattice.axes))
        ],
        axis=1,
    )
    # Checked before they are indices: a negative one would count from the end of its axis.
    if (coordinates < 0).any() or (coordinates >= np.array(lattice.shape)).any():
        return None
    order = np.lexsort(coordinates.T[::-1])
    coordinates = coordinates[order]
    # A cell that comes twice would be counted twice.
    if (coordinates[1:] == coordinates[:-1]).all(axis=1).any():
        return None
    if len(lattice.axes) == 1:
        return ShownKeys(lattice, values, None)
    return ShownKeys(lattice, values, Cube(lattice, columns["rows"][order], coordinates))
