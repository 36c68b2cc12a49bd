"""Inversion of a finite law on all bit strings, four bits at a time."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sfumato.random import truncated
from sfumato.random.finite import FiniteSampler
from support.enumeration import high_places, masses
from support.selection import curve

FEW = 4


class OnFourBits(FiniteSampler):
    FIRST_BITS = FEW
    MORE_BITS = FEW


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "0.1"), ("0.4", "0.03"), ("2", "0.4")])
def test_all_bit_strings(epsilon: str, delta: str) -> None:
    """The mass of all strings that lead to an outcome is its probability, up to the strings that
    want more bits.
    """
    e, d = Fraction(epsilon), Fraction(delta)
    sampler = OnFourBits(lambda depth: truncated.enclosed(e, d, depth))
    law, undecided = masses(
        lambda bits: int(sampler.draw(1, bits)[0]), depth=4 * FEW, places=high_places(FEW)
    )
    pi = curve(float(e), float(d))
    assert undecided < Fraction(len(pi), 2 ** (4 * FEW - 2))
    for outcome in range(len(pi) - 1):
        exact = pi[outcome + 1] - pi[outcome]
        assert float(law.get(outcome, 0)) <= exact + 1e-12
        assert float(law.get(outcome, 0) + undecided) >= exact - 1e-12
