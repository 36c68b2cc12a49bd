"""The page about organisations, followed literally: real roles, on a real server."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from sfumato.cli import run
from support import pages
from support.postgres import address, package

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "organisation.md"
ASKED = [
    "histogram",
    "visits.csv",
    "--axis",
    "ward=Emergency,Maternity,Medicine,Surgery",
    "--person",
    "patient",
    "--rows-per-person",
    "3",
    "--account",
    "visits-2025",
]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What stands for the name of the server on the page."""
    folder = address().partition("?host=")[2]
    # Roles belong to the whole server, which other tests share.
    yield quote(folder, safe="")
    with psycopg.connect(address(), autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS budget WITH (FORCE)")
        for name in ("ann", "ben", "eve", "cleo", "carl"):
            admin.execute(f"DROP ROLE IF EXISTS {name}")


def typed(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what one line of the page does, within this process where it is a command of ours."""
    program, *words = shlex.split(os.path.expandvars(line))
    match program:
        case "export":
            monkeypatch.setenv(*words[0].split("=", 1))
        case "sfumato":
            assert run(words) == 0, line
        case "psql":
            (folder, *_) = Path(package().__file__).parent.glob("pginstall*/bin")
            subprocess.run([folder / "psql", *words], check=True, capture_output=True)
        case _:
            raise AssertionError(line)


def test_the_page_leads_from_nothing_to_a_verified_export(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ROOT / "examples" / "visits.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    for language, text in pages.blocks(PAGE):
        if language == "console":
            for line in text.splitlines():
                typed(line.removeprefix("$ ").replace("db.example", host), monkeypatch)
    said = capsys.readouterr().out
    assert "visits-2025\tann\tepsilon = 0.8\tepsilon = 0.5\tepsilon = 0.3" in said
    assert "7 entries, all in order" in said
    public = json.loads(Path("public.json").read_text(encoding="utf-8"))
    charged = [entry for entry in public["entries"] if entry["kind"] == "reserve"]
    assert [entry["spender"] for entry in charged] == ["ann"]
    assert public["accounts"][0]["spenders"][0]["spent"] == [500_000_000, 0]

    # What the page says in words.
    at = f"postgresql://{{}}@{host}/budget"
    assert run([*ASKED, "--epsilon", "0.5", "--fresh", "--ledger", at.format("ann")]) == 3
    assert "0.3 is left of this spender's ceiling" in capsys.readouterr().err
    assert run([*ASKED, "--epsilon", "0.5", "--ledger", at.format("ben")]) == 0
    assert "Nothing was spent" in capsys.readouterr().err
    # A copy with another time is the table in another state: Ben is told, and a new draw is more
    # than Ben may spend.
    shutil.copy(ROOT / "examples" / "visits.csv", tmp_path)
    assert run([*ASKED, "--epsilon", "0.5", "--ledger", at.format("ben")]) == 2
    assert "paid for it on" in capsys.readouterr().err
    assert run([*ASKED, "--epsilon", "0.5", "--fresh", "--ledger", at.format("ben")]) == 3
    every_day(host, at.format("carl"), monkeypatch, capsys)


def every_day(
    host: str,
    carl: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the page has the custodian run later."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "| `sfumato" in line]
    monkeypatch.setenv("SFUMATO_LEDGER", carl)
    admin = f"psql postgresql://postgres@{host}/budget -c"
    for row in rows:
        command = row.split("`")[1]
        if "cleo" in command:
            assert run(shlex.split(command)[1:]) == 2
            assert "CREATE ROLE" in capsys.readouterr().err
            typed(f"{admin} 'CREATE ROLE cleo LOGIN'", monkeypatch)
        typed(command, monkeypatch)
    assert len(rows) == 5
    script = capsys.readouterr().out.splitlines()[-1]
    typed(f"{admin} {shlex.quote(script)}", monkeypatch)
    with psycopg.connect(carl.replace("carl", "cleo")) as cleo:
        cleo.execute("SELECT * FROM sfumato_secrets.about")
