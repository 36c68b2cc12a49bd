"""Files as people have them are read as they mean them, by the options that messages name."""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

import sfumato as sf
from sfumato.cli import run
from sfumato.data import check as checking
from support import pages

Step = tuple[str, dict[str, Any]]
"""Words of the message, and the option that is added for it."""

WARDS = sf.Categories(["Köln", "Bonn"])
DAYS = sf.Interval("2024-03-01", "2024-04-01", step=1)
WEIGHTS = sf.Interval(0, 2000)


def german(path: Path) -> None:
    """Saved by a German Excel on Windows."""
    text = (
        "Station;Tag;Gewicht;geraucht\n Köln ;14.03.2024;1.072,5;True\n"
        "Köln;3.3.2024;72,5;FALSE\nBonn;31.03.2024;80;1\n"
    )
    path.write_bytes(text.replace("\n", "\r\n").encode("cp1252"))


def american(path: Path) -> None:
    """Dates with the month first, thousands in quotes, blanks behind the commas."""
    path.write_text(
        "station, day, weight, smoked\nKöln, 3/3/2024 12:00 AM, 72.5, no\n"
        'Köln, 3/14/2024 5:30 PM,"1,072.5",yes\nBonn, 3/31/2024 11:59 PM,80, Y\n'
    )


def unicode_text(path: Path) -> None:
    """What Excel calls Unicode text: tabs, in UTF-16."""
    path.write_text(
        "station\tday\tweight\tsmoked\nKöln\t2024-03-14\t1072.5\tTRUE\n"
        "Köln\t2024-03-03\t72.5\t0\nBonn\t2024-03-31\t80\t1.0\n",
        encoding="utf-16",
    )


def a_report(path: Path) -> None:
    """Lines above the header, a byte order mark, fields over two lines, blank lines."""
    path.write_text(
        'Visits of March,,,\n"exported\n2024-04-01",,,\n\nstation,note,day,weight,smoked\n'
        'Köln,"slept\nwell, ""really""",2024-03-14,1072.5,true\n\n'
        "Köln,,2024-03-03,72.5,false\nBonn,-,2024-03-31,80,true\n\n",
        encoding="utf-8-sig",
    )


MESSY: dict[str, tuple[Callable[[Path], None], str, list[Step]]] = {
    "German": (
        german,
        "Station Tag Gewicht geraucht",
        [
            ("has 3 semicolons and no comma", {"separator": ";"}),
            ('add encoding="cp1252"', {"encoding": "cp1252"}),
            ('Add decimal=","', {"decimal": ","}),
            ('Add thousands="."', {"thousands": "."}),
            ('Add date_format="%d.%m.%Y"', {"date_format": "%d.%m.%Y"}),
        ],
    ),
    "American": (
        american,
        "station day weight smoked",
        [
            ("Add date_format=", {"date_format": "%m/%d/%Y %I:%M %p"}),
            ("Add thousands=", {"thousands": ","}),
        ],
    ),
    "Unicode text": (
        unicode_text,
        "station day weight smoked",
        [
            ('Add encoding="utf-16"', {"encoding": "utf-16"}),
            ('Add separator="tab"', {"separator": "tab"}),
        ],
    ),
    "a report": (
        a_report,
        "station day weight smoked",
        [("the first line has one name only", {"header_row": 5})],
    ),
}


@pytest.mark.parametrize("kind", MESSY)
def test_messages_lead_to_a_file_that_is_read(kind: str, tmp_path: Path) -> None:
    make, names, steps = MESSY[kind]
    path = tmp_path / "visits.csv"
    make(path)
    domain = _domain(names)
    options: dict[str, Any] = {}
    for words, option in steps:
        found = checking.check(sf.source(path, domain, **options))
        said = " ".join([found.refused or "", *found.hints])
        assert words in said
        options |= option
    _is_read(path, domain, options)


def _domain(names: str) -> sf.Domain:
    axes = (WARDS, DAYS, WEIGHTS, sf.Categories([True, False]))
    return sf.Domain(dict(zip(names.split(), axes, strict=True)))


def _is_read(path: Path, domain: sf.Domain, options: dict[str, Any]) -> None:
    """Every row is read, and a check has nothing more to say."""
    src = sf.source(path, domain, **options)
    found = checking.check(src)
    assert (found.rows, found.hints, found.wrong_length) == (3, (), 0)
    assert found.questions[0].counted == 3, str(found)
    publisher = sf.Publisher(src, budget=10**6)
    ward, day, weight, smoked = domain
    for axis, bins, counts in (
        (ward, None, [2, 1]),
        (smoked, None, [2, 1]),
        (weight, (0, 79, 1000, 2000), [1, 1, 1]),
        (day, ("2024-03-01", "2024-03-10", "2024-03-20", "2024-04-01"), [1, 1, 1]),
    ):
        release = publisher.release(sf.Histogram(axis, bins=bins), epsilon=10**4)
        assert release.values.tolist() == counts


def test_a_column_of_two_formats_is_read_in_part(tmp_path: Path) -> None:
    """What does not match the format is missing in releases, and counted by a check."""
    path = tmp_path / "t.csv"
    path.write_text("day\n14.03.2024\n2024-03-15\n16.03.2024\n3/17/2024\n")
    for options, counted in (({}, 1), ({"date_format": "%d.%m.%Y"}, 2)):
        src = sf.source(path, sf.Domain(day=DAYS), **options)  # type: ignore[arg-type]
        (axis,) = checking.check(src).axes
        assert (axis.missing, axis.unparsed) == (4 - counted, 4 - counted)
        answer = sf.Publisher(src, budget=10**6).release(sf.Histogram("day"), epsilon=10**5)
        assert answer.values.sum() == counted


