"""Every bit string a sampler can read, to some depth.

They give its output law as exact fractions, where draws would give a histogram.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numpy as np

T = TypeVar("T", bound=Hashable)


class OutOfBits(Exception):
    """The sampler asked for more bits than it was given; ``missing`` says how many more."""

    def __init__(self, missing: int) -> None:
        super().__init__(missing)
        self.missing = missing


class ReplayBits:
    """Bits that replay a finite string of 0 and 1.

    Each 64-bit word takes ``len(places)`` bits of the string and puts them at those places, 63
    being the highest; all other bits are 0. A sampler that looks at the chosen places only cannot
    tell these words from uniform ones.
    """

    private = False

    def __init__(self, string: tuple[int, ...], places: tuple[int, ...]) -> None:
        self.string, self.places, self.used = string, places, 0

    def words(self, count: int) -> np.ndarray:
        """Return ``count`` words, or raise ``OutOfBits``."""
        missing = self.used + count * len(self.places) - len(self.string)
        if missing > 0:
            raise OutOfBits(missing)
        words = [self._word() for _ in range(count)]
        return np.array(words, dtype=np.uint64)

    def _word(self) -> int:
        taken = self.string[self.used : self.used + len(self.places)]
        self.used += len(self.places)
        return sum(bit << place for bit, place in zip(taken, self.places, strict=True))


def high_places(width: int) -> tuple[int, ...]:
    """The highest ``width`` places of a word, highest first.

    A sampler that shifts right looks at these.
    """
    return tuple(range(63, 63 - width, -1))


def masses(
    sampler: Callable[[ReplayBits], T], depth: int, places: tuple[int, ...]
) -> tuple[dict[T, Fraction], Fraction]:
    """Run a sampler on every bit string of up to ``depth`` bits.

    Returns
    -------
    law : dict of outcome -> Fraction
        The mass of the strings that lead to it: a lower bound, exact up to ``undecided``.
    undecided : Fraction
        The mass of the strings on which the sampler wanted more bits.
    """
    law: defaultdict[T, Fraction] = defaultdict(Fraction)
    undecided = Fraction(0)
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        string = waiting.pop()
        try:
            outcome = sampler(ReplayBits(string, places))
        except OutOfBits as error:
            if len(string) + error.missing > depth:
                undecided += Fraction(1, 2 ** len(string))
            else:
                waiting += [string + more for more in product((0, 1), repeat=error.missing)]
        else:
            law[outcome] += Fraction(1, 2 ** len(string))
    return dict(law), undecided
