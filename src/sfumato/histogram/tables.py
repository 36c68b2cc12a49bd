"""Contingency tables: marginals that agree with their cells, and whole tables without negative counts."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import Law


def marginal(values: Array, keep: tuple[int, ...]) -> tuple[Array, int]:
    """Add up all axes but some, in the order given.

    Returns
    -------
    sums : int64 ndarray
    terms : int
        How many counts each is the sum of.
    """
    rest = tuple(i for i in range(values.ndim) if i not in keep)
    sums = values.sum(axis=rest)
    kept = sorted(keep)
    terms = int(np.prod([values.shape[i] for i in rest], dtype=np.int64))
    return np.transpose(sums, [kept.index(i) for i in keep]), terms


def half_width(law: Law, terms: int, alpha: float) -> float:
    """How far a sum of independent noises reaches: exact for one, by Chernoff's bound for more."""
    return (
        float(law.half_width(alpha))
        if terms == 1
        else float(law.sum_half_width(np.array([float(terms)]), alpha)[0])
    )


def nonnegative(values: Array) -> Array:
    """The nearest table of counts that are not negative and have the same total: int64 ndarray like ``values``.

    Euclidean projection onto the simplex of the noisy total (Held, Wolfe, Crowder 1974), then the largest remainders are
    rounded up, so that cells are whole and every marginal is the sum of its cells. A negative total becomes 0.
    """
    flat, total = values.reshape(-1).astype(float), max(0, int(values.sum()))
    if not total:
        return np.zeros_like(values)
    ordered = np.sort(flat)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    active = int(np.flatnonzero(ordered > excess)[-1])
    projected = np.maximum(flat - excess[active], 0)
    whole = np.floor(projected).astype(np.int64)
    missing = total - int(whole.sum())
    if missing > 0:
        largest = np.argsort(whole - projected, kind="stable")[:missing]
        whole[largest] += 1
    return np.asarray(whole.reshape(values.shape))
