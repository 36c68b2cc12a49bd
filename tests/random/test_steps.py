"""Inversion of a finite law: every bit string of a small grain, and the law of the noise that selects keys."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.random import PublicSeed, truncated
from sfumato.random.steps import Steps
from support.enumeration import high_places, masses
from support.selection import curve

GRAIN = 4


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.1"), ("0.4", "0.03"), ("2", "0.4")])
def test_all_bit_strings(epsilon: str, delta: str) -> None:
    """The mass of all strings that lead to an outcome is its probability, up to the strings that want more bits."""
    e, d = Fraction(epsilon), Fraction(delta)
    steps = Steps(lambda depth: truncated.enclosed(e, d, depth), depth=GRAIN, word=GRAIN)
    law, undecided = masses(
        lambda bits: int(steps.draw(1, bits)[0]), depth=4 * GRAIN, places=high_places(GRAIN)
    )
    pi = curve(float(e), float(d))
    assert undecided < Fraction(len(pi), 2 ** (4 * GRAIN - 2))
    for outcome in range(len(pi) - 1):
        exact = pi[outcome + 1] - pi[outcome]
        assert float(law.get(outcome, 0)) <= exact + 1e-12
        assert float(law.get(outcome, 0) + undecided) >= exact - 1e-12


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
