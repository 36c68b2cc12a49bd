"""Means, sums and variances as they are asked: what they answer, spend and refuse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, GROUPS, LARGE, ROWS, TABLE
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import Mechanism, Rows, neighbours, of_question
from sfumato.audit.subjects.subject import less_noise
from sfumato.privacy.measures import CentralMeasure
from sfumato.testing import deterministic


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


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sf.Mean("ward"), "cannot be added up"),
        (lambda: sf.Mean("shop"), "cannot be added up"),
        (lambda: sf.Mean("day"), "dates or times"),
        (lambda: sf.Mean("nothing"), "no axis of that name"),
        (lambda: sf.Mean("age", by="age"), "constant in its own groups"),
        (lambda: sf.Mean("age", by="shop"), "needs a delta"),
        (lambda: sf.Mean(["age", "age"]), "named twice"),
        (lambda: sf.Mean(["age", ""]), "the name of one axis"),
        (lambda: sf.Mean([]), "the name of one axis"),
        (lambda: sf.Mean(["age", "wage"], by="wage"), "constant in its own groups"),
        (lambda: sf.Mean(["age", "wage"], clip=50), "different scales"),
        (lambda: sf.Mean(3), "the name of one axis"),
        (lambda: sf.Mean("wage", clip=float("nan")), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=(0, float("inf"))), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip="5"), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=(1, 2, 3)), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=True), "neither a number nor a pair"),
        (lambda: sf.Mean("wage", clip=200), "within the bounds"),
        (lambda: sf.Mean("wage", clip=(10, 10)), "within the bounds"),
        (lambda: sf.Mean("age", clip=122), "within the bounds"),
        (lambda: sf.Mean("wage", clip=(-60, 0)), "within the bounds"),
        (lambda: sf.Mean("age", by=["many", "more"]), "cells"),
    ],
)
def test_what_makes_no_sense_is_refused_in_three_parts(make: object, said: str) -> None:
    domain = sf.Domain(
        dict(DOMAIN.items())
        | {
            "many": sf.Interval(0, 10**5, step=1),
            "more": sf.Interval(0, 10**4, step=1),
        }
    )
    with pytest.raises(sf.UsageError, match=said) as refused:
        sf.preview(make(), domain=domain, unit=sf.Unit(), epsilon="1")
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


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


# Exact audits: each basis spends its whole claim, and no more, on all small neighbouring data sets.
SMALL_DOMAIN = sf.Domain(g=sf.Interval(0, 2, step=1), x=sf.Interval(0, 2, step=1))
UNIVERSE: Rows = ((0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 2.0))
FIVE_VALUES = sf.Domain(g=sf.Interval(0, 2, step=1), x=sf.Interval(0, 4, step=1))
FAR_UNIVERSE: Rows = ((0.0, 0.0), (0.0, 4.0), (1.0, 3.0))
UNITS = [sf.Unit(r, relation) for r, relation in product((1, 2), ("add-remove", "replace"))]
KINDS = [sf.Mean, sf.Sum, sf.Variance]


def mechanism(
    question: sf.Question,
    unit: sf.Unit,
    cost: CentralMeasure,
    domain: sf.Domain = SMALL_DOMAIN,
) -> Mechanism:
    """The production code from rows to the published integers."""
    return of_question(question, domain, unit, cost)


def kinds_and_units() -> Iterator[object]:
    """Means with each unit; what differs from them in one law, with the least and the largest."""
    for kind, unit in product(KINDS, UNITS):
        is_corner = kind is sf.Mean or unit in (UNITS[0], UNITS[-1])
        yield pytest.param(kind, unit, marks=[] if is_corner else [pytest.mark.deep])


@pytest.mark.parametrize(("kind", "unit"), list(kinds_and_units()), ids=str)
def test_epsilon_is_spent_exactly(kind: type, unit: sf.Unit) -> None:
    cost = sf.PureDP("1")
    pairs = neighbours(UNIVERSE, unit, others=1 if unit.rows_per_person == 1 else 0)
    loss = pure_loss(mechanism(kind("x", by="g"), unit, cost), pairs).loss
    assert 0.99 <= loss <= 1 + 1e-9
    half = pure_loss(mechanism(kind("x", by="g"), unit, less_noise(cost, 2)), pairs).loss
    assert half > 1.9


@pytest.mark.parametrize("unit", UNITS[::3], ids=str)
def test_hats_spend_epsilon_exactly(unit: sf.Unit) -> None:
    """Values 0 to 4 have the knots 0, 1, 2 and 4: one value, 3, lies between two of them."""
    cost = sf.PureDP("1")
    pairs = neighbours(FAR_UNIVERSE, unit, others=0)
    question = sf.Mean("x", by="g", clip="auto")
    loss = pure_loss(mechanism(question, unit, cost, FIVE_VALUES), pairs).loss
    assert 0.99 <= loss <= 1 + 1e-9
    less = mechanism(question, unit, less_noise(cost, 2), FIVE_VALUES)
    assert pure_loss(less, pairs).loss > 1.9


@pytest.mark.parametrize("unit", UNITS[:2], ids=str)
def test_two_values_spend_epsilon_exactly(unit: sf.Unit) -> None:
    domain = sf.Domain(x=sf.Interval(0, 2, step=1), y=sf.Interval(0, 1, step=1))
    universe: Rows = ((0.0, 0.0), (2.0, 1.0), (1.0, 1.0))
    cost = sf.PureDP("1")
    pairs = neighbours(universe, unit, others=0)
    question = sf.Sum(["x", "y"])
    loss = pure_loss(mechanism(question, unit, cost, domain), pairs).loss
    assert 0.99 <= loss <= 1 + 1e-9
    less = mechanism(question, unit, less_noise(cost, 2), domain)
    assert pure_loss(less, pairs).loss > 1.9


@pytest.mark.parametrize("unit", UNITS[::3], ids=str)
def test_rho_is_never_exceeded(unit: sf.Unit) -> None:
    cost = sf.ZCDP("0.5")
    pairs = neighbours(UNIVERSE, unit, others=0)
    for kind in (sf.Mean, sf.Variance):
        loss = renyi_loss(mechanism(kind("x", by="g"), unit, cost), pairs, (1.5, 8.0)).loss
        assert 0.98 * 0.5 <= loss <= 0.5 * (1 + 1e-9)
    pairs = neighbours(FAR_UNIVERSE[:2], unit, others=0)
    hats = mechanism(sf.Mean("x", by="g", clip="auto"), unit, cost, FIVE_VALUES)
    loss = renyi_loss(hats, pairs, (1.5, 8.0)).loss
    assert 0.98 * 0.5 <= loss <= 0.5 * (1 + 1e-9)
