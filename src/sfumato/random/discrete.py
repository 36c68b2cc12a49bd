"""Exact draws: discrete Laplace, discrete Gaussian, geometric, uniform, Bernoulli, weighted choice.

Guarantee: given uniform independent bits, each output law equals the stated law.
Holds because
    *Laplace and Gaussian* draws come from ``inversion.Sampler``, whose module states the proof.
    *Geometric*: a discrete Laplace draw X folded at minus one half. x and -1 - x have the weights
    q**x and q**(x + 1), so X where X >= 0 and -1 - X elsewhere has a law proportional to q**x.
    *Uniform integers* are bits that are drawn again while they reach the bound, in fewer than two
    rounds on average.
    *Bernoulli(exp(-gamma))* needs integers only. For gamma <= 1, the first K at which
    Bernoulli(gamma / K) fails is odd with probability 1 - gamma + gamma**2/2! - ..., which is
    exp(-gamma). For more, exp(-gamma) is a product of such factors.
Source: Canonne, Kamath, Steinke 2020, Alg. 1; Ghosh, Roughgarden, Sundararajan 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from sfumato.basics.numbers import decimal
from sfumato.errors import UsageError
from sfumato.random.bits import Bits
from sfumato.random.enclosure import Law
from sfumato.random.inversion import Sampler

Integers = NDArray[np.int64]

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


def geometric(scale: Fraction, size: int, bits: Bits) -> Integers:
    """Draw from the geometric law, P(x) proportional to exp(-x / scale) on 0, 1, 2, ...

    Parameters and result are those of ``laplace``.
    """
    drawn = laplace(scale, size, bits)
    # The sign bit, spread over the word: 0 where the draw is not negative, else all ones, so -1 -
    # X.
    drawn ^= drawn >> 63
    return drawn


def uniform_below(bound: int, size: int, bits: Bits) -> Integers:
    """Draw integers uniformly from 0, ..., bound - 1, shape (size,); the bound is at most 2**63."""
    if not 1 <= bound <= 2**63:
        raise UsageError(
            f"uniform integers below {bound}",
            "the bound must be at least 1 and at most 2**63",
            "Choose another bound",
        )
    drawn = np.zeros(_count(size), dtype=np.int64)
    if bound == 1:
        return drawn
    shift = np.uint64(64 - (bound - 1).bit_length())
    last = np.uint64(bound - 1)
    missing = np.arange(size)
    while missing.size:
        words = bits.words(missing.size) >> shift
        drawn[missing] = words.view(np.int64)
        missing = missing[words > last]
    return drawn


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


def bernoulli(probability: Fraction, bits: Bits) -> bool:
    """Return True with exactly the given rational probability."""
    if not 0 <= probability <= 1:
        raise UsageError(
            f"probability = {decimal(probability)}",
            "a probability lies between 0 and 1",
            "Choose such a probability",
        )
    return integer_below(probability.denominator, bits) < probability.numerator


def bernoulli_exp(gamma: Fraction, bits: Bits) -> bool:
    """Return True with probability exactly exp(-gamma), for a rational gamma >= 0, in integers
    alone.
    """
    if gamma < 0:
        raise UsageError(
            f"gamma = {decimal(gamma)}",
            "exp(-gamma) is a probability only for gamma >= 0",
            "Choose gamma of at least 0",
        )
    whole, rest = divmod(gamma, 1)
    # One factor at a time, so that a huge gamma stops at its first failure.
    for _ in range(int(whole)):
        if not _bernoulli_exp_unit(Fraction(1), bits):
            return False
    return _bernoulli_exp_unit(rest, bits)


def _bernoulli_exp_unit(gamma: Fraction, bits: Bits) -> bool:
    """Do what ``bernoulli_exp`` does for gamma from 0 to 1."""
    trials = 1
    while bernoulli(gamma / trials, bits):
        trials += 1
    return trials % 2 == 1


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
