"""What a map is shaded with: densities of the smallest places that can be told from 0.

Where the noise of single cells wins, neighbours are added up: a place is shaded as one unless each
of its parts can be told from 0, or is surely much emptier than the whole. So dense places keep
their cells, and thin ones are shown by what is known of their surroundings.

Of all places over one point, the intervals miss with probability ``ALPHA`` together. So a point in
an empty place is shaded with probability ``ALPHA`` / 2 at most, unless its surroundings are not
empty, and then with their density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.charts.reduce import ALPHA, CONFIDENCE, Boxes, Regions, runs

MOST_SLOTS = 300  # cells per axis of a regular map; beyond, neighbours are added up
PIXELS = 600  # per axis, of a map of cells of many sizes; twice as many from west to east
REGULAR = 0.1  # share of a cell by which edges may be off and still be drawn as evenly spaced
OF_CELLS = 0.6  # the share of the error probability that goes to the cells of a grid
UNSURE = 0.25
SPARSE = 0.5  # a part that has less than this of the whole's density is much emptier

Corners: TypeAlias = "list[tuple[Array, Array]]"
Area: TypeAlias = Callable[[Corners], Array]
Placed: TypeAlias = Callable[[Array], "list[Array]"]


@dataclass(frozen=True)
class Raster:
    """The density of each pixel, rows from low to high: an ndarray; NaN where nothing is shown."""

    density: Array
    merged: bool = False


def raster_of(release: Boxes, corners: Corners, area: Area, placed: Placed) -> Raster:
    """Shade the cells of a partition, or places made of them.

    Parameters
    ----------
    release : Boxes
    corners : two pairs of float64 ndarrays of shape (cells,)
        Ends of the cells along the axis that runs right and the one that runs up, as positions.
    area : callable
        The areas of boxes with such corners.
    placed : callable
        Turns ends of boxes, of shape (boxes, d), into positions along these two axes.
    """
    if len(release.lattice.axes) > 2:
        return _stacked(release, corners, area(corners))
    on_grid = _grid(release, corners, area(corners))
    if on_grid is not None:
        return on_grid
    regions = release.regions(ALPHA)
    if regions is None:
        seen = np.asarray(release.interval(CONFIDENCE)[0]) > 0
        return _painted(corners, release.counts / area(corners), seen)
    lower, upper = placed(regions.lower), placed(regions.upper)
    boxes = list(zip(lower, upper, strict=True))
    density, shown = _of_tree(regions, area(boxes))
    return _painted(boxes, density, shown)


# --- cells of a tree ------------------------------------------------------------------------------


def _of_tree(regions: Regions, area: Array) -> tuple[Array, Array]:
    """The density of every node, and which nodes are shown."""
    density = regions.counts / area
    seen = regions.counts > regions.half
    parent = regions.parent
    is_sparse = (regions.counts + UNSURE * regions.half) / area < SPARSE * density[parent]
    is_clear = seen | is_sparse
    # A place is divided if it has parts, one of them is seen, and all are clear.
    is_divided = np.zeros(len(seen), bool)
    is_divided[parent[1:][seen[1:]]] = True
    is_divided[parent[1:][~is_clear[1:]]] = False
    is_open = np.zeros(len(seen), bool)
    is_open[0] = True
    for first, beyond in regions.levels[1:]:
        above = parent[first:beyond]
        is_open[first:beyond] = is_open[above] & is_divided[above]
    return density, is_open & seen & ~is_divided


# --- cells of a grid ------------------------------------------------------------------------------


def _grid(release: Boxes, corners: Corners, areas: Array) -> Raster | None:
    """Shade cells that are a product of edges; None where they are not.

    Places are squares of 1, 4, 16, ... cells. Where there are very many cells, neighbours are added
    up first.
    """
    (x, x_end), (y, y_end) = corners
    edges = [np.append(np.unique(y), y_end.max()), np.append(np.unique(x), x_end.max())]
    shape = tuple(len(edge) - 1 for edge in edges)
    if math.prod(shape) != len(x):
        return None
    order = np.lexsort((x, y))
    counts, area, half = (
        np.asarray(part, float)[order].reshape(shape)
        for part in (release.counts, areas, release.accuracy(1 - OF_CELLS * ALPHA))
    )
    terms = np.ones(shape)
    starts = [runs(size, MOST_SLOTS) for size in shape]
    merged = any(len(at) < size for at, size in zip(starts, shape, strict=True))
    if merged:
        counts, area, terms = (_add(part, starts) for part in (counts, area, terms))
        half = _half(release, terms, OF_CELLS * ALPHA)
    shown = _of_grid(release, Level(counts, area, terms, half))
    where = np.ix_(
        *(_slots(np.append(edge[at], edge[-1])) for edge, at in zip(edges, starts, strict=True))
    )
    return Raster(shown[where], merged)


@dataclass(frozen=True)
class Level:
    """Squares of one size: counts, areas, numbers of cells and half-widths, as tables."""

    counts: Array
    area: Array
    terms: Array
    half: Array

    @property
    def seen(self) -> Array:
        return np.asarray(self.counts > self.half)


def _of_grid(release: Boxes, cells: Level) -> Array:
    """The densities of a grid's cells: those of the smallest squares that are clear."""
    levels = [cells]
    above = max(1, math.ceil(math.log2(max(cells.counts.shape))))
    for _ in range(above):
        last = levels[-1]
        starts = [np.arange(0, size, 2) for size in last.counts.shape]
        counts, area, terms = (_add(part, starts) for part in (last.counts, last.area, last.terms))
        half = _half(release, terms, ALPHA * (1 - OF_CELLS) / above)
        levels.append(Level(counts, area, terms, half))
    is_open = np.ones((1, 1), bool)
    density = np.full((1, 1), np.nan)
    for whole, parts in zip(levels[:0:-1], levels[-2::-1], strict=True):
        is_divided = is_open & _is_divided(whole, parts)
        shown = is_open & ~is_divided & whole.seen
        density = np.where(shown, whole.counts / whole.area, density)
        size = parts.counts.shape
        density, is_open = _spread(density, size), _spread(is_divided, size)
    return np.where(is_open, np.where(cells.seen, cells.counts / cells.area, np.nan), density)


