"""Keys of persons who hold several: what Gaussian noise with a threshold truly spends."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.mechanisms import gaussian_keys
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian, gaussian_key_law
from sfumato.mechanisms.thresholds import TruncatedGeometric, key_law, law_of_key_counts, released
from sfumato.privacy.measures import ZCDP, ApproxDP
from sfumato.privacy.unit import Limits, Neighbours, Unit
from sfumato.random import PublicSeed
from support import selection

EPSILON = 1.0
DELTA = 0.05
COST = ApproxDP("1", "0.05")
USUAL = ApproxDP("1", "1e-6")
RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
ALWAYS = 400
"""Rows of others with which a key is shown for sure."""

Counts = tuple[int, ...]


def pairs(keys: int, relation: Neighbours) -> Iterator[tuple[Counts, Counts]]:
    """A person has one row of each of ``keys`` keys; others have none, one, or many rows of each.

    Under replace there are as many keys again, which the other person has.
    """
    mine = (1,) * keys
    if relation == "add-remove":
        for others in product((0, 1, ALWAYS), repeat=keys):
            yield tuple(np.add(others, mine).tolist()), others
        return
    none = (0,) * keys
    for others in product((0, ALWAYS), repeat=2 * keys):
        one = tuple(np.add(others, mine + none).tolist())
        yield one, tuple(np.add(others, none + mine).tolist())


def law_of(keys: int, relation: Neighbours, cost: ApproxDP = COST) -> ThresholdGaussian:
    law = gaussian_key_law(cost, keys, relation)
    assert law is not None
    return law


@pytest.mark.parametrize(("keys", "relation"), [(1, "add-remove"), (2, "add-remove")])
def test_it_spends_no_more_than_it_claims(keys: int, relation: Neighbours) -> None:
    law = law_of(keys, relation)
    assert selection.worst(law, pairs(keys, relation), EPSILON) <= DELTA


def test_under_replace_two_persons_keys_count() -> None:
    """One key each; the law for one person's keys alone, add-remove, is not enough."""
    found = selection.worst(law_of(1, "replace"), pairs(1, "replace"), EPSILON)
    assert found <= DELTA
    # At sigma 2, the least there is, one key leaves room: the twin has the noise that it needs.
    twin = ThresholdGaussian(Fraction(2), law_of(1, "add-remove").tau)
    assert selection.worst(twin, pairs(1, "replace"), EPSILON) > DELTA


@pytest.mark.parametrize("keys", [2, 5, 12])
def test_a_threshold_one_lower_is_not_private(keys: int) -> None:
    """A person who alone has all their keys: one of them is shown too often."""
    for cost in (COST, USUAL, ApproxDP("0.3", "1e-5")):
        law = law_of(keys, "add-remove", cost)
        mass = selection.masses(law)

        def any_shown(tau: int, mass: dict[int, float] = mass) -> float:
            each = math.fsum(p for x, p in mass.items() if 1 + x >= tau)
            return -math.expm1(keys * math.log1p(-each))

        delta = float(cost.delta)
        assert any_shown(law.tau) <= delta
        # The noise was chosen so that this threshold is the least, for any that would do.
        lower = [
            ThresholdGaussian(law.sigma_squared * Fraction(factor), law.tau - 1)
            for factor in ("0.5", "0.8", "0.95", "1", "1.05", "1.2", "1.5")
        ]
        assert all(exact_delta(twin, keys, cost) > delta for twin in lower)


def exact_delta(law: ThresholdGaussian, keys: int, cost: ApproxDP) -> float:
    """The largest delta over how many keys the person has alone, by convolution."""
    mass = np.array(list(selection.masses(law).values()))
    values = np.array(list(selection.masses(law)))
    each = mass[1 + values >= law.tau].sum()
    top = values[-1]
    total = np.ones(1)
    spent = []
    for shared in range(keys + 1):
        if shared:
            total = np.convolve(total, mass)
        sums = np.arange(len(total)) - shared * top
        loss = (2 * sums + shared) / (2 * float(law.sigma_squared))
        epsilon = float(cost.epsilon)
        counts = (total * np.maximum(0, -np.expm1(epsilon - loss))).sum() if shared else 0.0
        spent.append(-math.expm1((keys - shared) * math.log1p(-each)) + counts)
    return float(max(spent))


@pytest.mark.parametrize("keys", [1, 3, 12])
def test_the_bound_is_the_exact_delta(keys: int) -> None:
    for cost in (COST, USUAL):
        law = law_of(keys, "add-remove", cost)
        noise = gaussian_keys._Noise(law.sigma_squared, cost, keys, "add-remove")
        exact = exact_delta(law, keys, cost)
        assert exact <= noise.delta(law.tau) <= exact * (1 + 1e-6)
        assert noise.delta(law.tau) <= float(cost.delta)


def test_less_noise_is_not_private() -> None:
    """The counts alone: the least variance is tight, and half the variance is far off."""
    least = gaussian_keys._least_variance(USUAL, 12)
    far = 10**6
    assert exact_delta(ThresholdGaussian(Fraction(least), far), 12, USUAL) <= 1e-6
    assert exact_delta(ThresholdGaussian(Fraction(least * 0.99), far), 12, USUAL) > 1e-6
    assert exact_delta(ThresholdGaussian(Fraction(least / 2), far), 12, USUAL) > 1e-5


