"""How benchmarks measure and print: medians of several runs, wall and processor time, one table."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias, TypedDict

Row: TypeAlias = dict[str, str | int | float]
"""What was measured: a figure or a name for each column."""


class Measured(TypedDict):
    """What was measured of one subject, where and when."""

    machine: str
    date: str
    version: str
    rows: list[Row]


class Chart(NamedTuple):
    """What the picture of a subject shows: one column of figures, of the rows that have it.

    Attributes
    ----------
    figure : str
        The column.
    names : tuple of str
        The columns that name a bar, the first of them what was measured.
    others : tuple of str
        What was measured that is not ours: peers and floors.
    """

    figure: str
    names: tuple[str, ...]
    others: tuple[str, ...] = ()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of one call."""
    wall, process = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - process


def medians(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the median wall and processor seconds of one call, after one call that is not counted."""
    times = [seconds(work) for _ in range(runs + 1)][1:]
    return statistics.median(wall for wall, _ in times), statistics.median(
        process for _, process in times
    )


def shown(cell: object) -> str:
    """Print three significant digits of a float, and part the thousands of a whole number."""
    if isinstance(cell, int):
        return f"{cell:,}"
    return (
        f"{cell:,.3g}"
        if isinstance(cell, float) and abs(cell) < 1000
        else f"{cell:,.0f}"
        if isinstance(cell, float)
        else str(cell)
    )


def grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Lay rows out: heads, one a key, and cells as text."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    return heads, [[shown(row.get(head, "")) for head in heads] for row in rows]


def machine() -> str:
    """Describe this machine in one line."""
    import os

    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {platform.system()} {platform.release()}"


def measured(rows: list[Row]) -> Measured:
    """Say of figures where and when they were taken, and of what version."""
    from sfumato import __version__

    return {
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "rows": rows,
    }


def markdown(found: Mapping[str, Measured]) -> str:
    """All subjects as one Markdown page."""
    parts = [
        "# Benchmarks",
        "Written by `sfumato bench --out`: medians, each beside its peer or floor, in one run a subject.",
    ]
    for subject, one in found.items():
        heads, cells = grid(one["rows"])
        lines = [f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *cells]]
        parts += [
            f"## {subject}",
            f"{one['date']}, version {one['version']}, {one['machine']}.",
            "\n".join(lines),
            f"![{subject}](bench-{subject}.svg)",
        ]
    return "\n\n".join(parts) + "\n"


def bars(chart: Chart, rows: Sequence[Row]) -> tuple[list[str], list[float], list[bool]]:
    """Names, figures and whether they are our own, of the rows that have the chart's figure."""
    found = [row for row in rows if row.get(chart.figure)]
    names = [
        ", ".join(shown(row[name]) for name in chart.names if row.get(name) not in (None, ""))
        for row in found
    ]
    return (
        names,
        [float(row[chart.figure]) for row in found],
        [row[chart.names[0]] not in chart.others for row in found],
    )
