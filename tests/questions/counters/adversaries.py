"""Adversaries that choose increments after seeing outputs, for tests of adaptive privacy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

EPSILON = Fraction(1)


Seen = tuple[bool, ...]
"""Which outputs so far were high."""


class Adversary(NamedTuple):
    """What comes at each step, and how many rows of the person with it, by what was seen."""

    others: Callable[[Seen], int]
    person: Callable[[Seen], int]

    def next(self, side: int, seen: Seen) -> int:
        return self.others(seen) + side * self.person(seen)


WAITING: dict[str, Callable[[Seen], bool]] = {
    "first": lambda seen: len(seen) == 0,
    "second": lambda seen: len(seen) == 1,
    "third": lambda seen: len(seen) == 2,
    "second after a high first, else third": lambda seen: (
        (len(seen) == 1 and seen[0]) or (len(seen) == 2 and not seen[0])
    ),
    "second after a low first, else third": lambda seen: (
        (len(seen) == 1 and not seen[0]) or (len(seen) == 2 and seen[0])
    ),
    "third after two unlike ones": lambda seen: len(seen) == 2 and seen[0] != seen[1],
}
