"""The groups of a mean, sum or variance: the axes named by ``by``, and the group of each row."""

from __future__ import annotations

from functools import partial

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import Lattice
from sfumato.histogram.bins import binned
from sfumato.histogram.keys import check_keys


def group_lattice(title: str, domain: Domain, names: tuple[str, ...]) -> Lattice:
    """Lay the groups along their axes: labels, own steps or ten bins, or keys.

    Raises
    ------
    UsageError
        If there is more than one axis of keys, or there are too many groups beside one.
    """
    lay_bins = partial(binned, bins=None, width=None)
    lattice = Lattice(tuple(domain[name].on_lattice(name, lay_bins) for name in names))
    check_keys(title, lattice)
    return lattice


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
