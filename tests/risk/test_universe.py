"""Wrong arguments are refused, and no message quotes a value."""

import math

import numpy as np
import pandas as pd
import pytest

from sfumato import risk
from sfumato.errors import SfumatoError, UsageError
from sfumato.risk.choice import choose

CANARY = 48151.62342


UNIVERSE = [1.0, 2.0, CANARY, 4.0, 5.0]


def _texts(work):
    with pytest.raises(SfumatoError) as caught:
        work()
    assert caught.value.asked
    assert caught.value.obstacle
    assert caught.value.remedy
    assert "48151" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("size", [0, -1, 5, 6, 2.5, True, None, "3", math.nan], ids=str)
def test_sizes(size):
    assert "size" in _texts(lambda: risk.optimal_epsilon(UNIVERSE, size, "mean"))


@pytest.mark.parametrize("distance", [0, -1, 3, 4, 1.5, True, None], ids=str)
@pytest.mark.parametrize("ask", [risk.unbounded_sensitivity, risk.bounded_sensitivity])
def test_distances(ask, distance):
    assert "distance" in _texts(lambda: ask(UNIVERSE, 3, "mean", distance=distance))


@pytest.mark.parametrize("limit", [0, 1, -0.1, 1.5, math.nan, math.inf, "x", None], ids=str)
@pytest.mark.parametrize("ask", [risk.optimal_epsilon, risk.upper_bound_epsilon, choose])
def test_risks(ask, limit):
    assert "risk" in _texts(lambda: ask(UNIVERSE, 3, "mean", risk=limit))


@pytest.mark.parametrize(
    "query",
    [
        "mode",
        "percentile",
        ("percentile", 101),
        ("percentile", math.nan),
        ("percentil", 5),
        "",
        ("mean",),
        25,
        None,
    ],
    ids=str,
)
def test_queries(query):
    _texts(lambda: choose(UNIVERSE, 3, query))
    _texts(lambda: risk.unbounded_sensitivity(UNIVERSE, 3, query))


@pytest.mark.parametrize("epsilon", [-1, math.nan, math.inf, "x"], ids=str)
def test_epsilons(epsilon):
    assert "epsilon" in _texts(
        lambda: risk.tighter_upper_bound_posterior(UNIVERSE, 3, "mean", epsilon=epsilon)
    )
    assert "epsilon" in _texts(lambda: risk.posterior_belief(UNIVERSE, 3, "mean", 2.0, epsilon))


@pytest.mark.parametrize(
    "universe",
    [
        [1.0, math.nan, CANARY, 3.0, 4.0],
        [1.0, math.inf, CANARY, 3.0, 4.0],
        [[1.0, 2.0], [CANARY, 4.0]],
        ["48151", "b", "c", "d"],
        [1.0, None, CANARY, 3.0, 4.0],
        [True, "48151", True, True],
        [CANARY],
        [],
        {},
        {"a": [1, 2, 3, 4], "b": ["x", "y", "48151", "z"]},
        pd.DataFrame({"name": ["48151", "b", "c", "d"], "a": [1, 2, 3, 4]}),
        CANARY,
        [10**400, 1, 2, 3],
        [1.7e308, -1.7e308, 48151.0, 2.0],
        [5e-324, 1e-300, 0.0, 1e-310],
        np.array([1, 2, 3 + 1j]),
        np.array(3.0),
    ],
    ids=range(17),
)
def test_universes(universe):
    _texts(lambda: choose(universe, 3, "mean"))


def test_priors_sensitivities_and_bounds():
    for prior in ([0.5, 0.5], [math.nan] * 10, [-1.0, *[2 / 9] * 9], [0.2] * 10, "x"):
        assert "prior" in _texts(
            lambda given=prior: risk.optimal_epsilon(UNIVERSE, 3, "mean", prior=given)
        )
    for wide in (0, -1, math.nan):
        assert "sensitivity" in _texts(
            lambda given=wide: risk.optimal_epsilon(UNIVERSE, 3, "mean", sensitivity=given)
        )
    assert "bound" in _texts(lambda: risk.optimal_epsilon(UNIVERSE, 3, "mean", bound="upper"))
    assert "result" in _texts(lambda: risk.posterior_belief(UNIVERSE, 3, "mean", math.nan, 1))
    _texts(lambda: choose(UNIVERSE, 1, "mean"))
    _texts(lambda: risk.optimal_epsilon({"a": UNIVERSE}, 3, "mean", sensitivity={"b": 1}))
    _texts(lambda: risk.confidence([0.5, 0.5], [1.0]))
    assert "single column" in _texts(
        lambda: risk.optimal_epsilon([1, 2, 3], 2, "mean", sensitivity={"a": 1})
    )
    _texts(lambda: risk.disclosure_risk([]))
    _texts(lambda: risk.prior_belief(np.arange(40.0), 20))


def test_refusals_are_value_errors_too():
    with pytest.raises(ValueError, match="proper part"):
        choose(UNIVERSE, 9, "mean")
    assert issubclass(UsageError, ValueError)


@pytest.mark.parametrize("beliefs", ["x", ["a", "b"], None, [], [[0.5], [0.2, 0.3]]], ids=str)
def test_beliefs(beliefs):
    assert "probabilities" in _texts(lambda: risk.disclosure_risk(beliefs))
    assert "probabilities" in _texts(lambda: risk.confidence([0.5, 0.5], beliefs))
