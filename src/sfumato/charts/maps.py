"""Pictures of partitions: maps shaded by density, and steps with bands along one axis.

Where a count cannot be told from 0, its surroundings are shaded as one; where these cannot either,
nothing is. A map of longitude and latitude has coastlines and a scale bar. Its shades are one small
picture inside the SVG, so that a map of fifty thousand cells stays compact.

*What a map is shaded with*: the densities of the smallest places that can be told from 0.

Where the noise of single cells wins, neighbours are added up: a place is shaded as one unless each
of its parts can be told from 0, or is surely much emptier than the whole. So dense places keep
their cells, and thin ones are shown by what is known of their surroundings.

Of all places over one point, the intervals miss with probability ``ALPHA`` together. So a point in
an empty place is shaded with probability ``ALPHA`` / 2 at most, unless its surroundings are not
empty, and then with their density.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from sfumato.basics import Array, plain
from sfumato.charts import geography, scales, style
from sfumato.charts.geography import Extent
from sfumato.charts.scales import ALPHA, CONFIDENCE, Table, limit_note
from sfumato.charts.vector import INK, MUTED, PAPER, UNKNOWN_HATCH
from sfumato.domain import LatticeAxis
from sfumato.errors import UsageError
from sfumato.privacy import Guarantee
from sfumato.questions.partition.release import Partition, Regions

# --- shades ---------------------------------------------------------------------------------------

MOST_SLOTS = 300  # cells per axis of a regular map; beyond, neighbours are added up
PIXELS = 600  # per axis, of a map of cells of many sizes; twice as many from west to east
REGULAR = 0.1  # share of a cell by which edges may be off and still be drawn as evenly spaced
OF_CELLS = 0.6  # the share of the error probability that goes to the cells of a grid
UNSURE = 0.25
SPARSE = 0.5  # a part that has less than this of the whole's density is much emptier

Corners: TypeAlias = "list[tuple[Array, Array]]"


def raster_of(release: Partition, plane: Plane) -> tuple[Array, bool]:
    """Shade the cells of a partition, or places made of them.

    Returns
    -------
    density : float64 ndarray, rows from low to high
        Of each pixel; NaN where nothing is shown.
    merged : bool
        Whether neighbours were added up first.
    """
    corners = plane.corners
    area = plane.area(corners)
    if len(release.lattice.axes) > 2:
        return _stacked(release, corners, area), False
    on_grid = _grid(release, corners, area)
    if on_grid is not None:
        return on_grid
    regions = release.regions(ALPHA)
    if regions is None:
        seen = np.asarray(release.interval(CONFIDENCE)[0]) > 0
        return _painted(corners, release.counts / area, seen), False
    boxes = list(zip(plane.placed(regions.lower), plane.placed(regions.upper), strict=True))
    density, shown = _of_tree(regions, plane.area(boxes))
    return _painted(boxes, density, shown), False


# --- cells of a tree ------------------------------------------------------------------------------


def _of_tree(regions: Regions, area: Array) -> tuple[Array, Array]:
    """Return the density of every node, and which nodes are shown."""
    density = regions.counts / area
    seen = regions.counts > regions.half
    parent = regions.parent
    is_sparse = (regions.counts + UNSURE * regions.half) / area < SPARSE * density[parent]
    is_clear = seen | is_sparse
    # A place is divided if it has parts, one of them is seen, and all are clear.
    is_divided = np.zeros(len(seen), bool)
    is_divided[parent[1:][seen[1:]]] = True
    # After the line above: one part that is not clear keeps the whole together, whatever is seen.
    is_divided[parent[1:][~is_clear[1:]]] = False
    is_open = np.zeros(len(seen), bool)
    is_open[0] = True
    for first, beyond in regions.levels[1:]:
        above = parent[first:beyond]
        is_open[first:beyond] = is_open[above] & is_divided[above]
    return density, is_open & seen & ~is_divided


# --- cells of a grid ------------------------------------------------------------------------------


def _grid(release: Partition, corners: Corners, areas: Array) -> tuple[Array, bool] | None:
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
    starts = [style.thin(size, MOST_SLOTS) for size in shape]
    merged = any(len(at) < size for at, size in zip(starts, shape, strict=True))
    if merged:
        counts, area, terms = (_add(part, starts) for part in (counts, area, terms))
        half = np.asarray(release.noise.sum_half_width(terms, OF_CELLS * ALPHA))
    shown = _of_grid(release, Level(counts, area, terms, half))
    pixels = (_slots(np.append(edge[at], edge[-1])) for edge, at in zip(edges, starts, strict=True))
    return shown[np.ix_(*pixels)], merged


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


def _of_grid(release: Partition, cells: Level) -> Array:
    """Return the densities of a grid's cells: those of the smallest squares that are clear."""
    levels = [cells]
    longest = max(cells.counts.shape)
    above = max(1, math.ceil(math.log2(longest)))
    for _ in range(above):
        last = levels[-1]
        starts = [np.arange(0, size, 2) for size in last.counts.shape]
        counts, area, terms = (_add(part, starts) for part in (last.counts, last.area, last.terms))
        # The squares of all sizes over a point share what the cells leave of ALPHA.
        alpha = ALPHA * (1 - OF_CELLS) / above
        half = np.asarray(release.noise.sum_half_width(terms, alpha))
        levels.append(Level(counts, area, terms, half))
    is_open = np.ones((1, 1), bool)
    density = np.full((1, 1), np.nan)
    for whole, parts in zip(levels[:0:-1], levels[-2::-1], strict=True):
        is_divided = is_open & _is_divided(whole, parts)
        shown = is_open & ~is_divided & whole.seen
        density = np.where(shown, whole.counts / whole.area, density)
        size = parts.counts.shape
        density = _spread(density, size)
        is_open = _spread(is_divided, size)
    return np.where(is_open, np.where(cells.seen, cells.counts / cells.area, np.nan), density)


