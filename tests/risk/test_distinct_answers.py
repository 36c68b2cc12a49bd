"""How well distinct answers can be told apart."""

import math

import numpy as np
import pytest

from sfumato import risk
from sfumato.risk.distinct_answers import Answers

RATES = [0.0, 1e-6, 0.3, 7.0, 1e3, 1e9]


def _by_definition(values, log_weight, log_top, rate):
    exponents = log_weight - rate * np.abs(values[:, None] - values)
    gain = log_top - np.logaddexp.reduce(exponents, axis=1)
    return gain.max()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("spread", [0.0, 3.0, 5000.0], ids=["plain", "weighted", "logs"])
@pytest.mark.parametrize("size", [2, 257, 1500])
def test_the_scan_is_the_sum(rate, spread, size):
    rng = np.random.default_rng(size)
    values = np.sort(rng.standard_cauchy(size))
    weight = spread * rng.random(size)
    for top in (None, weight - rng.random(size)):
        found = Answers(values, weight, top).worst(rate)
        expected = _by_definition(values, weight, 0.0 if top is None else top, rate)
        assert found.log_risk == pytest.approx(expected, rel=1e-12, abs=1e-11)
        assert _by_definition(
            values, weight, 0.0 if top is None else top, rate
        ) - found.log_risk == pytest.approx(0, abs=1e-11)


def test_one_answer_and_its_slope():
    answers = Answers(np.array([0.0, 1.0, 3.0]), np.log([1.0, 2.0, 1.0]))
    value, slope = answers.one(0, 0.5)
    step = 1e-6
    assert value == pytest.approx(math.log(1 + 2 * math.exp(-0.5) + math.exp(-1.5)))
    assert slope == pytest.approx(
        (answers.one(0, 0.5 + step)[0] - answers.one(0, 0.5 - step)[0]) / 2 / step, rel=1e-6
    )


def test_weights_too_large_for_a_float():
    universe = np.arange(20_000.0)
    epsilon = risk.optimal_epsilon(universe, 10_001, ("percentile", 0))
    assert (
        risk.tighter_upper_bound_posterior(universe, 10_001, ("percentile", 0), epsilon=epsilon)
        <= 1 / 3
    )
    assert (
        risk.tighter_upper_bound_posterior(
            universe, 10_001, ("percentile", 0), epsilon=epsilon * (1 + 1e-9)
        )
        > 1 / 3
    )
