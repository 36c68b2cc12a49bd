"""How accurate an answer must be, and the search for the least cost at which it is."""

import math

import pytest

import sfumato as sf
from sfumato.answers.accuracy import AccuracyRequest, Kind, least, least_alone
from sfumato.basics.numbers import sidak
from sfumato.errors import Infeasible, UsageError


@pytest.mark.parametrize(
    "wrong",
    [
        {"half_width": 0},
        {"half_width": math.nan},
        {"half_width": 9, "confidence": 1},
        {"half_width": 9, "simultaneous": "yes"},
    ],
)
def test_an_accuracy_that_makes_no_sense(wrong):
    with pytest.raises(UsageError):
        sf.Within(**wrong)


def test_the_search_finds_the_least_wherever_it_starts():
    for aim in (1, 2, 3, 1000, 10**9 - 1, 10**9, 10**9 + 1, 10**18):
        for start in (1, 7, 10**9):
            assert least(lambda units, aim=aim: units >= aim, start, 10**18, "w") == aim
    with pytest.raises(Infeasible, match="no cost"):
        least(lambda _: False, 5, 100, "w")

    def refuses(units):
        if units < 50:
            raise UsageError("a", "b", "c")
        return units >= 70

    assert least(refuses, 60, 100, "w") == 70
    assert least(refuses, 3, 100, "w") == 70
    with pytest.raises(UsageError, match="a: b"):
        least(lambda units: refuses(units % 50), 3, 100, "w")


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_least_cost_of_a_question(simultaneous: bool, gaussian: bool) -> None:
    domain, unit = sf.Domain(hour=sf.Interval(0, 24, step=1)), sf.Unit(3, "replace")
    question = sf.Histogram("hour")
    kind = Kind.of("zcdp" if gaussian else "pure")
    within = sf.Within(30, simultaneous=simultaneous)
    cost = kind.cost(least_alone(AccuracyRequest(question, domain, unit, None, within), kind))
    assert question.preview(domain, unit, cost).accuracy(simultaneous=simultaneous) == 30
    least = (
        sf.ZCDP(cost.rho - sf.ZCDP("1e-12").rho)
        if gaussian
        else sf.PureDP(cost.epsilon - sf.PureDP("1e-9").epsilon)
    )
    assert question.preview(domain, unit, least).accuracy(simultaneous=simultaneous) == 31
    if not gaussian:
        alpha = sidak(0.05, 24) if simultaneous else 0.05
        exact = sf.histogram_epsilon("geometric", accuracy=30, alpha=alpha, rows_per_person=3)
        assert float(cost.epsilon) == pytest.approx(math.ceil(exact * 1e9) / 1e9, abs=2e-9)


def test_what_is_wrong_at_any_cost_keeps_its_own_name() -> None:
    domain = sf.Domain(k=sf.Keys())
    request = AccuracyRequest(sf.Histogram("k"), domain, sf.Unit(), None, sf.Within(30))
    with pytest.raises(sf.UsageError, match="delta"):
        least_alone(request, Kind.of("pure"))
