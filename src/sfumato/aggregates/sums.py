"""The true sums of a basis over the rows of each group: exact integers, before any noise."""

from __future__ import annotations

import math

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.groups import group_numbers
from sfumato.aggregates.values import nearest_steps
from sfumato.arrays import Array
from sfumato.cube import Cube

LARGEST_SUM = 2**62


def group_sums(cube: Cube, basis: Basis) -> Array:
    """Add up the functions of a basis over the rows of each group.

    Parameters
    ----------
    cube : Cube
        Counts over the axes of the groups, then the axis of the value.

    Returns
    -------
    int64 ndarray of shape (groups, k)
        Each sum is cut at 2^62. One person moves the cut sum by no more than the exact one, and
        no data raise an overflow.
    """
    axis = cube.lattice.grids[-1]
    counts = cube.counts
    if cube.total * basis.unity >= LARGEST_SUM:
        # Below that no sum of int64 can overflow. Python's integers never do.
        counts = counts.astype(object)
    if cube.coordinates is None:
        occupied = np.flatnonzero(counts)
        group, value = np.divmod(occupied, axis.cells)
        counts = counts[occupied]
    else:
        group = group_numbers(cube.coordinates[:, :-1], cube.lattice.shape[:-1])
        value = cube.coordinates[:, -1]
    n_groups = math.prod(cube.lattice.shape[:-1])
    indices, amounts = basis.terms(nearest_steps(axis, basis.points)[value])
    sums = np.zeros((n_groups, basis.size), counts.dtype)
    np.add.at(sums, (group[:, None], indices), counts[:, None] * amounts)
    return np.minimum(sums, LARGEST_SUM).astype(np.int64)
