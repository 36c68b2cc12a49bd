"""Pictures of histograms: bars, dots and steps with their error bars, and tables of shades.

Thick lines are the 95% intervals of the counts one by one, thin lines the wider ones that hold all
at once. Negative counts are drawn as they are: they are noise around a small truth, and cutting
them off would bias what one sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import matplotlib as mpl
import msgspec
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D

from sfumato.basics import Array, number, plain
from sfumato.charts import scales, style
from sfumato.charts.scales import (
    Table,
    counts_of,
    limit_note,
    mapped,
    merge,
    sum_out,
)
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import FILL, MARKERS, MUTED, PAPER, SEQUENTIAL, SERIES
from sfumato.domain import BinsAndMissing, LabelAxis, Lattice, LatticeAxis
from sfumato.mechanisms import CountLaw, KeyLaw
from sfumato.privacy import Guarantee
from sfumato.questions.histogram.release import CountsTable
from sfumato.questions.tables.release import TablesRelease

FEW = 6  # series that can be told apart by colour and marker
MOST_BARS = 64  # beyond, steps with a band
MOST_STEPS = 400  # beyond, neighbours are added up
MOST_LABELS = 40  # beyond, the largest only
MOST_ORDERED = 12  # beyond, labels are drawn by size; a few may have an order of their own
MOST_DOTS = 30  # beyond, labels with series are a table of shades
MOST_SLOTS = 200  # of an axis of shades; beyond, neighbours are added up
MOST_NUMBERS = 900  # cells of a table of shades that holds its numbers
DIGIT = 6.5  # pixels that a digit of a cell's number takes
MOST_NAMED = 25  # beyond, bins beside a cell of missing values are drawn without that cell


@style.of_release
def draw(release: CountsTable, ax: Axes | None) -> Axes:
    """Draw a histogram with its error bars."""
    people = release.for_people()
    selection = people.selection  # None: the labels were known beforehand
    axes = people.lattice.axes
    return draw_counts(
        _table(people),
        axes,
        people.noise,
        people.guarantee,
        ax,
        note="" if selection is None else _keys_note(selection, axes),
        keys=selection is not None,
        density=people.even,
    )


def _table(release: CountsTable) -> Table:
    """Take a release as it is: the intervals are its own."""
    values = np.asarray(release.values)
    low, high = release.interval(scales.CONFIDENCE)
    low_all, high_all = release.interval(scales.CONFIDENCE, True)
    ones = np.ones(values.shape, np.int64)
    return Table(
        values, high - values, high_all - values, ones, down=values - low, down_all=values - low_all
    )


def draw_counts(
    table: Table,
    axes: tuple[LatticeAxis, ...],
    law: CountLaw | None,
    guarantee: Guarantee,
    ax: Axes | None,
    note: str = "",
    keys: bool = False,
    density: bool = False,
) -> Axes:
    """Draw counts with error bars along one axis, with a short second one, or as shades."""
    table, axes, left_out = _without_ends(table, axes)
    note = f"{note} {left_out}".strip()
    if len(axes) > 2:
        others = ", ".join(plain(axis.name) for axis in axes[2:])
        note = f"{note} Added up over {others}.".strip()
        table = sum_out(table, (0, 1), law)
        axes = axes[:2]
    what = counts_of(guarantee.unit)
    short = _short_axis(axes) if len(axes) == 2 else None
    if len(axes) == 2 and short is None:
        return draw_shades(table, axes, law, ax, note, guarantee, what)
    note = f"{note} {limit_note(guarantee)}".strip()
    is_cut = bool(guarantee.unit.limits_kept)
    if short is None:
        columns = mapped(table, lambda numbers: numbers.reshape(-1, 1))
        main = axes[0]
        series = None
    else:
        columns = table if short == 1 else mapped(table, np.transpose)
        main = axes[1 - short]
        series = axes[short]
    density = density and series is None
    picture = Picture(main, series, columns, law, note, keys, density, what, is_cut)
    return _bars(picture, ax) if _is_across(main) else _dots(picture, ax)


def _is_across(axis: LatticeAxis) -> bool:
    return axis.has_edges or _runs_on(axis)


def _runs_on(axis: LatticeAxis) -> bool:
    """Return whether labels are fields of the calendar: time runs from left to right."""
    return axis.calendar is not msgspec.UNSET


@dataclass(frozen=True)
class Picture:
    """What is drawn: a row for each cell of ``main``, a column for each cell of ``series``."""

    main: LatticeAxis
    series: LatticeAxis | None
    table: Table
    law: CountLaw | None
    note: str
    keys: bool = False
    density: bool = False
    what: str = "count"
    is_cut: bool = False


def _without_ends(
    table: Table, axes: tuple[LatticeAxis, ...]
) -> tuple[Table, tuple[LatticeAxis, ...], str]:
    """Leave out last cells that are no part of a scale, where there are many cells on it.

    These are the cells of missing values beside bins, and those of missing and other values beside
    fields of the calendar. The note says what is not drawn.
    """
    notes = []
    for at, axis in enumerate(axes):
        scaled = _scaled(axis)
        if scaled is axis:
            continue
        names = [f'"{plain(name)}"' for name in axis.cell_names()[scaled.size :]]
        told = names
        if len(axes) == 1:
            ends = (table.values, table.low, table.high)
            told = [
                f"{name}: " + f"{value:,} ({low:,.0f} to {high:,.0f})".replace("-", "−")
                for name, value, low, high in zip(
                    names, *(end[scaled.size :] for end in ends), strict=True
                )
            ]
        notes.append(f"Not drawn: {plain(axis.name)} {' and '.join(told)}.")
        kept = range(scaled.size)
        table = mapped(table, partial(np.take, indices=kept, axis=at))
        axes = (*axes[:at], scaled, *axes[at + 1 :])
    return table, axes, " ".join(notes)


def _scaled(axis: LatticeAxis) -> LatticeAxis:
    """The cells of an axis that lie on its scale; the axis itself where all of them are drawn."""
    if isinstance(axis, BinsAndMissing):
        return axis.bins if axis.size > MOST_NAMED else axis
    if isinstance(axis, LabelAxis) and _runs_on(axis) and axis.n_listed < axis.size:
        listed = axis.labels[: axis.n_listed]
        return msgspec.structs.replace(axis, labels=listed, other=False, missing=False)
    return axis


def _keys_note(selection: KeyLaw, axes: tuple[LatticeAxis, ...]) -> str:
    if not all(axis.size for axis in axes):
        return f"No {plain(axes[0].name)} had enough rows to be shown."
    return (
        f"A key with {selection.count_kept(0.95):,} rows counted is shown with probability 95%; "
        "one with fewer may be missing."
    )


def _short_axis(axes: tuple[LatticeAxis, ...]) -> int | None:
    """Return which of two axes gets the colours; None where a table of shades is easier to read.

    Labels come before bins, and the second axis before the first.
    """
    short = [i for i in (1, 0) if axes[i].size <= FEW]
    which = min(short, key=lambda i: axes[i].has_edges, default=None)
    if which is None:
        return None
    main = axes[1 - which]
    # Dots of several series beside labels would make a picture of many screens.
    is_crowded = main.size * axes[which].size > MOST_DOTS
    return None if is_crowded and not _is_across(main) else which


# --- along an Interval ----------------------------------------------------------------------------


def _bars(picture: Picture, ax: Axes | None) -> Axes:
    main = picture.main
    room = style.room_for(picture.note, ax)
    ax = style.axes_on(ax, 380 + room, 300 + room)
    starts = style.thin(main.size, MOST_STEPS)
    number = picture.table.values.shape[1]
    table = merge(picture.table, (starts, np.arange(number)), picture.law)
    edges = _main_edges(picture, starts, ax)
    what = picture.what
    if picture.density:
        # Counts of bins, which are means of so many, as rows for each unit of their axis.
        width = np.diff(edges) / np.diff(starts, append=main.size)
        table = mapped(table, lambda numbers: numbers / width[:, None])
        what = f"rows per {scales.step_name(main, 30)}"
    is_dense = len(starts) * number > MOST_BARS * style.width_of(ax) / style.WIDE
    for i in range(number):
        draw_series = _band if is_dense else _bars_or_points
        draw_series(ax, edges, table, i, picture)
    style.stand_on_zero(ax, edges, what)
    if not picture.density:
        style.count_axis(ax.yaxis)
    if picture.series is not None:
        _name_series(ax, picture.series)
    _bar_legend(
        ax, picture, style.interval_keys(table.values.size, is_dense), len(starts), is_dense
    )
    return ax


def _bar_legend(ax: Axes, picture: Picture, keys: list[Artist], slots: int, is_dense: bool) -> None:
    """Say above bars which are merged, which are open at their ends, and what colours mean."""
    main = picture.main
    notes = [picture.note]
    if slots < main.size:
        neighbours = -(-main.size // MOST_STEPS)
        notes.append(f"{main.size:,} bins, drawn as means of {neighbours} neighbours.")
    if scales.edges_of(main) is not None or picture.density or not scales.names_bins(main):
        notes.append(scales.BEYOND)
    if picture.series is not None:
        notes.append(f"Colours: {plain(picture.series.name)}.")
        # Several series in bands have the narrow band only.
        keys = keys[:1] if is_dense else keys
    if picture.is_cut:
        keys = [*keys, style.cut_key()]
    style.legend(ax, keys, " ".join(note for note in notes if note))


def _main_edges(picture: Picture, starts: Array, ax: Axes) -> Array:
    """Return where the bins lie along x, and the ticks there."""
    main = picture.main
    edges = scales.positions_of(main) if picture.density else scales.edges_of(main)
    if edges is not None:
        scales.value_axis(ax.xaxis, main)
    ax.set_xlabel(scales.name_of(main), parse_math=False)
    if edges is None:
        longest = scales.widest_tick(main) + 8
        room = style.width_of(ax) - 70
        turned = scales.names_bins(main) and longest > room / len(starts) and not _runs_on(main)
        least = 95 if main.time else 30 if _runs_on(main) else 60
        apart = 20 if turned else max(longest, least)
        scales.slots(ax.xaxis, main, int(room // apart), starts, 30 if turned else 0)
        return np.arange(len(starts) + 1) - 0.5
    return np.append(edges[starts], edges[-1])


def _bars_or_points(ax: Axes, edges: Array, table: Table, i: int, picture: Picture) -> None:
    """Draw bars of one series, a line along the calendar, or points side by side."""
    values = table.values[:, i]
    number = table.values.shape[1]
    middle = (edges[:-1] + edges[1:]) / 2 + _dodge(i, number, 0.7) * np.diff(edges)
    if scales.is_continuous(picture.main):
        ax.plot(middle, values, color=SERIES[i], linewidth=1.3, zorder=1.8)
    elif number == 1 and not _runs_on(picture.main):
        ax.stairs(values, edges, fill=True, facecolor=FILL, zorder=1.5)
    _with_errors(ax, middle, table, i, is_upright=True, is_cut=picture.is_cut)


def _with_errors(
    ax: Axes,
    at: Array,
    table: Table,
    series: int,
    *,
    is_upright: bool,
    is_cut: bool,
) -> None:
    """Draw numbers as dots with both of their intervals, which run upwards or to the right."""
    lines = ax.vlines if is_upright else ax.hlines
    colour = SERIES[series]
    parts = (table.values, table.low, table.high, table.low_all, table.high_all)
    values, low, high, low_all, high_all = (part[:, series] for part in parts)
    lines(at, low_all, high_all, color=colour, linewidth=0.8, label="_simultaneous", zorder=2)
    lines(at, low, high, color=colour, linewidth=2.2, label="_individual", zorder=2.1)
    if is_cut:
        across, up = (at, high_all) if is_upright else (high_all, at)
        style.mark_cut(ax, across, up, colour, "^" if is_upright else ">")
    places = (at, values) if is_upright else (values, at)
    (dots,) = ax.plot(*places, MARKERS[series], color=colour)
    dots.set(markersize=4.6 if is_upright else 5, zorder=2.2)
    dots.set(markeredgecolor=PAPER, markeredgewidth=0.7)


def _band(ax: Axes, edges: Array, table: Table, i: int, picture: Picture) -> None:
    """Steps with bands; several series get the narrow band only, or nothing could be told apart."""
    values = table.values[:, i]
    half = table.half[:, i]
    half_all = table.half_all[:, i] if table.values.shape[1] == 1 else None
    style.steps(ax, edges, values, half=half, half_all=half_all, colour=SERIES[i])
    if picture.is_cut:
        at = style.cut_places(len(edges) - 1)
        high = values + (half if half_all is None else half_all)
        middle = (edges[at] + edges[at + 1]) / 2
        style.mark_cut(ax, middle, high[at], SERIES[i])


def _dodge(series: int, number: int, room: float) -> float:
    return 0.0 if number == 1 else room * (series / (number - 1) - 0.5) * min(1, number / 4)


def _name_series(ax: Axes, series: LatticeAxis) -> None:
    """Name the series beside the picture, in their own order from the top down."""
    line = 16 / (style.height_of(ax) * 0.72)
    labels = scales.cell_labels(series, 14 if is_narrow(ax) else style.LONGEST_LABEL)
    for i, label in enumerate(labels):
        y = 0.97 - i * line
        colour = SERIES[i]
        (mark,) = ax.plot([1.02], [y], MARKERS[i], color=colour, transform=ax.transAxes)
        mark.set(markersize=5, clip_on=False)
        name = ax.annotate(
            label, (1.02, y), (6, 0), xycoords="axes fraction", textcoords="offset points"
        )
        name.set(color=colour, parse_math=False, va="center", annotation_clip=False)


# --- along Categories -----------------------------------------------------------------------------


def _dots(picture: Picture, ax: Axes | None) -> Axes:
    main = picture.main
    table = picture.table
    note = picture.note
    labels = scales.cell_labels(main, 18 if is_narrow(ax) else style.LONGEST_LABEL)
    if _goes_by_size(picture):
        totals = table.values.sum(axis=1)
        kept = np.argsort(-totals, kind="stable")[:MOST_LABELS]
        labels = [labels[i] for i in kept]
        table = mapped(table, lambda x: x[kept])
        note = f"{note} The largest come first.".strip()
    rows, number = table.values.shape
    folded = main.size - rows
    # On a phone the note above has more lines.
    above = (158 if is_narrow(ax) else 118) + style.room_for(note, ax)
    # The mark of what is cut has a line of its own in the legend.
    above += style.NOTE_LINE if picture.is_cut else 0
    row = max(24, 13 * number + 6)
    n_lines = rows + bool(folded)
    ax = style.axes_on(ax, above + n_lines * row)
    for i in range(number):
        at = np.arange(rows, dtype=float) + _dodge(i, number, 0.68)
        _with_errors(ax, at, table, i, is_upright=False, is_cut=picture.is_cut)
    # A row without a dot: their counts are in the table.
    style.name_rows(ax, [*labels, f"and {folded:,} more"] if folded else labels, picture.what)
    ax.set_ylabel(plain(main.name, 40), parse_math=False)
    high_all = table.values + table.half_all
    low, high = scales.reach_of(table.low_all, high_all)
    if scales.spans_decades(low, high):
        scales.log_axis(ax, low, high)
    else:
        style.count_axis(ax.xaxis)
        ax.axvline(0, color=MUTED, linewidth=0.8, zorder=1)
    _dot_legend(ax, picture, note)
    return ax


def _goes_by_size(picture: Picture) -> bool:
    """Return whether labels are drawn by size.

    Not where they have an order: numbers, fields of the calendar, and the few labels of a domain.
    """
    main = picture.main
    if main.size > MOST_LABELS:
        return True
    if not isinstance(main, LabelAxis) or main.calendar is not msgspec.UNSET:
        return False
    are_texts = all(isinstance(label, str) for label in main.labels)
    return are_texts and (picture.keys or main.size > MOST_ORDERED)


def _dot_legend(ax: Axes, picture: Picture, note: str) -> None:
    keys = style.interval_keys(picture.table.values.size, False)
    series = picture.series
    if series is not None:
        looks = zip(MARKERS, SERIES, scales.cell_labels(series, 20), strict=False)
        keys = [
            Line2D([], [], marker=marker, color=colour, label=name, linestyle="", markersize=6)
            for marker, colour, name in looks
        ] + keys
        note = f"{note} Colours: {plain(series.name)}.".strip()
    keys += [style.cut_key(">")] if picture.is_cut else []
    style.legend(ax, keys, note, columns=4 if series is not None else 2)


# --- tables of shades -----------------------------------------------------------------------------


def draw_shades(
    table: Table,
    axes: tuple[LatticeAxis, ...],
    law: CountLaw | None,
    ax: Axes | None,
    note: str,
    guarantee: Guarantee,
    what: str,
) -> Axes:
    """Draw counts over two axes, the second one to the right.

    The first one runs down, or up where it has a scale.
    """
    starts = tuple(style.thin(axis.size, MOST_SLOTS) for axis in axes)
    table = merge(table, starts, law)
    rows, columns = table.values.shape
    note = _shades_note(table, axes, starts, note, guarantee)
    # On a phone the note has more lines, and the colour bar lies below.
    above = (140 if is_narrow(ax) else 0) + style.room_for(note, ax)
    ax = style.axes_on(ax, above + int(np.clip(150 + rows * 24, 260, 720)))
    norm = _shades_norm(table)
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
    _shades_ticks(ax, axes, starts)
    if _numbers_fit(table, _plot_width(ax, axes[0]) / columns):
        _numbers(ax, table, norm)
    keys = scales.shade_keys(ax, image, what, style.hatched_key(), guarantee)
    style.legend(ax, keys, note)
    return ax


def _shades_note(
    table: Table,
    axes: tuple[LatticeAxis, ...],
    starts: tuple[Array, ...],
    note: str,
    guarantee: Guarantee,
) -> str:
    """Return what is said above the shades: what they do not show, and what was added up."""
    n_cells = axes[0].size * axes[1].size
    is_merged = table.values.size < n_cells
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
        limit_note(guarantee),
        "" if all(are_named) else scales.BEYOND,
    )
    return " ".join(filter(None, said))


def _numbers_fit(table: Table, slot: float) -> bool:
    """Return whether each count can be written into its cell, so many pixels wide."""
    if table.values.size > MOST_NUMBERS:
        return False
    return slot >= 4 + DIGIT * max(len(number(count)) for count in table.values.flat)


def _shades_norm(table: Table) -> Normalize:
    """Return a scale from 0, or a logarithmic one where the counts that are shaded span decades."""
    # Counts that are shaded are above 0, so they have a logarithm; noisy counts may be negative.
    shaded = table.values[table.low > 0]
    low, high = scales.reach_of(shaded, table.values)
    return LogNorm(low, high) if scales.spans_decades(low, high) else Normalize(0, max(1.0, high))


def _plot_width(ax: Axes, rows: LatticeAxis) -> float:
    """About how many pixels are left for the cells."""
    beside = 60 if is_narrow(ax) else 140
    return style.width_of(ax) - scales.widest_tick(rows) - beside


def _shades_ticks(ax: Axes, axes: tuple[LatticeAxis, ...], starts: tuple[Array, ...]) -> None:
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


# --- tables that add up ---------------------------------------------------------------------------


@style.of_release
def draw_family(release: TablesRelease, ax: Axes | None) -> Axes:
    """Draw tables of at most two axes, as bars with error bars or a table of shades.

    Of the family, each table has a panel of its own on a new figure. On Axes that are given, the
    first table is drawn.
    """
    people = release.for_people()
    shown = people.tables if people.shown is msgspec.UNSET else (people.shown,)
    tables = [people[names[:2]] for names in shown]
    if ax is not None or len(tables) == 1:
        return _family_panel(tables[0], ax)
    panels = style.panels(len(tables), None, 320)
    for table, panel in zip(tables, panels, strict=True):
        _family_panel(table, panel)
    return panels[0]


def _family_panel(table: TablesRelease, ax: Axes | None) -> Axes:
    """Draw one table. Errors of its cells depend on one another, so that sums have no law."""
    # A total is one cell.
    lattice = table.cells if table.cells.axes else Lattice((LabelAxis("rows", ("all rows",)),))
    values, half, half_all = (
        np.asarray(round_up(numbers).astype(np.int64).reshape(lattice.shape))
        for round_up, numbers in (
            # Truths are whole, so an interval rounded upwards holds around a rounded value.
            (np.rint, table.values),
            (np.ceil, table.accuracy(scales.CONFIDENCE)),
            (np.ceil, table.accuracy(scales.CONFIDENCE, True)),
        )
    )
    cells = Table(values, half, half_all, np.ones_like(values))
    return draw_counts(cells, lattice.axes, None, table.guarantee, ax)
