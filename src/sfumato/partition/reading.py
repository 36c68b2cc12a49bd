"""What users ask of a partition, read and checked: points and ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import GridAxis, as_number
from sfumato.errors import UsageError, nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Range: TypeAlias = "tuple[ArrayLike, ArrayLike] | list[ArrayLike]"
"""Lower and upper ends: numbers, dates, or arrays of them."""


def read_points(points: ArrayLike, names: Sequence[str]) -> Array:
    """Points as a float64 ndarray of shape (n, d)."""
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[1] != len(names):
        asked = f"points of shape {array.shape}"
        raise UsageError(
            asked,
            f"this partition has the axes {', '.join(names)}",
            f"Give an array of shape (n, {len(names)})",
        )
    return array


def read_cells(cells: ArrayLike, number: int) -> Array:
    """Indices of cells, each once: int64 ndarray."""
    found = np.unique(np.asarray(cells))
    if found.size and (found.dtype.kind not in "iu" or found[0] < 0 or found[-1] >= number):
        raise UsageError(
            "indices of cells",
            f"they are not whole numbers from 0 to {number - 1:,}",
            "Give indices as assign returns them",
        )
    return found.astype(np.int64)


def read_ranges(
    ranges: Mapping[str, Range], names: Sequence[str], axes: Sequence[GridAxis]
) -> tuple[dict[int, tuple[Array, Array]], tuple[int, ...]]:
    """Ranges by number of axis, as flat float64 ndarrays of one length, and the shape in which they were given."""
    bounds = {name: _range(name, given, names, axes) for name, given in ranges.items()}
    try:
        shape = np.broadcast_shapes(*(np.shape(end) for pair in bounds.values() for end in pair))
    except ValueError:
        raise UsageError(
            "ranges along several axes",
            "they differ in number",
            "Give as many ranges along each axis, or one",
        ) from None
    flat = {
        names.index(name): (
            np.ravel(np.broadcast_to(pair[0], shape)),
            np.ravel(np.broadcast_to(pair[1], shape)),
        )
        for name, pair in bounds.items()
    }
    return flat, shape


def _range(
    name: str, given: Range, names: Sequence[str], axes: Sequence[GridAxis]
) -> tuple[Array, Array]:
    if name not in names:
        raise UsageError(
            f"a range along {name!r}",
            f"this partition has no such axis; {nearest(name, names)}",
            "Name one of its axes",
        )
    axis = axes[names.index(name)]
    try:
        lower, upper = (_coordinates(end, axis) for end in given)
    except UsageError:
        raise
    except (TypeError, ValueError):
        raise UsageError(
            f"a range along {name!r}", "it is not a pair of bounds", f"Write {name}=(lower, upper)"
        ) from None
    try:
        lower, upper = np.broadcast_arrays(lower, upper)
    except ValueError:
        raise UsageError(
            f"ranges along {name!r}",
            "lower and upper ends differ in number",
            "Give as many of each",
        ) from None
    if not bool(np.all(lower <= upper)):
        raise UsageError(
            f"a range along {name!r}",
            "lower must not exceed upper, and neither may be NaN",
            "Swap the ends",
        )
    return lower, upper


def _coordinates(end: ArrayLike, axis: GridAxis) -> Array:
    if np.ndim(end) == 0 or axis.time is not None:
        given = np.asarray(end, dtype=object)
        return np.array(
            [as_number(value, axis.time, axis.name) for value in given.reshape(-1)]
        ).reshape(given.shape)
    return np.asarray(end, dtype=float)
