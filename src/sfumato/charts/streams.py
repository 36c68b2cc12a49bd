"""Pictures over time: running totals with their bands, and their errors for several methods.

``draw`` shows the published total; ``draw_errors`` compares methods at one cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from sfumato.basics.numbers import Array, Exactly
from sfumato.charts import style
from sfumato.domain import parse
from sfumato.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.artist import Artist


# --- totals ---------------------------------------------------------------------------------------

FEW = len(style.SERIES)


class Running(Protocol):
    """What a picture needs to know of running totals."""

    @property
    def values(self) -> Array: ...
    @property
    def title(self) -> str: ...
    @property
    def events(self) -> Sequence[str]: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def about(self) -> str: ...
    def accuracy(self, confidence: Exactly = ..., simultaneous: bool = ...) -> Array: ...


def draw(release: Running, ax: Axes | None = None) -> Axes:
    """Draw running totals with their bands, and below them the width of the bands.

    Beside large totals the bands are too narrow to be seen.

    Parameters
    ----------
    release : CounterRelease, or anything with its values, events and accuracy
    ax : matplotlib Axes or None
        None: on a new figure of two panels, ``ax.figure``. Given: the totals only.

    Returns
    -------
    Axes
        Of the totals.
    """
    with style.house():
        columns = [
            np.asarray(x, float).reshape(len(release.events), len(release.names))
            for x in (release.values, *_bands(release))
        ]
        below = None
        if ax is None:
            ax, below = _panels()
        x = _times(ax, release.events)
        names = list(release.names)
        note = ""
        if len(names) > FEW:
            kept = (
                np.sort(np.argsort(-columns[0][-1], kind="stable")[:FEW])
                if len(columns[0])
                else np.arange(FEW)
            )
            note = f"The {FEW} categories with the largest last total, of {len(names):,}."
            names = [names[i] for i in kept]
            columns = [column[:, kept] for column in columns]
        for i in range(columns[0].shape[1]):
            _one(
                ax, x, [column[:, i] for column in columns], style.SERIES[i], alone=len(names) <= 1
            )
        ax.set(ylabel="total so far")
        ax.margins(x=0)
        style.count_axis(ax.yaxis)
        style.legend(ax, _keys(names), f"{note} Totals are of {release.about}.".strip())
        if below is not None:
            _widths(ax, below, x, [column[:, 0] for column in columns[1:]])
    return ax


def _panels() -> tuple[Axes, Axes]:
    """A figure with a large panel above a low one, on one horizontal axis."""
    narrow = style.is_narrow(None)
    fig, first = style.figure(400 if narrow else 470)
    first.remove()
    above, below = fig.subplots(
        2,
        1,
        sharex=True,
        gridspec_kw={"height_ratios": (3, 1.25)},
        subplot_kw={"axes_class": style.Picture},
    )
    return above, below


def _widths(above: Axes, below: Axes, x: Array, halves: list[Array]) -> None:
    """How far each total may lie from the truth; each error bar's own half-width."""
    each, every = halves
    below.fill_between(x, every, step="mid", color=style.BASE, alpha=0.14, linewidth=0)
    below.fill_between(x, each, step="mid", color=style.BASE, alpha=0.35, linewidth=0)
    below.set(ylabel="±, 95%", xlabel=above.get_xlabel())
    below.set_ylim(bottom=0)
    below.margins(x=0)
    above.set_xlabel("")
    style.count_axis(below.yaxis)
    below.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))


def _bands(release: Running) -> tuple[Array, Array]:
    return release.accuracy("0.95", False), release.accuracy("0.95", True)


def _one(ax: Axes, x: Array, columns: list[Array], colour: str, *, alone: bool) -> None:
    values, each, every = columns
    if alone:
        ax.fill_between(
            x,
            values - every,
            values + every,
            color=colour,
            alpha=0.14,
            linewidth=0,
            label="_simultaneous",
        )
    ax.fill_between(
        x, values - each, values + each, color=colour, alpha=0.3, linewidth=0, label="_individual"
    )
    ax.plot(x, values, color=colour, linewidth=1.3)


def _keys(names: list[str]) -> list[Artist]:
    each = "95% interval of each total"
    every = "95% for all steps at once"
    if len(names) <= 1:
        return [
            Patch(facecolor=style.BASE, alpha=0.4, label=each),
            Patch(facecolor=style.BASE, alpha=0.14, label=every),
        ]
    lines = [
        Line2D([], [], color=colour, label=style.plain(name))
        for colour, name in zip(style.SERIES, names, strict=False)
    ]
    return [
        *lines,
        Patch(facecolor=style.INK, alpha=0.3, label=each),
        Patch(facecolor=style.INK, alpha=0.14, label=every),
    ]


def _times(ax: Axes, events: Sequence[str]) -> Array:
    """Where the steps lie along x: at their dates if every event is one, else at their numbers."""
    try:
        moments = [parse(event) for event in events]
        x: Array = date2num(moments)
    except (ValueError, TypeError):
        ax.set_xlabel("step")
        return np.arange(1, len(events) + 1, dtype=float)
    if len(x) < 2 or (np.diff(x) <= 0).any():
        ax.set_xlabel("step")
        return np.arange(1, len(events) + 1, dtype=float)
    locator = AutoDateLocator(minticks=3, maxticks=6 if style.is_narrow(ax) else 10)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return x


# --- errors ---------------------------------------------------------------------------------------

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
