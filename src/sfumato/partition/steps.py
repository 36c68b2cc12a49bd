"""Steps that several partitioners take: halving the widest side, laying an even grid into a box, and counting on the way down."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array
from sfumato.partition.growing import MOST_CELLS, Draft, Growth

SLICES = 64  # shares of counts on the way down are multiples of this part of the cost, so that few laws occur


def halve_widest(growth: Growth, nodes: Array, times: Array) -> tuple[Array, Array]:
    """Halve each node along its widest side, and its halves, ``times`` over, as far as its lattice cells allow.

    Parameters
    ----------
    nodes, times : int64 ndarrays of shape (k,)

    Returns
    -------
    parts, whose : int64 ndarrays
        The boxes that come out, and the place in ``nodes`` of the one that each is part of.
    """
    whose = np.arange(len(nodes))
    parts, owners = [nodes[:0]], [whose[:0]]
    step = 0
    while len(nodes):
        widths = growth.widths(nodes)
        on = (widths.max(axis=1) > 1) & (times[whose] > step)
        parts.append(nodes[~on])
        owners.append(whose[~on])
        nodes, whose, widths = nodes[on], np.repeat(whose[on], 2), widths[on]
        if len(nodes):
            axis = widths.argmax(axis=1)
            nodes = growth.split(
                nodes, axis, (growth.lower[nodes, axis] + growth.upper[nodes, axis]) // 2
            )
        step += 1
    return np.concatenate(parts), np.concatenate(owners)


def split_evenly(growth: Growth, nodes: Array, parts: Array) -> Array:
    """Lay a grid of equal cells into each node, with edges floor(i W / m) on its W lattice cells, by two-way splits.

    Parameters
    ----------
    nodes : int64 ndarray of shape (k,)
    parts : int64 ndarray of shape (k, d)
        Cells along each axis, at most the node's lattice cells.

    Returns
    -------
    int64 ndarray: the grid cells of all nodes.
    """
    base, width = growth.lower[nodes], growth.widths(nodes)
    first, last = np.zeros_like(parts), parts.copy()
    whose, found = np.arange(len(nodes)), [nodes[:0]]
    while len(nodes):
        span = last - first
        on = span.max(axis=1) > 1
        found.append(nodes[~on])
        nodes, whose, first, last = nodes[on], whose[on], first[on], last[on]
        if not len(nodes):
            break
        axis, each = span[on].argmax(axis=1), np.arange(len(nodes))
        middle = (first[each, axis] + last[each, axis]) // 2
        nodes = growth.split(
            nodes, axis, base[whose, axis] + middle * width[whose, axis] // parts[whose, axis]
        )
        whose, first, last = (np.repeat(part, 2, axis=0) for part in (whose, first, last))
        last[2 * each, axis] = first[2 * each + 1, axis] = middle
    return np.concatenate(found)


def room_for(growth: Growth, more: int) -> bool:
    """Whether so many more nodes fit below the public limit on cells."""
    return len(growth.axis) + more <= 2 * MOST_CELLS - 2


def fraction_now(levels: Array, stride: int) -> Array:
    """Which fraction of what is left a node's count gets, with so many counted levels to come below it, cells included.

    1 / (1 + g + ... + g^levels), g = 2^(stride / 3): the shares grow towards the cells as in a geometric allocation.
    """
    rise = 2 ** (stride / 3)
    return np.asarray((rise - 1) / (rise ** (np.asarray(levels, dtype=float) + 1) - 1))


def look_at(
    draft: Draft, nodes: Array, left: Array, levels: Array, stride: int
) -> tuple[Array, Array]:
    """Count disjoint nodes, each with its fraction of what its path has left, in whole slices of the cost.

    Parameters
    ----------
    nodes, left, levels : int64 ndarrays of shape (k,)
        ``left`` in slices, at least 2; ``levels`` as for ``fraction_now``, at least 1.
    stride : int
        Halvings between counted levels.

    Returns
    -------
    counts, spent : int64 ndarrays of shape (k,)
        Spent in slices: at least 1, and at least 1 is left.
    """
    slices = np.clip(np.rint(left * fraction_now(levels, stride)).astype(np.int64), 1, left - 1)
    counts = np.empty(len(nodes), np.int64)
    for each in np.unique(slices):
        here = slices == each
        counts[here] = draft.look(nodes[here], int(each) * (draft.total // SLICES))
    return counts, slices


def split_at(growth: Growth, nodes: Array, axis: Array, cuts: list[Array]) -> Array:
    """Split each node along its axis at several increasing lattice points, and return all parts: int64 ndarray."""
    first, last = (
        np.zeros(len(nodes), np.int64),
        np.array([len(points) for points in cuts], np.int64),
    )
    whose, found = np.arange(len(nodes)), [nodes[:0]]
    while len(nodes):
        on = last > first
        found.append(nodes[~on])
        nodes, whose, first, last = nodes[on], whose[on], first[on], last[on]
        middle = (first + last) // 2
        points = np.array(
            [cuts[i][m] for i, m in zip(whose.tolist(), middle.tolist(), strict=True)], np.int64
        )
        if len(nodes):
            nodes = growth.split(nodes, axis[whose], points)
        whose = np.repeat(whose, 2)
        first, last = (
            np.stack([first, middle + 1], axis=1).reshape(-1),
            np.stack([middle, last], axis=1).reshape(-1),
        )
    return np.concatenate(found)
