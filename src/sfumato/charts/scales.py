"""Axes of a domain on axes of a picture: numbers, dates, bins of unequal width, labels."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np

from sfumato.charts.style import plain, thin
from sfumato.domain import LabelAxis, LatticeAxis, Time

DAY = 86_400e6  # microseconds
NEARLY = 1e-6


def positions(numbers: np.ndarray, time: Time | None) -> np.ndarray:
    """Where numbers of a domain lie on a picture's axis; dates and times count days since 1970 there."""
    return numbers / DAY if time == "microsecond" else numbers


def date_axis(axis: Any, time: Time | None) -> None:
    """Label an axis by dates, where its numbers count time."""
    if time is None:
        return
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=dt.UTC, minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator, tz=dt.UTC))  # type: ignore[no-untyped-call]


def edges_of(axis: LatticeAxis) -> np.ndarray | None:
    """Edges of an axis of bins of equal width, as positions; None for labels and for unequal bins, which get equal slots."""
    if isinstance(axis, LabelAxis):
        return None
    edges = positions(axis.edges(), axis.time)
    widths = np.diff(edges)
    return edges if np.ptp(widths) <= NEARLY * widths.max() else None


def positions_of(axis: LatticeAxis) -> np.ndarray | None:
    """Edges of an axis of bins, of whatever width, as positions; None for labels."""
    return None if isinstance(axis, LabelAxis) else positions(axis.edges(), axis.time)


def is_interval(axis: LatticeAxis) -> bool:
    """Whether the axis has an order and edges."""
    return not isinstance(axis, LabelAxis)


def name_of(axis: LatticeAxis) -> str:
    """The axis' name, and a word where the picture does not keep its scale."""
    return plain(axis.name, 40) + (" (bins of unequal width)" if is_interval(axis) and edges_of(axis) is None else "")


def edge_labels(axis: LatticeAxis) -> list[str]:
    """Edges of bins as text, for equal slots."""
    if isinstance(axis, LabelAxis):
        return []
    edges = axis.edges()
    if axis.time is None:
        return [f"{edge:g}".replace("-", "−") for edge in edges]
    return [str(moment) for moment in edges.astype("int64").astype("datetime64[D]" if axis.time == "day" else "datetime64[m]")]


def cell_labels(axis: LatticeAxis, longest: int = 28) -> list[str]:
    """Names of cells as text: labels, or "a to b"."""
    if isinstance(axis, LabelAxis):
        return [plain(label, longest) for label in axis.labels]
    edges = edge_labels(axis)
    return [f"{a} to {b}" for a, b in itertools.pairwise(edges)]


def tick_labels(axis: LatticeAxis) -> list[str]:
    """What stands at the ticks: names of cells, or the edges between them."""
    return cell_labels(axis) if isinstance(axis, LabelAxis) else edge_labels(axis)


def time_of(axis: LatticeAxis) -> Time | None:
    """What the axis' numbers count, where it is one of dates or times."""
    return None if isinstance(axis, LabelAxis) else axis.time


def slots(which: Any, axis: LatticeAxis, most: int, starts: np.ndarray | None = None, **style: Any) -> None:
    """Tick an axis whose cells stand in equal slots 0, 1, 2, ...: labels at their middle, edges between them.

    Parameters
    ----------
    which : XAxis or YAxis of matplotlib
    axis : LatticeAxis
    most : int
        How many ticks there is room for.
    starts : int64 ndarray or None
        The first cell of each slot, where neighbours were added up.
    """
    starts = np.arange(axis.size) if starts is None else starts
    labels, shift = tick_labels(axis), 0.0 if isinstance(axis, LabelAxis) else -0.5
    ends = starts if isinstance(axis, LabelAxis) else np.append(starts, axis.size)
    shown = thin(len(ends), most)
    which.set_ticks(shown + shift, labels=[labels[ends[i]] for i in shown], parse_math=False, **style)
