"""Exact draws by weight: every bit string to some depth, all paths of the code, and the laws they
state.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.random import PublicSeed, current
from sfumato.random import discrete as weighted

DRAWS = 20_000


class Words:
    """Chosen 64-bit words, then zeros."""

    private = False

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken + [0] * (count - len(taken)), dtype=np.uint64)


def fits(draws, probabilities):
    """A chi-square with a false alarm once in 10^9; outcomes are merged until each expects five
    draws.
    """
    order = np.argsort(probabilities)
    expected, observed = (
        len(draws) * np.asarray(probabilities)[order],
        np.bincount(draws, minlength=len(probabilities))[order],
    )
    rare = np.searchsorted(np.cumsum(expected), 5) + 1
    expected, observed = (np.append(x[rare:], x[:rare].sum()) for x in (expected, observed))
    if len(expected) == 1 or expected[-1] < 1e-3:  # one outcome takes all
        return bool((observed >= expected - 1e-2).all())
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-9


@pytest.mark.parametrize("numerator", [0, 1, 5 << 52, 3 << 55, 700 << 55])
def test_survival(numerator):
    p = math.exp(-numerator / 2**55)
    one = np.array(
        [weighted.survives(numerator, 55, current()) for _ in range(DRAWS // 4)], dtype=int
    )
    many = weighted.surviving(np.full(DRAWS, numerator), 55, current()).astype(int)
    for draws in (one, many):
        assert (
            draws.sum() == len(draws) * round(p)
            if p in (0, 1) or p < 1e-200
            else fits(draws, [1 - p, p])
        )


def test_survival_is_decided_at_the_last_bit():
    """U just below and above exp(-1), where floating point cannot tell, and deeper bits must."""
    bits = 300
    low = int(Fraction(math.exp(-1)) * 2**53)
    exact = weighted.exp_minus(Fraction(1), bits)[0]
    prefix = exact >> bits - 53
    assert abs(prefix - low) <= 1
    rest = [exact >> bits - 53 - 64 * k & (2**64 - 1) for k in (1, 2, 3)]
    below, above = list(rest), list(rest)
    below[2] -= 1 << 20
    above[2] += 1 << 20
    assert weighted.survives(1 << 55, 55, Words(prefix << 11, *below))
    assert not weighted.survives(1 << 55, 55, Words(prefix << 11, *above))
    assert weighted.surviving(np.array([1 << 55]), 55, Words(prefix << 11, *below))[0]


@pytest.mark.parametrize(
    "numbers", [[1], [0, 0, 4], [1, 10, 100], [10**9, 0, 10**9], [1, *[0] * 127, 10**12]]
)
def test_an_index_by_exponential_follows_its_law(numbers):
    mass = np.array(numbers) * np.exp(-np.arange(len(numbers)))
    assert fits(
        np.array([weighted.index_by_exponential(numbers, current()) for _ in range(DRAWS // 4)]),
        mass / mass.sum(),
    )


def test_an_index_by_exponential_reaches_what_is_almost_never_drawn():
    numbers = [1, *[0] * 127, 1]
    assert (
        weighted.index_by_exponential(numbers, Words(2**64 - 1, 2**64 - 1, 2**64 - 1, 2**64 - 1))
        == 128
    )
    assert weighted.index_by_exponential(numbers, Words(2**64 - 1, 0)) == 0


@pytest.mark.parametrize(
    "weights",
    [
        [1.0],
        [0.0, 2.0, 0.0],
        [0.1, 0.2, 0.7],
        [1e-300, 1.0, 1e-5],
        [5e-324, 1e300],
        list(range(1, 40)),
    ],
)
def test_an_index_by_weight_follows_its_law(weights):
    weights = np.array(weights, dtype=float)
    assert fits(
        np.array([weighted.index_by_weight(weights, current()) for _ in range(DRAWS // 4)]),
        weights / weights.sum(),
    )
    exact = [
        weighted._index_by_weight_exactly(weights, int(current().words(1)[0]) >> 11, current())
        for _ in range(DRAWS // 4)
    ]
    assert fits(np.array(exact), weights / weights.sum())


def test_floats_and_integers_agree_on_every_prefix():
    weights = np.array([0.25, 1e-18, 0.5, 0.0, 0.25])
    for prefix in [*range(0, 2**53, 2**46 + 12345), 2**51 - 1, 2**51, 2**51 + 1, 2**53 - 1]:
        direct = weighted.index_by_weight(weights, Words(prefix << 11, 77))
        assert direct == weighted._index_by_weight_exactly(weights, prefix, Words(77))


def test_a_rare_entry_is_reached_through_deeper_bits():
    weights = np.array([1.0, 2.0**-100, 1.0])
    half = 2**52
    assert weighted.index_by_weight(weights, Words((half - 1) << 11, 2**64 - 1, 2**64 - 1)) in (
        0,
        1,
    )
    reached = {
        weighted._index_by_weight_exactly(weights, half - 1, Words(2**64 - 1, word))
        for word in (0, 2**63, 2**64 - 1)
    }
    assert 1 in reached


def test_sets_and_multisets_are_even():
    bits = PublicSeed(1)
    for pick, outcomes in ((weighted.subset, 10), (weighted.multiset, 35)):
        drawn = [tuple(pick(5, 3, bits)) for _ in range(DRAWS // 4)]
        names = sorted(set(drawn))
        assert len(names) == outcomes
        assert all(list(name) == sorted(name) and max(name) < 5 for name in names)
        assert fits(np.array([names.index(one) for one in drawn]), np.full(outcomes, 1 / outcomes))
