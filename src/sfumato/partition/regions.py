"""Boxes of every size for a map: the cells of a tree, and the nodes above them."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.basics.numbers import Array
from sfumato.partition.tree.estimates import TreeEstimates

OF_CELLS = 0.6
"""The share of the error probability that goes to the cells; the nodes above them get the rest."""


@dataclass(frozen=True)
class Regions:
    """The nodes of a tree, each level after the one above it, with counts.

    Attributes
    ----------
    lower, upper : float64 ndarrays of shape (nodes, d)
        Ends of the boxes, in the axes' own units.
    counts, half : float64 ndarrays of shape (nodes,)
        Estimates, and the half-widths of their intervals.
    parent : int64 ndarray of shape (nodes,)
        The parent of each node; the root's is 0.
    levels : tuple of (first, beyond)
        The nodes of each level, from the root's on.
    """

    lower: Array
    upper: Array
    counts: Array
    half: Array
    parent: Array
    levels: tuple[tuple[int, int], ...]


def regions_of(estimates: TreeEstimates, alpha: float, counts: Array, half: Array) -> Regions:
    """All nodes of a tree with two-sided intervals.

    Parameters
    ----------
    estimates : TreeEstimates
    alpha : float
        The intervals of all nodes over one point, the cell included, miss with this probability or
        less together.
    counts, half : ndarrays of shape (cells,)
        The counts of the cells, and the half-widths that hold with probability
        1 - ``OF_CELLS`` alpha each.
    """
    tree = estimates.tree
    above = max(len(tree.levels) - 1, 1)
    inferred = estimates.inferred
    each = alpha * (1 - OF_CELLS) / above
    values = inferred.estimate.astype(float)
    halves = estimates.half_widths(inferred.variance, each)
    values[tree.leaves] = counts
    halves[tree.leaves] = half
    lower, upper = tree.node_corners()
    return Regions(lower, upper, values, halves, tree.parent, tuple(tree.levels))
