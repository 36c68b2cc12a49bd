"""Floats for words of the keystream: uniforms and points of the circle, with the errors that
``offsets`` counts on.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from sfumato.local.sampling.reals import Level, Uniform, turn
from sfumato.random.bits import Bits, Words
from sfumato.random.normal import unit

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

__all__ = [
    "Flags",
    "Floats",
    "circle",
    "exact_angle",
    "exact_circle",
    "exact_unit",
    "mirror",
    "unit",
]

_SIGN = np.uint64(63)
_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(8))


def exact_unit(word: int, bits: Bits) -> Uniform:
    """The real number that ``unit`` is near to."""
    return Uniform(word >> 1, bits, 63)


def circle(words: Words) -> tuple[Floats, Floats]:
    """Points of the right half of the unit circle, to 2^-50: cosines and sines of phi, uniform in
    [-pi/2, pi/2).

    The upper 63 bits, as a signed number, are phi / pi. Half the angle has a short series, and is
    doubled.
    """
    angle = (words.view(np.int64) >> 1).astype(np.float64)
    angle *= math.pi / 2 * 2.0**-63
    square = angle * angle
    sine = square * _SINE[-1]
    for term in _SINE[-2:0:-1]:
        sine += term
        sine *= square
    sine += _SINE[0]
    sine *= angle
    np.multiply(sine, sine, out=square)
    np.subtract(1, square, out=angle)
    np.sqrt(angle, out=angle)
    sine *= angle
    sine *= 2
    square *= -2
    square += 1
    return square, sine


def mirror(values: Floats, words: Words) -> Floats:
    """Turn the sign of values, in place, by the lowest bit of each word, which the others do not
    look at.
    """
    signs = values.view(np.uint64)
    signs ^= words << _SIGN
    return values


def exact_angle(word: int, bits: Bits) -> Uniform:
    """The real number phi / pi + 1/2 of ``circle``."""
    return Uniform((word ^ 1 << 63) >> 1, bits, 63)


def exact_circle(angle: Uniform, level: Level) -> tuple[Decimal, Decimal]:
    """Cosine and sine for ``exact_angle``."""
    return turn((angle.known(level.bits) - Decimal(1) / 2) / 2)
