"""What a stored partition is made of: where its boxes lie, the noisy counts above them, and small things that are asked of both."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import DiscreteLaplace, Law


class Edges(msgspec.Struct, frozen=True, tag="grid", eq=False, forbid_unknown_fields=True):
    """A product grid: lattice points between which the boxes lie, one int64 ndarray per axis."""

    edges: tuple[Array, ...]


class Splits(msgspec.Struct, frozen=True, tag="tree", eq=False, forbid_unknown_fields=True):
    """A tree of two-way splits, as ``Tree`` describes it: int64 ndarrays of shape (nodes,)."""

    axis: Array
    cut: Array


Cover: TypeAlias = Edges | Splits


class Counted(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """Noisy counts of nodes above the cells, in the order in which they were drawn: int64 ndarrays of equal shape.

    ``node`` counts in breadth-first order; ``which`` is the place of the noise's law among the partition's laws.
    """

    node: Array
    count: Array
    which: Array


def scale_of(law: Law) -> float:
    return float(law.scale) if isinstance(law, DiscreteLaplace) else law.sigma


def are_places(which: Array | None, size: int) -> bool:
    """Whether all entries are places in a list of that size."""
    return which is None or not len(which) or (int(which.min()) >= 0 and int(which.max()) < size)


def whole_cells(counts: Array) -> Array:
    """Non-negative whole numbers with the sum of the noisy counts (or 0, if that is negative), in proportion: int64 ndarray."""
    total, positive = max(int(counts.sum()), 0), np.maximum(counts, 0).astype(float)
    aim = positive * (total / max(positive.sum(), 1))
    whole = np.floor(aim).astype(np.int64)
    missing = total - int(whole.sum())
    whole[np.argsort(whole - aim, kind="stable")[: max(missing, 0)]] += 1
    return np.asarray(whole)