def _is_divided(whole: Level, parts: Level) -> Array:
    """Which squares are shown by their parts: one of these is seen, and all are clear."""
    size = parts.counts.shape
    starts = [np.arange(0, each, 2) for each in size]
    most = (parts.counts + UNSURE * parts.half) / parts.area
    is_sparse = most < SPARSE * _spread(whole.counts / whole.area, size)
    unclear = _add((~(parts.seen | is_sparse)).astype(int), starts)
    return np.asarray((_add(parts.seen.astype(int), starts) > 0) & (unclear == 0))


def _spread(table: Array, size: tuple[int, ...]) -> Array:
    """Each field twice along both axes, cut to a size."""
    twice = table.repeat(2, axis=0).repeat(2, axis=1)
    return np.asarray(twice[: size[0], : size[1]])


def _add(part: Array, starts: list[Array]) -> Array:
    return np.asarray(np.add.reduceat(np.add.reduceat(part, starts[0], axis=0), starts[1], axis=1))


def _slots(edges: Array) -> Array:
    """Which slice each row of pixels shows.

    Slices of equal width get one row each, others as many rows as they are wide.
    """
    even = np.linspace(edges[0], edges[-1], len(edges))
    if np.abs(edges - even).max() <= REGULAR * (even[1] - even[0]):
        return np.arange(len(edges) - 1)
    middles = edges[0] + (np.arange(PIXELS) + 0.5) / PIXELS * (edges[-1] - edges[0])
    return np.asarray(np.searchsorted(edges[1:-1], middles, side="right"))


# --- boxes on pixels ------------------------------------------------------------------------------


def _painted(corners: Corners, density: Array, shown: Array) -> Raster:
    """Paint boxes of any size, the larger ones first."""
    canvas = np.full((PIXELS, 2 * PIXELS), np.nan)
    for (a, b, c, d), each in zip(_on_pixels(corners, shown), density[shown].tolist(), strict=True):
        canvas[c:d, a:b] = each
    return Raster(canvas)


def _stacked(release: Boxes, corners: Corners, area: Array) -> Raster:
    """Add up what lies over each pixel, where boxes lie above each other along further axes."""
    shape = (PIXELS, 2 * PIXELS)
    density, squares, finest = (np.zeros(shape) for _ in range(3))  # of 1 / area over each pixel
    every = np.ones(len(area), bool)
    parts = (release.counts / area).tolist(), (1 / area).tolist()
    for (a, b, c, d), each, weight in zip(_on_pixels(corners, every), *parts, strict=True):
        box = slice(c, d), slice(a, b)
        density[box] += each
        squares[box] += weight * weight
        finest[box] = np.maximum(finest[box], weight)
    seen = density > finest * _half(release, squares / finest**2, ALPHA)
    return Raster(np.where(seen, density, np.nan))


def _on_pixels(corners: Corners, chosen: Array) -> list[tuple[int, int, int, int]]:
    """From which pixel to which each box reaches to the right, and upwards."""
    (left, right), (bottom, top) = (
        _pixels(lower, upper, size)
        for (lower, upper), size in zip(corners, (2 * PIXELS, PIXELS), strict=True)
    )
    ends = [end[chosen].tolist() for end in (left, right, bottom, top)]
    return list(zip(*ends, strict=True))


def _pixels(lower: Array, upper: Array, size: int) -> tuple[Array, Array]:
    """From which pixel to which each box reaches along an axis: at least one, and without gaps."""
    start = lower.min()
    width = upper.max() - lower.min()
    first, last = (np.round((end - start) / width * size).astype(int) for end in (lower, upper))
    first = np.minimum(first, size - 1)
    return first, np.maximum(last, first + 1)


def _half(release: Boxes, effective: Array, alpha: float) -> Array:
    """Half-widths of weighted sums of counts, by the widest law of their noise.

    ``effective`` holds the sums of the squared weights.
    """
    return np.asarray(release.noise.sum_half_width(effective, alpha))
