"""Small pictures of the front page: one trend over time and one map, with their numbers in words.

The largest number was picked after looking at all of them, so it has the interval that holds for
all at once. The latest one has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from sfumato.answers import Release
from sfumato.basics import number, plain
from sfumato.charts import scales, style
from sfumato.domain import Lattice, LatticeAxis
from sfumato.questions.aggregates import AggregateRelease
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.partition.release import Partition
from sfumato.reports.headings import heading_of

WIDTH = 560
HEIGHT = 190
MAP_AXES = 2


@dataclass(frozen=True)
class Glance:
    """One small picture of the front page.

    Attributes
    ----------
    title : str
    chart : Markup
    said : tuple of str
        Its numbers, as sentences.
    """

    title: str
    chart: Markup
    said: tuple[str, ...]


def glances(releases: Sequence[Release]) -> tuple[Glance, ...]:
    """The first trend over time and the first map of a page, as far as there are any."""
    trend = next((release for release in releases if _time_of(release) is not None), None)
    partitions = (release for release in releases if isinstance(release, Partition))
    plane = next((release for release in partitions if len(release.axes) == MAP_AXES), None)
    shown = []
    if trend is not None:
        shown.append(_glance(trend, "trend", _trend_words(trend)))
    if plane is not None:
        rows = plane.count()
        total = float(np.asarray(rows.value))
        reach = np.ceil(float(np.asarray(rows.high)) - total)
        said = f"In all: {number(round(total))} ± {number(reach)}, with 95% confidence."
        shades = "Places that cannot be told from empty have no shade."
        shown.append(_glance(plane, "map", (said, shades)))
    return tuple(shown)


def _time_of(release: Release) -> LatticeAxis | None:
    """Return the only axis of counts or means, if it is one of time that runs on."""
    if not isinstance(release, HistogramRelease | AggregateRelease) or release.parts:
        return None
    lattice: Lattice = release.lattice
    if len(lattice.axes) != 1:
        return None
    (axis,) = lattice.axes
    runs_on = scales.is_continuous(axis) or axis.time is not None
    return axis if runs_on and axis.size > 1 else None


def _glance(release: Release, kind: str, said: tuple[str, ...]) -> Glance:
    title = heading_of(release)
    figure = style.at_a_glance(release.plot, WIDTH, HEIGHT, is_map=kind == "map")
    text = " ".join(said) or title
    chart = style.svg(figure, title, text, name=f"front-{kind}")
    return Glance(title, Markup(chart), said)


# --- in words -------------------------------------------------------------------------------------


def _trend_words(release: Release) -> tuple[str, ...]:
    axis = _time_of(release.for_people())
    values = np.asarray(release.values, float).reshape(-1)
    low, _ = release.interval("0.95")
    # A mean that is not known has no value; a count may be 0 where its interval says so.
    is_count = isinstance(release, HistogramRelease)
    known = np.asarray(low).reshape(-1) > 0 if is_count else np.isfinite(values)
    if axis is None or not known.any():
        return ()
    names = [plain(name) for name in axis.cell_names()]
    largest = int(np.argmax(np.where(known, values, -np.inf)))
    latest = int(np.flatnonzero(known)[-1])
    # The largest of several is only as sure as all of them at once.
    most = f"{_with_interval(release, largest, simultaneous=True)} ({names[largest]})"
    last = f"{_with_interval(release, latest, simultaneous=False)} ({names[latest]})"
    return f"Largest: {most}.", f"Latest: {last}.", "Each with 95% confidence."


def _with_interval(release: Release, at: int, *, simultaneous: bool) -> str:
    """Return a number with what it may be off: ± where that is the same on both sides."""
    numbers = (release.values, *release.interval("0.95", simultaneous))
    value, low, high = (float(np.asarray(part, float).reshape(-1)[at]) for part in numbers)
    if np.isclose(high - value, value - low):
        return f"{number(value)} ± {number(high - value)}"
    return f"{number(value)} ({number(low)} to {number(high)})"
