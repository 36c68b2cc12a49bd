"""Half-widths of sums and shares of independent counts: they hold, and are nearly tight."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import signal

from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.histogram.table_noise import IndependentNoise, _fourth_moment
from sfumato.random import PublicSeed
from support.statistics import masses, support

LAWS: list[Law] = [
    DiscreteLaplace(Fraction(3, 2)),
    DiscreteLaplace(Fraction(40)),
    DiscreteGaussian(Fraction(100)),
]
RUNS = 20_000
ALLOWED = 0.05 + 6 * np.sqrt(0.05 * 0.95 / RUNS)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sums_over_other_axes(law: Law) -> None:
    noise = IndependentNoise(law, (4, 6))
    draws = law.sample(RUNS * 24, PublicSeed(f"sums {law}")).reshape(RUNS, 4, 6)
    for keep, sums in (((), draws.sum(axis=(1, 2))), ((0,), draws.sum(axis=2)[:, 0])):
        half = noise.sum_half_widths(keep, 0.05)
        assert (np.abs(sums) > half).mean() <= ALLOWED
        assert (np.abs(sums) > half - 1).mean() > 0.04
        assert half <= 1.05 * np.quantile(np.abs(sums), 0.95) + 1
    assert noise.sum_half_widths((0, 1), 0.05) == law.half_width(0.05)
    assert noise.balance_half_widths(1, 6, 0.05) == noise.sum_half_widths((), 0.05)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("cells", [(1, 1), (1, 40), (12, 3)], ids=str)
def test_shares_at_every_share(law: Law, cells: tuple[int, int]) -> None:
    size = sum(cells)
    noise = IndependentNoise(law, (size,))
    part = np.arange(size) < cells[0]
    draws = law.sample(RUNS * size, PublicSeed(f"shares {law} {cells}")).reshape(RUNS, size)
    a = draws[:, part].sum(axis=1)
    b = draws[:, ~part].sum(axis=1)
    shares = np.array([0.0, 1e-4, 0.013, 0.1, 0.31, 0.5, 0.69, 0.97, 1.0])
    half = noise.part_pencil(part, np.ones(size, bool), 0.05)(shares)
    for p, each in zip(shares.tolist(), half.tolist(), strict=True):
        error = np.abs((1 - p) * a - p * b)
        assert (error > each + 1e-9).mean() <= ALLOWED
        # Next to a whole number of steps a quantile is one step off.
        step = max(p, 1 - p)
        assert each <= 1.05 * np.quantile(error, 0.95) + step
    if cells[0] == 1:
        assert noise.share_half_widths(shares, 0.05).tolist() == half.tolist()


def test_half_the_noise_is_noticed() -> None:
    law = LAWS[1]
    draws = law.sample(RUNS * 20, PublicSeed("near miss")).reshape(RUNS, 20)
    narrow = IndependentNoise(DiscreteLaplace(Fraction(36)), (20,))
    assert (np.abs(draws.sum(axis=1)) > narrow.sum_half_widths((), 0.05)).mean() > ALLOWED
    share = np.abs(0.7 * draws[:, 0] - 0.3 * draws[:, 1:].sum(axis=1))
    assert (share > narrow.share_half_widths(np.array([0.3]), 0.05)[0]).mean() > ALLOWED


@pytest.mark.parametrize("law", [*LAWS, TruncatedLaplace(Fraction(3), 9)], ids=str)
@pytest.mark.parametrize("terms", [1, 2, 3])
def test_fourth_moments_of_sums_are_those_of_their_law(law: CountLaw, terms: int) -> None:
    values = support(law, 60)
    one = masses(law, values)
    whole = one
    for _ in range(terms - 1):
        whole = signal.fftconvolve(whole, one)
    reach = len(whole) // 2
    true = float((whole * np.arange(-reach, reach + 1.0) ** 4).sum())
    found = _fourth_moment(law, terms)
    if isinstance(law, DiscreteGaussian):  # a bound that is at most that of any such law
        assert true <= found <= 16 / 3 * true * (1 + 1e-6)
    else:
        assert found == pytest.approx(true, rel=1e-6)
