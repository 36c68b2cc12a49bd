"""Write the README's excerpt of what was measured, from docs/evidence. `make docs` runs it, and a test compares."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sfumato.bench.tables import shown

ROOT = Path(__file__).parent.parent
README, EVIDENCE = ROOT / "README.md", ROOT / "docs" / "evidence"
BETWEEN = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- end of figures -->)", re.S)
SCAN = ("what", "cells", "cpu s", "of decoding", "wall s", "peak MiB")
FINDING = ("subject", "claim", "exact", "sampled", "verdict")


def excerpt() -> str:
    """Make the excerpt: one benchmark, and one line a subject of the quick audit."""
    scan = json.loads((EVIDENCE / "bench.json").read_text(encoding="utf-8"))["scan"]
    findings = json.loads((EVIDENCE / "audit.json").read_text(encoding="utf-8"))
    rows = [tuple(shown(row.get(head, "")) for head in SCAN) for row in scan["rows"]]
    parts = [f"`make bench`, the scan of {scan['rows'][0]['rows']:,} rows of Parquet ({scan['machine']}):", _table(SCAN, rows)]
    parts += ["`sfumato audit --quick`, one line a subject (add-remove, pure epsilon):", _table(FINDING, _first(findings))]
    return "\n\n".join(parts) + "\n"


def readme() -> str:
    """The README with the excerpt as it should be."""
    return BETWEEN.sub(lambda _: excerpt(), README.read_text(encoding="utf-8"))


def _first(findings: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Take each subject's first finding: its simplest unit, at a pure epsilon where it has one."""
    chosen: dict[str, dict[str, Any]] = {}
    for finding in findings:
        chosen.setdefault(finding["subject"], finding)
    return [_row(finding) for finding in chosen.values()]


def _row(finding: dict[str, Any]) -> tuple[str, ...]:
    claim, exact = finding["claim"], finding["exact"]
    said = ", ".join(f"{name} = {value}" for name, value in claim.items() if name != "type")
    exact = f"{exact:.3f}" if isinstance(exact, float) else exact or "-"
    return finding["subject"], said, exact, f"{finding['sampled']:.3f}", "ok" if finding["ok"] else "FAILS"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in [heads, ("---",) * len(heads), *rows])


if __name__ == "__main__":
    README.write_text(readme(), encoding="utf-8")
