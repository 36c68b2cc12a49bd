"""Pictures of clusters: along one axis, on a map of two, as a table of profiles over more."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D

from sfumato.basics import Array, number, plain
from sfumato.charts import geography, maps, scales, style
from sfumato.charts.scales import CONFIDENCE
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import BASE, INK, MUTED, PAPER, SERIES, UNKNOWN, UNKNOWN_HATCH
from sfumato.questions.clustering.release import KMeansRelease

PIXELS = 400  # per axis, on which the borders between groups are found
LARGEST = 260.0  # area of the largest centre's mark, in square points
MOST_ROWS = 40  # of a table of profiles


@style.of_release
def draw(release: KMeansRelease, ax: Axes | None) -> Axes:
    """Draw clusters, numbered from the largest weight down."""
    people = release.for_people()
    shape = {1: _stems, 2: _map}.get(len(people.lattice.axes), _profiles)
    return shape(people, ax)


def _order(release: KMeansRelease) -> Array:
    return np.argsort(-release.weights, kind="stable")


def _centre_positions(release: KMeansRelease, column: int) -> Array:
    axis = release.lattice.axes[column]
    return axis.scale.positions(release.centers[:, column])


# --- two axes -------------------------------------------------------------------------------------


def _map(release: KMeansRelease, ax: Axes | None) -> Axes:
    """Draw centres with the borders between their groups, over the noisy density if counted."""
    partition = release.partition
    x, y = geography.pair_of(release.lattice.names)
    if partition is None:
        ax = style.axes_on(ax, 420 if style.width_of(ax) > 500 else 340)
        for which, column in ((ax.xaxis, x), (ax.yaxis, y)):
            scales.value_axis(which, release.lattice.axes[column])
    else:
        ax = maps.draw_map(partition, ax, (x, y))
    # The numbers of centres would stay where they are if the map was enlarged.
    style.mark_map(ax, None)
    _borders(release, ax, x, y)
    size = LARGEST * np.clip(release.weights / max(release.weights.max(), 1), 0.3, 1)
    across = _centre_positions(release, x)
    up = _centre_positions(release, y)
    for known, look in ((True, "solid"), (False, "dotted")):
        here = release.known == known
        ground = PAPER if known else UNKNOWN
        marks = ax.scatter(across[here], up[here], s=size[here], facecolor=ground)
        marks.set(edgecolor=SERIES[1], linewidth=1.8, linestyle=look, zorder=4)
    for rank, i in enumerate(_order(release), 1):
        name = ax.annotate(str(rank), (across[i], up[i]), ha="center", va="center")
        name.set(fontsize=7.3, color=INK, zorder=5)
    centre = Line2D([], [], marker="o", linestyle="", label="centre, area by weight")
    centre.set(markerfacecolor=PAPER, markeredgecolor=SERIES[1], markeredgewidth=1.8)
    keys: list[Artist] = [
        centre,
        Line2D([], [], color=INK, linewidth=0.9, label="border between groups"),
    ]
    keys += [] if release.known.all() else [_unknown_key()]
    if is_narrow(ax):
        # Here the map needs the room.
        style.legend(ax, keys, "")
        return ax
    if partition is not None:
        keys.append(maps.ground_key(ax))
    style.legend(ax, keys, _note(release))
    return ax


def _unknown_key() -> Line2D:
    key = Line2D([], [], marker="o", linestyle="", label="not known (dotted)")
    key.set(markerfacecolor=UNKNOWN, markeredgecolor=UNKNOWN_HATCH)
    return key


def _borders(release: KMeansRelease, ax: Axes, x: int, y: int) -> None:
    ends = [axis.ends for axis in release.lattice.grids]
    across, up = (np.linspace(*ends[i], PIXELS) for i in (x, y))
    points = np.empty((PIXELS * PIXELS, 2))
    points[:, x] = np.tile(across, PIXELS)
    points[:, y] = np.repeat(up, PIXELS)
    groups = release.predict(points).reshape(PIXELS, PIXELS)
    across, up = (release.lattice.axes[i].scale.positions(at) for at, i in ((across, x), (up, y)))
    # Of two groups, the border of one is that of the other.
    n_groups = len(release.weights)
    for group in range(1 if n_groups == 2 else n_groups):
        inside = (groups == group).astype(float)
        # A group that holds no point of the plane, or all, has no border: matplotlib would warn.
        if 0 < inside.mean() < 1:
            ax.contour(across, up, inside, levels=[0.5], colors=INK, linewidths=0.9, zorder=3)
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])


def _note(release: KMeansRelease) -> str:
    """How far a centre may be from the mean of its rows, and its weight from their number."""
    widths = np.array([axis.upper - axis.lower for axis in release.lattice.grids])
    error = release.standard_error / widths
    known = error[np.isfinite(error)]
    moved = ""
    if known.size:
        share = number(float(f"{100 * np.median(known):.2g}"))
        moved = f"The standard error of centres is {share}% of an axis (median); "
    largest = number(int(release.accuracy(CONFIDENCE).max()))
    counted = f"of {release.guarantee.unit.counted}"
    weights = f"{counted}, weights hold within ±{largest} with 95% confidence each."
    return f"{moved}{weights} {release.unknowns}".strip()


# --- one axis, and many ---------------------------------------------------------------------------


def _stems(release: KMeansRelease, ax: Axes | None) -> Axes:
    """Weights over the places of the centres."""
    ax = style.axes_on(ax, 320)
    axis = release.lattice.grids[0]
    at = _centre_positions(release, 0)
    half = release.accuracy(CONFIDENCE)
    known = release.known
    ax.errorbar(
        at[known],
        release.weights[known],
        yerr=half[known],
        fmt="o",
        color=BASE,
        ecolor=INK,
        elinewidth=1.6,
    )
    weights = release.weights[known]
    ax.vlines(at[known], 0, weights, color=BASE, linewidth=1.2)
    if not known.all():
        ax.plot(
            at[~known],
            release.weights[~known],
            "o",
            markerfacecolor=UNKNOWN,
            markeredgecolor=UNKNOWN_HATCH,
        )
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.set_xlim(*axis.scale.positions(np.array(axis.ends)))
    ax.set_ylabel("rows in the group")
    scales.value_axis(ax.xaxis, axis)
    style.count_axis(ax.yaxis)
    style.legend(ax, [] if known.all() else [_unknown_key()], _note(release))
    return ax


def _profiles(release: KMeansRelease, ax: Axes | None) -> Axes:
    """One row per cluster, one column per axis: where in its public bounds each centre lies."""
    order = _order(release)[:MOST_ROWS]
    names = [plain(name, 18) for name in release.lattice.names]
    height = np.clip(150 + 26 * len(order), 240, 1000)
    ax = style.axes_on(ax, int(height))
    style.unseen(ax)
    places = np.where(release.known[order, None], release.scaled_centers[order], np.nan)
    image = ax.imshow(
        places, cmap="PuOr", norm=Normalize(-1, 1), aspect="auto", interpolation="none"
    )
    narrow = is_narrow(ax)
    ax.set_yticks(range(len(order)), _weights_in_words(release, order, narrow))
    is_crowded = len(names) > (2 if narrow else 4)
    turn = 45 if is_crowded else 0
    ax.set_xticks(range(len(names)), names, **scales.turned(turn))
    ax.set_ylabel("rows in the group" if narrow else "rows in the group, ± at 95%")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    if len(names) <= (4 if narrow else 9):
        _numbers(ax, release, order, image)
    bar = style.colour_bar(ax, image, "place between the axis' bounds")
    bar.set_ticks([-1, 0, 1], labels=["lower", "middle", "upper"])
    style.legend(ax, [], _note(release), wrap=36 if narrow else 76)
    return ax


def _weights_in_words(release: KMeansRelease, order: Array, narrow: bool) -> list[str]:
    half = release.accuracy(CONFIDENCE)
    labels = []
    for rank, i in enumerate(order, 1):
        weight = number(release.weights[i])
        # On a phone the note alone says how accurate weights are.
        reach = "" if narrow else f" ± {number(half[i])}"
        labels.append(f"{rank}: {weight}{reach}" if release.known[i] else f"{rank}: not known")
    return labels


def _numbers(ax: Axes, release: KMeansRelease, order: Array, image: AxesImage) -> None:
    for row, i in enumerate(order):
        for column, axis in enumerate(release.lattice.axes if release.known[i] else ()):
            value = release.centers[i, column]
            if axis.time is None:
                text = f"{value:.4g}".replace("-", "−")
            else:
                (text,) = axis.scale.picture_text(np.array([value]))
                text = text[: len("2013-01-31")]
            ink = style.text_on(image.cmap(image.norm(release.scaled_centers[i, column]))[:3])
            ax.text(column, row, text, color=ink, ha="center", va="center", fontsize=7.3)
