"""Pictures of quantiles: a cumulative curve with a band, or boxes side by side.

A box runs from the first to the third quartile where these were asked for, else over the middle of
what was asked; its line is the median, its whiskers reach the outermost quantiles. All of them are
released values: nothing is drawn that was not paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfumato.basics import Array, number, plain
from sfumato.charts import scales, style
from sfumato.charts.scales import limit_note
from sfumato.charts.style import is_narrow
from sfumato.charts.vector import BASE, FILL, INK
from sfumato.domain import GridAxis
from sfumato.questions.quantiles.release import QuantileValues

HALF = Fraction(1, 2)
MOST_BOXES = 60


@style.of_release
def draw(release: QuantileValues, ax: Axes | None, rows: int | None) -> Axes:
    """Draw quantiles of the first axis: boxes where there are labels, else a cumulative curve.

    ``rows`` is a public number of rows, for a band where ranks are not paid for. The band is the
    95% interval of every rank at once.
    """
    people = release.for_people()
    note = ""
    if len(people.axes) > 1:
        note = f"Of {', '.join(axis.name for axis in people.axes)} the first is drawn."
    scale = people.axes[0].scale
    table = scale.positions(people.table[:, 0])
    if not people.labels:
        return _curve(people, table[0], ax, rows, note)
    known = np.ones(table.shape, bool)
    if people.known is not None:
        known = people.known.reshape(people.table.shape)[:, 0]
    return _boxes(people, table, known, ax, note)


def _curve(
    release: QuantileValues, values: Array, ax: Axes | None, rows: int | None, note: str
) -> Axes:
    """Shares of rows below against values, from the lower to the upper bound of the axis."""
    ax = style.axes_on(ax, 380, 300)
    axis = release.axes[0]
    ends = axis.scale.positions(np.array(axis.ends))
    shares = release.rank_shares[0, 0]
    keys: list[Artist] = [
        Line2D([], [], marker="o", color=BASE, label="released quantile", markersize=5)
    ]
    band = _band_of(release, shares, rows)
    if band is not None:
        # The curve rises: where it lies at least at one value, it does at the next ones.
        low = np.maximum.accumulate(band[0])
        high = np.minimum.accumulate(band[1][::-1])[::-1]
        edges = np.concatenate([ends[:1], values, ends[1:]])
        bottoms = np.clip([0, *low], 0, 1)
        tops = np.clip([*high, 1], 0, 1)
        for left, right, bottom, top in zip(edges[:-1], edges[1:], bottoms, tops, strict=True):
            ax.fill_between([left, right], bottom, top, color=BASE, alpha=0.2, linewidth=0)
        of_rows = f", of {number(rows)} rows" if rows and release.ranks is None else ""
        keys.append(Patch(facecolor=BASE, alpha=0.2, label=f"95% band of the whole curve{of_rows}"))
    ax.plot(values, shares, color=BASE, linewidth=1.3, zorder=2)
    style.dots(ax, values, shares, size=5)
    # The values with as much again on either side, within the bounds of the axis.
    spread = float(values[-1] - values[0]) or float(ends[1] - ends[0])
    ax.set_xlim(max(ends[0], values[0] - spread), min(ends[1], values[-1] + spread))
    ax.set(ylim=(0, 1), ylabel="share of rows below")
    scales.value_axis(ax.xaxis, axis)
    _log_where(ax, axis, values)
    notes = (
        note,
        "Straight lines between the values are drawn for the eye.",
        limit_note(release.guarantee),
        release.unknowns,
    )
    style.legend(ax, keys, " ".join(said for said in notes if said), columns=2)
    return ax


def _band_of(
    release: QuantileValues, shares: Array, rows: int | None
) -> tuple[Array, Array] | None:
    """Lowest and highest shares of rows below the values of the first axis, if they are known."""
    values = len(shares)
    if release.ranks is not None:
        low, high = release.rank_interval("0.95", True)
        return low.reshape(-1)[:values], high.reshape(-1)[:values]
    if not rows:
        return None
    reach = np.asarray(release.accuracy("0.95", True)).reshape(-1)[:values] / rows
    return shares - reach, shares + reach


def _boxes(release: QuantileValues, table: Array, known: Array, ax: Axes | None, note: str) -> Axes:
    """Draw one box per label, in the order of the domain.

    A row is hatched where something is not known, and only what is known is drawn.
    """
    longest = 18 if is_narrow(ax) else style.LONGEST_LABEL
    labels = [plain(label, longest) for label in release.labels]
    if len(labels) > MOST_BOXES:
        note = f"{note} The first {MOST_BOXES} of {len(labels):,} labels.".strip()
        labels = labels[:MOST_BOXES]
        table = table[:MOST_BOXES]
        known = known[:MOST_BOXES]
    n_lines = max(3, len(labels))
    ax = style.axes_on(ax, 118 + n_lines * 30)
    drawn = np.where(known, table, np.nan)
    style.hatch(ax.axhspan, np.flatnonzero(~known.all(axis=1)))
    keys = _draw_rows(ax, drawn, release.at)
    if not known.all():
        keys.append(style.hatched_key("not known"))
    style.name_rows(ax, labels, plain(release.axes[0].name, 40))
    scales.value_axis(ax.xaxis, release.axes[0])
    # A box that begins at the least value drawn shall not touch the frame.
    ax.use_sticky_edges = False
    ax.autoscale_view(scaley=False)
    # Nothing is drawn then, and matplotlib would choose limits that mean nothing.
    if not known.any():
        ax.set_xlim(*release.axes[0].scale.positions(np.array(release.axes[0].ends)))
    _log_where(ax, release.axes[0], drawn[known])
    style.legend(ax, keys, f"{note} {_ranks(release)}".strip(), columns=3)
    return ax


def _log_where(ax: Axes, axis: GridAxis, values: Array) -> None:
    """A logarithmic axis for values, but not for dates, that span decades."""
    ends = scales.reach_of(values, values)
    if axis.time is None and scales.spans_decades(*ends):
        scales.log_axis(ax, *ends)


def _ranks(release: QuantileValues) -> str:
    """How far the ranks of the values drawn may be from those stated, or from those asked for."""
    rows = number(int(np.max(release.accuracy("0.95", True))))
    stated = f"off by at most {rows}" if release.ranks is None else f"known to within ±{rows}"
    return f"Ranks are among {release.guarantee.unit.counted}, and {stated} (95%, all at once)."


def _draw_rows(ax: Axes, drawn: Array, at: Sequence[Fraction]) -> list[Artist]:
    """Draw whiskers, boxes and medians, and return the keys of all that a row shows."""
    rows = np.arange(len(drawn), dtype=float)
    ax.hlines(rows, drawn[:, 0], drawn[:, -1], color=BASE, linewidth=1, zorder=2)
    ends = np.concatenate([drawn[:, 0], drawn[:, -1]])
    sides = np.tile(rows, 2)
    ax.vlines(ends, sides - 0.12, sides + 0.12, color=BASE, linewidth=1, zorder=2)
    low, middle, high = _parts(at)
    keys: list[Artist] = []
    if high > low:
        ax.barh(
            rows,
            drawn[:, high] - drawn[:, low],
            0.5,
            drawn[:, low],
            facecolor=FILL,
            edgecolor=BASE,
            linewidth=1,
            zorder=2.1,
        )
        label = f"{_percent(at[low])} to {_percent(at[high])}"
        keys.append(Patch(facecolor=FILL, edgecolor=BASE, label=label))
    if middle is not None:
        median = drawn[:, middle]
        ax.vlines(median, rows - 0.25, rows + 0.25, color=INK, linewidth=2.2, zorder=2.2)
        keys.append(Line2D([], [], color=INK, linewidth=2.2, label="median"))
    elif high == low:
        keys.append(Line2D([], [], color=BASE, linewidth=1, label=_percent(at[low])))
    if low > 0:
        outermost = f"{_percent(at[0])} to {_percent(at[-1])}"
        keys.append(Line2D([], [], color=BASE, linewidth=1, label=outermost))
    return keys


def _parts(at: Sequence[Fraction]) -> tuple[int, int | None, int]:
    """Return which quantiles end the box, and which is the median."""
    quarters = [at.index(q) for q in (HALF / 2, 3 * HALF / 2) if q in at]
    low, high = quarters if len(quarters) == 2 else (len(at) // 4, len(at) - 1 - len(at) // 4)
    return low, at.index(HALF) if HALF in at else None, high


def _percent(q: Fraction) -> str:
    return f"{float(100 * q):.4g}%"
