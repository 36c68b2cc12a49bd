"""Pictures over time: running totals with their bands, and their errors for several methods.

``draw`` shows the published total; ``draw_errors`` compares methods at one cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator

from sfumato.basics import Array, plain
from sfumato.charts import style
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import BASE, SERIES
from sfumato.domain import parse
from sfumato.errors import UsageError
from sfumato.questions.counters import CounterRelease

# --- totals ---------------------------------------------------------------------------------------

FEW = len(SERIES)


@style.of_release
def draw(release: CounterRelease, ax: Axes | None) -> Axes:
    """Draw running totals with their bands, and below them the width of the bands.

    Beside large totals the bands are too narrow to be seen. On Axes that are given, the totals are
    drawn only.
    """
    people = release.for_people()
    shape = len(people.events), len(people.names)
    reach = people.accuracy("0.95", False)
    reach_all = people.accuracy("0.95", True)
    totals, half, half_all = (
        np.asarray(numbers, float).reshape(shape) for numbers in (people.values, reach, reach_all)
    )
    above, below = _panels() if ax is None else (ax, None)
    x = _times(above, people.events)
    is_cut = bool(people.guarantee.unit.limits_kept)
    kept, note = _kept(people, totals)
    names = [plain(people.names[i]) for i in kept]
    for colour, i in zip(SERIES, kept, strict=False):
        wide = half_all[:, i] if len(names) <= 1 else None
        _line_with_bands(above, x, totals[:, i], half[:, i], wide, colour, is_cut=is_cut)
    name = "total so far"
    if release.captions is not msgspec.UNSET:
        name = plain(release.captions.axis_name(name), 40)
    above.set_ylabel(name, parse_math=False)
    above.margins(x=0)
    style.count_axis(above.yaxis)
    lines = names if len(names) > 1 else ()
    keys = style.band_keys("95% interval of each total", "95% for all steps at once", lines)
    if is_cut:
        keys.append(style.cut_key())
    style.legend(above, keys, note)
    if below is not None:
        _widths(above, below, x, half[:, kept[0]], half_all[:, kept[0]])
    return above


def _kept(people: CounterRelease, totals: Array) -> tuple[Array, str]:
    """Return which series are drawn, in their order, and what is said of them and their rows.

    If there are many, these are the ones with the largest last total.
    """
    scope = people.scope if people.guarantee.unit.limits_kept else ""
    number = totals.shape[1]
    if number <= FEW:
        return np.arange(number), scope
    note = f"The {FEW} categories with the largest last total, of {number:,}. {scope}"
    if not len(totals):
        return np.arange(FEW), note
    return np.sort(np.argsort(-totals[-1], kind="stable")[:FEW]), note


def _panels() -> tuple[Axes, Axes]:
    fig, first = style.figure(400 if is_narrow(None) else 470)
    first.remove()
    heights = {"height_ratios": (3, 1.25)}
    kind = {"axes_class": style.Picture}
    above, below = fig.subplots(2, 1, sharex=True, gridspec_kw=heights, subplot_kw=kind)
    return above, below


def _widths(above: Axes, below: Axes, x: Array, half: Array, half_all: Array) -> None:
    """Draw how far each total may lie from the truth: each error bar's own half-width."""
    below.fill_between(x, half_all, step="mid", color=BASE, alpha=0.14, linewidth=0)
    below.fill_between(x, half, step="mid", color=BASE, alpha=0.35, linewidth=0)
    below.set(ylabel="±, 95%", xlabel=above.get_xlabel())
    below.set_ylim(bottom=0)
    below.margins(x=0)
    above.set_xlabel("")
    style.count_axis(below.yaxis)
    below.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 2.5, 5, 10]))


def _line_with_bands(
    ax: Axes,
    x: Array,
    totals: Array,
    half: Array,
    half_all: Array | None,
    colour: str,
    *,
    is_cut: bool,
) -> None:
    """Draw totals with the intervals of each and, where they are given, those of all at once."""
    for reach, shade, label in ((half_all, 0.14, "_simultaneous"), (half, 0.3, "_individual")):
        if reach is not None:
            low = totals - reach
            band = ax.fill_between(x, low, totals + reach, color=colour, linewidth=0)
            band.set(alpha=shade, label=label)
    ax.plot(x, totals, color=colour, linewidth=1.3)
    if is_cut:
        reach = half if half_all is None else half_all
        style.mark_cut(ax, x[-1:], (totals + reach)[-1:], colour)


def _times(ax: Axes, events: Sequence[str]) -> Array:
    """Where the steps lie along x: at their dates if every event is one, else at their numbers."""
    try:
        x: Array = date2num([parse(event) for event in events])
    except (ValueError, TypeError):
        x = np.array([])
    # Steps may have the same date, or be out of order; the line would then run back in time.
    if len(x) < 2 or (np.diff(x) <= 0).any():
        ax.set_xlabel("step")
        return np.arange(1, len(events) + 1, dtype=float)
    locator = AutoDateLocator(minticks=3, maxticks=6 if is_narrow(ax) else 10)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    return x


# --- errors ---------------------------------------------------------------------------------------

POINTS = 300


@style.house()
def draw_errors(
    deviations: Mapping[str, Array],
    ax: Axes | None = None,
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
    if len(deviations) > len(SERIES) or len(lengths) != 1 or lengths == {0}:
        raise UsageError(
            f"a picture of {len(deviations)} methods",
            f"it holds 1 to {len(SERIES)} lines of one length",
            "Draw fewer in one picture",
        )
    steps = lengths.pop()
    ax = style.axes_on(ax, 340)
    keys = []
    for i, (label, deviation) in enumerate(deviations.items()):
        # Lines that lie on each other are both seen if one of them is dashed.
        dashes: str | tuple[int, tuple[int, int]] = "-" if i < 3 else (0, (5, 5))
        low, high, at = _envelope(np.asarray(deviation, dtype=float))
        (line,) = ax.plot(at, high, color=SERIES[i], linestyle=dashes, label=style.plain(label))
        if not np.array_equal(low, high):
            # The deviation changes too fast for a line alone.
            ax.fill_between(at, low, high, color=SERIES[i], alpha=0.35, linewidth=0)
            line.set_linewidth(1.2)
        keys.append(line)
    ax.set(xscale="log", xlim=(1, max(steps, 2)), xlabel="step", ylabel=unit)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=4 if is_narrow(ax) else 8))
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
    return low, np.maximum.reduceat(values, starts), starts + 1
