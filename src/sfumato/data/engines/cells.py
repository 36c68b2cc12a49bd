"""The cell of a row on an axis of numbers, dates or times, as an expression.

Cells are found by comparison with public edges: by binary search on an axis of given edges, or of
few equal cells, where integers are compared as such and other numbers as doubles. On other axes of
equal cells, numbers beyond the bounds are found by comparison too. Within them, the kernel's own
IEEE operations are written down in their order (``GridAxis.locate``, and ``NearestAxis.locate``
where values are added up): a difference, a product, a quotient, a sum and a floor, each of which
every engine rounds alike. None can overflow, because bounds are limited. What underflows lies in
the first cell; where it would be an error, the first cell is found by comparison, with the least
double of the next one.

A row has NULL instead of a cell where it is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.answers.nearest import NearestAxis
from sfumato.data.engines.dialect import Dialect
from sfumato.lattice import DROPPED, BinsAndMissing, EdgesAxis, GridAxis

COMPARED_CELLS = 8
"""Up to so many equal cells, every edge is compared with."""


def binned(
    axis: GridAxis | EdgesAxis | BinsAndMissing,
    number: str,
    dialect: Dialect,
    type_: str | None = None,
) -> str:
    """The cell of a row along an axis.

    Parameters
    ----------
    axis : GridAxis, EdgesAxis or BinsAndMissing
    number : str
        A double; null or NaN where it is missing.
    dialect : Dialect
    type_ : str or None
        The type of integers that the cells have. None: of 64 bits.
    """
    type_ = type_ or dialect.integer_type
    bins, missing = _bins_and_missing(axis)
    known = f"{number} <> {dialect.double(math.nan)}"
    if _is_compared(bins):
        edges = [dialect.double(edge) for edge in _inner(bins)]
        return _compared(known, edges, number, missing, dialect, type_)
    assert isinstance(bins, GridAxis)
    last = bins.cells - 1
    lower, upper = map(dialect.double, _within(bins, dialect))
    # Most numbers are within: an engine that evaluates a branch for many rows at once is fastest
    # where it is the first one, and the only one that they need.
    return (
        f"CASE WHEN {number} >= {lower} AND {number} < {upper}"
        f" THEN {dialect.floor(_kernel(bins, number, dialect), type_)}"
        f" WHEN {number} < {lower} THEN {dialect.integer(0, type_)}"
        f" WHEN {known} THEN {dialect.integer(last, type_)}"
        f"{_otherwise(missing, dialect, type_)} END"
    )


def integer_edges(
    axis: GridAxis | EdgesAxis | BinsAndMissing, held: pa.DataType, dialect: Dialect
) -> list[str] | None:
    """The least integer of each cell but the first, for a column of integers to be compared with.

    An integer is compared sooner than the double that it is read as, and has the same cell: doubles
    keep the order of integers, and each integer within 2^53 is a double.

    Parameters
    ----------
    axis : GridAxis, EdgesAxis or BinsAndMissing
    held : pyarrow.DataType
        The type of the integers.
    dialect : Dialect

    Returns
    -------
    list of literals, or None
        As ``Dialect.exact`` reads the column. None where doubles are to be binned: there are too
        many edges, or one lies beyond 2^53 or beyond the integers of the type.
    """
    bins, _ = _bins_and_missing(axis)
    if not _is_compared(bins):
        return None
    literals = []
    for edge in _inner(bins):
        literal = dialect.exact_literal(math.ceil(edge), held) if abs(edge) < _EXACT else None
        if literal is None:
            return None
        literals.append(literal)
    return literals


def binned_integers(
    axis: GridAxis | EdgesAxis | BinsAndMissing,
    integer: str,
    edges: Sequence[str],
    dialect: Dialect,
    type_: str | None = None,
) -> str:
    """The cell of a row along an axis, by its column of integers.

    Parameters
    ----------
    axis : GridAxis, EdgesAxis or BinsAndMissing
    integer : str
        As ``Dialect.exact`` reads the column; null where it is missing.
    edges : sequence of literals
        See ``integer_edges``.
    dialect : Dialect
    type_ : str or None
        See ``binned``.
    """
    _, missing = _bins_and_missing(axis)
    known = f"{integer} IS NOT NULL"
    return _compared(known, edges, integer, missing, dialect, type_ or dialect.integer_type)


_EXACT = 2.0**53
"""Below it, an integer that is less than an edge is so as a double, too."""


def _bins_and_missing(
    axis: GridAxis | EdgesAxis | BinsAndMissing,
) -> tuple[GridAxis | EdgesAxis, int | None]:
    """The cells of numbers, and the one where numbers are missing; None if there is none."""
    if isinstance(axis, BinsAndMissing):
        return axis.bins, axis.bins.size
    missing = int(axis.locate(np.array([math.nan]))[0])
    return axis, None if missing == DROPPED else missing


def _is_compared(axis: GridAxis | EdgesAxis) -> bool:
    """Whether a number is compared with every edge."""
    return isinstance(axis, EdgesAxis) or axis.cells <= COMPARED_CELLS


def _compared(
    known: str,
    edges: Sequence[str],
    number: str,
    missing: int | None,
    dialect: Dialect,
    type_: str,
) -> str:
    cells = [dialect.integer(cell, type_) for cell in range(len(edges) + 1)]
    found = f"CASE WHEN {known} THEN {searched(edges, cells, number)}"
    return f"{found}{_otherwise(missing, dialect, type_)} END"


def _otherwise(missing: int | None, dialect: Dialect, type_: str) -> str:
    return "" if missing is None else f" ELSE {dialect.integer(missing, type_)}"


def _within(axis: GridAxis, dialect: Dialect) -> tuple[float, float]:
    """Between which numbers the kernel's operations need no clamp; below and above, it clamps.

    These are the bounds, unless rounding would reach beyond the last cell just below the upper one,
    or an operation might fail just above the lower one.
    """
    lower, upper = axis.lower, axis.upper
    if not dialect.underflows:
        lower = least_double(axis, 1)
    factor, added = _scaling(axis)
    position = (math.nextafter(upper, -math.inf) - axis.lower) * factor
    position = position / (axis.upper - axis.lower) + added
    if not math.floor(position) < axis.cells:
        upper = least_double(axis, axis.cells - 1)
    return lower, upper


def _scaling(axis: GridAxis) -> tuple[int, float]:
    """By which number the kernel multiplies, and what it adds before the floor."""
    if isinstance(axis, NearestAxis):
        return axis.cells - 1, 0.5
    return axis.cells, axis.nudge


def _kernel(axis: GridAxis, number: str, dialect: Dialect) -> str:
    """The kernel's operations, in its order, up to the floor."""
    factor, added = _scaling(axis)
    position = f"({number} - {dialect.double(axis.lower)})" if axis.lower else number
    position = f"{position} * {dialect.double(float(factor))}"
    width = axis.upper - axis.lower
    if width != 1:
        position = f"{position} / {dialect.double(width)}"
    if added:
        position = f"{position} + {dialect.double(added)}"
    return position


