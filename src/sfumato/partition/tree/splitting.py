"""Split boxes as several partitioners do: in halves, into even grids, at given points."""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.partition.tree.growth import Growth


def halve_widest(growth: Growth, nodes: Array, times: Array) -> tuple[Array, Array]:
    """Halve each node along its widest side, then its halves, and so on.

    Parameters
    ----------
    growth : Growth
    nodes, times : int64 ndarrays of shape (k,)
        Boxes, and how many times over each is halved. A box of one lattice cell is not halved.

    Returns
    -------
    parts, owners : int64 ndarrays
        The boxes that result, and for each the index in ``nodes`` of the box that it is a part of.
    """
    owner = np.arange(len(nodes))
    parts = [nodes[:0]]
    owners = [owner[:0]]
    step = 0
    while len(nodes):
        widths = growth.widths(nodes)
        halved = (widths.max(axis=1) > 1) & (times[owner] > step)
        parts.append(nodes[~halved])
        owners.append(owner[~halved])
        nodes = nodes[halved]
        widths = widths[halved]
        owner = np.repeat(owner[halved], 2)
        if len(nodes):
            axis = widths.argmax(axis=1)
            nodes = growth.split(nodes, axis, growth.middles(nodes, axis))
        step += 1
    return np.concatenate(parts), np.concatenate(owners)


def split_evenly(growth: Growth, nodes: Array, parts: Array) -> Array:
    """Lay a grid of equal cells into each node, by two-way splits.

    On W lattice cells the edges of m parts are floor(i W / m).

    Parameters
    ----------
    growth : Growth
    nodes : int64 ndarray of shape (k,)
    parts : int64 ndarray of shape (k, d)
        Cells of the grid along each axis, at most the node's lattice cells.

    Returns
    -------
    int64 ndarray: the grid cells of all nodes.
    """
    base = growth.lower[nodes]
    width = growth.widths(nodes)
    # Each box holds the grid cells from ``first`` to ``last`` along each axis, of its owner's grid.
    first = np.zeros_like(parts)
    last = parts.copy()
    owner = np.arange(len(nodes))
    cells = [nodes[:0]]
    while len(nodes):
        span = last - first
        goes_on = span.max(axis=1) > 1
        cells.append(nodes[~goes_on])
        nodes = nodes[goes_on]
        owner = owner[goes_on]
        first = first[goes_on]
        last = last[goes_on]
        if not len(nodes):
            break
        each = np.arange(len(nodes))
        axis = span[goes_on].argmax(axis=1)
        middle = (first[each, axis] + last[each, axis]) // 2
        steps = middle * width[owner, axis] // parts[owner, axis]
        nodes = growth.split(nodes, axis, base[owner, axis] + steps)
        owner = np.repeat(owner, 2)
        first = np.repeat(first, 2, axis=0)
        last = np.repeat(last, 2, axis=0)
        # Children stand in pairs: the lower one ends where the upper one begins.
        last[2 * each, axis] = middle
        first[2 * each + 1, axis] = middle
    return np.concatenate(cells)


def split_at_edges(
    growth: Growth, nodes: Array, first: Array, last: Array, edges: list[Array]
) -> tuple[Array, Array, Array]:
    """Split nodes along a grid of given edges, by two-way splits.

    Parameters
    ----------
    growth : Growth
    nodes : int64 ndarray of shape (k,)
    first, last : int64 ndarrays of shape (k, d)
        Each node reaches from edge ``first`` to edge ``last`` along each axis.
    edges : list of int64 ndarray, one per axis
        Lattice points, increasing.

    Returns
    -------
    cells, first, last : int64 ndarrays
        The cells of the grid within the nodes, and the edges between which each lies.
    """
    cells = [nodes[:0]]
    firsts = [first[:0]]
    lasts = [last[:0]]
    while len(nodes):
        span = last - first
        goes_on = span.max(axis=1) > 1
        cells.append(nodes[~goes_on])
        firsts.append(first[~goes_on])
        lasts.append(last[~goes_on])
        nodes = nodes[goes_on]
        first = first[goes_on]
        last = last[goes_on]
        if not len(nodes):
            break
        each = np.arange(len(nodes))
        axis = span[goes_on].argmax(axis=1)
        middle = (first[each, axis] + last[each, axis]) // 2
        points = [edges[a][m] for a, m in zip(axis.tolist(), middle.tolist(), strict=True)]
        nodes = growth.split(nodes, axis, np.array(points, np.int64))
        first = np.repeat(first, 2, axis=0)
        last = np.repeat(last, 2, axis=0)
        # Children stand in pairs: the lower one ends where the upper one begins.
        last[2 * each, axis] = middle
        first[2 * each + 1, axis] = middle
    return np.concatenate(cells), np.concatenate(firsts), np.concatenate(lasts)


def split_at(growth: Growth, nodes: Array, axis: Array, cuts: list[Array]) -> Array:
    """Split each node along its axis at several lattice points, by two-way splits.

    Parameters
    ----------
    growth : Growth
    nodes, axis : int64 ndarrays of shape (k,)
    cuts : list of int64 ndarray
        The points of each node, increasing.

    Returns
    -------
    int64 ndarray: all parts.
    """
    # Each box is still to be cut at the points from ``first`` to ``last`` of its owner.
    first = np.zeros(len(nodes), np.int64)
    last = np.array([len(points) for points in cuts], np.int64)
    owner = np.arange(len(nodes))
    parts = [nodes[:0]]
    while len(nodes):
        goes_on = last > first
        parts.append(nodes[~goes_on])
        nodes = nodes[goes_on]
        owner = owner[goes_on]
        first = first[goes_on]
        last = last[goes_on]
        middle = (first + last) // 2
        points = [cuts[i][m] for i, m in zip(owner.tolist(), middle.tolist(), strict=True)]
        if len(nodes):
            nodes = growth.split(nodes, axis[owner], np.array(points, np.int64))
        owner = np.repeat(owner, 2)
        # Children stand in pairs: the lower one ends before the middle point, the upper one begins
        # after it.
        firsts = np.stack([first, middle + 1], axis=1)
        lasts = np.stack([middle, last], axis=1)
        first = firsts.reshape(-1)
        last = lasts.reshape(-1)
    return np.concatenate(parts)
