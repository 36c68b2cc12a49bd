"""Exact draws: discrete Laplace, discrete Gaussian, uniform, and by weight.

Guarantee: given uniform independent bits, each output law equals the stated law.
Holds because
    *Laplace and Gaussian* draws come from ``inversion.Sampler``, whose module states the proof.
    *Uniform integers* are bits that are drawn again while they reach the bound, in fewer than two
    rounds on average.
Source: Canonne, Kamath, Steinke 2020; Ghosh, Roughgarden, Sundararajan 2009.

Draws by weight are exact too: by exp(-x) for rational x, and by weights held as doubles. No draw
adds an absolute error.

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

from sfumato.basics import Array, decimal
from sfumato.errors import UsageError
from sfumato.random.bits import Bits
from sfumato.random.inversion import Law, Pair, Sampler, exp_minus

Integers = np.typing.NDArray[np.int64]

MAX_SCALE = 2**48
"""The largest scale or sigma: beyond it the tail of the law would leave 64-bit integers."""

MIN_SCALE = Fraction(1, 10**12)
"""The smallest scale or sigma.

No epsilon that a ledger counts asks for less, and below it noise is all but never there.
"""


def laplace(scale: Fraction, size: int, bits: Bits) -> Integers:
    """Draw from the discrete Laplace law, P(x) proportional to exp(-abs(x) / scale).

    Parameters
    ----------
    scale : Fraction
        Above 0, at most 2**48.
    size : int
        How many draws.
    bits : Bits
        Usually ``sfumato.random.current()``.

    Returns
    -------
    ndarray of int64, shape (size,)

    Raises
    ------
    UsageError
        The scale is not an exact number in its range, or the size is negative.

    >>> from sfumato.random import current
    >>> laplace(Fraction(1, 1000), 3, current())
    array([0, 0, 0])
    """
    return _sampler(1, *_parts(scale, "scale")).draw(_count(size), bits)


def gaussian(sigma_squared: Fraction, size: int, bits: Bits) -> Integers:
    """Draw from the discrete Gaussian law, P(x) proportional to exp(-x**2 / (2 sigma_squared)).

    Parameters
    ----------
    sigma_squared : Fraction
        Above 0, at most 2**96. It is slightly more than the variance of the draws when it is small.
    size : int
        How many draws.
    bits : Bits
        Usually ``sfumato.random.current()``.

    Returns
    -------
    ndarray of int64, shape (size,)

    Raises
    ------
    UsageError
        sigma_squared is not an exact number in its range, or the size is negative.
    """
    return _sampler(2, *_parts(sigma_squared, "sigma_squared")).draw(_count(size), bits)


def integer_below(bound: int, bits: Bits) -> int:
    """Draw one integer uniformly from 0, ..., bound - 1, for a bound of any size."""
    if bound < 1:
        raise UsageError(
            f"a uniform integer below {bound}",
            "the bound must be at least 1",
            "Choose another bound",
        )
    length = (bound - 1).bit_length()
    if not length:
        return 0
    count = -(-length // 64)
    while True:
        drawn = 0
        for word in bits.words(count).tolist():
            drawn = drawn << 64 | word
        drawn >>= 64 * count - length
        if drawn < bound:
            return drawn


def choice(weights: Sequence[int], bits: Bits) -> int:
    """Return an index with probability exactly weights[index] / sum(weights).

    Parameters
    ----------
    weights : sequence of int
        Of any size; none below 0, and one above 0.
    bits : Bits
    """
    total = sum(weights)
    if any(weight < 0 for weight in weights) or not total:
        raise UsageError(
            "a weighted choice",
            "weights must not be negative, and one must be above 0",
            "Give integer weights",
        )
    drawn = integer_below(total, bits)
    return next(index for index, bound in enumerate(accumulate(weights)) if drawn < bound)


def _parts(value: Fraction, name: str) -> tuple[int, int]:
    """Numerator and denominator of an exact number; a float is refused."""
    if not isinstance(value, (Fraction, int)):
        raise UsageError(
            f"{name} as {type(value).__name__}",
            "noise is drawn at exact scales only",
            f"Give {name} as a Fraction",
        )
    return value.as_integer_ratio()


def check_scale(value: Fraction, name: str, *, power: int = 1) -> None:
    """Refuse a scale (``power`` 1) or its square (2) that is below 10**-12 or above 2**48."""
    if not MIN_SCALE**power <= value <= MAX_SCALE**power:
        raise UsageError(
            f"noise of {name} {decimal(value)}",
            f"it must be at least {float(MIN_SCALE**power):g} and at most 2**{48 * power}",
            "Choose another epsilon, or fewer rows per person",
        )


def _count(size: int) -> int:
    if size < 0:
        raise UsageError(
            f"{size} draws", "the number of draws must not be negative", "Ask for 0 or more"
        )
    return size


# Keyed by integers, because hashing a Fraction takes longer than a draw.
@lru_cache(maxsize=64)
def _sampler(power: int, numerator: int, denominator: int) -> Sampler:
    value = Fraction(numerator, denominator)
    check_scale(value, "scale" if power == 1 else "sigma_squared", power=power)
    return Sampler(Law(power, power * value))


# --- draws by weight ------------------------------------------------------------------------------

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
    return survived


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
    depth = 256
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
        candidate = integer_below(last + 1, bits)
        drawn.add(last if candidate in drawn else candidate)
    return sorted(drawn)


def multiset(size: int, count: int, bits: Bits) -> list[int]:
    """Draw ``count`` integers below ``size``, in order, every multiset equally likely.

    Holds because: stars and bars. Taking i from the i-th of ``count`` distinct integers below size
    + count - 1 maps their sets one to one onto these multisets.
    """
    distinct = subset(size + count - 1, count, bits)
    return [number - i for i, number in enumerate(distinct)]
