"""What releases say is gathered without repeating it, and covers every kind of release."""

from __future__ import annotations

import pytest

from reports.disclosure import visits
from sfumato.answers import registry
from sfumato.reports.disclosure.evidence import gathered
from sfumato.reports.disclosure.fields import (
    AFTERWARDS,
    afterwards,
    bullets,
    by_text,
    columns,
    joined,
    level,
)
from support.every_kind import releases as every_kind


def test_every_kind_of_release_says_what_is_computed_afterwards():
    tags = {registry.tag_of(kind) for kind in registry.releases()}
    assert tags - {"partition"} == set(AFTERWARDS)
    kinds = every_kind()
    assert all(afterwards(release) for release in kinds.values())
    consistent = kinds["partition"].consistent()
    assert afterwards(kinds["partition"]) == (
        "the counts of cells are published as the mechanism drew them"
    )
    assert "constrained inference" in str(afterwards(consistent))


def test_columns_are_named_with_what_is_public(releases):
    assert columns(gathered(releases)) == [
        "ward (3 listed labels)",
        "age (from 0 to 120)",
        "shop (labels that are shown if they were selected with noise)",
    ]


def test_the_unit_is_named_as_the_registry_names_it(releases):
    assert level(gathered(releases)) == "Who-level"


@pytest.mark.parametrize(
    ("texts", "most", "said"),
    [(["a", "a"], 2, "a"), (["a", "b"], 2, "a; b"), (["a", "b", "c"], 1, "a; and 2 more")],
)
def test_long_lists_are_folded(texts, most, said):
    assert joined(texts, most) == said


def test_texts_are_said_once(releases):
    assert by_text(("x", release) for release in releases) == ["x"]
    first, second, *_ = releases
    said = by_text([("x", first), ("y", second), ("x", first)])
    assert said == [f"{first.heading}: x", f"{second.heading}: y"]
    assert bullets(["a", "", "b"]) == "- a\n- b"
    assert visits.NAME not in "".join(said)
