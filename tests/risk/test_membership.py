"""The modern risk: closed forms against definitions, promises against noise that keeps them, and inverses."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato import risk
from sfumato.errors import Infeasible, UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.risk import Gaussian, Laplace, Risk, discrete

RATES = [1e-6, 0.001, 0.05, 0.2, 0.5, 0.7, 0.99]
NOISES = [
    (Laplace(2.0), 1),
    (Laplace(0.5), 1),
    (Gaussian(1.5), 1),
    (DiscreteLaplace(Fraction(3, 2)), 1),
    (DiscreteLaplace(Fraction(5)), 7),
    (DiscreteGaussian(Fraction(2)), 1),
    (DiscreteGaussian(Fraction(30)), 4),
]


def test_the_figures_of_the_page():
    assert risk.advantage(PureDP(1)) == pytest.approx(0.462117157)
    assert risk.advantage(Laplace(1)) == pytest.approx(0.393469340)
    assert risk.advantage(risk.gaussian_for(epsilon=1, delta="1e-6")) == pytest.approx(
        0.0942, abs=5e-5
    )
    assert risk.advantage(ApproxDP(1, "0.01")) == pytest.approx((np.e - 1 + 0.02) / (np.e + 1))


def _masses(noise, shift):
    """Probabilities of both neighbours' answers, cell by cell."""
    x = np.arange(-400, 400)
    if isinstance(noise, DiscreteLaplace):
        mass = np.exp(-np.abs(x) / float(noise.scale))
    else:
        mass = np.exp(-(x**2) / 2 / float(noise.sigma_squared))
    mass /= mass.sum()
    return mass, np.roll(mass, shift)


@pytest.mark.parametrize(("noise", "shift"), NOISES[3:], ids=str)
def test_noise_on_whole_numbers_cell_by_cell(noise, shift):
    mass, moved = _masses(noise, shift)
    assert risk.advantage(noise, sensitivity=shift) == pytest.approx(
        np.clip(moved - mass, 0, None).sum()
    )
    order = np.argsort(-(np.arange(-400, 400)))
    false, true = (np.concatenate([[0], np.cumsum(p[order])]) for p in (mass, moved))
    for rate in RATES:
        assert risk.true_positive_rate(noise, rate, sensitivity=shift) == pytest.approx(
            np.interp(rate, false, true), abs=1e-12
        )


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


def test_the_bound_of_zcdp_is_not_far_from_gaussian_noise():
    assert risk.advantage(ZCDP("0.5")) < risk.advantage(Gaussian(1)) * 1.3
    assert risk.advantage(ZCDP("1e-6")) < risk.advantage(Gaussian(float(1 / np.sqrt(2e-6)))) * 1.3


def test_wide_noise_meets_the_integral():
    table = discrete.advantage(DiscreteGaussian(Fraction(90_000**2)), 10_000)
    assert table == pytest.approx(risk.advantage(Gaussian(9.0)), rel=1e-6)
    beyond = discrete.advantage(DiscreteGaussian(Fraction(900_000**2)), 100_000)
    assert beyond == pytest.approx(risk.advantage(Gaussian(9.0)), rel=1e-6)


def test_the_gaussian_for_a_promise():
    noise, level = risk.gaussian_for(epsilon="0.5", delta="1e-9", sensitivity=3), mpmath.mpf("0.5")
    m = mpmath.mpf(3) / mpmath.mpf(noise.sigma)
    spent = mpmath.ncdf(m / 2 - level / m) - mpmath.exp(level) * mpmath.ncdf(-m / 2 - level / m)
    assert float(spent) == pytest.approx(1e-9, rel=1e-6)


def test_several_answers_together():
    assert risk.composed_advantage([]) == 0
    for noise, shift in NOISES[:1] + NOISES[2:4] + NOISES[5:6]:
        alone = risk.composed_advantage([(noise, shift)])
        assert alone == pytest.approx(risk.advantage(noise, sensitivity=shift), abs=1e-3)
    twice = risk.composed_advantage([(Gaussian(2.0), 1), (Gaussian(2.0), 1)])
    assert twice == pytest.approx(risk.advantage(Gaussian(float(2 / np.sqrt(2)))), abs=1e-3)


GOALS = [
    Risk(advantage=0.1),
    Risk(prior=0.01, posterior=0.05),
    Risk(fpr=0.01, tpr=0.05),
    Risk(fpr=0.6, tpr=0.7),
    Risk(disclosure="1/3"),
    Risk(prior=0.2, posterior=0.5, exceeded="1e-4"),
]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_the_largest_costs_within_a_goal(goal):
    level = goal.epsilon(worlds=1000)
    assert goal.of(PureDP(level), worlds=1000) == pytest.approx(goal.limit)
    assert goal.within(goal.pure(worlds=1000), worlds=1000)
    assert not goal.within(PureDP(level * (1 + 1e-6)), worlds=1000)
    if goal.advantage or goal.fpr or goal.exceeded:
        rho = goal.zcdp(worlds=1000).rho
        assert goal.within(ZCDP(rho), worlds=1000)
        assert not goal.within(ZCDP(rho + Fraction(1, 10**11)), worlds=1000)
        found = goal.approx("1e-7", worlds=1000)
        assert goal.within(found, worlds=1000)
        assert float(found.epsilon) <= level


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize("goal", [GOALS[0], GOALS[2], GOALS[5]], ids=str)
def test_the_least_noise_within_a_goal(goal, kind):
    noise = goal.noise(kind, sensitivity=2)
    assert goal.within(noise, sensitivity=2)
    smaller = {
        "laplace": lambda: Laplace(noise.scale * (1 - 1e-5)),
        "gaussian": lambda: Gaussian(noise.sigma * (1 - 1e-5)),
        "discrete-laplace": lambda: DiscreteLaplace(noise.scale * (1 - Fraction(1, 10**5))),
        "discrete-gaussian": lambda: DiscreteGaussian(
            noise.sigma_squared * (1 - Fraction(3, 10**5))
        ),
    }[kind]()
    if goal.exceeded == 0 or kind in (
        "laplace",
        "gaussian",
    ):  # on whole numbers the loss that is exceeded moves in steps
        assert not goal.within(smaller, sensitivity=2)


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
    with pytest.raises(Infeasible, match="smallest cost"):
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


def test_a_goal_without_small_print():
    assert risk.posterior(ZCDP("0.1"), 0.1) == pytest.approx(1)
    assert risk.posterior(ApproxDP(1, "1e-6"), 0.1, exceeded="1e-6") == pytest.approx(1)
    assert risk.posterior(ApproxDP(1, 0), 0.1) == pytest.approx(risk.posterior(PureDP(1), 0.1))
