"""Pictures of means, sums and variances: a point and its interval for each group."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sfumato.arrays import Array
from sfumato.charts import style
from sfumato.charts.reduce import limit_note
from sfumato.privacy.guarantee import Guarantee

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
        _hatch(ax, at[~known])
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
        _dress(ax, names, release.title.partition(" by ")[0])
        style.legend(ax, _keys(known), _note(release, len(release.group_names)), columns=2)
        return ax


def _hatch(ax: Axes, rows: Array) -> None:
    """Mark the rows of groups of which nothing is known."""
    for row in rows.tolist():
        ax.axhspan(
            row - 0.32,
            row + 0.32,
            facecolor=style.UNKNOWN,
            edgecolor=style.UNKNOWN_HATCH,
            hatch="////",
            linewidth=0,
            zorder=0.5,
        )


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
    said = (cut, chosen if groups > 1 else "", limit_note(release.guarantee, "Rows"))
    return " ".join(part for part in said if part)


def _dress(ax: Axes, names: list[str], what: str) -> None:
    ax.set_yticks(np.arange(len(names)), labels=names, parse_math=False)
    ax.set(ylim=(len(names) - 0.5, -0.5))
    ax.set_xlabel(style.plain(what, 60), parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
