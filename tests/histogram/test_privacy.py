"""What a histogram truly spends, over all small neighbours, by the production code."""

import pytest

from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import neighbours, of_question
from sfumato.domain import Domain, Interval
from sfumato.histogram import Histogram
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit

DOMAIN = Domain(x=Interval(0, 3, step=1))
EDGE_CASES = ((0.5,), (1.0,), (3.0,), (float("nan"),))
UNITS = [
    Unit(rows_per_person=r, neighbours=neighbours)
    for r in (1, 3)
    for neighbours in ("add-remove", "replace")
]
QUESTIONS = [
    Histogram("x", bins=3),
    Histogram("x", bins=[0, 1, 3]),
    Histogram("x", bins=[0.5, 1, 2]),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: str(q.bins))
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_pure(unit, question):
    mechanism = of_question(question, DOMAIN, unit, PureDP("0.7"))
    epsilon = pure_loss(mechanism, neighbours(EDGE_CASES, unit, others=1)).loss
    assert epsilon <= 0.7 * (1 + 1e-9)
    assert epsilon == pytest.approx(0.7, rel=0.01)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_concentrated(unit):
    mechanism = of_question(QUESTIONS[0], DOMAIN, unit, ZCDP("0.05"))
    rho = renyi_loss(mechanism, neighbours(EDGE_CASES[:3], unit, others=0)).loss
    assert rho <= 0.05 * (1 + 1e-9)
    assert rho == pytest.approx(0.05, rel=0.01)


def test_noise_for_one_row_is_not_enough_for_three():
    mechanism = of_question(QUESTIONS[0], DOMAIN, Unit(), PureDP("0.7"))
    pairs = neighbours(EDGE_CASES, Unit(rows_per_person=3), others=0)
    assert pure_loss(mechanism, pairs).loss == pytest.approx(3 * 0.7)
    concentrated = of_question(QUESTIONS[0], DOMAIN, Unit(), ZCDP("0.05"))
    assert renyi_loss(concentrated, pairs).loss == pytest.approx(9 * 0.05, rel=0.01)