def _is_divided(whole: Level, parts: Level) -> Array:
    """Return which squares are shown by their parts: one of these is seen, and all are clear."""
    size = parts.counts.shape
    starts = [np.arange(0, length, 2) for length in size]
    most = (parts.counts + UNSURE * parts.half) / parts.area
    density = whole.counts / whole.area
    is_sparse = most < SPARSE * _spread(density, size)
    unclear = _add((~(parts.seen | is_sparse)).astype(int), starts)
    return np.asarray((_add(parts.seen.astype(int), starts) > 0) & (unclear == 0))


def _spread(table: Array, size: tuple[int, ...]) -> Array:
    """Each field twice along both axes, cut to a size."""
    twice = table.repeat(2, axis=0).repeat(2, axis=1)
    return np.asarray(twice[: size[0], : size[1]])


def _add(part: Array, starts: list[Array]) -> Array:
    return np.asarray(np.add.reduceat(np.add.reduceat(part, starts[0], axis=0), starts[1], axis=1))


def _slots(edges: Array) -> Array:
    """Return which slice each row of pixels shows.

    Slices of equal width get one row each, others as many rows as they are wide.
    """
    even = np.linspace(edges[0], edges[-1], len(edges))
    if np.abs(edges - even).max() <= REGULAR * (even[1] - even[0]):
        return np.arange(len(edges) - 1)
    shares = (np.arange(PIXELS) + 0.5) / PIXELS
    middles = edges[0] + shares * (edges[-1] - edges[0])
    return np.asarray(np.searchsorted(edges[1:-1], middles, side="right"))


# --- boxes on pixels ------------------------------------------------------------------------------


def _painted(corners: Corners, density: Array, shown: Array) -> Array:
    """Paint boxes of any size, the larger ones first."""
    canvas = np.full((PIXELS, 2 * PIXELS), np.nan)
    for (a, b, c, d), shade in zip(
        _on_pixels(corners, shown), density[shown].tolist(), strict=True
    ):
        canvas[c:d, a:b] = shade
    return canvas


def _stacked(release: Partition, corners: Corners, area: Array) -> Array:
    """Add up what lies over each pixel, where boxes lie above each other along further axes."""
    shape = (PIXELS, 2 * PIXELS)
    density, squares, finest = (np.zeros(shape) for _ in range(3))  # of 1 / area over each pixel
    every = np.ones(len(area), bool)
    parts = (release.counts / area).tolist(), (1 / area).tolist()
    for (a, b, c, d), shade, weight in zip(_on_pixels(corners, every), *parts, strict=True):
        box = slice(c, d), slice(a, b)
        density[box] += shade
        squares[box] += weight * weight
        finest[box] = np.maximum(finest[box], weight)
    # In units of the largest weight, the noise is that of a sum of so many counts.
    weights = squares / finest**2
    half = np.asarray(release.noise.sum_half_width(weights, ALPHA))
    return np.where(density > finest * half, density, np.nan)


