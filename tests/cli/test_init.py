"""``sfumato init`` writes a plan that runs once its domain is filled in, and reads no row."""

from __future__ import annotations

import csv
import datetime as dt
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

import sfumato as sf
from sfumato.cli import run
from sfumato.cli.parsing import parse_axes
from sfumato.demo import flights_path
from sfumato.domain.domain import Domain, Interval
from sfumato.publishing.plan_file import read_plan


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


GIVEN = ("ward=a,b", "month=month:day:2025-01..2025-12", "age=0..120")


def test_a_plan_with_axes_is_released_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.table({"ward": ["a", "b"], "age": [31, 42], "who": ["p", "q"]})
    day = pa.array([20_100, 20_101], pa.int32()).cast(pa.date32())
    pq.write_table(table.append_column("day", day), tmp_path / "t.parquet")
    plan = tmp_path / "plan.toml"
    words = ["init", str(tmp_path / "t.parquet"), "--out", str(plan)]
    words += [word for axis in GIVEN for word in ("--axis", axis)]
    words += ["--person", "who", "--rows-per-person", "3", "--budget", "2", "--epsilon", "1.5"]
    words += ["--person-called", "visitor"]
    assert run(words) == 0
    spec = read_plan(plan)
    assert [question.title for question in spec.questions] == [
        "Histogram of ward",
        "Histogram of month",
        "Histogram of age",
    ]
    # The column holds whole numbers, so each has a cell, and 120 is one of them.
    assert dict(spec.domain) == parse_axes((*GIVEN[:2], "age=0..121/1"))
    assert (spec.source.person, spec.source.rows_per_person) == ("who", 3)
    assert spec.source.person_called == "visitor"
    assert (str(spec.budget.total), str(spec.release.stated(spec.plan()))) == (
        "epsilon = 2",
        "epsilon = 1.5",
    )
    assert run(["release", str(plan), "--ledger", str(tmp_path / "b.db")]) == 0
    assert "Histogram of month" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--axis", "wrad=a,b"], "no column 'wrad'; did you mean 'ward'?"),
        (["--axis", "month=month:dya"], "--axis month: "),
        (["--person", "x"], "--person x: "),
        (["--budget", "3 euros"], "--budget = '3 euros'"),
        (["--epsilon", "0,5"], "it has a decimal comma"),
        (["--rows-per-person", "0"], "rows_per_person = 0"),
        (["--person-called", ""], "person_called = ''"),
    ],
    ids=" ".join,
)
def test_what_the_plan_would_be_refused_for_is_refused(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pa.table({"ward": ["a"], "day": ["b"]}), tmp_path / "t.parquet")
    assert run(["init", str(tmp_path / "t.parquet"), *words, "--out", str(tmp_path / "p")]) == 2
    assert says in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


ODD_NAMES = (
    "a\U0001f600",
    "a\x7fb",
    'a"b',
    "a\\b",
    "a b",
    "Größe",
    "a\u202eb",
    "ü=1",
    "\U000e0001",
)


def test_odd_names_of_columns_and_files_are_read_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t\U0001f600\x7f.parquet"
    pq.write_table(pa.table({name: [1, 2] for name in (*ODD_NAMES, "who\U0001f600")}), path)
    words = ["init", str(path), "--person", "who\U0001f600"]
    words += [word for name in ODD_NAMES if "=" not in name for word in ("--axis", f"{name}=0..9")]
    plan = tmp_path / "p\n.toml"
    assert run([*words, "--out", str(plan)]) == 0
    spec = read_plan(plan)
    assert list(spec.domain) == [name for name in ODD_NAMES if "=" not in name]
    assert spec.source.person == "who\U0001f600"
    assert run(["preview", str(plan)]) == 0
    capsys.readouterr()
    assert run(words) == 0
    printed = tomllib.loads(capsys.readouterr().out)
    assert printed["budget"]["account"] == path.stem
    assert [each["axes"] for each in printed["questions"]] == [[name] for name in spec.domain]


