"""A class that says which of its arguments do not fit is a Struct like any other."""

from __future__ import annotations

import copy
import pickle

import msgspec
import numpy as np
import pandas as pd
import pytest

from sfumato.basics.structs import ExplainedStruct
from sfumato.errors import ArgumentError, UsageError


class Point(ExplainedStruct, frozen=True, tag="point", omit_defaults=True):
    """Two numbers, and a name that is given by name."""

    x: int
    y: int = 0
    name: str = msgspec.field(default="", name="label")

    def __post_init__(self) -> None:
        if self.x == 13:
            raise TypeError("unlucky")


class Named(Point, frozen=True, kw_only=True, tag="named"):
    """One more."""

    unit: str


@pytest.mark.parametrize(
    ("args", "named", "says"),
    [
        ((), {}, "Point(): it lacks x. Write Point(x, y=..., name=...)."),
        ((1, 2, "a", 4), {}, "Point() of 4 arguments without a name: it takes at most 3"),
        ((1,), {"z": 2}, "Point(z=...): it has no argument of that name"),
        ((1,), {"nam": "a"}, "did you mean 'name'?"),
        ((1,), {"x": 2}, "Point(): an argument is given twice"),
    ],
)
def test_what_does_not_fit_is_named(args: tuple[int], named: dict[str, int], says: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        Point(*args, **named)  # type: ignore[arg-type]
    assert says in str(refusal.value)
    assert isinstance(refusal.value, UsageError)
    assert isinstance(refusal.value, TypeError)
    assert refusal.value.__cause__ is refusal.value.__context__ is None


def test_what_a_subclass_needs_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"Named\(\): it lacks unit"):
        Named(1)  # type: ignore[call-arg]
    assert Named(1, unit="km").unit == "km"


def test_an_error_from_within_stays_as_it_is() -> None:
    with pytest.raises(TypeError, match=r"^unlucky$"):
        Point(13)


def test_it_is_stored_and_copied_as_any_struct() -> None:
    point = Point(1, name="a")
    data = msgspec.json.encode(point)
    assert data == b'{"type":"point","x":1,"label":"a"}'
    assert msgspec.json.decode(data, type=Point) == point
    assert copy.deepcopy(point) == pickle.loads(pickle.dumps(point)) == point
    assert msgspec.structs.replace(point, y=2) == Point(1, 2, "a")


class Kind(ExplainedStruct, frozen=True):
    """Compares what it is given to a word."""

    word: object

    def __post_init__(self) -> None:
        if self.word not in ("a", "b"):
            raise UsageError("a kind", "it is another word", "Write a or b")


@pytest.mark.parametrize(
    "value", [np.array([1, 2]), pd.DataFrame({"a": [1, 2]}), pd.Series([871_263, 1])]
)
def test_a_table_where_a_word_belongs_is_named_and_not_quoted(value: object) -> None:
    with pytest.raises(ArgumentError) as refusal:
        Kind(value)
    asked, obstacle, _ = refusal.value.args
    assert asked == "Kind(word=...)"
    assert obstacle == f"a value of type {type(value).__name__} is not what it takes"
    assert "871263" not in str(refusal.value)
    assert refusal.value.__context__ is None
    with pytest.raises(UsageError, match="another word"):
        Kind("c")
