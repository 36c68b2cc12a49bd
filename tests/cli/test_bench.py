"""``sfumato bench`` prints and writes what it measured; no test asserts a speed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.cli import run


def test_a_subject_is_measured_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text(
        '{"noise": {"machine": "m", "date": "d", "version": "v", "rows": [{"who": "earlier"}]}}'
    )
    assert run(["bench", "start", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("what\tms")
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert {row["what"] for row in figures["start"]["rows"]} >= {"import sfumato", "sfumato --help"}
    assert (tmp_path / "bench.md").read_text().startswith("# Benchmarks")
    # Figures of subjects that were measured before stay.
    assert "| earlier |" in (tmp_path / "bench.md").read_text()
    assert "import sfumato: " in (tmp_path / "bench-start.svg").read_text()
