"""How values are encoded as integers, the noise on their sums, and the true sums of each group.

The encoding is fixed by public numbers alone. In the order of the code:

*Segments* (``segment_axis``): the cells between the knots of hats, in which values are counted and
added up.

On the segment between two knots, only their two hats differ from 0, and both are affine in the
value. So the sums of all hats follow from the number of rows in each segment and the sum of their
values. A value on a knot may lie in either segment: both give the same sums.

The segment of a value is found by comparing the value with edges, its number of steps by
rounding. The sums of hats are those of a partition of unity only if the two agree: if the number of
steps lies between the knots of the segment. The edges are chosen so that it does, whatever the
floats.

*Encodings* (``encoding_on``).

The noise on each sum is that of one count, multiplied by the constant M of the basis. Samplers draw
noise up to a largest scale. So a small epsilon allows only a small M, that is, few steps between
the bounds of the value. A value is rounded to a step before it is added up, so this is decided from
the cost before anything is counted.

*True sums* (``group_sums``) of a basis over the rows of each group: exact integers, before any
noise.

A scan adds up each value x and, for the quadratic, its square. With n rows of a group, all sums
of a basis follow from n, the sum S of x and the sum Q of x^2:

* pair: R n - S, and S;
* quadratic: R^2 n - 2 R S + Q, 2 (R S - Q), and Q;
* hats: on the segment between two knots, (upper n - S) and (S - lower n), times the slope there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answers import Summed
from sfumato.basics import Array
from sfumato.domain import Cube, EdgesAxis, GridAxis, Interval
from sfumato.errors import InternalError, UsageError
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.aggregates.values import (
    MOST_STEPS,
    MOST_STEPS_SQUARED,
    Basis,
    BasisName,
    PersonScale,
    Values,
    basis_within,
    most_steps,
    value_axis,
    values_on,
)
from sfumato.random.discrete import MAX_SCALE

# --- segments -------------------------------------------------------------------------------------


def segment_axis(axis: GridAxis, knots: Array) -> EdgesAxis:
    """Lay the segments between knots along the axis of a value.

    Parameters
    ----------
    axis : GridAxis
        Locates the value: its cells are numbers of steps.
    knots : int64 ndarray of shape (k,)
        Ascending, from 0. The last is at least the last cell of the axis.

    Returns
    -------
    EdgesAxis of k - 1 cells
        A value in segment i lies in a cell from ``knots[i]`` to ``knots[i + 1]``, both included.
    """
    inner = [opening(axis, int(knot)) for knot in knots[1:-1]]
    # It reads the same column: other values would put a row into a segment that is not its own.
    edges = (axis.lower, *inner, axis.upper)
    return EdgesAxis(axis.name, edges, missing=axis.missing, column=axis.column)


def opening(axis: GridAxis, cell: int) -> float:
    """Return an edge that parts the values in cells up to ``cell`` from those in cells from it on.

    Values below the edge lie in cells up to ``cell``, all others in cells from it on. Holds
    because: ``axis.locate`` is monotone. Either the edge lies in the cell itself, or it is the
    least double that lies in that cell or beyond it.
    """
    at = float(axis.points(np.array([cell]))[0])
    if _cell_of(axis, at) == cell:
        return at
    # Where doubles are coarser than cells, some cells hold none.
    below = axis.lower
    above = axis.upper
    while below < (middle := below + (above - below) / 2) < above:
        if _cell_of(axis, middle) >= cell:
            above = middle
        else:
            below = middle
    return above


def _cell_of(axis: GridAxis, value: float) -> int:
    return int(axis.locate(np.array([value]))[0])


# --- encodings ------------------------------------------------------------------------------------


# Noise on a count that is so small that values are added up as finely as they can be.
FINEST: Law = DiscreteLaplace(Fraction(1))


@dataclass(frozen=True)
class Encoding:
    """What is summed for one value, and the noise on each sum.

    Attributes
    ----------
    values : Values
        The lattice that values are rounded to.
    basis : Basis
        The functions of a lattice value that are summed.
    summed : Summed
        What each row or person adds to its cell.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each sum.
    """

    values: Values
    basis: Basis
    summed: Summed
    law: Law

    @property
    def segments(self) -> EdgesAxis | None:
        """The cells between the knots of hats; None for other functions."""
        if self.basis.name != "hats":
            return None
        return self.summed.segments or segment_axis(self.summed.axis, self.basis.knots)


def value_encoding(
    title: str, name: str, interval: Interval, functions: BasisName, count_noise: Law = FINEST
) -> Encoding:
    """Choose the finest encoding of a value whose noise can be drawn.

    Parameters
    ----------
    count_noise : DiscreteLaplace or DiscreteGaussian
        The noise on a count at the cost of the value.

    Raises
    ------
    UsageError
        If not even a lattice of one step has noise that can be drawn.
    """
    largest_unity = _largest_unity(count_noise)
    steps = most_steps(interval, functions == "quadratic")
    basis = basis_within(functions, steps, largest_unity)
    if basis is not None and basis.points < steps:
        basis = basis_within(functions, _power_of_two(basis.points), largest_unity)
    if basis is None:
        raise _too_much_noise(title, "rows")
    return _encoding(value_axis(name, interval, basis.points), basis, count_noise)


def person_encoding(
    title: str, scale: PersonScale, functions: BasisName, count_noise: Law = FINEST
) -> Encoding:
    """Choose the finest encoding of the value of a person whose noise can be drawn.

    Parameters
    ----------
    count_noise : DiscreteLaplace or DiscreteGaussian
        The noise on a count at the cost of the value.

    Raises
    ------
    UsageError
        If not even a lattice of one step has noise that can be drawn.
    """
    largest_unity = _largest_unity(count_noise)
    finest = basis_within(
        functions, MOST_STEPS_SQUARED if functions == "quadratic" else MOST_STEPS, largest_unity
    )
    if finest is None:
        raise _too_much_noise(title, "cells")
    basis = basis_within(functions, scale.points(_power_of_two(finest.points)), largest_unity)
    assert basis is not None
    knots = basis.knots if functions == "hats" else None
    summed = scale.summed(basis.points, functions == "quadratic", knots)
    law = _multiplied(count_noise, basis.unity)
    return Encoding(scale.values(basis.points), basis, summed, law)


def _power_of_two(points: int) -> int:
    """Return the largest power of 2 up to ``points``.

    Costs that differ a little then lead to the same lattice.
    """
    return 1 << points.bit_length() - 1


def _too_much_noise(title: str, limited: str) -> UsageError:
    return UsageError(
        title,
        "its noise would be too large to be drawn",
        f"Choose a larger epsilon, or fewer {limited} per person",
    )


def encoding_on(axis: GridAxis, functions: BasisName, count_noise: Law) -> Encoding:
    """Return the encoding of a value that was added up on an axis of ``value_encoding``.

    Raises
    ------
    InternalError
        If it was counted for another cost, which allows a finer lattice.
    """
    points = axis.cells - 1
    basis = basis_within(functions, points, _largest_unity(count_noise))
    # The steps were fixed before the scan; finer ones would need noise that cannot be drawn.
    if basis is None or basis.points != points:
        raise InternalError("Values were added up in steps that are too fine for this cost.")
    return _encoding(axis, basis, count_noise)


def _encoding(axis: GridAxis, basis: Basis, count_noise: Law) -> Encoding:
    summed = Summed(axis, squares=basis.name == "quadratic")
    return Encoding(values_on(axis), basis, summed, _multiplied(count_noise, basis.unity))


def _multiplied(law: Law, factor: int) -> Law:
    match law:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * factor)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return DiscreteGaussian(sigma_squared * factor**2)


def _largest_unity(law: Law) -> int:
    """The largest factor by which the noise on a count can be multiplied and still be drawn."""
    match law:
        case DiscreteLaplace(scale=scale):
            # Rounded down: noise of a larger scale could not be drawn.
            return int(MAX_SCALE / scale)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return math.isqrt(int(MAX_SCALE**2 / sigma_squared))


# --- true sums ------------------------------------------------------------------------------------

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
    assert cube.sums is not None
    # Of each cell counted: its rows, the sum of the value and, for the quadratic, of its square.
    columns = 2 if basis.name == "quadratic" else 1
    sums_of_value = cube.sums[:, value * columns : (value + 1) * columns]
    moments = np.concatenate([cube.counts[:, None], sums_of_value], axis=1)
    if moments.dtype != object and cube.total * basis.unity >= LARGEST_SUM:
        # Below that no sum of int64 can overflow. Python's integers never do.
        moments = moments.astype(object)
    groups, segments = _groups_and_segments(cube, n_group_axes, value)
    n_groups = math.prod(cube.lattice.shape[:n_group_axes])
    if basis.name == "hats":
        n_segments = cube.lattice.shape[n_group_axes + value]
        in_segments = _added_up(moments, groups * n_segments + segments, n_groups * n_segments)
        # The sums of hats, of multiple 1, follow from the moments in segments.
        moments = in_segments.reshape(n_groups, n_segments, -1)
        knots = basis.knots
        gaps = np.diff(knots)
        rows = moments[:, :, 0]
        above_lower = moments[:, :, 1] - knots[:-1] * rows
        # All gaps divide the largest one, so that slopes are whole numbers.
        slopes = gaps.max() // gaps
        sums = np.zeros((len(moments), basis.size), moments.dtype)
        sums[:, :-1] += slopes * (gaps * rows - above_lower)
        sums[:, 1:] += slopes * above_lower
    else:
        sums = _polynomials(basis, _added_up(moments, groups, n_groups))
    return np.asarray(np.minimum(basis.multiple * sums, LARGEST_SUM).astype(np.int64))


def _groups_and_segments(cube: Cube, n_group_axes: int, value: int) -> tuple[Array, Array]:
    """Return the group of each cell counted, and its segment of a value (0 without segments)."""
    group_shape = cube.lattice.shape[:n_group_axes]
    inner_shape = cube.lattice.shape[n_group_axes:]
    if cube.coordinates is not None:
        # Without axes all rows are one group.
        groups = np.zeros(len(cube.coordinates), np.int64)
        if group_shape:
            groups = np.ravel_multi_index(tuple(cube.coordinates.T[:n_group_axes]), group_shape)
        inner = cube.coordinates[:, n_group_axes:]
        return groups, inner[:, value] if inner_shape else np.zeros_like(groups)
    groups, places = np.divmod(np.arange(len(cube.counts)), math.prod(inner_shape))
    if not inner_shape:
        return groups, places
    return groups, np.unravel_index(places, inner_shape)[value]


def _added_up(moments: Array, cells: Array, size: int) -> Array:
    """Add up the rows of equal cells: ndarray of shape (size, moments)."""
    sums = np.zeros((size, moments.shape[1]), moments.dtype)
    np.add.at(sums, cells, moments)
    return sums


def _polynomials(basis: Basis, moments: Array) -> Array:
    """Return the sums of the pair or the quadratic, of multiple 1."""
    points = basis.points
    if basis.name == "pair":
        rows, first = moments.T
        return np.stack([points * rows - first, first], axis=1)
    rows, first, second = moments.T
    both = points * first - second  # x (R - x)
    return np.stack([points * (points * rows - first) - both, 2 * both, second], axis=1)
