"""Uniform real numbers whose bits are drawn as needed, and exact decisions made from them.

A ``Uniform`` stands for one real number U in [0, 1): it began as a word of the keystream and is
continued with fresh words, so U is uniform whatever was read of it before. ``settle`` evaluates an
expression of such numbers in decimal arithmetic, with more bits each time, until every comparison
and every floor in it is certain.

Why a certain answer is right: at level B each U and 1 - U are known to a relative error of 2^-B,
and arithmetic to 2^-(B + 30). Quantities that are divided by or whose logarithm is taken are
refused below 2^-(B/8). So the expressions of ``exact_normals``, ``distances`` and ``cells``, which
divide and take logarithms at most twice in a row and whose other factors are below 2^20, are known
to 2^-(B - 2B/8 - 40) < 2^-(B/4) for B > 80. Comparisons and floors closer than 2^-(B/4), absolutely
or relatively, are refused. A refusal doubles B. Of d coordinates, some below 2^17 cells, it happens
to fewer than d in 2^6 at the first level, to fewer than d in 2^30 at the next, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import TypeVar

from sfumato.local.sampling.decimals import context, pi
from sfumato.random.bits import Bits

FIRST_LEVEL = 96
"""Bits known at first: above the 80 that the proof needs."""

_DIGITS_PER_BIT = 0.302
"""log10 2, rounded up; twelve digits more are the spare 30 bits and some."""

T = TypeVar("T")


class Undecided(Exception):
    """A comparison or a floor that needs more bits."""


class Uniform:
    """A uniform real number of [0, 1), known as far as it was read.

    Parameters
    ----------
    prefix : int
        Its first bits.
    bits : Bits
        Where further bits come from.
    width : int
        How many bits ``prefix`` has.
    """

    def __init__(self, prefix: int, bits: Bits, width: int = 64) -> None:
        self._prefix = prefix
        self._width = width
        self._bits = bits

    @classmethod
    def of_unit(cls, word: int, bits: Bits) -> Uniform:
        """The real number that the float ``random.normal.unit`` of a word is near to."""
        return cls(word >> 1, bits, 63)

    def known(self, level: int) -> Decimal:
        """The number, with U and 1 - U right to a relative error of 2^-level."""
        # Leading zeros say nothing of U, and leading ones nothing of 1 - U: both must have enough
        # bits after them.
        while min(self._prefix.bit_length(), self._complement().bit_length()) <= level + 1:
            self._prefix = self._prefix << 64 | int(self._bits.words(1)[0])
            self._width += 64
        return Decimal(self._prefix) / Decimal(2) ** self._width

    def _complement(self) -> int:
        return ~self._prefix & ((1 << self._width) - 1)


class Level:
    """One attempt: the bits that are known of everything, and what may be concluded from them."""

    def __init__(self, level: int) -> None:
        self.bits = level
        self.tolerance = Decimal(2) ** -(level // 4)
        self._least = Decimal(2) ** -(level // 8)

    def below(self, left: Decimal, right: Decimal) -> bool:
        """Whether left < right, if that is certain."""
        if abs(left - right) <= self.tolerance * max(Decimal(1), abs(left), abs(right)):
            raise Undecided
        return left < right

    def floor(self, value: Decimal) -> int:
        """The whole number below, if that is certain."""
        whole = value.to_integral_value(ROUND_FLOOR)
        margin = self.tolerance * max(Decimal(1), abs(value))
        if not margin < value - whole < 1 - margin:
            raise Undecided
        return int(whole)

    def safe(self, value: Decimal) -> Decimal:
        """The value, if it is far enough from 0 to divide by."""
        if abs(value) <= self._least:
            raise Undecided
        return value


def settle(evaluate: Callable[[Level], T]) -> T:
    """Evaluate at ever more bits until the outcome is certain."""
    bits = FIRST_LEVEL
    while True:
        with localcontext(context(int(bits * _DIGITS_PER_BIT) + 12)):
            try:
                return evaluate(Level(bits))
            except Undecided:
                bits *= 2


def turn(fraction: Decimal) -> tuple[Decimal, Decimal]:
    """Cosine and sine of a fraction of a full turn, in the arithmetic in force."""
    with localcontext() as inner:
        inner.prec += 10
        # A sixty-fourth of the angle has a short series. Six doublings lose a few digits, which the
        # extra ten make up for.
        angle = 2 * pi(inner.prec) * fraction / 64
        term = sine = angle
        n = 1
        negligible = Decimal(10) ** -(inner.prec + 2)
        while abs(term) > negligible:
            term *= -angle * angle / ((n + 1) * (n + 2))
            sine += term
            n += 2
        cosine = (1 - sine * sine).sqrt()
        for _ in range(6):
            cosine, sine = cosine * cosine - sine * sine, 2 * sine * cosine
        return cosine, sine


def norm(values: Sequence[Decimal]) -> Decimal:
    """Euclidean length."""
    return sum((value * value for value in values), Decimal(0)).sqrt()
