"""No object of a pandas frame decides whether the frame is refused, or how its other objects are read."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data import count
from sfumato.data.objects import person
from sfumato.domain import grid_axis
from sfumato.lattice import Lattice

ODD: list[Any] = [
    None,
    math.nan,
    pd.NA,
    pd.NaT,
    "text",
    "\ud800",
    b"\xff",
    True,
    3,
    10**400,
    2.5,
    -math.inf,
    Decimal("0.5"),
    Decimal("sNaN"),
    1j,
    np.float32(1.5),
    dt.date(2020, 1, 1),
    dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=9))),
    pd.Timestamp("2020-01-01T05:00:00.000000001"),
    dt.timedelta(1),
    uuid.UUID(int=7),
    {"a": 1},
    [1, 2],
    object(),
]
DOMAIN = sf.Domain(
    x=sf.Interval(0, 10, missing=9.5),
    at=sf.Interval("2020-01-01T00:00", "2020-01-02T00:00", missing="2020-01-01T23:30"),
    word=sf.Categories(["text", "3"], other="else", missing="unknown"),
    code=sf.Categories([1, 3], other="else", missing="unknown"),
    yes=sf.Categories([True, False], missing="unknown"),
    key=sf.Keys(),
)
LATTICES = {
    "x": Lattice((grid_axis("x", DOMAIN["x"], 10),)),  # type: ignore[arg-type]
    "at": Lattice((grid_axis("at", DOMAIN["at"], 24),)),  # type: ignore[arg-type]
    **{name: sf.Histogram(name).needs(DOMAIN).lattice for name in ("word", "code", "yes")},
}
PLAIN: dict[str, list[Any]] = {
    "x": [1, 2.5, Decimal("3.5")],
    "at": [dt.datetime(2020, 1, 1, 5), dt.date(2020, 1, 1)],
    "word": ["text", "3"],
    "code": [1, 3, 3.0],
    "yes": [True, np.bool_(False)],
}


def frame(name: str, values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(values, dtype=object)})


def counted(name: str, values: list[Any]) -> list[int]:
    src = sf.source(frame(name, values), DOMAIN)
    src.require([LATTICES[name]])
    return [int(each) for each in count(src, [LATTICES[name]])[0].counts]


@pytest.mark.parametrize("name", LATTICES)
def test_one_object_moves_itself_alone(name: str) -> None:
    before = counted(name, PLAIN[name])
    for odd in ODD:
        for values in ([odd, *PLAIN[name]], [*PLAIN[name], odd]):
            after = counted(name, values)
            assert sum(after) == sum(before) + 1, odd
            assert all(b >= a for a, b in zip(before, after, strict=True)), odd


def test_what_objects_are_read_as() -> None:
    assert counted("x", [True, 3, 10**400, -math.inf, Decimal("0.5"), "text", 1j]) == [
        2,
        1,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        3,
    ]
    assert counted("code", [3.0, True, 4, "3", None]) == [0, 1, 1, 3]
    assert counted("word", ["text", 3, "x", b"text"]) == [1, 0, 1, 2]
    keys = count(
        sf.source(frame("key", [5, "5", True, 2.5, "\ud800"]), DOMAIN),
        [sf.Histogram("key").needs(DOMAIN).lattice],
    )[0]
    assert dict(zip(keys.keys["key"].to_pylist(), keys.counts.tolist(), strict=True)) == {
        "5": 2,
        "True": 1,
    }  # type: ignore[index]


def test_persons_among_objects() -> None:
    assert person(7) == person(7.0) == person(Decimal(7)) == person(np.int8(7))
    assert (
        len(
            {
                person(each)
                for each in (7, "7", b"7", 7.5, "n7", uuid.UUID(int=7), dt.date(2020, 1, 7))
            }
        )
        == 7
    )
    assert [person(each) for each in (None, math.nan, pd.NaT, object(), {})] == [None] * 5
    domain = sf.Domain(x=sf.Interval(0, 1))
    for odd in ODD:
        data = frame("p", [1, 1, "a", odd]).assign(x=0.5)
        src = sf.source(data, domain, person="p")
        assert count(src, [Lattice((grid_axis("x", domain["x"], 1),))])[0].total in (2, 3)  # type: ignore[arg-type]


def test_numpy_text_that_is_no_unicode_is_missing() -> None:
    domain = sf.Domain(word=sf.Categories(["a"], missing="unknown"))
    rows = np.array([["a"], ["\ud800"], ["a"]])
    assert count(sf.source(rows, domain), [sf.Histogram("word").needs(domain).lattice])[
        0
    ].counts.tolist() == [2, 1]


def test_keys_that_pandas_widened_are_the_whole_numbers_that_they_were() -> None:
    """One missing or huge value among whole numbers makes doubles, or numbers without a sign, of all."""
    domain = sf.Domain(shop=sf.Keys())
    plain = [3, 3, 5, -7]
    for more in ([], [None], [1.5], [float("inf")]):
        frame = pd.DataFrame({"shop": plain + more})
        (cube,) = count(sf.source(frame, domain), [sf.Histogram("shop").needs(domain).lattice])
        assert cube.counts.sum() == 4
    (cube,) = count(
        sf.source(pd.DataFrame({"shop": [3, 2**63]}), domain),
        [sf.Histogram("shop").needs(domain).lattice],
    )
    assert cube.counts.sum() == 1
