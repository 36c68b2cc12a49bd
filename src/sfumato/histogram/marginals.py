"""Marginals of a table of counts, and the nearest table without negative counts."""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array


def marginal(values: Array, keep: tuple[int, ...]) -> Array:
    """Sum a table over all axes that are not kept.

    Parameters
    ----------
    values : int64 ndarray
    keep : tuple of int
        The axes that are kept, in the order in which the sums have them.

    Returns
    -------
    int64 ndarray
    """
    rest = tuple(i for i in range(values.ndim) if i not in keep)
    sums = values.sum(axis=rest)
    # ``sums`` has the kept axes in the order of the table.
    ascending = sorted(keep)
    return np.asarray(np.transpose(sums, [ascending.index(i) for i in keep]))


def nonnegative(values: Array) -> Array:
    """Find the nearest table of counts of at least 0 with the same total.

    The counts are projected onto the simplex of the noisy total (Held, Wolfe, Crowder 1974), and
    the largest remainders are then rounded up. So cells are whole numbers, and every marginal is
    the sum of its cells. A negative total becomes 0.

    Returns
    -------
    int64 ndarray like ``values``
    """
    flat = values.reshape(-1).astype(float)
    total = max(0, int(values.sum()))
    if not total:
        return np.zeros_like(values)
    ordered = np.sort(flat)[::-1]
    # excess[k] must be taken from each of the k + 1 largest counts, if only these stay above 0.
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    active = int(np.flatnonzero(ordered > excess)[-1])
    projected = np.maximum(flat - excess[active], 0)
    whole = np.floor(projected).astype(np.int64)
    missing = total - int(whole.sum())
    if missing > 0:
        largest_remainders = np.argsort(whole - projected, kind="stable")[:missing]
        whole[largest_remainders] += 1
    return np.asarray(whole.reshape(values.shape))
