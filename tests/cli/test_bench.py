"""What ``sfumato bench`` prints, and that it leaves nothing behind; no test asserts a speed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sfumato.cli import audit as bench

Run = Callable[..., tuple[int, str, str]]
UNITS = {
    "count a Parquet file, without persons": "rows a second",
    "count a Parquet file, with persons": "rows a second",
    "draw exact Laplace noise": "draws a second",
    "draw exact Gaussian noise": "draws a second",
    "charge a ledger in a file": "charges a second",
    "publish 32 bins of 1,000 rows": "milliseconds",
}


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files; little is measured."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(bench, "QUICK", bench.Sizes(rows=2000, draws=100, charges=2, runs=1))
    return folder


def test_each_figure_has_a_line_and_nothing_is_left(sfumato: Run, temporary: Path) -> None:
    before = sorted(Path().iterdir())
    code, out, err = sfumato("bench", "--quick")
    assert code == 0
    machine, head, *lines = (line.split("\t") for line in out.splitlines())
    assert machine[0].startswith("# Sfumato ")
    assert head == ["what", "figure", "unit"]
    assert {what: unit for what, _, unit in lines} == UNITS
    assert all(float(figure) > 0 for _, figure, _ in lines)
    assert "docs/evidence/bench.md" in err
    assert "python -m benchmarks --peers" in " ".join(err.split())
    assert list(temporary.iterdir()) == []
    assert sorted(Path().iterdir()) == before


def test_json_has_the_same_figures(sfumato: Run) -> None:
    code, out, _ = sfumato("bench", "--quick", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["machine"].startswith("Sfumato ")
    assert {figure["what"]: figure["unit"] for figure in found["figures"]} == UNITS
    assert all(figure["figure"] > 0 for figure in found["figures"])


def test_a_run_that_fails_leaves_nothing(
    sfumato: Run, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        assert list(temporary.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "_charges", stopped)
    assert sfumato("bench", "--quick")[0] == 130
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [("--peers",), ("--quick", "--out", "figures"), ("--out=figures",), ("ledger", "--quick")],
    ids=" ".join,
)
def test_what_has_moved_is_refused_and_the_place_is_said(
    sfumato: Run, words: tuple[str, ...]
) -> None:
    code, out, err = sfumato("bench", *words)
    assert (code, out) == (2, "")
    assert f"python -m benchmarks {' '.join(words)}" in " ".join(err.split())
    assert not Path("figures").exists()


def test_a_misspelt_option_is_not_said_to_have_moved(sfumato: Run) -> None:
    code, _, err = sfumato("bench", "--quik")
    assert code == 2
    assert "did you mean '--quick'" in err
    assert "benchmarks" not in err


def test_figures_have_three_digits() -> None:
    assert bench._rate("", 12_345_678.9, "").figure == 12_300_000
    assert bench._rate("", 0.012_345, "").figure == 0.0123
    assert isinstance(bench._rate("", 99.99, "").figure, int)
