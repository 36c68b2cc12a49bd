"""Pictures of partitions: maps shaded by density, and steps with bands along one axis.

Where the 95% interval of a count reaches 0, nothing is shown to be there: such cells are hatched,
not shaded. The cells are one small picture inside the SVG, so that a map of fifty thousand of them
stays compact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sfumato.arrays import Array
from sfumato.charts import scales, style
from sfumato.charts.reduce import ALPHA, CONFIDENCE, Boxes, limit_note, runs
from sfumato.errors import UsageError
from sfumato.lattice import LatticeAxis

MOST_SLOTS = 300  # cells per axis of a regular map; beyond, neighbours are added up
PIXELS = 600  # per axis, of a map of cells of many sizes
MOST_STEPS = 400
REGULAR = 0.1  # share of a cell by which edges may be off and still be drawn as evenly spaced
LOG_FROM = 20.0  # ratio of densities from which the scale is logarithmic
KM_PER_DEGREE = 111.195
LONGITUDE = ("lon", "lng", "long", "longitude")
LATITUDE = ("lat", "latitude")

Extent: TypeAlias = "tuple[float, float, float, float]"
Corners: TypeAlias = "list[tuple[Array, Array]]"


def draw(release: Boxes, ax: Axes | None = None, axes: Sequence[str] | None = None) -> Axes:
    """Draw a partition: a map of two axes, or steps along one; further axes are added up.

    Parameters
    ----------
    release : Partition, or anything that is ``Boxes``
    ax : matplotlib Axes or None
        None: on a new figure, ``ax.figure``.
    axes : two names, or None
        Which axes to draw, the one that runs right first. None: longitude and latitude where there
        are any, else the first two.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        If the release has no such pair of axes.
    """
    names = release.lattice.names
    with style.house():
        if len(names) == 1 and axes in (None, names, list(names)):
            return _steps(release, ax)
        if axes is None:
            return _map(release, ax, pair_of(names))
        if len(axes) != 2 or len(set(axes)) != 2 or not set(axes) <= set(names):
            asked = f"a picture of {', '.join(map(str, axes))}"
            raise UsageError(
                asked, f"the partition has the axes {', '.join(names)}", "Name two of them"
            )
        return _map(release, ax, (names.index(axes[0]), names.index(axes[1])))


# --- two axes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Raster:
    """Density and significance of each pixel, rows from low to high: two ndarrays."""

    density: Array
    seen: Array
    merged: bool = False


def _map(release: Boxes, ax: Axes | None, pair: tuple[int, int]) -> Axes:
    axes = release.lattice.axes
    x, y = (axes[i] for i in pair)
    corners = [(_at(release.lower, i, axes[i]), _at(release.upper, i, axes[i])) for i in pair]
    (left, right), (bottom, top) = (
        (float(lower.min()), float(upper.max())) for lower, upper in corners
    )
    extent = (left, right, bottom, top)
    geographic = _is(x, LONGITUDE) and _is(y, LATITUDE) and bottom >= -90 and top <= 90
    area = _area(corners, geographic)
    raster = _product(release, corners, area) if len(axes) == 2 else None
    raster = raster or _painted(release, corners, area, len(axes) > 2)
    aspect = 1 / max(math.cos(math.radians((bottom + top) / 2)), 0.1) if geographic else None
    ax = ax or style.figure(_height(extent, aspect))[1]
    unit = "rows per km²" if geographic else f"rows per {_one(x)} × {_one(y)}"
    _shade(ax, raster, extent, unit)
    ax.set_aspect(aspect or "auto")
    for which, axis in ((ax.xaxis, x), (ax.yaxis, y)):
        which.set_label_text(style.plain(axis.name, 40), parse_math=False)
        scales.value_axis(which, axis)
    style.legend(ax, [style.unseen_key()], _map_note(release, pair, raster), columns=1)
    return ax


def _area(corners: Corners, geographic: bool) -> Array:
    """Areas of boxes: in the axes' own units, or square kilometres on a sphere."""
    (x, x_end), (y, y_end) = corners
    if not geographic:
        return np.asarray((x_end - x) * (y_end - y))
    tall = np.degrees(np.sin(np.radians(y_end)) - np.sin(np.radians(y)))
    return np.asarray(KM_PER_DEGREE**2 * (x_end - x) * tall)


