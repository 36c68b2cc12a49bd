"""``sfumato audit``: exit codes, TSV in a pipe, JSON, tables and a bar on a terminal."""

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from audit.subjects import SUBJECTS
from sfumato.audit import COLUMNS, Finding, subjects
from sfumato.audit.subjects import Subject
from sfumato.basics.structs import from_bytes
from sfumato.cli import run
from sfumato.privacy.unit import Unit
from support.broken import BROKEN, CLAIM, UNIVERSE

AUDITED = subjects.library()
PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


@pytest.fixture
def sound(monkeypatch):
    few = tuple(
        dataclasses.replace(subject, runs=300)
        for subject in SUBJECTS
        if subject.name == "Histogram"
    )[:2]
    monkeypatch.setattr(subjects, "library", lambda: few)
    monkeypatch.setattr(subjects.examples, "subjects", lambda kinds: ())
    # Fresh processes would not know of these subjects.
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    return few


@pytest.fixture
def broken(sound, monkeypatch):
    faulty = [
        Subject(one.name, one.unit, CLAIM, one.mechanism, UNIVERSE, runs=300) for one in BROKEN
    ]
    monkeypatch.setattr(subjects, "library", lambda: (*sound, *faulty))
    monkeypatch.setattr("os.cpu_count", lambda: 1)


def test_sound_mechanisms_give_exit_code_0(sound, capsys):
    assert run(["audit"]) == 0
    out, err = capsys.readouterr()
    lines = [line.split("\t") for line in out.splitlines()]
    assert tuple(lines[0]) == COLUMNS
    assert [line[5] for line in lines[1:]] == ["ok", "ok"]
    assert "None of 2 subjects" in err


def test_a_broken_mechanism_gives_exit_code_70(broken, capsys):
    assert run(["audit", "--only", "half the noise"]) == 70
    assert "EXCEEDS" in capsys.readouterr().out
    assert run(["audit", "--only", "noise of numpy", "--quick"]) == 70
    assert "REFUSED" in capsys.readouterr().out
    assert run(["audit", "--only", "histogram"]) == 0


def test_a_row_without_power_is_no_failure_and_never_ok(sound, monkeypatch, capsys):
    """Ten runs would see neither half nor a quarter of the noise, and every output says so."""
    blind = dataclasses.replace(
        sound[0],
        name="Blind",
        universe=(),
        pairs=((((0.5,),), ()),),
        exact=None,
        runs=10,
        weaker=lambda times: sound[0].mechanism,
    )
    monkeypatch.setattr(subjects, "library", lambda: (*sound, blind))
    assert run(["audit"]) == 0
    out, err = capsys.readouterr()
    assert [line.split("\t")[5:7] for line in out.splitlines()[1:]] == [
        ["ok", "1.0 x"],
        ["ok", "1.0 x"],
        ["no power", "none"],
    ]
    assert "None of 3 subjects" in err
    assert "For 1 of them this says nothing" in err
    assert "Blind" in err
    assert run(["audit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["verdict"], one["ok"], one["fault"]) for one in found][2] == (
        "no power",
        False,
        None,
    )


def test_json(broken, capsys):
    assert run(["audit", "--json"]) == 70
    found = from_bytes(capsys.readouterr().out.encode(), list[Finding])
    assert [finding.ok for finding in found] == [True, True] + [False] * len(BROKEN)


def test_an_unknown_subject_is_a_usage_error(sound, capsys):
    assert run(["audit", "--only", "Hstogram"]) == 2
    assert "did you mean 'Histogram'" in capsys.readouterr().err


def test_on_a_terminal(sound, capsys, monkeypatch):
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert run(["audit"]) == 0
    out, _ = capsys.readouterr()
    assert "Histogram" in out
    assert "\t" not in out


def test_the_page_shows_every_subject():
    """The figures change with every run; what was audited does not."""
    (block,) = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    shown = [re.split(r"\s{2,}", line) for line in block.splitlines()]
    assert tuple(shown[0]) == COLUMNS
    expected = [Finding(s.name, s.unit, s.claim, None, 0.0, True, 0.0).row()[:3] for s in AUDITED]
    assert [tuple(line[:3]) for line in shown[1:]] == expected, "run: make audit docs"
    assert {line[5] for line in shown[1:]} == {"ok"}, "a row without power says nothing"
    for line in shown[1:]:
        most = 6.25 if "rho" in line[2] else 2.5
        blind = line[6] == "none" or float(line[6].split()[0]) > most
        assert line[5] == ("no power" if blind else "ok")


def test_a_row_as_text():
    found = Finding("Histogram", Unit(rows_per_person=2), CLAIM, 2.0000001, 1.5, False, 0.25)
    assert found.row() == (
        "Histogram",
        "2, add-remove",
        "epsilon = 2",
        "2.000",
        "1.500",
        "EXCEEDS",
        "1.0 x",
        "0.2",
    )
