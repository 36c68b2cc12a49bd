"""Axes of a domain on axes of a picture: numbers, dates, bins of unequal width, labels."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from matplotlib.ticker import MaxNLocator

from sfumato.arrays import Array
from sfumato.charts.style import plain, thin
from sfumato.lattice import EdgesAxis, GridAxis, LatticeAxis

if TYPE_CHECKING:
    from matplotlib.axis import Axis

NEARLY = 1e-6
FEW_BINS = 8  # bins up to which each has its name beside it
OPEN = "…"  # at the outer edge of a bin that also holds what lies beyond
BEYOND = "The bins at the ends also hold what lies beyond them."


def value_axis(which: Axis, axis: LatticeAxis) -> None:
    """Place the ticks of an axis of values: at dates, or at whole numbers such as years."""
    if axis.time is not None:
        _date_axis(which)
    elif isinstance(axis, GridAxis | EdgesAxis) and float(axis.step or 0.5).is_integer():
        which.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


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
    """Edges of an axis of bins, of whatever width, as positions; None for labels."""
    return axis.scale.positions(axis.edges()) if axis.has_edges else None


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
    """Names of cells as text: labels, or "a to b"; "below a" and "b and above" at the ends."""
    if axis.has_edges:
        return axis.scale.bin_names(_edge_texts(axis))
    return [plain(label, longest) for label in axis.cell_names()]


def names_bins(axis: LatticeAxis) -> bool:
    """Whether ticks name the cells; else they stand at the edges between bins.

    They name labels, and bins where these are few.
    """
    return not axis.has_edges or axis.size <= FEW_BINS


def tick_labels(axis: LatticeAxis) -> list[str]:
    """What stands at the ticks: names of cells, or the edges between them."""
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
    named = names_bins(axis)
    labels = tick_labels(axis)
    shift = 0.0 if named else -0.5
    ends = starts if named else np.append(starts, axis.size)
    shown = thin(len(ends), most)
    which.set_ticks(
        shown + shift, labels=[labels[ends[i]] for i in shown], parse_math=False, **turned(angle)
    )
