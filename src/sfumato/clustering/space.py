"""The whole numbers in which rows are clustered, and the public map between them and the axes.

Each axis of a lattice is scaled to -1 .. 1 and cut into 2^20 steps a side. A lattice cell stands at
its middle. From there on rows, centres and sums are integers. Where the cells of an axis are its
own steps, the values in a cell are the one that opens it (37 in [37, 38)), so the middle of the
cell is read as that value: the map to the axis is moved by half a step, and the integers are not.

Guarantee: the group of a row is a function of its own lattice cell and of the centres, and of
nothing else.
Holds because: coordinates are integers of size at most 2^20. So every product, partial sum and
difference in ``nearest`` is an integer below 2^53, for up to 2^10 axes. Doubles hold these exactly,
in whatever order a linear-algebra library adds. A rounding that depended on where a row stands in
memory would let one row move another one to a different group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.cube import Cube
from sfumato.domain.domain import finest
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.errors import InternalError

HALF = 2**20
"""Steps on each side of the middle of an axis."""
MOST_AXES = 2**10
BLOCK = 2**18
"""How many distances are held at once, so that they stay in a cache."""


@dataclass(frozen=True)
class Space:
    """Interval axes scaled to whole numbers from -2^20 to 2^20."""

    lattice: Lattice

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the lattice."""
        return self.lattice.grids

    @property
    def d(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @cached_property
    def extent(self) -> Array:
        """How far from the middle a row can lie along each axis: int64 ndarray of shape (d,).

        It is 0 where an axis has one cell.
        """
        extents = [(axis.cells - 1) * HALF // axis.cells for axis in self.axes]
        return np.array(extents, dtype=np.int64)

    def rows(self, cube: Cube) -> tuple[Array, Array]:
        """Where the occupied cells stand, and how many rows each holds.

        Returns
        -------
        points, rows : int64 ndarrays of shapes (cells, d) and (cells,)
            Each axis is contiguous in memory, because steps run over one axis at a time.
        """
        if cube.coordinates is None:
            occupied = np.flatnonzero(cube.counts)
            coordinates = np.unravel_index(occupied, self.lattice.shape)
            counts = cube.counts[occupied]
        else:
            coordinates = tuple(cube.coordinates.T)
            counts = cube.counts
        columns = [
            _middles(axis.cells)[index] for axis, index in zip(self.axes, coordinates, strict=True)
        ]
        return np.stack(columns).T, counts.astype(np.int64, copy=False)

    def whole(self, scaled: Array) -> Array:
        """Round points in [-1, 1]^d to whole numbers where rows can lie: int64 ndarray."""
        rounded = np.clip(np.rint(scaled * HALF), -self.extent, self.extent)
        return np.asarray(rounded.astype(np.int64))

    def scale(self, points: Array) -> Array:
        """Scale points in the axes' own units to [-1, 1]^d, clamped: float64 ndarray; NaN stays."""
        with np.errstate(over="ignore"):
            return self.scale_edges(points + self.shift)

    def scale_edges(self, edges: Array) -> Array:
        """Scale edges of cells to [-1, 1]^d, clamped: float64 ndarray like ``edges``."""
        low, high = self._ends
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((edges - low) / (high - low) * 2 - 1, -1, 1))

    def unscale(self, whole: Array) -> Array:
        """Scale whole numbers back to the axes' own units: float64 ndarray like ``whole``."""
        low, high = self._ends
        return np.asarray(low - self.shift + (whole / HALF + 1) / 2 * (high - low))

    @cached_property
    def widths(self) -> Array:
        """The length of one whole number along each axis, in its own units: float64 (d,)."""
        low, high = self._ends
        return np.asarray((high - low) / 2 / HALF)

    @cached_property
    def shift(self) -> Array:
        """From a value to the middle of its cell: float64 ndarray of shape (d,).

        Half a step where the cells are steps, else 0.
        """
        low, high = self._ends
        cells = np.array([axis.cells for axis in self.axes])
        are_steps = np.array([axis.snap and axis.cells < finest(self.d) for axis in self.axes])
        return np.asarray(np.where(are_steps, (high - low) / 2 / cells, 0.0))

    @cached_property
    def _ends(self) -> tuple[Array, Array]:
        low = np.array([axis.lower for axis in self.axes])
        high = np.array([axis.upper for axis in self.axes])
        return low, high


def _middles(cells: int) -> Array:
    """Where the cells of an axis stand: int64 ndarray of shape (cells,), symmetric about 0."""
    odd = 2 * np.arange(cells, dtype=np.int64) + 1 - cells
    return np.asarray(np.sign(odd) * (np.abs(odd) * HALF // cells))


def nearest(rows: Array, centres: Array) -> Array:
    """The centre that is nearest to each row, the first of equals: int64 ndarray of shape (n,).

    Parameters
    ----------
    rows, centres : int64 ndarrays of shapes (n, d) and (k, d)
        Coordinates have size at most 2^20, and d is at most 2^10: see the top of this file.
    """
    if rows.shape[1] > MOST_AXES:
        raise InternalError("Too many axes for distances that are exact.")
    # |row - centre|^2 is smallest where |centre|^2 - 2 centre . row is.
    towards = -2.0 * centres
    offset = (centres**2).sum(axis=1).astype(float)
    found = np.zeros(len(rows), np.int64)
    step = max(1, BLOCK // len(centres))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        distances = towards @ rows[block].T.astype(float)
        distances += offset[:, None]
        least = distances[0]
        # An argmin over few columns takes several times as long as this loop.
        for i in range(1, len(centres)):
            found[block][distances[i] < least] = i
            np.minimum(least, distances[i], out=least)
    return found
