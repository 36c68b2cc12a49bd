"""Whatever is written as TOML is read back as it was, and prints nothing that steers a terminal.

So is every plan: of drawn tables, of the examples of all questions, and those in ``examples``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.answers import AnyQuestion
from sfumato.answers.registry import questions
from sfumato.basics import from_plain
from sfumato.errors import UsageError, printable
from sfumato.publishing.plan_file import (
    PlanFile,
    read_plan,
    toml_key,
    toml_text,
    toml_value,
    written_plan,
)

TEXTS = st.text()
"""Of all characters but lone surrogates."""
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(TEXTS)
def test_every_text_is_read_back(text: str) -> None:
    written = f"{toml_key(text)} = {toml_text(text)}"
    assert tomllib.loads(written) == {text: text}
    assert printable(written) == written


@given(VALUES)
def test_every_value_is_read_back_with_its_type(value: object) -> None:
    found = tomllib.loads(f"value = {toml_value(value)}")["value"]
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Größe", '"Größe"'),
        ("a\U0001f600", '"a\U0001f600"'),
        ("a\x7fb\n", '"a\\u007fb\\u000a"'),
        ('C:\\"x"', '"C:\\\\\\"x\\""'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_only_what_is_read_otherwise_or_hides_is_escaped(text: str, written: str) -> None:
    assert toml_text(text) == written


def test_half_a_character_is_refused() -> None:
    with pytest.raises(UsageError, match="half a character"):
        toml_text("caf\udce9")


ROOT = Path(__file__).parents[2]
DRAWN = st.fixed_dictionaries
NUMBERS = st.sampled_from([1, 2.5, "0.1", "1e-6"])
WITHIN = st.fixed_dictionaries({"half_width": NUMBERS}, optional={"simultaneous": st.booleans()})
WISHES = {"accuracy": NUMBERS | WITHIN, "weight": NUMBERS}
SOURCES = DRAWN(
    {"path": TEXTS.map(lambda text: f"/{text}")},
    optional={
        "person": st.just("who") | st.just(["who", "day"]),
        "rows_per_person": st.integers(1, 99),
        "neighbours": st.sampled_from(["add-remove", "replace"]),
        "name": TEXTS,
        "version": TEXTS | st.integers(0, 9),
        "where": st.just({"kind": ["a", "b"], "age": [1, 2.5]}),
        "separator": st.just(";"),
        "date_format": st.just({"day": "%d.%m.%Y"}) | st.just("%Y"),
        "header_row": st.integers(1, 5),
    },
)
AXES = st.sampled_from(
    [
        {"type": "interval", "lower": 0, "upper": 10},
        {"type": "interval", "lower": "2026-01-01", "upper": "2026-02-01", "step": 1},
        {"type": "categories", "labels": [False, True]},
        {"type": "categories", "labels": ['a "b"', "\U0001f600"]},
        {"type": "keys"},
        {"type": "month", "column": "day", "first": "2025-01", "last": "2025-12"},
    ]
)
BUDGETS = DRAWN(
    {"account": TEXTS},
    optional={"epsilon": NUMBERS, "delta": st.just("1e-9"), "ceiling": NUMBERS},
)
RELEASES = DRAWN(
    {"epsilon": NUMBERS},
    optional={
        "delta": st.just("1e-6"),
        "key": TEXTS,
        "minimise": st.sampled_from(["absolute", "squared"]),
        "noise": st.sampled_from(["laplace", "gaussian"]),
        "rows": st.integers(0, 10**6),
        "adds_up": st.booleans(),
        "accuracy": NUMBERS | WITHIN,
        "weights": st.lists(NUMBERS, min_size=2, max_size=2),
    },
)
PUBLICATIONS = DRAWN(
    {}, optional={"name": st.just("visits"), "notes": st.just({"composition": "One account."})}
)
EXAMPLES = [question for kind in questions() for question in kind.examples]


def read_again(spec: PlanFile, folder: Path) -> PlanFile:
    path = folder / "plan.toml"
    path.write_text(written_plan(spec), encoding="utf-8", newline="\n")
    return read_plan(path)


def plan_of(release: dict[str, object], asked: Sequence[AnyQuestion]) -> PlanFile:
    spec = {
        "source": {"path": "/rows.csv"},
        "domain": {"x": {"type": "interval", "lower": 0, "upper": 10}},
        "budget": {"account": "a", "epsilon": "1"},
        "release": release,
        "questions": [],
    }
    return msgspec.structs.replace(from_plain(spec, PlanFile), questions=tuple(asked))


@given(
    source=SOURCES,
    domain=st.dictionaries(TEXTS.filter(bool), AXES, min_size=1),
    budget=BUDGETS,
    release=RELEASES,
    publication=st.none() | PUBLICATIONS,
)
def test_a_plan_is_read_back_as_it_was_written(
    source, domain, budget, release, publication
) -> None:
    plain = {
        "source": source,
        "domain": domain,
        "budget": budget,
        "release": release,
        "questions": [{"type": "histogram", "axes": "x", "bins": 3}] * 2,
        "publication": publication,
    }
    spec = from_plain(plain, PlanFile)
    found = from_plain(tomllib.loads(written_plan(spec)), PlanFile)
    assert found == spec
    assert list(found.domain) == list(spec.domain)


@pytest.mark.parametrize("question", EXAMPLES, ids=lambda question: question.title)
def test_the_examples_of_every_question_are_read_back(question, tmp_path: Path) -> None:
    spec = plan_of({"epsilon": "1"}, [question, question])
    assert read_again(spec, tmp_path).questions == (question, question)


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.toml")), ids=lambda path: path.stem)
def test_the_plans_of_the_examples_are_read_back(path: Path, tmp_path: Path) -> None:
    spec = read_plan(path)
    assert read_again(spec, tmp_path) == spec
    assert read_again(spec, tmp_path).plan() == spec.plan()


@pytest.mark.parametrize("field", ["accuracy", "weights"])
def test_what_is_asked_of_some_questions_stands_in_their_tables(field: str, tmp_path: Path) -> None:
    two = [sf.Histogram("x"), sf.Histogram("x", bins=5)]
    spec = plan_of({"epsilon": "1", field: [None, 7]}, two)
    assert read_again(spec, tmp_path) == spec


def test_what_no_file_can_say_is_refused() -> None:
    tables = sf.Tables([["x"], ["y"]], accuracy=[20, 20])
    spec = plan_of({"epsilon": "1", "accuracy": [None, 7]}, [sf.Histogram("x"), tables])
    with pytest.raises(UsageError, match="a question states accuracy of its own"):
        written_plan(spec)
    with pytest.raises(UsageError, match="TOML has no word for it"):
        toml_value([1, None])
