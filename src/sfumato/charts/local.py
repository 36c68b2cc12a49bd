"""Pictures of local reports: their density, the choice of L, and clusters found in them."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullFormatter

from sfumato.answers import Panels
from sfumato.basics import Array, number
from sfumato.charts import style
from sfumato.charts.vector import BASE, FILL, INK, PAPER, SERIES
from sfumato.local.bpm import BPM, centre_reports
from sfumato.local.constants import unit_ball
from sfumato.local.table import LocalTable, Sweep

MOST_DOTS = 4_000


@style.house()
def draw_radius(mechanism: BPM, ax: Axes | None, reports: int) -> Axes:
    """Draw the density of reports against their distance from the true point.

    Beside the law stand so many simulated reports of the centre of the box. The density stops
    falling at L.
    """
    d = mechanism.dimension
    radius = float(mechanism.L)
    distances = np.linalg.norm(centre_reports(mechanism, reports) - 0.5, axis=1)
    # Within the box's nearest face all directions are open, so that shells have their full volume.
    far = radius + 0.5
    edges = np.linspace(0, far, 41)
    volumes = float(unit_ball(d)) * np.diff(edges**d)
    seen = np.histogram(distances, edges)[0] / reports / volumes
    radii = np.linspace(0, far, 400)
    law = np.exp(mechanism.log_normalizer - float(mechanism.epsilon) * np.minimum(radii, radius))
    inside = 100 * float((distances <= radius).mean())
    note = (
        f"{inside:.1f}% of {reports:,} reports lie within L = {radius:g}; "
        f"{100 * mechanism.ball_probability:.1f}% expected"
    )
    ax = style.axes_on(ax, 340)
    ax.stairs(seen, edges, fill=True, facecolor=FILL, zorder=1.5)
    line = ax.plot(radii, law, color=BASE, label="law")[0]
    bound = ax.axvline(radius, color=INK, linestyle="--", linewidth=1, label="L")
    ax.set(xlim=(0, float(edges[-1])), xlabel="distance from the true point", ylabel="density")
    ax.set_ylim(bottom=0)
    simulated = Line2D([], [], color=FILL, linewidth=7, label="simulated reports")
    style.legend(ax, [line, simulated, bound], note)
    return ax


@style.house()
def draw_sweep(sweep: Sweep, ax: Axes | None = None) -> Axes:
    """Draw over L what decides its choice.

    The curves are the share of reports that carry a signal, the share inside the ball, and the
    least variance over the variance at L.
    """
    ax = style.axes_on(ax, 340)
    curves = {
        "share that carries a signal": sweep.signal,
        "share within L": sweep.ball,
        "least variance over this one's": sweep.limit / np.asarray(sweep.variance),
    }
    keys = [
        ax.plot(sweep.L, np.asarray(values), color=colour, label=label)[0]
        for (label, values), colour in zip(curves.items(), SERIES, strict=False)
    ]
    label = f"automatic L = {sweep.auto:g}"
    keys.append(ax.axvline(sweep.auto, color=INK, linestyle="--", linewidth=1, label=label))
    ends = (sweep.L[0], sweep.L[-1])
    ax.set(xscale="log", xlim=ends, ylim=(0, 1.02), xlabel="L", ylabel="share")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    style.legend(ax, keys, columns=2)
    return ax


@style.house()
def draw_local_table(table: LocalTable, ax: Axes | None = None) -> Axes:
    """Draw the sums of squares of each mechanism and L over epsilon.

    Lines across show what k-means without privacy has, and evenly spread centres without data.
    """
    ax = style.axes_on(ax, 360)
    keys: list[Artist] = []
    for i, (label, (epsilons, sums)) in enumerate(table.curves().items()):
        colour = SERIES[i % len(SERIES)]
        dashes = "-" if i < len(SERIES) else "--"
        order = np.argsort(epsilons)
        keys += ax.plot(
            epsilons[order], sums[order], dashes, color=colour, marker="o", ms=4, label=label
        )
    for value, line, label in (
        (table.even, ":", "no data: centres spread evenly"),
        (table.best, "-", "no privacy"),
    ):
        keys.append(ax.axhline(value, color=INK, linestyle=line, linewidth=1, label=label))
    ax.set(xscale="log", xlabel="epsilon", ylabel="sum of squares")
    if table.best > 0:
        ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.set_xticks(sorted({float(e) for epsilons, _ in table.curves().values() for e in epsilons}))
    style.legend(ax, keys, columns=2)
    return ax


@style.house()
def draw_reports(reports: Array, ax: Panels | None, centers: Array) -> Axes:
    """Draw reports with the centres found in them, in the first two axes.

    Parameters
    ----------
    reports : float64 ndarray of shape (n, d)
    ax : Axes or None
    centers : float64 ndarray of shape (k, d)
    """
    (panel,) = style.panels(1, ax, 400)
    _cloud(panel, reports, centers, "reports, as the server sees them")
    return panel


@style.house()
def draw_clusters(reports: Array, ax: Panels | None, centers: Array, points: Array) -> Array:
    """Draw reports as ``draw_reports`` does, on a panel beside that of the true points.

    ``points`` is a float64 ndarray of shape (n, d): for evaluation only.
    """
    panels = style.panels(2, ax, 400, across=2)
    _cloud(panels[0], points, centers, "true points, which nobody sees")
    draw_reports(reports, panels[1], centers)
    return style.PanelArray.of(panels)


def _cloud(ax: Axes, cloud: Array, centers: Array, title: str) -> None:
    # Dots beyond a few thousand only darken the page; a fixed choice keeps the picture the same.
    shown = cloud[np.random.default_rng(0).permutation(len(cloud))[:MOST_DOTS]]
    flat = [
        np.zeros(len(places)) if places.shape[1] == 1 else places[:, 1]
        for places in (shown, centers)
    ]
    ax.plot(
        shown[:, 0],
        flat[0],
        ".",
        color=BASE,
        markersize=2,
        alpha=0.35,
        markeredgewidth=0,
        rasterized=True,
    )
    keys: list[Artist] = [
        Line2D([], [], color=BASE, marker="o", linestyle="", markersize=4, label=title)
    ]
    keys += ax.plot(
        centers[:, 0],
        flat[1],
        "X",
        color=SERIES[1],
        markersize=11,
        mec=PAPER,
        mew=1.2,
        label="centres",
    )
    ax.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=INK, linewidth=1, zorder=2))
    ax.set(xlabel="first axis", ylabel="second axis", aspect="equal")
    style.legend(ax, keys, columns=1)
