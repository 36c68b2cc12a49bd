"""Count nodes on the way down a tree, each with a share of what its path has left."""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.partition.draft import Draft

SLICES = 64
"""A share is a multiple of this part of the cost, so that few different laws of noise occur."""


def fraction_now(levels_below: Array, stride: int) -> Array:
    """The fraction of what a path has left that the count of a node gets now.

    1 / (1 + g + ... + g^levels_below) with g = 2^(stride / 3). The shares grow towards the cells,
    as in a geometric allocation.

    Parameters
    ----------
    levels_below : ndarray
        How many counted levels follow below the node, its cells included.
    stride : int
        Halvings between counted levels.
    """
    growth = 2 ** (stride / 3)
    exponent = np.asarray(levels_below, dtype=float) + 1
    return np.asarray((growth - 1) / (growth**exponent - 1))


def count_with_shares(
    draft: Draft, nodes: Array, left: Array, levels_below: Array, stride: int
) -> tuple[Array, Array]:
    """Count disjoint nodes, each with a share of what its path has left.

    Parameters
    ----------
    draft : Draft
    nodes, left, levels_below : int64 ndarrays of shape (k,)
        ``left`` is in slices, at least 2; ``levels_below`` is at least 1.
    stride : int
        Halvings between counted levels.

    Returns
    -------
    counts, slices : int64 ndarrays of shape (k,)
        Noisy counts, and what each cost: at least one slice. At least one slice is left.
    """
    wanted = np.rint(left * fraction_now(levels_below, stride)).astype(np.int64)
    slices = np.clip(wanted, 1, left - 1)
    counts = np.empty(len(nodes), np.int64)
    for each in np.unique(slices):
        mine = slices == each
        counts[mine] = draft.noisy_counts(nodes[mine], int(each) * (draft.total // SLICES))
    return counts, slices
