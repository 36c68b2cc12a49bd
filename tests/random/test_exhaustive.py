"""Run the samplers over all bit strings to some depth, and compare the masses, as fractions, with the law.

The code under test is the production code: only the numbers of bits looked at together are smaller (``Grain``), so that
ties, tails and rejections, which production meets once in 2**40 draws, happen in most branches of the tree.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from sfumato.random import discrete
from sfumato.random.bits import PublicSeed
from sfumato.random.enclosure import Law, exp_minus, ladder
from sfumato.random.inversion import Grain, Sampler

REJECTED = "rejected"


class Unscripted(Exception):
    """The branch wants more bits than the script holds."""

    def __init__(self, width):
        self.width = width


class Script:
    """Bits that are read off a branch of the tree."""

    private = False

    def __init__(self, values):
        self.values = list(values)

    def take(self, width):
        if not self.values:
            raise Unscripted(width)
        return self.values.pop(0)


class TreeGrain(Grain):
    """A grain that asks the script for exactly the bits it needs."""

    def lanes(self, bits, count):
        return np.array([bits.take(self.lane) for _ in range(count)], dtype=np.uint16)

    def more(self, bits, count):
        return np.array([bits.take(self.word) for _ in range(count)], dtype=np.uint64)

    def places(self, bits, count, shift):
        return np.array([bits.take(shift) for _ in range(count)], dtype=np.int64)

    def few(self, bits, count, shift):
        return [(bits.take(self.lane), bits.take(shift) if shift else 0) for _ in range(count)]


class TreeBits(Script):
    """Whole words of which only the top bits vary: for code that takes its words directly."""

    def __init__(self, values, width):
        super().__init__(values)
        self.width = width

    def words(self, count):
        return np.array(
            [self.take(self.width) << 64 - self.width for _ in range(count)], dtype=np.uint64
        )


def enumerate_masses(run, depth, script=Script):
    """Return the mass of every outcome over all bit strings of at most ``depth`` bits, and the undecided mass."""
    masses, undecided, branches = defaultdict(Fraction), Fraction(0), [((), 0)]
    while branches:
        values, length = branches.pop()
        try:
            masses[run(script(values))] += Fraction(1, 2**length)
        except Unscripted as wish:
            if length + wish.width > depth:
                undecided += Fraction(1, 2**length)
            else:
                branches += [
                    ((*values, value), length + wish.width) for value in range(2**wish.width)
                ]
    assert sum(masses.values()) + undecided == 1
    return masses, undecided


def one_trial(sampler):
    def run(bits):
        out = np.empty(1, dtype=np.int64)
        return REJECTED if sampler._trial(out, bits).size else int(out[0])

    return run


def one_plain_trial(sampler):
    def run(bits):
        ((lane, place),) = sampler.grain.few(bits, 1, sampler.shift)
        value = sampler._try(lane, place, bits)
        return REJECTED if value is None else value

    return run


def one_draw(sampler):
    return lambda bits: int(sampler.draw(1, bits)[0])


def weight(law, distance):
    with mpmath.workdps(60):
        return mpmath.exp(
            -(mpmath.mpf(distance) ** law.power) * law.spread.denominator / law.spread.numerator
        )


def trial_law(sampler, values):
    """The weights that the proof gives one trial, and the rest."""
    with mpmath.workdps(60):
        width = 2**sampler.shift
        total = mpmath.nsum(
            lambda rung: weight(sampler.law, int(rung) * width), [1, 4000], method="d"
        ) + (1 if sampler.shift else mpmath.mpf(1) / 2)
        each = {value: weight(sampler.law, abs(value)) / (2 * total * width) for value in values}
        whole = (
            mpmath.nsum(
                lambda value: weight(sampler.law, int(value)), [1, 4000 * width], method="d"
            )
            * 2
            + 1
        )
        return each | {REJECTED: 1 - whole / (2 * total * width)}


def disagreements(masses, undecided, law):
    """Outcomes whose mass cannot be the law's, whatever the undecided branches turn into."""
    slack = Fraction(1, 10**40)
    exact = {value: Fraction(mpmath.nstr(mass, 50)) for value, mass in law.items()}
    return [
        value
        for value, mass in masses.items()
        if not mass - slack <= exact[value] <= mass + undecided + slack
    ]


