"""Read and check what users ask of a partition: points, cells and ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import GridAxis
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
        raise UsageError(
            f"points of shape {array.shape}",
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
    """Bring ranges into one form.

    Parameters
    ----------
    ranges : mapping of axis name -> (lower, upper)
    names : sequence of str
        Names of the partition's axes.
    axes : sequence of GridAxis

    Returns
    -------
    ranges : dict of axis number -> (lower, upper)
        Flat float64 ndarrays, all of one length.
    shape : tuple of int
        The shape in which the ranges were given; () for a single one.
    """
    bounds = {name: _range(name, given, names, axes) for name, given in ranges.items()}
    try:
        shape = np.broadcast_shapes(*(np.shape(end) for pair in bounds.values() for end in pair))
    except ValueError:
        raise UsageError(
            "ranges along several axes",
            "they differ in number",
            "Give as many ranges along each axis, or one",
        ) from None
    flat = {}
    for name, (lower, upper) in bounds.items():
        flat[names.index(name)] = (
            np.ravel(np.broadcast_to(lower, shape)),
            np.ravel(np.broadcast_to(upper, shape)),
        )
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
    """One end of ranges as numbers: float64 ndarray like ``end``. Dates and times may be text."""
    if np.ndim(end) > 0 and axis.time is None:
        return np.asarray(end, dtype=float)
    given = np.asarray(end, dtype=object)
    numbers = [axis.scale.coordinate(value, axis.name) for value in given.reshape(-1)]
    return np.array(numbers).reshape(given.shape)
