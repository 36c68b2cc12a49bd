"""Mistakes that people make, and what they are told: three tables, and a folder to make them in.

Each table is a TOML file beside this one, so that it can be read as it is: what was meant, what was
typed, and the three parts of the message.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.ledger import open_ledger

HERE = Path(__file__).parent
CANARY = "918273"
"""Part of each patient's number; no message may show it."""
WARDS = ("Surgery", "Medicine", "Emergency")

COMMON = """--axis ward=Surgery,Medicine,Emergency --axis age=0..120/1 --person patient
 --rows-per-person 2 --account visits --ledger budget.db""".replace("\n", "")
"""What ``...`` stands for in a command: options that are right."""

PLAN = """\
[source]
path = "visits.csv"
person = "patient"
rows_per_person = 2

[domain]
ward = { type = "categories", labels = ["Surgery", "Medicine", "Emergency"] }
age = { type = "interval", lower = 0, upper = 120, step = 1 }
admitted = { type = "interval", lower = 2025-01-01, upper = 2026-01-01 }

[budget]
account = "visits"
epsilon = "3"

[release]
epsilon = "0.5"

[[questions]]
type = "histogram"
axes = ["ward", "age"]
bins = { age = [0, 18, 65, 120] }
"""
"""A plan that is right."""


class Mistake(NamedTuple):
    """A row of a table.

    Attributes
    ----------
    what : str
        The mistake, in words.
    typed : str
        A command line; Python; or what stands in the plan.
    instead : str
        In a plan: the text in whose place it stands.
    exit : int
        The exit code.
    asked, obstacle, remedy : str
        The parts of the message.
    """

    what: str
    typed: str
    exit: int
    asked: str
    obstacle: str
    remedy: str
    instead: str = ""


def table(name: str) -> list[Mistake]:
    """The rows of a table: "commands", "plans" or "python"."""
    rows = tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))["mistake"]
    return [Mistake(**row) for row in rows]


def frame() -> pd.DataFrame:
    """Visits to a hospital."""
    rng = np.random.default_rng(1)
    n = 60
    return pd.DataFrame(
        {
            "patient": [f"P{CANARY}{number:03d}" for number in rng.integers(0, 30, n)],
            "ward": rng.choice(WARDS, n),
            "age": rng.integers(0, 101, n),
            "admitted": [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)],
            "days in bed": rng.integers(0, 30, n),
        }
    )


def furnish(folder: Path) -> None:
    """Write the files that the mistakes are about."""
    frame().to_csv(folder / "visits.csv", index=False)
    (folder / "notes.db").write_text(f"patient P{CANARY}001 called; " * 40, encoding="utf-8")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    (folder / "archive").mkdir()


def publisher(folder: Path) -> sf.Publisher:
    """A publisher of the visits, whose account "visits" has a budget of 3."""
    domain = sf.Domain(
        ward=sf.Categories(WARDS),
        age=sf.Interval(0, 120, step=1),
        admitted=sf.Interval("2025-01-01", "2026-01-01"),
    )
    source = sf.source(folder / "visits.csv", domain, person="patient", rows_per_person=2)
    with open_ledger(folder / "budget.db") as ledger:
        ledger.open_account("visits", "pure", (3 * 10**9, 0))
    return sf.Publisher(source, ledger=folder / "budget.db", account="visits", budget="3")
