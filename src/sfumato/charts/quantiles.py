"""Pictures of quantiles: a cumulative curve with a band, or boxes side by side.

A box runs from the first to the third quartile where these were asked for, else over the middle of
what was asked; its line is the median, its whiskers reach the outermost quantiles. All of them are
released values: nothing is drawn that was not paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfumato.arrays import Array
from sfumato.charts import scales, style
from sfumato.charts.reduce import limit_note
from sfumato.lattice import GridAxis
from sfumato.numbers import Exactly
from sfumato.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from matplotlib.artist import Artist

HALF = Fraction(1, 2)
MOST_BOXES = 60


class Answer(Protocol):
    """What a picture needs to know of a release."""

    @property
    def axes(self) -> tuple[GridAxis, ...]: ...
    @property
    def labels(self) -> Sequence[object]: ...
    @property
    def at(self) -> Sequence[Fraction]: ...
    @property
    def table(self) -> Array: ...
    @property
    def known(self) -> Array | None: ...
    @property
    def unknowns(self) -> str: ...
    @property
    def guarantee(self) -> Guarantee: ...
    def accuracy(self, confidence: Exactly = ..., simultaneous: bool = ...) -> Array: ...


def draw(release: Answer, ax: Axes | None = None, rows: int | None = None) -> Axes:
    """Draw quantiles of the first axis: boxes where there are labels, else a cumulative curve.

    Parameters
    ----------
    release : QuantilesRelease, or anything that ``Answer`` describes
    ax : Axes or None
        None: on a new figure, ``ax.figure``.
    rows : int or None
        A public number of rows: then the curve has a band, the 95 % interval of every rank at once.

    Returns
    -------
    Axes
    """
    with style.house():
        note = (
            f"Of {', '.join(axis.name for axis in release.axes)} the first is drawn."
            if len(release.axes) > 1
            else ""
        )
        table = release.axes[0].scale.positions(release.table[:, 0])
        if release.labels:
            known = (
                np.ones(table.shape, bool)
                if release.known is None
                else release.known.reshape(release.table.shape)[:, 0]
            )
            return _boxes(release, table, known, ax, note)
        return _curve(release, table[0], ax, rows, note)


def _curve(release: Answer, values: Array, ax: Axes | None, rows: int | None, note: str) -> Axes:
    """Shares of rows below against values, from the lower to the upper bound of the axis."""
    ax = ax or style.figure(300 if style.is_narrow(ax) else 380)[1]
    axis = release.axes[0]
    ends = axis.scale.positions(np.array(axis.ends))
    shares = np.array([float(q) for q in release.at])
    keys: list[Artist] = [
        Line2D([], [], marker="o", color=style.BASE, label="released quantile", markersize=5)
    ]
    if rows:
        reach = np.asarray(release.accuracy("0.95", True)).reshape(-1)[: len(values)] / rows
        low, high = np.concatenate([[0], shares - reach]), np.concatenate([shares + reach, [1]])
        x = np.concatenate([ends[:1], values, ends[1:]])
        for a, b, bottom, top in zip(
            x[:-1], x[1:], np.clip(low, 0, 1), np.clip(high, 0, 1), strict=True
        ):
            ax.fill_between([a, b], bottom, top, color=style.BASE, alpha=0.2, linewidth=0)
        keys.append(
            Patch(
                facecolor=style.BASE,
                alpha=0.2,
                label=f"95% band of the whole curve, of {style.number(rows)} rows",
            )
        )
    ax.plot(values, shares, color=style.BASE, linewidth=1.3, zorder=2)
    ax.plot(
        values,
        shares,
        "o",
        color=style.BASE,
        markersize=5,
        markeredgecolor=style.PAPER,
        markeredgewidth=0.7,
        zorder=2.2,
    )
    ax.set(ylim=(0, 1), ylabel="share of rows below", xlim=_room(values, ends))
    ax.set_xlabel(style.plain(axis.name, 40), parse_math=False)
    scales.date_axis(ax.xaxis, axis.time)
    drawn = "Straight lines between the values are drawn for the eye."
    notes = (note, drawn, limit_note(release.guarantee, "Shares"), release.unknowns)
    style.legend(ax, keys, " ".join(said for said in notes if said), columns=2)
    return ax


def _room(values: Array, ends: Array) -> tuple[float, float]:
    """The values with as much again on either side, within the bounds of the axis."""
    spread = float(values[-1] - values[0]) or float(ends[1] - ends[0])
    return max(float(ends[0]), float(values[0]) - spread), min(
        float(ends[1]), float(values[-1]) + spread
    )


def _boxes(release: Answer, table: Array, known: Array, ax: Axes | None, note: str) -> Axes:
    """Draw one box per label, in the order of the domain.

    A row is hatched where something is not known, and only what is known is drawn.
    """
    labels = [
        style.plain(label, 18 if style.is_narrow(ax) else style.LONGEST_LABEL)
        for label in release.labels
    ]
    if len(labels) > MOST_BOXES:
        note = f"{note} The first {MOST_BOXES} of {len(labels):,} labels.".strip()
        labels, table, known = labels[:MOST_BOXES], table[:MOST_BOXES], known[:MOST_BOXES]
    ax = ax or style.figure(118 + max(3, len(labels)) * 30)[1]
    reach = int(np.max(release.accuracy("0.95", True)))
    ranks = (
        f"Ranks are among {release.guarantee.unit.counted}, "
        f"and off by at most {style.number(reach)} (95%, all at once)."
    )
    note = f"{note} {ranks}".strip()
    low, middle, high = _parts(release.at)
    at, drawn = np.arange(len(labels), dtype=float), np.where(known, table, np.nan)
    for row in np.flatnonzero(~known.all(axis=1)).tolist():
        ax.axhspan(
            row - 0.32,
            row + 0.32,
            facecolor=style.UNKNOWN,
            edgecolor=style.UNKNOWN_HATCH,
            hatch="////",
            linewidth=0,
            zorder=0.5,
        )
    ax.hlines(at, drawn[:, 0], drawn[:, -1], color=style.BASE, linewidth=1, zorder=2)
    ends = np.concatenate([drawn[:, 0], drawn[:, -1]])
    ax.vlines(
        ends, np.tile(at, 2) - 0.12, np.tile(at, 2) + 0.12, color=style.BASE, linewidth=1, zorder=2
    )
    keys: list[Artist] = []
    if high > low:
        ax.barh(
            at,
            drawn[:, high] - drawn[:, low],
            0.5,
            drawn[:, low],
            facecolor=style.FILL,
            edgecolor=style.BASE,
            linewidth=1,
            zorder=2.1,
        )
        keys.append(
            Patch(
                facecolor=style.FILL,
                edgecolor=style.BASE,
                label=f"{_word(release.at[low])} to {_word(release.at[high])}",
            )
        )
    if middle is not None:
        ax.vlines(
            drawn[:, middle], at - 0.25, at + 0.25, color=style.INK, linewidth=2.2, zorder=2.2
        )
        keys.append(Line2D([], [], color=style.INK, linewidth=2.2, label="median"))
    elif high == low:
        keys.append(Line2D([], [], color=style.BASE, linewidth=1, label=_word(release.at[low])))
    if low > 0:
        keys.append(
            Line2D(
                [],
                [],
                color=style.BASE,
                linewidth=1,
                label=f"{_word(release.at[0])} to {_word(release.at[-1])}",
            )
        )
    if not known.all():
        keys.append(style.unknown_key())
    _dress(ax, release.axes[0], labels)
    # A box that begins at the least value drawn shall not touch the frame.
    ax.use_sticky_edges = False
    ax.autoscale_view(scaley=False)
    if not known.any():
        ax.set_xlim(*release.axes[0].scale.positions(np.array(release.axes[0].ends)))
    style.legend(ax, keys, note, columns=3)
    return ax


def _dress(ax: Axes, axis: GridAxis, labels: list[str]) -> None:
    ax.set_yticks(np.arange(len(labels)), labels=labels, parse_math=False)
    ax.set(ylim=(len(labels) - 0.5, -0.5))
    ax.set_xlabel(style.plain(axis.name, 40), parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    scales.date_axis(ax.xaxis, axis.time)


def _parts(at: Sequence[Fraction]) -> tuple[int, int | None, int]:
    """Which quantiles end the box, and which is the median."""
    quarters = [at.index(q) for q in (HALF / 2, 3 * HALF / 2) if q in at]
    low, high = quarters if len(quarters) == 2 else (len(at) // 4, len(at) - 1 - len(at) // 4)
    return low, at.index(HALF) if HALF in at else None, high


def _word(q: Fraction) -> str:
    return f"{float(100 * q):.4g}%"
