"""Which subjects there are, and how they are run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence

from sfumato.bench.tables import Row
from sfumato.errors import UsageError, nearest

SUBJECTS = {
    "ledger": "Durable charges a second, beside bare synced appends.",
    "noise": "Exact samples a second, beside OpenDP and numpy's inexact law.",
    "release": "From a cube to a stored release, beside adding numpy noise.",
    "risk": "The epsilon for a disclosure risk, beside the source's enumeration and a bare sort.",
    "scan": "Counting a Parquet file of 10^8 rows, beside decoding it, DuckDB and Polars.",
    "start": "Start of the command and of the import, beside the interpreter's own.",
}


def run(subjects: Sequence[str] = (), *, quick: bool = False) -> Iterator[tuple[str, list[Row]]]:
    """Measure the named subjects, or all, one after another.

    Raises
    ------
    UsageError
        If a subject is unknown.
    """
    for subject in subjects:
        if subject not in SUBJECTS:
            raise UsageError(f"benchmark {subject!r}", f"there is none of that name; {nearest(subject, SUBJECTS)}", "Name one of them")
    for subject in subjects or SUBJECTS:
        yield subject, importlib.import_module(f"sfumato.bench.{subject}").rows(quick)
