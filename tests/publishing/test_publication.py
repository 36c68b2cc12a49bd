"""The facts of a publication are read from a plan or a file of their own, and change no answer."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import sfumato as sf
from sfumato.publishing.plan_file import publication_of, read_plan, read_publication
from sfumato.publishing.verifying import LONGEST, Note, Publication, listed
from support.mistakes import PLAN

FACTS = """
[publication]
data_curators = ["Town", "County"]
intended_use = "Planning"
release_type = "Many releases"

[publication.notes]
post_processing = "Counts below 90 were removed."
"""
READ = Publication(
    data_curators=("Town", "County"),
    intended_use="Planning",
    release_type="Many releases",
    notes={"post_processing": "Counts below 90 were removed."},
)


@pytest.mark.parametrize("text", [FACTS, PLAN + FACTS], ids=["alone", "in a plan"])
def test_facts_are_read_from_a_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "facts.toml").write_text(text)
    assert read_publication(tmp_path / "facts.toml") == READ


def test_a_plan_may_hold_them_and_asks_the_same(tmp_path: Path) -> None:
    (tmp_path / "bare.toml").write_text(PLAN)
    (tmp_path / "plan.toml").write_text(PLAN + FACTS)
    bare, plan = (read_plan(tmp_path / name) for name in ("bare.toml", "plan.toml"))
    assert bare.publication is None
    assert plan.publication == READ
    assert (plan.plan(), plan.source, plan.release) == (bare.plan(), bare.source, bare.release)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "it has no table [publication]"),
        ("[publication]\nname = 3", "[publication], name: it is a whole number"),
        ("[publication]\nnam = 'x'", "did you mean 'name'?"),
        ("[publication]\nname = ''", "the text is empty"),
        ("publication = 3", "it is not a table"),
        ("[publication]\n[publication.notes]\nepsilon = '1'", "no note can be added there"),
        ("[publication]\nrelease_type = 'Often'", "[publication], release_type"),
        ("[publication", "is not TOML"),
    ],
)
def test_facts_that_do_not_fit_are_refused_by_place(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "facts.toml").write_text(text)
    with pytest.raises(sf.UsageError) as refusal:
        read_publication(tmp_path / "facts.toml")
    assert said in str(refusal.value)
    assert f"the facts {tmp_path / 'facts.toml'}" in str(refusal.value)
    if "[publication]\n" in text:
        (tmp_path / "plan.toml").write_text(f"{PLAN}\n{text}")
        with pytest.raises(sf.UsageError) as refusal:
            read_plan(tmp_path / "plan.toml")
        assert said in str(refusal.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sf.DataError, match="there is no such file"):
        read_publication(tmp_path / "facts.toml")


def test_texts_have_a_limit() -> None:
    assert publication_of({"name": "x" * LONGEST}, "facts").name == "x" * LONGEST
    with pytest.raises(sf.UsageError, match=r"has 10,001 characters"):
        publication_of({"sources": ["x" * (LONGEST + 1)]}, "facts")
    with pytest.raises(sf.UsageError, match="it is no text"):
        Publication(name=3)  # type: ignore[arg-type]


def test_notes_are_for_fields_that_are_filled_without_one() -> None:
    assert {"post_processing", "mechanisms"} < set(get_args(Note))
    assert set(get_args(Note)).isdisjoint(Publication.__struct_fields__)
    assert listed(("a", "b")) == listed(["a", "b"]) == ("a", "b")
