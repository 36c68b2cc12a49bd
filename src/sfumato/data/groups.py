"""From the groups that an engine counted to a cube: what a ``CountingReader`` ends with."""

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
    """Put groups in order, whatever order an engine gives them in.

    Parameters
    ----------
    lattice : Lattice
    cells : sequence of columns
        One for each axis of the lattice, each of shape (groups,): the cell of each group,
        ``DROPPED`` or below to leave it out; on an axis of keys the key itself, None to leave it
        out.
    counts : int ndarray or sequence of shape (groups,)
        How many rows each group has. Groups of the same cells are added up.

    Raises
    ------
    InternalError
        If a cell is not one of the axis.

    >>> from sfumato.lattice import LabelAxis
    >>> lattice = Lattice((LabelAxis("kind", ("a", "b", "c")),))
    >>> cube_of_groups(lattice, [[2, 0, -1]], [5, 3, 7]).counts.tolist()
    [3, 0, 5]
    """
    weights = np.asarray(counts, np.int64)
    keys: dict[str, KeyColumn] = {}
    columns: list[Array] = []
    for axis, column in zip(lattice.axes, cells, strict=True):
        if axis.has_keys:
            keys[axis.name], places = _placed(list(column))
            columns.append(places)
        else:
            columns.append(np.asarray(column, np.int64))
            if len(weights) and columns[-1].max() >= axis.size:
                raise InternalError(
                    f"An engine counted a cell that axis {axis.name!r} does not have."
                )
    held = np.logical_and.reduce([column > DROPPED for column in columns])
    coordinates = np.stack([column[held] for column in columns], axis=1)
    if lattice.size <= DENSE_LIMIT:
        dense = np.zeros(lattice.size, np.int64)
        np.add.at(dense, np.ravel_multi_index(tuple(coordinates.T), lattice.shape), weights[held])
        return Cube(lattice, dense)
    distinct, of = np.unique(coordinates, axis=0, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, of.reshape(-1), weights[held])
    return Cube(lattice, sums, distinct, keys)


def _placed(column: list[Label | None]) -> tuple[KeyList, Array]:
    """The distinct keys in order, and the place of each group's key among them."""
    keys = KeyList(sorted({key for key in column if key is not None}))
    place = {key: i for i, key in enumerate(keys)}
    return keys, np.array([DROPPED if key is None else place[key] for key in column], np.int64)
