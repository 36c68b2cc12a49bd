"""The checks pass the law, fail the near miss, and refuse to be weak."""

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.random import PublicSeed
from support.statistics import (
    TooFewDraws,
    check_coverage,
    check_law,
    check_scale,
    clopper_pearson,
    masses,
    scaled,
    support,
)

LAWS = [
    DiscreteLaplace(Fraction(10)),
    DiscreteGaussian(Fraction(50)),
    DiscreteLaplace(Fraction(2, 3)),
]
ENOUGH = 400_000


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("check", [check_scale, check_law])
def test_the_law_passes_and_five_percent_off_does_not(check, law):
    check(law.sample(ENOUGH, PublicSeed("right")), law)
    for factor in (Fraction(21, 20), Fraction(20, 21)):
        with pytest.raises(AssertionError):
            check(scaled(law, factor).sample(ENOUGH, PublicSeed("wrong")), law)


def test_one_percent_is_noticed_where_it_is_asked_for():
    law, near = DiscreteLaplace(Fraction(10)), Fraction(101, 100)
    check_scale(law.sample(10**6, PublicSeed(1)), law, near_miss=near)
    with pytest.raises(AssertionError):
        check_scale(scaled(law, near).sample(10**6, PublicSeed(2)), law, near_miss=near)


@pytest.mark.parametrize("check", [check_scale, check_law])
def test_too_few_draws_are_refused_even_when_they_are_far_off(check):
    law = DiscreteLaplace(Fraction(10))
    with pytest.raises(TooFewDraws):
        check(scaled(law, Fraction(3)).sample(1000, PublicSeed(3)), law)


def test_a_law_of_another_shape_is_noticed():
    laplace = DiscreteLaplace(Fraction(10))
    gaussian = DiscreteGaussian(Fraction(laplace.variance))
    with pytest.raises(AssertionError):
        check_law(gaussian.sample(ENOUGH, PublicSeed(4)), laplace, near_miss=gaussian)


def test_a_biased_law_is_noticed():
    law = DiscreteLaplace(Fraction(10))
    with pytest.raises(AssertionError):
        check_law(law.sample(ENOUGH, PublicSeed(5)) + 1, law)


def test_coverage():
    check_coverage(95_000, 100_000, 0.95)
    with pytest.raises(AssertionError):
        check_coverage(94_000, 100_000, 0.95)
    with pytest.raises(AssertionError):
        check_coverage(96_000, 100_000, 0.95)
    with pytest.raises(TooFewDraws):
        check_coverage(950, 1_000, 0.95)


def test_clopper_pearson():
    low, high = clopper_pearson(8, 10)
    assert (round(low, 4), round(high, 4)) == (
        0.4439,
        0.9748,
    )  # Clopper and Pearson's own kind of table
    assert clopper_pearson(0, 10)[0] == 0
    assert clopper_pearson(10, 10)[1] == 1


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_add_up(law):
    assert masses(law, support(law)).sum() == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(support(law)) == 1)
