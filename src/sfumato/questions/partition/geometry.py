"""The geometry of product grids and of trees of splits: their boxes, and the box of a point.

*A grid* (``Grid``) also knows what a range covers of each box.

Boxes are unions of lattice cells. The last axis runs fastest, as everywhere.

*A tree* (``Tree``).

Every tree is kept as a tree of two-way splits along one axis, in breadth-first order. A split into
more parts is a few two-way splits; the nodes between carry no count. The children of the k-th node
that is split are the nodes 2k + 1 and 2k + 2.

Last come the functions that read and check what users ask of a partition: points, cells and ranges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.domain import DROPPED, GridAxis, Lattice
from sfumato.errors import UsageError, nearest, not_saved

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# --- grids ----------------------------------------------------------------------------------------

# How many numbers are held at once while ranges are counted.
BLOCK = 2**22


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
            raise not_saved("a partition", "its edges do not cover the domain once")

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
        """Return lower and upper ends of every box: two float64 ndarrays of shape (cells, d)."""
        lower = np.meshgrid(*(at[:-1] for at in self.positions), indexing="ij")
        upper = np.meshgrid(*(at[1:] for at in self.positions), indexing="ij")
        return _points(lower), _points(upper)

    def assign(self, points: Array) -> Array:
        """Return the box of each point: int64 ndarray of shape (n,), -1 where a coordinate is NaN.

        Points are located by the same kernel that counted the rows.
        """
        box = np.zeros(len(points), np.int64)
        missing = np.zeros(len(points), bool)
        for column, (axis, edge) in enumerate(zip(self.axes, self.edges, strict=True)):
            # The kernel that counted the rows: a point is never in another box than its row was.
            cell = axis.locate(np.ascontiguousarray(points[:, column], dtype=np.float64))
            missing |= cell == DROPPED
            slices = np.searchsorted(edge, cell, side="right") - 1
            box = box * (len(edge) - 1) + slices
        box[missing] = DROPPED
        return box

    def cover(self, axis: int, lower: Array, upper: Array) -> Array:
        """Return the share of each slice along an axis that every range [lower, upper) covers.

        Returns
        -------
        float64 ndarray of shape (ranges, slices).
        """
        at = self.positions[axis]
        overlap = np.minimum(upper[:, None], at[1:]) - np.maximum(lower[:, None], at[:-1])
        return np.clip(overlap / np.diff(at), 0, 1)

    def snapped(
        self, ranges: dict[int, tuple[Array, Array]], *, inwards: bool
    ) -> dict[int, tuple[Array, Array]]:
        """Return the ranges of all slices that each range covers whole, or that it touches."""
        snapped = {}
        for axis, (lower, upper) in ranges.items():
            at = self.positions[axis]
            # Ends beyond the domain snap to its own.
            low = np.clip(lower, at[0], at[-1])
            high = np.clip(upper, at[0], at[-1])
            at_or_above = at[np.searchsorted(at, low if inwards else high)]
            at_or_below = at[np.searchsorted(at, high if inwards else low, side="right") - 1]
            pair = (at_or_above, at_or_below) if inwards else (at_or_below, at_or_above)
            is_empty = low >= high
            snapped[axis] = (np.where(is_empty, low, pair[0]), np.where(is_empty, low, pair[1]))
        return snapped

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
        # Partial sums stay within ``BLOCK``.
        first = max(table.shape[0] if table.ndim else 1, 1)
        step = max(1, BLOCK // max(table.size // first, *self.shape))
        for start in range(0, number, step):
            block = slice(start, start + step)
            shares = [
                self.cover(axis, lower[block], upper[block])
                for axis, (lower, upper) in sorted(ranges.items())
            ]
            squares = [(share**2).sum(axis=1) for share in shares]
            partial = np.tensordot(shares[0], table, axes=(1, 0)) if shares else table
            for share in shares[1:]:
                partial = np.einsum("rk,rk...->r...", share, partial)
            values[block] = partial
            effective[block] = cells_of_whole * np.prod(squares, axis=0)
        return values, effective


def _covers(edges: Array, size: int) -> bool:
    """Whether edges rise from 0 to the size of their axis."""
    return bool(
        len(edges) >= 2 and edges[0] == 0 and edges[-1] == size and (np.diff(edges) > 0).all()
    )


def _points(coordinates: Sequence[Array]) -> Array:
    """Return a mesh of coordinates as points: ndarray of shape (n, d)."""
    return np.stack([coordinate.reshape(-1) for coordinate in coordinates], axis=1)


# --- trees ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """Boxes that result from splitting the whole lattice again and again.

    Attributes
    ----------
    lattice : Lattice
        It has grid axes only.
    axis : int64 ndarray of shape (nodes,)
        The axis along which a node is split; -1 for a leaf.
    cut : int64 ndarray of shape (nodes,)
        The lattice point at which it is split; 0 for a leaf.

    Raises
    ------
    UsageError
        If the arrays describe no tree, or a cut lies outside its node.
    """

    lattice: Lattice
    axis: Array
    cut: Array

    def __post_init__(self) -> None:
        # A file may hold anything. Levels and boxes are computed only from arrays of the right
        # form.
        if not self._is_well_formed() or not self._splits_boxes():
            raise not_saved("a partition", "its splits do not cover the domain once")

    def _is_well_formed(self) -> bool:
        if not self.axis.ndim == self.cut.ndim == 1:
            return False
        # A tree of two-way splits has one leaf more than it has splits.
        n_splits = int((self.axis >= 0).sum())
        if not len(self.axis) == len(self.cut) == 2 * n_splits + 1:
            return False
        return bool(self.axis.min() >= -1 and self.axis.max() < len(self.lattice.axes))

    def _splits_boxes(self) -> bool:
        """Whether all nodes belong to the tree, and each cut lies strictly inside its node."""
        if sum(stop - start for start, stop in self.levels) != len(self.axis):
            return False
        lower, upper = self.boxes
        axis = self.axis[self.inner]
        cut = self.cut[self.inner]
        above_lower = lower[self.inner, axis] < cut
        return bool((above_lower & (cut < upper[self.inner, axis])).all())

    @property
    def cells(self) -> int:
        """How many boxes there are."""
        return len(self.leaves)

    @cached_property
    def inner(self) -> Array:
        """Nodes that are split: int64 ndarray."""
        return np.flatnonzero(self.axis >= 0)

    @cached_property
    def leaves(self) -> Array:
        """Nodes that are cells: int64 ndarray of shape (cells,)."""
        return np.flatnonzero(self.axis < 0)

    @cached_property
    def child(self) -> Array:
        """The lower child of each node; the upper one comes next: int64 ndarray (nodes,).

        For a leaf the number means nothing.
        """
        return 2 * np.cumsum(self.axis >= 0) - 1

    @cached_property
    def parent(self) -> Array:
        """The parent of each node: int64 ndarray of shape (nodes,); the root's is 0."""
        return np.concatenate([[0], np.repeat(self.inner, 2)])

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """First node of each level, and the first node beyond it."""
        levels = []
        start = 0
        stop = 1
        while start < stop <= len(self.axis):
            levels.append((start, stop))
            is_split = self.axis[start:stop] >= 0
            n_children = 2 * int(is_split.sum())
            start = stop
            stop = stop + n_children
        return levels

    @cached_property
    def boxes(self) -> tuple[Array, Array]:
        """Lower and upper lattice points of every node: two int64 ndarrays of shape (nodes, d)."""
        shape = (len(self.axis), len(self.lattice.axes))
        lower = np.zeros(shape, np.int64)
        upper = np.full(shape, self.lattice.shape, np.int64)
        for nodes in self.down():
            left = self.child[nodes]
            # Both children begin as their parent, and the cut moves one end of each.
            for child in (left, left + 1):
                lower[child] = lower[nodes]
                upper[child] = upper[nodes]
            upper[left, self.axis[nodes]] = self.cut[nodes]
            lower[left + 1, self.axis[nodes]] = self.cut[nodes]
        return lower, upper

    @cached_property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes of the lattice."""
        return self.lattice.grids

    def corners(self) -> tuple[Array, Array]:
        """Return lower and upper ends of every cell: two float64 ndarrays of shape (cells, d)."""
        lower, upper = self.boxes
        return self._positions(lower[self.leaves]), self._positions(upper[self.leaves])

    def node_corners(self) -> tuple[Array, Array]:
        """Return lower and upper ends of every node: two float64 ndarrays of shape (nodes, d)."""
        lower, upper = self.boxes
        return self._positions(lower), self._positions(upper)

    def _positions(self, points: Array) -> Array:
        """Lattice points in the axes' own units: float64 ndarray like ``points``, (n, d)."""
        positions = np.empty(points.shape)
        for i, axis in enumerate(self.axes):
            # Many boxes share an edge, so each distinct point is converted once.
            distinct, which = np.unique(points[:, i], return_inverse=True)
            positions[:, i] = axis.points(distinct)[which]
        return positions

    def assign(self, points: Array) -> Array:
        """Return the cell of each point: int64 ndarray of shape (n,), -1 where a coordinate is NaN.

        Points are located by the same kernel that counted the rows.
        """
        columns = [np.ascontiguousarray(column, dtype=np.float64) for column in points.T]
        located = [axis.locate(column) for axis, column in zip(self.axes, columns, strict=True)]
        lattice_cell = np.stack(located, axis=1)
        node = np.zeros(len(points), np.int64)
        moving = np.arange(len(points))
        for _ in self.levels[1:]:
            moving = moving[self.axis[node[moving]] >= 0]
            here = node[moving]
            is_upper = lattice_cell[moving, self.axis[here]] >= self.cut[here]
            node[moving] = self.child[here] + is_upper
        cell = np.searchsorted(self.leaves, node)
        cell[(lattice_cell == DROPPED).any(axis=1)] = DROPPED
        return cell

    def down(self) -> Iterator[Array]:
        """Yield the split nodes of each level, from the root on."""
        for start, stop in self.levels:
            yield start + np.flatnonzero(self.axis[start:stop] >= 0)

    def up(self) -> Iterator[Array]:
        """Yield the split nodes of each level, from the deepest on."""
        yield from reversed(list(self.down()))


# --- points, cells and ranges ---------------------------------------------------------------------

# Lower and upper ends: numbers, dates, or arrays of them.
Range: TypeAlias = "tuple[ArrayLike, ArrayLike] | list[ArrayLike]"


def read_points(
    points: ArrayLike, names: Sequence[str], owner: str = "this partition has"
) -> Array:
    """Return points as a float64 ndarray of shape (n, d)."""
    try:
        array = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise UsageError(
            f"points of shape {array.shape}",
            f"{owner} the axes {', '.join(names)}",
            f"Give an array of shape (n, {len(names)})",
        )
    return array


def read_cells(cells: ArrayLike, number: int) -> Array:
    """Return indices of cells, each once: int64 ndarray."""
    indices = np.unique(np.asarray(cells))
    if indices.size and (indices.dtype.kind not in "iu" or indices[0] < 0 or indices[-1] >= number):
        raise UsageError(
            "indices of cells",
            f"they are not whole numbers from 0 to {number - 1:,}",
            "Give indices as assign returns them",
        )
    return indices.astype(np.int64)


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
