"""The laws by sampling: chi-square at a false-alarm rate of 1e-9, with twins at 1.01 of the scale
that must fail.
"""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from benchmarks import peers
from sfumato.errors import UsageError
from sfumato.random import PublicSeed, current, discrete
from sfumato.random.discrete import (
    choice,
    gaussian,
    integer_below,
    laplace,
)
from support.bit_strings import TopBits, enumerate_masses

FALSE_ALARM = 1e-9
SCALES = [
    Fraction(2, 5),
    Fraction(1),
    Fraction(10, 3),
    Fraction(100),
    Fraction(129),
    Fraction(1000),
    Fraction(10**6),
]


def draw(law, scale, size):
    return (
        laplace(scale, size, current()) if law == "laplace" else gaussian(scale**2, size, current())
    )


def cumulative(law, scale, edges):
    """P(X < edge) for integer edges; the Gaussian one by summation, or by Euler-Maclaurin where
    that is exact to 1e-12.
    """
    if law == "laplace":
        q, below = math.exp(-1 / scale), edges <= 0
        tail = np.exp(-np.where(below, 1 - edges, edges) / float(scale)) / (1 + q)
        return np.where(below, tail, 1 - tail)
    if scale > 1000:
        return stats.norm.cdf((edges - 0.5) / float(scale))
    support = np.arange(-math.ceil(40 * scale) - 2, math.ceil(40 * scale) + 3)
    mass = np.exp(-(support**2) / (2 * float(scale) ** 2))
    return np.concatenate([[0], np.cumsum(mass) / mass.sum()])[np.searchsorted(support, edges)]


def chi_square(law, scale, drawn, bins=400):
    """Return the p-value of the draws under the law; bins hold at least 20 expected draws."""
    step = max(1, math.ceil(20 * scale / bins))
    reach = step * (bins // 2)
    edges = np.unique(
        np.clip(
            np.arange(-reach, reach + 1, step) - step // 2,
            -math.ceil(15 * scale),
            math.ceil(15 * scale),
        )
    )
    expected = np.diff(np.concatenate([[0.0], cumulative(law, scale, edges), [1.0]])) * drawn.size
    observed = np.bincount(np.searchsorted(edges, drawn, side="right"), minlength=expected.size)
    group = np.minimum(np.cumsum(expected), drawn.size - np.cumsum(expected)) >= 20
    groups = np.cumsum(
        np.concatenate([[False], (group[1:] != group[:-1]) | (group[1:] & (expected[1:] >= 20))])
    )
    expected, observed = np.bincount(groups, expected), np.bincount(groups, observed)
    keep = expected > 0.5
    assert observed[~keep].sum() <= 20
    statistic = ((observed - expected)[keep] ** 2 / expected[keep]).sum()
    return stats.chi2.sf(statistic, keep.sum() - 1)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_law(law, scale):
    drawn = draw(law, scale, 300_000)
    assert drawn.dtype == np.int64
    assert chi_square(law, scale, drawn) > FALSE_ALARM


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(100), Fraction(10**6)])
def test_a_scale_five_percent_off_is_noticed(law, scale):
    assert chi_square(law, scale, draw(law, scale * Fraction(21, 20), 300_000)) < FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES)
def test_ten_million_draws(law, scale):
    assert chi_square(law, scale, draw(law, scale, 10**7)) > FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", SCALES[1:])
def test_ten_million_draws_notice_one_percent(law, scale):
    assert chi_square(law, scale, draw(law, scale * Fraction(101, 100), 10**7)) < FALSE_ALARM


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000)])
def test_single_draws_follow_the_law_as_arrays_do(law, scale):
    drawn = np.concatenate([draw(law, scale, 1) for _ in range(20_000)])
    assert chi_square(law, scale, drawn, bins=60) > FALSE_ALARM


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("exponent", [10, 20, 40, 48])
def test_the_low_digits_of_wide_laws_are_uniform(law, exponent):
    drawn = draw(law, Fraction(2**exponent), 300_000)
    for part in (drawn & 63, drawn[drawn < 0] & 63, drawn[drawn >= 0] & 63):
        assert stats.chisquare(np.bincount(part, minlength=64)).pvalue > FALSE_ALARM
    assert (
        0.98
        < drawn.astype(float).std() / 2**exponent / (math.sqrt(2) if law == "laplace" else 1)
        < 1.02
    )


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 1000])
def test_uniform_integers(bound):
    drawn = [integer_below(bound, current()) for _ in range(20_000)]
    assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > FALSE_ALARM or bound == 1


