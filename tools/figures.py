"""Write what was measured into its pages and the audit's, from docs/evidence.

`make docs` runs it, and a test compares.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.measuring import shown
from sfumato.audit import COLUMNS, Finding
from sfumato.basics import from_bytes

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MEASURED = DOCS / "measured.md"
SCALE = DOCS / "scale.md"
AUDIT = DOCS / "audit.md"
EVIDENCE = DOCS / "evidence"
IN_MEASURED = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.S)
IN_AUDIT = re.compile(r"(?<=```text\n).*?(?=```)", re.S)
SCAN = ("what", "cells", "cpu s", "of decoding", "wall s", "peak MiB")
CORES = (
    *("what", "rows", "who", "threads", "wall s", "cpu s", "peak MiB"),
    *("wall s of the best", "cpu s of the best"),
)
BRIEF = [0, 2, 3, 4, 5, 6]  # of the audit's columns


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    found: list[Finding] = from_bytes((EVIDENCE / "audit.json").read_bytes(), list[Finding])
    return {
        MEASURED: IN_MEASURED.sub(lambda _: excerpt(found), MEASURED.read_text(encoding="utf-8")),
        SCALE: IN_MEASURED.sub(lambda _: cores(), SCALE.read_text(encoding="utf-8")),
        AUDIT: IN_AUDIT.sub(lambda _: whole(found), AUDIT.read_text(encoding="utf-8")),
    }


def excerpt(found: list[Finding]) -> str:
    """Make the tables of the page: one benchmark, and a line for each subject of the quick audit.

    Each subject is shown at its simplest unit.
    """
    scan = json.loads((EVIDENCE / "bench.json").read_text(encoding="utf-8"))["scan"]
    rows = [tuple(shown(row.get(head, "")) for head in SCAN) for row in scan["rows"]]
    first = {finding.subject: finding for finding in reversed(found)}
    lines = [
        tuple(first[name].row()[i] for i in BRIEF)
        for name in dict.fromkeys(finding.subject for finding in found)
    ]
    parts = [
        f"`make bench`, the scan of {scan['rows'][0]['rows']:,} rows of Parquet "
        f"({scan['machine']}):",
        _table(SCAN, rows),
    ]
    parts += [
        "`sfumato audit --quick`, one line a subject:",
        _table(tuple(COLUMNS[i] for i in BRIEF), lines),
    ]
    return "\n\n".join(parts) + "\n"


def cores() -> str:
    """Make the table of answers on all cores."""
    measured = json.loads((EVIDENCE / "bench.json").read_text(encoding="utf-8"))["cores"]
    rows = [tuple(shown(row.get(head, "")) for head in CORES) for row in measured["rows"]]
    said = f"`make scale`, {measured['date']}, {measured['machine']}:"
    return f"{said}\n\n{_table(CORES, rows)}\n"


def whole(found: list[Finding]) -> str:
    """Make the audit's table, as a pipe through ``column`` shows it."""
    rows = [COLUMNS, *(finding.row() for finding in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ("---",) * len(heads), *rows])


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
