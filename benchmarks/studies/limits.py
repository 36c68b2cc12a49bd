"""Error of tables of flights under the best limit on rows, and under the best limit on the norm.

The error of a cell is the mean number of rows that the limit leaves out of it, and the mean size of
the noise for rho = 1/8. Run: python -m benchmarks.studies.limits
"""

from __future__ import annotations

import math

from sfumato.data import count, source
from sfumato.demo import flights_domain, flights_path
from sfumato.domain.domain import Domain
from sfumato.questions.histogram import Histogram

RHO = 0.125
AXES = flights_domain()

DOMAIN = Domain({name: AXES[name] for name in ("dep_delay", "hour", "origin", "dest")})
QUARTERS = {"dep_delay": [-60, 0, 15, 60, 240]}
TABLES: dict[str, tuple[Histogram, int]] = {
    "delay": (Histogram("dep_delay", bins=30), 29),
    "hour": (Histogram("hour"), 19),
    "destination": (Histogram("dest"), 104),
    "hour x delay": (Histogram(["hour", "dep_delay"], bins=QUARTERS), 76),
    "origin x hour": (Histogram(["origin", "hour"]), 56),
    "destination x hour": (Histogram(["dest", "hour"]), 1141),
}
LIMITS = [round(20 * 1.2**k) for k in range(19)]
"""Limits to try: 20 to 532."""


def error(
    question: Histogram, n_cells: int, *, rows: int | None = None, norm: int | None = None
) -> tuple[float, float]:
    """The error of a cell under a limit, and the share of rows that is kept."""
    needs = question.needs(DOMAIN)
    kept, every = (
        count(
            source(
                flights_path(),
                DOMAIN,
                person="tailnum",
                rows_per_person=most,
                norm_per_person=of_norm,
            ),
            [needs],
        )[0].total
        for most, of_norm in ((rows, norm), (10**6, None))
    )
    sigma = (rows or norm or 0) / math.sqrt(2 * RHO)
    return (every - kept) / n_cells + sigma * math.sqrt(2 / math.pi), kept / every


def main() -> None:
    """Print the table."""
    print("table, cells: best by rows; best by norm; gain")
    for name, (question, n_cells) in TABLES.items():
        rows, kept_rows, r = min((*error(question, n_cells, rows=n), n) for n in LIMITS)
        norm, kept_norm, c = min((*error(question, n_cells, norm=n), n) for n in LIMITS)
        print(
            f"{name}, {n_cells}: {rows:.0f} (r = {r}, {kept_rows:.0%} kept); "
            f"{norm:.0f} (c = {c}, {kept_norm:.0%} kept); {rows / norm:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
