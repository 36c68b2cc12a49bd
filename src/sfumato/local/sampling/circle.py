"""Directions in two dimensions: points of the circle from words, as floats and to any precision.

``cells`` relies on the errors that are stated here.
"""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np

from sfumato.local.sampling.floats import Floats
from sfumato.local.sampling.reals import Level, Uniform, turn
from sfumato.random.bits import Bits, Words

_SIGN_BIT = np.uint64(63)
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
    signs ^= words << _SIGN_BIT
    return values


def exact_angle(word: int, bits: Bits) -> Uniform:
    """The real number phi / pi + 1/2 of ``circle``."""
    # With its first bit turned, a signed number counts up from the lowest.
    return Uniform((word ^ 1 << 63) >> 1, bits, 63)


def exact_circle(angle: Uniform, level: Level) -> tuple[Decimal, Decimal]:
    """Cosine and sine for ``exact_angle``."""
    return turn((angle.known(level.bits) - Decimal(1) / 2) / 2)
