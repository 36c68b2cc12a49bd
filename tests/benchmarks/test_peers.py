"""Peers of the benchmark run in environments of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import peers


def test_a_peer_is_measured_in_its_own_environment_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.FOLDER, str(tmp_path))
    asked = {"law": "laplace", "scale": 1.0, "size": 10, "runs": 1}
    assert peers.ask("opendp", "noise", tuple[float, float], **asked) is None
    environment = tmp_path / "opendp"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    # An installation that was cut short does not count.
    assert peers.python("opendp") is None
    (environment / "whole").touch()
    monkeypatch.setattr(peers, "CALL", "import sys; print(sys.argv[2:])")
    monkeypatch.setattr(peers.json, "loads", str.strip)
    assert peers.ask("opendp", "noise", str, law="laplace") == str(
        ["opendp", "noise", '{"law": "laplace"}']
    )
