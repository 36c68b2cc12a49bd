"""``sfumato stream``: lines, CSV and Parquet in, JSON lines out; resumed, followed, stopped, refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import run
from support.workers import HANG

Run = Callable[..., tuple[int, list[dict[str, object]], str]]
COST = ["--epsilon", "1", "--budget", "2", "--ledger", "b.db", "--key", "k"]


@pytest.fixture
def stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, list[dict[str, object]], str]:
        code = run(["stream", *map(str, words)])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return call


def test_lines_that_grow_are_counted_once(stream: Run) -> None:
    file = Path("n.txt")
    file.write_text("3\n\n4\n")
    code, first, err = stream(file, "--horizon", 9, *COST)
    assert code == 0, err
    assert [line["event"] for line in first] == ["1", "2"]
    assert "Done after step 2 of 9" in err
    file.write_text("3\n\n4\n5\n")
    assert [line["step"] for line in stream(file, "--horizon", 9, *COST)[1]] == [3]
    file.write_text("1\n")
    assert [line["step"] for line in stream(file, "--horizon", 9, "--more", *COST)[1]] == [4]
    code, lines, _ = stream(
        file, "--horizon", 9, "--history", "--save", "r.json", "--plot", "r.png", *COST
    )
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[:2] == first
    assert Path("r.png").stat().st_size > 5_000
    assert run(["report", "r.json", "--out", "r.html"]) == 0
    assert run(["ledger", "verify", "--ledger", "b.db"]) == 0


def test_rows_of_csv_and_parquet_make_the_same_steps(stream: Run) -> None:
    rows = {
        "day": ["d1", "d1", "d2", "d2", "d2", "d3"],
        "kind": ["a", "b", "a", "a", "z", "a"],
        "x": [1.0, 9.0, 2.0, None, 1.0, 4.0],
    }
    pq.write_table(pa.table(rows).take([4, 0, 5, 2, 1, 3]), "t.parquet")
    lines = [
        "day, kind ,x",
        *(f"{d},{k},{'' if x is None else x}" for d, k, x in zip(*rows.values(), strict=True)),
    ]
    Path("t.csv").write_text("\n".join(lines))
    words = [
        "--step",
        "day",
        "--by",
        "kind=a,b",
        "--value",
        "x=0..4/1",
        "--horizon",
        3,
        "--budget",
        "200000000",
        "--epsilon",
        "90000000",
    ]
    for file in ("t.parquet", "t.csv"):
        code, found, err = stream(file, *words, "--ledger", "b.db", "--key", file)
        assert code == 0, err
        assert [line["event"] for line in found] == ["d1", "d2", "d3"]
        assert [line["total"] for line in found] == [
            {"a": 1, "b": 4},
            {"a": 3, "b": 4},
            {"a": 7, "b": 4},
        ], "this epsilon adds no noise"


def test_persons_count_as_often_as_allowed(stream: Run) -> None:
    Path("t.csv").write_text("day,who\n1,ann\n1,ann\n2,ann\n2,bob\n")
    words = [
        "--step",
        "day",
        "--person",
        "who",
        "--horizon",
        3,
        "--budget",
        "900000000",
        "--epsilon",
        "900000000",
        "--ledger",
        "b.db",
        "--key",
        "k",
    ]
    assert [line["total"] for line in stream("t.csv", *words)[1]] == [1, 2]


@pytest.mark.parametrize(
    ("words", "text", "code", "says"),
    [
        ([], "x918273\n", 4, "line 1 of the input"),
        (["--value", "0..1"], "1 x918273\n", 4, "line 1 of the input"),
        (["--value", "x=0..1"], "1\n", 2, "in no column"),
        (["--by", "kind=a,b"], "1\n", 2, "without --step"),
        (["--step", "day"], "dya,x\n1,2\n", 4, "did you mean 'dya'"),
        (["--horizon", "0"], "1\n", 2, "horizon = 0"),
        (["--horizon", "1"], "1\n2\n", 2, "its horizon of 1 steps is reached"),
        (["--plot", "x.doc"], "1\n", 2, "names no picture format"),
        (["--method", "blt", "--horizon", "4"], "1\n", 2, "pure epsilon allows none"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(
    stream: Run, words: list[str], text: str, code: int, says: str
) -> None:
    Path("n.txt").write_text(text)
    horizon = [] if "--horizon" in words else ["--horizon", 5]
    found, _, err = stream("n.txt", *words, *horizon, *COST)
    assert found == code
    assert says in err
    assert "918273" not in err
    assert "Traceback" not in err


def test_a_missing_file(stream: Run) -> None:
    assert stream("none.txt", "--horizon", 5, *COST)[0] == 4
    assert stream("none.parquet", "--step", "x", "--horizon", 5, *COST)[0] == 4
    assert stream("none.parquet", "--horizon", 5, *COST)[0] == 2


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """The limit only ends a hang."""
    until = time.monotonic() + HANG
    while not condition() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert condition()


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_following_a_file_until_a_signal(tmp_path: Path, which: signal.Signals) -> None:
    file, out = tmp_path / "n.txt", tmp_path / "out"
    file.write_text("1\n2\n")
    words = [
        sys.executable,
        "-m",
        "sfumato",
        "stream",
        str(file),
        "--follow",
        "--horizon",
        "9",
        *COST,
    ]
    with out.open("w") as target:
        process = subprocess.Popen(
            words, stdout=target, stderr=subprocess.PIPE, cwd=tmp_path, env=os.environ, text=True
        )
        try:
            wait_for(lambda: out.read_text().count("\n") == 2, process)
            with file.open("a") as more:
                more.write("3\n4")
            wait_for(lambda: out.read_text().count("\n") == 3, process)
            process.send_signal(which)
            err = process.communicate(timeout=HANG)[1]
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "Stopped after step 3 of 9" in err
    assert [json.loads(line)["step"] for line in out.read_text().splitlines()] == [1, 2, 3], (
        "half a line is no step"
    )


def test_standard_input_in_a_pipe(tmp_path: Path) -> None:
    shell = f"seq 30 | {sys.executable} -m sfumato stream --horizon 99 --epsilon 1 --budget 1 --key k | head -n 2"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert [json.loads(line)["step"] for line in done.stdout.splitlines()] == [1, 2]
    assert "Traceback" not in done.stderr


CALENDAR = ["--step", "day", "--from", "2013-01-01", "--to", "2013-01-05"]
LOUD = ["--epsilon", "90000000", "--budget", "900000000", "--ledger", "b.db"]


def test_a_calendar_publishes_each_of_its_steps(stream: Run) -> None:
    """Rows in any order, outside the calendar, without a date; days without rows; a file that grows."""
    Path("t.csv").write_text(
        "day,x\n2013-01-04,1\n2013-01-01T23:59,1\n2012-12-31,1\nsoon,1\n2013-01-04T00:00:00+05:00,1\n2013-01-06,1\n"
    )
    pq.write_table(
        pa.table(
            {"day": ["2013-01-04", "2013-01-01", "2012-12-31", None, "2013-01-04", "2013-01-06"]}
        ),
        "t.parquet",
    )
    for file in ("t.csv", "t.parquet"):
        code, lines, err = stream(file, *CALENDAR, *LOUD, "--key", file)
        assert code == 0, err
        assert [line["event"] for line in lines] == [f"2013-01-0{day}" for day in range(1, 6)]
        assert [line["total"] for line in lines] == [1, 1, 1, 3, 3], "this epsilon adds no noise"
        assert "Not protected" not in err
        assert stream(file, *CALENDAR, *LOUD, "--key", file)[1] == []


def test_one_row_out_of_place_moves_the_totals_by_one(stream: Run) -> None:
    """A row of the last day at the head of the file must not keep the rows of others from being counted."""
    rows = [f"2013-01-0{day},{n}" for day in (1, 2, 3, 4) for n in range(3)]
    found = {}
    for name, lines in (("without", rows), ("with", ["2013-01-05,9", *rows])):
        Path("t.csv").write_text("\n".join(["day,x", *lines]))
        found[name] = [
            line["total"] for line in stream("t.csv", *CALENDAR, *LOUD, "--key", name)[1]
        ]
    assert found == {"without": [3, 6, 9, 12, 12], "with": [3, 6, 9, 12, 13]}


def test_steps_are_published_when_they_are_over(stream: Run) -> None:
    Path("t.csv").write_text("day,x\n2013-01-01,1\n2013-01-03,1\n")
    assert [
        line["step"]
        for line in stream("t.csv", *CALENDAR, *LOUD, "--key", "k", "--until", "2013-01-02")[1]
    ] == [1, 2]
    with Path("t.csv").open("a") as more:
        more.write("2013-01-02,1\n2013-01-04,1\n")
    lines = stream("t.csv", *CALENDAR, *LOUD, "--key", "k", "--until", "2013-01-04")[1]
    assert [(line["step"], line["total"]) for line in lines] == [(3, 2), (4, 3)], (
        "what came after its step was published counts nowhere"
    )
    Path("t.csv").write_text("day,x\n9000-01-01,1\n")
    words = ["--step", "day", "--from", "9000-01-01", "--horizon", 5, *LOUD, "--key", "far"]
    assert stream("t.csv", *words)[1] == [], "it is not over yet"


def test_lines_over_listed_steps(stream: Run) -> None:
    Path("n.txt").write_text("mon, 3\nwed, 4\nsun, 9\n")
    words = ["n.txt", "--steps", "mon,tue,wed,thu", *LOUD, "--key", "k"]
    assert [(line["event"], line["total"]) for line in stream(*words)[1]] == [
        ("mon", 3),
        ("tue", 3),
        ("wed", 7),
    ]
    assert [line["event"] for line in stream(*words, "--until", "thu")[1]] == ["thu"]
    Path("n.txt").write_text("1\n2\n")
    assert [
        line["event"] for line in stream("n.txt", "--steps", "a,b", *LOUD, "--key", "m")[1]
    ] == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--from", "2013-01-01"], "one of --to and --horizon"),
        (
            ["--from", "2013-01-01", "--to", "2013-01-02", "--horizon", "5"],
            "one of --to and --horizon",
        ),
        (["--to", "2013-01-01"], "a calendar has a beginning"),
        (["--steps", "a,b", "--horizon", "2"], "other options name them"),
        (["--steps", "a,a"], "repeat"),
        (["--from", "soon", "--to", "2013-01-01"], "ISO date"),
        (["--horizon", "5", "--until", "3"], "no step of a calendar"),
        ([*CALENDAR, "--until", "2014-01-01"], "no step of a calendar"),
        ([*CALENDAR, "--follow"], "--follow with a calendar"),
    ],
)
def test_wrong_calendars_get_one_clear_sentence(stream: Run, words: list[str], says: str) -> None:
    Path("t.csv").write_text("day,x\n2013-01-01,1\n")
    code, _, err = stream("t.csv", *words, *COST)
    assert code == 2
    assert says in err
