"""Pictures of a window: error and risk along the cost, each as a share of what is allowed."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from sfumato.charts import style
from sfumato.risk.window import Window

MOST = 5  # questions that can be told apart beside the risk
RISK = style.SERIES[1]
COLOURS = (style.SERIES[0], *style.SERIES[2:])
TALLEST = 1000.0  # times what is allowed; beyond, curves leave the picture


@style.house()
def draw(window: Window, ax: Axes | None = None) -> Axes:
    """Draw a window: what lies at or below 1 is allowed, and in the band everything does.

    Parameters
    ----------
    window : Window
    ax : matplotlib Axes or None
        None: on a new figure, ``ax.figure``.

    Returns
    -------
    Axes
    """
    ax = ax or style.figure(360)[1]
    keys: list[Artist] = [*_errors(ax, window), _risk(ax, window)]
    ax.axhline(1, color=style.INK, linewidth=1, zorder=1.6)
    colour, hatch = (style.FILL, None) if window.feasible else (style.UNKNOWN, "////")
    band = ax.axvspan(
        *sorted((window.floor, window.ceiling)),
        facecolor=colour,
        hatch=hatch,
        linewidth=0,
        zorder=0.5,
    )
    band.set(
        edgecolor=style.UNKNOWN_HATCH,
        label="the window" if window.feasible else "no window: the floor is above the ceiling",
    )
    keys.append(band)
    ends = zip(
        ("floor", "ceiling"),
        (window.floor, window.ceiling),
        window.ends,
        (COLOURS[0], RISK),
        strict=True,
    )
    for name, level, text, colour in ends:
        ax.axvline(level, color=colour, linestyle="--", linewidth=1, zorder=1.5)
        keys.append(
            Line2D(
                [],
                [],
                color=colour,
                linestyle="--",
                linewidth=1,
                label=f"{name}: {window.kind.letter} {text}",
            )
        )
    _scales(ax, window)
    style.legend(ax, keys, "", columns=1 if style.is_narrow(ax) else 2)
    return ax


def _errors(ax: Axes, window: Window) -> list[Line2D]:
    keys = []
    for i, part in enumerate(window.parts[:MOST]):
        allowed = part.accuracy.half_width
        shares = [width / allowed if width else math.nan for width in part.half_widths]
        name = "error" if len(window.parts) == 1 else f"error of {style.plain(part.question, 28)}"
        keys += ax.plot(
            window.costs, shares, color=COLOURS[i], label=f"{name}, as a share of ±{allowed:,.6g}"
        )
    return keys


def _risk(ax: Axes, window: Window) -> Line2D:
    limit = window.risk.limit
    shares = [risk / limit for risk in window.risks]
    line: Line2D = ax.plot(
        window.costs, shares, color=RISK, label=f"risk, as a share of {limit:.4g}"
    )[0]
    return line


def _scales(ax: Axes, window: Window) -> None:
    lines = [
        float(y)
        for line in ax.get_lines()
        for y in np.asarray(line.get_ydata(), float)
        if math.isfinite(y) and y > 0
    ]
    low = min(lines, default=0.1)
    high = max(lines, default=10.0)
    ax.set(
        xscale="log",
        yscale="log",
        xlim=(window.costs[0], window.costs[-1]),
        ylim=(max(low, 1 / TALLEST) / 1.2, min(high, TALLEST) * 1.2),
    )
    ax.set(xlabel=window.kind.letter, ylabel="times what is allowed")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
