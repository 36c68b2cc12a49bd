"""The benchmark command prints what it measured; it asserts no speed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.bench import SUBJECTS, run
from sfumato.cli import run as command
from sfumato.errors import UsageError


def test_a_subject_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["bench", "start", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("what\tms")
    figures = json.loads((tmp_path / "bench.json").read_text())["figures"]
    assert {row["what"] for row in figures["start"]} >= {"import sfumato", "sfumato --help"}
    assert (tmp_path / "bench.md").read_text().startswith("# Benchmarks")


def test_an_unknown_subject_is_named_back() -> None:
    with pytest.raises(UsageError, match="did you mean 'noise'"):
        list(run(["noize"]))
    assert list(SUBJECTS) == sorted(SUBJECTS)
