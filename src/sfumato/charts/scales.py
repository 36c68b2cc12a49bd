"""Axes of a domain on axes of a picture, and counts that are added up before drawing.

Axes are of numbers, dates, bins of unequal width, or labels. Counts are added up where there are
too many cells or axes for a picture. Sums of released numbers are post-processing. Their intervals
come from the noise's own law.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from sfumato.basics import Array, sidak
from sfumato.charts import style
from sfumato.charts.style import plain, short, thin
from sfumato.domain import BinnedCells, EdgesAxis, GridAxis, LabelAxis, LatticeAxis
from sfumato.mechanisms import CountLaw
from sfumato.privacy import Guarantee, Unit

# --- axes -----------------------------------------------------------------------------------------

NEARLY = 1e-6
DECADES = 100.0  # ratio of values from which a logarithmic axis shows more than an even one
FEW_BINS = 8  # bins up to which each has its name beside it
LETTER = 7.2  # pixels that a letter of a tick's label takes
OPEN = "…"  # at the outer edge of a bin that also holds what lies beyond
BEYOND = "The bins at the ends also hold what lies beyond them."


def value_axis(which: Axis, axis: LatticeAxis) -> None:
    """Name an axis of values, and place its ticks: at dates, or at whole numbers such as years.

    Its cells are not looked at: an axis of numbers may have a million.
    """
    which.set_label_text(plain(axis.name, 40), parse_math=False)
    if axis.time is not None:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator(tz=dt.UTC, minticks=3, maxticks=7)
        which.set_major_locator(locator)
        which.set_major_formatter(ConciseDateFormatter(locator, tz=dt.UTC))
    elif isinstance(axis, GridAxis | EdgesAxis) and float(axis.step or 0.5).is_integer():
        which.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def spans_decades(low: float, high: float) -> bool:
    """Whether values from low to high, intervals included, are better seen on a logarithmic axis.

    >>> spans_decades(3, 2_000), spans_decades(0, 2_000), spans_decades(3, 200)
    (True, False, False)
    """
    return low > 0 and high >= DECADES * low


def reach_of(low: Array, high: Array) -> tuple[float, float]:
    """The least and the largest of the ends of intervals; infinity and 0 where there are none."""
    least = np.asarray(low, dtype=float).min(initial=np.inf)
    most = np.asarray(high, dtype=float).max(initial=0)
    return float(least), float(most)


def log_axis(ax: Axes, low: float, high: float) -> None:
    """Make the axis that runs right logarithmic, and say so in its label."""
    ax.set_xscale("log")
    ax.set_xlim(low / 1.2, high * 1.2)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > DECADES**2 * low else (1.0, 3.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_label_text(f"{ax.get_xlabel()} (logarithmic scale)", parse_math=False)


def _log_ticks(bar: Colorbar, norm: LogNorm, narrow: bool) -> None:
    """Put a few round numbers on a logarithmic colour bar."""
    low = float(norm.vmin or 1)
    high = float(norm.vmax or 1)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 3) if math.log10(high / low) < (2 if narrow else 3.5) else (1,)
    bar.locator = FixedLocator(
        [s * 10.0**p for p in powers for s in steps if low <= s * 10.0**p <= high]
    )
    bar.minorlocator = NullLocator()
    bar.formatter = FuncFormatter(lambda value, _: short(value))
    bar.update_ticks()


def shade_keys(
    ax: Axes, image: ScalarMappable, label: str, ground: Patch, guarantee: Guarantee
) -> list[Artist]:
    """Put a bar of colours beside shades, and return the legend entries of what they show.

    ``ground`` is the entry of places without a shade.
    """
    bar = style.colour_bar(ax, image, label)
    if isinstance(image.norm, LogNorm):
        _log_ticks(bar, image.norm, style.is_narrow(ax))
    if not guarantee.unit.limits_kept:
        return [ground]
    # The shades are totals that a limit may have cut: the mark stands where the bar ends.
    is_flat = bar.orientation == "horizontal"
    mark = style.cut_key(">" if is_flat else "^")
    mark.set_data([1.02 if is_flat else 0.5], [0.5 if is_flat else 1.02])
    mark.set(transform=bar.ax.transAxes, clip_on=False)
    bar.ax.add_line(mark)
    return [ground, style.cut_key()]


def edges_of(axis: LatticeAxis) -> Array | None:
    """Edges of bins of equal width, as positions.

    None for labels and for bins of unequal width, which get equal slots, and for few bins: their
    names stand beside them, so that those at the ends are seen to be open.
    """
    edges = positions_of(axis)
    is_drawn = edges is not None and axis.size > FEW_BINS and _is_even(edges)
    return edges if is_drawn else None


def _is_even(edges: Array) -> bool:
    widths = np.diff(edges)
    return bool(np.ptp(widths) <= NEARLY * widths.max())


def positions_of(axis: LatticeAxis) -> Array | None:
    """Edges of an axis of bins, of whatever width, as positions; None for labels.

    A bin of one whole number lies around its number, so that the tick stands at its middle.
    """
    if not axis.has_edges:
        return None
    edges = axis.scale.positions(axis.edges())
    return edges - 0.5 if _has_single_numbers(axis) else edges


def _has_single_numbers(axis: LatticeAxis) -> bool:
    if not isinstance(axis, GridAxis) or not axis.whole_names():
        return False
    lowest, highest = axis.extremes()
    return bool((lowest == highest).all())


def name_of(axis: LatticeAxis) -> str:
    """The axis' name, and a word where the picture does not keep its scale."""
    edges = positions_of(axis)
    is_kept = edges is None or _is_even(edges)
    return plain(axis.name, 40) + ("" if is_kept else " (bins of unequal width)")


