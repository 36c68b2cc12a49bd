"""What a guarantee lets anybody believe of one person, in numbers and in sentences."""

import math

import numpy as np
import pytest
from scipy import stats

from sfumato.privacy.belief import (
    after,
    afterwards,
    group,
    is_large,
    log_odds,
    loss,
    sentence,
    warning,
)
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


def test_a_loss_without_a_limit_is_said_to_have_none():
    assert loss(ZCDP("0.5"), 0) == math.inf
    # The loss of Gaussian noise is a normal variable of mean rho and variance 2 rho.
    for rho, seldom in ((0.01, 1e-6), (0.5, 1e-3), (4.0, 0.1)):
        limit = loss(ZCDP(rho), seldom)
        assert stats.norm.sf(limit, rho, math.sqrt(2 * rho)) <= seldom


@pytest.mark.parametrize(
    ("promise", "large"),
    [
        (PureDP(10), False),
        (PureDP("10.000000001"), True),
        (ApproxDP(10, "1e-6"), False),
        (ApproxDP("10.1", "1e-6"), True),
        (ZCDP("1.3"), False),
        (ZCDP("1.5"), True),
    ],
    ids=str,
)
def test_a_promise_that_is_worth_little_says_so(promise, large):
    assert is_large(promise) == large
    said = warning(promise, Unit())
    assert ("protects hardly anyone" in said) == large
    assert (sentence(promise, Unit()) in said) == large


def test_how_sure_anybody_can_become():
    assert afterwards(PureDP(1)) == pytest.approx(math.e / (math.e + 99))
    assert afterwards(ApproxDP(1, "0.1")) == 1
    assert 0.0268 < afterwards(ApproxDP(1, "0.09")) < 1
