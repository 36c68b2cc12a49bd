"""Pictures of rows per person: what each limit keeps, and which limit to take."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sfumato.basics import Array, plain
from sfumato.charts import style
from sfumato.charts.vector import BASE, INK, SERIES
from sfumato.questions.persons import PersonsRelease
from sfumato.questions.persons.recommendation import Recommendation

SHADE = 0.26
LOST = SERIES[1]
NOISE = SERIES[2]


@style.of_release
def draw(release: PersonsRelease, ax: Axes | None) -> Axes:
    """Draw, for every limit on rows per person, the share of rows that it keeps.

    Where no such share is known, it is the number of persons that a limit affects.

    Parameters
    ----------
    release : PersonsRelease
    ax : matplotlib Axes or None
        None: on a new figure, ``ax.figure``.
    """
    frame = release.to_frame()
    words = release.measured
    shares = release.most is not None and bool(words.kept_of)
    name = "kept" if shares else "affected"
    known = np.asarray(frame["limit"].is_valid())
    limits, value, low, high = (
        np.asarray(frame[column].filter(known), float)
        for column in ("limit", name, f"{name}_low", f"{name}_high")
    )
    ax = style.axes_on(ax, 340, 300)
    ax.fill_between(limits, low, high, color=BASE, alpha=SHADE, linewidth=0)
    ax.plot(limits, value, color=BASE, marker="o", markersize=3.5, linewidth=1.3)
    _limit_axis(ax, limits, release.measured.axis)
    if shares:
        ax.set(ylim=(0, 1.02), ylabel=f"{words.noun} kept")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:.0%}"))
    else:
        ax.set_ylim(bottom=0)
        ax.set_ylabel(f"persons with {words.more}")
        style.count_axis(ax.yaxis)
    keys = [
        Line2D([], [], color=BASE, marker="o", markersize=3.5, label="estimate"),
        Patch(facecolor=BASE, alpha=SHADE, label="95% interval at each limit"),
    ]
    style.legend(ax, keys, plain(release.title, 60), columns=2)
    return ax


@style.house()
def draw_recommendation(advice: Recommendation, ax: Axes | None) -> Axes:
    """Draw rows left out, noise and their sum for every limit, and mark the limit to take.

    Parameters
    ----------
    advice : Recommendation
    ax : matplotlib Axes or None
        None: on a new figure, ``ax.figure``.
    """
    error = advice.lost + advice.noise
    ax = style.axes_on(ax, 340, 300)
    ax.plot(advice.limits, advice.lost, color=LOST, linewidth=1.2, label=f"{advice.noun} left out")
    ax.plot(advice.limits, advice.noise, color=NOISE, linewidth=1.2, label="noise")
    ax.plot(advice.limits, error, color=INK, linewidth=1.8, label="both")
    label = f"limit to take: {advice.limit:,}"
    ax.axvline(advice.limit, color=BASE, linewidth=1.2, linestyle=(0, (4, 3)))
    mark = Line2D([], [], color=BASE, linewidth=1.2, linestyle=(0, (4, 3)), label=label)
    _limit_axis(ax, advice.limits, advice.axis)
    # Errors far above the least one are of no interest, and would hide it.
    ax.set_ylim(0, 4 * float(error.min()) or 1)
    ax.set_ylabel("error per number")
    style.count_axis(ax.yaxis)
    keys = [*ax.get_lines()[:3], mark]
    style.legend(ax, keys, f"{plain(advice.question, 60)}. {advice.nearness}", columns=4)
    return ax


def _limit_axis(ax: Axes, limits: Array, label: str) -> None:
    most = max(float(limits.max()), 2)
    ax.set(xscale="log", xlim=(1, most), xlabel=label)
    ax.xaxis.set_major_locator(LogLocator(10, numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda limit, _: style.short(limit)))
    ax.xaxis.set_minor_formatter(NullFormatter())
