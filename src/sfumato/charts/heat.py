"""Pictures of counts over two axes: darker where there are more rows.

Each cell holds its number where it fits.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from sfumato.basics import Array, number
from sfumato.charts import scales, style
from sfumato.charts.scales import Table, merge
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import MUTED, SEQUENTIAL
from sfumato.domain import LatticeAxis
from sfumato.mechanisms import CountLaw
from sfumato.privacy import Guarantee

MOST_SLOTS = 200  # per axis; beyond, neighbours are added up
MOST_NUMBERS = 900  # cells of a table that holds its numbers
DIGIT = 6.5  # pixels that a digit of a cell's number takes


def draw(
    table: Table,
    axes: tuple[LatticeAxis, ...],
    law: CountLaw | None,
    ax: Axes | None,
    note: str,
    guarantee: Guarantee,
    what: str = "count",
) -> Axes:
    """Draw counts over two axes, the second one to the right.

    The first one runs down, or up where it has a scale.
    """
    starts = tuple(style.thin(axis.size, MOST_SLOTS) for axis in axes)
    table = merge(table, starts, law)
    rows, columns = table.values.shape
    note = _note(table, axes, starts, note, guarantee)
    # On a phone the note has more lines, and the colour bar lies below.
    above = (140 if is_narrow(ax) else 0) + style.room_for(note, ax)
    ax = style.axes_on(ax, above + int(np.clip(150 + rows * 24, 260, 720)))
    norm = _norm(table)
    style.unseen(ax)
    # A shade for a count that may well be 0 would show noise as if it were data.
    image = ax.imshow(
        np.where(table.low > 0, table.values, np.nan),
        cmap=SEQUENTIAL,
        norm=norm,
        aspect="auto",
        interpolation="none",
        origin="lower" if axes[0].has_edges else "upper",
    )
    _tick(ax, axes, starts)
    if _fits(table, _plot_width(ax, axes[0]) / columns):
        _numbers(ax, table, norm)
    keys = scales.shade_keys(ax, image, what, style.hatched_key(), guarantee)
    style.legend(ax, keys, note)
    return ax


def _note(
    table: Table,
    axes: tuple[LatticeAxis, ...],
    starts: tuple[Array, ...],
    note: str,
    guarantee: Guarantee,
) -> str:
    """Return what is said above the shades: what they do not show, and what was added up."""
    is_merged = table.values.size < axes[0].size * axes[1].size
    counted = "persons" if guarantee.unit.counts_persons else "rows"
    are_named = (scales.names_bins(axis, len(at)) for axis, at in zip(axes, starts, strict=True))
    single = number(np.ceil(table.half.max()))
    every = number(np.ceil(table.half_all.max()))
    # What the shades do not show: how far off each number may be.
    reach = (
        f"each count is within ±{single} of the truth with 95% confidence; "
        f"all {table.values.size:,} at once within ±{every}."
    )
    said = (
        note,
        "Neighbouring cells are drawn as their mean." if is_merged else "",
        f"Of the {counted} counted, {reach}",
        scales.limit_note(guarantee),
        "" if all(are_named) else scales.BEYOND,
    )
    return " ".join(filter(None, said))


def _fits(table: Table, slot: float) -> bool:
    """Return whether each count can be written into its cell, so many pixels wide."""
    if table.values.size > MOST_NUMBERS:
        return False
    return slot >= 4 + DIGIT * max(len(number(count)) for count in table.values.flat)


def _norm(table: Table) -> Normalize:
    """Return a scale from 0, or a logarithmic one where the counts that are shaded span decades."""
    # Counts that are shaded are above 0, so they have a logarithm; noisy counts may be negative.
    shaded = table.values[table.low > 0]
    low, high = scales.reach_of(shaded, table.values)
    return LogNorm(low, high) if scales.spans_decades(low, high) else Normalize(0, max(1.0, high))


def _plot_width(ax: Axes, rows: LatticeAxis) -> float:
    """About how many pixels are left for the cells."""
    return style.width_of(ax) - scales.widest_tick(rows) - (60 if is_narrow(ax) else 140)


def _tick(ax: Axes, axes: tuple[LatticeAxis, ...], starts: tuple[Array, ...]) -> None:
    down, right = axes
    room = _plot_width(ax, down)
    longest = scales.widest_tick(right) + 8
    slots = len(starts[1])
    turned = scales.names_bins(right, slots) and longest > room / slots
    most = int(room // (15 if turned else longest))
    scales.slots(ax.xaxis, right, most, starts[1], 45 if turned else 0)
    scales.slots(ax.yaxis, down, int((style.height_of(ax) - 120) // 15), starts[0])
    name = scales.name_of(right)
    if len(name) * scales.LETTER > room:
        name = name.replace(" (bins", "\n(bins")
    ax.set_xlabel(name, parse_math=False)
    ax.set_ylabel(scales.name_of(down), parse_math=False)
    ax.grid(visible=False)
    ax.margins(0)
    ax.tick_params(length=2.5)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _numbers(ax: Axes, table: Table, norm: Normalize) -> None:
    colours = np.asarray(mpl.colormaps[SEQUENTIAL](norm(table.values)))
    for (row, column), value in np.ndenumerate(table.values):
        ink = style.text_on(colours[row, column, :3]) if table.low[row, column] > 0 else MUTED
        ax.text(column, row, number(value), color=ink, ha="center", va="center", fontsize=7.3)