def _on_pixels(corners: Corners, chosen: Array) -> list[tuple[int, int, int, int]]:
    """From which pixel to which each box reaches to the right, and upwards."""
    ends = []
    for (lower, upper), size in zip(corners, (2 * PIXELS, PIXELS), strict=True):
        start = lower.min()
        width = upper.max() - start
        first, last = (np.round((end - start) / width * size).astype(int) for end in (lower, upper))
        # Each box has at least one pixel, and ends where its neighbour begins: there are no gaps.
        first = np.minimum(first, size - 1)
        last = np.maximum(last, first + 1)
        ends += [first[chosen].tolist(), last[chosen].tolist()]
    return list(zip(*ends, strict=True))


# --- pictures -------------------------------------------------------------------------------------

MOST_STEPS = 400
LOG_FROM = 20.0  # ratio of densities from which the scale is logarithmic
AREAS = (1, 100, 10_000, 1_000_000)  # square kilometres
LARGEST_SHARE = 0.001  # of a map, that such an area takes
DETAIL = 1000  # how many times a map is as wide as what its coastlines leave out
ROUGH = 3.0  # degrees: on a narrower map, one sees that the coastlines are drawn for wider ones


@style.of_release
def draw(release: Partition, ax: Axes | None, axes: Sequence[str] | None = None) -> Axes:
    """Draw a partition: a map of two axes, or steps along one; further axes are added up.

    Parameters
    ----------
    release : Partition
    ax : matplotlib Axes or None
    axes : one or two names, or None
        Which axes to draw, the one that runs right first, by the names of the release or those for
        people. None: longitude and latitude where there are any, else the first two.

    Raises
    ------
    UsageError
        If the release has no such pair of axes.
    """
    people = release.for_people()
    names = people.lattice.names
    if axes is not None:
        for_people = dict(zip(release.axes, names, strict=True))
        axes = [for_people.get(name, name) for name in axes]
    if len(names) == 1 and axes in (None, list(names)):
        return _draw_steps(people, ax)
    if axes is None:
        return draw_map(people, ax, geography.pair_of(names))
    if len(axes) != 2 or len(set(axes)) != 2 or not set(axes) <= set(names):
        raise UsageError(
            f"a picture of {', '.join(map(str, axes))}",
            f"the partition has the axes {', '.join(names)}",
            "Name two of them",
        )
    return draw_map(people, ax, (names.index(axes[0]), names.index(axes[1])))


# --- two axes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """Two axes of a partition as a map: where its cells lie, and how they are measured.

    ``unit`` is the axes' own unit of length, if they share one.
    """

    x: LatticeAxis
    y: LatticeAxis
    pair: tuple[int, int]
    corners: Corners
    extent: Extent
    is_geographic: bool
    unit: str | None

    @classmethod
    def of(cls, release: Partition, pair: tuple[int, int]) -> Plane:
        x, y = (release.lattice.axes[i] for i in pair)
        corners = [
            (axis.scale.positions(release.lower[:, i]), axis.scale.positions(release.upper[:, i]))
            for i, axis in zip(pair, (x, y), strict=True)
        ]
        left, right, bottom, top = (
            float(end) for lower, upper in corners for end in (lower.min(), upper.max())
        )
        extent = (left, right, bottom, top)
        are_coordinates = geography.are_coordinates(x.name, y.name)
        is_geographic = are_coordinates and geography.is_on_earth(extent)
        unit = geography.length_unit(x.name, y.name)
        return cls(x, y, pair, corners, extent, is_geographic, unit)

    @property
    def aspect(self) -> float | None:
        """How much longer a step upwards is drawn than one to the right; None: as it fits."""
        if self.is_geographic:
            # A degree is as long upwards as it is at the map's middle. Towards a pole the cosine
            # goes to 0, and a map would become endlessly high.
            middle = math.radians((self.extent[2] + self.extent[3]) / 2)
            return 1 / max(math.cos(middle), 0.1)
        return 1.0 if self.unit else None

    def area(self, corners: Corners) -> Array:
        """Areas of boxes: in the axes' own units, or square kilometres on a sphere."""
        (x, x_end), (y, y_end) = corners
        if self.is_geographic:
            return geography.square_kilometres(x, x_end, y, y_end)
        return np.asarray((x_end - x) * (y_end - y))

    def placed(self, ends: Array) -> list[Array]:
        """Ends of boxes as positions along the two axes."""
        axes = zip(self.pair, (self.x, self.y), strict=True)
        return [axis.scale.positions(ends[:, column]) for column, axis in axes]


