"""Noise with a bound: its law, the least bound, and the worst way in which rows lie in cells."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.mechanisms.bounded_noise import TruncatedLaplace, bounded_law, farthest, unit_within
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.noise_sums import (
    Weighted,
    exact_half_width,
    half_widths,
    sum_half_width,
    weighted_half_widths,
)
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Limits, Unit
from sfumato.random import PublicSeed, current
from support.statistics import check_law, check_scale, masses, support

LAWS = [TruncatedLaplace(Fraction(b), k) for b, k in (("1", 14), ("4", 55), ("1/3", 2), ("9", 5))]
USUAL = ApproxDP("1", "1e-6")
ALPHAS = [0.5, 0.05, 1e-3, 1e-9]


def below(law: TruncatedLaplace, k: int) -> mpmath.mpf:
    """P(Z <= k) to 60 digits, from the masses."""
    b = mpmath.mpf(law.scale.numerator) / law.scale.denominator
    mass = [mpmath.exp(-abs(x) / b) for x in range(-law.bound, law.bound + 1)]
    return mpmath.fsum(mass[: max(0, k + law.bound + 1)]) / mpmath.fsum(mass)


# --- the least bound ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "rows", "bound"),
    [
        *(("add-remove", r, k) for r, k in ((1, 14), (2, 27), (4, 55), (12, 164))),
        *(("replace", r, k) for r, k in ((1, 27), (2, 53), (4, 107))),
    ],
)
def test_the_bound_is_the_known_one(relation: str, rows: int, bound: int) -> None:
    law = bounded_law(USUAL, Unit(rows, relation))  # type: ignore[arg-type]
    assert law == TruncatedLaplace(Fraction(rows * (1 + (relation == "replace"))), bound)


def only_one(law: TruncatedLaplace, moves: tuple[int, ...]) -> mpmath.mpf:
    """How likely an output is that the neighbour cannot have, to 60 digits."""
    return 1 - mpmath.fprod(below(law, law.bound - abs(move)) for move in moves)


LIMITED: list[tuple[int, Limits | None, tuple[int, ...]]] = [
    (1, None, (1,)),
    (5, None, (5,)),
    (5, Limits(rows_per_cell=1), (1,) * 5),
    (5, Limits(rows_per_cell=2), (2, 2, 1)),
    (6, Limits(rows_per_cell=3, cells_per_person=2), (3, 3)),
    (9, Limits(norm_per_person=3), (3, 3, 3)),
]
"""Rows, limits by cell, and the worst way to lie in cells, or one that is worse than any."""


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(("rows", "limits", "worst"), LIMITED, ids=str)
@pytest.mark.parametrize("cost", [USUAL, ApproxDP("0.3", "0.01"), ApproxDP("8", "0.4")], ids=str)
def test_the_bound_is_the_least_one_that_delta_allows(
    cost: ApproxDP, rows: int, limits: Limits | None, worst: tuple[int, ...], relation: str
) -> None:
    """Judged by sums of 60 digits, and not by the closed form that finds it."""
    more = {} if limits is None else {"person": "rider", "limits": limits}
    law = bounded_law(cost, Unit(rows, relation, **more))  # type: ignore[arg-type]
    moves = worst * (2 if relation == "replace" else 1)
    with mpmath.workdps(60):
        delta = mpmath.mpf(cost.delta.numerator) / cost.delta.denominator
        assert only_one(law, moves) <= delta
        narrower = TruncatedLaplace(law.scale, max(1, law.bound - 1))
        assert law.bound == max(worst) or only_one(narrower, moves) > delta


def excess(law: TruncatedLaplace, moves: tuple[int, ...], epsilon: float) -> float:
    """The delta of two products of shifted laws, in both directions, over all outputs."""
    width = law.bound + max(map(abs, moves))
    values = np.arange(-width, width + 1)
    one = other = np.ones(1)
    for move in moves:
        one = np.multiply.outer(one, masses(law, values)).ravel()
        other = np.multiply.outer(other, masses(law, values - move)).ravel()
    grown = math.exp(epsilon)
    return max(
        float(np.maximum(one - grown * other, 0).sum()),
        float(np.maximum(other - grown * one, 0).sum()),
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("cells", [1, 2, 3])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_no_way_to_lie_in_cells_exceeds_delta(most: int | None, cells: int, relation: str) -> None:
    """All ways to move three rows over up to three cells, and all outputs of each."""
    rows = 3
    cost = ApproxDP("1", "0.05")
    limits = {} if most is None else {"person": "rider", "limits": Limits(rows_per_cell=most)}
    law = bounded_law(cost, Unit(rows, relation, **limits))  # type: ignore[arg-type]
    found = {}
    for moves in itertools.product(range(-rows, rows + 1), repeat=cells):
        come = sum(move for move in moves if move > 0)
        go = -sum(move for move in moves if move < 0)
        is_possible = max(come, go) <= rows and max(map(abs, moves)) <= (most or rows)
        if is_possible and (relation == "replace" or not (come and go)):
            found[moves] = excess(law, moves, 1.0)
    assert max(found.values()) <= 0.05 * (1 + 1e-9)
    # The claim is tight: a bound that is smaller by one is not private.
    narrower = TruncatedLaplace(law.scale, law.bound - 1)
    worst = max(found, key=lambda moves: found[moves])
    fits = cells >= {None: 1, 1: 3, 2: 2}[most] * (2 if relation == "replace" else 1)
    assert not fits or excess(narrower, worst, 1.0) > 0.05


def test_less_noise_than_the_law_is_caught() -> None:
    law = bounded_law(USUAL, Unit())
    assert excess(law, (1,), 1.0) <= 1e-6
    assert excess(TruncatedLaplace(law.scale * Fraction(9, 10), law.bound), (1,), 1.0) > 1e-3
    assert excess(TruncatedLaplace(law.scale, law.bound - 1), (1,), 1.0) > 1.01e-6


def test_few_known_cells_allow_less_noise() -> None:
    persons = Unit(12, person="rider").counting_persons(12)
    within = unit_within(USUAL, persons, 2)
    assert within.counts_l1 == 2
    assert bounded_law(USUAL, within).bound < bounded_law(USUAL, persons).bound
    assert unit_within(USUAL, Unit(12), 2) == Unit(12)


@pytest.mark.parametrize(
    ("cost", "unit", "said"),
    [
        (PureDP(1), Unit(), "needs a delta"),
        (ZCDP("0.1"), Unit(), "needs a delta"),
        (ApproxDP(1, 0), Unit(), "needs a delta"),
        (ApproxDP(8, "0.5"), Unit(), "below 1/2"),
        (ApproxDP("0.01", "0.005"), Unit(), "half of epsilon"),
        (ApproxDP("1e-6", "1e-9"), Unit(10**6), "above 1,000,000,000"),
    ],
    ids=str,
)
def test_a_cost_that_buys_no_bound_is_refused(cost: object, unit: Unit, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        bounded_law(cost, unit)  # type: ignore[arg-type]


def test_extreme_costs_have_a_law_at_once() -> None:
    for epsilon, delta, rows in (
        ("1e-5", "1e-7", 1),
        ("1e9", "0.4", 1),
        ("0.001", "1e-4", 1000),
        ("0.001", "0.0004", 1000),
        ("100", "0.4", 10**8),
        ("1", "1e-18", 3),
    ):
        law = bounded_law(ApproxDP(epsilon, delta), Unit(rows))
        assert rows <= law.bound <= 10**9


def test_a_law_outside_of_its_range_is_refused() -> None:
    for scale, bound in ((Fraction(1), 0), (Fraction(1), 10**9 + 1), (Fraction(0), 3)):
        with pytest.raises(UsageError):
            TruncatedLaplace(scale, bound)


# --- draws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_follow_the_law_and_never_exceed_the_bound(law: TruncatedLaplace) -> None:
    draws = law.sample(400_000, PublicSeed(f"bounded {law}"))
    assert np.abs(draws).max() <= law.bound
    if law.scale > Fraction(1, 2):
        check_law(draws, law, near_miss=TruncatedLaplace(law.scale * Fraction(6, 5), law.bound))
    if law.bound > 3 * law.scale:
        check_scale(draws, law)


def test_ten_million_draws_are_within_the_bound() -> None:
    law = bounded_law(USUAL, Unit())
    draws = law.sample(10**7, current())
    assert np.abs(draws).max() <= 14
    # A law without a bound would have left it with probability 1 - e^-4 or more.
    assert 10**7 * math.exp(DiscreteLaplace(law.scale).log_tail(14)) > 4


def test_a_bound_on_noise_is_a_bound_on_sums() -> None:
    law = LAWS[0]
    assert farthest(law, 3) == 42
    assert farthest(DiscreteLaplace(law.scale), 3) == math.inf


# --- accuracy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_half_width_is_the_smallest(law: TruncatedLaplace, alpha: float) -> None:
    with mpmath.workdps(40):
        k = law.half_width(alpha)
        assert k <= law.bound
        assert 2 * (1 - below(law, k)) <= alpha * (1 + 1e-9)
        assert k == 0 or 2 * (1 - below(law, k - 1)) > alpha * (1 - 1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_moments_and_transform_are_those_of_the_masses(law: TruncatedLaplace) -> None:
    values = support(law)
    mass = masses(law, values)
    assert law.variance == pytest.approx((mass * values**2).sum(), rel=1e-12)
    assert law.moment(4) == pytest.approx((mass * values**4).sum(), rel=1e-12)
    angles = np.linspace(-4, 4, 101)
    direct = (mass * np.cos(np.outer(angles, values))).sum(axis=1)
    assert law.transform(angles) == pytest.approx(direct, abs=1e-13)
    # Without this, its sign would not be tested.
    assert law.bound > law.scale or (direct < 0).any()


def test_moments_of_wide_laws_are_those_of_the_density() -> None:
    law = TruncatedLaplace(Fraction(400_000), 2**20 + 1)
    x = np.arange(1, law.bound + 1, dtype=float)
    mass = np.exp(-x / float(law.scale))
    for power in (2, 4):
        direct = 2 * (mass * x**power).sum() / (1 + 2 * mass.sum())
        assert law.moment(power) == pytest.approx(direct, rel=1e-5)


def law_of_sum(law: TruncatedLaplace, draws: int) -> np.ndarray:
    """The masses of a sum, by convolution."""
    one = masses(law, support(law))
    found = np.ones(1)
    for _ in range(draws):
        found = np.convolve(found, one)
    return found


@pytest.mark.parametrize("draws", [2, 3, 24])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_half_widths_of_sums_are_exact(law: TruncatedLaplace, draws: int) -> None:
    mass = law_of_sum(law, draws)
    distance = np.abs(np.arange(len(mass)) - len(mass) // 2)
    for alpha in (0.05, 1e-3):
        k = sum_half_width(law, draws, alpha)
        assert k == exact_half_width([(law, draws)], alpha)
        assert mass[distance > k].sum() <= alpha * (1 + 1e-6)
        assert k == 0 or mass[distance >= k].sum() > alpha * (1 - 1e-6)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_half_widths_of_weighted_sums_hold_and_are_nearly_tight(law: TruncatedLaplace) -> None:
    values = support(law)
    mass = masses(law, values)
    weights = np.array([1.0, 0.37, 0.37])
    sums = np.add.outer(np.add.outer(values, 0.37 * values), 0.37 * values)
    together = np.multiply.outer(np.multiply.outer(mass, mass), mass)
    for alpha in (0.3, 0.05, 1e-3):
        half = float(weighted_half_widths([Weighted.of(law, weights)], alpha)[0])
        assert together[np.abs(sums) > half + 1e-9].sum() <= alpha
        assert half <= 1.74 * law.bound + 1e-9
        # At a few percent less, too much lies outside; steps of a narrow law are as wide as that.
        assert together[np.abs(sums) > 0.9 * half - 1].sum() > alpha


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_no_interval_is_wider_than_the_bound_of_its_sum(law: TruncatedLaplace) -> None:
    for draws in (1, 2, 5):
        assert sum_half_width(law, draws, 1e-9) <= draws * law.bound
        sums = Weighted.of(law, np.ones((1, 1)), np.array([[float(draws)]]))
        assert weighted_half_widths([sums], 1e-9)[0] <= draws * law.bound


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_bounds_by_the_law_without_a_bound_hold(law: TruncatedLaplace) -> None:
    mass = law_of_sum(law, 4)
    distance = np.abs(np.arange(len(mass)) - len(mass) // 2)
    for alpha in (0.3, 0.01, 1e-4):
        half = law.sum_half_width(np.array([4.0, 0.0]), alpha)
        assert mass[distance > half[0]].sum() <= alpha
        assert half[1] == 0
        variance = law.without_bound.variance * 4
        chernoff = half_widths(np.array([variance]), [(law, 1.0)], alpha)[0]
        assert mass[distance > chernoff].sum() <= alpha
