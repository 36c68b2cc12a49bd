"""Run a sampler over all bit strings to some depth: the masses of its outcomes, as fractions."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np


class OutOfBits(Exception):
    """The sampler wants more bits than the string holds; ``width`` says how many."""

    def __init__(self, width):
        self.width = width


class Pieces:
    """The pieces of a bit string, each an integer of as many bits as the sampler asks for."""

    private = False

    def __init__(self, values):
        self.values = list(values)

    def take(self, width):
        if not self.values:
            raise OutOfBits(width)
        return self.values.pop(0)


class TopBits(Pieces):
    """Whole words of which only the top bits vary: for code that takes its words directly."""

    def __init__(self, values, width):
        super().__init__(values)
        self.width = width

    def words(self, count):
        words = [self.take(self.width) << 64 - self.width for _ in range(count)]
        return np.array(words, dtype=np.uint64)


def enumerate_masses(run, depth, bits_of=Pieces):
    """Return the mass of every outcome over all bit strings of at most ``depth`` bits, and the
    undecided mass.
    """
    masses = defaultdict(Fraction)
    undecided = Fraction(0)
    branches = [((), 0)]
    while branches:
        values, length = branches.pop()
        try:
            masses[run(bits_of(values))] += Fraction(1, 2**length)
        except OutOfBits as wanted:
            longer = length + wanted.width
            if longer > depth:
                undecided += Fraction(1, 2**length)
            else:
                branches += [((*values, value), longer) for value in range(2**wanted.width)]
    assert sum(masses.values()) + undecided == 1
    return masses, undecided


def disagreements(masses, undecided, law):
    """Outcomes whose mass cannot be the law's, whatever the undecided branches turn into."""
    slack = Fraction(1, 10**40)
    exact = {value: Fraction(mpmath.nstr(mass, 50)) for value, mass in law.items()}
    return [
        value
        for value, mass in masses.items()
        if not mass - slack <= exact[value] <= mass + undecided + slack
    ]


def weight(law, distance):
    """exp(-distance**power / spread), to sixty digits."""
    with mpmath.workdps(60):
        power = mpmath.mpf(distance) ** law.power
        return mpmath.exp(-power * law.spread.denominator / law.spread.numerator)