def test_uniform_integers_of_many_bits():
    many = [integer_below(3 * 2**100, current()) for _ in range(2000)]
    assert 0 <= min(many) <= max(many) < 3 * 2**100
    assert (
        stats.chisquare(np.bincount([one >> 100 for one in many], minlength=3)).pvalue > FALSE_ALARM
    )


def test_choices():
    bits = current()
    picked = np.bincount([choice([1, 0, 3, 2**70], bits) for _ in range(200)], minlength=4)
    assert picked[3] == 200


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("size", [0, 1, 2, 2**15 - 1, 2**15, 2**15 + 1, 100_001])
def test_sizes_and_repeatability(law, size):
    for scale in (Fraction(2), Fraction(5000)):
        sample = laplace if law == "laplace" else gaussian
        first, second = sample(scale, size, PublicSeed(7)), sample(scale, size, PublicSeed(7))
        assert first.shape == (size,)
        assert np.array_equal(first, second)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**48 + 1), 2.5])
def test_scales_out_of_range_are_refused(scale):
    with pytest.raises(UsageError, match="scale"):
        laplace(scale, 1, current())
    with pytest.raises(UsageError, match="sigma_squared"):
        gaussian(scale * 2**49 if isinstance(scale, Fraction) else scale, 1, current())


def test_other_refusals():
    for refused in (
        lambda: laplace(Fraction(1), -1, current()),
        lambda: integer_below(0, current()),
        lambda: choice([], current()),
        lambda: choice([1, -1], current()),
        lambda: choice([3, -1, 1], current()),
    ):
        with pytest.raises(UsageError):
            refused()


def test_tiny_scales_need_no_deep_arithmetic():
    assert not laplace(Fraction(1, 10**12), 100_000, current()).any()
    assert not gaussian(Fraction(1, 10**12), 100_000, current()).any()


def test_memory_and_cache_stay_bounded():
    tracemalloc.start()
    try:
        laplace(Fraction(777), 10**6, current())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - 8 * 10**6 < 64 * 2**20
    assert discrete._sampler.cache_info().maxsize == 64


@pytest.mark.deep
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [1.0, 10.0, 1000.0])
def test_opendp_draws_from_the_same_law(law, scale):
    if peers.python("opendp") is None:
        pytest.skip(peers.absent("opendp"))
    theirs, wrong = (
        np.array(peers.ask("opendp", "samples", list[int], law=law, scale=one, size=200_000))
        for one in (scale, 1.1 * scale)
    )
    ours = draw(law, Fraction(scale), 200_000)
    edges = np.unique(np.quantile(ours, np.linspace(0, 1, 60)[1:-1]).astype(int))
    table = np.array(
        [
            np.bincount(np.searchsorted(edges, sample), minlength=edges.size + 1)
            for sample in (ours, theirs)
        ]
    )
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue > FALSE_ALARM
    table[1] = np.bincount(np.searchsorted(edges, wrong), minlength=edges.size + 1)
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue < FALSE_ALARM


@pytest.mark.parametrize("weights", [[1], [3, 0, 2], [1, 1, 1, 4]])
def test_every_bit_string_of_a_choice(weights):
    masses, undecided = enumerate_masses(
        lambda bits: discrete.choice(weights, bits), 12, lambda values: TopBits(values, 3)
    )
    for index, share in enumerate(weights):
        assert masses[index] <= Fraction(share, sum(weights)) <= masses[index] + undecided
    assert undecided < Fraction(1, 20)
