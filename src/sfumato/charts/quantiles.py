"""Pictures of quantiles: a cumulative curve with a band, or boxes side by side.

A box runs from the first to the third quartile where these were asked for, else over the middle of what was asked; its line is the
median, its whiskers reach the outermost quantiles. All of them are released values: nothing is drawn that was not paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfumato.charts import scales, style
from sfumato.domain import GridAxis

HALF = Fraction(1, 2)
MOST_BOXES = 60


class Answer(Protocol):
    """What a picture needs to know of a release."""

    @property
    def axes(self) -> tuple[GridAxis, ...]: ...
    @property
    def labels(self) -> tuple[Any, ...]: ...
    @property
    def at(self) -> tuple[Any, ...]: ...
    @property
    def table(self) -> np.ndarray: ...
    def accuracy(self, confidence: Any = ..., simultaneous: bool = ...) -> np.ndarray: ...


def draw(release: Answer, ax: Axes | None = None, rows: int | None = None) -> Axes:
    """Draw quantiles of the first axis: boxes where there are labels, else a cumulative curve.

    Parameters
    ----------
    release : QuantilesRelease, or anything with its ``axes``, ``labels``, ``at``, ``table`` and ``accuracy``
    ax : Axes or None
        None: on a new figure, ``ax.figure``.
    rows : int or None
        A public number of rows: then the curve has a band, the 95 % interval of every rank at once.

    Returns
    -------
    Axes
    """
    with style.house():
        note = f"Of {', '.join(axis.name for axis in release.axes)} the first is drawn." if len(release.axes) > 1 else ""
        table = scales.positions(release.table[:, 0], release.axes[0].time)
        if release.labels:
            return _boxes(release, table, ax, note)
        return _curve(release, table[0], ax, rows, note)


def _curve(release: Answer, values: np.ndarray, ax: Axes | None, rows: int | None, note: str) -> Axes:
    """Shares of rows below against values, from the lower to the upper bound of the axis."""
    ax = ax or style.figure(300 if style.is_narrow(ax) else 380)[1]
    axis = release.axes[0]
    ends = scales.positions(np.array([axis.lower, axis.upper]), axis.time)
    shares = np.array([float(q) for q in release.at])
    keys: list[Any] = [Line2D([], [], marker="o", color=style.BASE, label="released quantile", markersize=5)]
    if rows:
        reach = np.asarray(release.accuracy("0.95", True)).reshape(-1)[: len(values)] / rows
        low, high = np.concatenate([[0], shares - reach]), np.concatenate([shares + reach, [1]])
        x = np.concatenate([ends[:1], values, ends[1:]])
        for a, b, bottom, top in zip(x[:-1], x[1:], np.clip(low, 0, 1), np.clip(high, 0, 1), strict=True):
            ax.fill_between([a, b], bottom, top, color=style.BASE, alpha=0.2, linewidth=0)
        keys.append(Patch(facecolor=style.BASE, alpha=0.2, label=f"95 % band of the whole curve, of {style.number(rows)} rows"))
    ax.plot(values, shares, color=style.BASE, linewidth=1.3, zorder=2)
    ax.plot(values, shares, "o", color=style.BASE, markersize=5, markeredgecolor=style.PAPER, markeredgewidth=0.7, zorder=2.2)
    ax.set(ylim=(0, 1), ylabel="share of rows below", xlim=_room(values, ends))
    ax.set_xlabel(style.plain(axis.name, 40), parse_math=False)
    scales.date_axis(ax.xaxis, axis.time)
    style.legend(ax, keys, f"{note} Straight lines between the values are drawn for the eye.".strip(), columns=2)
    return ax


def _room(values: np.ndarray, ends: np.ndarray) -> tuple[float, float]:
    """The values with as much again on either side, within the bounds of the axis."""
    spread = float(values[-1] - values[0]) or float(ends[1] - ends[0])
    return max(float(ends[0]), float(values[0]) - spread), min(float(ends[1]), float(values[-1]) + spread)


def _boxes(release: Answer, table: np.ndarray, ax: Axes | None, note: str) -> Axes:
    """One box per label, in the order of the domain."""
    labels = [style.plain(label, 18 if style.is_narrow(ax) else style.LONGEST_LABEL) for label in release.labels]
    if len(labels) > MOST_BOXES:
        note = f"{note} The first {MOST_BOXES} of {len(labels):,} labels.".strip()
        labels, table = labels[:MOST_BOXES], table[:MOST_BOXES]
    ax = ax or style.figure(118 + max(3, len(labels)) * 30)[1]
    reach = int(np.max(release.accuracy("0.95", True)))
    note = f"{note} Ranks may be off by up to {style.number(reach)} rows (95 %, all at once): labels with few rows show noise only.".strip()
    low, middle, high = _parts(release.at)
    at = np.arange(len(labels), dtype=float)
    ax.hlines(at, table[:, 0], table[:, -1], color=style.BASE, linewidth=1, zorder=2)
    ends = np.concatenate([table[:, 0], table[:, -1]])
    ax.vlines(ends, np.tile(at, 2) - 0.12, np.tile(at, 2) + 0.12, color=style.BASE, linewidth=1, zorder=2)
    ax.barh(at, table[:, high] - table[:, low], 0.5, table[:, low], facecolor=style.FILL, edgecolor=style.BASE, linewidth=1, zorder=2.1)
    keys: list[Any] = [Patch(facecolor=style.FILL, edgecolor=style.BASE, label=f"{_word(release.at[low])} to {_word(release.at[high])}")]
    if middle is not None:
        ax.vlines(table[:, middle], at - 0.25, at + 0.25, color=style.INK, linewidth=2.2, zorder=2.2)
        keys.append(Line2D([], [], color=style.INK, linewidth=2.2, label="median"))
    if low > 0:
        keys.append(Line2D([], [], color=style.BASE, linewidth=1, label=f"{_word(release.at[0])} to {_word(release.at[-1])}"))
    _dress(ax, release.axes[0], labels)
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
    return f"{float(100 * q):.4g} %"
