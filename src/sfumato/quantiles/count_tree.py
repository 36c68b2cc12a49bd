"""Read quantiles off a 16-ary tree of noisy counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import Law, add_noise
from sfumato.quantiles.cells import Cells
from sfumato.random.bits import Bits

FANOUT = 16


def levels_for(cells: int) -> int:
    """How many levels a tree over so many cells has: at least 1."""
    # An exact power of 16 must not get one level too many because the logarithm is rounded up.
    return max(1, math.ceil(math.log(cells, FANOUT) - 1e-9))


def noisy_ranks(cells: Cells, laws: Sequence[Law], bits: Bits) -> Array:
    """How many rows lie below each edge, from noisy counts: float64 ndarray of shape (size + 1,).

    The rows below an edge are the sum of at most 15 noisy counts a level. All rows are the sum of
    the first level's counts.
    """
    return ranks_of(noisy_counts(cells, laws, bits), cells.size)


def noisy_counts(cells: Cells, laws: Sequence[Law], bits: Bits) -> list[Array]:
    """Count every node of the tree with the noise of its level, from the first level on.

    Returns
    -------
    list of int64 ndarrays of shape (16^level,)
        Everything else follows from them, which costs nothing more.
    """
    counts = np.zeros(FANOUT ** len(laws), np.int64)
    counts[cells.positions] = cells.counts
    return [
        add_noise(counts.reshape(FANOUT**level, -1).sum(axis=1), law, bits)
        for level, law in enumerate(laws, 1)
    ]


def ranks_of(levels: Sequence[Array], cells: int) -> Array:
    """How many rows lie below each edge of so many cells, given the noisy counts of all nodes."""
    below = np.zeros(1)
    for noisy in levels:
        siblings = noisy.reshape(-1, FANOUT).astype(float)
        earlier_siblings = np.cumsum(siblings, axis=1) - siblings
        below = (below[:, None] + earlier_siblings).reshape(-1)
    total = float(levels[0].sum())
    ranks = np.append(below, total)[: cells + 1]
    ranks[-1] = total
    return ranks


def points_at(ranks: Array, at: Sequence[Fraction], snap: bool) -> Array:
    """The lattice points whose noisy ranks are nearest to the quantiles: int64 ndarray, in order.

    Parameters
    ----------
    ranks : float64 ndarray of shape (cells + 1,)
    at : sequence of Fraction
    snap : bool
        Whether the axis has a step of its own: the cell in which the ranks pass the target is then
        the answer, else the nearer of its ends.
    """
    cells = len(ranks) - 1
    rising = risen(ranks)
    targets = np.array([float(q) for q in at]) * ranks[-1]
    if snap:
        passed = np.clip(np.searchsorted(rising, targets, side="right") - 1, 0, cells - 1)
        return np.maximum.accumulate(passed).astype(np.int64)
    right = np.clip(np.searchsorted(rising, targets), 1, cells)
    left_is_nearer = targets - rising[right - 1] < rising[right] - targets
    nearest = np.where(left_is_nearer, right - 1, right)
    return np.maximum.accumulate(nearest).astype(np.int64)


def risen(ranks: Array) -> Array:
    """Noisy ranks that do not fall: the mean of the least rising curve above and the largest one
    below them.
    """
    above = np.maximum.accumulate(ranks)
    below = np.minimum.accumulate(ranks[::-1])[::-1]
    return np.asarray((above + below) / 2)


def gaps_at(ranks: Array, points: Array, at: Sequence[Fraction], snap: bool) -> Array:
    """Noisy numbers of rows between the chosen points: int64 ndarray of shape (m + 1,).

    With a step, a value has all ranks between the two ends of its cell. The one nearest to the
    rank asked for is taken.
    """
    rising = risen(ranks)
    chosen = rising[points]
    if snap:
        targets = np.array([float(q) for q in at]) * ranks[-1]
        chosen = np.clip(targets, chosen, rising[points + 1])
    whole = np.floor(chosen).astype(np.int64)
    return np.diff(whole, prepend=0, append=int(ranks[-1]))
