"""Let Spark's executors select keys where they count: only those that are shown leave them.

Whether they do is decided by the question alone. How many keys there are is not public, so it
decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs, ShownKeys
from sfumato.basics import Array, ndarray_of
from sfumato.data.keys import KeyNumbers
from sfumato.data.priorities import ChosenBy, chosen_by
from sfumato.data.reader import guarded
from sfumato.data.source import Source, on_executors, scan_of
from sfumato.domain import DROPPED, Cube, LabelAxis, Lattice
from sfumato.errors import InternalError
from sfumato.mechanisms import KEY, NOISY_ROWS, KeyRule


def select_in_engine(
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
    return guarded(reader.name, keys_of_groups, needs.lattice, batches)


def keys_of_groups(lattice: Lattice, batches: Sequence[pa.RecordBatch]) -> ShownKeys:
    """Number the keys of all groups that a ``KeyRule`` gave in sorted order, and lay them out.

    Parameters
    ----------
    lattice : Lattice
        With one axis of keys.
    batches : sequence of pyarrow.RecordBatch
        In any order, with the columns ``key`` and ``noisy_rows``; if there are other axes, also
        ``rows``, the count of the group, and ``cell_0``, ``cell_1`` ..., its cell on each of them,
        by the position of the axis in the lattice.

    Raises
    ------
    InternalError
        If they are not those of the lattice.
    """
    (key_index,) = lattice.keyed
    places = [f"cell_{index}" for index in range(len(lattice.axes))]
    of_groups = ["rows", *places[:key_index], *places[key_index + 1 :]]
    names = [NOISY_ROWS, *(of_groups if len(places) > 1 else [])]
    if any(sorted(batch.schema.names) != sorted([KEY, *names]) for batch in batches):
        raise _other_groups()
    key_numbers = KeyNumbers()
    parts = [batch for batch in batches if len(batch)]
    numbers = _joined([key_numbers.cells(batch[KEY]) for batch in parts])
    if (numbers == DROPPED).any():
        raise _other_groups()
    columns = {
        name: _joined([ndarray_of(batch[name].cast(pa.int64())) for batch in parts])
        for name in names
    }
    columns[places[key_index]] = key_numbers.ranks()[numbers]
    axes = list(lattice.axes)
    axes[key_index] = LabelAxis(axes[key_index].name, tuple(key_numbers.sorted.to_pylist()))
    return _laid_out(Lattice(tuple(axes)), places, columns, key_index)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _laid_out(
    lattice: Lattice, places: Sequence[str], columns: dict[str, Array], key_index: int
) -> ShownKeys:
    coordinates = np.stack([columns[place] for place in places], axis=1)
    numbers = coordinates[:, key_index]
    values = np.zeros(lattice.axes[key_index].size, np.int64)
    values[numbers] = columns[NOISY_ROWS]
    # All groups of a key repeat its one noisy number of rows: two different ones are no answer.
    differ = (values[numbers] != columns[NOISY_ROWS]).any()
    # Checked before they are indices: a negative one would count from the end of its axis.
    if differ or (coordinates < 0).any() or (coordinates >= np.array(lattice.shape)).any():
        raise _other_groups()
    order = np.lexsort(coordinates.T[::-1])
    coordinates = coordinates[order]
    # A cell that comes twice would be counted twice.
    if (coordinates[1:] == coordinates[:-1]).all(axis=1).any():
        raise _other_groups()
    if len(lattice.axes) == 1:
        return ShownKeys(lattice, values, None)
    return ShownKeys(lattice, values, Cube(lattice, columns["rows"][order], coordinates))


def _other_groups() -> InternalError:
    return InternalError("Spark selected keys from other groups than were asked for.")
