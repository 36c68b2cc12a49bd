"""A field that only a person can fill in is counted as missing until a person has."""

from __future__ import annotations

import pytest

from sfumato.reports.disclosure.fields import Field, leaves, plain, todo

TREE = {"one": Field(1), "deep": {"two": todo("the second"), "three": {"four": Field(["x"])}}}


def test_fields_have_places_in_order():
    assert [place for place, _ in leaves(TREE)] == ["one", "deep.two", "deep.three.four"]
    assert plain(TREE) == {
        "one": 1,
        "deep": {"two": "TODO: the second", "three": {"four": ["x"]}},
    }


@pytest.mark.parametrize(
    ("field", "missing"),
    [
        (todo("a name"), True),
        (Field(["x", "TODO: y"]), True),
        (Field("- known\n- Mean: TODO: what was computed"), True),
        (Field("To do"), False),
        (Field(3), False),
        (Field(0.5), False),
    ],
)
def test_what_is_left_to_a_person_is_missing(field, missing):
    assert field.missing is missing
