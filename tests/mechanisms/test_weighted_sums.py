"""Half-widths of weighted sums of noise, against exact laws and against draws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.basics.numbers import Array
from sfumato.mechanisms.bounded_noise import TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.mechanisms.noise_sums import (
    Weighted,
    exact_half_width,
    half_widths,
    spread,
    sum_half_width,
    weighted_half_widths,
)
from sfumato.random import PublicSeed

LAWS: list[Law] = [
    DiscreteLaplace(Fraction(7, 10)),
    DiscreteLaplace(Fraction(30)),
    DiscreteGaussian(Fraction(1, 2)),
    DiscreteGaussian(Fraction(200)),
]
WEIGHTS = {
    "one": np.ones(1),
    "equal": np.ones(20),
    "unlike": np.array([1.0, -0.6, 0.3, 0.3, 0.07]),
    "falling": np.geomspace(1, 1e-4, 60),
}


def _exact_quantile(law: Law, weights: Array, alpha: float) -> float:
    """The least t with P(abs(S) > t) <= alpha, for weights that are multiples of 1/100."""
    x = np.arange(-3000, 3001)
    if isinstance(law, DiscreteLaplace):
        mass = np.exp(-np.abs(x) / float(law.scale))
    else:
        mass = np.exp(-(x**2) / (2 * float(law.sigma_squared)))
    kept = mass > mass.max() * 1e-13
    x, mass = x[kept], mass[kept] / mass.sum()
    law_of_sum = {0: 1.0}
    for weight in np.rint(np.abs(weights) * 100).astype(int).tolist():
        places = np.array(list(law_of_sum))
        masses = np.array(list(law_of_sum.values()))
        sums = np.add.outer(places, weight * x).reshape(-1)
        at, back = np.unique(sums, return_inverse=True)
        total = np.bincount(back, np.multiply.outer(masses, mass).reshape(-1))
        law_of_sum = dict(zip(at.tolist(), total.tolist(), strict=True))
    size = np.abs(np.array(list(law_of_sum)))
    order = np.argsort(size)
    above = 1 - np.cumsum(np.array(list(law_of_sum.values()))[order])
    return float(size[order][np.argmax(above <= alpha)]) / 100


@pytest.mark.parametrize("law", LAWS[::2], ids=str)
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.5], [1.0, 0.35, 0.1]], ids=str)
def test_they_are_never_below_the_exact_quantile(
    law: Law, alpha: float, weights: list[float]
) -> None:
    least = _exact_quantile(law, np.array(weights), alpha)
    found = float(weighted_half_widths([Weighted.of(law, np.array(weights))], alpha)[0])
    assert least <= found <= 1.05 * least + 0.01


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("name", WEIGHTS)
def test_misses_are_as_many_as_stated(law: Law, name: str) -> None:
    weights = WEIGHTS[name]
    runs = 40_000
    draws = law.sample(runs * len(weights), PublicSeed(f"{law} {name}"))
    sums = np.abs(draws.reshape(runs, -1) @ weights)
    found = float(weighted_half_widths([Weighted.of(law, weights)], 0.05)[0])
    # 5% of the runs, and six standard deviations of their number.
    assert (sums > found).mean() <= 0.05 + 6 * np.sqrt(0.05 * 0.95 / runs)
    # A half-width that is a tenth less does not hold, unless no sum lies in between.
    less = (sums > 0.9 * found).mean()
    assert less > 0.052 or less == (sums > found).mean()
    assert found <= 1.05 * np.quantile(sums, 0.95) + 0.02


def test_several_sums_and_laws_at_once() -> None:
    laws = [DiscreteLaplace(Fraction(5)), DiscreteLaplace(Fraction(20))]
    first = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]])
    second = np.array([[0.0], [0.25], [0.0]])
    together = [Weighted.of(laws[0], first), Weighted.of(laws[1], second)]
    found = weighted_half_widths(together, 0.01)
    for row in range(3):
        alone = [Weighted.of(laws[0], first[row]), Weighted.of(laws[1], second[row])]
        assert weighted_half_widths(alone, 0.01)[0] == pytest.approx(found[row], rel=2e-2)
    assert found[2] == 0


def test_they_are_never_wider_than_chernoffs_bound() -> None:
    law = LAWS[1]
    for alpha in (0.3, 0.05, 1e-6, 1e-8, 1e-12):
        bound = half_widths(np.array([10 * spread(law)]), [(law, 1.0)], alpha)[0]
        found = weighted_half_widths([Weighted.of(law, np.ones(10))], alpha)[0]
        assert found <= bound
        assert alpha < 1e-9 or found < 0.95 * bound


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("alpha", [0.05, 1e-10])
def test_half_widths_grow_with_the_weights(law: Law, alpha: float) -> None:
    """Weights of any size, not only those whose largest is 1; 1e-10 is left to Chernoff's bound."""
    weights = np.array([[1.0, 0.5, 0.25], [0.5, 0.25, 0.125]])
    of_one, of_half = weighted_half_widths([Weighted.of(law, weights)], alpha)
    assert of_half == pytest.approx(of_one / 2, rel=1e-6)
    scaled = weighted_half_widths([Weighted.of(law, 40 * weights)], alpha)
    assert scaled == pytest.approx([40 * of_one, 40 * of_half], rel=1e-6)
    squared = float((weights[0] ** 2).sum())
    bound = half_widths(np.array([squared * spread(law)]), [(law, 1.0)], alpha)[0]
    assert of_one == pytest.approx(bound, rel=1e-9) if alpha < 1e-9 else of_one < bound


def test_noise_with_a_bound_moves_a_sum_by_its_weights_times_the_bound() -> None:
    law = TruncatedLaplace(Fraction(100), 10)
    weights = np.array([3.0, 0.25])
    drawn = Weighted.of(law, weights, np.array([1.0, 8.0]))
    assert weighted_half_widths([drawn], 1e-30) == pytest.approx([(3 + 8 * 0.25) * 10])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sums_of_equal_draws_have_the_exact_law(law: Law) -> None:
    for draws in (1, 2, 50):
        assert sum_half_width(law, draws, 0.05) == exact_half_width([(law, draws)], 0.05)
    wide = DiscreteLaplace(Fraction(10**6))
    exact = float(10**6) * sum_half_width(DiscreteLaplace(Fraction(10**3)), 12, 0.05) / 10**3
    assert sum_half_width(wide, 12, 0.05) == pytest.approx(exact, rel=0.02)
    assert sum_half_width(wide, 12, 0.05) >= 0.999 * exact


def test_bounds_of_few_and_of_many_sums_are_the_same() -> None:
    parts = [(DiscreteLaplace(Fraction(7)), 0.5), (DiscreteGaussian(Fraction(30)), 1.0)]
    variances = np.geomspace(1e-3, 1e5, 3000).reshape(30, 100)
    many = half_widths(variances, parts, 0.01)
    few = np.stack([half_widths(row, parts, 0.01) for row in variances])
    np.testing.assert_array_equal(few, many)
    assert half_widths(np.array(0.0), parts, 0.01) == 0
