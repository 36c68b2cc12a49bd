"""Laws of sums of draws against plain convolution, and shapes of trees against the binary one."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.counters.laplace_sums import (
    _chernoff,
    _tails,
    laplace_sum_half_width,
    laplace_sum_log_tail,
    mixed_half_widths,
)
from sfumato.counters.tree import ElderTree, radices_for
from sfumato.mechanisms.noise import DiscreteLaplace


def convolved(draws, reach=3000):
    """P(|sum| > k) for k = 0, 1, ..., by adding up products."""
    x, law = np.arange(-reach, reach + 1), np.ones(1)
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
    found, bounds = mixed_half_widths(draws, alphas), _chernoff(draws, alphas)
    for alpha, half, bound in zip(alphas, found, bounds, strict=True):
        exact = int(np.argmax(tails <= alpha))
        assert exact <= half <= exact + 1
        assert exact <= bound <= 3 * exact + 5
    faint, rare = mixed_half_widths(draws, np.array([1e-15, 1e-9]))
    assert faint >= rare


def test_wide_draws_lose_little():
    wide, narrow = (
        ((Fraction(10**9), 3), (Fraction(2 * 10**9), 2)),
        ((Fraction(1000), 3), (Fraction(2000), 2)),
    )
    assert _tails(wide)[0] > 1
    (far,), (near,) = (mixed_half_widths(draws, np.array([0.05])) for draws in (wide, narrow))
    assert 0.999 <= far / 10**6 / near < 1.01


@pytest.mark.parametrize(
    ("horizon", "least"), [(365, 5.9), (2**10, 7.4), (2**14, 7.8), (2**20, 8.0)]
)
def test_elder_trees_beat_the_binary_one(horizon, least):
    """Largest variance over the horizon, with L1 = levels in both; the binary tree adds one draw per set bit."""
    radices = radices_for(horizon)
    steps, levels = np.arange(1, horizon + 1), horizon.bit_length()
    ones = np.zeros(horizon, dtype=int)
    for bit in range(levels):
        ones += steps >> bit & 1
    edges = ElderTree(horizon, radices, DiscreteLaplace(Fraction(1))).edges(steps)
    assert least < ones.max() * levels**2 / (edges.max() * (len(radices) + 1) ** 2)


@pytest.mark.parametrize("radices", [(), (3,), (3, 5), (7, 3), (3, 3, 3)], ids=str)
def test_paths(radices):
    """Every place hangs on one elder, a block away; no step lies under more draws than there are levels; what is stored suffices."""
    tree = ElderTree(60, radices, DiscreteLaplace(Fraction(1)))
    elder = {}
    for step in range(1, 61):
        path = [0, *tree.path(step)]
        assert path[-1] == step
        assert len(path) - 1 == tree.edges(np.array([step]))[0]
        for before, place in pairwise(path):
            assert elder.setdefault(place, before) == before
            assert abs(place - before) in tree.blocks
    for moment in range(1, 61):
        lies_under = sum(min(ends) < moment <= max(ends) for ends in elder.items())
        assert lies_under <= tree.levels
