"""Files of answers: numbered, refused before the charge, and there before anything is printed."""

from __future__ import annotations

import csv
import errno
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from cli.conftest import Run
from sfumato.cli import run
from sfumato.cli.running import main

HISTOGRAM = (
    *("histogram", "people.parquet", "--axis", "kind=a,b", "--epsilon", ".5", "--budget", "1"),
)
TABLES = (
    *("tables", "people.parquet", "--axis", "age=0..120", "--axis", "kind=a,b", "--bins", "4"),
    *("--table", "age,kind", "--table", "kind", "--rho", ".5", "--budget", "1"),
)
PLAN_FAMILY = """
[[questions]]
type = "tables"
tables = [["kind"], ["kind", "age"]]
bins = { age = 3 }
"""
NAMES = ["01-histogram-of-kind-x-age", "02-uniform-grid-of-age", "03-histogram-of-day"]


class Gone(io.StringIO):
    """The stdout of a command whose reader has left."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    def flush(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


class Full(io.StringIO):
    """A stdout that is a file on a full disk."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def names_in(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


# --- a plan's answers as files --------------------------------------------------------------------


def test_answers_of_a_plan_as_numbered_files(sfumato: Run) -> None:
    pytest.importorskip("xlsxwriter", reason="make venv installs it")
    code, out, err = sfumato("release", "plan.toml", "--csv", "csv", "--excel", "books")
    assert code == 0, err
    assert names_in("csv") == [f"{name}.csv" for name in NAMES]
    assert names_in("books") == [f"{name}.xlsx" for name in NAMES]
    assert "CSV: csv\nExcel: books\n" in err
    _, *rows = list(csv.reader(Path("csv", f"{NAMES[0]}.csv").read_text("utf-8").splitlines()))
    printed = [line.split("\t") for line in out.splitlines()[2 : len(rows) + 2]]
    counts = [[float(field) for field in row[4:]] for row in printed]
    assert [[float(field) for field in row[4:]] for row in rows] == counts


