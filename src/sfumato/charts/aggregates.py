"""Pictures of means, sums and variances: a point and its interval for each group."""

from __future__ import annotations

import msgspec
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sfumato.basics import Array, plain
from sfumato.charts import scales, style
from sfumato.charts.scales import limit_note
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import BASE
from sfumato.domain import LatticeAxis
from sfumato.errors import UsageError
from sfumato.questions.aggregates.release import AggregateRelease

MOST_GROUPS = 60


@style.of_release
def draw(release: AggregateRelease, ax: Axes | None) -> Axes:
    """Draw a point and an interval for each group, in the order of the domain.

    A row is hatched where nothing is known, and no point is drawn there. Several values differ in
    scale, so that each has a panel of its own on a new figure.
    """
    people = release.for_people()
    if len(release.tables) == 1:
        return _panel(people, ax)
    if ax is not None:
        raise UsageError(
            f"a picture of {release.title}",
            "its values differ in scale, and these Axes have one scale",
            f"Draw one value, as in release[{release.names[0]!r}].plot(ax), or give no Axes",
        )
    panels = style.panels(len(people.names), None, _height(people))
    for name, panel in zip(people.names, panels, strict=True):
        _panel(people[name], panel)
    for panel in panels[1:]:
        legend = panel.get_legend()
        # What is said above the first panel holds for all.
        if legend is not None and len(legend.legend_handles) == 1:
            legend.remove()
    return panels[0]


def _height(release: AggregateRelease) -> int:
    return 118 + 30 * max(3, min(len(release.group_names), MOST_GROUPS))


def _panel(release: AggregateRelease, ax: Axes | None) -> Axes:
    """Draw the groups of one value: times from left to right, other groups from the top down."""
    axes = release.lattice.axes
    if len(axes) == 1 and axes[0].calendar is not msgspec.UNSET:
        return _along_time(release, axes[0], ax)
    known, low, high = (np.reshape(ends, -1)[:MOST_GROUPS] for ends in release.drawn())
    longest = 18 if is_narrow(ax) else style.LONGEST_LABEL
    names = [plain(name, longest) for name in release.group_names[:MOST_GROUPS]]
    ax = style.axes_on(ax, _height(release))
    rows = np.arange(len(names), dtype=float)
    style.hatch(ax.axhspan, rows[~known])
    middle = np.reshape(release.values, -1)[:MOST_GROUPS]
    ax.hlines(rows[known], low[known], high[known], color=BASE, linewidth=2, zorder=2)
    style.dots(ax, middle[known], rows[known], size=6)
    if _is_cut(release):
        style.mark_cut(ax, high[known], rows[known], BASE, ">")
    style.name_rows(ax, names, plain(_what(release), 60))
    ends = scales.reach_of(low[known], high[known])
    if scales.spans_decades(*ends):
        scales.log_axis(ax, *ends)
    _legend(ax, release, known, ">")
    return ax


def _along_time(release: AggregateRelease, axis: LatticeAxis, ax: Axes | None) -> Axes:
    """Draw the values of fields of the calendar; they are joined where time is continuous."""
    known, low, high = (np.reshape(ends, -1) for ends in release.drawn())
    ax = style.axes_on(ax, 380, 300)
    at = np.arange(axis.size, dtype=float)
    style.hatch(ax.axvspan, at[~known])
    middle = np.where(known, np.reshape(release.values, -1), np.nan)
    if scales.is_continuous(axis):
        ax.plot(at, middle, color=BASE, linewidth=1.3, zorder=1.8)
    ax.vlines(at[known], low[known], high[known], color=BASE, linewidth=2, zorder=2)
    style.dots(ax, at, middle, size=6)
    if _is_cut(release):
        style.mark_cut(ax, at[known], high[known], BASE)
    longest = scales.widest_tick(axis) + 8
    scales.slots(ax.xaxis, axis, int((style.width_of(ax) - 70) // longest))
    ax.set(xlim=(-0.5, axis.size - 0.5))
    ax.set_xlabel(scales.name_of(axis), parse_math=False)
    ax.set_ylabel(plain(_what(release), 60), parse_math=False)
    ax.grid(visible=False, axis="x")
    _legend(ax, release, known, "^")
    return ax


def _what(release: AggregateRelease) -> str:
    """Return the title without its groups, for the axis of values."""
    title = release.title.partition(" by ")[0].rstrip(",")
    if release.guarantee.unit.person is None or release.of_persons:
        return title
    # Persons are known, so a reader may wonder which of the two it is.
    what, clipped, bound = title.partition(", each clipped")
    return f"{what} over rows{clipped}{bound}"


def _is_cut(release: AggregateRelease) -> bool:
    """Whether it shows totals that a limit on a person's rows may have cut."""
    return "sum" in release.to_frame().column_names and bool(release.guarantee.unit.limits_kept)


def _legend(ax: Axes, release: AggregateRelease, known: Array, mark: str) -> None:
    """Say what dots and marks are, what the picture leaves out, and which rows it is about."""
    label = "released, with its 95% interval"
    keys: list[Artist] = [Line2D([], [], color=BASE, marker="o", linewidth=2, label=label)]
    if not known.all():
        keys.append(style.hatched_key("not known"))
    if _is_cut(release):
        # Sums of values below 0 may be lower without the limit.
        is_positive = all(sums.scale.lower >= 0 for sums in release.tables)
        keys.append(style.cut_key(mark, "higher" if is_positive else "another one"))
    notes = []
    groups = len(release.group_names)
    if groups > MOST_GROUPS:
        notes.append(f"The first {MOST_GROUPS} of {groups:,} groups.")
    if groups > 1:
        notes.append("Of the intervals shown, on average at most 5% miss.")
    clips = release.clips[np.isfinite(release.values)]
    if clips.size and clips.min() != clips.max():
        span = f"{clips.min():,.6g} to {clips.max():,.6g}"
        notes.append(f"Clipped at {span} by group: groups do not compare exactly.")
    notes.append(limit_note(release.guarantee))
    style.legend(ax, keys, " ".join(notes).strip(), columns=2)
