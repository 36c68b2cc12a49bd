"""Pictures of running totals: steps with the band of their intervals, and the wider one of all."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfumato.answers import Estimate
from sfumato.basics.numbers import Array, Exactly
from sfumato.charts import scales, style
from sfumato.charts.scales import CONFIDENCE, Counted, counts_of, limit_note
from sfumato.domain import BinsAndMissing, LabelAxis, LatticeAxis

FEW = 6  # lines that can be told apart by colour
MOST_STEPS = 400  # beyond, some of the totals are left out


class Cumulated(Counted, Protocol):
    """What a picture of running totals needs to know of a release."""

    def cumulative(
        self, axis: str | None, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> Estimate: ...


def draw(release: Cumulated, ax: Axes | None = None) -> Axes:
    """Draw running totals along the Interval axis, one line for each cell of a short other axis.

    Parameters
    ----------
    release : HistogramRelease
        With one Interval axis.
    ax : matplotlib Axes or None
        None: on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
    """
    axes = release.lattice.axes
    at = next(i for i, axis in enumerate(axes) if not isinstance(axis, LabelAxis))
    totals = release.cumulative(axes[at].name)
    every = release.cumulative(axes[at].name, simultaneous=True)
    lines = [np.moveaxis(np.asarray(x), at, -1) for x in _ends(totals)]
    bands = [np.moveaxis(np.asarray(x), at, -1) for x in _ends(every)]
    names, chosen, left_out = _chosen([axis for i, axis in enumerate(axes) if i != at])
    with style.house():
        ax = ax or style.figure(300 if style.is_narrow(ax) else 380)[1]
        edges, kept = _edges(axes[at])
        for number, place in enumerate(chosen):
            value, low, high = (x[place][kept] for x in lines)
            colour = style.SERIES[number] if names else style.BASE
            if not names:
                low_all, high_all = bands[1][place][kept], bands[2][place][kept]
                _band(ax, edges, low_all, high_all, colour, 0.14)
            _band(ax, edges, low, high, colour, 0.26)
            ax.stairs(value, edges, baseline=None, color=colour, linewidth=1.3, zorder=2)
        _dress(ax, axes[at], edges, counts_of(release.guarantee.unit))
        note = f"{left_out} {limit_note(release.guarantee)}".strip()
        _legend(ax, names, value_count=lines[0].size, note=note)
        return ax


def _ends(estimate: Estimate) -> tuple[Array, Array, Array]:
    return np.asarray(estimate.value), np.asarray(estimate.low), np.asarray(estimate.high)


def _chosen(others: list[LatticeAxis]) -> tuple[list[str], list[tuple[int, ...]], str]:
    """Which lines are drawn, and their names: all of one short axis, else the first ones."""
    if not others:
        return [], [()], ""
    places = list(np.ndindex(*(axis.size for axis in others)))
    labels = [[style.plain(name, 20) for name in axis.cell_names()] for axis in others]
    names = [
        ", ".join(of_axis[i] for of_axis, i in zip(labels, place, strict=True)) for place in places
    ]
    left_out = ""
    if len(places) > FEW:
        left_out = f"The first {FEW} of {len(places):,} lines."
    return names[:FEW], places[:FEW], left_out


def _edges(axis: LatticeAxis) -> tuple[Array, Array]:
    """Where the steps lie, and which of the totals are drawn."""
    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    positions = scales.edges_of(bins)
    edges = np.arange(bins.size + 1) - 0.5 if positions is None else positions
    every = -(-bins.size // MOST_STEPS)
    # The last total of each run is that of its upper edge.
    kept = np.unique(np.append(np.arange(every - 1, bins.size, every), bins.size - 1))
    return np.append(edges[:1], edges[kept + 1]), kept


def _band(ax: Axes, edges: Array, low: Array, high: Array, colour: str, shade: float) -> None:
    ax.stairs(
        high, edges, baseline=low, fill=True, facecolor=colour, alpha=shade, linewidth=0, zorder=1.5
    )


def _dress(ax: Axes, axis: LatticeAxis, edges: Array, what: str) -> None:
    """Name the axes, and give them their ticks."""
    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    ax.axhline(0, color=style.MUTED, linewidth=0.8, zorder=1)
    ax.set(xlim=(edges[0], edges[-1]))
    ax.set_xlabel(scales.name_of(bins), parse_math=False)
    ax.set_ylabel(f"{what}, up to here", parse_math=False)
    ax.grid(visible=False, axis="x")
    ax.margins(y=0.06)
    ax.autoscale_view(scalex=False)
    style.count_axis(ax.yaxis)
    if scales.edges_of(bins) is None:
        room = int((style.width_of(ax) - 70) // 60)
        scales.slots(ax.xaxis, bins, room, np.arange(bins.size), 0)
        return
    scales.value_axis(ax.xaxis, bins)


def _legend(ax: Axes, names: list[str], value_count: int, note: str) -> None:
    """Name the lines and the bands."""
    each = "95% interval of each total"
    if names:
        keys: list[Line2D | Patch] = [
            Line2D([], [], color=colour, label=name)
            for colour, name in zip(style.SERIES, names, strict=False)
        ]
        keys.append(Patch(facecolor=style.MUTED, alpha=0.3, label=each))
    else:
        keys = [
            Patch(facecolor=style.BASE, alpha=0.4, label=each),
            Patch(facecolor=style.BASE, alpha=0.14, label=f"95% for all {value_count:,} at once"),
        ]
    made = style.legend(ax, keys, note, columns=4 if names else 2)
    for text in made.get_texts():
        text.set_parse_math(False)
