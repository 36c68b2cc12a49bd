"""The list of subjects, and running them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from benchmarks.measuring import Row, bars
from sfumato.errors import UsageError, nearest

SUBJECTS = {
    "aggregates": "Means of 10^8 rows beside a histogram, 10^5 groups, and errors beside OpenDP, "
    "PipelineDP and diffprivlib.",
    "clustering": "The loss of private k-means over that without privacy, beside diffprivlib.",
    "cores": "Answers from files on all cores, small releases, reports and wide tables, beside "
    "DuckDB and Polars on as many threads.",
    "counter": "Durable steps of a stream, beside bare synced appends.",
    "engines": "Counting tables of DuckDB, PostgreSQL and Spark, beside the same query by hand.",
    "histogram": "Scanning and selecting unknown keys, beside decoding and counting them; "
    "10^6 cells; bins by records.",
    "ledger": "Durable charges and complete spends a second, in a file and on a server, "
    "beside bare synced appends and inserts.",
    "local": "Local reports perturbed a second, beside numpy's draws, and the time to decode them.",
    "noise": "Exact samples a second, beside OpenDP and numpy's inexact law.",
    "partition": "Partitions of 10^6 occupied cells and 10^5 range counts, "
    "beside a bare histogram.",
    "quantiles": "Quantiles of 10^5 and 10^6 rows, beside the plain recursion by FFT and a sort.",
    "release": "From a cube to a stored release, beside adding numpy noise.",
    "risk": "The epsilon for a disclosure risk, beside the source's enumeration and a bare sort.",
    "scan": "Counting a Parquet file of 10^8 rows, beside decoding it, DuckDB and Polars.",
    "start": "Start of the command and of the import, beside the interpreter's own.",
    "streaming": "Noise for running totals, microseconds a step, beside the bare draw, dpcrpy "
    "and jax-privacy.",
    "tables": "Families of tables that add up, beside separate tables, one full table that is "
    "summed, and mbi.",
}


def run(subjects: Sequence[str] = (), *, quick: bool = False) -> Iterator[tuple[str, list[Row]]]:
    """Measure the named subjects, or all if none is named. Yields each with its rows.

    Raises
    ------
    UsageError
        If a subject is unknown.
    """
    for subject in subjects:
        if subject not in SUBJECTS:
            raise UsageError(
                f"benchmark {subject!r}",
                f"there is none of that name; {nearest(subject, SUBJECTS)}",
                "Name one of them",
            )
    for subject in subjects or SUBJECTS:
        yield subject, importlib.import_module(f"benchmarks.{subject}").rows(quick)


def picture(subject: str, rows: Sequence[Row]) -> str:
    """Draw a subject's main figure as bars: the text of an SVG."""
    from benchmarks import drawing
    from sfumato.charts import style

    chart = importlib.import_module(f"benchmarks.{subject}").CHART
    names, figures, ours = bars(chart, rows)
    fig = drawing.draw(names, figures, chart.figure, SUBJECTS[subject], ours)
    described = "; ".join(
        f"{name}: {figure:,.3g}" for name, figure in zip(names, figures, strict=True)
    )
    return style.svg(fig, SUBJECTS[subject], f"{chart.figure}: {described}")
