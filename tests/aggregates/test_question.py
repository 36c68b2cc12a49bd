"""Means, sums and variances as they are asked: axes, groups, clips, rounding, limits, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.aggregates.sums import LARGEST_SUM
from sfumato.aggregates.values import COARSE_STEPS, nearest_steps
from sfumato.answers.codec import from_bytes, to_bytes
from sfumato.cube import Cube
from sfumato.testing import deterministic

DOMAIN = sf.Domain(
    ward=sf.Categories(["A", "B", "C"]),
    age=sf.Interval(0, 121, step=1),
    wage=sf.Interval(-50, 150),
    day=sf.Interval("2026-01-01", "2026-02-01"),
    shop=sf.Keys(),
)
ROWS = 3000
AT = np.arange(ROWS)
TABLE = pa.table(
    {
        "ward": ["ABB"[i % 3] for i in range(ROWS)],
        "age": (AT * 7 % 100).astype(float),
        "wage": np.sin(AT) * 60 + 20,
        "day": np.datetime64("2026-01-01") + AT % 31,
        "shop": [f"s{i % 5}" for i in range(ROWS)],
    }
)
GROUPS = np.array(["ABB"[i % 3] for i in range(ROWS)])
LARGE = "10000"


@pytest.fixture
def publisher() -> sf.Publisher:
    source = sf.source(TABLE, DOMAIN, name="wards")
    return sf.Publisher(source, budget=10**7)


def truth(column: str, statistic: str) -> list[float]:
    """The statistic of the two wards that have rows."""
    values = np.asarray(TABLE[column])
    of = {"mean": np.mean, "sum": np.sum, "variance": np.var}[statistic]
    return [float(of(values[ward == GROUPS])) for ward in "AB"]


@pytest.mark.parametrize("column", ["age", "wage"])
@pytest.mark.parametrize("kind", [sf.Mean, sf.Sum, sf.Variance])
def test_with_little_noise_each_group_has_its_statistic(
    kind: type, column: str, publisher: sf.Publisher
) -> None:
    with deterministic(1):
        release = publisher.release(kind(column, by="ward"), epsilon=LARGE)
    low, high = release.interval("0.999", True)
    expected = truth(column, release.noun)
    assert ((low[:2] <= expected) & (expected <= high[:2])).all()
    assert release.values[:2] == pytest.approx(expected, rel=2e-3)
    assert np.rint(release.counts).tolist() == [1000, 2000, 0]
    assert release.accuracy()[:2].max() < 0.05 * abs(np.array(expected)).max()


def test_a_group_of_nobody_is_not_known(publisher: sf.Publisher) -> None:
    with deterministic(2):
        release = publisher.release(sf.Mean("age", by="ward"), epsilon="1")
    assert np.isnan(release.values).tolist() == [False, False, True]
    assert release.to_frame()["mean"].to_pylist()[2] is None
    assert release.to_frame()["known"].to_pylist() == [True, True, False]
    known, low, high = release.drawn()
    assert known.tolist() == [True, True, False]
    assert (low[2], high[2]) == (0, 120)


def test_those_that_are_shown_pay_for_those_that_are_not(publisher: sf.Publisher) -> None:
    with deterministic(2):
        release = publisher.release(sf.Mean("age", by="ward"), epsilon="1")
    low, high = release.interval()
    _, shown_low, shown_high = release.drawn()
    assert (shown_high - shown_low)[:2].min() > (high - low)[:2].max() * 0.5
    assert ((shown_low <= low) & (high <= shown_high)).all()


def test_all_rows_are_one_group(publisher: sf.Publisher) -> None:
    with deterministic(3):
        release = publisher.release(sf.Mean("age"), epsilon=LARGE)
    assert release.values.shape == ()
    assert float(release.values) == pytest.approx(
        float(np.mean(np.asarray(TABLE["age"]))), abs=0.01
    )
    assert release.group_names == ["all rows"]
    assert release.title == "Mean of age"


def test_groups_of_two_axes_and_of_bins(publisher: sf.Publisher) -> None:
    with deterministic(3):
        release = publisher.release(sf.Mean("wage", by=["ward", "day"]), epsilon=LARGE)
    assert release.values.shape == (3, 31)
    assert len(release.group_names) == 93
    assert release.to_frame().num_rows == 93
    ages = publisher.release(sf.Sum("wage", by="age"), epsilon="1")
    assert ages.values.shape == (121,)


def test_mean_sum_and_count_agree(publisher: sf.Publisher) -> None:
    release = publisher.release(sf.Variance("wage", by="ward"), epsilon="50")
    assert (release.means * release.counts)[:2] == pytest.approx(release.sums[:2])
    pair = publisher.release(sf.Mean("wage", by="ward"), epsilon="50")
    with pytest.raises(sf.UsageError, match=r"Ask for sf\.Variance"):
        _ = pair.variances


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
    assert (steps.scale.points, steps.scale.upper, steps.scale.rounding) == (120, 120, 0)
    other = publisher.release(sf.Mean("wage"), epsilon="1")
    assert (other.scale.points, other.scale.upper) == (COARSE_STEPS, 150)
    assert other.scale.rounding == 200 / COARSE_STEPS / 2


def test_where_noise_would_be_too_large_values_are_rounded_more(publisher: sf.Publisher) -> None:
    release = publisher.release(sf.Variance("wage"), epsilon="0.00001")
    assert 1 <= release.scale.points < COARSE_STEPS
    assert release.scale.rounded
    assert float(release.law.scale) <= 2**48
    many = sf.source(TABLE, DOMAIN, rows_per_person=400, name="wards")
    finest = sf.Publisher(many, budget=1).release(sf.Variance("age"), epsilon="0.00000001")
    assert finest.scale.rounded
    assert finest.scale.points < 120


def test_a_release_travels(publisher: sf.Publisher, tmp_path: Path) -> None:
    for question in (
        sf.Mean("wage", by="ward"),
        sf.Sum("age"),
        sf.Variance("age", by="ward", clip=90),
    ):
        assert from_bytes(to_bytes(question), type(question)) == question
        release = publisher.release(question, epsilon="1")
        again = sf.load(release.save(tmp_path / "r.json"))
        assert again == release
        assert np.array_equal(again.values, release.values, equal_nan=True)
        assert publisher.release(question, epsilon="1").replayed


def test_a_sum_of_more_than_2_to_the_62_is_cut_and_nothing_raises() -> None:
    question = sf.Variance("wage")
    lattice = question.needs(DOMAIN).lattice
    counts = np.zeros(lattice.size, np.int64)
    counts[-1] = 2**40
    with deterministic(5):
        release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP(1), _bits())
    assert abs(int(release.released[2]) - LARGEST_SUM) < 2**40
    counts[-1] = LARGEST_SUM // (COARSE_STEPS**2) - 1
    release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP(1), _bits())
    assert float(release.values) == pytest.approx(0, abs=1e-3)
    assert float(release.means) == pytest.approx(150)


def _bits() -> object:
    from sfumato.random.bits import current

    return current()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sf.Mean("ward"), "cannot be added up"),
        (lambda: sf.Mean("shop"), "cannot be added up"),
        (lambda: sf.Mean("day"), "dates or times"),
        (lambda: sf.Mean("nothing"), "no axis of that name"),
        (lambda: sf.Mean("age", by="age"), "constant in its own groups"),
        (lambda: sf.Mean("age", by="shop"), "not known beforehand"),
        (lambda: sf.Mean(3), "the name of one axis"),
        (lambda: sf.Mean("wage", clip=float("nan")), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=(0, float("inf"))), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip="5"), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=(1, 2, 3)), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=True), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=200), "within the bounds"),
        (lambda: sf.Mean("wage", clip=(10, 10)), "within the bounds"),
        (lambda: sf.Mean("age", clip=121), "within the bounds"),
        (lambda: sf.Mean("wage", clip=(-60, 0)), "within the bounds"),
        (lambda: sf.Mean("one"), "only one value"),
        (lambda: sf.Mean("age", by=["many", "more"]), "cells"),
    ],
)
def test_what_makes_no_sense_is_refused_in_three_parts(make: object, said: str) -> None:
    domain = sf.Domain(
        dict(DOMAIN.items())
        | {
            "one": sf.Interval(0, 1, step=1),
            "many": sf.Interval(0, 10**5, step=1),
            "more": sf.Interval(0, 10**4, step=1),
        }
    )
    with pytest.raises(sf.UsageError, match=said) as refused:
        sf.preview(make(), domain=domain, unit=sf.Unit(), epsilon="1")
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


def test_a_preview_says_what_the_release_will_state(publisher: sf.Publisher) -> None:
    question = sf.Mean("age", by="ward")
    preview = publisher.preview(question, epsilon="1", rows=ROWS)
    release = publisher.release(question, epsilon="1")
    assert 0.3 * preview.accuracy() < release.accuracy()[0] < 3 * preview.accuracy()
    with pytest.raises(sf.UsageError, match="rows="):
        publisher.preview(question, epsilon="1").accuracy()
    total = publisher.preview(sf.Sum("age", by="ward"), epsilon="1")
    found = publisher.release(sf.Sum("age", by="ward"), epsilon="1")
    assert total.accuracy() == pytest.approx(found.accuracy()[0])


def test_an_epsilon_can_be_chosen_for_a_mean() -> None:
    found = sf.window(
        sf.Mean("age", by="ward"),
        domain=DOMAIN,
        unit=sf.Unit(),
        accuracy=sf.Within(1),
        risk=sf.Risk(prior=0.01, posterior=0.05),
        rows=ROWS,
    )
    assert found.feasible
    preview = sf.preview(
        sf.Mean("age", by="ward"), domain=DOMAIN, unit=sf.Unit(), epsilon=found.floor, rows=ROWS
    )
    assert preview.accuracy() <= 1


def test_a_value_between_two_steps_counts_as_the_lower_one_and_the_answer_says_so() -> None:
    halves = sf.source(np.full((200, 1), 7.5), sf.Domain(x=sf.Interval(0, 11, step=1)), name="h")
    with sf.Publisher(halves, budget=10**6) as publisher:
        preview = publisher.preview(sf.Mean("x"), epsilon=LARGE, rows=200)
        release = publisher.release(sf.Mean("x"), epsilon=LARGE)
    assert float(release.values) == pytest.approx(7, abs=0.01)
    assert release.about == "the rows counted, each value cut to its step of 1"
    assert "each value cut to its step of 1" in str(preview)
    assert publisher_of_wages().release(sf.Mean("wage"), epsilon=1).about == "the rows counted"


def publisher_of_wages() -> sf.Publisher:
    return sf.Publisher(sf.source(TABLE, DOMAIN, name="wards"), budget=10)


def test_the_preview_of_a_sum_of_rounded_values_wants_the_number_of_rows() -> None:
    publisher = publisher_of_wages()
    with pytest.raises(sf.UsageError, match="rows="):
        publisher.preview(sf.Sum("wage"), epsilon=1).accuracy()
    assert "state rows=" in str(publisher.preview(sf.Sum("wage"), epsilon=1))
    stated = publisher.preview(sf.Sum("wage"), epsilon=1, rows=ROWS).accuracy()
    assert stated >= publisher.release(sf.Sum("wage"), epsilon=1).accuracy() * 0.99


@pytest.mark.parametrize("kind", [sf.Mean, sf.Variance])
def test_what_a_table_calls_known_has_an_interval_that_says_something(kind: type) -> None:
    rng = np.random.default_rng(3)
    table = np.stack([rng.integers(0, 500, 3000), rng.random(3000) * 10], axis=1).astype(float)
    domain = sf.Domain(g=sf.Interval(0, 500, step=1), x=sf.Interval(0, 10))
    with deterministic(6), sf.Publisher(sf.source(table, domain, name="g"), budget=10) as publisher:
        release = publisher.release(kind("x", by="g"), epsilon=2 if kind is sf.Mean else 8)
    known, low, high = release.drawn()
    most = 10 if kind is sf.Mean else 25
    assert 0 < known.sum() < 500
    assert ((low > 0) | (high < most))[known].all()
    assert not (np.isnan(release.values) & known).any()


@pytest.mark.parametrize("epsilon", ["1", "0.0001", "0.000001", "0.00000001"])
def test_no_value_lies_further_from_its_lattice_value_than_the_release_says(epsilon: str) -> None:
    question = sf.Variance("wage")
    lattice = question.needs(DOMAIN).lattice
    (axis,) = lattice.axes
    preview = sf.preview(question, domain=DOMAIN, unit=sf.Unit(), epsilon=epsilon, rows=9)
    values = np.random.default_rng(1).uniform(-50, 150, 20_000)
    steps = nearest_steps(axis, preview.basis.points)[axis.locate(values)]
    scale = preview.scale
    apart = np.abs(scale.lower + steps * scale.width / scale.points - values)
    assert scale.rounded
    assert apart.max() <= scale.rounding * (1 + 1e-9)
    assert apart.max() > scale.rounding * 0.99
