"""Buffered matrices: within one percent, positive, and bounded by their squared norm."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.streaming import BLT, coefficients, decoder
from sfumato.streaming.toeplitz import root_norm

EXACT = [Fraction(math.comb(2 * k, k), 4**k) for k in range(400)]


@pytest.mark.parametrize("horizon", [1, 2, 17, 9_999, 10_000, 10_001, 300_000])
def test_the_norm_of_the_square_root(horizon: int) -> None:
    f = coefficients(horizon)
    assert root_norm(horizon) == pytest.approx(float(np.dot(f, f)), rel=1e-12)


@pytest.mark.parametrize(
    ("horizon", "buffers"),
    [(2**10, None), (2**14, 4), (2**14, None), (2**20, 5), (2**20, None), (10**7, None)],
)
def test_buffers_come_within_one_percent(horizon: int, buffers: int | None) -> None:
    blt = BLT.for_horizon(horizon, buffers)
    assert 0 <= blt.loss() < 0.01
    if horizon <= 2**14:  # both sums laid out
        b = blt.decoder()
        c = blt.coefficients()
        assert float(np.dot(b, b) * np.dot(c, c)) / root_norm(horizon) ** 2 - 1 == pytest.approx(
            blt.loss(), abs=1e-9
        )


@pytest.mark.parametrize("horizon", [1, 2, 3, 10, 1000, 20_000])
def test_buffered_strategies_are_positive_and_fall(horizon: int) -> None:
    blt = BLT.for_horizon(horizon)
    assert min(blt.omega) > 0
    assert min(blt.beta) > 0
    poles = [pole for pair in zip(blt.zeta, (*blt.theta, 0), strict=True) for pole in pair]
    assert poles == sorted(poles, reverse=True)
    for column in (blt.coefficients(), blt.decoder()):
        assert (column >= 0).all()
        assert (np.diff(column) <= 0).all()
    np.testing.assert_allclose(decoder(blt.coefficients()), blt.decoder(), atol=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 5, 60])
def test_the_squared_norm_bounds_the_exact_one(horizon: int) -> None:
    blt = BLT.for_horizon(horizon, 2)
    theta = [Fraction(x) for x in blt.theta]
    omega = [Fraction(x) for x in blt.omega]
    column = [Fraction(1)] + [
        sum(w * t**k for w, t in zip(omega, theta, strict=True)) for k in range(horizon - 1)
    ]
    exact = sum((c * c for c in column), Fraction(0))
    assert exact <= blt.squared_norm() <= exact * (1 + Fraction(1, 2**50))


def test_the_search_finds_the_same_again() -> None:
    from sfumato.streaming import toeplitz as blt

    first = blt._optimal.__wrapped__(5000, 3)
    assert first == blt._optimal.__wrapped__(5000, 3)
