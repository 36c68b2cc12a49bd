"""Pictures of what epsilon risks: choices by a bound on the risk, and windows with errors too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from sfumato.answers import Panels
from sfumato.basics import Array, plain
from sfumato.charts import style
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import FILL, INK, SERIES, UNKNOWN, UNKNOWN_HATCH
from sfumato.risk import Choice
from sfumato.risk.window import Window


def _level(ax: Axes, level: float, colour: str, label: str) -> Line2D:
    """Mark a level of the cost by a dashed line, which is its own legend entry."""
    return ax.axvline(level, color=colour, linestyle="--", linewidth=1, zorder=1.5, label=label)


# --- choices --------------------------------------------------------------------------------------

TIGHT = SERIES[0]
LOOSE = SERIES[1]


def draw(choice: Choice, ax: Axes | None) -> Axes:
    """Draw the loose and the tight bound against epsilon."""
    axes: Axes = draw_panels([choice], ax)[0]
    return axes


@style.house()
def draw_panels(choices: Sequence[Choice], ax: Panels | None) -> Array:
    """Draw several choices, one panel each; ``ax`` is a sequence of as many Axes, or None."""
    panels = style.panels(len(choices), ax, 310, across=3, margin=30)
    for panel, choice in zip(panels, choices, strict=True):
        _panel(panel, choice)
    return style.PanelArray.of(panels)


def _panel(ax: Axes, choice: Choice) -> None:
    epsilons = choice.epsilons
    keys = ax.plot(epsilons, choice.loose_curve, color=LOOSE, label="loose bound")
    if len(choice.tight_curve):
        label = "tight bound: the worst posterior"
        keys += ax.plot(epsilons, choice.tight_curve, color=TIGHT, label=label)
    label = f"requirement {choice.risk:.3g}"
    keys.append(ax.axhline(choice.risk, color=INK, linewidth=1, label=label))
    for level, colour in ((choice.upper_bound, LOOSE), (choice.epsilon, TIGHT)):
        if math.isfinite(level) and (colour == LOOSE or len(choice.tight_curve)):
            keys.append(_level(ax, level, colour, f"epsilon {level:.4g}"))
    highest = max([choice.risk, *choice.loose_curve, *choice.tight_curve])
    ax.set(xlim=(epsilons[0], epsilons[-1]), ylim=(0, min(1.0, 1.1 * highest)))
    ax.set(xlabel="epsilon", ylabel="risk of disclosure")
    columns = 2 if ax.get_position().width > 0.6 else 1
    style.legend(ax, keys, plain(choice.subject, 60), columns=columns)


# --- windows --------------------------------------------------------------------------------------

MOST = 5  # questions that can be told apart beside the risk
RISK = SERIES[1]
COLOURS = (SERIES[0], *SERIES[2:])
TALLEST = 1000.0  # times what is allowed; beyond, curves leave the picture


@style.house()
def draw_window(window: Window, ax: Axes | None) -> Axes:
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
    ax = style.axes_on(ax, 360)
    keys: list[Artist] = [*_errors(ax, window)]
    limit = window.risk.limit
    shares = [risk / limit for risk in window.risks]
    label = f"risk, as a share of {limit:.4g}"
    keys += ax.plot(window.costs, shares, color=RISK, label=label)
    ax.axhline(1, color=INK, linewidth=1, zorder=1.6)
    low, high = sorted((window.floor, window.ceiling))
    band = ax.axvspan(low, high, linewidth=0, zorder=0.5)
    band.set(edgecolor=UNKNOWN_HATCH)
    if window.feasible:
        band.set(facecolor=FILL, label="the window")
    else:
        label = "no window: the floor is above the ceiling"
        band.set(facecolor=UNKNOWN, hatch="////", label=label)
    keys.append(band)
    levels = (("floor", window.floor, COLOURS[0]), ("ceiling", window.ceiling, RISK))
    for (name, level, colour), text in zip(levels, window.ends, strict=True):
        keys.append(_level(ax, level, colour, f"{name}: {window.kind.letter} {text}"))
    _scales(ax, window)
    style.legend(ax, keys, "", columns=1 if is_narrow(ax) else 2)
    return ax


def _errors(ax: Axes, window: Window) -> list[Line2D]:
    keys = []
    for i, part in enumerate(window.parts[:MOST]):
        allowed = part.accuracy.half_width
        shares = [width / allowed if width else math.nan for width in part.half_widths]
        name = "error" if len(window.parts) == 1 else f"error of {plain(part.question, 28)}"
        label = f"{name}, as a share of ±{allowed:,.6g}"
        keys += ax.plot(window.costs, shares, color=COLOURS[i], label=label)
    return keys


def _scales(ax: Axes, window: Window) -> None:
    drawn = np.concatenate([np.asarray(line.get_ydata(), float) for line in ax.get_lines()])
    heights = drawn[np.isfinite(drawn) & (drawn > 0)].tolist()
    low = min(heights, default=0.1)
    high = max(heights, default=10.0)
    ax.set(xscale="log", yscale="log", xlim=(window.costs[0], window.costs[-1]))
    ax.set(ylim=(max(low, 1 / TALLEST) / 1.2, min(high, TALLEST) * 1.2))
    ax.set(xlabel=window.kind.letter, ylabel="times what is allowed")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
