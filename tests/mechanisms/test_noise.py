"""Laws of noise against exact tails, and draws against the laws."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import signal

from sfumato.audit.runs import Scripted
from sfumato.basics.numbers import sidak
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    add_noise,
    count_law,
    exceeds,
    unit_of_table,
)
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Limits, Unit
from sfumato.random import PublicSeed
from support.statistics import check_coverage, check_law, check_scale, masses, support

LAPLACE = [DiscreteLaplace(Fraction(b)) for b in ("1/5", "1", "10", "1000/3", "100000")]
GAUSSIAN = [DiscreteGaussian(Fraction(s)) for s in ("1/4", "1", "100", "1000000")]
ALPHAS = [0.5, 0.05, 1e-3, 1e-9]


def tail(law, k):
    """P(|Z| > k) to 40 digits."""
    with mpmath.workdps(40):
        if isinstance(law, DiscreteLaplace):
            q = mpmath.exp(-mpmath.mpf(law.scale.denominator) / law.scale.numerator)
            return 2 * q ** (k + 1) / (1 + q)
        spread = 2 * mpmath.mpf(law.sigma_squared.numerator) / law.sigma_squared.denominator
        top = math.ceil(20 * law.sigma) + 5
        mass = [mpmath.exp(-(x * x) / spread) for x in range(top)]
        return 2 * mpmath.fsum(mass[k + 1 :]) / (2 * mpmath.fsum(mass) - 1)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("law", LAPLACE + GAUSSIAN[:3], ids=str)
def test_the_half_width_is_the_smallest(law, alpha):
    k = law.half_width(alpha)
    assert tail(law, k) <= alpha * (1 + 1e-12)
    assert k == 0 or tail(law, k - 1) > alpha * (1 - 1e-12)


def test_half_widths_of_wide_gaussians_hold_and_waste_at_most_two():
    narrow, wide = DiscreteGaussian(Fraction(10**8)), DiscreteGaussian(Fraction(10**8 + 1))
    for alpha in ALPHAS:
        assert 0 <= wide.half_width(alpha) - narrow.half_width(alpha) <= 2


@pytest.mark.parametrize(("epsilon", "k"), [("0.1", 60), ("0.2", 30), ("0.5", 12), ("1", 6)])
def test_half_widths_of_the_source(epsilon, k):
    assert count_law(PureDP(epsilon), Unit(neighbours="replace")).half_width(0.05) == k


@pytest.mark.parametrize("law", LAPLACE[:4] + GAUSSIAN[:3], ids=str)
def test_variance(law):
    values = support(law)
    assert law.variance == pytest.approx(
        (masses(law, values) * values.astype(float) ** 2).sum(), rel=1e-9
    )


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
def test_noise_that_cannot_be_drawn_is_no_law(law):
    """Refused when the law is chosen, before anything is charged."""
    power = 2 if law is DiscreteGaussian else 1
    for scale in (Fraction(0), Fraction(-1), Fraction(1, 10 ** (12 * power)) / 2):
        with pytest.raises(UsageError, match="noise of"):
            law(scale)
    with pytest.raises(UsageError, match="noise of"):
        law(Fraction(2 ** (48 * power) + 1))
    assert law(Fraction(2 ** (48 * power))).half_width(0.05) > 2**48


def test_noise_that_is_next_to_nothing():
    law = DiscreteLaplace(Fraction(1, 2000))
    assert (law.variance, law.half_width(0.05)) == (0.0, 0)
    assert law.sum_half_width(np.array([5.0]), 0.05).tolist() == [0.0]


# Integer weights are whole cells; halves and tenths are cut ones. Weighted sums are convolved on
# the lattice of tenths.
WEIGHTS = [[1.0], [1.0] * 4, [1.0] * 40, [0.5, 0.5], [0.1, 1.0, 0.5], [0.1]]


def quantile(law, weights, alpha):
    """The smallest half-width of a weighted sum, by exact convolution on tenths."""
    total = np.ones(1)
    for weight in weights:
        one = np.zeros(2 * round(10 * weight) * (len(support(law, 40)) // 2) + 1)
        one[:: round(10 * weight)] = masses(law, support(law, 40))
        total = signal.convolve(total, one)
    middle = len(total) // 2
    above = (
        2 * np.cumsum(total[:middle:-1])[::-1]
    )  # from middle + 1 on: P(|sum| > 0), P(|sum| > .1), ...
    return float(np.argmax(above <= alpha)) / 10


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda w: f"{len(w)} of {w[0]}")
@pytest.mark.parametrize("law", [LAPLACE[1], LAPLACE[2], GAUSSIAN[1], GAUSSIAN[2]], ids=str)
def test_sums_of_noise_are_covered_and_not_wastefully(law, weights, alpha):
    effective = sum(w * w for w in weights)
    bound = float(law.sum_half_width(np.array([effective]), alpha)[0])
    exact = quantile(law, weights, alpha)
    assert bound >= exact
    # A Chernoff bound pays most on a single number, twice the exact half-width, and less the more
    # are added.
    if min(weights) == 1.0:
        assert bound <= (2 if len(weights) == 1 else 1.6) * exact + 2


def test_sums_of_nothing_and_of_many_shapes():
    for law in (LAPLACE[2], GAUSSIAN[2]):
        half = law.sum_half_width(np.array([[0.0, 1.0], [4.0, 1.0]]), 0.05)
        assert half.shape == (2, 2)
        assert half[0, 0] == 0
        assert half[0, 1] == half[1, 1] < half[1, 0]


@pytest.mark.parametrize(
    "unit",
    [
        Unit(),
        Unit(rows_per_person=3),
        Unit(neighbours="replace"),
        Unit(rows_per_person=3, neighbours="replace"),
    ],
    ids=str,
)
def test_scales_are_exact(unit):
    assert count_law(PureDP("1/3"), unit) == DiscreteLaplace(Fraction(3 * unit.counts_l1))
    assert count_law(ApproxDP("1/3", "1e-6"), unit) == count_law(PureDP("1/3"), unit)
    assert count_law(ZCDP("1/3"), unit) == DiscreteGaussian(Fraction(3 * unit.counts_l2_squared, 2))


def test_a_table_of_few_cells_has_the_noise_of_what_a_person_can_have_there():
    unit = Unit(100, person="rider", limits=Limits(norm_per_person=10))
    for cost, cells in ((PureDP(1), 4), (ZCDP(1), 4), (PureDP(1), 10**6)):
        within = unit_of_table(cost, unit, cells)
        least = count_law(cost, unit.on_cells(cells)).variance
        # The unit that is stated changes only where it allows less noise.
        assert count_law(cost, within).variance == least
        assert (within == unit) == (least == count_law(cost, unit).variance)
    assert unit_of_table(PureDP(1), unit, 4) != unit


@pytest.mark.parametrize(("noise", "above"), [(-1, False), (0, False), (1, True)])
def test_a_noisy_count_that_reaches_its_limit_does_not_exceed_it(noise, above):
    found = exceeds(np.array([5, 7]), LAPLACE[1], np.array([5, 7]), Scripted((noise, -9)))
    assert found.tolist() == [above, False]


def test_simultaneous_error():
    assert (1 - sidak(0.05, 100)) ** 100 == pytest.approx(0.95, rel=1e-12)
    assert sidak(0.05, 1) == sidak(0.05, 0) == pytest.approx(0.05, rel=1e-12)
    lam = 2 / 0.1
    for cells, accuracy in ((1, 59.91464547), (16, 114.88772917), (100, 151.51243781)):
        assert lam * math.log(1 / sidak(0.05, cells)) == pytest.approx(accuracy, abs=1e-8)


def test_noise_is_added_and_counts_are_left_alone():
    counts = np.arange(6).reshape(2, 3)
    noisy = add_noise(counts, LAPLACE[1], Scripted((1, -2, 3, 0, 5, 6)))
    assert noisy.tolist() == [[1, -1, 5], [3, 9, 11]]
    assert noisy.dtype == np.int64
    assert counts.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("law", LAPLACE[1:4] + GAUSSIAN[1:3], ids=str)
def test_draws(law):
    draws = law.sample(10**6, PublicSeed(f"draws of {law}"))
    check_scale(
        draws,
        law,
        near_miss=Fraction(101, 100) if isinstance(law, DiscreteGaussian) else Fraction(102, 100),
    )
    check_law(draws, law)


@pytest.mark.parametrize("law", LAPLACE[1:] + GAUSSIAN[1:], ids=str)
def test_coverage_is_the_laws_own(law):
    k = law.half_width(0.05)
    values = support(law)
    exact = float(masses(law, values)[np.abs(values) <= k].sum())
    hits = int((np.abs(law.sample(200_000, PublicSeed(f"coverage of {law}"))) <= k).sum())
    assert exact >= 0.95 - 1e-12
    check_coverage(hits, 200_000, exact, near_miss=0.005, false_alarm=6.3e-5)


def test_what_rules_of_thumb_call_epsilon():
    assert count_law(PureDP("0.25"), Unit()).effective_epsilon == 0.25
    assert count_law(PureDP("0.25"), Unit(5)).effective_epsilon == 0.05
    gaussian = count_law(ZCDP("0.005"), Unit())
    assert DiscreteLaplace(1 / Fraction(gaussian.effective_epsilon)).variance == pytest.approx(
        gaussian.variance, rel=1e-2
    )
