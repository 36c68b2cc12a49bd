"""What a guarantee lets anybody believe of one person, in numbers and in sentences."""

import math

import numpy as np
import pytest

from sfumato.privacy.belief import after, group, log_odds, loss, sentence
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit


def test_the_loss_of_approximate_privacy_is_that_of_its_worst_mechanism():
    """Its worst mechanism (Kairouz, Oh, Viswanath 2015) loses infinity, epsilon or -epsilon.

    Mixtures lie below.
    """
    epsilon, delta = 0.5, 1e-3
    assert loss(ApproxDP("0.5", "1e-3"), delta) == loss(ApproxDP("0.5", "1e-3"), 0) == math.inf
    for allowed in (2e-3, 1e-2, 0.3):
        limit = loss(ApproxDP("0.5", "1e-3"), allowed)
        assert limit >= epsilon
        assert delta / (1 - math.exp(epsilon - limit)) == pytest.approx(allowed)
    assert loss(ApproxDP("0.5", 0), 0) == 0.5


def test_groups():
    assert group(PureDP("0.5"), 3) == PureDP("1.5")
    assert group(ZCDP("0.1"), 2) == ZCDP("0.4")
    pair = group(ApproxDP("0.5", "1e-6"), 2)
    assert float(pair.epsilon) == 1
    assert float(pair.delta) == pytest.approx(1e-6 * (1 + math.exp(0.5)))
    assert group(ApproxDP("5", "0.9"), 2).delta < 1


def test_sentences():
    assert (
        sentence(PureDP(1), Unit())
        == "anyone 1% sure that a person is in the data can become at most 2.68% sure"
    )
    assert "what a person's rows are" in sentence(PureDP(1), Unit(neighbours="replace"))
    assert sentence(ZCDP("0.5"), Unit()).endswith("except with probability 0.000001")
    assert sentence(ApproxDP(1, "1e-7"), Unit()).endswith("except with probability 0.000001")
    assert "too large" in sentence(ApproxDP(1, "0.2"), Unit())
    assert "can become 99.99...% sure" in sentence(PureDP(20), Unit())
    for epsilon in np.geomspace(1e-9, 11, 50):
        quoted = float(
            sentence(PureDP(float(epsilon)), Unit()).rpartition("most ")[2].partition("%")[0]
        )
        assert 0 <= quoted / 100 / after(0.01, float(epsilon)) - 1 <= 0.0101
    assert after(0.25, 0) == pytest.approx(0.25)
    assert log_odds(0.5) == 0
