"""Frames whose types are made from their values.

One person's value decides nothing about how others are read.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sfumato as sf
from support.artefacts import World, assert_same, both

DOMAIN = sf.Domain(x=sf.Interval(0, 16, step=1), kind=sf.Categories([1, 2]), shop=sf.Keys())
COLUMNS = ["who", "x", "kind", "shop"]
OTHERS: list[Any] = [(i, i % 16, 1 + i % 2, i % 3) for i in range(60)]

ROWS: dict[str, tuple[Any, ...]] = {
    "no id": (None, 3, 1, 1),
    "no value": (99, None, 1, 1),
    "no label": (99, 3, None, 1),
    "no key": (99, 3, 1, None),
    "a fraction": (99, 3.5, 1, 1),
    "a fraction for a label": (99, 3, 1.5, 1),
    "a large value": (99, 10**20, 1, 1),
    "a text for a value": (99, "12abc", 1, 1),
    "a text for an id": ("ninety-nine", 3, 1, 1),
    "a text for a label": (99, 3, "one", 1),
    "a text for a key": (99, 3, 1, "other"),
    "a large id": (2**64, 3, 1, 1),
    "a truth for an id": (True, 3, 1, 1),
    "a fraction for a key": (99, 3, 1, 1.5),
    "a large key": (99, 3, 1, 2**63),
}


def run(here: World, frame: pd.DataFrame) -> None:
    src = sf.source(frame, DOMAIN, person="who", rows_per_person=2, name="people")
    with sf.Publisher(src, ledger=here.ledger, budget=sf.ApproxDP(1000, "0.5")) as pub:
        for question in (sf.Histogram("x", bins=4), sf.Histogram("kind"), sf.Histogram("shop")):
            here.call(question.title, partial(pub.release, question, epsilon=16, delta="0.01"))


@pytest.mark.parametrize("row", ROWS)
def test_frames_of_objects(row: str, tmp_path: Path) -> None:
    """Columns of Python objects hold what each person gave."""

    def lay(here: World, which: int) -> pd.DataFrame:
        return pd.DataFrame([*OTHERS, *([ROWS[row]] * which)], columns=COLUMNS, dtype=object)

    seen = assert_same(both(tmp_path / "w", lay, run))
    assert not [name for name in seen if name.endswith("raised")]


INFERRED = [
    "no id",
    "no value",
    "no label",
    "no key",
    "a fraction",
    "a fraction for a label",
    "a fraction for a key",
    "a large key",
    "a large value",
]


@pytest.mark.parametrize("row", INFERRED)
def test_frames_whose_types_pandas_makes(row: str, tmp_path: Path) -> None:
    """One missing value or fraction turns whole numbers into doubles."""

    def lay(here: World, which: int) -> pd.DataFrame:
        return pd.DataFrame([*OTHERS, *([ROWS[row]] * which)], columns=COLUMNS)

    seen = assert_same(both(tmp_path / "w", lay, run))
    assert not [name for name in seen if name.endswith("raised")]