def draw_map(release: Partition, ax: Axes | None, pair: tuple[int, int]) -> Axes:
    """Draw the axes with these two places: the one that runs right, and the one that runs up."""
    plane = Plane.of(release, pair)
    density, merged = raster_of(release, plane)
    ax = style.axes_on(ax, _height(plane.extent, plane.aspect))
    keys = _shade(ax, density, plane, release.guarantee)
    ax.set_aspect(plane.aspect or "auto")
    for which, axis in ((ax.xaxis, plane.x), (ax.yaxis, plane.y)):
        scales.value_axis(which, axis)
    if plane.is_geographic:
        _draw_coast(ax, plane.extent)
    if plane.aspect is not None:
        _draw_bar(ax, plane)
    style.legend(ax, keys, _map_note(release, plane, merged), columns=1)
    style.mark_map(ax, plane.extent)
    return ax


def _draw_coast(ax: Axes, extent: Extent) -> None:
    """Draw coastlines, fine enough to be enlarged a few times."""
    width = extent[1] - extent[0]
    lines = geography.coastlines(extent, width / DETAIL)
    if not lines:
        return
    path = Path.make_compound_path(*(Path(line) for line in lines))
    # Simplified lines would lose what an enlarged map shows.
    path.should_simplify = False
    ax.add_patch(
        PathPatch(path, fill=False, edgecolor=MUTED, linewidth=0.4, gid="coast", zorder=1.6)
    )
    left, right, bottom, top = extent
    ax.set(xlim=(left, right), ylim=(bottom, top))


def _draw_bar(ax: Axes, plane: Plane) -> None:
    left, right, _, _ = plane.extent
    bar = geography.scale_bar(plane.extent, plane.unit)
    end = 0.02 + bar.span / (right - left)
    heights = [0.05, 0.03, 0.03, 0.05]
    # In shares of the panel: in degrees, it would widen the map.
    (line,) = ax.plot([0.02, 0.02, end, end], heights, color=INK, transform=ax.transAxes)
    line.set(linewidth=1.2, zorder=3, gid=f"scale-bar:{plane.unit or 'degrees'}", clip_on=False)
    line.set_path_effects([withStroke(linewidth=4, foreground=PAPER)])
    text = ax.text(0.02, 0.055, bar.text, transform=ax.transAxes, va="bottom", fontsize=8.2)
    text.set(zorder=3, gid="scale-text", parse_math=False)
    text.set_bbox({"facecolor": PAPER, "edgecolor": "none", "pad": 1.5, "alpha": 0.8})


def ground_key(ax: Axes) -> Patch:
    """The legend entry of places without a shade. On a map of the earth they are left as they are.

    There is much sea on most maps, and hatching all of it would be louder than what was found.
    """
    if ax.patch.get_hatch():
        return style.hatched_key()
    return Patch(
        facecolor=PAPER,
        edgecolor=UNKNOWN_HATCH,
        linewidth=0.8,
        label="no shade: not distinguishable from 0 (95%)",
    )


def _height(extent: Extent, aspect: float | None) -> int:
    """Return how many pixels tall a figure the map needs."""
    width = style.width_of(None)
    room = width - (70 if width < 500 else 150)
    left, right, bottom, top = extent
    tall = room * aspect * (top - bottom) / (right - left) if aspect else room * 0.75
    return int(np.clip(tall + (230 if width < 500 else 106), 240, 900))


def _shade(ax: Axes, density: Array, plane: Plane, guarantee: Guarantee) -> list[Artist]:
    shown = np.where(density > 0, density, np.nan)
    if not plane.is_geographic:
        style.unseen(ax)
    unit = "rows per " + " × ".join(scales.step_name(axis, 20) for axis in (plane.x, plane.y))
    if plane.is_geographic:
        # Rows are counted in an area that depends on the place alone, so that maps of it agree.
        left, right, bottom, top = (np.array([end]) for end in plane.extent)
        (whole,) = plane.area([(left, right), (bottom, top)])
        size = max((size for size in AREAS if size <= LARGEST_SHARE * whole), default=AREAS[0])
        shown = shown * size
        unit = f"rows per {size:,} km²" if size > 1 else "rows per km²"
    image = ax.imshow(
        shown,
        cmap=style.density_map(),
        norm=_norm(shown),
        extent=plane.extent,
        origin="lower",
        interpolation="none",
        aspect="auto",
        zorder=1,
    )
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.RULE)
    return scales.shade_keys(ax, image, unit, ground_key(ax), guarantee)


