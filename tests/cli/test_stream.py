"""``sfumato stream``: lines, CSV and Parquet in, one line of JSON per step out, each step once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.cli import run

Run = Callable[..., tuple[int, list[dict[str, object]], str]]
COST = ["--epsilon", "1", "--budget", "2", "--ledger", "b.db", "--key", "k"]

CALENDAR = ["--step", "day", "--from", "2013-01-01", "--to", "2013-01-05"]

# So large an epsilon adds no noise.
NOISELESS = ["--epsilon", "90000000", "--budget", "900000000", "--ledger", "b.db"]


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
    words = ("--heading", "Visits", "--measured-in", "visits")
    assert stream(file, "--horizon", 9, "--save", "n.json", *words, *COST)[0] == 0
    assert sf.load("n.json").heading == "Visits"
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
    args = [
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
        code, found, err = stream(file, *args, "--ledger", "b.db", "--key", file)
        assert code == 0, err
        assert [line["event"] for line in found] == ["d1", "d2", "d3"]
        assert [line["total"] for line in found] == [
            {"a": 1, "b": 4},
            {"a": 3, "b": 4},
            {"a": 7, "b": 4},
        ], "this epsilon adds no noise"


def test_persons_count_as_often_as_allowed(stream: Run) -> None:
    Path("t.csv").write_text("day,who\n1,ann\n1,ann\n2,ann\n2,bob\n")
    args = [
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
    assert [line["total"] for line in stream("t.csv", *args)[1]] == [1, 2]


def test_a_calendar_publishes_each_of_its_steps(stream: Run) -> None:
    """Also with rows in any order, rows outside the calendar or without a date, and empty days."""
    times = [
        "2013-01-04",
        "2013-01-01T23:59",
        "2012-12-31",
        "soon",
        "2013-01-04T00:00:00+05:00",
        "2013-01-06",
    ]
    Path("t.csv").write_text("\n".join(["day,x", *(f"{time},1" for time in times), ""]))
    pq.write_table(
        pa.table(
            {"day": ["2013-01-04", "2013-01-01", "2012-12-31", None, "2013-01-04", "2013-01-06"]}
        ),
        "t.parquet",
    )
    for file in ("t.csv", "t.parquet"):
        code, lines, err = stream(file, *CALENDAR, *NOISELESS, "--key", file)
        assert code == 0, err
        assert [line["event"] for line in lines] == [f"2013-01-0{day}" for day in range(1, 6)]
        assert [line["total"] for line in lines] == [1, 1, 1, 3, 3], "this epsilon adds no noise"
        assert "Not protected" not in err
        assert stream(file, *CALENDAR, *NOISELESS, "--key", file)[1] == []


def test_one_row_out_of_place_moves_the_totals_by_one(stream: Run) -> None:
    """A row of the last day at the head of the file does not keep other rows from being counted."""
    rows = [f"2013-01-0{day},{n}" for day in (1, 2, 3, 4) for n in range(3)]
    found = {}
    for name, lines in (("without", rows), ("with", ["2013-01-05,9", *rows])):
        Path("t.csv").write_text("\n".join(["day,x", *lines]))
        found[name] = [
            line["total"] for line in stream("t.csv", *CALENDAR, *NOISELESS, "--key", name)[1]
        ]
    assert found == {"without": [3, 6, 9, 12, 12], "with": [3, 6, 9, 12, 13]}


def test_steps_are_published_when_they_are_over(stream: Run) -> None:
    Path("t.csv").write_text("day,x\n2013-01-01,1\n2013-01-03,1\n")
    assert [
        line["step"]
        for line in stream("t.csv", *CALENDAR, *NOISELESS, "--key", "k", "--until", "2013-01-02")[1]
    ] == [1, 2]
    with Path("t.csv").open("a") as more:
        more.write("2013-01-02,1\n2013-01-04,1\n")
    lines = stream("t.csv", *CALENDAR, *NOISELESS, "--key", "k", "--until", "2013-01-04")[1]
    assert [(line["step"], line["total"]) for line in lines] == [(3, 2), (4, 3)], (
        "what came after its step was published counts nowhere"
    )
    Path("t.csv").write_text("day,x\n9000-01-01,1\n")
    args = ["--step", "day", "--from", "9000-01-01", "--horizon", 5, *NOISELESS, "--key", "far"]
    assert stream("t.csv", *args)[1] == [], "it is not over yet"


def test_lines_over_listed_steps(stream: Run) -> None:
    Path("n.txt").write_text("mon, 3\nwed, 4\nsun, 9\n")
    args = ["n.txt", "--steps", "mon,tue,wed,thu", *NOISELESS, "--key", "k"]
    assert [(line["event"], line["total"]) for line in stream(*args)[1]] == [
        ("mon", 3),
        ("tue", 3),
        ("wed", 7),
    ]
    assert [line["event"] for line in stream(*args, "--until", "thu")[1]] == ["thu"]
    Path("n.txt").write_text("1\n2\n")
    assert [
        line["event"] for line in stream("n.txt", "--steps", "a,b", *NOISELESS, "--key", "m")[1]
    ] == ["a", "b"]
