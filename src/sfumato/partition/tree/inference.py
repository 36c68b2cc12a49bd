"""Constrained inference on a tree of counts: the best unbiased estimate that all noisy counts together allow.

Every cell has a noisy count, and some nodes above have one, each with noise of its own scale. The true count of a node is
the sum of its children's. The generalised least squares estimate under these constraints is found in two passes over the
nodes (Hay, Rastogi, Miklau, Suciu, VLDB 2010, here with unequal variances; nodes without a count have infinite variance):

upwards    t(v) = s(left) + s(right), u(v) = z(left) + z(right); s(v) = 1 / (1/t + 1/variance), z(v) the weighted mean
           of u and the node's own count. z(v) is what the subtree knows, s(v) its variance.
downwards  x(root) = z(root); x(child) = z(child) + s(child)/t(v) (x(v) - u(v)).

A weighted sum of cells, weights w, is estimated by sum w x. With b(cell) = w, b(v) = the mean of b over the children by
s(child)/t(v), its variance is exactly

    sum over cells of w^2 s(cell)  -  sum over split nodes v of b(v)^2 (t(v) - s(v)),

since x(v) given z splits into independent innovations. A noisy count y(v) enters the sum with a coefficient of at most
reach(v) = Var x(v) / variance(v) <= 1 in size, for weights in [0, 1]: the coefficient is Cov(sum w x, x(v)) / variance(v);
covariances with cells below v are not negative and add up to Var x(v), those with other cells are not positive, and all
together they add up to at least 0. It is post-processing: nothing here can weaken a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array
from sfumato.partition.tree.geometry import Tree


@dataclass(frozen=True)
class Inferred:
    """What all counts of a tree say of every node: float64 ndarrays of shape (nodes,).

    Attributes
    ----------
    estimate, variance : of every node, from all counts.
    seen, own : what the subtree alone says, and its variance.
    gain : t - s, how much a node's own count takes from the variance of its children's sum.
    share : of a child in its parent's correction, s(child) / t(parent); 1 for the root.
    """

    estimate: Array
    variance: Array
    seen: Array
    own: Array
    gain: Array
    share: Array


def infer(tree: Tree, counts: Array, variances: Array) -> Inferred:
    """Solve for all nodes.

    Parameters
    ----------
    counts : ndarray of shape (nodes,)
        Noisy counts; whatever stands where the variance is infinite is not used.
    variances : float64 ndarray of shape (nodes,)
        Finite for every leaf.
    """
    known = np.isfinite(variances)
    own, seen = variances.copy(), np.where(known, counts, 0).astype(float)
    below, total = np.zeros(len(own)), np.zeros(len(own))  # t and u
    for nodes in tree.up():
        first = tree.child[nodes]
        t, u = own[first] + own[first + 1], seen[first] + seen[first + 1]
        weight = np.where(
            known[nodes], t / (t + np.where(known[nodes], variances[nodes], 1)), 0
        )  # of the node's own count
        own[nodes], seen[nodes] = t * (1 - weight), u + weight * (seen[nodes] - u)
        below[nodes], total[nodes] = t, u
    estimate, variance, share = seen.copy(), own.copy(), np.ones(len(own))
    for nodes in tree.down():
        for child in (tree.child[nodes], tree.child[nodes] + 1):
            part = own[child] / below[nodes]
            share[child] = part
            estimate[child] = seen[child] + part * (estimate[nodes] - total[nodes])
            variance[child] = own[child] - part**2 * (below[nodes] - variance[nodes])
    gain = np.where(tree.axis >= 0, below - own, 0)
    return Inferred(estimate, variance, seen, own, gain, share)


def whole_counts(tree: Tree, estimate: Array, own: Array) -> Array:
    """Non-negative whole numbers near the estimates, in which every node is the sum of its children: int64 ndarray (nodes,).

    From the root down: a node's whole number is divided between its children by their estimates, what is missing shared in
    proportion to their variances, rounded, and kept between nothing and all.
    """
    whole = np.zeros(len(estimate), np.int64)
    whole[0] = max(0, round(float(estimate[0])))
    for nodes in tree.down():
        left = tree.child[nodes]
        missing = whole[nodes] - estimate[left] - estimate[left + 1]
        aim = estimate[left] + missing * own[left] / (own[left] + own[left + 1])
        whole[left] = np.clip(np.rint(aim).astype(np.int64), 0, whole[nodes])
        whole[left + 1] = whole[nodes] - whole[left]
    return whole
