"""Make a cube of the groups that an engine counted: the last step of a ``CountingReader``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.arrays import Array
from sfumato.cube import DENSE_LIMIT, Cube, KeyColumn, KeyList
from sfumato.errors import InternalError
from sfumato.lattice import DROPPED, Label, Lattice


def cube_of_groups(
    lattice: Lattice,
    cells: Sequence[Array | Sequence[Label | None]],
    counts: Sequence[int] | Array,
) -> Cube:
    """Make a cube of groups, in whatever order the engine gives them.

    Parameters
    ----------
    lattice : Lattice
    cells : sequence of columns
        One column for each axis of the lattice, of shape (groups,): the cell of each group, or
        ``DROPPED`` to leave the group out. On an axis of keys: the key itself, or None to leave the
        group out.
    counts : int ndarray or sequence of shape (groups,)
        How many rows each group has. Groups of the same cells are added up.

    Raises
    ------
    InternalError
        If an axis does not have a cell.

    >>> from sfumato.lattice import LabelAxis
    >>> lattice = Lattice((LabelAxis("kind", ("a", "b", "c")),))
    >>> cube_of_groups(lattice, [[2, 0, -1]], [5, 3, 7]).counts.tolist()
    [3, 0, 5]
    """
    n_rows = np.asarray(counts, np.int64)
    keys: dict[str, KeyColumn] = {}
    columns: list[Array] = []
    for axis, column in zip(lattice.axes, cells, strict=True):
        if axis.has_keys:
            keys[axis.name], indices = indexed_keys(list(column))
            columns.append(indices)
        else:
            columns.append(np.asarray(column, np.int64))
            if len(n_rows) and columns[-1].max() >= axis.size:
                raise InternalError(
                    f"An engine counted a cell that axis {axis.name!r} does not have."
                )
    is_counted = np.logical_and.reduce([column > DROPPED for column in columns])
    coordinates = np.stack([column[is_counted] for column in columns], axis=1)
    if lattice.size <= DENSE_LIMIT:
        dense = np.zeros(lattice.size, np.int64)
        flat = np.ravel_multi_index(tuple(coordinates.T), lattice.shape)
        np.add.at(dense, flat, n_rows[is_counted])
        return Cube(lattice, dense)
    distinct, index = np.unique(coordinates, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, index.reshape(-1), n_rows[is_counted])
    return Cube(lattice, sums, distinct, keys)


def indexed_keys(column: list[Label | None]) -> tuple[KeyList, Array]:
    """The distinct keys, sorted, and the index of each group's key among them."""
    keys = KeyList(sorted({key for key in column if key is not None}))
    index_of = {key: index for index, key in enumerate(keys)}
    indices = [DROPPED if key is None else index_of[key] for key in column]
    return keys, np.array(indices, np.int64)
