"""Limits by cell hold on the groups of means, sums and variances, whatever else is counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from audit.subjects.aggregates import LIMITED, WIDE, limited
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.subjects.subject import claimed
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Limits
from sfumato.questions.aggregates.question import LIMITS_PROOF
from sfumato.questions.aggregates.values import Basis
from sfumato.testing import deterministic

QUESTIONS = [
    sf.Mean("x", by="ward"),
    sf.Variance("x", by="ward"),
    sf.Mean("x", by="ward", clip="auto"),
    sf.Sum("x", by="ward", clip="auto"),
]
ONCE = LIMITED[1]
RELATIONS: tuple[sf.privacy.unit.Neighbours, ...] = ("add-remove", "replace")


def share_of_claim(question: sf.Question, unit: sf.Unit, people: object, cost: object) -> float:
    subject = limited(question, unit, people, cost)
    return share_found(subject.mechanism, subject.pairs, cost)


def share_found(mechanism: object, pairs: object, cost: CentralMeasure) -> float:
    loss_of = renyi_loss if isinstance(cost, ZCDP) else pure_loss
    return loss_of(mechanism, pairs).loss / claimed(cost)


def cases() -> Iterator[object]:
    """Each question within each limit, under each relation and at each cost.

    Clips that are found take seconds: within one limit in all ways, for means within the others in
    one way for each relation, and in the long tests in all.
    """
    costs = (sf.PureDP("1"), sf.ZCDP("0.5"))
    for question, limit, relation, cost in product(QUESTIONS, LIMITED, RELATIONS, costs):
        is_quick = question.clip is None or limit is LIMITED[-1]
        in_turn = (relation == "replace") == isinstance(cost, sf.ZCDP)
        is_deep = not is_quick and (isinstance(question, sf.Sum) or not in_turn)
        name = f"{question.title}, {question.clip}-{limit[1].in_words()}-{relation}-{cost}"
        marks = [pytest.mark.deep] if is_deep else []
        yield pytest.param(question, limit, relation, cost, id=name, marks=marks)


@pytest.mark.parametrize(("question", "limit", "relation", "cost"), list(cases()))
def test_the_claim_is_spent_and_no_more(
    question: sf.Question, limit: tuple, relation: sf.privacy.unit.Neighbours, cost: CentralMeasure
) -> None:
    rows, limits, people = limit
    unit = sf.Unit(rows, relation, "rider", limits)
    assert 0.99 <= share_of_claim(question, unit, people, cost) <= 1 + 1e-9


def test_limits_on_parts_of_a_group_would_not_be_enough() -> None:
    """The audit notices it: a person would count twice in a group, on both sides of a knot."""
    rows, limits, people = ONCE
    unit = sf.Unit(rows, "add-remove", "rider", limits)
    cost = sf.ZCDP("0.5")
    question = sf.Mean("x", by="ward", clip="auto")
    needs = question.needs_at(WIDE, unit, cost)
    assert needs.cells is not None
    assert needs.cells.names == ("ward",)
    on_segments = msgspec.structs.replace(needs, cells=None)
    subject = limited(question, unit, people, cost, on_segments)
    assert share_found(subject.mechanism, subject.pairs, cost) > 1.2


@pytest.mark.parametrize("name", ["pair", "quadratic", "hats"])
def test_sums_of_a_group_are_no_longer_than_m_times_its_rows(name: str) -> None:
    """All choices of three values: L1 is M times the rows, L2 at most that, and attained."""
    basis = Basis(name, 6)
    functions = basis.functions(np.arange(7))
    added = np.array([functions[list(rows)].sum(axis=0) for rows in product(range(7), repeat=3)])
    assert (np.abs(added).sum(axis=1) == 3 * basis.unity).all()
    squared = (added**2).sum(axis=1)
    assert squared.max() == (3 * basis.unity) ** 2


@pytest.mark.parametrize("relation", RELATIONS)
def test_in_few_groups_the_noise_is_that_of_what_fits_into_them(
    relation: sf.privacy.unit.Neighbours,
) -> None:
    """All rows are one group here: of twelve rows two are counted."""
    unit = sf.Unit(12, relation, "rider", Limits(rows_per_cell=2))
    high = ((0.0, 8.0), (1.0, 8.0), (2.0, 8.0))
    low = tuple((ward, 0.0) for ward, _ in high)
    for cost in (sf.PureDP("1"), sf.ZCDP("0.5")):
        preview = sf.Sum("x").preview(WIDE, unit, cost)
        assert preview.unit.rows_per_person == 2
        assert 0.99 <= share_of_claim(sf.Sum("x"), unit, (high, low), cost) <= 1 + 1e-9


RIDES = pa.table(
    {
        "rider": np.repeat(np.arange(300), 10),
        "line": np.tile(np.arange(10) % 3, 300).astype(float),
        "fare": np.tile(np.arange(10.0), 300),
    }
)
LINES = sf.Domain(line=sf.Interval(0, 3, step=1), fare=sf.Interval(0, 20))


def test_a_mean_under_a_norm_gets_the_noise_of_the_norm() -> None:
    source = sf.source(RIDES, LINES, person="rider", norm_per_person=4, name="rides")
    publisher = sf.Publisher(source, budget=sf.ZCDP(10**6))
    release = publisher.release(sf.Mean("fare", by="line"), rho="0.5")
    assert release.law.sigma_squared == (4 * release.basis.unity) ** 2
    assert release.guarantee.proof == LIMITS_PROOF
    assert "counts cut to a norm of 4" in release.guarantee.sentence()
    assert release.about == "the rows counted (of each person, counts cut to a norm of 4)"
    preview = publisher.preview(sf.Mean("fare", by="line"), rho="0.5", rows=2000)
    assert preview.law == release.law
    by_rows = sf.preview(
        sf.Mean("fare", by="line"),
        domain=LINES,
        unit=sf.Unit(16, person="rider"),
        rho="0.5",
        rows=2000,
    )
    assert preview.accuracy() < by_rows.accuracy() / 3


@pytest.mark.parametrize("clip", [None, "auto"])
@pytest.mark.parametrize("by", [None, "line"])
def test_each_person_is_counted_once_in_a_group(clip: str | None, by: str | None) -> None:
    source = sf.source(
        RIDES, LINES, person="rider", rows_per_cell=1, cells_per_person=3, name="rides"
    )
    publisher = sf.Publisher(source, budget=10**7)
    release = publisher.release(sf.Sum("fare", by=by, clip=clip), epsilon=10**6)
    assert np.rint(release.counts).tolist() == ([300] * 3 if by else 300)
    assert np.isnan(release.values).sum() == 0


def test_keys_are_selected_and_summed_under_limits_by_cell() -> None:
    domain = sf.Domain(line=sf.Keys(), fare=sf.Interval(0, 20))
    table = RIDES.set_column(1, "line", pa.array([f"line {i % 3}" for i in range(3000)]))
    source = sf.source(
        table, domain, person="rider", rows_per_cell=1, cells_per_person=3, name="rides"
    )
    publisher = sf.Publisher(source, budget=sf.ApproxDP(10**6, "1e-3"))
    for clip in (None, "auto"):
        question = sf.Mean("fare", by="line", clip=clip)
        with deterministic(2):
            release = publisher.release(question, epsilon=200, delta="1e-6")
        assert np.rint(release.counts).tolist() == [300] * 3


def test_an_epsilon_is_chosen_and_a_plan_is_answered_under_limits(tmp_path: Path) -> None:
    limits = Limits(rows_per_cell=1, cells_per_person=3)
    found = sf.window(
        sf.Mean("fare", by="line"),
        domain=LINES,
        unit=sf.Unit(3, person="rider", limits=limits),
        accuracy=sf.Within(1),
        risk=sf.Risk(prior=0.01, posterior=0.5),
        rows=900,
    )
    assert found.feasible
    source = sf.source(
        RIDES, LINES, person="rider", rows_per_cell=1, cells_per_person=3, name="rides"
    )
    publisher = sf.Publisher(source, budget=10)
    plan = sf.Plan([sf.Histogram("line"), sf.Mean("fare", by="line", clip="auto")])
    counts, mean = publisher.release(plan, epsilon="5")
    assert mean.guarantee.unit == counts.guarantee.unit == source.unit
    assert publisher.check(sf.Mean("fare", by="line", clip="auto")).questions[0].counted == 900
    assert sf.load(mean.save(tmp_path / "mean.json")) == mean
