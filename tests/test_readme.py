"""The README as a reader follows it: every command works as it is pasted.

From an empty machine to a report on a table of one's own it takes six commands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.data import count
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import Lattice
from sfumato.ledger import open_ledger
from support import pages
from support.shell import installed, run_all, type_all

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
INSTALL = ("python3 -m venv", ". .venv/bin/activate", "pip install")
MAKE = ("make demo", "make test")


def commands() -> list[str]:
    """What the README has one type, in order; a line that goes on is joined to the next."""
    blocks = [text for language, text in pages.blocks(README) if language == "console"]
    joined = "\n".join(blocks).replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line]
    assert all(line.startswith("$ ") for line in lines), "continue a command by a backslash"
    return [" ".join(line[2:].split()) for line in lines]


INSTALLING = [line for line in commands() if line.startswith(INSTALL)]
PUBLISHING = [line for line in commands() if line.startswith("sfumato ")]


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples of the repository."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    for name in filter(re.compile("SFUMATO_").match, list(os.environ)):
        monkeypatch.delenv(name)
    return tmp_path


def test_it_takes_seven_commands() -> None:
    """Every command is one of those that are run here, or by `make`."""
    rest = [line for line in commands() if line not in (*INSTALLING, *PUBLISHING)]
    assert [line.partition(" #")[0].strip() for line in rest] == list(MAKE)
    assert len(INSTALLING) == 3
    assert len(INSTALLING) + len(PUBLISHING) <= 7


def test_commands_and_python_work_as_they_are_pasted(copy: Path) -> None:
    path = installed(copy)
    _, checked, preview, first = type_all(copy, PUBLISHING, path)
    assert "NOT FOR PUBLICATION" in checked
    (printed,) = [text for language, text in pages.blocks(README) if language == "text"]
    assert preview.startswith(printed)
    assert "<svg" in (copy / "report.html").read_text(encoding="utf-8")
    # The same plan again prints the same numbers.
    assert run_all(copy, PUBLISHING[-1:]) == [first]
    (block,) = [text for language, text in pages.blocks(README) if language == "python"]
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    with open_ledger(copy / "sfumato.db") as ledger:
        (account,) = ledger.accounts()
    assert (account.name, account.remaining) == ("visits", (0, 0))
    assert (copy / "ages.html").exists()


def test_a_spreadsheet_takes_the_same_commands(copy: Path) -> None:
    spreadsheet(copy / "mine.xlsx")
    lines = [line.replace("examples/visits.csv", "mine.xlsx") for line in PUBLISHING]
    _, _, preview, answers = run_all(copy, lines)
    assert preview.startswith("Histogram of ward:\n")
    assert "Each of the 2 answers has epsilon = 0.5 and protects" in preview
    assert [line.split("\t")[0] for line in answers.splitlines()[2:5]] == [
        "Emergency",
        "Maternity",
        "Medicine",
    ]
    assert "<svg" in (copy / "report.html").read_text(encoding="utf-8")
    # What is counted is the same, to the last row.
    domain = sf.Domain(
        ward=sf.Categories(["Emergency", "Maternity", "Medicine", "Surgery"]),
        age=sf.Interval(0, 120, step=1),
        admitted=sf.Interval("2025-01-01", "2026-01-01"),
    )
    lattices = [Lattice((domain["ward"].label_axis("ward"), grid_axis("age", domain["age"], 120)))]
    lattices.append(Lattice((grid_axis("admitted", domain["admitted"], 365),)))
    of_csv = count(sf.source("examples/visits.csv", domain), lattices)
    of_excel = count(sf.source("mine.xlsx", domain), lattices)
    assert 1400 < of_csv[0].total < of_csv[1].total == 1500
    for first, second in zip(of_csv, of_excel, strict=True):
        assert np.array_equal(first.counts, second.counts)


def spreadsheet(path: Path) -> None:
    """Write the table of the README as Excel writes it."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    table = pyarrow.csv.read_csv(ROOT / "examples" / "visits.csv")
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def test_it_is_short_and_has_one_picture() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 100
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).stat().st_size < 100_000


@pytest.mark.deep
def test_from_an_empty_machine_to_a_report(tmp_path: Path) -> None:
    """All six commands on an Excel file, with an environment and an installation of their own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    spreadsheet(tmp_path / "mine.xlsx")
    lines = [line.replace("examples/visits.csv", "mine.xlsx") for line in PUBLISHING]
    type_all(tmp_path, [*INSTALLING, *lines], os.environ["PATH"])
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
