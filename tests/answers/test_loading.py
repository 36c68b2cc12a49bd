"""A file that no domain could have led to is refused when it is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf

TABLE = pa.table({"ward": ["a", "b"] * 99, "shift": [True, False] * 99, "town": ["x", "y"] * 99})
DOMAIN = sf.Domain(
    ward=sf.Categories(["a", "b", 1, True], other="others"),
    shift=sf.Categories([False, True]),
    town=sf.Keys(),
)


def saved(path: Path, change: Callable[[list[Any]], None]) -> Path:
    """A release in a file, with a change of its axes."""
    source = sf.source(TABLE, DOMAIN, name="visits")
    publisher = sf.Publisher(source, ledger=None, account="a", budget=sf.ApproxDP("9", "0.5"))
    release = publisher.release(sf.Histogram(["ward", "shift", "town"]), epsilon="8", delta="0.4")
    release.save(path)
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["lattice"]["axes"][2]["labels"] == ["x", "y"]
    change(stored["lattice"]["axes"])
    path.write_text(json.dumps(stored), encoding="utf-8")
    return path


def test_labels_of_two_types_are_not_the_same(tmp_path: Path) -> None:
    path = saved(tmp_path / "r.json", lambda axes: None)
    assert sf.load(path).loaded


@pytest.mark.parametrize(
    "change",
    {
        "a label twice": lambda axes: axes[0].update(labels=["a", "a", 1, True, "others"]),
        "a label as the name of others": lambda axes: axes[0].update(
            labels=["a", "b", 1, True, "a"]
        ),
        "two axes of one name": lambda axes: axes[1].update(name="ward"),
        "a key twice": lambda axes: axes[2].update(labels=["x", "x"]),
    }.items(),
    ids=lambda item: str(item[0]),
)
def test_what_is_there_twice_is_refused(change: Any, tmp_path: Path) -> None:
    with pytest.raises(sf.DataError, match="does not hold a release"):
        sf.load(saved(tmp_path / "r.json", change[1]))


NUMBERS = pa.table({"x": [float(value % 50) for value in range(400)], "ward": ["a", "b"] * 200})
NUMBERED = sf.Domain(x=sf.Interval(0, 50), ward=sf.Categories(["a", "b"]))


@pytest.mark.parametrize(
    ("question", "place", "value"),
    [
        (sf.Mean("x"), ["scale", "upper"], 0.0),
        (sf.Mean("x"), ["scale", "upper"], 1e300),
        (sf.Mean("x"), ["scale", "points"], 0),
        (sf.Variance("x"), ["scale", "lower"], 60.0),
        (sf.Mean("x", clip="auto"), ["basis", "multiple"], 0),
        (sf.Sum("x"), ["basis", "points"], -1),
        (sf.Histogram("x", records=50), ["lattice", "axes", 0, "bounds", 1], 1e300),
        (sf.Histogram("x", records=50), ["lattice", "axes", 0, "bounds", 1], -1.0),
        (sf.Quantiles("x", by="ward"), ["lattice", "axes"], []),
    ],
    ids=str,
)
def test_numbers_that_no_question_has_are_refused(
    question: Any, place: list[Any], value: object, tmp_path: Path
) -> None:
    publisher = sf.Publisher(sf.source(NUMBERS, NUMBERED, name="visits"), budget="9")
    path = publisher.release(question, epsilon="8").save(tmp_path / "r.json")
    stored = json.loads(Path(path).read_text(encoding="utf-8"))
    inner = stored
    for each in place[:-1]:
        inner = inner[each]
    assert inner[place[-1]] != value
    inner[place[-1]] = value
    Path(path).write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(sf.DataError, match="does not hold a release"):
        sf.load(path)
