"""How benchmarks measure and print: medians of several runs, of wall and processor time."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias, TypedDict

Row: TypeAlias = dict[str, str | int | float]
"""One line of a table: a figure or a name for each column."""


class Measured(TypedDict):
    """The figures of one subject, with the machine, date and version."""

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
        The values of that first column that are not ours: peers and floors.
    """

    figure: str
    names: tuple[str, ...]
    others: tuple[str, ...] = ()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds of one call."""
    wall = time.perf_counter()
    process = time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - process


def medians(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median wall and processor seconds of one call, over ``runs`` calls after a first one."""
    seconds(work)
    times = [seconds(work) for _ in range(runs)]
    wall = statistics.median(wall for wall, _ in times)
    process = statistics.median(process for _, process in times)
    return wall, process


def shown(cell: object) -> str:
    """A cell as text: three digits of a float, and thousands separated by commas."""
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.3g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    return str(cell)


def grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Rows as a table: the heads of its columns, and its cells as text."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    return heads, [[shown(row.get(head, "")) for head in heads] for row in rows]


def machine() -> str:
    """This machine in one line."""
    import os

    system = f"{platform.system()} {platform.release()}"
    python = f"Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {platform.machine()}, {python}, {system}"


def measured(rows: list[Row]) -> Measured:
    """Figures with the machine, date and version."""
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
        "Written by `python -m benchmarks --out`: medians, each beside its peer or floor, "
        "in one run a subject.",
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
    names = []
    figures = []
    ours = []
    for row in rows:
        if not row.get(chart.figure):
            continue
        parts = [row[name] for name in chart.names if row.get(name) not in (None, "")]
        names.append(", ".join(shown(part) for part in parts))
        figures.append(float(row[chart.figure]))
        ours.append(row[chart.names[0]] not in chart.others)
    return names, figures, ours
