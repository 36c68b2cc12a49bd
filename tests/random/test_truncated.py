"""The law of the noise that selects keys: its enclosures, its draws and its limits."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.random import PublicSeed, truncated
from support.selection import curve


def test_enclosures_are_narrow_and_nested() -> None:
    e, d = Fraction(1, 3), Fraction(1, 10**9)
    low, high = truncated.enclosed(e, d, 63)
    deeper = truncated.enclosed(e, d, 111)
    for a, b, c, f in zip(low, high, *deeper, strict=True):
        assert b - a <= 1
        assert a << 48 <= c <= f <= b << 48
    assert low[-1] == high[-1] == 1 << 63
    assert all(x < y for x, y in itertools.pairwise(low))


def test_the_law_of_many_draws() -> None:
    e, d = Fraction(1), Fraction(1, 100)
    drawn = truncated.sampler(e, d).draw(300_000, PublicSeed("steps"))
    pi = np.array(curve(1.0, 0.01))
    expected = np.diff(pi) * len(drawn)
    found = np.bincount(drawn, minlength=len(expected))
    assert len(found) == len(expected)
    assert float(((found - expected) ** 2 / expected).sum()) < 60


def test_limits() -> None:
    with pytest.raises(UsageError):
        truncated.shape(Fraction(1, 10**7), Fraction(1, 10**6))
    for delta in (Fraction(0), Fraction(1, 2)):
        with pytest.raises(UsageError):
            truncated.shape(Fraction(1), delta)
