"""One style for all pictures: their figures, legends, keys and axes.

The grid is quiet, and text is dark enough to read. ``vector`` has the colours, and prints
figures.

Figures are made without pyplot: no global state, no window, nothing to close.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import blended_transform_factory

from sfumato.answers import Panels, Release
from sfumato.basics import LONGEST_LABEL, Array, number, plain, tamed_lines
from sfumato.charts.margins import Margins
from sfumato.charts.vector import (
    BASE,
    COLOURS,
    FILL,
    INK,
    MARKERS,
    MUTED,
    NARROW,
    PAPER,
    PIXELS,
    RULE,
    SEQUENTIAL,
    SERIES,
    UNKNOWN,
    UNKNOWN_HATCH,
    WIDE,
    contrast,
    density_map,
    house,
    luminance,
    png,
    save,
    svg,
    text_on,
)
from sfumato.errors import UsageError

# What charts take from here, beside its own names.
__all__ = [
    "BASE",
    "COLOURS",
    "FILL",
    "INK",
    "LONGEST_LABEL",
    "MARKERS",
    "MUTED",
    "NARROW",
    "PAPER",
    "PIXELS",
    "RULE",
    "SEQUENTIAL",
    "SERIES",
    "UNKNOWN",
    "UNKNOWN_HATCH",
    "WIDE",
    "contrast",
    "density_map",
    "house",
    "luminance",
    "number",
    "plain",
    "png",
    "save",
    "svg",
    "text_on",
]

P = ParamSpec("P")
R = TypeVar("R", bound=Release)

_width: ContextVar[int] = ContextVar("sfumato_chart_width", default=WIDE)
_on_page: ContextVar[bool] = ContextVar("sfumato_chart_on_page", default=False)


@contextmanager
def sized(width: int) -> Iterator[None]:
    """Make figures for a page, of this width in pixels, while the block runs.

    ``WIDE`` is for a page, ``NARROW`` for a phone.
    """
    token = _width.set(width)
    on_page = _on_page.set(True)
    try:
        yield
    finally:
        _on_page.reset(on_page)
        _width.reset(token)


def of_release(
    draw: Callable[Concatenate[R, Axes | None, P], Axes],
) -> Callable[Concatenate[R, Axes | None, P], Axes]:
    """Draw a release in the house style, under the heading that its question was given.

    Not on Axes that the user gave, whose figure has the user's own title, nor on a page, which has
    the heading above the picture.
    """

    @wraps(draw)
    def headed(release: R, ax: Axes | None = None, /, *args: P.args, **kwargs: P.kwargs) -> Axes:
        with house():
            drawn = draw(release, ax, *args, **kwargs)
            if ax is None and not _on_page.get() and release.heading != release.title:
                figure_of(drawn).suptitle(
                    plain(release.heading, 90), x=0.008, ha="left", fontsize=10.5, parse_math=False
                )
        return drawn

    return headed


class Picture(Axes):
    """Axes that a notebook shows as a picture when they are the last value of a cell.

    Figures that pyplot does not know are not shown by themselves.
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return shown(figure_of(self))


class PanelArray(np.ndarray[tuple[int, ...], np.dtype[np.object_]]):
    """An array of Axes of one figure, which a notebook shows as a picture."""

    @classmethod
    def of(cls, axes: Sequence[Axes]) -> PanelArray:
        """The Axes of one figure, in order."""
        return np.array(axes, dtype=object).view(cls)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        first = self.reshape(-1)[:1].tolist()
        return shown(figure_of(first[0])) if first and isinstance(first[0], Axes) else None


def shown(fig: Figure) -> tuple[bytes, dict[str, int]]:
    """A figure as a notebook shows it: PNG in twice the resolution, and its size in pixels."""
    width, height = (round(inches * PIXELS) for inches in fig.get_size_inches())
    return png(fig), {"width": width, "height": height}


