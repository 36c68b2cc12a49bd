"""The square-root factorisation, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.streaming import (
    BLT,
    coefficients,
    decoder,
    dyadic_coefficients,
    squared_sensitivity,
)
from sfumato.streaming.toeplitz import convolve, inverse_series, root_norm


@pytest.mark.parametrize(
    "sizes", [(300_000, 300_000), (300_000, 140_000), (140_000, 300_000), (300_000, 40)]
)
def test_long_convolutions_are_cut_into_parts(sizes: tuple[int, int]) -> None:
    one, other = (np.random.default_rng(size).normal(size=size) for size in sizes)
    found = convolve(one, other, 300_000)
    assert len(found) == 300_000
    for at in (0, 1, 65_535, 99_999, 100_000, 139_999, 140_000, 200_001, 299_999):
        first = max(0, at + 1 - len(other))
        last = min(at + 1, len(one))
        wanted = float(np.dot(one[first:last], other[at + 1 - last : at + 1 - first][::-1]))
        assert found[at] == pytest.approx(wanted, abs=1e-8)


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