def edge_labels(axis: LatticeAxis) -> list[str]:
    """Edges of bins as text, for equal slots.

    The outer ones are open, since the bins there also hold what lies beyond.
    """
    if not axis.has_edges:
        return []
    inner = axis.scale.picture_text(axis.edges())[1:-1]
    return [OPEN, *inner, OPEN]


def cell_labels(axis: LatticeAxis, longest: int = 28) -> list[str]:
    """Names of cells as text: labels, numbers or "a to b"; the ends are "b and above"."""
    if isinstance(axis, BinnedCells):
        whole = axis.whole_names()
        if axis.kind == "number":
            whole = [name.replace("-", "−") for name in whole]
        return whole or axis.scale.bin_names(axis.scale.picture_text(axis.edges()))
    return [plain(label, longest) for label in axis.cell_names()]


def names_bins(axis: LatticeAxis, slots: int | None = None) -> bool:
    """Whether ticks name the cells; else they stand at the edges between bins.

    They name labels, bins where these are few, and whole numbers that have a bin each, unless
    neighbours were added up to fewer slots.
    """
    if not axis.has_edges or axis.size <= FEW_BINS:
        return True
    return slots in (None, axis.size) and _has_single_numbers(axis)


def tick_labels(axis: LatticeAxis) -> list[str]:
    """What stands at the ticks: names of cells, or the edges between them."""
    if isinstance(axis, LabelAxis) and axis.calendar is not msgspec.UNSET:
        # Fields of the calendar: "Jan" and "Mon"; others as they are.
        return [
            name[:3] if name.isalpha() and i < axis.n_listed else name
            for i, name in enumerate(cell_labels(axis))
        ]
    if axis.size > FEW_BINS and _has_single_numbers(axis):
        first, *between, last = axis.scale.picture_text(axis.edges()[:-1])
        return [f"≤{first}", *between, f"≥{last}"]
    return cell_labels(axis) if names_bins(axis) else edge_labels(axis)


def step_name(axis: LatticeAxis, longest: int) -> str:
    """What one step of an axis of numbers or times is called, its name in so many letters."""
    return "day" if axis.time else f"unit of {plain(axis.name, longest)}"


def widest_tick(axis: LatticeAxis) -> float:
    """Return the pixels that the longest of the labels at the ticks takes."""
    return LETTER * max(len(label) for label in tick_labels(axis))


def is_continuous(axis: LatticeAxis) -> bool:
    """Whether the cells of an axis follow each other in time, so that a line may join them.

    Weekdays come again and again, and a cell of other or missing values is no time at all.
    """
    if not isinstance(axis, LabelAxis) or axis.calendar is msgspec.UNSET:
        return False
    return axis.calendar.part != "weekday" and axis.n_listed == axis.size


class Turned(TypedDict, total=False):
    """How labels of ticks are turned."""

    rotation: float
    ha: str
    rotation_mode: str


def turned(angle: float) -> Turned:
    """Labels that rise to the right, where they would not fit side by side; 0: as they are."""
    return {"rotation": angle, "ha": "right", "rotation_mode": "anchor"} if angle else {}