def figure(height: int, width: int | None = None) -> tuple[Figure, Axes]:
    """Make a figure with one Axes, without pyplot; sizes are in pixels."""
    with house():
        size = ((width or _width.get()) / PIXELS, height / PIXELS)
        fig = Figure(figsize=size, layout=Margins(once=_on_page.get()))
        return fig, fig.add_subplot(axes_class=Picture)


def axes_on(ax: Axes | None, height: int, narrow: int | None = None) -> Axes:
    """Return the Axes that were given, else those of a new figure, so many pixels high.

    ``narrow`` is the height on a phone, if it is another one.
    """
    if ax is not None:
        return ax
    return figure(narrow if narrow and is_narrow(None) else height)[1]


LONGEST_AT_A_GLANCE = 24
# The look of what is not known.
HATCHED = {"facecolor": UNKNOWN, "edgecolor": UNKNOWN_HATCH, "hatch": "////", "linewidth": 0}


def at_a_glance(plot: Callable[[Axes], Axes], width: int, height: int, *, is_map: bool) -> Figure:
    """Draw a small picture, without the notes and keys that the large one has.

    Of a map, coasts and the bar of length say where and how large it is.
    """
    with sized(width), house():
        small, ax = figure(height)
        plot(ax)
        if is_map:
            ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
        for axes in (*small.axes, *ax.child_axes):
            # A long name would leave no room for the picture.
            for label in (axes.xaxis.label, axes.yaxis.label):
                label.set_text(plain(label.get_text(), LONGEST_AT_A_GLANCE))
            if (key := axes.get_legend()) is not None:
                key.remove()
    return small


def figure_of(ax: Axes) -> Figure:
    """The whole figure that Axes are part of."""
    fig = ax.get_figure(root=True)
    if fig is None:
        raise UsageError(
            "drawing on Axes", "they belong to no figure", "Give Axes of a figure, or none"
        )
    return fig


# Pixels of a line of the note above a picture.
NOTE_LINE = 13


def room_for(note: str, ax: Axes | None) -> int:
    """Return the pixels that a note takes beyond those of two lines, or three on a phone."""
    narrow = is_narrow(ax)
    lines = len(_wrapped(note, LETTERS_NARROW if narrow else LETTERS).splitlines())
    return NOTE_LINE * max(0, lines - (3 if narrow else 2))


def panels_of(given: Panels) -> list[Axes]:
    """Return Axes as they were given, as a list."""
    return [given] if isinstance(given, Axes) else list(np.asarray(given, dtype=object).reshape(-1))