NARROW = [
    (Law(1, Fraction(2, 3)), Grain(lane=4, word=3)),
    (Law(1, Fraction(1, 20)), Grain(lane=3, word=2)),
    (Law(2, 2 * Fraction(5, 7)), Grain(lane=4, word=3)),
    (Law(1, Fraction(5, 2)), Grain(lane=6, word=4)),
]
WIDE = [
    (Law(1, Fraction(3)), Grain(lane=4, word=3, knee=1)),
    (Law(2, 2 * Fraction(19, 2)), Grain(lane=4, word=3, knee=1)),
    (Law(1, Fraction(9, 2)), Grain(lane=5, word=2, knee=1)),
    (Law(2, 2 * Fraction(30)), Grain(lane=4, word=4, knee=2)),
]


def tree(grain):
    return TreeGrain(grain.lane, grain.word, grain.knee)


def check_trial(sampler, depth):
    masses, undecided = enumerate_masses(one_trial(sampler), depth)
    return disagreements(
        masses, undecided, trial_law(sampler, [value for value in masses if value != REJECTED])
    ), undecided


@pytest.mark.parametrize(("law", "grain"), NARROW)
def test_every_bit_string_of_a_narrow_law(law, grain):
    shallow = check_trial(Sampler(law, tree(grain)), 10)
    wrong, undecided = check_trial(Sampler(law, tree(grain)), 19)
    assert shallow[0] == wrong == []
    assert undecided < min(Fraction(1, 250), shallow[1] / 10)


@pytest.mark.parametrize(("law", "grain"), WIDE[:2])
def test_every_bit_string_of_a_wide_law(law, grain):
    sampler = Sampler(law, tree(grain))
    assert sampler.shift > 0
    wrong, undecided = check_trial(sampler, 15)
    assert wrong == []
    assert undecided < Fraction(1, 8)


@pytest.mark.deep
@pytest.mark.parametrize(("law", "grain"), NARROW + WIDE)
def test_every_bit_string_deeper(law, grain):
    wrong, undecided = check_trial(
        Sampler(law, tree(grain)), 30 if law in [narrow for narrow, _ in NARROW] else 24
    )
    assert wrong == []
    assert undecided < Fraction(1, 100)


@pytest.mark.parametrize(("law", "grain"), [NARROW[0], WIDE[0], WIDE[1]])
def test_a_draw_repeats_its_trial_until_it_is_accepted(law, grain):
    sampler = Sampler(law, tree(grain))
    masses, undecided = enumerate_masses(one_draw(sampler), 13)
    trial = trial_law(sampler, masses)
    with mpmath.workdps(60):
        accepted = {value: trial[value] / (1 - trial[REJECTED]) for value in masses}
    assert disagreements(masses, undecided, accepted) == []
    assert undecided < Fraction(1, 2)


@pytest.mark.parametrize(("law", "grain"), NARROW + WIDE)
def test_a_trial_in_plain_integers_is_a_trial(law, grain):
    """Bit string by bit string, and the twins below with it."""
    sampler = Sampler(law, tree(grain))
    assert enumerate_masses(one_plain_trial(sampler), 14) == enumerate_masses(
        one_trial(sampler), 14
    )


def test_a_few_draws_are_independent():
    law, grain = NARROW[0]
    sampler = Sampler(law, tree(grain))
    alone, open_alone = enumerate_masses(one_draw(sampler), 11)
    pairs, undecided = enumerate_masses(lambda bits: tuple(sampler.draw(2, bits).tolist()), 15)
    assert undecided < Fraction(1, 8)
    for (one, other), mass in pairs.items():
        assert mass <= (alone[one] + open_alone) * (alone[other] + open_alone)


class SkipsTies(Sampler):
    """A broken twin: a lane and one word decide, ties or not."""

    def _deepen(self, prefix, bits):
        return min(
            int(np.searchsorted(self._high, np.uint64(prefix), side="right")), len(self._high) - 1
        )


class SkipsExactness(Sampler):
    """A broken twin: what the first bits of V leave open is completed with zeros."""

    def _lengthen(self, prefix, depth, bits):
        return (prefix << 3, depth + 3) if depth < 30 else (prefix << 3 | 1, depth + 3)


@pytest.mark.parametrize(
    ("twin", "law", "grain"),
    [
        (SkipsTies, *NARROW[0]),
        (SkipsTies, *NARROW[2]),
        (SkipsTies, *WIDE[0]),
        (SkipsExactness, *WIDE[0]),
    ],
)
def test_a_sampler_that_skips_a_refinement_is_caught(twin, law, grain):
    wrong, _ = check_trial(twin(law, tree(grain)), 12)
    assert wrong


