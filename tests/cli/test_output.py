"""How commands print: long lines are broken for a person who reads them on a terminal."""

from __future__ import annotations

import io
import sys

import pytest
from click import unstyle

from sfumato.cli import output, run

LONG = "Histogram of ward, for any one person contributing at most 3 rows, added or removed:"
PATH = "/" + "x" * 90


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.prose(f"{LONG}\n  adds noise\n  {LONG}\n{PATH}")
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "Histogram of ward, for any one person"
    assert lines[1] == "    contributing at most 3 rows, added"
    assert lines[3] == "  adds noise"
    assert lines[4].startswith("  Histogram")
    assert lines[5] == "      contributing at most 3 rows, added"
    assert lines[-1] == PATH
    assert all(len(line) <= 40 for line in lines[:-1])


def test_a_pipe_gets_messages_as_they_are_and_prose_in_lines_of_80(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output.print_output(LONG)
    output.print_messages(LONG)
    assert capsys.readouterr() == (f"{LONG}\n", f"{LONG}\n")
    output.prose(LONG)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert " ".join(line.strip() for line in lines) == LONG


def test_what_may_be_copied_is_whole_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    output.print_output(f"# {LONG}")
    assert terminal.getvalue() == f"# {LONG}\n"


def test_an_error_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["histogram", "t.csv", "--axis", "age=0,,1", "--epsilon", "1"]) == 2
    lines = unstyle(terminal.getvalue()).splitlines()
    assert lines[0].startswith("Error: --axis ")
    assert len(lines) > 2
    assert all(len(line) <= 40 for line in lines)


def test_a_field_without_a_value_is_empty_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["table", "age", "count"], [["kind", None, 3], [None, 0, 4.5]])
    assert capsys.readouterr().out == "table\tage\tcount\nkind\t\t3\n\t0\t4.5\n"
