"""Tails of weighted sums of noise are bounded from above, and hardly more."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms import noise_sums
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.mechanisms.noise_sums import chernoff_half_widths, sum_half_width, tails
from sfumato.random import PublicSeed

LAWS: list[Law] = [
    DiscreteLaplace(Fraction(10, 3)),
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteGaussian(Fraction(30)),
    DiscreteGaussian(Fraction(1, 4)),
]
WEIGHTS = np.array([[1.0, 0, 0, 0], [1, 1, 1, 1], [570, -376, 182, 85], [0, 3, 1e-9, 0]])
DRAWS = 20_000


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_tail_is_larger_than_its_bound(law: Law) -> None:
    draws = law.sample(4 * DRAWS, PublicSeed(1)).reshape(DRAWS, 4)
    for weights in WEIGHTS:
        sums = draws @ weights
        for at in np.quantile(sums, [0.6, 0.9, 0.975, 0.999]):
            if at <= 0:
                continue
            share = (sums >= at).mean()
            error = 4 * np.sqrt(share / DRAWS) + 1e-4
            assert share <= tails(law, weights[None], np.array([at]))[0] + error


def test_where_noise_is_wide_the_bound_is_nearly_the_tail() -> None:
    law = DiscreteLaplace(Fraction(200))
    draws = law.sample(4 * DRAWS, PublicSeed(2)).reshape(DRAWS, 4)
    for weights in WEIGHTS:
        at = np.quantile(draws @ weights, 0.975)
        assert tails(law, weights[None], np.array([at]))[0] == pytest.approx(0.025, rel=0.15)


def test_one_laplace_draw_has_the_tail_that_is_known() -> None:
    law = DiscreteLaplace(Fraction(10**6))
    at = np.array([1e6, 3e6, 5e6])
    found = tails(law, np.ones((3, 1)), at)
    assert found == pytest.approx(np.exp(-at / 1e6) / 2, abs=2 * noise_sums.ERROR)


def test_nothing_is_bounded_at_zero_or_below() -> None:
    found = tails(LAWS[0], WEIGHTS[:3], np.array([0.0, -1, -1e9]))
    assert (found == 1).all()


def test_a_sum_without_weights_never_reaches_a_positive_number() -> None:
    assert tails(LAWS[0], np.zeros((1, 4)), np.array([1e-9])).tolist() == [0.0]
    assert chernoff_half_widths(LAWS[0], np.zeros((1, 4)), 0.05).tolist() == [0.0]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_plain_sums_have_the_smallest_half_width_that_holds(law: Law) -> None:
    assert sum_half_width(law, 1, 0.05) == law.half_width(0.05)
    assert sum_half_width(law, 0, 0.05) == 0
    sums = law.sample(9 * DRAWS, PublicSeed(3)).reshape(DRAWS, 9).sum(axis=1)
    half = sum_half_width(law, 9, 0.05)
    error = 4 * np.sqrt(0.05 / DRAWS)
    assert (np.abs(sums) > half).mean() <= 0.05 + error
    assert half == 0 or (np.abs(sums) > half - 1).mean() >= 0.05 - error


def test_very_wide_noise_takes_chernoffs_bound() -> None:
    law = DiscreteLaplace(Fraction(10**9))
    assert sum_half_width(law, 28, 0.05) > 10**9


def exact_tails(law: Law, draws: int) -> list[Fraction]:
    """P(abs(Z_1 + .. + Z_draws) > k) for k = 0, 1, .., from masses of sixty digits."""
    reach = 45 * int(law.sigma if isinstance(law, DiscreteGaussian) else law.scale) + 60
    with localcontext() as context:
        context.prec = 80
        if isinstance(law, DiscreteGaussian):
            exponents = [-Fraction(x**2) / (2 * law.sigma_squared) for x in range(reach + 1)]
        else:
            exponents = [-Fraction(x) / law.scale for x in range(reach + 1)]
        sizes = [(Decimal(x.numerator) / x.denominator).exp() for x in exponents]
        half = [int(size * 10**60) for size in sizes]
    masses = np.array(half[:0:-1] + half, dtype=object)
    whole = np.ones(1, dtype=object)
    for _ in range(draws):
        whole = np.convolve(whole, masses)
    beyond = 2 * np.cumsum(whole[::-1])[: len(whole) // 2][::-1]
    return [Fraction(int(tail), int(whole.sum())) for tail in beyond]


@pytest.mark.parametrize("draws", [2, 3])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_sum_has_the_least_half_width_of_its_exact_law_at_any_confidence(
    law: Law, draws: int
) -> None:
    """Above a confidence of 1 - 1e-12 it once was 0, the least that nothing satisfied."""
    exact = exact_tails(law, draws)
    for alpha in (0.5, 0.05, 1e-4, 1e-8, 1e-9, 9e-10, 1e-11, 1e-12, 1e-13):
        half = sum_half_width(law, draws, alpha)
        assert exact[half] <= alpha
        assert half == 0 or exact[half - 1] > alpha
    for alpha in (1e-14, 1e-15, 1e-20, 1e-30):
        half = sum_half_width(law, draws, alpha)
        assert exact[half] <= alpha
        assert half <= law.sum_half_width(np.array([float(draws)]), alpha)[0]
