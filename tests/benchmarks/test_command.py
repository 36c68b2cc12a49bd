"""``python -m benchmarks`` prints and writes what it measured; no test asserts a speed."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from benchmarks.__main__ import bench
from sfumato.errors import DataError


def test_a_subject_is_measured_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench.json").write_text(
        '{"noise": {"machine": "m", "date": "d", "version": "v", "rows": [{"who": "earlier"}]}}'
    )
    bench(["start", "--quick", "--out", str(tmp_path)], standalone_mode=False)
    assert capsys.readouterr().out.splitlines()[1].startswith("what\tms")
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert {row["what"] for row in figures["start"]["rows"]} >= {"import sfumato", "sfumato --help"}
    assert (tmp_path / "bench.md").read_text().startswith("# Benchmarks")
    # Figures of subjects that were measured before stay.
    assert "| earlier |" in (tmp_path / "bench.md").read_text()
    assert "import sfumato: " in (tmp_path / "bench-start.svg").read_text()


def test_each_subject_is_written_before_it_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(StringIO):
        """An output that nobody reads any more."""

        def write(self, text: str) -> int:
            raise BrokenPipeError

    rows = [{"what": "a step", "who": "Sfumato", "ms": 1.0}]
    monkeypatch.setattr("benchmarks.run.run", lambda subjects, quick: iter([("start", rows)]))
    monkeypatch.setattr(sys, "stdout", Gone())
    with pytest.raises(BrokenPipeError):
        bench(["start", "--out", str(tmp_path)], standalone_mode=False)
    assert json.loads((tmp_path / "bench.json").read_text())["start"]["rows"] == rows


def test_a_page_that_is_not_ours_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bench.json").write_text("no JSON")
    rows = [{"what": "import sfumato", "ms": 1.0}]
    monkeypatch.setattr("benchmarks.run.run", lambda subjects, quick: iter([("start", rows)]))
    with pytest.raises(DataError, match="not one of ours"):
        bench(["start", "--out", str(tmp_path)], standalone_mode=False)
    assert (tmp_path / "bench.json").read_text() == "no JSON"
