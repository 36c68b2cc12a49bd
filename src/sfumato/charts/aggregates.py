"""Pictures of means, sums and variances: a point and its interval for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sfumato.basics.numbers import Array
from sfumato.charts import scales, style
from sfumato.charts.scales import limit_note
from sfumato.privacy import Guarantee

MOST_GROUPS = 60


class Answer(Protocol):
    """What a picture needs to know of a release."""

    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def title(self) -> str: ...
    @property
    def values(self) -> Array: ...
    @property
    def clips(self) -> Array: ...
    @property
    def of_persons(self) -> bool: ...
    @property
    def group_names(self) -> list[str]: ...
    def drawn(self) -> tuple[Array, Array, Array]: ...


def draw(release: Answer, ax: Axes | None = None) -> Axes:
    """Draw a point and an interval for each group, in the order of the domain.

    A row is hatched where nothing is known, and no point is drawn there.

    Parameters
    ----------
    release : AggregateRelease, or anything with its ``values``, ``group_names`` and ``drawn``
    ax : Axes or None
        None: on a new figure, ``ax.figure``.
    """
    with style.house():
        known, low, high = (np.reshape(each, -1)[:MOST_GROUPS] for each in release.drawn())
        longest = 18 if style.is_narrow(ax) else style.LONGEST_LABEL
        names = [style.plain(name, longest) for name in release.group_names[:MOST_GROUPS]]
        ax = ax or style.figure(118 + max(3, len(names)) * 30)[1]
        at = np.arange(len(names), dtype=float)
        style.hatch_rows(ax, at[~known])
        middle = np.reshape(release.values, -1)[:MOST_GROUPS]
        ax.hlines(at[known], low[known], high[known], color=style.BASE, linewidth=2, zorder=2)
        ax.plot(
            middle[known],
            at[known],
            "o",
            color=style.BASE,
            markersize=6,
            markeredgecolor=style.PAPER,
            markeredgewidth=0.7,
            zorder=2.2,
        )
        asked = release.title.partition(" by ")[0].rstrip(",")
        what, clipped, bound = asked.partition(", each clipped")
        if release.guarantee.unit.person is not None and not release.of_persons:
            # Persons are known, so a reader may wonder which of the two it is.
            what += " over rows"
        what += clipped + bound
        style.name_rows(ax, names, style.plain(what, 60))
        ends = scales.reach_of(low[known], high[known])
        if scales.spans_decades(*ends):
            scales.log_axis(ax, *ends)
        style.legend(ax, _keys(known), _note(release, len(release.group_names)), columns=2)
        return ax


def draw_several(releases: Sequence[Answer]) -> list[Axes]:
    """Draw several values on a new figure, a panel each: their scales differ.

    Parameters
    ----------
    releases : sequence of AggregateRelease
        One for each value, over the same groups.
    """
    with style.house():
        rows = max(3, min(len(releases[0].group_names), MOST_GROUPS))
        fig, first = style.figure(len(releases) * (118 + rows * 30))
        first.remove()
        panels = fig.subplots(
            len(releases), 1, squeeze=False, subplot_kw={"axes_class": style.Picture}
        )
        for at, (one, panel) in enumerate(zip(releases, panels.flat, strict=True)):
            draw(one, panel)
            legend = panel.get_legend()
            # What is said above the first panel holds for all.
            if at and legend is not None and len(legend.legend_handles) == 1:
                legend.remove()
        return list(panels.flat)


def _keys(known: Array) -> list[Artist]:
    keys: list[Artist] = [
        Line2D(
            [],
            [],
            color=style.BASE,
            marker="o",
            linewidth=2,
            label="released, with its 95% interval",
        )
    ]
    if not known.all():
        keys.append(style.unknown_key())
    return keys


def _note(release: Answer, groups: int) -> str:
    """What the picture leaves out, and which rows it is about."""
    cut = f"The first {MOST_GROUPS} of {groups:,} groups." if groups > MOST_GROUPS else ""
    chosen = "Of the intervals shown, on average at most 5% miss."
    said = (
        cut,
        chosen if groups > 1 else "",
        _clips(release),
        limit_note(release.guarantee, "Values"),
    )
    return " ".join(part for part in said if part)


def _clips(release: Answer) -> str:
    """Say that groups do not compare where the values of each are clipped at a bound of its own."""
    clips = release.clips[np.isfinite(release.values)]
    if not clips.size or clips.min() == clips.max():
        return ""
    least, most = clips.min(), clips.max()
    return f"Clipped at {least:,.6g} to {most:,.6g} by group: groups do not compare exactly."
