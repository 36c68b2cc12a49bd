"""The histograms of a plan that adds up are one family; what cannot be one is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.privacy.unit import limits_of, unit_within
from sfumato.publishing.plan_file import read_plan
from sfumato.questions.histogram import Histogram

DOMAIN = sf.Domain(
    kind=sf.Categories(["a", "b"]),
    age=sf.Interval(0, 100),
    sex=sf.Categories(["f", "m"]),
    shop=sf.Keys(),
)
AGES = Histogram(["kind", "age"], bins=4)
SEXES = Histogram(["kind", "sex"])


def settled(*questions, **options):
    return sf.Plan(questions, adds_up=True, **options).settled(DOMAIN)


def publisher(rho="1"):
    rng = np.random.default_rng(4)
    columns = {
        "kind": np.array(["a", "b"])[rng.integers(0, 2, 200)],
        "age": rng.uniform(0, 100, 200),
        "sex": np.array(["f", "m", None])[rng.integers(0, 3, 200)],
        "shop": np.array(["x"] * 200),
    }
    source = sf.source(pa.table(columns), DOMAIN, name="people")
    return sf.Publisher(source, budget=sf.ZCDP(rho))


def test_the_histograms_are_one_question_in_place_of_the_first():
    mean = sf.Mean("age")
    plan = settled(mean, AGES, SEXES)
    assert list(plan.questions) == [
        mean,
        sf.Tables([["kind", "age"], ["kind", "sex"]], bins={"age": 4}),
    ]
    # It is settled: a second time changes nothing.
    assert plan.settled(DOMAIN) is plan


def test_one_charge_answers_them_and_they_agree():
    with sf.testing.deterministic(3):
        pub = publisher()
        plan = sf.Plan([AGES, SEXES], adds_up=True)
        (release,) = pub.release(plan, rho="0.5")
    assert isinstance(release, sf.TablesRelease)
    by_age = release["kind", "age"].values.sum(axis=1)
    assert np.allclose(by_age, release["kind", "sex"].values.sum(axis=1))
    assert str(release.cost) == "rho = 0.5"
    # The same family, asked as a question, is the same answer.
    with sf.testing.deterministic(3):
        again = pub.release(sf.Tables([["kind", "age"], ["kind", "sex"]], bins=4), rho="0.5")
    assert again.replayed
    assert np.array_equal(again.values, release.values)


def test_the_preview_shows_the_family():
    plan = sf.Plan([AGES, SEXES], adds_up=True)
    (preview,) = sf.preview(plan, domain=DOMAIN, unit=sf.Unit(), rho="0.5")
    assert preview.names == ("kind x age", "kind x sex")
    assert preview.cells == 12


def test_shares_are_added_and_weights_are_those_of_tables():
    mean = sf.Mean("age")
    assert settled(AGES, mean, SEXES, shares=[1, 5, 2]).shares == (3, 5)
    weighed = settled(AGES, mean, SEXES, weights=[1, 5, 3])
    assert weighed.questions[0].weights == (1, 3)
    assert list(weighed.weighed) == [2, 5]
    assert settled(AGES, SEXES, weights=[2, 2]).questions[0].weights is None


def test_one_accuracy_is_that_of_all_tables():
    plan = sf.Plan([AGES, SEXES], adds_up=True, accuracy=20)
    previews = sf.preview(plan, domain=DOMAIN, unit=sf.Unit())
    assert previews[0].accuracy() <= 20
    with pytest.raises(sf.UsageError, match="an accuracy for some histograms"):
        settled(AGES, SEXES, accuracy=[20, None])


def test_bins_and_widths_go_by_axis():
    plan = settled(AGES, Histogram(["sex", "age"], bins={"age": 4}), Histogram(["sex", "kind"]))
    assert plan.questions[0].bins == {"age": 4}
    plan = settled(Histogram("age", width=25), Histogram(["age", "sex"], width={"age": 25}))
    assert plan.questions[0].width == {"age": 25}


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([AGES], "it has 1 histogram, and"),
        ([sf.Mean("age")], "it has 0 histograms, and"),
        ([AGES, Histogram("age", records=10)], "with records"),
        ([AGES, Histogram("kind", count="persons")], "with count"),
        ([AGES, Histogram("age", workload="ranges")], "with workload"),
        ([AGES, Histogram("kind", noise="bounded")], "with noise"),
        ([AGES, Histogram("shop", selection="stability")], "with selection"),
    ],
)
def test_what_no_family_has_is_refused_at_once(questions, said):
    with pytest.raises(sf.UsageError, match=said):
        sf.Plan(questions, adds_up=True)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Histogram(["kind", "shop"]), "which keys of 'shop' there are is not known"),
        (Histogram(["age", "sex"], bins=5), "age has other bins in another histogram"),
        (Histogram("sex"), "has no axis in common"),
        (Histogram(["age", "kind"], bins=4), "it is asked for twice"),
    ],
)
def test_what_does_not_fit_the_family_is_refused_before_the_charge(question, said):
    pub = publisher()
    before = pub.account.remaining
    with pytest.raises(sf.UsageError, match=said):
        pub.release(sf.Plan([AGES, question], adds_up=True), rho="0.5")
    with pytest.raises(sf.UsageError, match=said):
        pub.preview(sf.Plan([AGES, question], adds_up=True), rho="0.5")
    assert pub.account.remaining == before


def test_limits_by_cell_are_refused():
    unit = unit_within(4, "add-remove", "who", limits_of(2, None, None))
    with pytest.raises(sf.UsageError, match="under limits by cell"):
        sf.preview(sf.Plan([AGES, SEXES], adds_up=True), domain=DOMAIN, unit=unit, rho="1")


def test_words_for_people_are_joined():
    one = Histogram(["kind", "age"], heading="Ages", measured_in="years", label_names={"a": "A"})
    two = Histogram(["kind", "sex"], heading="Sexes", label_names={"f": "female"})
    (family,) = settled(one, two).questions
    assert family.heading == "Ages; Sexes"
    assert family.measured_in == {"age": "years"}
    assert family.label_names == {"a": "A", "f": "female"}
    assert settled(one, SEXES).questions[0].captions.heading == ""


def test_no_is_as_if_it_were_not_said():
    plan = sf.Plan([AGES], adds_up=False)
    assert plan == sf.Plan([AGES])
    assert plan.settled(DOMAIN) is plan
    with pytest.raises(sf.UsageError, match="neither true nor false"):
        sf.Plan([AGES, SEXES], adds_up="yes")


def test_a_plan_file_says_it(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        """
        [source]
        path = "people.parquet"
        [domain]
        kind = { type = "categories", labels = ["a", "b"] }
        sex = { type = "categories", labels = ["f", "m"] }
        [budget]
        account = "people"
        [release]
        epsilon = "1"
        adds_up = true
        [[questions]]
        type = "histogram"
        axes = ["kind", "sex"]
        [[questions]]
        type = "histogram"
        axes = "kind"
        """
    )
    spec = read_plan(path)
    (family,) = spec.plan().settled(sf.Domain(spec.domain)).questions
    assert family == sf.Tables([["kind", "sex"], "kind"])
