"""Pictures of error over time: how far a running total is off, for several methods at one cost."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from sfumato.basics.numbers import Array
from sfumato.charts import style
from sfumato.errors import UsageError

POINTS = 300


def draw_errors(
    deviations: Mapping[str, Array],
    ax: Axes | None = None,
    *,
    unit: str = "standard deviation of the total",
) -> Axes:
    """Draw the standard deviation of a running total at each step, one line for each method.

    The axis of steps is logarithmic.

    Parameters
    ----------
    deviations : dict of float ndarrays of shape (steps,), by label
        At most six, all of one length. Long ones are thinned to the largest and the least value of
        each stretch.
    ax : Axes, optional
        None: on a new figure, ``ax.figure``.
    unit : str
        What the vertical axis says.

    Raises
    ------
    UsageError
        There are more methods than colours, or none, or their lengths differ.
    """
    lengths = {len(deviation) for deviation in deviations.values()}
    if len(deviations) > len(style.SERIES) or len(lengths) != 1 or lengths == {0}:
        raise UsageError(
            f"a picture of {len(deviations)} methods",
            f"it holds 1 to {len(style.SERIES)} lines of one length",
            "Draw fewer in one picture",
        )
    steps = lengths.pop()
    with style.house():
        ax = ax or style.figure(340)[1]
        keys = []
        for i, (label, deviation) in enumerate(deviations.items()):
            keys.append(_line(ax, i, label, np.asarray(deviation, dtype=float)))
        ax.set(xscale="log", xlim=(1, max(steps, 2)), xlabel="step", ylabel=unit)
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_locator(LogLocator(10, numticks=4 if style.is_narrow(ax) else 8))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda step, _: style.short(step)))
        style.legend(ax, keys, f"{steps:,} steps, one price", columns=2)
    return ax


def _envelope(values: Array) -> tuple[Array, Array, Array]:
    """Thin a line: the least and largest value over stretches, and their steps.

    Stretches grow with the step, as the axis is logarithmic.
    """
    steps = len(values)
    if steps <= 256:
        return values, values, np.arange(1, steps + 1)
    starts = np.unique(np.geomspace(1, steps, POINTS).astype(np.int64)) - 1
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    return low, high, starts + 1


def _line(ax: Axes, i: int, label: str, deviation: Array) -> Line2D:
    """Draw one method: a line, under a band where the deviation changes too fast for a line."""
    colour = style.SERIES[i]
    # Lines that lie on each other are both seen if one of them is dashed.
    dashes: str | tuple[int, tuple[int, int]] = "-" if i < 3 else (0, (5, 5))
    low, high, at = _envelope(deviation)
    width = None
    if not np.array_equal(low, high):
        ax.fill_between(at, low, high, color=colour, alpha=0.35, linewidth=0)
        width = 1.2
    name = style.plain(label)
    (line,) = ax.plot(at, high, color=colour, linestyle=dashes, linewidth=width, label=name)
    return line
