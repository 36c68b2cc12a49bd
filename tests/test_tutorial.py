"""The tutorial, followed literally: each file is saved, each command typed, in an empty folder."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sfumato.ledger import open_ledger
from support import pages
from support.shell import run_all

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
SAVED = re.compile(r"save \[([\w.]+)\]\(([^)]+)\)")


def downloads() -> Iterator[tuple[str, Path]]:
    """The files that the page has one save, under the names that it gives them."""
    for name, link in SAVED.findall(PAGE.read_text(encoding="utf-8")):
        yield name, PAGE.parent / link


def follow(folder: Path) -> Iterator[tuple[list[str], str]]:
    """Do what the page says, block by block.

    Yield the commands of a block with what they printed, and the text that the page shows.
    """
    typed: list[str] = []
    printed = ""
    for language, text in pages.blocks(PAGE):
        file = pages.FILE.match(text)
        if file is not None:
            (folder / file[1]).write_text(text, encoding="utf-8")
        elif language == "console":
            typed = [line.removeprefix("$ ") for line in text.splitlines()]
            *_, printed = run_all(folder, typed)
            yield typed, ""
        elif language == "text":
            # The last command of the block printed this, and nothing else.
            assert text == printed, f"{typed[-1]} prints otherwise:\n{printed}"
            yield [], text


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the files that the page has one save."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("SFUMATO_LEDGER", raising=False)
    folder = tmp_path / "empty"
    folder.mkdir()
    for name, file in downloads():
        shutil.copy(file, folder / name)
    return folder


def test_the_tutorial_leads_from_an_empty_folder_to_a_report(empty: Path) -> None:
    done = list(follow(empty))
    typed = [command for commands, _ in done for command in commands]
    shown = [text for _, text in done if text]
    assert (len(typed), len(shown)) == (10, 4)
    for name in ("report.html", "quarter4.html"):
        assert "<svg" in (empty / name).read_text(encoding="utf-8")
    with open_ledger(empty / "sfumato.db") as ledger:
        (account,) = ledger.accounts()
    assert (account.name, account.remaining) == ("visits-2025", (0, 0))
    assert (empty / "wards.csv").exists()
