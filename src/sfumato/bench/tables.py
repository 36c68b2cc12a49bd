"""How benchmarks measure and print: medians of several runs, wall and processor time, one table."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


def medians(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the median wall and processor seconds of one call, after one call that is not counted."""
    work()
    times = []
    for _ in range(runs):
        wall, process = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - process))
    return statistics.median(wall for wall, _ in times), statistics.median(process for _, process in times)


def shown(cell: object) -> str:
    """Print three significant digits of a float."""
    return f"{cell:,.3g}" if isinstance(cell, float) and abs(cell) < 1000 else f"{cell:,.0f}" if isinstance(cell, float) else str(cell)


def grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Lay rows out: heads, one a key, and cells as text."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    return heads, [[shown(row.get(head, "")) for head in heads] for row in rows]


def machine() -> str:
    """Describe this machine in one line."""
    import os

    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {platform.system()} {platform.release()}"


def markdown(subject: str, rows: Sequence[Row]) -> str:
    """One subject as a Markdown table."""
    heads, cells = grid(rows)
    lines = [f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *cells]]
    return f"## {subject}\n\n" + "\n".join(lines) + "\n"
