"""The stored parts of a partition: where its boxes lie, and the noisy counts above them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteLaplace, Law


class Edges(msgspec.Struct, frozen=True, tag="grid", eq=False, forbid_unknown_fields=True):
    """A product grid: lattice points between which the boxes lie, one int64 ndarray per axis.

    >>> import numpy as np
    >>> from sfumato.extending import Edges
    >>> Edges((np.array([0, 2, 4]), np.array([0, 8]))).edges[0].tolist()
    [0, 2, 4]
    """

    edges: tuple[Array, ...]


class Splits(msgspec.Struct, frozen=True, tag="tree", eq=False, forbid_unknown_fields=True):
    """A tree of two-way splits, as ``Tree`` describes it: int64 ndarrays of shape (nodes,).

    >>> import numpy as np
    >>> from sfumato.extending import Splits
    >>> Splits(axis=np.array([0, -1, -1]), cut=np.array([2, 0, 0])).cut.tolist()
    [2, 0, 0]
    """

    axis: Array
    cut: Array


Cover: TypeAlias = Edges | Splits


class Counted(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """Noisy counts of nodes, beside those of the cells, in the order in which they were drawn.

    Attributes
    ----------
    node, count, which : int64 ndarrays of equal shape
        Indices of nodes in breadth-first order, their noisy counts, and for each the index of the
        law of its noise among the partition's laws.
    """

    node: Array
    count: Array
    which: Array


def scale_of(law: Law) -> float:
    """The scale of Laplace noise, or the standard deviation of Gaussian noise."""
    return float(law.scale) if isinstance(law, DiscreteLaplace) else law.sigma


def are_indices(which: Array | None, size: int) -> bool:
    """Whether all entries are indices into a list of that size."""
    if which is None or not len(which):
        return True
    return int(which.min()) >= 0 and int(which.max()) < size


def whole_cells(counts: Array) -> Array:
    """Non-negative whole numbers in proportion to noisy counts: int64 ndarray.

    Their sum is that of the noisy counts, or 0 if that is negative.
    """
    total = max(int(counts.sum()), 0)
    positive = np.maximum(counts, 0).astype(float)
    aim = positive * (total / max(positive.sum(), 1))
    whole = np.floor(aim).astype(np.int64)
    # Rounding down loses some rows. They go to the cells that lost most.
    missing = total - int(whole.sum())
    whole[np.argsort(whole - aim, kind="stable")[: max(missing, 0)]] += 1
    return np.asarray(whole)
