"""The square root and its buffered approximation: coefficients, what they leave of the optimum, and speed to find them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import BLT, coefficients, decoder, dyadic_coefficients, squared_sensitivity
from sfumato.streaming.blt import root_norm
from sfumato.streaming.toeplitz import inverse_series

EXACT = [Fraction(math.comb(2 * k, k), 4**k) for k in range(400)]


def test_the_coefficients_are_those_of_the_square_root() -> None:
    f = coefficients(400)
    assert max(abs(Fraction(x) - y) / y for x, y in zip(f.tolist(), EXACT, strict=True)) < Fraction(
        400, 2**52
    )
    squared = [sum(EXACT[i] * EXACT[k - i] for i in range(k + 1)) for k in range(40)]
    assert squared == [1] * 40


@pytest.mark.parametrize("precision", [0, 1, 8, 16, 40, 48])
def test_dyadic_coefficients_are_the_nearest(precision: int) -> None:
    found = dyadic_coefficients(400, precision)
    wanted = [math.floor(x * 2**precision + Fraction(1, 2)) for x in EXACT]
    assert found.tolist() == wanted


@pytest.mark.parametrize(
    ("precision", "horizon", "loss"), [(12, 2**10, 3.1e-6), (12, 2**14, 4e-5), (16, 2**14, 2e-7)]
)
def test_what_rounding_the_strategy_costs(precision: int, horizon: int, loss: float) -> None:
    c = dyadic_coefficients(horizon, precision)
    b = decoder(c / 2**precision)
    product = float(np.dot(b, b)) * squared_sensitivity(c) / 4**precision
    assert product / root_norm(horizon) ** 2 - 1 < loss


def test_a_decoder_undoes_its_strategy() -> None:
    c = dyadic_coefficients(300, 12) / 2**12
    np.testing.assert_allclose(np.convolve(c, decoder(c))[:300], 1, atol=1e-12)
    np.testing.assert_allclose(np.convolve(c, inverse_series(c))[:300], np.eye(300)[0], atol=1e-12)


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
        b, c = blt.decoder(), blt.coefficients()
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
    theta, omega = [Fraction(x) for x in blt.theta], [Fraction(x) for x in blt.omega]
    column = [Fraction(1)] + [
        sum(w * t**k for w, t in zip(omega, theta, strict=True)) for k in range(horizon - 1)
    ]
    exact = sum((c * c for c in column), Fraction(0))
    assert exact <= blt.squared_norm() <= exact * (1 + Fraction(1, 2**50))


def test_the_search_finds_the_same_again() -> None:
    from sfumato.streaming import blt

    first = blt._optimal.__wrapped__(5000, 3)
    assert first == blt._optimal.__wrapped__(5000, 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: coefficients(0),
        lambda: coefficients(10**7 + 1),
        lambda: coefficients(2.0),
        lambda: dyadic_coefficients(3, 49),
        lambda: dyadic_coefficients(3, -1),
        lambda: BLT.for_horizon(0),
        lambda: BLT.for_horizon(True),
        lambda: BLT.for_horizon(10, 0),
        lambda: BLT.for_horizon(10, 13),
    ],
)
def test_refusals(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError):
        call()