def test_a_family_in_a_plan_has_a_folder_of_its_own(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8").replace("[2, 1, 1]", "[2, 1, 1, 1]")
    Path("family.toml").write_text(plan + PLAN_FAMILY, encoding="utf-8")
    code, _, err = sfumato("release", "family.toml", "--csv", "csv")
    assert code == 0, err
    (folder,) = (name for name in names_in("csv") if name.startswith("04-"))
    assert names_in(f"csv/{folder}") == ["01-kind.csv", "02-kind-x-age.csv"]


def test_the_only_answer_is_a_file_or_a_file_in_a_folder(sfumato: Run) -> None:
    code, _, err = sfumato(*HISTOGRAM, "--csv", "counts.csv")
    assert code == 0, err
    code, _, err = sfumato(*HISTOGRAM, "--csv", "folder")
    assert code == 0, err
    (file,) = Path("folder").iterdir()
    assert file.name == "01-histogram-of-kind.csv"
    assert file.read_bytes() == Path("counts.csv").read_bytes()


@pytest.mark.parametrize("option", ["--csv", "--excel"])
def test_one_file_for_several_answers_is_refused_before_the_charge(
    sfumato: Run, option: str
) -> None:
    file = {"--csv": "all.csv", "--excel": "all.xlsx"}[option]
    code, out, err = sfumato("release", "plan.toml", option, file)
    assert (code, out) == (2, "")
    assert f"{option} {file}: a file holds one answer, and the plan has 3" in err
    assert f"{option} all," in err
    assert not Path("sfumato.db").exists()


@pytest.mark.parametrize(
    ("option", "name", "ending"),
    [("--csv", "counts.xlsx", ".csv"), ("--excel", "counts.xls", ".xlsx")],
)
def test_a_file_that_other_programs_would_misread_is_refused(
    sfumato: Run, option: str, name: str, ending: str
) -> None:
    code, out, err = sfumato(*HISTOGRAM, option, name)
    assert (code, out) == (2, "")
    assert f"{option} {name}: its name does not end in {ending}. End it in {ending}" in err
    assert not Path("sfumato.db").exists()


def test_the_table_that_is_read_is_not_written_over(sfumato: Run) -> None:
    table = "kind\na\nb\n"
    Path("people.csv").write_text(table, encoding="utf-8")
    Path("link.csv").symlink_to("people.csv")
    plan = Path("plan.toml").read_text(encoding="utf-8").replace("people.parquet", "people.csv")
    head, one, *_ = plan.split("[[questions]]")
    one = "[[questions]]" + one.replace(', "age"', "").replace("bins = ", "# ")
    head = head.replace("shares = ", "# ").replace("person = ", "# ").replace("rows_per", "# ")
    Path("one.toml").write_text(head + one, encoding="utf-8")
    for words in (("release", "one.toml"), (HISTOGRAM[0], "people.csv", *HISTOGRAM[2:])):
        for name in ("people.csv", "link.csv"):
            code, out, err = sfumato(*words, "--csv", name)
            assert (code, out) == (2, "")
            assert f"--csv {name}: it is a file that is read, and would be lost" in err
    assert Path("people.csv").read_text(encoding="utf-8") == table
    assert not Path("sfumato.db").exists()


LOST = "it is a file that is read, and would be lost"
AMONG = "it lies among the files that are read, and would be counted with them next time"


@pytest.mark.parametrize(
    ("given", "name", "obstacle"),
    [
        ("days", "days/one.csv", LOST),
        ("days/*.csv", "days/one.csv", LOST),
        ("d*/one.csv", "days/one.csv", LOST),
        ("days", "days/counts.csv", AMONG),
        ("days", "days/new", AMONG),
        ("days/*.csv", "days", AMONG),
        ("days/*.csv", "days/counts.csv", AMONG),
        ("days/o*.csv", "days/counts.csv", None),
        ("days/one.csv", "days/counts.csv", None),
        ("days", "counts.csv", None),
    ],
)
def test_no_answer_is_written_among_the_files_that_are_read(
    sfumato: Run, given: str, name: str, obstacle: str | None
) -> None:
    Path("days").mkdir()
    Path("days", "one.csv").write_text("kind\na\nb\n", encoding="utf-8")
    code, _, err = sfumato(HISTOGRAM[0], given, *HISTOGRAM[2:], "--csv", name)
    assert Path("days", "one.csv").read_text(encoding="utf-8") == "kind\na\nb\n"
    if obstacle is None:
        assert code == 0, err
        return
    assert code == 2
    assert f"--csv {name}: {obstacle}" in err
    assert names_in("days") == ["one.csv"]
    assert not Path("sfumato.db").exists()


@pytest.mark.parametrize("name", ["people.parquet", "plan.toml"])
def test_the_page_of_a_plan_is_not_written_over_what_is_read(sfumato: Run, name: str) -> None:
    before = Path(name).read_bytes()
    code, _, err = sfumato("release", "plan.toml", "--report", name)
    assert code == 2
    assert f"--report {name}: {LOST}" in err
    assert Path(name).read_bytes() == before
    assert not Path("sfumato.db").exists()


WRITERS = {
    "partition": (
        *("partition", "points.csv", "--axis", "x=0..4", "--axis", "y=0..4"),
        *("--epsilon", "1", "--budget", "1", "--geojson"),
    ),
    "choose": ("choose", "points.csv", "--column", "x", "--report"),
    "choose, by a pattern": ("choose", "poi*.csv", "--column", "x", "--report"),
    "choose, a plan": ("choose", "--plan", "points.csv", "--report"),
    "collect": (
        *("local", "collect", "points.csv", "--clusters", "1"),
        *("--any-mechanism", "--report"),
    ),
    "simulate": (
        *("local", "simulate", "points.csv", "--axis", "x=0..4", "--clusters", "1"),
        *("--epsilon", "1", "--out"),
    ),
    "simulate, a table": (
        *("local", "simulate", "points.csv", "--axis", "x=0..4", "--clusters", "1"),
        *("--epsilon", "1,2", "--report"),
    ),
}


@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_no_command_writes_over_what_it_reads(sfumato: Run, words: tuple[str, ...]) -> None:
    points = "x,y\n1,2\n3,1\n"
    Path("points.csv").write_text(points, encoding="utf-8")
    code, out, err = sfumato(*words, "points.csv")
    assert (code, out) == (2, "")
    assert f"{words[-1]} points.csv: {LOST}" in err
    assert Path("points.csv").read_text(encoding="utf-8") == points
    assert not Path("sfumato.db").exists()


def test_a_release_that_is_read_is_not_written_over(sfumato: Run) -> None:
    assert sfumato(*HISTOGRAM, "--out", "saved")[0] == 0
    (saved,) = Path("saved").iterdir()
    before = saved.read_bytes()
    for words in (
        ("report", saved, "--out", saved),
        ("disclose", saved, "--out", saved),
        ("disclose", saved, "--checklist", saved),
    ):
        code, out, err = sfumato(*words)
        assert (code, out) == (2, "")
        assert "it is a file that is read, and would be lost" in err
    assert saved.read_bytes() == before
    code, _, err = sfumato("report", "saved")
    assert code == 4
    assert "loading saved: it is a folder. Name the files in it, as in saved/*.json" in err


def test_a_plan_that_adds_up_is_one_answer(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8").replace("shares = [2, 1, 1]", "")
    plan = plan.replace('type = "uniform"', 'type = "histogram"\nbins = { age = 4 }')
    plan = plan.replace("bins = { age = [0, 18, 65, 120] }", "bins = { age = 4 }")
    plan = plan.replace("[release]\n", "[release]\nadds_up = true\n")
    plan = plan.replace('axes = "day"', 'axes = "kind"')
    Path("family.toml").write_text(plan, encoding="utf-8")
    code, _, err = sfumato("release", "family.toml", "--csv", "all.csv")
    assert code == 0, err
    assert Path("all.csv").read_text(encoding="utf-8").startswith('"table",')


def test_without_xlsxwriter_excel_is_refused_before_the_charge(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = sfumato(*HISTOGRAM, "--excel", "counts.xlsx")
    assert code == 2
    assert "sfumato[excel]" in err
    assert not Path("sfumato.db").exists()


def test_a_file_that_fails_after_the_charge_says_that_the_answer_is_kept(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise sf.DataError("writing counts.csv", "No space left on device", "Choose a path")

    with monkeypatch.context() as patched:
        patched.setattr(sf.HistogramRelease, "to_csv", full)
        code, out, err = sfumato(*HISTOGRAM, "--csv", "counts.csv")
    assert (code, out) == (4, "")
    assert "The charge stands, and the answer is stored" in err
    code, out, err = sfumato(*HISTOGRAM, "--csv", "counts.csv")
    assert code == 0
    assert "Nothing was spent" in err
    assert Path("counts.csv").exists()


# --- stdout that nobody reads ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (
            (*TABLES, "--csv", "csv", "--excel", "t.xlsx", "--out", "saved", "--published"),
            ["csv/01-age-x-kind.csv", "t.xlsx", "saved/01-tables-of-age-x-kind-kind.json"],
        ),
        ((*HISTOGRAM, "--json", "--plot", "p.svg", "--csv", "c.csv"), ["p.svg", "c.csv"]),
        (
            ("release", "plan.toml", "--out", "saved", "--csv", "csv"),
            [*(f"saved/{name}.json" for name in NAMES)],
        ),
        (
            (
                *("partition", "people.parquet", "--axis", "who=0..90", "--axis", "age=0..99"),
                *("--epsilon", "1", "--budget", "1", "--geojson", "map.json"),
            ),
            ["map.json"],
        ),
        (("choose", "--report", "choice.html"), ["choice.html"]),
    ],
    ids=["tables", "histogram", "release", "partition", "choose"],
)
def test_files_are_written_before_anything_is_printed(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], files: list[str]
) -> None:
    if "--excel" in words:
        pytest.importorskip("xlsxwriter", reason="make venv installs it")
    monkeypatch.setattr(sys, "stdout", Gone())
    code, _, err = sfumato(*words)
    assert code == 141
    assert "Error" not in err
    assert [file for file in files if not Path(file).stat().st_size] == []


