"""How wide the lines are that people read."""

from __future__ import annotations

import io
import os

import pytest

from sfumato.cli.output import WIDTH, fitted, width_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 7


@pytest.mark.parametrize(("stated", "width"), [("40", 40), ("", 63), ("0", 63), ("wide", 63)])
def test_a_terminal_is_as_wide_as_stated_or_as_it_says(
    stated: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", stated)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((63, 20)))
    assert width_of(Terminal()) == width


def test_one_that_does_not_say_has_80_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)

    def fails(_: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", fails)
    assert width_of(Terminal()) == WIDTH == 80
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert width_of(Terminal()) == WIDTH


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert width_of(io.StringIO()) is None
    assert fitted("word " * 100, None) == "word " * 100


def test_words_stay_whole() -> None:
    assert fitted("a --rows-per-person /a/long/path", 10).split() == [
        "a",
        "--rows-per-person",
        "/a/long/path",
    ]
