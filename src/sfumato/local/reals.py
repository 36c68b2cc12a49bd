"""Uniform real numbers whose bits are drawn as needed, and exact decisions made from them.

A ``Uniform`` stands for one real number U in [0, 1): it began as a word of the keystream and is
continued with fresh words, so U is uniform whatever was read of it before. ``settle`` evaluates an
expression of such numbers in decimal arithmetic, with more bits each time, until every comparison
and every floor in it is certain.

Why a certain answer is right: at level B each U and 1 - U are known to a relative error of 2^-B,
and arithmetic to 2^-(B + 30). Quantities that are divided by or whose logarithm is taken are
refused below 2^-(B/8). So the expressions of ``Normal``, ``distances`` and ``cells``, which
divide and take logarithms at most twice in a row and whose other factors are below 2^20, are known
to 2^-(B - 2B/8 - 40) < 2^-(B/4) for B > 80. Comparisons and floors closer than 2^-(B/4), absolutely
or relatively, are refused. A refusal doubles B. Of d coordinates, some below 2^17 cells, it happens
to fewer than d in 2^6 at the first level, to fewer than d in 2^30 at the next, and so on.

``normal_at`` gives the normals of ``random.normal`` to any precision, from the same words and fresh
bits. ``circle`` and ``exact_circle`` give directions in two dimensions: points of the circle from
words, as floats and to any precision. ``cells`` relies on the errors that are stated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, Decimal, getcontext, localcontext
from functools import lru_cache
from typing import TypeVar

import numpy as np

from sfumato.local.constants import Floats, context, pi
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import FAR, PLACE_BITS, SLOTS, Trace, tables

# --- real numbers ---------------------------------------------------------------------------------


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
    # Above the 80 bits that the proof needs.
    bits = 96
    while True:
        # log10 2, rounded up; twelve digits more are the spare 30 bits and some.
        with localcontext(context(int(bits * 0.302) + 12)):
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
            doubled = cosine * cosine - sine * sine
            sine = 2 * sine * cosine
            cosine = doubled
        return cosine, sine


def norm(values: Sequence[Decimal]) -> Decimal:
    """Euclidean length."""
    return sum((value * value for value in values), Decimal(0)).sqrt()


# --- normals --------------------------------------------------------------------------------------


class Normal:
    """A standard normal real number: its place in a slab, or else the first trial in the rest that
    is accepted.

    Parameters
    ----------
    word : int
        The word that began it.
    trial : sequence of three int
        The last words of its trials, where the word fell to the rest; earlier trials were certainly
        rejected.
    bits : Bits
        Where further bits come from.
    """

    def __init__(self, word: int, trial: list[int], bits: Bits) -> None:
        self._slot = word % SLOTS
        self._is_negative = word >> 63 == 1
        self._bits = bits
        # The place is a signed number. With its first bit turned, it counts up from the lowest.
        self._place = Uniform((word ^ 1 << 63) // SLOTS, bits, PLACE_BITS)
        if self._slot >= tables().slabs:
            self._begin(trial)

    def _begin(self, trial: list[int]) -> None:
        """Start a trial: its first word is read whole, the others are the first bits of V and U."""
        strip_word, across_word, height_word = trial
        starts = tables().starts
        self._strip = int(np.searchsorted(starts, np.uint64(strip_word), side="right")) - 1
        self._across = Uniform.of_unit(across_word, self._bits)
        self._height = Uniform.of_unit(height_word, self._bits)

    def known(self, level: Level) -> Decimal:
        """The number, to an absolute error of 2^(4 - level)."""
        if self._slot < tables().slabs:
            width = Decimal(float(tables().widths[self._slot]) * 2.0 ** (PLACE_BITS - 1))
            return width * (2 * self._place.known(level.bits) - 1)
        while (size := self._size(level)) is None:
            # What is certainly rejected stays so at every level.
            self._begin(self._bits.words(3).tolist())
        return -size if self._is_negative else size

    def _size(self, level: Level) -> Decimal | None:
        """Return the trial, or None where it is rejected."""
        strips = tables()
        across = self._across.known(level.bits)
        height = self._height.known(level.bits)
        left = Decimal(float(strips.strips[self._strip, 0]))
        step = Decimal(float(strips.strips[self._strip, 1]))
        envelope = height * int(strips.weights[self._strip]) * Decimal(strips.mass) / 2**64
        if not step:
            size = (FAR**2 - 2 * across.ln()).sqrt()
            # Both sides are tiny numbers of one magnitude. Comparing their quotient with 1 keeps
            # the tolerance relative.
            tail = (-(Decimal(FAR) ** 2) / 2).exp()
            return size if level.below(envelope * size / tail, Decimal(1)) else None
        size = left + step * across
        stack = stack_height(int(strips.under[self._strip]), getcontext().prec)
        room = (-size * size / 2).exp() - stack
        return size if level.below(envelope / step, room) else None


def normal_at(trace: Trace, index: int, bits: Bits) -> Normal:
    """The real number of one float of ``random.normal.fill``."""
    place = int(np.searchsorted(trace.rest, index))
    in_rest = place < trace.rest.size and trace.rest[place] == index
    trial = trace.trials[:, place].tolist() if in_rest else []
    return Normal(int(trace.words[index]), trial, bits)


@lru_cache(maxsize=256)
def stack_height(slabs: int, digits: int) -> Decimal:
    """Height of so many of the widest slabs upon each other, in the arithmetic in force, which has
    so many digits.
    """
    scale = 2 ** (PLACE_BITS - 1)
    inverse_widths = sum(
        (1 / (Decimal(float(width)) * scale) for width in tables().widths[:slabs]), Decimal(0)
    )
    return (pi(digits) / 2).sqrt() / SLOTS * inverse_widths


# --- points of the circle -------------------------------------------------------------------------

_SINE_SERIES = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(8))


def circle(words: Words) -> tuple[Floats, Floats]:
    """Points of the right half of the unit circle, to 2^-50: cosines and sines of phi, uniform in
    [-pi/2, pi/2).

    The upper 63 bits, as a signed number, are phi / pi. Half the angle has a short series, and is
    doubled.
    """
    half = (words.view(np.int64) >> 1).astype(np.float64)
    half *= math.pi / 2 * 2.0**-63
    square = half * half
    # Horner's scheme, in place: these arrays are long, and stay in the cache.
    sine = square * _SINE_SERIES[-1]
    for term in _SINE_SERIES[-2:0:-1]:
        sine += term
        sine *= square
    sine += _SINE_SERIES[0]
    sine *= half
    # Double the angle: cos 2a = 1 - 2 sin^2 a, sin 2a = 2 sin a sqrt(1 - sin^2 a), as cos a is not
    # negative.
    np.multiply(sine, sine, out=square)
    half_cosine = np.subtract(1, square, out=half)
    np.sqrt(half_cosine, out=half_cosine)
    sine *= half_cosine
    sine *= 2
    square *= -2
    square += 1
    return square, sine


def mirror(values: Floats, words: Words) -> Floats:
    """Turn the sign of values, in place, by the lowest bit of each word, which ``circle`` does not
    read.
    """
    signs = values.view(np.uint64)
    signs ^= words << np.uint64(63)
    return values


def exact_angle(word: int, bits: Bits) -> Uniform:
    """The real number phi / pi + 1/2 of ``circle``."""
    # With its first bit turned, a signed number counts up from the lowest.
    return Uniform((word ^ 1 << 63) >> 1, bits, 63)


def exact_circle(angle: Uniform, level: Level) -> tuple[Decimal, Decimal]:
    """Cosine and sine for ``exact_angle``."""
    return turn((angle.known(level.bits) - Decimal(1) / 2) / 2)
