"""A plan file says how accurate its answers must be, for each question or for all."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.publishing.plan_file import read_plan

PLAN = """
[source]
path = "people.csv"
[domain]
age = { type = "interval", lower = 0, upper = 100, step = 1 }
kind = { type = "categories", labels = ["a", "b"] }
[budget]
account = "people"
epsilon = "2"
[release]
RELEASE
[[questions]]
type = "histogram"
axes = ["age"]
FIRST
[[questions]]
type = "histogram"
axes = ["kind"]
SECOND
"""


def read(folder: Path, release: str = 'epsilon = "1"', first: str = "", second: str = ""):
    path = folder / "plan.toml"
    text = PLAN.replace("RELEASE", release).replace("FIRST", first).replace("SECOND", second)
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_each_question_states_its_accuracy_and_weight(tmp_path: Path) -> None:
    within = "accuracy = { half_width = 20, confidence = 0.9, simultaneous = true }"
    plan = read(tmp_path, first=within, second='weight = "2.5"').plan()
    assert plan.accuracies == (sf.Within(20, 0.9, True), None)
    assert plan.weighed == (1, sf.Plan(plan.questions, weights=["2.5", "2.5"]).weighed[0])
    assert read(tmp_path, second="accuracy = 7").plan().accuracies == (None, sf.Within(7))


def test_the_release_states_them_for_all(tmp_path: Path) -> None:
    plan = read(tmp_path, "accuracy = 30").plan()
    assert plan.accuracies == (sf.Within(30),) * 2
    options = 'epsilon = "1"\nweights = [1, 3]\nminimise = "squared"\nrows = 1000'
    plan = read(tmp_path, options).plan()
    assert (plan.minimise, plan.rows, plan.weighed) == ("squared", 1000, (1, 3))
    assert read(tmp_path, 'epsilon = "1"\ndelta = "1e-6"\nnoise = "gaussian"').plan().noise


def test_a_plan_without_them_is_the_same_as_before(tmp_path: Path) -> None:
    assert read(tmp_path).plan() == sf.Plan([sf.Histogram("age"), sf.Histogram("kind")])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"release": ""}, "neither epsilon nor rho"),
        ({"first": "acuracy = 20"}, "question 1: it has no field 'acuracy'"),
        ({"release": 'epsilon = "1"\naccuracy = 3', "first": "accuracy = 4"}, "states accuracy"),
        ({"first": "accuracy = 0"}, r"\[release\], the accuracy of a plan, half_width = 0"),
        ({"first": "accuracy = [3]"}, "accuracy"),
        ({"first": "accuracy = { half_width = 3, confidense = 0.9 }"}, "confidense"),
        ({"first": "weight = -1"}, "a weight = -1"),
        ({"release": 'epsilon = "1"\nnoise = "gaus"'}, "gaussian"),
        ({"release": 'epsilon = "1"\nshares = [1, 2]\naccuracy = 3'}, "shares and accuracy"),
    ],
)
def test_what_makes_no_sense_names_its_place(tmp_path: Path, words, said: str) -> None:
    with pytest.raises(sf.UsageError, match=said):
        read(tmp_path, **words)
