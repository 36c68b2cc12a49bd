"""One report a device; a server that reads reports and nothing else."""

from __future__ import annotations

import ast
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.local import Client, Collector, Report
from sfumato.local import collector as collecting
from sfumato.local.client import label, mechanism_of, reports
from support.canary import overheard, sightings

BOUNDS = {"age": sf.Interval(0, 120), "income": sf.Interval(0, 200_000)}
MADE = sf.BPM(4, "auto", 2)


def test_a_device_reports_once_whatever_its_value_becomes(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    first = Client(MADE, BOUNDS, memory).report([37, 41_000])
    assert Client(MADE, BOUNDS, memory).report([99, 1]) == first
    assert memory.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [memory]
    with pytest.raises(sf.UsageError, match="second report"):
        Client(sf.BPM(8, "auto", 2), BOUNDS, memory).report([37, 41_000])
    assert Client(MADE, BOUNDS).report([37, 41_000]) != first


def test_a_device_that_was_second_hands_out_the_report_of_the_first(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    one, two = Client(MADE, BOUNDS, memory), Client(MADE, BOUNDS, memory)
    assert two._remembered() is None
    first = one.report([37, 41_000])
    two._remembered = lambda: None if not two._report else first  # type: ignore[method-assign]
    del two._remembered  # both looked before either wrote: the link decides
    assert two._kept(reports(MADE, np.array([[0.5, 0.5]]))[0]) == first


def test_a_device_keeps_no_value(tmp_path: Path) -> None:
    secret = 37.81240913
    client = Client(MADE, BOUNDS, tmp_path / "mine.json")
    report = client.report([secret, 41_000])
    assert sightings(secret, client, report, vars(client)) == []
    assert secret.hex().encode() not in pickle.dumps(client)
    for call in (
        lambda: client.report([secret]),
        lambda: Client(MADE, BOUNDS).report([secret, float("nan")]),
    ):
        assert overheard(secret, call) == []


def test_a_memory_that_leads_nowhere_is_an_error_of_its_own(tmp_path: Path) -> None:
    memory = tmp_path / "mine.json"
    memory.symlink_to(tmp_path / "gone" / "elsewhere.json")
    with pytest.raises(sf.DataError, match="does not hold a report"):
        Client(MADE, BOUNDS, memory).report([37, 41_000])
    assert list(tmp_path.iterdir()) == [memory]


def test_a_memory_that_vanishes_is_an_error_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(MADE, BOUNDS, tmp_path / "mine.json")
    monkeypatch.setattr(client, "_remembered", lambda: None)
    with pytest.raises(sf.DataError, match="removed"):
        client.report([37, 41_000])


@pytest.mark.parametrize(
    "bounds", [[(0, 1)], [(1, 0), (0, 1)], [(0, float("inf")), (0, 1)], "ab", [(0, None), (0, 1)]]
)
def test_bounds_are_public_and_complete(bounds: object) -> None:
    with pytest.raises(sf.UsageError):
        Client(MADE, bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [MADE, sf.MultivariateLaplace("1/3", 3)], ids=str)
def test_labels_are_read_back(made: sf.BPM | sf.MultivariateLaplace) -> None:
    assert mechanism_of(label(made)) == made
    for text in (
        "",
        "bpm",
        "bpm,epsilon=1,L=auto,dimension=2",
        "bpm,epsilon=x,L=1,dimension=2",
        "laplace,epsilon=1,dimension=99999999",
    ):
        with pytest.raises((sf.DataError, sf.UsageError)):
            mechanism_of(text)


@pytest.mark.parametrize("name", ["r.jsonl", "r.parquet"])
def test_reports_travel_by_file(tmp_path: Path, name: str) -> None:
    drawn = reports(MADE, np.random.default_rng(0).random((500, 2)))
    collecting.write(drawn, tmp_path / name)
    server = Collector()
    server.read(tmp_path / name)
    server.read(tmp_path / name)  # copies count once
    assert (len(server), server.refused, server.mechanism) == (500, 500, MADE)
    assert np.array_equal(server.points(), MADE.place(np.array([each.cells for each in drawn])))
    assert server.decode(2, random_state=1).centers.shape == (2, 2)


def test_what_is_no_report_is_counted_and_left_out(tmp_path: Path) -> None:
    good = reports(MADE, np.full((3, 2), 0.5))
    bad = [
        Report(label(sf.BPM(8, "auto", 2)), "a", (1, 2)),
        Report(good[0].to, "b", (1, 2, 3)),
        Report(good[0].to, "c", (-1, 2)),
        Report(good[0].to, "d", (2**16, 2)),
        Report(good[0].to, "", (1, 2)),
        good[0],
    ]
    lines = [json.dumps({"to": r.to, "id": r.id, "cells": r.cells}) for r in good + bad]
    lines += [
        "",
        "no JSON",
        '{"to": 1}',
        '{"to": "x", "id": "y", "cells": [0.5]}',
        '{"to": "x", "id": "y", "cells": [1], "value": 7}',
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    server = Collector(MADE)
    server.read(tmp_path / "r.jsonl")
    assert (len(server), server.refused) == (3, len(bad) + 4)
    for name, content in (("none.jsonl", None), ("bad.parquet", b"no parquet")):
        if content:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(sf.DataError):
            server.read(tmp_path / name)
    with pytest.raises(sf.UsageError, match="none has been collected"):
        Collector().decode(1)


def test_the_server_has_no_way_to_a_true_value() -> None:
    """The collector and the decoder import nothing that perturbs or reads tables, by name or by
    module.
    """
    room = Path(collecting.__file__).parent
    for path in [room / "collector.py", *(room / "decoding").glob("*.py")]:
        source = path.read_text(encoding="utf-8")
        named = {
            alias.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom | ast.Import)
            for alias in node.names
        }
        assert not named & {"Client", "draw", "reports", "to_unit", "current", "Offsets"}
        assert "perturb(" not in source
        assert "draw_cells(" not in source


# --- the command line -----------------------------------------------------------------------------


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