def _norm(shown: Array) -> Normalize:
    """Return a logarithmic scale where densities differ much, else an even one from 0."""
    seen = shown[~np.isnan(shown)]
    if not len(seen):
        return Normalize(0, 1)
    low = float(seen.min())
    high = float(seen.max())
    return LogNorm(low, high) if high > LOG_FROM * low else Normalize(0, high)


def _map_note(release: Partition, plane: Plane, merged: bool) -> str:
    names = release.lattice.names
    rest = [plain(name) for i, name in enumerate(names) if i not in plane.pair]
    notes = [f"Added up over {', '.join(rest)}."] if rest else []
    notes.append(limit_note(release.guarantee))
    notes += ["Neighbouring cells are drawn as their mean."] if merged else []
    if not rest:
        notes.append(
            "A place is shaded with its surroundings where its own count is lost in noise."
        )
    notes.append("Of empty places, at most 1 in 40 on average is shaded.")
    if plane.is_geographic and plane.extent[1] - plane.extent[0] < ROUGH:
        notes.append("Coastlines are rough at this scale.")
    return " ".join(note for note in notes if note)


# --- one axis -------------------------------------------------------------------------------------


def _steps_of(release: Partition) -> tuple[Array, Table, bool]:
    """Return the edges and counts of a release with one axis, and whether all cells are as long.

    Where there are many cells, counts are those of neighbours together. They are means over cells,
    or rows per length of the axis where cells are not as long as each other.
    """
    scale = release.lattice.axes[0].scale
    lower = scale.positions(release.lower[:, 0])
    upper = scale.positions(release.upper[:, 0])
    order = np.argsort(lower, kind="stable")
    edges = np.append(lower[order], upper.max())
    reach = release.accuracy(CONFIDENCE, False)
    reach_all = release.accuracy(CONFIDENCE, True)
    counts, half, half_all = (
        np.asarray(part, dtype=float)[order] for part in (release.counts, reach, reach_all)
    )
    lengths = np.diff(edges)
    is_even = bool(np.ptp(lengths) <= REGULAR * lengths.max())
    starts = style.thin(len(counts), MOST_STEPS)
    n_cells = np.diff(starts, append=len(counts)).astype(float)
    if len(starts) < len(counts):
        edges = np.append(edges[starts], edges[-1])
        counts = np.add.reduceat(counts, starts)
        half = np.asarray(release.noise.sum_half_width(n_cells, ALPHA))
        half_all = np.add.reduceat(half_all, starts)
    divisors = n_cells if is_even else np.diff(edges)
    table = Table(counts / divisors, half / divisors, half_all / divisors, n_cells)
    return edges, table, is_even


def _draw_steps(release: Partition, ax: Axes | None) -> Axes:
    """Draw counts of equal cells, or densities of unequal ones, with both intervals as bands."""
    axis = release.lattice.axes[0]
    edges, table, is_even = _steps_of(release)
    beyond = scales.BEYOND.replace("bins", "cells")
    note = f"{beyond} {limit_note(release.guarantee)}".strip()
    n_cells = len(release.counts)
    if len(table.values) < n_cells:
        neighbours = -(-n_cells // MOST_STEPS)
        note = f"{n_cells:,} cells, drawn as means of {neighbours} neighbours. {note}"
    room = style.room_for(note, ax)
    ax = style.axes_on(ax, 380 + room, 300 + room)
    style.steps(ax, edges, table.values, half=table.half, half_all=table.half_all)
    style.stand_on_zero(ax, edges, "count" if is_even else f"rows per {scales.step_name(axis, 20)}")
    scales.value_axis(ax.xaxis, axis)
    style.count_axis(ax.yaxis)
    keys = style.interval_keys(len(table.values), True)
    if release.guarantee.unit.limits_kept:
        marked = np.unique(style.cut_places(len(table.values)))
        middle = (edges[:-1] + edges[1:]) / 2
        style.mark_cut(ax, middle[marked], table.high_all[marked])
        keys = [*keys, style.cut_key()]
    style.legend(ax, keys, note)
    return ax
