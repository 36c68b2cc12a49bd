"""Sums of discrete Laplace draws against convolutions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.questions.counters.tree import (
    _chernoff,
    _tails,
    laplace_sum_half_width,
    laplace_sum_log_tail,
    mixed_half_widths,
)


def convolved(draws, reach=3000):
    """P(|sum| > k) for k = 0, 1, ..., by adding up products."""
    x = np.arange(-reach, reach + 1)
    law = np.ones(1)
    for scale, n in draws:
        mass = np.exp(-np.abs(x) / float(scale))
        for _ in range(n):
            law = np.convolve(law, mass / mass.sum())
            middle = len(law) // 2
            law = law[max(0, middle - reach) : middle + reach + 1]
    return 2 * np.append(np.cumsum(law[::-1])[::-1][len(law) // 2 + 1 :], 0)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)], ids=str)
@pytest.mark.parametrize("n", [1, 2, 9])
def test_sums_of_equal_draws(scale, n):
    tails = convolved([(scale, n)])
    for k in (0, 1, 5, 40, 300):
        if tails[k] > 1e-12:
            assert math.exp(laplace_sum_log_tail(scale, n, k)) == pytest.approx(tails[k], rel=1e-4)
    for alpha in (0.5, 0.05, 1e-6):
        assert laplace_sum_half_width(scale, n, alpha) == int(np.argmax(tails <= alpha))


@pytest.mark.parametrize(
    "draws",
    [
        ((Fraction(3), 2), (Fraction(5), 1), (Fraction(9), 4)),
        ((Fraction(1, 3), 1), (Fraction(20), 2)),
    ],
    ids=str,
)
def test_sums_of_unequal_draws(draws):
    tails = convolved(draws)
    alphas = np.array([0.3, 0.05, 1e-4, 1e-8])
    found = mixed_half_widths(draws, alphas)
    bounds = _chernoff(draws, alphas)
    for alpha, half, bound in zip(alphas, found, bounds, strict=True):
        exact = int(np.argmax(tails <= alpha))
        assert exact <= half <= exact + 1
        assert exact <= bound <= 3 * exact + 5
    faint, rare = mixed_half_widths(draws, np.array([1e-15, 1e-9]))
    assert faint >= rare


def test_wide_draws_lose_little():
    wide = ((Fraction(10**9), 3), (Fraction(2 * 10**9), 2))
    narrow = ((Fraction(1000), 3), (Fraction(2000), 2))
    assert _tails(wide)[0] > 1
    (far,), (near,) = (mixed_half_widths(draws, np.array([0.05])) for draws in (wide, narrow))
    assert 0.999 <= far / 10**6 / near < 1.01
