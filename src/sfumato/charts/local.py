"""Pictures of local reports: their density, the choice of L, and clusters found in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from sfumato.basics.numbers import Array
from sfumato.charts import style

if TYPE_CHECKING:
    from matplotlib.artist import Artist

MOST_DOTS = 4_000


def draw_radius(
    radii: Array,
    law: Array,
    edges: Array,
    seen: Array,
    reach: float,
    note: str,
    ax: Axes | None = None,
) -> Axes:
    """Draw the density of reports against their distance from the true point.

    Parameters
    ----------
    radii, law : float64 ndarray of shape (points,)
        The law as a line.
    edges, seen : float64 ndarray of shapes (bins + 1,) and (bins,)
        Density of simulated reports.
    reach : float
        L, where the density stops falling.
    """
    with style.house():
        ax = ax or style.figure(340)[1]
        ax.stairs(seen, edges, fill=True, facecolor=style.FILL, zorder=1.5)
        line = ax.plot(radii, law, color=style.BASE, label="law")[0]
        bound = ax.axvline(reach, color=style.INK, linestyle="--", linewidth=1, label="L")
        ax.set(xlim=(0, float(edges[-1])), xlabel="distance from the true point", ylabel="density")
        ax.set_ylim(bottom=0)
        simulated = Line2D([], [], color=style.FILL, linewidth=7, label="simulated reports")
        style.legend(ax, [line, simulated, bound], note)
    return ax


class Sweep(Protocol):
    """What a picture needs to know of the figures of a mechanism over L."""

    @property
    def L(self) -> Sequence[float]: ...  # noqa: N802 (the paper's symbol)
    @property
    def variance(self) -> Sequence[float]: ...
    @property
    def signal(self) -> Sequence[float]: ...
    @property
    def ball(self) -> Sequence[float]: ...
    @property
    def limit(self) -> float: ...
    @property
    def auto(self) -> float: ...


def draw_sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """Draw over L what decides its choice.

    The curves are the share of reports that carry a signal, the share inside the ball, and the
    least variance over the variance at L.
    """
    with style.house():
        ax = ax or style.figure(340)[1]
        curves = {
            "share that carries a signal": sweep.signal,
            "share within L": sweep.ball,
            "least variance over this one's": sweep.limit / np.asarray(sweep.variance),
        }
        keys = [
            ax.plot(sweep.L, np.asarray(values), color=colour, label=label)[0]
            for (label, values), colour in zip(curves.items(), style.SERIES, strict=False)
        ]
        label = f"automatic L = {sweep.auto:g}"
        keys.append(
            ax.axvline(sweep.auto, color=style.INK, linestyle="--", linewidth=1, label=label)
        )
        ends = (sweep.L[0], sweep.L[-1])
        ax.set(xscale="log", xlim=ends, ylim=(0, 1.02), xlabel="L", ylabel="share")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
        style.legend(ax, keys, columns=2)
    return ax


class LocalTable(Protocol):
    """What a picture needs to know of a table over epsilon and L."""

    @property
    def best(self) -> float: ...
    @property
    def even(self) -> float: ...
    def curves(self) -> dict[str, tuple[Array, Array]]: ...


def draw_local_table(table: LocalTable, ax: Axes | None = None) -> Axes:
    """Draw the sums of squares of each mechanism and L over epsilon.

    Lines across show what k-means without privacy has, and evenly spread centres without data.
    """
    with style.house():
        ax = ax or style.figure(360)[1]
        keys: list[Artist] = []
        for i, (label, (epsilons, sums)) in enumerate(table.curves().items()):
            colour = style.SERIES[i % len(style.SERIES)]
            dashes = "-" if i < len(style.SERIES) else "--"
            order = np.argsort(epsilons)
            keys += ax.plot(
                epsilons[order], sums[order], dashes, color=colour, marker="o", ms=4, label=label
            )
        for value, line, label in (
            (table.even, ":", "no data: centres spread evenly"),
            (table.best, "-", "no privacy"),
        ):
            keys.append(
                ax.axhline(value, color=style.INK, linestyle=line, linewidth=1, label=label)
            )
        ax.set(xscale="log", xlabel="epsilon", ylabel="sum of squares")
        if table.best > 0:
            ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter(NullFormatter())
            axis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
        ax.set_xticks(sorted({float(e) for each, _ in table.curves().values() for e in each}))
        style.legend(ax, keys, columns=2)
    return ax


def draw_clusters(
    reports: Array,
    centers: Array,
    ax: style.Panels | None = None,
    *,
    points: Array | None = None,
    others: Array | None = None,
) -> Axes | Array:
    """Draw reports with the centres found in them, in the first two axes.

    True points, where they are given, get a panel beside them.

    Parameters
    ----------
    reports : float64 ndarray of shape (n, d)
    centers : float64 ndarray of shape (k, d)
    ax : Axes, two Axes, or None
    points : float64 ndarray of shape (n, d), optional
        True points: for evaluation only.
    others : float64 ndarray of shape (k, d), optional
        Centres of another method, such as k-means on the reports.

    Returns
    -------
    Axes, or an array of two
    """
    with style.house():
        panels = _panels(ax, 1 if points is None else 2)
        clouds = [(reports, "reports, as the server sees them")]
        if points is not None:
            clouds.insert(0, (points, "true points, which nobody sees"))
        for panel, (cloud, title) in zip(panels, clouds, strict=True):
            _cloud(panel, cloud, centers, others, title)
    return panels[0] if len(panels) == 1 else style.PanelArray.of(panels)


def draw_reports(reports: Array, centers: Array, ax: Axes | None = None) -> Axes:
    """Draw reports with the centres found in them: one panel, see ``draw_clusters``."""
    drawn = draw_clusters(reports, centers, ax)
    assert isinstance(drawn, Axes)
    return drawn


def _panels(ax: style.Panels | None, number: int) -> list[Axes]:
    if ax is not None:
        return style.panels_of(ax)
    narrow = style.is_narrow(None)
    fig, first = style.figure(400 * number if narrow else 400)
    if number == 1:
        return [first]
    first.remove()
    made = fig.subplots(
        number if narrow else 1,
        1 if narrow else number,
        squeeze=False,
        subplot_kw={"axes_class": style.Picture},
    )
    return list(made.flat)


def _cloud(ax: Axes, cloud: Array, centers: Array, others: Array | None, title: str) -> None:
    # Dots beyond a few thousand only darken the page; a fixed choice keeps the picture the same.
    shown = cloud[np.random.default_rng(0).permutation(len(cloud))[:MOST_DOTS]]
    flat = [np.zeros(len(each)) if each.shape[1] == 1 else each[:, 1] for each in (shown, centers)]
    ax.plot(
        shown[:, 0],
        flat[0],
        ".",
        color=style.BASE,
        markersize=2,
        alpha=0.35,
        markeredgewidth=0,
        rasterized=True,
    )
    keys: list[Artist] = [
        Line2D([], [], color=style.BASE, marker="o", linestyle="", markersize=4, label=title)
    ]
    if others is not None:
        keys.append(_other_centers(ax, others))
    keys.append(_centers(ax, centers[:, 0], flat[1]))
    ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=style.INK, linewidth=1, zorder=2))
    ax.set(xlabel="first axis", ylabel="second axis", aspect="equal")
    style.legend(ax, keys, columns=1)


def _other_centers(ax: Axes, others: Array) -> Line2D:
    """Mark the centres that plain k-means finds in the reports, for comparison."""
    (squares,) = ax.plot(
        others[:, 0],
        others[:, 1],
        "s",
        color=style.PAPER,
        mec=style.SERIES[4],
        ms=8,
        mew=1.8,
        label="k-means on reports",
    )
    return squares


def _centers(ax: Axes, x: Array, y: Array) -> Line2D:
    """Mark the centres that were decoded."""
    (crosses,) = ax.plot(
        x,
        y,
        "X",
        color=style.SERIES[1],
        markersize=11,
        mec=style.PAPER,
        mew=1.2,
        label="centres",
    )
    return crosses
