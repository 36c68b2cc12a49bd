"""The page about epsilon runs, and prints what it says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "epsilon.md"


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n(?:.*?)```text\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 3
    for code, printed in blocks:
        exec(compile(code, PAGE.name, "exec"), {})
        assert capsys.readouterr().out == printed
    assert "<svg" in (tmp_path / "window.svg").read_text(encoding="utf-8")
    assert "<svg" in (tmp_path / "risk.svg").read_text(encoding="utf-8")
