"""The window: a floor that is least, a ceiling that is largest."""

import math

import msgspec
import numpy as np
import pytest

import sfumato as sf
from risk.opening import (
    ACCURACY,
    DOMAIN,
    FIFTY,
    MEASURES,
    RISK,
    TWO,
    UNITS,
    enough,
    less,
    more,
    opened,
)
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.errors import UsageError
from sfumato.risk import Worlds


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("measure", MEASURES, ids=str)
@pytest.mark.parametrize("question", [FIFTY, [FIFTY, TWO]], ids=["one", "several"])
def test_the_floor_is_the_least_and_the_ceiling_the_largest(question, measure, unit):
    wishes = ACCURACY if question is FIFTY else [ACCURACY, sf.Within(5)]
    window = opened(question, wishes, unit=unit, **measure)
    assert enough(window, window.floor_cost)
    assert not enough(window, less(window, window.floor_cost))
    assert window.risk.within(window.ceiling_cost)
    assert not window.risk.within(more(window, window.ceiling_cost))


def test_the_floor_of_a_histogram_is_the_closed_form():
    window = opened()
    alpha = -math.expm1(math.log(0.95) / 50)
    tail = lambda epsilon: 2 * math.exp(-21 * epsilon) / (1 + math.exp(-epsilon))  # noqa: E731  P(|Z| > 20)
    assert tail(window.floor) <= alpha < tail(window.floor - 1e-9)
    assert window.ceiling == pytest.approx(math.log(0.05 / 0.95 * 99), abs=1e-9)
    assert window.ceiling <= math.log(0.05 / 0.95 * 99)
    assert window.feasible


def test_a_release_at_the_floor_is_as_accurate_as_requested():
    source = sf.source(np.zeros((9, 1)), sf.Domain(age=sf.Interval(0, 100, step=2)), name="t")
    window = opened()
    with sf.Publisher(source, budget="1") as publisher:
        (release,) = publisher.release(window.plan, epsilon=window.floor)
    assert release.accuracy(simultaneous=True).max() <= 20


def test_a_question_whose_cells_depend_on_the_cost():
    grid = sf.UniformPartitioner(["lon", "lat"])
    window = opened(grid, sf.Within(30, simultaneous=True), rows=100_000)
    assert window.parts[0].cells > 1
    costs = window.floor_cost, less(window, window.floor_cost)
    reach = [
        grid.preview(DOMAIN, sf.Unit(), cost, 100_000).accuracy("0.95", True) for cost in costs
    ]
    assert reach[0] <= 30 < reach[1]
    with pytest.raises(UsageError, match="State rows="):
        opened(grid)


def test_a_window_travels():
    for window in (
        opened([FIFTY, TWO]),
        opened(measure="zcdp"),
        opened(risk=sf.Risk(disclosure="1/3"), worlds=(9, 5)),
    ):
        assert from_bytes(to_bytes(window), sf.Window) == window
        assert msgspec.json.encode(window.floor)


def test_worlds_are_given_in_several_ways():
    school = {"school_year": [1, 2, 3, 4], "absence_days": [1, 2, 3, 10]}
    risk = sf.Risk(disclosure="1/3")
    choices = sf.choose(school, size=3)
    expected = (
        math.log(3 / 2) / 2
    )  # three other worlds, two steps away: 1 / (1 + 3 e^(-2 epsilon)) = 1/3
    for worlds in (choices, choices["school_year"], (4, 3), Worlds(4, 3)):
        assert opened(risk=risk, worlds=worlds).ceiling == pytest.approx(expected, abs=2e-9)
    assert opened(risk=risk, worlds=4).ceiling == pytest.approx(2 * expected, abs=2e-9)
    replaced = sf.Unit(neighbours="replace")
    assert opened(risk=risk, worlds=(4, 3), unit=replaced).ceiling == pytest.approx(
        2 * expected, abs=2e-9
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"risk": sf.Risk(disclosure="1/3")}, "State worlds="),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": 3}, "before anything is published"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": 10**400}, "not possible worlds"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": (3, 2)}, "before anything is published"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": (3, 3)}, "1 <= size < records"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": "four"}, "worlds of type str"),
        ({"risk": sf.Risk(disclosure="1/3"), "worlds": True}, "worlds of type bool"),
        ({"risk": 0.3}, "not a Risk"),
        ({"accuracy": 20}, "not a Within"),
        ({"accuracy": [ACCURACY, ACCURACY]}, "2 accuracies for 1"),
        ({"unit": 3}, "not a unit"),
        ({"measure": "renyi"}, "unknown"),
        ({"measure": "zcdp", "delta": "1e-6"}, "no delta"),
        ({"delta": 2}, "below 1"),
        ({"measure": "zcdp", "risk": RISK}, "advantage="),
        ({"question": sf.Histogram("nothing")}, "nothing"),
    ],
    ids=str,
)
def test_refusals(wrong, said):
    with pytest.raises(UsageError, match=said):
        opened(**wrong)


def test_a_question_that_cannot_say_how_accurate_it_is(monkeypatch):
    def silent(self, domain, unit, cost, rows=None):
        return sf.Preview(self.title, cost, unit, 1)

    monkeypatch.setattr(sf.Histogram, "preview", silent)
    with pytest.raises(UsageError, match="cannot say beforehand"):
        opened()