def test_arrays_decide_as_single_draws_do():
    for law, grain in NARROW + WIDE:
        sampler = Sampler(law, tree(grain))
        lanes = list(range(2**grain.lane))
        places = [lane % 2**sampler.shift for lane in lanes]
        out = np.empty(len(lanes), dtype=np.int64)
        found = sampler._direct[lanes]
        # Open lanes want more bits than there are; what the others decided is in place by then.
        with contextlib.suppress(Unscripted):
            sampler._trial(out, Script([*lanes, *places] if sampler.shift else lanes))
        sure = found > -(2**15)
        singles = [
            int(sampler.draw(1, Script([lane, place]))[0])
            for lane, place, ok in zip(lanes, places, sure, strict=True)
            if ok
        ]
        assert out[sure].tolist() == singles


@pytest.mark.parametrize("shift", [1, 9, 16, 17, 42])
def test_grains_cut_words_into_uniform_pieces(shift):
    class Counting:
        private = False

        def words(self, count):
            return np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)

    class AllLanes(Counting):
        def words(self, count):
            return np.arange(4 * count, dtype=np.uint16).view(np.uint64)

    grain = Grain()
    assert np.array_equal(np.sort(grain.lanes(AllLanes(), 2**16)), np.arange(2**16))
    assert np.array_equal(grain.more(Counting(), 5), Counting().words(5) >> np.uint64(16))
    if shift <= 16:
        assert np.array_equal(
            np.bincount(grain.places(AllLanes(), 2**16, shift)),
            np.full(2**shift, 2 ** (16 - shift)),
        )
    else:
        assert np.array_equal(
            grain.places(Counting(), 99, shift),
            (Counting().words(99) >> np.uint64(64 - shift)).astype(np.int64),
        )
    assert np.array_equal(
        grain.places(Counting(), 3, shift),
        (Counting().words(3) >> np.uint64(64 - shift)).astype(np.int64),
    )


@pytest.mark.parametrize("shift", [0, 9, 42])
def test_a_few_draws_take_words_of_their_own(shift):
    class Counted:
        def words(self, count):
            return np.arange(count, dtype=np.uint64) << np.uint64(64 - 6) | np.arange(
                count, dtype=np.uint64
            )

    found = list(Grain().few(Counted(), 3, shift))
    assert [lane for lane, _ in found] == [0, 1, 2]
    assert [place for _, place in found] == (
        [(3 << 58) >> 64 - shift, (4 << 58) >> 64 - shift, (5 << 58) >> 64 - shift]
        if shift
        else [0] * 3
    )


@pytest.mark.parametrize("shift", [0, 1, 9, 42])
@pytest.mark.parametrize("lane", [16, 5])
def test_one_draw_cuts_its_words_as_many_draws_do(shift, lane):
    grain = Grain(lane=lane)
    for seed in range(50):
        bits, same = PublicSeed(seed), PublicSeed(seed)
        expected = (
            int(grain.lanes(same, 1)[0]),
            int(grain.places(same, 1, shift)[0]) if shift else 0,
        )
        assert list(grain.few(bits, 1, shift)) == [expected]
        assert bits.words(1) == same.words(1)


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
def test_thresholds_lie_in_their_enclosures(law):
    low, high = ladder(law, 0, 63)
    with mpmath.workdps(60):
        total = mpmath.mpf(1) / 2 + mpmath.nsum(
            lambda rung: weight(law, int(rung)), [1, 12000 if law.power == 1 else 400], method="d"
        )
        cumulative = mpmath.mpf(1) / 2
        for rung in range(len(low)):
            cumulative += weight(law, rung) if rung else 0
            assert low[rung] <= cumulative / total * 2**63 <= high[rung]


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
    assert (sampler._direct == -(2**15)).mean() < 0.04


@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(7, 4)])
def test_every_bit_string_of_bernoulli_exp(gamma):
    masses, undecided = enumerate_masses(
        lambda bits: discrete.bernoulli_exp(gamma, bits), 15, lambda values: TreeBits(values, 5)
    )
    with mpmath.workdps(60):
        chance = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
        assert disagreements(masses, undecided, {True: chance, False: 1 - chance}) == []
    assert undecided < Fraction(2, 5)


@pytest.mark.parametrize("weights", [[1], [3, 0, 2], [1, 1, 1, 4]])
def test_every_bit_string_of_a_choice(weights):
    masses, undecided = enumerate_masses(
        lambda bits: discrete.choice(weights, bits), 12, lambda values: TreeBits(values, 3)
    )
    for index, share in enumerate(weights):
        assert masses[index] <= Fraction(share, sum(weights)) <= masses[index] + undecided
    assert undecided < Fraction(1, 20)
