"""The true sums of a basis over the rows of each group: exact integers, before any noise."""

from __future__ import annotations

import math

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.groups import group_numbers
from sfumato.aggregates.values import nearest_steps
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.lattice import GridAxis

LARGEST_SUM = 2**62


def group_sums(cube: Cube, basis: Basis, n_group_axes: int, value: int = 0) -> Array:
    """Add up the functions of a basis over the rows of each group.

    Parameters
    ----------
    cube : Cube
        Counts over the axes of the groups, then the axes of the values.
    n_group_axes : int
        How many axes are groups.
    value : int
        Which of the values is added up.

    Returns
    -------
    int64 ndarray of shape (groups, k)
        Each sum is cut at 2^62. One person moves the cut sum by no more than the exact one, and
        no data raise an overflow.
    """
    axis = cube.lattice.axes[n_group_axes + value]
    assert isinstance(axis, GridAxis)
    group_shape = cube.lattice.shape[:n_group_axes]
    value_shape = cube.lattice.shape[n_group_axes:]
    counts = cube.counts
    if cube.total * basis.unity >= LARGEST_SUM:
        # Below that no sum of int64 can overflow. Python's integers never do.
        counts = counts.astype(object)
    if cube.coordinates is None:
        occupied = np.flatnonzero(counts)
        groups, places = np.divmod(occupied, math.prod(value_shape))
        cells = np.unravel_index(places, value_shape)[value]
        counts = counts[occupied]
    else:
        groups = group_numbers(cube.coordinates[:, :n_group_axes], group_shape)
        cells = cube.coordinates[:, n_group_axes + value]
    indices, amounts = basis.terms(nearest_steps(axis, basis.points)[cells])
    sums = np.zeros((math.prod(group_shape), basis.size), counts.dtype)
    np.add.at(sums, (groups[:, None], indices), counts[:, None] * amounts)
    return np.minimum(sums, LARGEST_SUM).astype(np.int64)