def slots(
    which: Axis, axis: LatticeAxis, most: int, starts: Array | None = None, angle: float = 0
) -> None:
    """Place the ticks of an axis whose cells stand in equal slots 0, 1, 2, ...

    Labels stand at the middle of slots, edges between them.

    Parameters
    ----------
    which : XAxis or YAxis of matplotlib
    axis : LatticeAxis
    most : int
        How many ticks there is room for.
    starts : int64 ndarray or None
        The first cell of each slot, where neighbours were added up.
    angle : float
        By which labels are turned.
    """
    starts = np.arange(axis.size) if starts is None else starts
    named = names_bins(axis, len(starts))
    labels = tick_labels(axis) if named else edge_labels(axis)
    shift = 0.0 if named else -0.5
    ends = starts if named else np.append(starts, axis.size)
    shown = thin(len(ends), most)
    which.set_ticks(
        shown + shift, labels=[labels[ends[i]] for i in shown], parse_math=False, **turned(angle)
    )


# --- adding up ------------------------------------------------------------------------------------

CONFIDENCE = "0.95"
ALPHA = 0.05


@dataclass(frozen=True)
class Table:
    """Noisy counts as they are drawn.

    Attributes
    ----------
    values, half, half_all : ndarray of equal shape
        Counts, and the half-widths of their 95% intervals, one by one and all at once.
    terms : ndarray of the same shape
        How many released numbers each is the sum of.
    down, down_all : ndarray of the same shape, or None
        How far the intervals reach down, where that is not as far as they reach up.
    """

    values: Array
    half: Array
    half_all: Array
    terms: Array
    down: Array | None = None
    down_all: Array | None = None

    @property
    def low(self) -> Array:
        return np.asarray(self.values - (self.half if self.down is None else self.down))

    @property
    def low_all(self) -> Array:
        return np.asarray(self.values - (self.half_all if self.down_all is None else self.down_all))

    @property
    def high(self) -> Array:
        return np.asarray(self.values + self.half)

    @property
    def high_all(self) -> Array:
        return np.asarray(self.values + self.half_all)


def limit_note(guarantee: Guarantee) -> str:
    """What a picture counts and what may be missing, where a person's rows are limited; else ""."""
    return guarantee.scope if guarantee.unit.limits_kept else ""


def mapped(table: Table, change: Callable[[Array], Array]) -> Table:
    """Take or reshape all arrays of a table alike."""
    arrays = (table.values, table.half, table.half_all, table.terms)
    down, down_all = (None if x is None else change(x) for x in (table.down, table.down_all))
    values, half, half_all, terms = map(change, arrays)
    return Table(values, half, half_all, terms, down, down_all)


def sum_out(table: Table, keep: tuple[int, ...], law: CountLaw | None) -> Table:
    """Add up all axes but some, which keep their order.

    Counts whose sums have no law stay as they are.
    """
    rest = tuple(i for i in range(table.values.ndim) if i not in keep)
    if law is None or not rest:
        return table
    values = table.values.sum(axis=rest)
    return _with_intervals(values, table.terms.sum(axis=rest), law)


def merge(table: Table, starts: Sequence[Array], law: CountLaw | None) -> Table:
    """Put the mean of neighbours in their place; along each axis, runs of them begin at ``starts``.

    Means rather than sums, so that the last run, which may be shorter, does not look like a fall.
    Counts whose sums have no law stay as they are.
    """
    if law is None or all(
        len(at) == size for at, size in zip(starts, table.values.shape, strict=True)
    ):
        return table
    sums = [table.values, table.terms, np.ones_like(table.terms)]
    for axis, at in enumerate(starts):
        sums = [np.add.reduceat(x, at, axis=axis) for x in sums]
    values, terms, cells = sums
    summed = _with_intervals(values, terms, law)
    return Table(values / cells, summed.half / cells, summed.half_all / cells, terms)


def _with_intervals(values: Array, terms: Array, law: CountLaw) -> Table:
    """Half-widths of sums over disjoint sets of cells, whose noise is independent.

    A set of one cell keeps the half-width of one count.
    """
    distinct, where = np.unique(terms, return_inverse=True)
    halves = []
    for alpha in (ALPHA, sidak(ALPHA, values.size)):
        single = float(law.half_width(alpha))
        # A single count has its exact half-width; the bound on sums may be wider.
        half_widths = np.where(
            distinct == 1, single, law.sum_half_width(distinct.astype(float), alpha)
        )
        halves.append(half_widths[where].reshape(values.shape))
    return Table(values, halves[0], halves[1], terms)


def counts_of(unit: Unit) -> str:
    """What an axis of counts says: of persons, what these are called."""
    return style.plain(unit.several.rstrip(","), 60) if unit.counts_persons else "count"
