"""Exact draws by weight: exp(-x) for rational x, and weights held as doubles. No draw adds an absolute error.

Guarantee: given uniform independent bits, each output law equals the stated law.
Holds because
    ``survives`` compares a uniform U, known to more and more bits, with an enclosure of exp(-x) as deep as U is known. In floating
    point it decides only with a margin of 2**-40, which assumes that the platform's ``exp`` is right to 2**-42.
    ``falling`` compares U * (all weights) with the partial sums in the same way, always between integers.
    ``heaviest`` takes doubles at their word: each is m * 2**e with an integer m, so a bucket of equal e is chosen by its number
    of entries times 2**e, an entry evenly within it, and the entry accepted with probability m / 2**53, all in integers.
Termination: with probability 1; each loop needs fewer than two rounds on average.
Source: lazily known bits: Devroye 1986, XV; rejection from dyadic buckets: Devroye 1986, III.3.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from sfumato.arrays import Array
from sfumato.random.bits import Bits
from sfumato.random.discrete import integer_below
from sfumato.random.enclosure import Pair, exp_minus

DEPTH = 256
_WORD, _MANTISSA = 64, 53
_MARGIN = 2.0**-40


def survives(numerator: int, shift: int, bits: Bits) -> bool:
    """Return True with probability exactly exp(-numerator / 2**shift), for ``numerator >= 0``."""
    prefix = int(bits.words(1)[0]) >> _WORD - _MANTISSA
    near = math.exp(-math.ldexp(numerator, -shift)) * 2.0**_MANTISSA
    if prefix + 1 <= near * (1 - _MARGIN):
        return True
    return prefix < near * (1 + _MARGIN) and _settled(prefix, Fraction(numerator, 1 << shift), bits)


def surviving(numerators: Array, shift: int, bits: Bits) -> Array:
    """``survives`` for each of an int64 ndarray, independently: bool ndarray like it."""
    prefixes = (bits.words(numerators.size) >> np.uint64(_WORD - _MANTISSA)).astype(np.float64)
    near = np.exp(-np.ldexp(numerators.astype(np.float64), -shift)) * 2.0**_MANTISSA
    certain = prefixes + 1 <= near * (1 - _MARGIN)
    for open_one in np.flatnonzero(~certain & (prefixes < near * (1 + _MARGIN))):
        certain[open_one] = _settled(
            int(prefixes[open_one]), Fraction(int(numerators[open_one]), 1 << shift), bits
        )
    return np.asarray(certain)


def _settled(prefix: int, exponent: Fraction, bits: Bits) -> bool:
    """Compare U, of which the first 53 bits are known, with exp(-exponent)."""
    depth = _MANTISSA
    while True:
        low, high = exp_minus(exponent, depth)
        if prefix + 1 <= low:
            return True
        if prefix >= high:
            return False
        prefix, depth = prefix << _WORD | int(bits.words(1)[0]), depth + _WORD


def falling(numbers: Sequence[int], bits: Bits) -> int:
    """Return b with probability proportional to exactly numbers[b] * exp(-b); the numbers are integers, not negative, not all 0.

    >>> from sfumato.random import current
    >>> falling([0, 3, 0], current())
    1
    """
    prefix, length, depth = int(bits.words(1)[0]), _WORD, DEPTH
    while True:
        powers = _powers(len(numbers), depth)
        low = list(
            accumulate(number * power[0] for number, power in zip(numbers, powers, strict=True))
        )
        high = list(
            accumulate(number * power[1] for number, power in zip(numbers, powers, strict=True))
        )
        before, reached, beyond = 0, prefix * low[-1], (prefix + 1) * high[-1]
        for b, number in enumerate(numbers):
            if number and reached >= before << length and beyond <= low[b] << length:
                return b
            before = high[b]
        prefix, length, depth = (
            prefix << _WORD | int(bits.words(1)[0]),
            length + _WORD,
            depth + _WORD,
        )


@lru_cache(maxsize=64)
def _powers(count: int, depth: int) -> list[Pair]:
    return [exp_minus(Fraction(b), depth) for b in range(count)]


def heaviest(weights: Array, bits: Bits) -> int:
    """Return an index with probability exactly proportional to its weight.

    Parameters
    ----------
    weights : float64 ndarray of shape (entries,)
        Finite, not negative, not all 0. Taken as the dyadic rationals that they are.
    """
    sums = np.cumsum(weights)
    prefix = int(bits.words(1)[0]) >> _WORD - _MANTISSA
    margin = (len(sums) + 8) * 2.0**-52  # each partial sum is right to entries * 2**-53
    low, high = (
        end * 2.0**-_MANTISSA * float(sums[-1])
        for end in (prefix * (1 - margin), (prefix + 1) * (1 + margin))
    )
    index = int(np.searchsorted(sums, low, side="right"))
    if high <= sums[min(index, len(sums) - 1)] and (
        index == 0 or sums[index - 1] * (1 + margin) <= low
    ):
        return index
    return _heaviest_exactly(weights, prefix, bits)


def _heaviest_exactly(weights: Array, prefix: int, bits: Bits) -> int:
    """Do what ``heaviest`` does between integers; the first 53 bits of U are known."""
    mantissas, exponents = np.frexp(weights)
    whole = (mantissas * 2.0**_MANTISSA).astype(np.int64).tolist()
    shifts = (exponents - exponents[weights > 0].min()).tolist()
    sums = list(accumulate(m << e if m else 0 for m, e in zip(whole, shifts, strict=True)))
    length = _MANTISSA
    while True:
        index = bisect_right(sums, prefix * sums[-1] >> length)
        if (prefix + 1) * sums[-1] <= sums[index] << length:
            return index
        prefix, length = prefix << _WORD | int(bits.words(1)[0]), length + _WORD


def subset(size: int, count: int, bits: Bits) -> list[int]:
    """Draw ``count`` distinct integers below ``size``, every such set equally likely, in increasing order (Floyd 1987)."""
    drawn: set[int] = set()
    for last in range(size - count, size):
        one = integer_below(last + 1, bits)
        drawn.add(last if one in drawn else one)
    return sorted(drawn)


def multiset(size: int, count: int, bits: Bits) -> list[int]:
    """Draw ``count`` integers below ``size``, every multiset equally likely, in order: stars and bars over ``subset``."""
    return [place - i for i, place in enumerate(subset(size + count - 1, count, bits))]