def test_leading_zeros_are_part_of_text_and_not_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("code,number\n007,007\n7,7.0\n07,+7\n")
    src = sf.source(path, sf.Domain(code=sf.Categories(["007", "7"]), number=sf.Categories([7, 8])))
    publisher = sf.Publisher(src, budget=10**6)
    found = [publisher.release(sf.Histogram(axis), epsilon=10**5).values for axis in src.domain]
    assert [values.tolist() for values in found] == [[1, 1], [3, 0]]


def a_book(path: Path) -> None:
    """Two sheets; a merged title; dates as dates and as text, numbers as text, a formula."""
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("Notes").write(0, 0, "see 2024")
        sheet = book.add_worksheet("2024")
        sheet.merge_range(0, 0, 0, 3, "Visits of March")
        sheet.write_row(2, 0, ["station", "day", "weight", "smoked"])
        dates = book.add_format({"num_format": "dd.mm.yyyy"})
        sheet.write_column(3, 0, [" Köln ", "Köln", "Bonn"])
        sheet.write_datetime(3, 1, dt.datetime(2024, 3, 14, 5, 6), dates)
        sheet.write_column(4, 1, ["3.3.2024", "31.03.2024"])
        sheet.write_formula(3, 2, "=1000+72.5", None, 1072.5)
        sheet.write_column(4, 2, ["72,5", 80])
        sheet.write_column(3, 3, [True, "false", 1])


def test_messages_lead_to_a_sheet_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "visits.xlsx"
    a_book(path)
    domain = _domain("station day weight smoked")
    options: dict[str, Any] = {}
    for words, option in (
        ("2 sheets: 'Notes', '2024'", {"sheet": "2024"}),
        ("row 1 has one name only", {"header_row": 3}),
        ('Add decimal=","', {"decimal": ","}),
        ("Add date_format=", {"date_format": "%d.%m.%Y"}),
    ):
        found = checking.check(sf.source(path, domain, **options))
        assert words in " ".join([found.refused or "", *found.hints])
        options |= option
    _is_read(path, domain, options)


# --- on the command line --------------------------------------------------------------------------


def test_from_a_sheet_to_a_report_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    a_book(Path("visits.xlsx"))
    written = ["--sheet", "2024", "--header-row", "3", "--decimal", ","]
    written += ["--date-format", "day=%d.%m.%Y"]
    axes = ["--axis", "station=Köln,Bonn", "--axis", "day=2024-03-01..2024-04-01/1"]
    assert run(["init", "visits.xlsx"]) == 4
    assert '--sheet "Notes"' in capsys.readouterr().err
    assert run(["init", "visits.xlsx", *written, *axes, "--out", "visits.toml"]) == 0
    plan = Path("visits.toml").read_text()
    assert 'sheet = "2024"\ndecimal' not in plan
    assert re.search(r'^date_format = \{ day = "%d\.%m\.%Y" \}$', plan, re.MULTILINE)
    assert re.search(r"^header_row = 3$", plan, re.MULTILINE)
    assert run(["check", "visits.toml"]) == 0
    assert "3 of 3 rows are counted" in capsys.readouterr().out
    assert run(["preview", "visits.toml"]) == 0
    for _ in range(2):
        asked = ["release", "visits.toml", "--ledger", "b.db", "--report", "report.html"]
        assert run(asked) == 0
    assert "Nothing was spent" in capsys.readouterr().err
    assert "visits.xlsx" in Path("report.html").read_text()


def test_the_page_on_files_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[1] / "docs" / "files.md"
    monkeypatch.chdir(tmp_path)
    names = pages.follow(page, tmp_path)
    assert names["by_ward"].values.shape == (2,)
    typed = [text.replace("\\\n", " ") for kind, text in pages.blocks(page) if kind == "console"]
    asked = [shlex.split(line) for text in typed for line in text.splitlines()]
    assert [words[2] for words in asked] == ["init", "check", "preview", "release", "check"]
    for words in asked:
        capsys.readouterr()
        assert run(words[2:]) == 0
        if words[2] == "check":
            shown = capsys.readouterr().out
            assert re.search(r"(\d+) of \1 rows are counted", shown), shown
    assert Path("report.html").exists()


def test_options_of_a_file_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    german(Path("visits.csv"))
    asked = ["visits.csv", "--axis", "Gewicht=0..2000", "--axis", "Tag=2024-03-01..2024-04-01/1"]
    written = ["--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252"]
    assert run(["check", *asked]) == 4
    assert "3 semicolons and no comma" in " ".join(capsys.readouterr().out.split())
    assert run(["check", *asked, *written, "--date-format", "%d.%m.%Y"]) == 0
    assert "3 of 3 rows are counted" in capsys.readouterr().out
    release = ["histogram", *asked[:3], *written, "--bins", "2", "--epsilon", "1", "--budget", "9"]
    assert run([*release, "--ledger", "b.db"]) == 0
    assert run(["histogram", *asked[:3], "--epsilon", "1", "--budget", "9"]) == 4
    assert 'separator=";"' in capsys.readouterr().err
    assert run(["init", "visits.csv", "--encoding", "cp1252"]) == 0
    assert 'separator = ";"' in capsys.readouterr().out
    twice = ["--date-format", "%d.%m.%Y", "--date-format", "Tag=%d.%m.%Y"]
    assert run(["check", *asked, *written, *twice]) == 2
    assert "names no column" in capsys.readouterr().err
    Path("p.toml").write_text("")
    assert run(["check", "p.toml", "--decimal", ","]) == 2
    assert "options of a file with a plan" in capsys.readouterr().err