@pytest.mark.parametrize("sigma", [1_999.0, 2_001.0, 5_000.0])
def test_wide_tails_are_within_their_slack(sigma: float) -> None:
    squared = sigma**2
    for least in (-100, 1, int(0.5 * sigma), int(3 * sigma), int(7 * sigma)):
        x = np.arange(least, int(20 * sigma), dtype=float)
        truth = math.fsum(np.exp(-(x**2) / (2 * squared))) / (sigma * math.sqrt(2 * math.pi))
        found, slack = gaussian_keys._tail(least, squared)
        assert slack <= 1e-5
        assert abs(found / truth - 1) <= slack


def test_many_keys_are_taken_in_blocks_that_leave_none_out() -> None:
    for keys in (1, 2, 31, 32, 33, 40, 1_000, 10**6):
        blocks = gaussian_keys._blocks(keys)
        assert blocks[0][0] == 0
        assert blocks[-1][1] == keys
        assert all(last + 1 == first for (_, last), (first, _) in pairwise(blocks))
        assert len(blocks) < 110
    small, blocked = (
        gaussian_keys._Noise(Fraction(900), USUAL, keys, "add-remove").delta(200)
        for keys in (32, 33)
    )
    assert small <= blocked


@pytest.mark.parametrize("relation", RELATIONS)
def test_noise_grows_with_the_root_of_the_keys(relation: Neighbours) -> None:
    few, many = (law_of(keys, relation, USUAL) for keys in (4, 400))
    assert math.sqrt(many.sigma_squared / few.sigma_squared) == pytest.approx(10, rel=0.1)


def test_no_law_where_the_proof_has_none() -> None:
    assert gaussian_key_law(ApproxDP("1", "0.3"), 3, "add-remove") is None
    assert gaussian_key_law(USUAL, 10**7, "add-remove") is None


@pytest.mark.parametrize(
    ("unit", "is_gaussian"),
    [
        (Unit(12, person="p", limits=Limits(rows_per_cell=1)), True),
        (Unit(12, "replace", "p", Limits(rows_per_cell=1)), True),
        (Unit(12, person="p", limits=Limits(rows_per_cell=1, cells_per_person=1)), False),
        (Unit(1, person="p", limits=Limits(rows_per_cell=1)), False),
        (Unit(12, person="p", limits=Limits(rows_per_cell=2)), False),
        (Unit(12, person="p", limits=Limits(norm_per_person=3)), False),
        (Unit(12, person="p"), False),
        (Unit(12), False),
    ],
    ids=str,
)
def test_gaussian_noise_needs_one_row_of_each_key(unit: Unit, is_gaussian: bool) -> None:
    law = law_of_key_counts(USUAL, unit)
    assert isinstance(law, ThresholdGaussian) == is_gaussian
    assert law.count_kept(0.5) <= key_law(USUAL, unit).count_kept(0.5)
    for rule in ("threshold", "stability"):
        assert law_of_key_counts(USUAL, unit, rule) == key_law(USUAL, unit, rule)


def test_a_cost_without_delta_is_refused_as_ever() -> None:
    unit = Unit(12, person="p", limits=Limits(rows_per_cell=1))
    with pytest.raises(UsageError, match="needs a delta"):
        law_of_key_counts(ZCDP("0.1"), unit)


def test_persons_with_very_many_keys_get_an_answer() -> None:
    """Each row has too little epsilon for the other law, which refuses."""
    cost = ApproxDP("0.1", "1e-6")
    unit = Unit(1_000, person="p", limits=Limits(rows_per_cell=1))
    with pytest.raises(UsageError, match="thousands of rows"):
        key_law(cost, unit)
    assert isinstance(law_of_key_counts(cost, unit), ThresholdGaussian)


def test_laws_that_show_keys_of_fewer_rows_are_taken() -> None:
    """For two keys the truncated law is the better one."""
    unit = Unit(2, person="p", limits=Limits(rows_per_cell=1))
    assert isinstance(law_of_key_counts(USUAL, unit), TruncatedGeometric)


@pytest.mark.parametrize("count", [70, 79, 95])
def test_keys_are_kept_as_often_as_the_curve_says(count: int) -> None:
    from scipy import stats

    law = law_of(12, "add-remove", USUAL)
    trials = 100_000
    places, values = released(np.full(trials, count), law, PublicSeed(f"gaussian keys {count}"))
    expected = float(law.kept(count))
    low = stats.binom.ppf(5e-10, trials, expected)
    high = stats.binom.isf(5e-10, trials, expected)
    assert low <= len(places) <= high
    assert values.min() >= law.threshold
    assert not len(released(np.zeros(50, np.int64), law, PublicSeed("none"))[0])


@pytest.mark.parametrize(
    ("squared", "tau"), [(Fraction(0), 9), (Fraction(1, 10**25), 9), (Fraction(4), 0)]
)
def test_no_law_without_noise_or_threshold(squared: Fraction, tau: int) -> None:
    with pytest.raises(UsageError):
        ThresholdGaussian(squared, tau)
    assert ThresholdGaussian(Fraction(1, 10**24), 1).threshold == 1


def test_the_curve_of_wide_noise_goes_on_where_it_is_computed_otherwise() -> None:
    """Below a sigma of 2000 masses are added up, above it the tail is that of the normal law."""
    narrow, wide = (ThresholdGaussian(Fraction(sigma**2), 9000) for sigma in (2000, 2001))
    counts = np.arange(1, 20_000, 97)
    assert wide.kept(counts) == pytest.approx(narrow.kept(counts), abs=1e-3)
    # Half a row is a whole step of the lattice: without it curves would differ by 1e-4 at once.
    twice = ThresholdGaussian(Fraction(4001**2), 18_000)
    half = narrow.kept(counts)
    assert twice.kept(2 * counts) == pytest.approx(half, abs=3e-4)
