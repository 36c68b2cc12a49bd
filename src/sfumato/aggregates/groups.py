"""The groups of a mean, sum or variance: the axes named by ``by``, and the group of each row."""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import Domain
from sfumato.errors import UsageError
from sfumato.histogram.bins import binned
from sfumato.lattice import LatticeAxis


def group_axis(title: str, domain: Domain, name: str) -> LatticeAxis:
    """Lay the groups along one axis: its labels, its own steps, or ten bins.

    Raises
    ------
    UsageError
        If it is an axis of Keys: its groups are not known before the data are read.
    """
    axis = domain[name].on_lattice(name, partial(binned, bins=None, width=None))
    if axis.has_keys:
        obstacle = f"the groups {name!r} are Keys, which are not known beforehand"
        raise UsageError(title, obstacle, "Declare them as Categories")
    return axis


def group_numbers(coordinates: Array, shape: tuple[int, ...]) -> Array:
    """Number the group of each cell, the last axis running fastest.

    Parameters
    ----------
    coordinates : int64 ndarray of shape (cells, axes)
    shape : tuple of int
        The number of groups along each axis. Without axes all rows are one group.

    Returns
    -------
    int64 ndarray of shape (cells,)
    """
    if not shape:
        return np.zeros(len(coordinates), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(coordinates.T), shape))
