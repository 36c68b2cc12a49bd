"""What all noisy counts of a tree say of its nodes, and how far sums of these estimates are from the truth at most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.sums import LEAST_SPREAD, half_widths, spread
from sfumato.partition.tree.cover import Counted
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import Inferred, infer, whole_counts


@dataclass(frozen=True, eq=False)
class Estimates:
    """A tree and its noisy counts, as a partition holds them.

    Attributes
    ----------
    tree : Tree
    noisy : int64 ndarray of shape (cells,)
    laws : tuple of laws of noise
    which : int64 ndarray of shape (cells,), or None
        The place of each cell's law among ``laws``; None: the first.
    inner : Counted or None
        Noisy counts above the cells.
    """

    tree: Tree
    noisy: Array
    laws: tuple[Law, ...]
    which: Array | None
    inner: Counted | None

    @cached_property
    def _spreads(self) -> Array:
        """Variance of the noise of each law: float64 ndarray of shape (laws,)."""
        return np.array([max(spread(law), LEAST_SPREAD) for law in self.laws])

    @cached_property
    def _places(self) -> Array:
        """The place of each cell's law: int64 ndarray of shape (cells,)."""
        return np.zeros(self.tree.cells, np.int64) if self.which is None else self.which

    @cached_property
    def inferred(self) -> Inferred:
        """The generalised least squares estimate."""
        tree = self.tree
        counts, variances = np.zeros(len(tree.axis)), np.full(len(tree.axis), np.inf)
        counts[tree.leaves] = self.noisy
        variances[tree.leaves] = self._spreads[self._places]
        if self.inner is not None:  # a cell that was tested has two counts
            node, other = self.inner.node, self._spreads[self.inner.which]
            own = variances[node]
            weight = np.where(np.isinf(own), 1, own / np.where(np.isinf(own), 1, own + other))
            counts[node] += weight * (self.inner.count - counts[node])
            variances[node] = weight * other
        return infer(tree, counts, variances)

    @cached_property
    def whole(self) -> Array:
        """Non-negative whole numbers near the estimates, which add up: int64 ndarray of shape (nodes,)."""
        return whole_counts(self.tree, self.inferred.estimate, self.inferred.own)

    @cached_property
    def _known_to(self) -> Array:
        """The largest variance of the estimate of a node whose count has each law: float64 ndarray of shape (laws,)."""
        most = np.zeros(len(self.laws))
        np.maximum.at(most, self._places, self.inferred.variance[self.tree.leaves])
        if self.inner is not None:
            np.maximum.at(most, self.inner.which, self.inferred.variance[self.inner.node])
        return most

    def half_widths(self, variances: Array, alpha: float) -> Array:
        """Half-widths of sums of estimates of these variances: float64 ndarray like ``variances``.

        A count y(v) enters a sum of variance V with a coefficient Cov(sum, x(v)) / variance(v): at most Var x(v) / variance(v)
        (``inference``), and at most sqrt(V Var x(v)) / variance(v) (Cauchy and Schwarz). V is rounded up to a power of sqrt 2 there.
        """
        half, known = np.zeros(len(variances)), self._known_to * (1 + 1e-9)
        steps = np.ceil(2 * np.log2(np.maximum(variances, 1e-12)))
        for step in np.unique(steps):
            here = steps == step
            reaches = np.minimum(
                np.minimum(known, np.sqrt(2.0 ** (step / 2) * known)) / self._spreads, 1
            )
            half[here] = half_widths(
                variances[here], list(zip(self.laws, reaches.tolist(), strict=True)), alpha
            )
        return half
