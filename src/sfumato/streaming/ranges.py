"""Range sums over a line of counts: a tree of noisy nodes, of which the fewest cover a range.

Unlike in the other modules of this package, all leaves are known beforehand. Counts and noise are
integers, so sums are exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, NoReturn, Self

import msgspec
import numpy as np

from sfumato.answers import Estimate, error_probability
from sfumato.basics import Array, Exactly, whole
from sfumato.errors import UsageError, explained, explained_methods
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law, add_noise
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, PureDP, Unit
from sfumato.random import current
from sfumato.random.bits import Bits
from sfumato.streaming.queries import (
    INNER_METHODS,
    ArraySums,
    GaussianSumQuery,
    InnerQuery,
    own_state,
    read_numbers,
    require,
)


@explained
def build_tree_from_leaf(leaf_nodes: np.typing.ArrayLike, arity: int = 2) -> list[Array]:
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


class RangeState(msgspec.Struct, frozen=True):
    """The state of a ``TreeRangeSumQuery`` with an inner query."""

    arity: int
    inner_query_state: object


@explained_methods
class TreeRangeSumQuery(ArraySums):
    """Noisy sums of ranges of cells, each from at most 2 (arity - 1) nodes a layer.

    ``noisy_tree`` counts cells exactly and adds integer noise: use it where the counts are known.
    With an ``inner_query`` there are also the methods of TensorFlow Privacy's query: a record is
    the line of numbers of one person; the inner query clips the tree over it, all nodes together,
    and adds noise to the sum of these trees.

    Parameters
    ----------
    arity : int
        The number of children of a node, at least 2.
    unit : Unit
        What one person can change; by default one row, added or removed. For ``noisy_tree``.
    inner_query : GaussianSumQuery, or another query with its methods, optional
        Clips the records' trees and adds the noise.

    Raises
    ------
    UsageError
        If the arity is below 2, or the inner query lacks a method.

    Guarantee: pure epsilon-DP, or rho-zCDP, for the unit.
    Sensitivity: L1 = L counts_l1, L2 squared = L counts_l2^2, for L = height + 1 layers.
    Holds because: the nodes of a layer are disjoint unions of cells, so that a layer is a
    histogram.
    Exact: integer samplers, no floating point, in ``noisy_tree``. With an inner query the guarantee
    is that of the inner query, for one record.
    Not covered: the choice of cells; no ledger is charged here.
    Source: Hay, Rastogi, Miklau, Suciu, VLDB 2010; TensorFlow Privacy's ``TreeRangeSumQuery``.

    >>> noisy = TreeRangeSumQuery(arity=4).noisy_tree(np.arange(16), ZCDP("1e5"))
    >>> noisy.sum(3, 9).value
    33
    """

    GlobalState: ClassVar[type[RangeState]] = RangeState

    def __init__(
        self,
        arity: int = 2,
        unit: Unit | None = None,
        *,
        inner_query: InnerQuery | None = None,
    ) -> None:
        # TensorFlow Privacy's class takes the inner query first.
        if hasattr(arity, "get_noised_result"):
            raise UsageError(
                "a tree of range sums over an inner query",
                "the first argument is the arity here",
                "Name both: TreeRangeSumQuery(arity=2, inner_query=query)",
            )
        self.arity = check_arity(arity)
        self.unit = unit or Unit()
        if inner_query is not None:
            require(inner_query, INNER_METHODS, "an inner query", "GaussianSumQuery(1.0, 2.0)")
        self._inner_query = inner_query

    @classmethod
    def build_central_gaussian_query(
        cls, l2_norm_clip: float, stddev: float, arity: int = 2
    ) -> Self:
        """Return a query whose inner query is a ``GaussianSumQuery``.

        Parameters
        ----------
        l2_norm_clip : float
            To which the tree over a record is clipped, all its nodes together. One row in one cell
            has a tree of norm sqrt(layers): under a smaller clip it counts as less than 1.
        stddev : float
            Of the noise on each node.
        arity : int

        Raises
        ------
        UsageError
            If a parameter is out of range.

        >>> query = TreeRangeSumQuery.build_central_gaussian_query(10.0, 0.0)
        >>> state = query.initial_global_state()
        >>> params = query.derive_sample_params(state)
        >>> tree, state, _ = query.get_noised_result(
        ...     query.preprocess_record(params, [1, 0, 0, 1]), state)
        >>> [layer.tolist() for layer in tree]
        [[2.0], [1.0, 1.0], [1.0, 0.0, 0.0, 1.0]]
        """
        return cls(arity, inner_query=GaussianSumQuery(l2_norm_clip, stddev))

    @classmethod
    def build_distributed_discrete_gaussian_query(
        cls, l2_norm_bound: float, local_stddev: float, arity: int = 2
    ) -> NoReturn:
        """Refused: noise that devices add needs secure aggregation, which is not here."""
        raise UsageError(
            "a tree of distributed discrete Gaussian noise",
            "noise that each device adds needs secure aggregation, which is not here",
            "Take build_central_gaussian_query, or noisy_tree for exact integer noise",
        )

    def initial_global_state(self) -> RangeState:
        """Return the state before the first sum."""
        return RangeState(self.arity, self._inner.initial_global_state())

    def derive_sample_params(self, global_state: object) -> tuple[int, object]:
        """Return the arity, and what the inner query needs to clip a record."""
        state = own_state(global_state, RangeState, "a tree", "TreeRangeSumQuery")
        return state.arity, self._inner.derive_sample_params(state.inner_query_state)

    def initial_sample_state(self, template: np.typing.ArrayLike) -> Array:
        """Return the sum of no trees, over as many cells as a template has."""
        return np.concatenate(build_tree_from_leaf(np.zeros(np.shape(template)), self.arity))

    def preprocess_record(self, params: object, record: np.typing.ArrayLike) -> Array:
        """Return the clipped tree over a record: a float64 ndarray of all nodes, the root first."""
        layers = build_tree_from_leaf(read_numbers(record), self.arity)
        inner_params = params[1] if isinstance(params, tuple) and len(params) == 2 else params
        return self._inner.preprocess_record(inner_params, np.concatenate(layers))

    def get_noised_result(
        self, sample_state: Array, global_state: object
    ) -> tuple[list[Array], RangeState, object]:
        """Return the noisy tree, ``tree[layer][index]`` with the root first, and the next state.

        The third result is the inner query's, for the accountant.
        """
        state = own_state(global_state, RangeState, "a tree", "TreeRangeSumQuery")
        noisy, inner, event = self._inner.get_noised_result(sample_state, state.inner_query_state)
        ends = [0]
        while ends[-1] < noisy.size:
            ends.append(ends[-1] * self.arity + 1)
        layers = [noisy[start:stop] for start, stop in pairwise(ends)]
        return layers, RangeState(state.arity, inner), event

    @property
    def _inner(self) -> InnerQuery:
        if self._inner_query is None:
            raise UsageError(
                "a sum of trees over records",
                "no inner query says how records are clipped, and what noise is added",
                "Call build_central_gaussian_query, or noisy_tree for counts that are known",
            )
        return self._inner_query

    def law(self, leaf_count: int, cost: CentralMeasure) -> Law:
        """Return the noise of each node."""
        # A row lies in one node of each layer, so layers add up in L1, and in squared L2.
        layers = tree_height(leaf_count, self.arity) + 1
        match cost:
            case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
                return DiscreteLaplace(Fraction(layers * self.unit.counts_l1) / epsilon)
            case ZCDP(rho=rho):
                return DiscreteGaussian(Fraction(layers * self.unit.counts_l2_squared) / (2 * rho))

    def noisy_tree(
        self, counts: np.typing.ArrayLike, cost: CentralMeasure, noise: Bits | None = None
    ) -> NoisyTree:
        """Add noise to every node over integer counts of cells, of shape (n,)."""
        cells = np.asarray(counts)
        if cells.dtype.kind not in "iu":
            raise UsageError(
                "range sums of numbers that are not whole",
                "counts are integers, and so is the noise",
                "Give integer counts",
            )
        # Signed integers: noise may take a count below zero.
        tree = build_tree_from_leaf(cells.astype(np.int64), self.arity)
        law = self.law(cells.size, cost)
        bits = current() if noise is None else noise
        layers = [add_noise(layer, law, bits) for layer in tree]
        return NoisyTree(layers, cells.size, self.arity, law)


@explained_methods
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

    >>> import numpy as np
    >>> from sfumato.privacy.measures import ZCDP
    >>> from sfumato.streaming import TreeRangeSumQuery
    >>> tree = TreeRangeSumQuery(arity=2).noisy_tree(np.arange(8), ZCDP("1e5"))
    >>> [len(layer) for layer in tree.layers], tree.sum(2, 5).value
    ([1, 2, 4, 8], 9)
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
        # An error is a whole number, so its bound is rounded down.
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
    return whole(
        arity,
        "arity",
        2,
        obstacle="a node has at least two children",
        remedy="Give a whole number from 2 on",
    )
