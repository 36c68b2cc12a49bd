"""Table inversion on all bit strings to some depth: the masses of its outcomes, as fractions, are
those of the law.

The code under test is the production code. Subclasses make its pieces of bits smaller, so that
ties, tails and rejections, which production meets once in 2**40 draws, happen in most branches of
the tree.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.random import PublicSeed
from sfumato.random.inversion import Law, Sampler
from support.bit_strings import OutOfBits, Pieces, disagreements, enumerate_masses, weight

REJECTED = "rejected"
OPEN = -(2**15)


class OnPieces(Sampler):
    """A sampler that asks a bit string for exactly the bits it needs."""

    def _lanes(self, bits, count):
        return np.array([bits.take(self.LANE_BITS) for _ in range(count)], dtype=np.uint16)

    def _more(self, bits, count):
        return np.array([bits.take(self.WORD_BITS) for _ in range(count)], dtype=np.uint64)

    def _offsets(self, bits, count):
        return np.array([bits.take(self.shift) for _ in range(count)], dtype=np.int64)

    def _lanes_and_offsets(self, bits, count):
        return [
            (bits.take(self.LANE_BITS), bits.take(self.shift) if self.shift else 0)
            for _ in range(count)
        ]


class FourThree(OnPieces):
    LANE_BITS = 4
    WORD_BITS = 3


class ThreeTwo(OnPieces):
    LANE_BITS = 3
    WORD_BITS = 2


class SixFour(OnPieces):
    LANE_BITS = 6
    WORD_BITS = 4


class FourThreeWide(FourThree):
    BLOCKS_BITS = 1


class FiveTwoWide(OnPieces):
    LANE_BITS = 5
    WORD_BITS = 2
    BLOCKS_BITS = 1


class FourFourWide(OnPieces):
    LANE_BITS = 4
    WORD_BITS = 4
    BLOCKS_BITS = 2


NARROW = [
    (FourThree, Law(1, Fraction(2, 3))),
    (ThreeTwo, Law(1, Fraction(1, 20))),
    (FourThree, Law(2, 2 * Fraction(5, 7))),
    (SixFour, Law(1, Fraction(5, 2))),
]
WIDE = [
    (FourThreeWide, Law(1, Fraction(3))),
    (FourThreeWide, Law(2, 2 * Fraction(19, 2))),
    (FiveTwoWide, Law(1, Fraction(9, 2))),
    (FourFourWide, Law(2, 2 * Fraction(30))),
]


# --- all bit strings ------------------------------------------------------------------------------


def one_trial(sampler):
    def run(bits):
        out = np.empty(1, dtype=np.int64)
        return REJECTED if sampler._try(out, bits).size else int(out[0])

    return run


def one_plain_trial(sampler):
    def run(bits):
        ((lane, offset),) = sampler._lanes_and_offsets(bits, 1)
        value = sampler._try_one(lane, offset, bits)
        return REJECTED if value is None else value

    return run


def one_draw(sampler):
    return lambda bits: int(sampler.draw(1, bits)[0])


def trial_law(sampler, values):
    """The weights that the proof gives one trial, and the rest."""
    with mpmath.workdps(60):
        width = 2**sampler.shift
        first = 1 if sampler.shift else mpmath.mpf(1) / 2
        others = mpmath.nsum(
            lambda interval: weight(sampler.law, int(interval) * width), [1, 4000], method="d"
        )
        total = first + others
        trial = {value: weight(sampler.law, abs(value)) / (2 * total * width) for value in values}
        one_side = mpmath.nsum(
            lambda value: weight(sampler.law, int(value)), [1, 4000 * width], method="d"
        )
        accepted = (2 * one_side + 1) / (2 * total * width)
        return trial | {REJECTED: 1 - accepted}


def check_trial(sampler, depth):
    masses, undecided = enumerate_masses(one_trial(sampler), depth)
    values = [value for value in masses if value != REJECTED]
    return disagreements(masses, undecided, trial_law(sampler, values)), undecided


@pytest.mark.parametrize(("sampler_of", "law"), NARROW)
def test_every_bit_string_of_a_narrow_law(sampler_of, law):
    shallow_wrong, shallow_undecided = check_trial(sampler_of(law), 10)
    wrong, undecided = check_trial(sampler_of(law), 19)
    assert shallow_wrong == wrong == []
    assert undecided < min(Fraction(1, 250), shallow_undecided / 10)


@pytest.mark.parametrize(("sampler_of", "law"), WIDE[:2])
def test_every_bit_string_of_a_wide_law(sampler_of, law):
    sampler = sampler_of(law)
    assert sampler.shift > 0
    wrong, undecided = check_trial(sampler, 15)
    assert wrong == []
    assert undecided < Fraction(1, 8)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sampler_of", "law", "depth"),
    [(*case, 30) for case in NARROW] + [(*case, 24) for case in WIDE],
)
def test_every_bit_string_deeper(sampler_of, law, depth):
    wrong, undecided = check_trial(sampler_of(law), depth)
    assert wrong == []
    assert undecided < Fraction(1, 100)


@pytest.mark.parametrize(("sampler_of", "law"), [NARROW[0], WIDE[0], WIDE[1]])
def test_a_draw_repeats_its_trial_until_it_is_accepted(sampler_of, law):
    sampler = sampler_of(law)
    masses, undecided = enumerate_masses(one_draw(sampler), 13)
    trial = trial_law(sampler, masses)
    with mpmath.workdps(60):
        accepted = {value: trial[value] / (1 - trial[REJECTED]) for value in masses}
    assert disagreements(masses, undecided, accepted) == []
    assert undecided < Fraction(1, 2)


@pytest.mark.parametrize(("sampler_of", "law"), NARROW + WIDE)
def test_a_trial_in_plain_integers_is_a_trial(sampler_of, law):
    """Bit string by bit string."""
    sampler = sampler_of(law)
    plain = enumerate_masses(one_plain_trial(sampler), 14)
    assert plain == enumerate_masses(one_trial(sampler), 14)


def test_a_few_draws_are_independent():
    sampler_of, law = NARROW[0]
    sampler = sampler_of(law)
    alone, open_alone = enumerate_masses(one_draw(sampler), 11)
    pairs, undecided = enumerate_masses(lambda bits: tuple(sampler.draw(2, bits).tolist()), 15)
    assert undecided < Fraction(1, 8)
    for (one, other), mass in pairs.items():
        assert mass <= (alone[one] + open_alone) * (alone[other] + open_alone)


# --- broken twins ---------------------------------------------------------------------------------


def skips_ties(sampler_of):
    """A broken twin: a lane and one word decide, ties or not."""

    class SkipsTies(sampler_of):
        def _refine(self, prefix, bits):
            interval = int(np.searchsorted(self._high, np.uint64(prefix), side="right"))
            return min(interval, len(self._high) - 1)

    return SkipsTies


def skips_exactness(sampler_of):
    """A broken twin: what the first bits of V leave open is completed with zeros."""

    class SkipsExactness(sampler_of):
        def _lengthen(self, prefix, depth, bits):
            return (prefix << 3, depth + 3) if depth < 30 else (prefix << 3 | 1, depth + 3)

    return SkipsExactness


@pytest.mark.parametrize(
    ("broken", "sampler_of", "law"),
    [
        (skips_ties, *NARROW[0]),
        (skips_ties, *NARROW[2]),
        (skips_ties, *WIDE[0]),
        (skips_exactness, *WIDE[0]),
    ],
)
def test_a_sampler_that_skips_a_refinement_is_caught(broken, sampler_of, law):
    wrong, _ = check_trial(broken(sampler_of)(law), 12)
    assert wrong


# --- arrays and plain integers, and how words are cut ---------------------------------------------


def test_arrays_decide_as_single_draws_do():
    for sampler_of, law in NARROW + WIDE:
        sampler = sampler_of(law)
        lanes = list(range(2**sampler.LANE_BITS))
        offsets = [lane % 2**sampler.shift for lane in lanes]
        out = np.empty(len(lanes), dtype=np.int64)
        # Open lanes want more bits than there are; what the others decided is in place by then.
        with contextlib.suppress(OutOfBits):
            sampler._try(out, Pieces([*lanes, *offsets] if sampler.shift else lanes))
        decided = sampler._decided[lanes] != OPEN
        singles = [
            int(sampler.draw(1, Pieces([lane, offset]))[0])
            for lane, offset, is_decided in zip(lanes, offsets, decided, strict=True)
            if is_decided
        ]
        assert out[decided].tolist() == singles


def with_shift(shift):
    """A production sampler as it would be for a law of such blocks."""
    sampler = Sampler(Law(1, Fraction(1)))
    sampler.shift = shift
    return sampler


class Counting:
    """Words that are all different."""

    def words(self, count):
        return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


class AllLanes:
    """Words whose lanes are 0, 1, 2, ..."""

    def words(self, count):
        return np.arange(4 * count, dtype=np.uint16).view(np.uint64)


@pytest.mark.parametrize("shift", [1, 9, 16, 17, 42])
def test_words_are_cut_into_uniform_pieces(shift):
    sampler = with_shift(shift)
    assert np.array_equal(np.sort(sampler._lanes(AllLanes(), 2**16)), np.arange(2**16))
    assert np.array_equal(sampler._more(Counting(), 5), Counting().words(5) >> np.uint64(16))
    top = np.uint64(64 - shift)
    if shift <= 16:
        offsets = sampler._offsets(AllLanes(), 2**16)
        assert np.array_equal(np.bincount(offsets), np.full(2**shift, 2 ** (16 - shift)))
    else:
        offsets = sampler._offsets(Counting(), 99)
        assert np.array_equal(offsets, (Counting().words(99) >> top).astype(np.int64))
    few = sampler._offsets(Counting(), 3)
    assert np.array_equal(few, (Counting().words(3) >> top).astype(np.int64))


@pytest.mark.parametrize("shift", [0, 9, 42])
def test_a_few_draws_take_words_of_their_own(shift):
    class Counted:
        def words(self, count):
            numbers = np.arange(count, dtype=np.uint64)
            return numbers << np.uint64(64 - 6) | numbers

    found = list(with_shift(shift)._lanes_and_offsets(Counted(), 3))
    assert [lane for lane, _ in found] == [0, 1, 2]
    expected = [(number << 58) >> 64 - shift for number in (3, 4, 5)] if shift else [0] * 3
    assert [offset for _, offset in found] == expected


@pytest.mark.parametrize("shift", [0, 1, 9, 42])
def test_one_draw_cuts_its_words_as_many_draws_do(shift):
    sampler = with_shift(shift)
    for seed in range(50):
        bits, same = PublicSeed(seed), PublicSeed(seed)
        lane = int(sampler._lanes(same, 1)[0])
        offset = int(sampler._offsets(same, 1)[0]) if shift else 0
        assert list(sampler._lanes_and_offsets(bits, 1)) == [(lane, offset)]
        assert bits.words(1) == same.words(1)


@pytest.mark.parametrize(
    "scale",
    [
        Fraction(1, 20),
        Fraction(1),
        Fraction(100),
        Fraction(127),
        Fraction(128),
        Fraction(10**6),
        Fraction(2**40),
    ],
)
@pytest.mark.parametrize("power", [1, 2])
def test_after_one_word_almost_nothing_is_open(power, scale):
    sampler = Sampler(Law(power, scale if power == 1 else 2 * scale**2))
    low, high = (ends.astype(object) for ends in (sampler._low[:-1], sampler._high))
    assert sum(high - low) + 2**63 - high[-1] < 2**63 / 2**36
    assert (sampler._decided == OPEN).mean() < 0.04
