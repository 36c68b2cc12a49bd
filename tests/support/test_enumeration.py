"""The enumeration adds up to one and finds laws that are known."""

from fractions import Fraction

import mpmath
import pytest

from sfumato.random import integer_below
from support.enumeration import OutOfBits, ReplayBits, high_places, masses


def test_words_are_replayed_at_their_places():
    bits = ReplayBits((1, 0, 1, 1), high_places(2))
    assert [int(word) for word in bits.words(2)] == [2 << 62, 3 << 62]
    with pytest.raises(OutOfBits) as wanted:
        bits.words(3)
    assert wanted.value.missing == 6


def test_a_sampler_that_never_stops_leaves_its_mass_undecided():
    def heads(bits):
        tosses = 0
        while not int(bits.words(1)[0]):
            tosses += 1
        return tosses

    law, undecided = masses(heads, 10, high_places(1))
    assert law == {i: Fraction(1, 2 ** (i + 1)) for i in range(10)}
    assert undecided == Fraction(1, 2**10)


def test_a_bounded_integer_is_uniform():
    law, undecided = masses(lambda bits: integer_below(3, bits), 16, high_places(2))
    assert law[0] == law[1] == law[2]
    assert sum(law.values()) + undecided == 1
    assert undecided == Fraction(1, 4**8)


def test_a_coin_of_a_known_probability():
    law, undecided = masses(lambda bits: integer_below(7, bits) < 3, 15, high_places(3))
    assert law[True] <= Fraction(3, 7) <= law[True] + undecided
    assert undecided < Fraction(1, 20)


def test_a_wrong_coin_is_noticed():
    law, undecided = masses(lambda bits: bool(int(bits.words(1)[0]) >> 61 < 5), 12, high_places(3))
    assert not law[True] <= mpmath.exp(-mpmath.mpf(1) / 2) <= law[True] + undecided