def panels(
    number: int, given: Panels | None, height: int, *, across: int = 1, margin: int = 0
) -> list[Axes]:
    """Return one Axes for each panel: those that were given, else those of a new figure.

    Parameters
    ----------
    number : int
    given : Axes, sequence of as many Axes, or None
    height, margin : int
        Pixels of each row of panels, and of the figure beside them.
    across : int
        The most panels side by side; on a phone they stand one below the other.
    """
    if given is not None:
        axes = panels_of(given)
        if len(axes) != number:
            raise UsageError(
                f"{number} panels on {len(axes)} axes",
                "each panel needs its own",
                "Give as many Axes, or none",
            )
        return axes
    columns = 1 if is_narrow(None) else min(number, across)
    rows = -(-number // columns)
    fig, first = figure(margin + rows * height)
    if number == 1:
        return [first]
    first.remove()
    grid = fig.subplots(rows, columns, squeeze=False, subplot_kw={"axes_class": Picture})
    for spare in grid.flat[number:]:
        spare.remove()
    return list(grid.flat[:number])


def width_of(ax: Axes | None) -> float:
    """Width in pixels of the figure that is drawn on, or of the one that would be made."""
    return float(_width.get() if ax is None else figure_of(ax).get_figwidth() * PIXELS)


def height_of(ax: Axes) -> float:
    """Height in pixels of the figure that is drawn on, or of the panel that these Axes have."""
    place = ax.get_subplotspec()
    panels = 1 if place is None else place.get_gridspec().nrows
    return float(figure_of(ax).get_figheight() * PIXELS / panels)


def is_narrow(ax: Axes | None) -> bool:
    """Whether there is only a phone's room."""
    return width_of(ax) < 500


def hatch(span: Callable[[float, float], Artist], places: Array) -> None:
    """Mark the rows, or columns, of what is not known; ``span`` is ``axhspan`` or ``axvspan``."""
    for place in places.tolist():
        span(place - 0.32, place + 0.32).set(zorder=0.5, **HATCHED)


def dots(ax: Axes, x: Array, y: Array, size: float) -> None:
    """Draw numbers as dots that stand out from the lines below them."""
    (marks,) = ax.plot(x, y, "o", color=BASE, markersize=size, zorder=2.2)
    marks.set(markeredgecolor=PAPER, markeredgewidth=0.7)


def stand_on_zero(ax: Axes, edges: Array, what: str) -> None:
    """Name the counts that stand on a line at 0, between the first and the last edge."""
    ax.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    ax.set(xlim=(edges[0], edges[-1]))
    ax.set_ylabel(what, parse_math=False)
    ax.grid(visible=False, axis="x")
    ax.margins(y=0.06)
    ax.autoscale_view(scalex=False)


def name_rows(ax: Axes, names: Sequence[str], what: str) -> None:
    """Name rows 0, 1, 2, ... from the top down, and what runs along them."""
    ax.set_yticks(np.arange(len(names)), labels=names, parse_math=False)
    ax.set(ylim=(max(len(names), 1) - 0.5, -0.5))
    ax.set_xlabel(what, parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def short(value: float) -> str:
    """Print a large number shortly.

    >>> short(30000.0), short(2e6)
    ('30k', '2M')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10_000 and abs(value) >= size:
            return number(value / size) + letter
    return number(value)


def count_axis(axis: Axis) -> None:
    """Label an axis of counts."""
    axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def legend(
    ax: Axes, handles: Sequence[Artist], note: str = "", columns: int = 3, wrap: int | None = None
) -> None:
    """Put a legend above the axes, with a note as its title, in lines of ``wrap`` letters."""
    narrow = is_narrow(ax)
    n_columns = 1 if narrow else columns
    made = ax.legend(
        # matplotlib fills column by column, and people read row by row.
        handles=[handle for column in range(n_columns) for handle in handles[column::n_columns]],
        loc="lower left",
        bbox_to_anchor=(0.015 if narrow else 0, 1.005),
        # Beside long names of rows there is no room for a note on a phone, but above them there is.
        bbox_transform=(
            blended_transform_factory(ax.figure.transFigure, ax.transAxes)
            if narrow
            else ax.transAxes
        ),
        borderaxespad=0.2,
        borderpad=0.2,
        ncols=n_columns,
        frameon=False,
        fontsize=8.2,
        handlelength=1.6,
        columnspacing=1.6,
        title=_wrapped(tamed_lines(note), wrap or (LETTERS_NARROW if narrow else LETTERS)) or None,
        alignment="left",
        title_fontproperties={"size": 8.2},
    )
    made.get_title().set_color(MUTED)
    for text in made.get_texts():
        text.set_parse_math(False)


def mark_map(ax: Axes, extent: tuple[float, float, float, float] | None) -> None:
    """Say that this is a map, and where it lies, so that a page can enlarge it.

    None: it is not to be enlarged.
    """
    ends = () if extent is None else (f":{end:.9g}" for end in extent)
    ax.set_gid("map" + "".join(ends))


def colour_bar(ax: Axes, image: ScalarMappable, label: str) -> Colorbar:
    """Put a colour bar beside a picture, or below it on a narrow figure."""
    if is_narrow(ax):
        bar = ax.figure.colorbar(image, ax=ax, location="bottom", aspect=30, pad=0.03)
    else:
        bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.02, 0, 0.026, 1)))
    bar.set_label(label, parse_math=False)
    bar.outline.set_visible(False)
    bar.ax.grid(visible=False)
    count_axis(bar.ax.xaxis if is_narrow(ax) else bar.ax.yaxis)
    if is_narrow(ax):
        # More numbers run into each other on so short a bar.
        bar.ax.xaxis.set_major_locator(MaxNLocator(4))
    return bar


def interval_keys(cells: int, band: bool) -> list[Artist]:
    """Legend entries for the two kinds of interval, as lines or as bands."""
    single = "95% interval of each count"
    every = f"95% for all {cells:,} at once"
    keys: list[Artist] = [
        Line2D([], [], color=INK, linewidth=2.2, label=single),
        Line2D([], [], color=INK, linewidth=0.8, label=every),
    ]
    keys = band_keys(single, every) if band else keys
    return keys if cells > 1 else keys[:1]


def band_keys(single: str, every: str, names: Sequence[str] = ()) -> list[Artist]:
    """Legend entries of bands around a line; of several lines, which have names, one band each."""
    if not names:
        narrow_band = Patch(facecolor=BASE, alpha=0.4, label=single)
        return [narrow_band, Patch(facecolor=BASE, alpha=0.14, label=every)]
    looks = zip(SERIES, names, strict=False)
    lines = [Line2D([], [], color=colour, label=name) for colour, name in looks]
    return [*lines, Patch(facecolor=MUTED, alpha=0.3, label=single)]


CUT = {"markersize": 5, "markerfacecolor": PAPER, "markeredgewidth": 0.9}


def mark_cut(ax: Axes, x: Array, y: Array, colour: str = MUTED, marker: str = "^") -> None:
    """Mark totals that a limit on a person's rows may have cut: they may be higher without it.

    The marks point away from the numbers, at the ends of their intervals.
    """
    (marks,) = ax.plot(x, y, marker, color=colour, linestyle="", label="_cut")
    marks.set(**CUT, zorder=2.3)


def cut_places(size: int) -> Array:
    """Which of so many steps of a line get such a mark: int64 ndarray."""
    return np.linspace(0, size - 1, 12).astype(int)


def cut_key(marker: str = "^", otherwise: str = "higher") -> Line2D:
    """The legend entry of these marks, and what the totals may be without the limit."""
    label = f"without the limit, the total may be {otherwise}"
    key = Line2D([], [], color=INK, marker=marker, linestyle="", label=label)
    key.set(**CUT)
    return key


def unseen(ax: Axes) -> None:
    """Hatch the ground of a map: it shows where no shade lies on it."""
    ax.patch.set(**HATCHED)


def hatched_key(label: str = "not distinguishable from 0 (95%)") -> Patch:
    """The legend entry of that ground, or of what is not known at all."""
    key = Patch(label=label)
    key.set(**HATCHED)
    return key


def steps(
    ax: Axes,
    edges: Array,
    values: Array,
    *,
    half: Array,
    half_all: Array | None,
    colour: str = BASE,
) -> None:
    """Draw steps with their intervals as a band.

    Wider intervals, where they are given, are a paler band.
    """
    for reach, shade, label in ((half_all, 0.14, "_simultaneous"), (half, 0.26, "_individual")):
        if reach is not None:
            band = ax.stairs(values + reach, edges, baseline=values - reach, fill=True)
            band.set(facecolor=colour, alpha=shade, label=label, zorder=1.5)
    ax.stairs(values, edges, baseline=None, color=colour, linewidth=1.3, zorder=2)


# Of a line of a note, and on a phone.
LETTERS = 88
LETTERS_NARROW = 44


def _wrapped(note: str, columns: int) -> str:
    return "\n".join(textwrap.wrap(note, columns))


def thin(size: int, most: int) -> Array:
    """Which of ``size`` even positions get a label, or begin a run of neighbours that are added up.

    They are at most ``most``: int64 ndarray.
    """
    apart = -(-size // max(most, 1))
    return np.arange(0, size, max(1, apart))
