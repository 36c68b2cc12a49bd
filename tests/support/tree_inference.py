"""Counts for random trees, and the dense solution of their least squares problem."""

import numpy as np
from hypothesis import strategies as st


def known(draw, tree):
    """Noisy counts of the nodes and their variances, infinite for some nodes above the cells."""
    nodes = len(tree.axis)
    counts = np.array(draw(st.lists(st.integers(-20, 50), min_size=nodes, max_size=nodes)), float)
    variances = np.array(
        draw(st.lists(st.sampled_from([0.5, 1.0, 4.0, 100.0]), min_size=nodes, max_size=nodes))
    )
    silent = np.array(draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    variances[silent & (tree.axis >= 0)] = np.inf
    return counts, variances


def least_squares(tree, counts, variances):
    """The same estimate from a dense system: cells, and the covariance of their estimates."""
    below = np.zeros((len(tree.axis), tree.cells))
    below[tree.leaves, np.arange(tree.cells)] = 1
    for node in tree.inner[::-1]:
        below[node] = below[tree.child[node]] + below[tree.child[node] + 1]
    seen = np.isfinite(variances)
    design, weight = below[seen], 1 / variances[seen]
    covariance = np.linalg.inv(design.T @ (weight[:, None] * design))
    return covariance @ design.T @ (weight * counts[seen]), covariance, below