def pair_of(names: tuple[str, ...]) -> tuple[int, int]:
    """Which axis runs right and which runs up.

    Longitude and latitude where there are any, else the first two.
    """
    lower = [name.lower() for name in names]
    x = next((i for i, name in enumerate(lower) if name in LONGITUDE), None)
    y = next((i for i, name in enumerate(lower) if name in LATITUDE), None)
    return (x, y) if x is not None and y is not None else (0, 1)


def _is(axis: LatticeAxis, words: tuple[str, ...]) -> bool:
    return axis.name.lower() in words


def _at(ends: Array, column: int, axis: LatticeAxis) -> Array:
    return axis.scale.positions(ends[:, column])


def _height(extent: Extent, aspect: float | None) -> int:
    """A figure as tall as the map needs."""
    width = style.width_of(None)
    room = width - (70 if width < 500 else 150)
    tall = (
        room * aspect * (extent[3] - extent[2]) / (extent[1] - extent[0]) if aspect else room * 0.75
    )
    return int(np.clip(tall + (170 if width < 500 else 86), 240, 900))


def _product(release: Boxes, corners: Corners, areas: Array) -> Raster | None:
    """The cells themselves, where they are a product of edges; else None.

    Where there are too many cells, neighbours are added up.
    """
    (x, x_end), (y, y_end) = corners
    edges = [np.append(np.unique(y), y_end.max()), np.append(np.unique(x), x_end.max())]
    shape = tuple(len(edge) - 1 for edge in edges)
    if math.prod(shape) != len(x):
        return None
    order = np.lexsort((x, y))
    counts, low, area = (
        np.asarray(part)[order].reshape(shape)
        for part in (release.counts, release.interval(CONFIDENCE)[0], areas)
    )
    starts = [runs(size, MOST_SLOTS) for size in shape]
    merged = any(len(at) < size for at, size in zip(starts, shape, strict=True))
    if merged:
        counts, area, terms = (_add(part, starts) for part in (counts, area, np.ones(shape)))
        low = counts - _half(release, terms)
    where = np.ix_(
        *(_slots(np.append(edge[at], edge[-1])) for edge, at in zip(edges, starts, strict=True))
    )
    return Raster((counts / area)[where], (low > 0)[where], merged)


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


def _painted(release: Boxes, corners: Corners, area: Array, stacked: bool) -> Raster:
    """Paint boxes of any size on pixels.

    Where boxes lie above each other along further axes, what lies over a pixel is added up.
    """
    (left, right), (bottom, top) = (_pixels(lower, upper) for lower, upper in corners)
    density = np.zeros((PIXELS, PIXELS))
    seen = np.zeros((PIXELS, PIXELS), bool)
    squares, finest = (np.zeros((PIXELS, PIXELS)) for _ in range(2))  # of 1 / area over each pixel
    parts = release.counts / area, np.asarray(release.interval(CONFIDENCE)[0]) > 0, 1 / area
    for a, b, c, d, each, found, weight in zip(left, right, bottom, top, *parts, strict=True):
        box = slice(c, d), slice(a, b)
        if stacked:
            density[box] += each
            squares[box] += weight * weight
            finest[box] = np.maximum(finest[box], weight)
        else:
            density[box] = each
            seen[box] = found
    if stacked:
        seen = density > finest * _half(release, squares / finest**2)
    return Raster(density, seen)


def _pixels(lower: Array, upper: Array) -> tuple[list[int], list[int]]:
    """From which pixel to which each box reaches along an axis: at least one, and without gaps."""
    start = lower.min()
    width = upper.max() - lower.min()
    first, last = (np.round((end - start) / width * PIXELS).astype(int) for end in (lower, upper))
    first = np.minimum(first, PIXELS - 1)
    return first.tolist(), np.maximum(last, first + 1).tolist()


def _half(release: Boxes, effective: Array) -> Array:
    """Half-widths of weighted sums of counts, by the widest law of their noise.

    ``effective`` holds the sums of the squared weights.
    """
    return np.asarray(release.noise.sum_half_width(effective, ALPHA))


