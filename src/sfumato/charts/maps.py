"""Pictures of partitions: maps shaded by density, and steps with bands along one axis.

Where a count cannot be told from 0, its surroundings are shaded as one; where these cannot either,
nothing is. A map of longitude and latitude has coastlines and a scale bar. Its shades are one small
picture inside the SVG, so that a map of fifty thousand cells stays compact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from sfumato.basics.numbers import Array
from sfumato.charts import geography, scales, shading, style
from sfumato.charts.geography import Extent
from sfumato.charts.reduce import ALPHA, CONFIDENCE, Boxes, limit_note, runs
from sfumato.charts.shading import Corners, Raster
from sfumato.domain.lattice import LatticeAxis
from sfumato.errors import UsageError

MOST_STEPS = 400
LOG_FROM = 20.0  # ratio of densities from which the scale is logarithmic
AREAS = (1, 100, 10_000, 1_000_000)  # square kilometres
LARGEST_SHARE = 0.001  # of a map, that such an area takes
DETAIL = 1000  # how many times a map is as wide as what its coastlines leave out
ROUGH = 3.0  # degrees: on a narrower map, one sees that the coastlines are drawn for wider ones


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
            return _map(release, ax, geography.pair_of(names))
        if len(axes) != 2 or len(set(axes)) != 2 or not set(axes) <= set(names):
            asked = f"a picture of {', '.join(map(str, axes))}"
            raise UsageError(
                asked, f"the partition has the axes {', '.join(names)}", "Name two of them"
            )
        return _map(release, ax, (names.index(axes[0]), names.index(axes[1])))


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
    def of(cls, release: Boxes, pair: tuple[int, int]) -> Plane:
        axes = release.lattice.axes
        x, y = (axes[i] for i in pair)
        corners = [(_at(release.lower, i, axes[i]), _at(release.upper, i, axes[i])) for i in pair]
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
            return geography.aspect_of(self.extent)
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
        return [_at(ends, column, axis) for column, axis in axes]


def _map(release: Boxes, ax: Axes | None, pair: tuple[int, int]) -> Axes:
    plane = Plane.of(release, pair)
    raster = shading.raster_of(release, plane.corners, plane.area, plane.placed)
    ax = ax or style.figure(_height(plane.extent, plane.aspect))[1]
    _shade(ax, raster, plane)
    ax.set_aspect(plane.aspect or "auto")
    for which, axis in ((ax.xaxis, plane.x), (ax.yaxis, plane.y)):
        which.set_label_text(style.plain(axis.name, 40), parse_math=False)
        scales.value_axis(which, axis)
    if plane.is_geographic:
        _draw_coast(ax, plane.extent)
    if plane.aspect is not None:
        _draw_bar(ax, plane)
    style.legend(ax, [ground_key(ax)], _map_note(release, plane, raster), columns=1)
    style.mark_map(ax, plane.extent)
    return ax


def _draw_coast(ax: Axes, extent: Extent) -> None:
    """Draw coastlines, fine enough to be enlarged a few times."""
    lines = geography.coastlines(extent, (extent[1] - extent[0]) / DETAIL)
    if not lines:
        return
    path = Path.make_compound_path(*(Path(line) for line in lines))
    path.should_simplify = False
    ax.add_patch(
        PathPatch(path, fill=False, edgecolor=style.MUTED, linewidth=0.4, gid="coast", zorder=1.6)
    )
    left, right, bottom, top = extent
    ax.set(xlim=(left, right), ylim=(bottom, top))


def _draw_bar(ax: Axes, plane: Plane) -> None:
    """Draw a length in a corner of the map."""
    left, right, _, _ = plane.extent
    bar = geography.scale_bar(plane.extent, plane.unit)
    share = bar.span / (right - left)
    ends = [0.02, 0.02, 0.02 + share, 0.02 + share]
    ax.plot(
        ends,
        [0.05, 0.03, 0.03, 0.05],
        color=style.INK,
        linewidth=1.2,
        transform=ax.transAxes,
        gid=f"scale-bar:{plane.unit or 'degrees'}",
        clip_on=False,
        zorder=3,
        path_effects=[withStroke(linewidth=4, foreground=style.PAPER)],
    )
    ax.text(
        0.02,
        0.055,
        bar.text,
        transform=ax.transAxes,
        va="bottom",
        fontsize=8.2,
        zorder=3,
        gid="scale-text",
        parse_math=False,
        bbox={"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5, "alpha": 0.8},
    )


def ground_key(ax: Axes) -> Patch:
    """The legend entry of places without a shade. On a map of the earth they are left as they are.

    There is much sea on most maps, and hatching all of it would be louder than what was found.
    """
    if ax.patch.get_hatch():
        return style.unseen_key()
    return Patch(
        facecolor=style.PAPER,
        edgecolor=style.UNKNOWN_HATCH,
        linewidth=0.8,
        label="no shade: not distinguishable from 0 (95%)",
    )


def _at(ends: Array, column: int, axis: LatticeAxis) -> Array:
    return axis.scale.positions(ends[:, column])


def _height(extent: Extent, aspect: float | None) -> int:
    """A figure as tall as the map needs."""
    width = style.width_of(None)
    room = width - (70 if width < 500 else 150)
    tall = (
        room * aspect * (extent[3] - extent[2]) / (extent[1] - extent[0]) if aspect else room * 0.75
    )
    return int(np.clip(tall + (230 if width < 500 else 106), 240, 900))


def _shade(ax: Axes, raster: Raster, plane: Plane) -> None:
    shown = np.where(raster.density > 0, raster.density, np.nan)
    if not plane.is_geographic:
        style.unseen(ax)
    unit = f"rows per {_one(plane.x)} × {_one(plane.y)}"
    if plane.is_geographic:
        size = _area_unit(plane)
        shown = shown * size
        unit = f"rows per {size:,} km²" if size > 1 else "rows per km²"
    norm = _norm(shown)
    image = ax.imshow(
        shown,
        cmap=style.density_map(),
        norm=norm,
        extent=plane.extent,
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
        scales.log_ticks(bar, norm, style.is_narrow(ax))


def _area_unit(plane: Plane) -> int:
    """Square kilometres in which rows are counted: by the place alone, so that maps of it agree."""
    left, right, bottom, top = (np.array([end]) for end in plane.extent)
    (whole,) = plane.area([(left, right), (bottom, top)])
    return max((size for size in AREAS if size <= LARGEST_SHARE * whole), default=AREAS[0])


def _norm(shown: Array) -> Normalize:
    """A logarithmic scale where densities differ much, else an even one from 0."""
    seen = shown[~np.isnan(shown)]
    if not len(seen):
        return Normalize(0, 1)
    low = float(seen.min())
    high = float(seen.max())
    return LogNorm(low, high) if high > LOG_FROM * low else Normalize(0, high)


def _one(axis: LatticeAxis) -> str:
    """What one step of an axis is called."""
    return "day" if axis.time else f"unit of {style.plain(axis.name, 20)}"


def _map_note(release: Boxes, plane: Plane, raster: Raster) -> str:
    names = release.lattice.names
    rest = [style.plain(name) for i, name in enumerate(names) if i not in plane.pair]
    notes = [f"Added up over {', '.join(rest)}."] if rest else []
    notes.append(limit_note(release.guarantee))
    notes += ["Neighbouring cells are drawn as their mean."] if raster.merged else []
    if not rest:
        notes.append(
            "A place is shaded with its surroundings where its own count is lost in noise."
        )
    notes.append("Of empty places, at most 1 in 40 on average is shaded.")
    if plane.is_geographic and plane.extent[1] - plane.extent[0] < ROUGH:
        notes.append("Coastlines are rough at this scale.")
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
    even = bool(np.ptp(np.diff(edges)) <= shading.REGULAR * np.diff(edges).max())
    terms = np.diff(np.append(starts, len(values))).astype(float)
    if len(starts) < len(values):
        notes.append(
            f"{len(values):,} cells, drawn as means of {-(-len(values) // MOST_STEPS)} neighbours."
        )
        values = np.add.reduceat(values, starts)
        half = np.asarray(release.noise.sum_half_width(terms, ALPHA))
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
