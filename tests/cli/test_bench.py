"""The benchmark command prints what it measured; it asserts no speed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from sfumato.bench import SUBJECTS, peers, run
from sfumato.cli import run as command
from sfumato.errors import UsageError


def test_a_subject_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bench.json").write_text(
        '{"noise": {"machine": "m", "date": "d", "version": "v", "rows": [{"who": "earlier"}]}}'
    )
    assert command(["bench", "start", "--quick", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("what\tms")
    figures = json.loads((tmp_path / "bench.json").read_text())
    assert {row["what"] for row in figures["start"]["rows"]} >= {"import sfumato", "sfumato --help"}
    assert (tmp_path / "bench.md").read_text().startswith("# Benchmarks")
    assert "| earlier |" in (tmp_path / "bench.md").read_text()  # what was measured before stays
    assert "import sfumato: " in (tmp_path / "bench-start.svg").read_text()


def test_an_unknown_subject_is_named_back() -> None:
    with pytest.raises(UsageError, match="did you mean 'noise'"):
        list(run(["noize"]))
    assert list(SUBJECTS) == sorted(SUBJECTS)
    for subject in SUBJECTS:
        assert importlib.import_module(f"sfumato.bench.{subject}").CHART.names


def test_a_peer_is_measured_in_its_own_environment_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.FOLDER, str(tmp_path))
    assert (
        peers.ask("opendp", "noise", tuple[float, float], law="laplace", scale=1.0, size=10, runs=1)
        is None
    )
    place = tmp_path / "opendp"
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    assert peers.python("opendp") is None  # an installation that was cut short
    (place / "whole").touch()
    monkeypatch.setattr(peers, "CALL", "import sys; print(sys.argv[2:])")
    monkeypatch.setattr(peers.json, "loads", str.strip)
    assert peers.ask("opendp", "noise", str, law="laplace") == str(
        ["opendp", "noise", '{"law": "laplace"}']
    )
