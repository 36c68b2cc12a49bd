"""How commands print: long lines are broken for a person who reads them on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from sfumato.cli import output

LONG = "Histogram of ward, for any one patient contributing at most 3 rows, added or removed:"
PATH = "/" + "x" * 90


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    output.say(f"{LONG}\n  adds noise\n  {LONG}\n{PATH}")
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "Histogram of ward, for any one patient"
    assert lines[1] == "    contributing at most 3 rows, added"
    assert lines[3] == "  adds noise"
    assert lines[4].startswith("  Histogram")
    assert lines[5] == "      contributing at most 3 rows, added"
    assert lines[-1] == PATH
    assert all(len(line) <= 40 for line in lines[:-1])


def test_a_pipe_gets_lines_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    output.say(LONG)
    output.talk(LONG)
    assert capsys.readouterr() == (f"{LONG}\n", f"{LONG}\n")


def test_a_field_without_a_value_is_empty_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(["table", "age", "count"], [["kind", None, 3], [None, 0, 4.5]])
    assert capsys.readouterr().out == "table\tage\tcount\nkind\t\t3\n\t0\t4.5\n"
