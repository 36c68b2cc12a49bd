"""Axes of a domain on axes of a picture: numbers, dates, bins of unequal width, labels."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from sfumato.basics.numbers import Array
from sfumato.charts.style import plain, short, thin
from sfumato.domain.lattice import BinnedCells, EdgesAxis, GridAxis, LatticeAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar
    from matplotlib.colors import LogNorm

NEARLY = 1e-6
DECADES = 100.0  # ratio of values from which a logarithmic axis shows more than an even one
FEW_BINS = 8  # bins up to which each has its name beside it
OPEN = "…"  # at the outer edge of a bin that also holds what lies beyond
BEYOND = "The bins at the ends also hold what lies beyond them."


def value_axis(which: Axis, axis: LatticeAxis) -> None:
    """Place the ticks of an axis of values: at dates, or at whole numbers such as years."""
    if axis.time is not None:
        _date_axis(which)
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
    least, most = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return float(least.min(initial=np.inf)), float(most.max(initial=0))


def log_axis(ax: Axes, low: float, high: float) -> None:
    """Make the axis that runs right logarithmic, and say so in its label."""
    ax.set_xscale("log")
    ax.set_xlim(low / 1.2, high * 1.2)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > DECADES**2 * low else (1.0, 3.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_label_text(f"{ax.get_xlabel()} (logarithmic scale)", parse_math=False)


def log_ticks(bar: Colorbar, norm: LogNorm, narrow: bool) -> None:
    """A few round numbers on a logarithmic colour bar."""
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


def _date_axis(axis: Axis) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=dt.UTC, minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator, tz=dt.UTC))


def edges_of(axis: LatticeAxis) -> Array | None:
    """Edges of bins of equal width, as positions.

    None for labels and for bins of unequal width, which get equal slots.
    """
    edges = positions_of(axis)
    if edges is None:
        return None
    widths = np.diff(edges)
    return edges if np.ptp(widths) <= NEARLY * widths.max() else None


def positions_of(axis: LatticeAxis) -> Array | None:
    """Edges of an axis of bins, of whatever width, as positions; None for labels.

    A bin of one whole number lies around its number, so that the tick stands at its middle.
    """
    if not axis.has_edges:
        return None
    edges = axis.scale.positions(axis.edges())
    return edges - 0.5 if _has_single_numbers(axis) else edges


def _has_single_numbers(axis: LatticeAxis) -> bool:
    """Whether each bin holds one whole number alone."""
    if not isinstance(axis, GridAxis) or not axis.whole_names():
        return False
    lowest, highest = axis.extremes()
    return bool((lowest == highest).all())


def name_of(axis: LatticeAxis) -> str:
    """The axis' name, and a word where the picture does not keep its scale."""
    return plain(axis.name, 40) + (
        " (bins of unequal width)" if axis.has_edges and edges_of(axis) is None else ""
    )


def edge_labels(axis: LatticeAxis) -> list[str]:
    """Edges of bins as text, for equal slots.

    The outer ones are open, since the bins there also hold what lies beyond.
    """
    edges = _edge_texts(axis)
    return [OPEN, *edges[1:-1], OPEN] if edges else []


def _edge_texts(axis: LatticeAxis) -> list[str]:
    return axis.scale.picture_text(axis.edges()) if axis.has_edges else []


def cell_labels(axis: LatticeAxis, longest: int = 28) -> list[str]:
    """Names of cells as text: labels, numbers or "a to b"; the ends are "b and above"."""
    if isinstance(axis, BinnedCells):
        whole = axis.whole_names()
        if axis.kind == "number":
            whole = [name.replace("-", "−") for name in whole]
        return whole or axis.scale.bin_names(_edge_texts(axis))
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
    if axis.size > FEW_BINS and _has_single_numbers(axis):
        first, *between, last = axis.scale.picture_text(axis.edges()[:-1])
        return [f"≤{first}", *between, f"≥{last}"]
    return cell_labels(axis) if names_bins(axis) else edge_labels(axis)


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
