"""Commands run in a folder of their own, on a small table of persons."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import run

Run = Callable[..., tuple[int, str, str]]
RunLines = Callable[..., tuple[int, list[dict[str, object]], str]]


PLAN = """
[source]
path = "people.parquet"
person = "who"
rows_per_person = 2

[domain]
age = {{ type = "interval", lower = 0, upper = 120, step = 1 }}
kind = {{ type = "categories", labels = ["a", "b"] }}
day = {{ type = "interval", lower = 2013-01-01, upper = 2013-01-05 }}

[budget]
account = "people"
epsilon = "2"

[release]
epsilon = "{epsilon}"
shares = [2, 1, 1]

[[questions]]
type = "histogram"
axes = ["kind", "age"]
bins = {{ age = [0, 18, 65, 120] }}

[[questions]]
type = "uniform"
axes = ["age"]

[[questions]]
type = "histogram"
axes = "day"
"""


@pytest.fixture
def sfumato(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command; return its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    days = (np.datetime64("2013-01-01") + rng.integers(0, 4, 300)).astype("datetime64[D]")
    table = {
        "who": rng.integers(0, 90, 300),
        "age": rng.integers(0, 99, 300),
        "kind": rng.choice(["a", "b", "c"], 300),
        "day": days,
    }
    pq.write_table(pa.table(table), "people.parquet")
    Path("plan.toml").write_text(PLAN.format(epsilon="0.5"))
    Path("dear.toml").write_text(PLAN.format(epsilon="5"))

    def call(*args: object) -> tuple[int, str, str]:
        code = run([str(word) for word in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> RunLines:
    """Run ``sfumato stream``; return its exit code, the lines of stdout as objects, and stderr."""
    monkeypatch.chdir(tmp_path)

    def call(*args: object) -> tuple[int, list[dict[str, object]], str]:
        code = run(["stream", *map(str, args)])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return call
