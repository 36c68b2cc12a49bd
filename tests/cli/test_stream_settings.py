"""Options of ``sfumato stream`` that do not fit together get one clear sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, list[dict[str, object]], str]]
COST = ["--epsilon", "1", "--budget", "2", "--ledger", "b.db", "--key", "k"]

CALENDAR = ["--step", "day", "--from", "2013-01-01", "--to", "2013-01-05"]


@pytest.mark.parametrize(
    ("args", "text", "code", "says"),
    [
        ([], "x918273\n", 4, "line 1 of the input"),
        (["--value", "0..1"], "1 x918273\n", 4, "line 1 of the input"),
        (["--value", "x=0..1"], "1\n", 2, "in no column"),
        (["--by", "kind=a,b"], "1\n", 2, "without --step"),
        (["--by", "d=weekday:when", "--step", "s"], "s,when\n", 2, "derives none from dates"),
        (["--step", "day"], "dya,x\n1,2\n", 4, "did you mean 'dya'"),
        (["--step", "day"], "day;x\n1;2\n", 4, '--separator ";"'),
        (["--separator", ";"], "1\n", 2, "--separator without --step"),
        (["--date-format", "%d.%m.%Y"], "1\n", 2, "--date-format without --step"),
        (["--step", "day", "--separator", "ab"], "day\n1\n", 2, "it must be one sign"),
        (["--horizon", "0"], "1\n", 2, "horizon = 0"),
        (["--horizon", "1"], "1\n2\n", 2, "its horizon of 1 step is reached"),
        (["--plot", "x.doc"], "1\n", 2, "names no picture format"),
        (["--method", "blt", "--horizon", "4"], "1\n", 2, "pure epsilon allows none"),
    ],
)
def test_wrong_input_gets_one_clear_sentence(
    stream: Run, args: list[str], text: str, code: int, says: str
) -> None:
    Path("n.txt").write_text(text)
    horizon = [] if "--horizon" in args else ["--horizon", 5]
    found, _, err = stream("n.txt", *args, *horizon, *COST)
    assert found == code
    assert says in err
    assert "918273" not in err
    assert "Traceback" not in err


def test_a_missing_file(stream: Run) -> None:
    assert stream("none.txt", "--horizon", 5, *COST)[0] == 4
    assert stream("none.parquet", "--step", "x", "--horizon", 5, *COST)[0] == 4
    assert stream("none.parquet", "--horizon", 5, *COST)[0] == 2


@pytest.mark.parametrize(
    ("args", "says"),
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
def test_wrong_calendars_get_one_clear_sentence(stream: Run, args: list[str], says: str) -> None:
    Path("t.csv").write_text("day,x\n2013-01-01,1\n")
    code, _, err = stream("t.csv", *args, *COST)
    assert code == 2
    assert says in err


def test_a_file_as_offices_write_them_is_read_as_the_plain_one(stream: Run) -> None:
    """The noise of a stream is that of its key, so equal rows in equal steps differ by it alone."""
    rows = [("2013-01-01", "1.5"), ("2013-01-03", "2"), ("2013-01-03", "0.25")]
    Path("plain.csv").write_text("day,x\n" + "".join(f"{day},{x}\n" for day, x in rows))
    german = [(f"{d[8:]}.{d[5:7]}.{d[:4]}", x.replace(".", ",")) for d, x in rows]
    text = "Bericht f\u00fcr 2013\nday;x\n" + "".join(f"{day};{x}\n" for day, x in german)
    Path("office.csv").write_text(text, encoding="cp1252")
    written = ["--separator", ";", "--decimal", ",", "--header-row", "2", "--encoding", "cp1252"]
    written += ["--date-format", "%d.%m.%Y"]
    calendar = [*CALENDAR, "--value", "x=0..4/0.25", "--epsilon", "10000", "--budget", "99999"]
    totals = []
    for key, name, options in (("a", "plain.csv", []), ("b", "office.csv", written)):
        code, lines, err = stream(
            name, *calendar, *options, "--ledger", "b.db", "--key", key, "--account", key
        )
        assert code == 0, err
        totals.append([(line["event"], line["total"]) for line in lines])
    assert totals[0] == totals[1]
    assert totals[0][-1] == ("2013-01-05", 3.75)