def test_a_relative_path_of_a_database_stays_relative(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    monkeypatch.chdir(tmp_path)
    with duckdb.connect("k.db") as connection:
        connection.execute("CREATE TABLE visits (age INTEGER)")
    (tmp_path / "plans").mkdir()
    whole = f"duckdb:{tmp_path / 'k.db'}?table=visits"
    for given, out, path in (
        ("duckdb:./k.db?table=visits", None, "duckdb:./k.db?table=visits"),
        ("duckdb:k.db?table=visits", "plans/a.toml", "duckdb:../k.db?table=visits"),
        (whole, "plans/b.toml", whole),
    ):
        written = ["--out", out] if out else []
        assert run(["init", given, "--axis", "age=0..120/1", *written]) == 0
        shown = capsys.readouterr().out if out is None else Path(out).read_text()
        assert tomllib.loads(shown)["source"]["path"] == path
        if out is not None:
            assert run(["check", out]) == 0


def test_a_column_of_whole_numbers_has_a_cell_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema alone says so: bins of width 1.2 would hold one or two numbers each."""
    absences = [at % 13 for at in range(1300)]
    table = pa.table({"absences": absences, "score": [7 * at % 101 for at in range(1300)]})
    pq.write_table(table, tmp_path / "t.parquet")
    plan = tmp_path / "plan.toml"
    words = ["init", str(tmp_path / "t.parquet"), "--out", str(plan), "--epsilon", "1"]
    assert run([*words, "--axis", "absences=0..12", "--axis", "score=0..100"]) == 0
    assert (
        "# The whole numbers 0 to 12; those beyond count as the nearest:\nabsences = "
        in plan.read_text()
    )
    spec = read_plan(plan)
    assert spec.domain["absences"] == Interval(0, 13, step=1)
    assert spec.domain["score"] == Interval(0, 101, step=1)
    names = [
        question.needs(Domain(spec.domain)).lattice.axes[0].cell_names()
        for question in spec.questions
    ]
    assert names[0] == ["0 and below", *map(str, range(1, 12)), "12 and above"]
    assert names[1] == [
        "4 and below",
        *(f"{a} to {a + 4}" for a in range(5, 95, 5)),
        "95 and above",
    ]
    assert run(["release", str(plan), "--ledger", str(tmp_path / "b.db"), "--json"]) == 0
    release = json.loads(capsys.readouterr().out)[0]
    assert release["table"]["absences"] == names[0]


def test_a_file_without_types_is_told_how_whole_numbers_are_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("absences,height\n3,171.5\n")
    words = ["init", str(tmp_path / "t.csv"), "--axis", "absences=0..12"]
    assert run([*words, "--axis", "height=100.5..200"]) == 0
    out = capsys.readouterr().out
    assert "# For whole numbers alone write upper = 13, step = 1:\nabsences = " in out
    assert "upper = 200 }\n" in out
    assert 'axes = ["absences"]\nbins = 12   # each 1 wide' in out


# --- a title above the table ----------------------------------------------------------------------

TITLED = [
    ["Visits to the ward, 2024"],
    [],
    ["Printed on 2 January"],
    ["age", "kind", "day"],
    [31, "a", "14.03.2024"],
    [62, "b", "15.03.2024"],
]


def titled(folder: Path, form: str, rows: Sequence[Sequence[object]] = TITLED) -> Path:
    """Write rows as a CSV file, or as a sheet whose title is merged over three columns."""
    path = folder / f"visits.{form}"
    if form == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(rows)
        return path
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.merge_range(0, 0, 0, 2, rows[0][0])
        for number, row in enumerate(rows[1:], 1):
            sheet.write_row(number, 0, row)
    return path


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_a_title_is_refused_and_its_remedy_leads_to_a_release(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = titled(tmp_path, form)
    plan = tmp_path / "plan.toml"
    words = ["init", str(path), "--out", str(plan)]
    assert run(words) == 4
    refusal = capsys.readouterr().err
    assert "has one name only, as a title has. Add --header-row N" in refusal
    assert "Visits" not in refusal
    assert not plan.exists()
    written = ["--header-row", "4", "--date-format", "day=%d.%m.%Y"]
    axes = ["--axis", "age=0..120", "--axis", "day=2024-01-01..2025-01-01/1"]
    assert run([*words, *written, *axes]) == 0
    assert read_plan(plan).source.header_row == 4
    assert run(["check", str(plan)]) == 0
    assert "2 of 2 rows are counted" in capsys.readouterr().out
    assert run(["release", str(plan), "--ledger", str(tmp_path / "b.db")]) == 0
    domain = read_plan(plan).domain
    rows = sf.source(path, domain, header_row=4, date_format="%d.%m.%Y")
    assert sf.Publisher(rows, budget="1").check().questions[0].counted == 2
    with pytest.raises(sf.DataError, match=r"one name only.* Add header_row=2"):
        sf.source(path, domain).require([sf.Histogram("age").needs(rows.domain)])


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_names_with_gaps_are_refused_as_merged_cells(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["Person", "", "Visit"], ["age", "kind", "day"], [31, "a", "14.03.2024"]]
    path = tmp_path / f"visits.{form}"
    if form == "csv":
        path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    else:
        with xlsxwriter.Workbook(path) as book:
            sheet = book.add_worksheet()
            sheet.merge_range(0, 0, 0, 1, "Person")
            sheet.write(0, 2, "Visit")
            for number, row in enumerate(rows[1:], 1):
                sheet.write_row(number, 0, row)
    assert run(["init", str(path)]) == 4
    assert "1 empty cell between names, as merged cells leave. Add --" in capsys.readouterr().err
    assert run(["init", str(path), "--header-row", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == dict.fromkeys(rows[1], "unknown")


def test_a_stated_row_may_have_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("age\n31\n")
    assert run(["init", str(tmp_path / "t.csv")]) == 4
    assert "--header-row 1 if row 1 does" in capsys.readouterr().err
    assert run(["init", str(tmp_path / "t.csv"), "--header-row", "1"]) == 0
    shown = capsys.readouterr()
    assert "\n# age = {" in shown.out
    assert "Note: the first line has one name only" in shown.err
    # pandas leaves the name of an index empty, before all others.
    (tmp_path / "t.csv").write_text(",age,kind\n0,31,a\n")
    assert run(["init", str(tmp_path / "t.csv")]) == 0


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_no_row_below_the_names_changes_a_plan(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even whether they look like dates, have other separators, or are there at all."""
    tables: list[list[list[object]]] = [
        [],
        [[31, "a", "2024-03-14"], [32, "b", "2024-03-15"]],
        [["31;1", 'an "open', "14.03.2024"], ["x", "", ""], ["1", "2", "3", "4"]],
        [[dt.date(2024, 3, day).isoformat()] * 3 for day in range(1, 20)],
    ]
    for written in ([], ["--date-format", "day=%d.%m.%Y"], ["--date-format", "%d.%m.%Y"]):
        plans = set()
        for rows in tables:
            path = titled(tmp_path, form, [*TITLED[:4], *rows])
            assert run(["init", str(path), "--header-row", "4", *written]) == 0
            plans.add(capsys.readouterr().out)
        assert len(plans) == 1


def test_dates_are_told_from_types_and_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("day,at,born\n2024-01-01,2024-01-01T10:00,1970-01-01\n")
    words = ["init", str(tmp_path / "t.csv"), "--json"]
    assert run(words) == 0
    assert set(json.loads(capsys.readouterr().out).values()) == {"unknown"}
    formats = ["--date-format", "day=%Y-%m-%d", "--date-format", "at=%Y-%m-%dT%H:%M"]
    assert run([*words, *formats]) == 0
    assert json.loads(capsys.readouterr().out) == {"day": "date", "at": "time", "born": "unknown"}
    assert run([*words, "--date-format", "days=%Y-%m-%d"]) == 2
    assert "has no column 'days'; did you mean 'day'?" in capsys.readouterr().err
    typed = pa.table({"day": [dt.date(2024, 1, 1)], "at": [dt.datetime(2024, 1, 1)]})
    pq.write_table(typed, tmp_path / "t.parquet")
    assert run(["init", str(tmp_path / "t.parquet"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"day": "date", "at": "time"}


# --- a plan that exists ---------------------------------------------------------------------------


def test_labels_of_a_column_of_whole_numbers_are_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema says that they are; text would be refused by the release."""
    table = pa.table({"ward": [1, 2, 3, 3], "code": ["1", "2", "3", "3"]})
    pq.write_table(table, tmp_path / "t.parquet")
    plan = tmp_path / "plan.toml"
    given = ["--axis", "ward=1,2,3", "--axis", "code=1,2,3", "--budget", "2", "--out", str(plan)]
    assert run(["init", str(tmp_path / "t.parquet"), *given]) == 0
    assert "sfumato check" in capsys.readouterr().err
    domain = tomllib.loads(plan.read_text())["domain"]
    assert domain["ward"]["labels"] == [1, 2, 3]
    assert domain["code"]["labels"] == ["1", "2", "3"]
    assert run(["release", str(plan), "--ledger", str(tmp_path / "ledger.db")]) == 0


def test_force_overwrites_a_plan_and_nothing_that_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("age,kind\n31,a\n")
    plan = tmp_path / "plan.toml"
    plan.write_text("filled in")
    words = ["init", str(table), "--axis", "age=0..120", "--out"]
    assert run([*words, str(plan)]) == 2
    assert "or add --force to overwrite it" in capsys.readouterr().err
    assert plan.read_text() == "filled in"
    assert run([*words, str(plan), "--force"]) == 0
    assert list(read_plan(plan).domain) == ["age"]
    assert run([*words, str(table), "--force"]) == 2
    ledger = tmp_path / "b.db"
    assert run(["release", str(plan), "--ledger", str(ledger)]) == 0
    charged = ledger.read_bytes()
    assert run([*words, str(ledger), "--force"]) == 4
    assert "it is a database, such as a ledger" in capsys.readouterr().err
    assert ledger.read_bytes() == charged
    assert table.read_text() == "age,kind\n31,a\n"
    assert run([*words[:-1], "--force"]) == 2
    assert "--force" in capsys.readouterr().err
