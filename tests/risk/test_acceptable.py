"""The largest cost and the least noise within an acceptable risk."""

from fractions import Fraction
from functools import partial

import pytest

from sfumato import risk
from sfumato.errors import Infeasible
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.risk import Gaussian, Laplace, Risk

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


def test_a_goal_without_small_print():
    assert risk.posterior(ZCDP("0.1"), 0.1) == pytest.approx(1)
    assert risk.posterior(ApproxDP(1, "1e-6"), 0.1, exceeded="1e-6") == pytest.approx(1)
    assert risk.posterior(ApproxDP(1, 0), 0.1) == pytest.approx(risk.posterior(PureDP(1), 0.1))


@pytest.mark.parametrize("belief", [{"prior": 0.01, "posterior": 0.05}, {"disclosure": "1/3"}])
def test_a_belief_that_a_rho_or_a_delta_cannot_bound_names_the_risks_that_they_can(belief):
    goal = Risk(**belief)
    for largest in (goal.zcdp, partial(goal.approx, "1e-6")):
        with pytest.raises(Infeasible) as refusal:
            largest(worlds=10)
        for remedy in ("exceeded=1e-6", "fpr= with tpr=", "advantage="):
            assert remedy in refusal.value.remedy
    for stated in ({**belief, "exceeded": 1e-6}, {"fpr": 0.01, "tpr": 0.05}, {"advantage": 0.1}):
        assert Risk(**stated).zcdp(worlds=10).rho > 0
