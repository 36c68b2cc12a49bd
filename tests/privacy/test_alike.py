"""Costs that differ in their last digits are said once, and never as less than they are."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, MetricDP, PureDP, common_cost


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([PureDP("0.4"), PureDP("0.4")], "epsilon = 0.4"),
        ([PureDP("0.333333334"), PureDP("0.333333333")], "epsilon = 0.3334 (rounded up)"),
        ([ZCDP("0.142857142857"), ZCDP("0.142857142858")], "rho = 0.1429 (rounded up)"),
        (
            [ApproxDP("0.333333333", "1e-6"), ApproxDP("0.333333334", "0.000000999999999")],
            "epsilon = 0.3334, delta = 0.000001 (rounded up)",
        ),
        ([ApproxDP("0.333333333", 0), ApproxDP("0.333333334", 0)], None),
        ([MetricDP("2"), MetricDP("2")], "epsilon = 2 per unit of euclidean distance"),
    ],
)
def test_near_costs_are_said_as_one(costs: list[CentralMeasure], said: str | None) -> None:
    found = common_cost(costs)
    assert found is not None
    assert str(found) == (said or "epsilon = 0.3334, delta = 0 (rounded up)")


@pytest.mark.parametrize(
    "costs",
    [
        [PureDP("0.3"), PureDP("0.4")],
        [PureDP("0.333333"), PureDP("0.333334")],
        [PureDP("0.3"), ZCDP("0.3")],
        [PureDP("0.3"), ApproxDP("0.3", "1e-6")],
        [ApproxDP("0.3", "1e-6"), ApproxDP("0.3", "2e-6")],
        [MetricDP("2"), MetricDP("2.000000001")],
    ],
)
def test_costs_that_differ_more_are_not(costs: list[CentralMeasure]) -> None:
    assert common_cost(costs) is None


@given(st.fractions(Fraction(1, 10**9), 1000), st.fractions(0, Fraction(1, 10**6)))
def test_what_is_said_is_never_less(epsilon: Fraction, nearly: Fraction) -> None:
    costs = [PureDP(epsilon), PureDP(epsilon * (1 - nearly))]
    found = common_cost(costs)
    assert found is not None
    assert isinstance(found.cost, PureDP)
    assert found.cost.epsilon >= epsilon
    assert found.cost.epsilon <= epsilon * Fraction("1.001")