def _shade(ax: Axes, raster: Raster, extent: Extent, unit: str) -> None:
    shown = np.where(raster.seen & (raster.density > 0), raster.density, np.nan)
    style.unseen(ax)
    norm = _norm(shown)
    image = ax.imshow(
        shown,
        cmap=style.SEQUENTIAL,
        norm=norm,
        extent=extent,
        origin="lower",
        interpolation="none",
        aspect="auto",
        zorder=1,
    )
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.RULE)
    bar = style.colour_bar(ax, image, unit)
    if isinstance(norm, LogNorm):
        _log_ticks(bar, norm, style.is_narrow(ax))


def _norm(shown: Array) -> Normalize:
    """A logarithmic scale where densities differ much, else an even one from 0."""
    seen = shown[~np.isnan(shown)]
    if not len(seen):
        return Normalize(0, 1)
    low = float(seen.min())
    high = float(seen.max())
    return LogNorm(low, high) if high > LOG_FROM * low else Normalize(0, high)


def _log_ticks(bar: Colorbar, norm: LogNorm, narrow: bool) -> None:
    """A few round numbers on a logarithmic colour bar."""
    low = float(norm.vmin or 1)
    high = float(norm.vmax or 1)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 3) if math.log10(high / low) < (2 if narrow else 3.5) else (1,)
    bar.locator = FixedLocator(
        [s * 10.0**p for p in powers for s in steps if low <= s * 10.0**p <= high]
    )
    bar.minorlocator = NullLocator()
    bar.formatter = FuncFormatter(lambda value, _: style.short(value))
    bar.update_ticks()


def _one(axis: LatticeAxis) -> str:
    """What one step of an axis is called."""
    return "day" if axis.time else f"unit of {style.plain(axis.name, 20)}"


def _map_note(release: Boxes, pair: tuple[int, int], raster: Raster) -> str:
    rest = [style.plain(name) for i, name in enumerate(release.lattice.names) if i not in pair]
    notes = [f"Added up over {', '.join(rest)}."] if rest else []
    notes.append(limit_note(release.guarantee))
    notes += ["Neighbouring cells are drawn as their mean."] if raster.merged else []
    notes.append(
        "Cells are judged one by one: "
        "of those that are empty, at most 1 in 40 on average is shaded."
    )
    return " ".join(note for note in notes if note)


# --- one axis -------------------------------------------------------------------------------------


def _steps(release: Boxes, ax: Axes | None) -> Axes:
    """Counts of equal cells, or densities of unequal ones, with the two intervals as bands."""
    axis = release.lattice.axes[0]
    lower = _at(release.lower, 0, axis)
    upper = _at(release.upper, 0, axis)
    order = np.argsort(lower, kind="stable")
    edges = np.append(lower[order], upper.max())
    values, half, half_all = (
        np.asarray(part, dtype=float)[order]
        for part in (
            release.counts,
            release.accuracy(CONFIDENCE, False),
            release.accuracy(CONFIDENCE, True),
        )
    )
    starts = runs(len(values), MOST_STEPS)
    notes = []
    even = bool(np.ptp(np.diff(edges)) <= REGULAR * np.diff(edges).max())
    terms = np.diff(np.append(starts, len(values))).astype(float)
    if len(starts) < len(values):
        notes.append(
            f"{len(values):,} cells, drawn as means of {-(-len(values) // MOST_STEPS)} neighbours."
        )
        values = np.add.reduceat(values, starts)
        half = _half(release, terms)
        half_all = np.add.reduceat(half_all, starts)
        edges = np.append(edges[starts], edges[-1])
    notes.append(
        f"{scales.BEYOND.replace('bins', 'cells')} {limit_note(release.guarantee)}".strip()
    )
    by = terms if even else np.diff(edges)
    ax = ax or style.figure(300 if style.is_narrow(ax) else 380)[1]
    style.steps(ax, edges, values / by, half=half / by, half_all=half_all / by)
    ax.axhline(0, color=style.MUTED, linewidth=0.8, zorder=1)
    ax.set(xlim=(edges[0], edges[-1]))
    ax.set_ylabel("count" if even else f"rows per {_one(axis)}", parse_math=False)
    ax.set_xlabel(style.plain(axis.name, 40), parse_math=False)
    ax.grid(visible=False, axis="x")
    scales.value_axis(ax.xaxis, axis)
    style.count_axis(ax.yaxis)
    style.legend(ax, style.interval_keys(len(values), True), " ".join(notes))
    return ax
