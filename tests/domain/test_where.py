"""Public conditions as users write them, and as sentences say them."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.conditions import Condition, OneOf, Within, as_written, conditions_of, in_words
from sfumato.privacy.unit import Unit, unit_within

DOMAIN = sf.Domain(
    kind=sf.Categories(["a", "b", "c"], other="else", missing="none"),
    code=sf.Categories([1, 2, 3]),
    yes=sf.Categories([True, False]),
    age=sf.Interval(0, 120, step=1),
    day=sf.Interval("2024-01-01", "2025-01-01"),
    hour=sf.Hour("when"),
    shop=sf.Keys(),
)


@pytest.mark.parametrize(
    ("where", "condition", "words"),
    [
        ({"kind": ["c", "a", "c"]}, OneOf("kind", ("a", "c")), "kind is a or c"),
        ({"kind": "else"}, OneOf("kind", ("else",)), "kind is else"),
        ({"code": np.array([3])}, OneOf("code", (3,)), "code is 3"),
        ({"code": {1, 2}}, OneOf("code", (1, 2)), "code is 1 or 2"),
        ({"yes": [True]}, OneOf("yes", (True,)), "yes is True"),
        ({"hour": range(8, 11)}, OneOf("hour", (8, 9, 10)), "hour is 8, 9 or 10"),
        ({"age": (18, 65)}, Within("age", 18, 65), "age is from 18 to below 65"),
        ({"age": [18.0, 65]}, Within("age", 18, 65), "age is from 18 to below 65"),
        ({"age": (0, 65)}, Within("age", None, 65), "age is below 65"),
        ({"age": (65, None)}, Within("age", 65), "age is at least 65"),
        ({"age": (None, 120)}, Within("age"), "age is known"),
        (
            {"day": ("2024-07-01", None)},
            Within("day", "2024-07-01"),
            "day is at least 2024-07-01",
        ),
        (
            {"day": (np.datetime64("2024-07-01"), "2024-08-01")},
            Within("day", "2024-07-01", "2024-08-01"),
            "day is from 2024-07-01 to before 2024-08-01",
        ),
    ],
)
def test_one_condition(where: object, condition: Condition, words: str) -> None:
    (found,) = conditions_of(where, DOMAIN)
    assert found == condition
    assert str(found) == words
    assert conditions_of(as_written([found]), DOMAIN) == (found,)


def test_equal_conditions_are_equal_however_they_are_written() -> None:
    one = conditions_of({"age": (18, None), "kind": ["b", "a"]}, DOMAIN)
    other = conditions_of({"kind": ("a", "b"), "age": [18.0, 120]}, DOMAIN)
    assert one == other
    assert in_words(one) == " where age is at least 18, and kind is a or b"


def test_many_labels_are_not_all_named() -> None:
    (found,) = conditions_of({"hour": range(24)}, DOMAIN)
    assert str(found) == "hour is 0, 1, 2, 3, 4, 5, 6 or 17 more"


@pytest.mark.parametrize(
    ("where", "obstacle"),
    [
        ({}, "a dict with a condition"),
        ([("age", (1, 2))], "a dict with a condition"),
        ({"ages": (1, 2)}, "did you mean 'age'?"),
        ({1: (1, 2)}, "no axis of that name"),
        ({"kind": []}, "the list of labels is empty"),
        ({"kind": ["d"]}, "no such label"),
        ({"kind": {"a": 1}}, "labels are a list"),
        ({"kind": None}, "labels are a list"),
        ({"kind": 1.5}, "labels are a list"),
        ({"code": ["1"]}, "no such label"),
        ({"code": [True]}, "no such label"),
        ({"code": [math.nan]}, "no such label"),
        ({"yes": [1]}, "no such label"),
        ({"hour": (8, 18)}, "could mean a range"),
        ({"hour": [24]}, "no such label"),
        ({"shop": ["x"]}, "an axis of keys"),
        ({"age": 18}, "a pair of bounds"),
        ({"age": "18..65"}, "a pair of bounds"),
        ({"age": (1, 2, 3)}, "a pair of bounds"),
        ({"age": (65, 18)}, "below its upper bound"),
        ({"age": (18, 18)}, "below its upper bound"),
        ({"age": (18, 121)}, "leaves the public bounds"),
        ({"age": (-1, 18)}, "leaves the public bounds"),
        ({"age": (math.nan, 18)}, "finite numbers"),
        ({"age": (0, math.inf)}, "finite numbers"),
        ({"age": ("2024-01-01", 18)}, "not of the kind of the axis"),
        ({"age": ("x", 18)}, "a bound is a number"),
        ({"day": (1, 2)}, "not of the kind of the axis"),
        ({"day": ("2024-01-01T00:00", None)}, "not of the kind of the axis"),
    ],
)
def test_what_is_no_condition_is_refused(where: object, obstacle: str) -> None:
    with pytest.raises(sf.UsageError) as caught:
        conditions_of(where, DOMAIN)
    assert obstacle in str(caught.value)
    assert caught.value.remedy


def test_a_unit_states_its_conditions_and_is_stored_without_any_as_before() -> None:
    conditions = conditions_of({"age": (18, 65)}, DOMAIN)
    unit = unit_within(4, "add-remove", "rider", None, conditions)
    assert str(unit) == (
        "any one person contributing at most 4 rows where age is from 18 to below 65, "
        "added or removed"
    )
    assert unit.counted == (
        "the rows counted (at most 4 per person) where age is from 18 to below 65"
    )
    persons = unit.counting_persons(3)
    assert str(persons) == (
        "any one person counted at most once in a cell, and in at most 3 cells, of rows where age "
        "is from 18 to below 65, added or removed"
    )
    assert persons.counted == (
        "the persons counted (each in at most 3 cells), by rows where age is from 18 to below 65"
    )
    plain = unit_within(4, "add-remove", "rider")
    assert unit.protects == plain.protects
    assert b"where" not in msgspec.json.encode(plain)
    assert msgspec.json.decode(msgspec.json.encode(unit), type=Unit) == unit
    assert unit.of_all_rows.where == unit.where
    assert (unit.counts_l1, unit.counts_l2_squared) == (plain.counts_l1, plain.counts_l2_squared)
