"""Enclosures hold the true values, which mpmath computes to more digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from sfumato.random.inversion import Law, cumulative_law, exp_minus
from support.bit_strings import weight


@pytest.mark.parametrize(
    "exponent",
    [
        Fraction(0),
        Fraction(1, 10**30),
        Fraction(1, 3),
        Fraction(1),
        Fraction(355, 113),
        Fraction(40),
        Fraction(10**6),
    ],
)
@pytest.mark.parametrize("depth", [3, 63, 200])
def test_exponentials_lie_in_their_enclosures(exponent, depth):
    low, high = exp_minus(exponent, depth)
    with mpmath.workdps(120):
        exact = (
            mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
            * mpmath.mpf(2) ** depth
        )
        assert low <= exact <= high
    assert high - low <= (exponent > 0)


@pytest.mark.parametrize(
    "law", [Law(1, Fraction(100)), Law(2, Fraction(200)), Law(1, Fraction(1, 9))]
)
def test_cumulative_laws_lie_in_their_enclosures(law):
    low, high = cumulative_law(law, 0, 63)
    with mpmath.workdps(60):
        total = mpmath.mpf(1) / 2 + mpmath.nsum(
            lambda interval: weight(law, int(interval)),
            [1, 12000 if law.power == 1 else 400],
            method="d",
        )
        cumulative = mpmath.mpf(1) / 2
        for interval in range(len(low)):
            cumulative += weight(law, interval) if interval else 0
            assert low[interval] <= cumulative / total * 2**63 <= high[interval]
