"""The commands of devices and servers: from one report to clusters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.local import Collector
from sfumato.local import collector as collecting
from sfumato.local.client import reports


def test_commands_from_device_to_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    device = [
        "local",
        "perturb",
        "--axis",
        "age=0..120",
        "--value",
        "age=37",
        "--epsilon",
        "4",
        "--memory",
        "mine.json",
    ]
    assert run(device) == 0
    first = capsys.readouterr().out
    assert run(device) == 0
    assert capsys.readouterr().out == first
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(800) < 0.5, 20, 80) + rng.normal(size=800)
    Path("people.csv").write_text("age\n" + "\n".join(map(str, rows)) + "\n\n")
    words = [
        "people.csv",
        "--axis",
        "age=0..120",
        "--clusters",
        "2",
        "--epsilon",
        "40",
        "--out",
        "r.jsonl",
        "--json",
    ]
    assert run(["local", "simulate", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(round(center[0], -1) for center in found["centers"]) == [20, 80]
    # The centres' errors add 4.5 % in the mean, by a chi-squared law of two degrees: beyond 2 once
    # in 10^9.
    assert found["sse"]["reports, decoded"] < 2 * found["sse"]["true rows"]
    assert (
        run(
            [
                "local",
                "collect",
                "r.jsonl",
                "--clusters",
                "2",
                "--axis",
                "age=0..120",
                "--epsilon",
                "40",
            ]
        )
        == 0
    )
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1] == "share\tage\t+-"
    assert "800 reports, 0 refused. Metric privacy" in captured.err


def test_a_hostile_first_report_does_not_choose_the_mechanism(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = sf.MultivariateLaplace(40, 1)
    good = reports(made, np.repeat([0.2, 0.8], 200)[:, None])
    hostile = reports(sf.MultivariateLaplace(1, 1), np.array([[0.5]]))
    for name in ("r.jsonl", "r.parquet"):
        collecting.write(hostile + good if name == "r.jsonl" else good, tmp_path / name)
    words = [
        "local",
        "collect",
        str(tmp_path / "r.jsonl"),
        "--clusters",
        "2",
        "--axis",
        "age=0..120",
        "--json",
    ]
    assert run([*words, "--epsilon", "40", "--mechanism", "laplace"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["reports"], found["refused"], "first report" in captured.err) == (400, 1, False)
    assert run([*words[:-1], "--epsilon", "40"]) == 2  # reports to another mechanism only
    assert "were left out" in capsys.readouterr().err
    with pytest.raises(sf.UsageError):
        Collector(sf.BPM(40, "auto", 1)).decode(1)
    words[2] = str(tmp_path / "r.parquet")
    assert run(words) == 2  # nobody said to which mechanism
    assert "Give --epsilon" in capsys.readouterr().err
    assert run([*words, "--any-mechanism"]) == 0
    assert (
        "The first report decided that reports to laplace,epsilon=40,dimension=1"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "words",
    [
        ["collect", "r.jsonl", "--clusters", "2", "--epsilon", "4"],
        ["collect", "r.jsonl", "--clusters", "2", "--mechanism", "laplace"],
        ["perturb", "--axis", "age=0..120", "--value", "height=3", "--epsilon", "4"],
        ["perturb", "--axis", "age=0..120", "--value", "age=old", "--epsilon", "4"],
        ["perturb", "--axis", "age=a,b", "--value", "age=a", "--epsilon", "4"],
        ["perturb", "--axis", "age=0..120", "--value", "age=3", "--epsilon", "0"],
    ],
)
def test_bad_words_end_with_code_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["local", *words]) == 2


def test_a_table_over_epsilon_and_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a file with semicolons and decimal commas."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = np.where(rng.random(200) < 0.5, 20, 80) + rng.normal(size=200)
    lines = [f"a;{row:.3f}".replace(".", ",") for row in rows]
    Path("people.csv").write_text("name;age\n" + "\n".join(lines) + "\nb;\n")
    words = ["local", "simulate", "people.csv", "--separator", ";", "--decimal", ","]
    words += ["--axis", "age=0..120", "--clusters", "2", "--epsilon", "4,40", "--radius", ".3,auto"]
    assert run([*words, "--plot", "t.svg", "--report", "t.html"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split("\t")[:4] == ["mechanism", "epsilon", "L", "decoded"]
    assert "200 points in 1 dimension, 2 clusters; one draw of the noise" in captured.err
    assert "not private" in captured.err
    assert "<svg" in Path("t.svg").read_text()
    assert "rehearsed over epsilon and L" in Path("t.html").read_text()
    assert run([*words, "--epsilon", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["L"] for row in found["rows"][:2]] == ["0.3", "auto: 1.814"]
    for wrong in (["--out", "r.jsonl"], ["--mechanism", "laplace"]):
        assert run([*words, *wrong]) == 2
    assert not Path("r.jsonl").exists()


def test_a_report_on_collected_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    collecting.write(reports(sf.BPM(40, "auto", 1), np.repeat([0.2, 0.8], 200)[:, None]), "r.jsonl")
    words = ["local", "collect", "r.jsonl", "--clusters", "2", "--axis", "age=0..120"]
    assert run([*words, "--epsilon", "40", "--report", "c.html"]) == 0
    page = Path("c.html").read_text()
    assert "<b>400</b> reports" in page
    assert "of the persons: age" in page
    assert "NOT PRIVATE" not in page
    capsys.readouterr()
