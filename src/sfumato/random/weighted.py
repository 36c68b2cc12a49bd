"""Exact draws by weight: exp(-x) for rational x, and weights held as doubles.

No draw adds an absolute error.

Guarantee: given uniform independent bits, each output law equals the stated law.
Holds because
    *survives* compares a uniform U, known to more and more bits, with an enclosure of exp(-x) as
    deep as U is known. Floating point decides only with a margin of 2**-40, which assumes that the
    platform's ``exp`` is right to 2**-42.
    *index_by_exponential* compares U * (all weights) with the partial sums in the same way, always
    between integers.
    *index_by_weight* takes the doubles as the dyadic rationals that they are: each is an integer m
    times a power of 2. So in units of the least power their partial sums are integers, and U times
    the sum of all is compared with them as above.
Termination: with probability 1; each loop needs fewer than two rounds on average.
Source: lazily known bits: Devroye 1986, XV.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.random.bits import Bits
from sfumato.random.discrete import integer_below
from sfumato.random.enclosure import Pair, exp_minus

DEPTH = 256
"""Bits at which ``index_by_exponential`` first encloses its weights."""

_WORD_BITS = 64
_MANTISSA_BITS = 53
"""Bits of U that floating point compares: as many as a double holds without rounding."""

_MARGIN = 2.0**-40


def survives(numerator: int, shift: int, bits: Bits) -> bool:
    """Return True with probability exactly exp(-numerator / 2**shift), for ``numerator >= 0``."""
    prefix = int(bits.words(1)[0]) >> _WORD_BITS - _MANTISSA_BITS
    near = math.exp(-math.ldexp(numerator, -shift)) * 2.0**_MANTISSA_BITS
    if prefix + 1 <= near * (1 - _MARGIN):
        return True
    if prefix >= near * (1 + _MARGIN):
        return False
    return _survives_exactly(prefix, Fraction(numerator, 1 << shift), bits)


def surviving(numerators: Array, shift: int, bits: Bits) -> Array:
    """``survives`` for each of an int64 ndarray, independently: bool ndarray like it."""
    words = bits.words(numerators.size)
    prefixes = (words >> np.uint64(_WORD_BITS - _MANTISSA_BITS)).astype(np.float64)
    near = np.exp(-np.ldexp(numerators.astype(np.float64), -shift)) * 2.0**_MANTISSA_BITS
    survived = prefixes + 1 <= near * (1 - _MARGIN)
    is_open = ~survived & (prefixes < near * (1 + _MARGIN))
    for index in np.flatnonzero(is_open):
        exponent = Fraction(int(numerators[index]), 1 << shift)
        survived[index] = _survives_exactly(int(prefixes[index]), exponent, bits)
    return np.asarray(survived)


def _survives_exactly(prefix: int, exponent: Fraction, bits: Bits) -> bool:
    """Compare U, of which the first 53 bits are known, with exp(-exponent)."""
    depth = _MANTISSA_BITS
    while True:
        low, high = exp_minus(exponent, depth)
        if prefix + 1 <= low:
            return True
        if prefix >= high:
            return False
        prefix = prefix << _WORD_BITS | int(bits.words(1)[0])
        depth += _WORD_BITS


def index_by_exponential(numbers: Sequence[int], bits: Bits) -> int:
    """Return b with probability proportional to exactly numbers[b] * exp(-b).

    Parameters
    ----------
    numbers : sequence of int
        None below 0, and one above 0.
    bits : Bits

    >>> from sfumato.random import current
    >>> index_by_exponential([0, 3, 0], current())
    1
    """
    prefix = int(bits.words(1)[0])
    known = _WORD_BITS
    depth = DEPTH
    while True:
        powers = _powers(len(numbers), depth)
        low = list(accumulate(n * power[0] for n, power in zip(numbers, powers, strict=True)))
        high = list(accumulate(n * power[1] for n, power in zip(numbers, powers, strict=True)))
        # U is in [prefix, prefix + 1) / 2**known. U times the sum of all weights certainly lies
        # between these two.
        least = prefix * low[-1]
        most = (prefix + 1) * high[-1]
        before = 0
        for b, number in enumerate(numbers):
            if number and least >= before << known and most <= low[b] << known:
                return b
            before = high[b]
        prefix = prefix << _WORD_BITS | int(bits.words(1)[0])
        known += _WORD_BITS
        depth += _WORD_BITS


@lru_cache(maxsize=64)
def _powers(count: int, depth: int) -> list[Pair]:
    """Enclose exp(-b) for b below ``count``."""
    return [exp_minus(Fraction(b), depth) for b in range(count)]


def index_by_weight(weights: Array, bits: Bits) -> int:
    """Return an index with probability exactly proportional to its weight.

    Parameters
    ----------
    weights : float64 ndarray of shape (entries,)
        Finite, not negative, not all 0. Taken as the dyadic rationals that they are.
    bits : Bits
    """
    sums = np.cumsum(weights)
    prefix = int(bits.words(1)[0]) >> _WORD_BITS - _MANTISSA_BITS
    # Each partial sum is right to a relative entries * 2**-53; twice that and a few roundings more
    # is the margin.
    margin = (len(sums) + 8) * 2.0**-52
    whole = float(sums[-1])
    low = prefix * (1 - margin) * 2.0**-_MANTISSA_BITS * whole
    high = (prefix + 1) * (1 + margin) * 2.0**-_MANTISSA_BITS * whole
    index = int(np.searchsorted(sums, low, side="right"))
    fits_below = high <= sums[min(index, len(sums) - 1)]
    fits_above = index == 0 or sums[index - 1] * (1 + margin) <= low
    if fits_below and fits_above:
        return index
    return _index_by_weight_exactly(weights, prefix, bits)


def _index_by_weight_exactly(weights: Array, prefix: int, bits: Bits) -> int:
    """Do what ``index_by_weight`` does between integers; the first 53 bits of U are known."""
    mantissas, exponents = np.frexp(weights)
    # A mantissa times 2**53 is an integer, and exponents count from the least: the sums are exact.
    integers = (mantissas * 2.0**_MANTISSA_BITS).astype(np.int64).tolist()
    shifts = (exponents - exponents[weights > 0].min()).tolist()
    sums = list(accumulate(m << e if m else 0 for m, e in zip(integers, shifts, strict=True)))
    known = _MANTISSA_BITS
    while True:
        index = bisect_right(sums, prefix * sums[-1] >> known)
        if (prefix + 1) * sums[-1] <= sums[index] << known:
            return index
        prefix = prefix << _WORD_BITS | int(bits.words(1)[0])
        known += _WORD_BITS


def subset(size: int, count: int, bits: Bits) -> list[int]:
    """Draw ``count`` distinct integers below ``size``, in increasing order, every such set equally
    likely.

    Source: Floyd's algorithm (Bentley, Floyd 1987).
    """
    drawn: set[int] = set()
    for last in range(size - count, size):
        one = integer_below(last + 1, bits)
        drawn.add(last if one in drawn else one)
    return sorted(drawn)


def multiset(size: int, count: int, bits: Bits) -> list[int]:
    """Draw ``count`` integers below ``size``, in order, every multiset equally likely.

    Holds because: stars and bars. Taking i from the i-th of ``count`` distinct integers below size
    + count - 1 maps their sets one to one onto these multisets.
    """
    distinct = subset(size + count - 1, count, bits)
    return [one - i for i, one in enumerate(distinct)]
