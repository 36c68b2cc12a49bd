"""The shares of several questions, and the least cost of all of them together."""

from fractions import Fraction

import sfumato as sf
from risk.opening import ACCURACY, FIFTY, TWO, enough, less, opened
from sfumato.privacy.measures import ApproxDP


def test_shares_give_each_question_exactly_what_it_needs():
    together = opened([FIFTY, TWO], [ACCURACY, sf.Within(5)])
    alone = [opened(FIFTY), opened(TWO, sf.Within(5))]
    assert [part.floor for part in together.parts] == [one.floor_cost for one in alone]
    assert together.floor_cost.epsilon == sum(one.floor_cost.epsilon for one in alone)
    assert enough(together, together.kind.cost(3 * together.kind.units))


def test_shares_that_a_plan_states_are_kept():
    plan = sf.Plan([FIFTY, TWO], shares=[1, 9])
    window = opened(plan)
    assert window.plan == plan
    assert window.floor_cost.epsilon >= 10 * opened().floor_cost.epsilon - Fraction(1, 10**8)
    assert not enough(window, less(window, window.floor_cost))


def test_delta_is_divided_too():
    window = opened([FIFTY, TWO], delta="1e-6")
    assert isinstance(window.floor_cost, ApproxDP)
    assert sum(cost.delta for cost in window.plan.costs(window.floor_cost)) == Fraction("1e-6")
