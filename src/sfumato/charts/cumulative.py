"""Pictures of running totals: steps with the band of their intervals, and the wider one of all."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from sfumato.answers import Estimate
from sfumato.basics import Array, plain
from sfumato.charts import scales, style
from sfumato.charts.scales import counts_of, limit_note
from sfumato.charts.vector import SERIES
from sfumato.domain import BinsAndMissing, LabelAxis, LatticeAxis
from sfumato.questions.histogram.release import CountsTable

FEW = 6  # lines that can be told apart by colour
MOST_STEPS = 400  # beyond, some of the totals are left out


@style.of_release
def draw(release: CountsTable, ax: Axes | None) -> Axes:
    """Draw running totals along the Interval axis, one line for each cell of a short other axis."""
    people = release.for_people()
    axes = people.lattice.axes
    along = next(i for i, axis in enumerate(axes) if not isinstance(axis, LabelAxis))
    main = axes[along]
    values, low, high = _ends(people.cumulative(main.name), along)
    _, low_all, high_all = _ends(people.cumulative(main.name, simultaneous=True), along)
    names, places, left_out = _lines(axes[:along] + axes[along + 1 :])
    ax = style.axes_on(ax, 380, 300)
    if isinstance(main, BinsAndMissing):
        # Cells of missing values are no part of the scale.
        main = main.bins
    edges, kept = _edges(main)
    for place, colour in zip(places, SERIES, strict=False):
        if not names:
            _band(ax, edges, low_all[place][kept], high_all[place][kept], colour, 0.14)
        _band(ax, edges, low[place][kept], high[place][kept], colour, 0.26)
        ax.stairs(values[place][kept], edges, baseline=None, color=colour, linewidth=1.3, zorder=2)
    style.stand_on_zero(ax, edges, f"{counts_of(people.guarantee.unit)}, up to here")
    ax.set_xlabel(scales.name_of(main), parse_math=False)
    style.count_axis(ax.yaxis)
    if scales.edges_of(main) is None:
        scales.slots(ax.xaxis, main, int((style.width_of(ax) - 70) // 60))
    else:
        scales.value_axis(ax.xaxis, main)
    note = f"{left_out} {limit_note(people.guarantee)}".strip()
    at_once = f"95% for all {values.size:,} at once"
    keys = style.band_keys("95% interval of each total", at_once, names)
    style.legend(ax, keys, note, columns=4 if names else 2)
    return ax


def _ends(estimate: Estimate, along: int) -> tuple[Array, Array, Array]:
    """Return the totals and the ends of their intervals, the axis of the totals last."""
    numbers = np.array([estimate.value, estimate.low, estimate.high])
    value, low, high = np.moveaxis(numbers, along + 1, -1)
    return value, low, high


def _lines(others: tuple[LatticeAxis, ...]) -> tuple[list[str], list[tuple[int, ...]], str]:
    """Return which lines are drawn, and their names: all of one short axis, else the first ones."""
    if not others:
        return [], [()], ""
    places = list(np.ndindex(*(axis.size for axis in others)))
    labels = [[plain(name, 20) for name in axis.cell_names()] for axis in others]
    names = [
        ", ".join(of_axis[i] for of_axis, i in zip(labels, place, strict=True)) for place in places
    ]
    left_out = ""
    if len(places) > FEW:
        left_out = f"The first {FEW} of {len(places):,} lines."
    return names[:FEW], places[:FEW], left_out


def _edges(axis: LatticeAxis) -> tuple[Array, Array]:
    """Return where the steps lie, and which of the totals are drawn."""
    positions = scales.edges_of(axis)
    edges = np.arange(axis.size + 1) - 0.5 if positions is None else positions
    every = -(-axis.size // MOST_STEPS)
    # The last total of each run is that of its upper edge.
    last = axis.size - 1
    kept = np.unique(np.append(np.arange(every - 1, axis.size, every), last))
    return np.append(edges[0], edges[kept + 1]), kept


def _band(ax: Axes, edges: Array, low: Array, high: Array, colour: str, shade: float) -> None:
    ax.stairs(
        high, edges, baseline=low, fill=True, facecolor=colour, alpha=shade, linewidth=0, zorder=1.5
    )
