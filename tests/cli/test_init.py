"""``sfumato init`` writes a plan that runs once its domain is filled in, and reads no row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import run
from sfumato.demo import flights_path


def test_a_plan_that_is_filled_in_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "flights.toml"
    assert run(["init", str(flights_path()), "--out", str(plan)]) == 0
    assert run(["preview", str(plan)]) == 2  # nothing is known of any column yet
    text = plan.read_text().replace(
        '# hour = { type = "interval", lower = ?, upper = ?',
        'hour = { type = "interval", lower = 0, upper = 24',
    )
    plan.write_text(re.sub(r"^axes = .*$", 'axes = ["hour"]', text, flags=re.M))
    capsys.readouterr()
    assert run(["preview", str(plan)]) == 0
    assert "24 counts" in capsys.readouterr().out
    assert (
        run(["init", str(flights_path()), "--out", str(plan)]) == 2
    )  # never over a plan that exists


def test_no_value_of_a_row_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(
        pa.table({"a b": ["canary"], "n": [271828], "l": [[1]], "ok": [True]}),
        tmp_path / "t.parquet",
    )
    (tmp_path / "t.csv").write_text("x,y\ncanary,271828\n")
    for name in ("t.parquet", "t.csv"):
        assert run(["init", str(tmp_path / name)]) == 0
        out = capsys.readouterr().out
        assert "canary" not in out
        assert "271828" not in out
        assert '\n# "a b" = { type = "categories"' in out or "\n# x = " in out
    capsys.readouterr()
    assert run(["init", "--json", str(tmp_path / "t.parquet")]) == 0
    assert json.loads(capsys.readouterr().out) == {"a b": "text", "n": "whole", "ok": "yes or no"}
    assert run(["init", str(tmp_path / "none.parquet")]) == 4


def test_a_folder_has_the_types_of_its_files_and_columns_of_its_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    below = tmp_path / "visits" / "year=2013"
    below.mkdir(parents=True)
    pq.write_table(pa.table({"n": [271828]}), below / "t.parquet")
    assert run(["init", "--json", str(tmp_path / "visits")]) == 0
    assert json.loads(capsys.readouterr().out) == {"n": "whole", "year": "unknown"}
