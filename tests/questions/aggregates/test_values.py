"""The values that are added up: clips, steps and rounding."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, LARGE, ROWS, TABLE, publisher_of_wages
from sfumato.questions.aggregates.values import MOST_STEPS
from sfumato.testing import deterministic


def test_a_clip_narrows_the_bounds(publisher: sf.Publisher) -> None:
    with deterministic(4):
        upper = publisher.release(sf.Mean("age", clip=50), epsilon=LARGE)
        both = publisher.release(sf.Mean("wage", clip=(0, 40)), epsilon=LARGE)
    clipped = np.clip(np.asarray(TABLE["age"]), 0, 50).mean()
    assert (upper.scale.lower, upper.scale.upper) == (0, 50)
    assert float(upper.values) == pytest.approx(clipped, abs=0.01)
    assert float(both.values) == pytest.approx(
        np.clip(np.asarray(TABLE["wage"]), 0, 40).mean(), abs=0.01
    )
    narrow = publisher.preview(sf.Mean("wage", clip=(0, 40)), epsilon="1", rows=ROWS)
    wide = publisher.preview(sf.Mean("wage"), epsilon="1", rows=ROWS)
    assert narrow.accuracy() < wide.accuracy() / 4


def test_steps_are_not_rounded_and_other_values_say_how_much(publisher: sf.Publisher) -> None:
    steps = publisher.release(sf.Mean("age"), epsilon="1")
    assert (steps.scale.points, steps.scale.upper, steps.scale.rounding) == (121, 121, 0)
    other = publisher.release(sf.Mean("wage"), epsilon="1")
    assert (other.scale.points, other.scale.upper) == (MOST_STEPS, 150)
    assert other.scale.rounding == 200 / MOST_STEPS / 2


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (sf.Mean("x"), (7, 7, 8, 0, 11, 11)),
        (sf.Mean("x", per="person"), (7, 7, 8, 0, 11, 11)),
        (sf.Mean("x", clip="auto"), (7, 7, 8, 0, 11, 11)),
        (sf.Mean("x", clip=10), (7, 7, 8, 0, 10, 10)),
        (sf.Sum("x", per="person", clip=(0, 11)), (7, 7, 8, 0, 11, 11)),
        (sf.Variance("x"), (7, 7, 8, 0, 11, 11)),
    ],
    ids=str,
)
def test_a_value_counts_as_the_nearest_step_both_bounds_included(
    question: sf.Mean | sf.Sum | sf.Variance, expected: tuple[int, ...]
) -> None:
    given = (7.0, 7.49, 7.5, -3.0, 10.9, 11.0)
    domain = sf.Domain(x=sf.Interval(0, 11, step=1), g=sf.Categories(list(range(6))))
    table = pa.table({"x": given * 200, "g": list(range(6)) * 200, "id": range(1200)})
    question = msgspec.structs.replace(question, by="g")
    source = sf.source(table, domain, person="id", name="h")
    with sf.Publisher(source, budget=10**7) as publisher:
        preview = publisher.preview(question, epsilon=LARGE, rows=1200)
        release = publisher.release(question, epsilon=LARGE)
    assert release.means.tolist() == pytest.approx(expected, abs=0.02)
    said = "each value rounded to the nearest step of 1"
    assert said in release.about
    assert said in str(preview)


def test_values_without_a_step_are_not_said_to_be_rounded() -> None:
    assert publisher_of_wages().release(sf.Mean("wage"), epsilon=1).about == "the rows counted"


def test_a_clip_between_two_steps_leaves_values_as_they_are() -> None:
    source = sf.source(np.full((200, 1), 7.0), sf.Domain(x=sf.Interval(0, 11, step=1)), name="h")
    with sf.Publisher(source, budget=10**6) as publisher:
        release = publisher.release(sf.Mean("x", clip=(0.5, 10.25)), epsilon=LARGE)
    assert float(release.values) == pytest.approx(7, abs=0.01)
    assert release.about == "the rows counted"


def test_one_step_has_the_values_of_both_its_ends() -> None:
    source = sf.source(np.repeat([[0.0], [1]], 50, 0), sf.Domain(x=sf.Interval(0, 1, step=1)))
    with sf.Publisher(source, budget=10**6) as publisher:
        release = publisher.release(sf.Variance("x"), epsilon=LARGE)
    assert float(release.values) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("epsilon", ["1", "0.0001", "0.000001", "0.00000001"])
def test_no_value_lies_further_from_its_lattice_value_than_the_release_says(epsilon: str) -> None:
    question = sf.Variance("wage")
    cost = sf.PureDP(epsilon)
    (summed,) = question.needs_at(DOMAIN, sf.Unit(), cost).sums
    preview = sf.preview(question, domain=DOMAIN, unit=sf.Unit(), epsilon=epsilon, rows=9)
    values = np.random.default_rng(1).uniform(-50, 150, 20_000)
    steps = summed.axis.locate(values.copy())
    scale = preview.scale
    apart = np.abs(scale.lower + steps * scale.width / scale.points - values)
    assert scale.rounded
    assert apart.max() <= scale.rounding * (1 + 1e-9)
    assert apart.max() > scale.rounding * 0.99


def test_a_missing_value_is_counted_at_what_stands_in_for_it_within_the_clip() -> None:
    rows = np.array([[np.nan], [4.0]])
    domain = sf.Domain(x=sf.Interval(0, 100, missing=90))
    with deterministic(3), sf.Publisher(sf.source(rows, domain, name="m"), budget=10**6) as pub:
        release = pub.release(sf.Sum("x", clip=10), epsilon=LARGE)
    assert float(release.counts) == pytest.approx(2, abs=0.01)
    assert float(release.values) == pytest.approx(14, abs=0.1)


@pytest.mark.parametrize("step", [None, 1, 1e-6])
@pytest.mark.parametrize(
    "question",
    [
        sf.Mean("cost", by="ward"),
        sf.Mean("cost", clip="auto"),
        sf.Mean("cost", clip="auto", per="person"),
        sf.Mean("cost", clip=5, per="person"),
        sf.Sum("cost", clip=5),
        sf.Variance("cost"),
        sf.Variance("cost", clip=(1, 5), per="person"),
    ],
)
def test_a_value_is_read_from_the_column_that_its_axis_names(
    question: sf.Mean | sf.Sum | sf.Variance, step: float | None
) -> None:
    answers = []
    for column in ("cost", "Cost (EUR)"):
        table = pa.table({column: [1.0, 2, 30] * 9, "ward": ["a", "b", "a"] * 9, "id": range(27)})
        domain = sf.Domain(
            ward=sf.Categories(["a", "b"]), cost=sf.Interval(0, 10, step=step, column=column)
        )
        source = sf.source(table, domain, person="id", name="costs")
        with deterministic(5), sf.Publisher(source, budget=10) as publisher:
            answers.append(publisher.release(question, epsilon="9").to_frame())
    assert answers[0] == answers[1]
