"""The geometry of a product grid: which box a point falls in, and how much of each box a range covers.

Boxes are unions of lattice cells; the last axis runs fastest, as everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.domain import DROPPED, GridAxis, Lattice
from sfumato.errors import UsageError

BLOCK = 2**22  # numbers held at once while ranges are counted


@dataclass(frozen=True)
class Grid:
    """A product grid on a lattice.

    Attributes
    ----------
    lattice : Lattice
        Of grid axes only.
    edges : tuple of int64 ndarray, one per axis
        Lattice points from 0 to the axis' size, increasing.

    Raises
    ------
    UsageError
        If they are not.
    """

    lattice: Lattice
    edges: tuple[Array, ...]

    def __post_init__(self) -> None:
        sizes = [axis.size for axis in self.lattice.axes]
        whole = len(self.edges) == len(sizes) > 0 and all(
            len(e) > 1 and e[0] == 0 and e[-1] == n and (np.diff(e) > 0).all()
            for e, n in zip(self.edges, sizes, strict=True)
        )
        if not whole:
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
        return tuple(len(edge) - 1 for edge in self.edges)

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        return tuple(axis for axis in self.lattice.axes if isinstance(axis, GridAxis))

    @cached_property
    def positions(self) -> tuple[Array, ...]:
        """Where the edges lie: one float64 ndarray per axis."""
        return tuple(axis.points(edge) for axis, edge in zip(self.axes, self.edges, strict=True))

    def corners(self) -> tuple[Array, Array]:
        """Lower and upper ends of every box: two float64 ndarrays of shape (cells, d)."""
        lower = np.meshgrid(*(at[:-1] for at in self.positions), indexing="ij")
        upper = np.meshgrid(*(at[1:] for at in self.positions), indexing="ij")
        return np.stack([x.reshape(-1) for x in lower], 1), np.stack(
            [x.reshape(-1) for x in upper], 1
        )

    def assign(self, points: Array) -> Array:
        """Box of each point, by the kernel that counted: int64 ndarray of shape (n,), -1 where a coordinate is NaN."""
        box = np.zeros(len(points), np.int64)
        missing = np.zeros(len(points), bool)
        for column, (axis, edge) in enumerate(zip(self.axes, self.edges, strict=True)):
            cell = axis.locate(np.ascontiguousarray(points[:, column], dtype=np.float64))
            missing |= cell == DROPPED
            box = box * (len(edge) - 1) + np.searchsorted(edge, cell, side="right") - 1
        box[missing] = DROPPED
        return box

    def cover(self, axis: int, lower: Array, upper: Array) -> Array:
        """Which share of each slice along an axis every range [lower, upper) covers: float64 ndarray of shape (ranges, slices)."""
        at = self.positions[axis]
        overlap = np.minimum(upper[:, None], at[1:]) - np.maximum(lower[:, None], at[:-1])
        return np.asarray(np.clip(overlap / np.diff(at), 0, 1))

    def sums(
        self, counts: Array, ranges: dict[int, tuple[Array, Array]], number: int
    ) -> tuple[Array, Array]:
        """Add up counts over ranges, cut cells in proportion to the share covered.

        Parameters
        ----------
        counts : ndarray of shape (cells,)
        ranges : dict of axis number -> (lower, upper), float64 ndarrays of shape (number,)
            Axes not named are covered whole.
        number : int

        Returns
        -------
        values, effective : float64 ndarrays of shape (number,)
            The sums, and the sums of the squared shares.
        """
        whole = tuple(i for i in range(len(self.shape)) if i not in ranges)
        table = counts.reshape(self.shape).sum(axis=whole, dtype=float)
        cells_of_whole = float(np.prod([self.shape[i] for i in whole]))
        values, effective = np.empty(number), np.empty(number)
        step = max(
            1, BLOCK // max(table.size // max(table.shape[0] if table.ndim else 1, 1), *self.shape)
        )
        for start in range(0, number, step):
            block = slice(start, start + step)
            shares = [
                self.cover(axis, lower[block], upper[block])
                for axis, (lower, upper) in sorted(ranges.items())
            ]
            values[block] = _contract(table, shares)
            effective[block] = cells_of_whole * np.prod(
                [(share**2).sum(axis=1) for share in shares], axis=0
            )
        return values, effective


def _contract(table: Array, shares: list[Array]) -> Array:
    """Sum table entries weighted by the product of the shares: float64 ndarray of shape (ranges,)."""
    if not shares:
        return np.asarray(table, dtype=float)
    partial = np.tensordot(shares[0], table, axes=(1, 0))
    for share in shares[1:]:
        partial = np.einsum("rk,rk...->r...", share, partial)
    return np.asarray(partial)
