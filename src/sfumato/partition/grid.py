"""The geometry of a product grid: the box of a point, and what a range covers of each box.

Boxes are unions of lattice cells. The last axis runs fastest, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import DROPPED, GridAxis, Lattice
from sfumato.errors import UsageError

BLOCK = 2**22
"""How many numbers are held at once while ranges are counted."""


@dataclass(frozen=True)
class Grid:
    """A product grid on a lattice.

    Attributes
    ----------
    lattice : Lattice
        It has grid axes only.
    edges : tuple of int64 ndarray, one per axis
        Lattice points, increasing from 0 to the size of the axis.

    Raises
    ------
    UsageError
        If the edges are not such points.
    """

    lattice: Lattice
    edges: tuple[Array, ...]

    def __post_init__(self) -> None:
        sizes = [axis.size for axis in self.lattice.axes]
        n_axes_fit = len(self.edges) == len(sizes) > 0
        if not n_axes_fit or not all(map(_covers, self.edges, sizes)):
            raise UsageError(
                "a partition",
                "its edges do not cover the domain once",
                "Load a file that release.save wrote",
            )

    @property
    def cells(self) -> int:
        """How many boxes there are."""
        return math.prod(self.shape)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of boxes along each axis."""
        return tuple(len(edge) - 1 for edge in self.edges)

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the lattice."""
        return self.lattice.grids

    @cached_property
    def positions(self) -> tuple[Array, ...]:
        """Where the edges lie: one float64 ndarray per axis."""
        return tuple(axis.points(edge) for axis, edge in zip(self.axes, self.edges, strict=True))

    def corners(self) -> tuple[Array, Array]:
        """Lower and upper ends of every box: two float64 ndarrays of shape (cells, d)."""
        lower = np.meshgrid(*(at[:-1] for at in self.positions), indexing="ij")
        upper = np.meshgrid(*(at[1:] for at in self.positions), indexing="ij")
        return _points(lower), _points(upper)

    def assign(self, points: Array) -> Array:
        """The box of each point: int64 ndarray of shape (n,), -1 where a coordinate is NaN.

        Points are located by the same kernel that counted the rows.
        """
        box = np.zeros(len(points), np.int64)
        missing = np.zeros(len(points), bool)
        for column, (axis, edge) in enumerate(zip(self.axes, self.edges, strict=True)):
            cell = axis.locate(np.ascontiguousarray(points[:, column], dtype=np.float64))
            missing |= cell == DROPPED
            box = box * (len(edge) - 1) + np.searchsorted(edge, cell, side="right") - 1
        box[missing] = DROPPED
        return box

    def cover(self, axis: int, lower: Array, upper: Array) -> Array:
        """The share of each slice along an axis that every range [lower, upper) covers.

        Returns
        -------
        float64 ndarray of shape (ranges, slices).
        """
        at = self.positions[axis]
        overlap = np.minimum(upper[:, None], at[1:]) - np.maximum(lower[:, None], at[:-1])
        return np.asarray(np.clip(overlap / np.diff(at), 0, 1))

    def sums(
        self, counts: Array, ranges: dict[int, tuple[Array, Array]], number: int
    ) -> tuple[Array, Array]:
        """Add up counts over ranges. Cut cells count in proportion to the covered share.

        Parameters
        ----------
        counts : ndarray of shape (cells,)
        ranges : dict of axis number -> (lower, upper), float64 ndarrays of shape (number,)
            Axes that are not named are covered whole.
        number : int

        Returns
        -------
        values, effective : float64 ndarrays of shape (number,)
            The sums, and the sums of the squared shares.
        """
        whole = tuple(axis for axis in range(len(self.shape)) if axis not in ranges)
        table = counts.reshape(self.shape).sum(axis=whole, dtype=float)
        cells_of_whole = float(np.prod([self.shape[axis] for axis in whole]))
        values = np.empty(number)
        effective = np.empty(number)
        step = self._ranges_at_once(table)
        for start in range(0, number, step):
            block = slice(start, start + step)
            shares = [
                self.cover(axis, lower[block], upper[block])
                for axis, (lower, upper) in sorted(ranges.items())
            ]
            squares = [(share**2).sum(axis=1) for share in shares]
            values[block] = _contract(table, shares)
            effective[block] = cells_of_whole * np.prod(squares, axis=0)
        return values, effective

    def _ranges_at_once(self, table: Array) -> int:
        """How many ranges are summed at once: their partial sums stay within ``BLOCK``."""
        first = max(table.shape[0] if table.ndim else 1, 1)
        return max(1, BLOCK // max(table.size // first, *self.shape))


def _covers(edges: Array, size: int) -> bool:
    """Whether edges rise from 0 to the size of their axis."""
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != size:
        return False
    return bool((np.diff(edges) > 0).all())


def _points(coordinates: Sequence[Array]) -> Array:
    """A mesh of coordinates as points: ndarray of shape (n, d)."""
    return np.stack([each.reshape(-1) for each in coordinates], axis=1)


def _contract(table: Array, shares: list[Array]) -> Array:
    """Sum table entries weighted by the product of the shares: float64 ndarray (ranges,)."""
    if not shares:
        return np.asarray(table, dtype=float)
    partial = np.tensordot(shares[0], table, axes=(1, 0))
    for share in shares[1:]:
        partial = np.einsum("rk,rk...->r...", share, partial)
    return np.asarray(partial)
