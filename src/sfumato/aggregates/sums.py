"""The true sums of a basis over the rows of each group: exact integers, before any noise.

A scan adds up each value x and, for the quadratic, its square. With n rows of a group, all sums
of a basis follow from n, the sum S of x and the sum Q of x^2:

* pair: R n - S, and S;
* quadratic: R^2 n - 2 R S + Q, 2 (R S - Q), and Q;
* hats: on the segment between two knots, (upper n - S) and (S - lower n), times the slope there.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.groups import group_numbers
from sfumato.basics.numbers import Array
from sfumato.domain.cube import Cube

LARGEST_SUM = 2**62


def group_sums(cube: Cube, basis: Basis, n_group_axes: int, value: int = 0) -> Array:
    """Add up the functions of a basis over the rows of each group.

    Parameters
    ----------
    cube : Cube
        Counts and sums over the axes of the groups; for hats, then over the segments of each value.
    n_group_axes : int
        How many axes are groups.
    value : int
        Which of the values is added up.

    Returns
    -------
    int64 ndarray of shape (groups, k)
        Each sum is cut at 2^62. One person moves the cut sum by no more than the exact one, and
        no data raise an overflow. 10^9 rows reach 2^62 with no basis that ``encoding`` chooses.
    """
    moments = _moments(cube, basis, value)
    if moments.dtype != object and cube.total * basis.unity >= LARGEST_SUM:
        # Below that no sum of int64 can overflow. Python's integers never do.
        moments = moments.astype(object)
    groups, segments = _groups_and_segments(cube, n_group_axes, value)
    n_groups = math.prod(cube.lattice.shape[:n_group_axes])
    if basis.name == "hats":
        n_segments = cube.lattice.shape[n_group_axes + value]
        in_segments = _added_up(moments, groups * n_segments + segments, n_groups * n_segments)
        sums = _hats(basis, in_segments.reshape(n_groups, n_segments, -1))
    else:
        sums = _polynomials(basis, _added_up(moments, groups, n_groups))
    return np.asarray(np.minimum(basis.multiple * sums, LARGEST_SUM).astype(np.int64))


def _moments(cube: Cube, basis: Basis, value: int) -> Array:
    """Of each cell counted: its rows, the sum of the value and, for the quadratic, of its square.

    Returns
    -------
    int64 or object ndarray of shape (cells counted, 2 or 3)
    """
    assert cube.sums is not None
    columns = 2 if basis.name == "quadratic" else 1
    sums = cube.sums[:, value * columns : (value + 1) * columns]
    return np.concatenate([cube.counts[:, None], sums], axis=1)


def _groups_and_segments(cube: Cube, n_group_axes: int, value: int) -> tuple[Array, Array]:
    """The group of each cell counted, and its segment of a value (0 without segments)."""
    group_shape = cube.lattice.shape[:n_group_axes]
    inner_shape = cube.lattice.shape[n_group_axes:]
    if cube.coordinates is not None:
        groups = group_numbers(cube.coordinates[:, :n_group_axes], group_shape)
        inner = cube.coordinates[:, n_group_axes:]
        return groups, inner[:, value] if inner_shape else np.zeros_like(groups)
    groups, places = np.divmod(np.arange(len(cube.counts)), math.prod(inner_shape))
    if not inner_shape:
        return groups, places
    return groups, np.unravel_index(places, inner_shape)[value]


def _added_up(moments: Array, cells: Array, size: int) -> Array:
    """Add up the rows of equal cells: ndarray of shape (size, moments)."""
    found = np.zeros((size, moments.shape[1]), moments.dtype)
    np.add.at(found, cells, moments)
    return found


def _polynomials(basis: Basis, moments: Array) -> Array:
    """The sums of the pair or the quadratic, of multiple 1."""
    points = basis.points
    if basis.name == "pair":
        rows, first = moments.T
        return np.stack([points * rows - first, first], axis=1)
    rows, first, second = moments.T
    both = points * first - second  # x (R - x)
    return np.stack([points * (points * rows - first) - both, 2 * both, second], axis=1)


def _hats(basis: Basis, moments: Array) -> Array:
    """The sums of hats, of multiple 1, from the moments in segments."""
    knots = basis.knots
    gaps = np.diff(knots)
    rows, first = moments[:, :, 0], moments[:, :, 1]
    above_lower = first - knots[:-1] * rows
    # All gaps divide the largest one, so that slopes are whole numbers.
    slopes = gaps.max() // gaps
    sums = np.zeros((len(moments), basis.size), moments.dtype)
    sums[:, :-1] += slopes * (gaps * rows - above_lower)
    sums[:, 1:] += slopes * above_lower
    return sums