def _inner(axis: GridAxis | EdgesAxis) -> list[float]:
    """The least double of each cell but the first."""
    if isinstance(axis, EdgesAxis):
        return list(axis.bounds[1:-1])
    return [least_double(axis, cell) for cell in range(1, axis.cells)]


def searched(edges: Sequence[str], results: Sequence[str], value: str) -> str:
    """One of several results: that of the number of ascending edges that are at most a value.

    Parameters
    ----------
    edges : sequence of literals
    results : sequence of expressions, one more than the edges
    value : str
        Neither null nor NaN.
    """
    if not edges:
        return results[0]
    middle = len(edges) // 2
    below = searched(edges[:middle], results[: middle + 1], value)
    above = searched(edges[middle + 1 :], results[middle + 1 :], value)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"


def least_double(axis: GridAxis, cell: int) -> float:
    """The least double that the kernel sends to a cell or above it: exact, by bisection.

    The kernel never sends a greater number to a lower cell, because rounding keeps the order.
    """
    low, high = _rank(-math.inf), _rank(math.inf)
    # Below ``high`` there is one: the kernel clamps what lies beyond the bounds.
    while low + 1 < high:
        middle = (low + high) // 2
        if axis.locate(np.array([_of_rank(middle)]))[0] >= cell:
            high = middle
        else:
            low = middle
    return _of_rank(high)


_SIGN = 2**63


def _rank(number: float) -> int:
    """The place of a double among all doubles in ascending order; the two zeros are neighbours."""
    bits = int(np.array(number).view(np.uint64))
    return bits if bits < _SIGN else _SIGN - 1 - bits


def _of_rank(rank: int) -> float:
    bits = rank if rank >= 0 else _SIGN - 1 - rank
    return float(np.array(bits, np.uint64).view(np.float64))
