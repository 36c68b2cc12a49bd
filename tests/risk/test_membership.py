"""The modern risk.

Closed forms against definitions, promises against noise that keeps them, and inverses.
"""

from fractions import Fraction

import numpy as np
import pytest

from risk.noises import NOISES, RATES, _masses
from sfumato import risk
from sfumato.errors import Infeasible, UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.risk import Gaussian, Laplace, Risk


def test_the_figures_of_the_page():
    assert risk.advantage(PureDP(1)) == pytest.approx(0.462117157)
    assert risk.advantage(Laplace(1)) == pytest.approx(0.393469340)
    assert risk.advantage(risk.gaussian_for(epsilon=1, delta="1e-6")) == pytest.approx(
        0.0942, abs=5e-5
    )
    assert risk.advantage(ApproxDP(1, "0.01")) == pytest.approx((np.e - 1 + 0.02) / (np.e + 1))


@pytest.mark.parametrize(("noise", "shift"), NOISES[3:], ids=str)
@pytest.mark.parametrize("allowed", [1e-6, 0.01, 0.3, 0.6])
def test_the_loss_is_exceeded_as_seldom_as_said(noise, shift, allowed):
    mass, moved = _masses(noise, shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(moved > 1e-300, np.log(moved / mass), -np.inf)
    belief = risk.posterior(noise, 0.5, exceeded=allowed, sensitivity=shift)
    limit = np.log(belief / (1 - belief))
    assert moved[losses > limit + 1e-9].sum() <= allowed
    assert moved[losses > limit - 1e-6].sum() > allowed


@pytest.mark.parametrize(("noise", "shift"), NOISES, ids=str)
def test_the_advantage_is_read_off_the_curve(noise, shift):
    rates = np.linspace(1e-4, 1 - 1e-4, 4001)
    gains = [
        risk.true_positive_rate(noise, float(rate), sensitivity=shift) - rate for rate in rates
    ]
    assert max(gains) == pytest.approx(risk.advantage(noise, sensitivity=shift), abs=1e-3)
    assert max(gains) <= risk.advantage(noise, sensitivity=shift) + 1e-12


def test_promises_are_never_beaten_by_noise_that_keeps_them():
    sharp = risk.gaussian_for(epsilon=1, delta="1e-5")
    kept = [
        (PureDP("0.5"), Laplace(2.0), 1),
        (PureDP("0.5"), DiscreteLaplace(Fraction(2)), 1),
        (ApproxDP(1, "1e-5"), sharp, 1),
        (ZCDP("0.5"), Gaussian(1.0), 1),
        (ZCDP("0.02"), DiscreteGaussian(Fraction(25)), 1),
        (ZCDP("0.125"), DiscreteLaplace(Fraction(2)), 1),
    ]
    for promise, noise, shift in kept:
        assert risk.advantage(noise, sensitivity=shift) <= risk.advantage(promise) + 1e-12
        for rate in RATES:
            assert (
                risk.true_positive_rate(noise, rate, sensitivity=shift)
                <= risk.true_positive_rate(promise, rate) + 1e-12
            )
        for allowed in (1e-4, 1e-2):
            worst = risk.posterior(promise, 0.1, exceeded=allowed)
            assert risk.posterior(noise, 0.1, exceeded=allowed, sensitivity=shift) <= worst + 1e-12


def test_several_answers_together():
    assert risk.composed_advantage([]) == 0
    for noise, shift in NOISES[:1] + NOISES[2:4] + NOISES[5:6]:
        alone = risk.composed_advantage([(noise, shift)])
        assert alone == pytest.approx(risk.advantage(noise, sensitivity=shift), abs=1e-3)
    twice = risk.composed_advantage([(Gaussian(2.0), 1), (Gaussian(2.0), 1)])
    assert twice == pytest.approx(risk.advantage(Gaussian(float(2 / np.sqrt(2)))), abs=1e-3)


def test_refusals():
    for wrong in (
        {},
        {"advantage": 0.1, "fpr": 0.1},
        {"prior": 0.1},
        {"advantage": 2},
        {"advantage": 0.1, "exceeded": 1},
    ):
        with pytest.raises(UsageError):
            Risk(**wrong)
    with pytest.raises(Infeasible, match="guessing"):
        Risk(prior=0.5, posterior=0.4)
    with pytest.raises(Infeasible, match="no limit"):
        Risk(prior=0.1, posterior=0.4).noise("gaussian")
    with pytest.raises(Infeasible, match="fpr= with tpr="):
        Risk(prior=0.1, posterior=0.4).zcdp()
    with pytest.raises(UsageError, match="worlds"):
        Risk(disclosure=0.3).epsilon()
    with pytest.raises(Infeasible, match="before anything"):
        Risk(disclosure=0.3).epsilon(worlds=3)
    with pytest.raises(UsageError, match="discrete-laplace"):
        Risk(advantage=0.1).noise("cauchy")
    with pytest.raises(UsageError, match="whole"):
        risk.advantage(DiscreteLaplace(Fraction(1)), sensitivity=0.5)
    with pytest.raises(UsageError, match="neither"):
        risk.advantage("epsilon = 1")
    with pytest.raises(UsageError, match="fpr"):
        risk.true_positive_rate(PureDP(1), 1)