def test_a_stream_that_nobody_reads_is_saved(sfumato: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("steps.txt").write_text("3\n4\n5\n")
    words = ("stream", "steps.txt", "--horizon", "9", "--epsilon", "1", "--budget", "1")
    ask = (*words, "--key", "k", "--save", "totals.json")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Gone())
        assert sfumato(*ask)[0] == 141
    saved = sf.load("totals.json")
    code, out, _ = sfumato(*ask, "--history")
    assert code == 0
    totals = [json.loads(line)["total"] for line in out.splitlines()]
    assert len(totals) == 3
    assert np.asarray(saved.values).tolist() == totals[: len(saved.values)]


def test_help_that_nobody_reads_is_no_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Gone())
    assert run(["--help"]) == 141
    assert capsys.readouterr().err == ""


def test_a_stdout_that_was_closed_is_no_bug(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        main(["choose", "--cells", "2"])
    assert ended.value.code == 0
    assert sys.stdout is not None
    sys.stdout.close()


def test_a_full_disk_under_stdout_is_no_bug(sfumato: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    code, _, err = sfumato(*HISTOGRAM, "--csv", "counts.csv")
    assert code == 4
    assert "printing the output: No space left on device" in err
    assert "A bug" not in err
    assert Path("counts.csv").exists()
