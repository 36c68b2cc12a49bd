"""Constrained inference: the best unbiased estimate that all noisy counts of a tree together allow.

Every cell has a noisy count, and some nodes above have one. Each count has noise of its own scale.
The true count of a node is the sum of its children's. The generalised least squares estimate under
these constraints is found in two passes over the nodes (Hay, Rastogi, Miklau, Suciu, VLDB 2010,
here with unequal variances; nodes without a count have infinite variance):

upwards    t(v) = s(left) + s(right), u(v) = z(left) + z(right);
           s(v) = 1 / (1/t + 1/variance), and z(v) is the weighted mean of u and the node's own
           count. z(v) is what the subtree says of the node, and s(v) is the variance of z(v).
downwards  x(root) = z(root); x(child) = z(child) + s(child)/t(v) (x(v) - u(v)).

*Variance of a sum.* A weighted sum of cells with weights w is estimated by sum w x. Let b(cell) =
w, and let b(v) be the mean of b over the children, weighted by s(child)/t(v). Then its variance is
exactly

    sum over cells of w^2 s(cell)  -  sum over split nodes v of b(v)^2 (t(v) - s(v)),

since x(v) given z splits into independent innovations.

*Influence of one count.* A noisy count y(v) enters the sum with the coefficient
Cov(sum w x, x(v)) / variance(v). For weights in [0, 1] its size is at most
Var x(v) / variance(v) <= 1: covariances of x(v) with cells below v are not negative and add up to
Var x(v), covariances with other cells are not positive, and all together add up to at least 0.

All of this is post-processing: nothing here can weaken a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.partition.tree.geometry import Tree


@dataclass(frozen=True)
class Inferred:
    """What all counts of a tree say of every node: float64 ndarrays of shape (nodes,).

    Attributes
    ----------
    estimate, variance
        x: the estimate of every node from all counts, and its variance.
    seen, own
        z and s: what the subtree alone says of the node, and the variance of that.
    gain
        t - s: how much a node's own count takes from the variance of its children's sum; 0 for
        cells.
    share
        s(child) / t(parent): the share of a child in the correction of its parent; 1 for the root.
    """

    estimate: Array
    variance: Array
    seen: Array
    own: Array
    gain: Array
    share: Array


def infer(tree: Tree, counts: Array, variances: Array) -> Inferred:
    """Estimate all nodes.

    Parameters
    ----------
    tree : Tree
    counts : ndarray of shape (nodes,)
        Noisy counts. Those of infinite variance are not used.
    variances : float64 ndarray of shape (nodes,)
        Variances of the noise, finite for every leaf.
    """
    has_count = np.isfinite(variances)
    s = variances.copy()
    z = np.where(has_count, counts, 0).astype(float)
    t = np.zeros(len(s))
    u = np.zeros(len(s))
    for nodes in tree.up():
        left = tree.child[nodes]
        t[nodes] = s[left] + s[left + 1]
        u[nodes] = z[left] + z[left + 1]
        own_variance = np.where(has_count[nodes], variances[nodes], 1)
        own_weight = np.where(has_count[nodes], t[nodes] / (t[nodes] + own_variance), 0)
        s[nodes] = t[nodes] * (1 - own_weight)
        z[nodes] = u[nodes] + own_weight * (z[nodes] - u[nodes])
    estimate = z.copy()
    variance = s.copy()
    share = np.ones(len(s))
    for nodes in tree.down():
        for child in (tree.child[nodes], tree.child[nodes] + 1):
            part = s[child] / t[nodes]
            share[child] = part
            estimate[child] = z[child] + part * (estimate[nodes] - u[nodes])
            variance[child] = s[child] - part**2 * (t[nodes] - variance[nodes])
    gain = np.where(tree.axis >= 0, t - s, 0)
    return Inferred(estimate, variance, z, s, gain, share)


def influence(tree: Tree, own: Array, inferred: Inferred) -> Array:
    """With which coefficients the noisy counts enter the estimate of every node.

    It takes the two passes of ``infer`` with vectors of coefficients in place of numbers.

    Parameters
    ----------
    tree : Tree
    own : float64 ndarray of shape (nodes, counts)
        How each node's own counts are combined into one; 0 where it has none.
    inferred : Inferred

    Returns
    -------
    float64 ndarray of shape (nodes, counts)
    """
    seen = own.copy()
    of_children = np.zeros_like(own)
    for nodes in tree.up():
        left = tree.child[nodes]
        of_children[nodes] = seen[left] + seen[left + 1]
        # s = t (1 - own weight), and the gain is t - s.
        total = inferred.own[nodes] + inferred.gain[nodes]
        own_weight = (inferred.gain[nodes] / total)[:, None]
        seen[nodes] = of_children[nodes] * (1 - own_weight) + own_weight * own[nodes]
    found = seen.copy()
    for nodes in tree.down():
        for child in (tree.child[nodes], tree.child[nodes] + 1):
            part = inferred.share[child][:, None]
            found[child] = seen[child] + part * (found[nodes] - of_children[nodes])
    return found


def whole_counts(tree: Tree, estimate: Array, own: Array) -> Array:
    """Non-negative whole numbers near the estimates: int64 ndarray of shape (nodes,).

    Every node is the sum of its children. From the root down, a node's whole number is divided
    between its children by their estimates. What is missing is shared in proportion to their
    variances. The result is rounded, and kept between nothing and all.

    Parameters
    ----------
    tree : Tree
    estimate, own : float64 ndarrays of shape (nodes,)
        As in ``Inferred``.
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
