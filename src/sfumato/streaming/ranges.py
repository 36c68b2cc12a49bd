"""Range sums over a line of counts: a tree of noisy nodes, of which the fewest cover a range.

Unlike in the other modules of this package, all leaves are known beforehand. Counts and noise are
integers, so sums are exact.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from sfumato.answers.estimate import Estimate, error_probability
from sfumato.arrays import Array
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law, add_noise
from sfumato.numbers import Exactly
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import current
from sfumato.random.bits import Bits


def build_tree_from_leaf(leaf_nodes: ArrayLike, arity: int = 2) -> list[Array]:
    """Add up neighbouring children until one root is left.

    Parameters
    ----------
    leaf_nodes : array of shape (n,), n at least 1
        They are filled up with zeros to a power of the arity.
    arity : int
        At least 2.

    Returns
    -------
    list of ndarrays
        ``tree[layer][index]``, the root first.

    >>> [layer.tolist() for layer in build_tree_from_leaf([1, 2, 3, 4])]
    [[10], [3, 7], [1, 2, 3, 4]]
    """
    leaves = np.asarray(leaf_nodes)
    arity = check_arity(arity)
    if leaves.ndim != 1 or not leaves.size or leaves.dtype.kind not in "iuf":
        raise UsageError(
            "a tree over leaves",
            "they must be a line of at least one number",
            "Give a one-dimensional array",
        )
    height = tree_height(leaves.size, arity)
    padded = np.zeros(arity**height, dtype=leaves.dtype)
    padded[: leaves.size] = leaves
    layers = [padded]
    for _ in range(height):
        layers.append(layers[-1].reshape(-1, arity).sum(axis=1))
    return layers[::-1]


def tree_height(leaf_count: int, arity: int) -> int:
    """Return the number of edges from root to leaf: the least h with arity^h >= leaf_count."""
    height = 0
    while arity**height < leaf_count:
        height += 1
    return height


class TreeRangeSumQuery:
    """Noisy sums of ranges of cells, each from at most 2 (arity - 1) nodes a layer.

    Parameters
    ----------
    arity : int
        The number of children of a node, at least 2.
    unit : Unit
        What one person can change; by default one row, added or removed.

    Guarantee: pure epsilon-DP, or rho-zCDP, for the unit.
    Sensitivity: L1 = L counts_l1, L2 squared = L counts_l2^2, for L = height + 1 layers.
    Holds because: the nodes of a layer are disjoint unions of cells, so that a layer is a
    histogram.
    Exact: integer samplers, no floating point.
    Not covered: the choice of cells; no ledger is charged here.
    Source: Hay, Rastogi, Miklau, Suciu, VLDB 2010; TensorFlow Privacy's ``TreeRangeSumQuery``.

    >>> noisy = TreeRangeSumQuery(arity=4).noisy_tree(np.arange(16), ZCDP("1e5"))
    >>> noisy.sum(3, 9).value
    33
    """

    def __init__(self, arity: int = 2, unit: Unit | None = None) -> None:
        self.arity = check_arity(arity)
        self.unit = unit or Unit()

    def law(self, leaf_count: int, cost: CentralMeasure) -> Law:
        """Return the noise of each node."""
        layers = tree_height(leaf_count, self.arity) + 1
        match cost:
            case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
                l1 = Fraction(layers * self.unit.counts_l1)
                return DiscreteLaplace(l1 / epsilon)
            case ZCDP(rho=rho):
                l2_squared = Fraction(layers * self.unit.counts_l2_squared)
                return DiscreteGaussian(l2_squared / (2 * rho))

    def noisy_tree(
        self, counts: ArrayLike, cost: CentralMeasure, noise: Bits | None = None
    ) -> NoisyTree:
        """Add noise to every node over integer counts of cells, of shape (n,)."""
        cells = np.asarray(counts)
        if cells.dtype.kind not in "iu":
            raise UsageError(
                "range sums of numbers that are not whole",
                "counts are integers, and so is the noise",
                "Give integer counts",
            )
        tree = build_tree_from_leaf(cells.astype(np.int64), self.arity)
        law = self.law(cells.size, cost)
        bits = current() if noise is None else noise
        layers = [add_noise(layer, law, bits) for layer in tree]
        return NoisyTree(layers, cells.size, self.arity, law)


class NoisyTree:
    """A tree of noisy counts. Nothing in it is secret.

    Attributes
    ----------
    layers : list of int64 ndarrays
        The root first.
    cells : int
    arity : int
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each node.
    """

    def __init__(self, layers: list[Array], cells: int, arity: int, law: Law) -> None:
        self.layers = layers
        self.cells = cells
        self.arity = arity
        self.law = law

    def sum(self, start: int, stop: int, confidence: Exactly = "0.95") -> Estimate:
        """Return the sum of the cells start, ..., stop - 1, with an interval.

        The interval is a Chernoff bound for sums of the noise.

        Raises
        ------
        UsageError
            If the range leaves the line of cells.
        """
        if not 0 <= start <= stop <= self.cells:
            raise UsageError(
                f"the range from {start} to {stop}",
                f"there are {self.cells} cells",
                "Choose 0 <= start <= stop <= cells",
            )
        alpha = error_probability(confidence)
        nodes = self.cover(start, stop)
        value = sum(int(self.layers[layer][index]) for layer, index in nodes)
        half = math.floor(self.law.sum_half_width(np.array([float(len(nodes))]), alpha)[0])
        return Estimate(value, value - half, value + half, 1 - alpha)

    def cover(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the fewest nodes that hold exactly the cells start, ..., stop - 1.

        Each is a pair (layer, index).
        """
        nodes = []
        layer = len(self.layers) - 1
        # What is left of the range is taken where it does not fill a parent, then one layer up.
        while start < stop:
            while start < stop and (start % self.arity or layer == 0):
                nodes.append((layer, start))
                start += 1
            while start < stop and stop % self.arity:
                stop -= 1
                nodes.append((layer, stop))
            start //= self.arity
            stop //= self.arity
            layer -= 1
        return nodes

    def __repr__(self) -> str:
        return f"<NoisyTree over {self.cells} cells, arity {self.arity}, {self.law}>"


def check_arity(arity: int) -> int:
    """Refuse an arity below 2."""
    if isinstance(arity, bool) or not isinstance(arity, int | np.integer) or arity < 2:
        raise UsageError(
            f"arity = {arity!r}",
            "a node has at least two children",
            "Give a whole number from 2 on",
        )
    return int(arity)
