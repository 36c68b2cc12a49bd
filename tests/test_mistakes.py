"""What people type wrongly, and what they are told: the three parts, the exit code, nothing spent.

The tables are in ``support/mistakes``. Each message was read as somebody would who sees it once.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sfumato as sf
from sfumato.cli import run
from support import mistakes
from support.mistakes import CANARY, COMMON, PLAN, Mistake

TABLES = {name: mistakes.table(name) for name in ("commands", "plans", "python")}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sf.Publisher]:
    """A publisher of visits to a hospital, in a folder of its own."""
    folder = tmp_path_factory.mktemp("hospital")
    mistakes.furnish(folder)
    with mistakes.publisher(folder) as publisher:
        yield publisher


@pytest.fixture
def spending_nothing(
    hospital: sf.Publisher, monkeypatch: pytest.MonkeyPatch
) -> Iterator[sf.Publisher]:
    """The same, in its folder: afterwards no account has spent, and there is no new one."""
    folder = Path(hospital.source.label.partition(" modified")[0]).parent
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    yield hospital
    accounts = hospital.ledger.accounts()
    assert [(account.name, account.spent) for account in accounts] == [("visits", (0, 0))]
    after = sorted(path.name for path in folder.iterdir())
    assert [name for name in after if name.endswith(".db")] == [
        name for name in before if name.endswith(".db")
    ]


def text(mistake: Mistake) -> str:
    """The whole message."""
    parts = (mistake.asked, mistake.obstacle, mistake.remedy)
    assert all(part and not part.endswith(".") for part in parts)
    return str(sf.SfumatoError(*parts))


@pytest.mark.parametrize("mistake", TABLES["commands"], ids=lambda mistake: mistake.what)
def test_on_the_command_line(
    mistake: Mistake, spending_nothing: sf.Publisher, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(mistake.typed.replace("...", COMMON))
    assert words[0] == "sfumato"
    _run(words[1:], mistake, capsys)


@pytest.mark.parametrize("mistake", TABLES["plans"], ids=lambda mistake: mistake.what)
def test_in_a_plan(
    mistake: Mistake, spending_nothing: sf.Publisher, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan is refused before the ledger is opened, by preview and by release alike."""
    assert PLAN.count(mistake.instead) == 1
    written = PLAN.replace(mistake.instead, mistake.typed)
    Path("mine.toml").write_text(written, encoding="utf-8")
    _run(["release", "mine.toml", "--ledger", "budget.db"], mistake, capsys)


def _run(words: list[str], mistake: Mistake, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(words)
    out, err = capsys.readouterr()
    assert (err, out, code) == (f"Error: {text(mistake)}\n", "", mistake.exit)
    assert CANARY not in err


@pytest.mark.parametrize("mistake", TABLES["python"], ids=lambda mistake: mistake.what)
def test_in_python(mistake: Mistake, spending_nothing: sf.Publisher) -> None:
    publisher = spending_nothing
    names = {
        "sf": sf,
        "np": np,
        "pd": pd,
        "pl": pl,
        "frame": mistakes.frame(),
        "publisher": publisher,
        "source": publisher.source,
        "domain": publisher.source.domain,
    }
    with pytest.raises(sf.SfumatoError) as refusal:
        exec(mistake.typed, names)
    assert str(refusal.value) == text(mistake)
    assert refusal.value.exit_code == mistake.exit
    assert CANARY not in str(refusal.value)


def test_there_are_sixty() -> None:
    """Sixty at least, each of them another mistake."""
    rows = [row for table in TABLES.values() for row in table]
    assert len(rows) >= 60
    assert len({row.what for row in rows}) == len(rows) == len({row[:2] for row in rows})


def test_a_right_command_plan_and_call_are_answered(
    hospital: sf.Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tables change is what is wrong: without it, all is well."""
    monkeypatch.chdir(tmp_path)
    mistakes.furnish(tmp_path)
    words = shlex.split(f"histogram visits.csv {COMMON} --epsilon 1 --budget 3")
    assert run(words) == 0
    assert run(["release", "plan.toml", "--ledger", "budget.db"]) == 0
    assert hospital.preview(sf.Histogram("age"), epsilon="1").cost.epsilon == 1


Check = Callable[[str], bool]
READS: dict[str, Check] = {
    "the remedy begins with what to do": lambda remedy: remedy[0].isupper(),
    "no words of a decoder": lambda remedy: not re.search(r"NoneType|StructMeta|\$\.|`", remedy),
}


@pytest.mark.parametrize("rule", READS)
def test_how_remedies_read(rule: str) -> None:
    rows = [row for table in TABLES.values() for row in table]
    assert [row.what for row in rows if not READS[rule](row.remedy)] == []
