"""The page on sources: its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, "data.md", "exec"), names)
    assert len(names["by_year"].values) == 2  # type: ignore[attr-defined]
    (shown,) = re.findall(r"```text\n(.*?)```", page, flags=re.S)
    assert capsys.readouterr().out == shown
