"""The segments between the knots of hats: cells in which values are counted and added up.

On the segment between two knots, only their two hats differ from 0, and both are affine in the
value. So the sums of all hats follow from the number of rows in each segment and the sum of their
values. A value on a knot may lie in either segment: both give the same sums.

The segment of a value is found by comparing the value with edges, its number of steps by
rounding. The sums of hats are those of a partition of unity only if the two agree: if the number of
steps lies between the knots of the segment. The edges are chosen so that it does, whatever the
floats.
"""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import EdgesAxis, GridAxis


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
    """An edge that parts the values in cells up to ``cell`` from those in cells from it on.

    Values below the edge lie in cells up to ``cell``, all others in cells from it on. Holds
    because: ``axis.locate`` is monotone. Either the edge lies in the cell itself, or it is the
    least double that lies in that cell or beyond it.
    """
    at = float(axis.points(np.array([cell]))[0])
    if _cell_of(axis, at) == cell:
        return at
    # Where doubles are coarser than cells, some cells hold none.
    below, above = axis.lower, axis.upper
    while below < (middle := below + (above - below) / 2) < above:
        if _cell_of(axis, middle) >= cell:
            above = middle
        else:
            below = middle
    return above


def _cell_of(axis: GridAxis, value: float) -> int:
    return int(axis.locate(np.array([value]))[0])
