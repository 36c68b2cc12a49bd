"""Exponentials and cumulative laws between two integers: every rounding is directed, so the truth is always inside.

An enclosure at ``depth`` bits is a pair of integers (low, high) with low <= value * 2**depth <= high. Nothing rests on an
analysis of rounding errors: each product, quotient and remainder is rounded down in ``low`` and up in ``high``. The guard
bits only keep the pairs narrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]

_GUARD = 64


@dataclass(frozen=True, slots=True)
class Law:
    """The shape of a symmetric law on the integers, P(x) proportional to exp(-exponent(abs(x))).

    ``power`` 1 and ``spread`` b is the discrete Laplace law of scale b; ``power`` 2 and ``spread`` 2 sigma**2 is the
    discrete Gaussian law.
    """

    power: int
    spread: Fraction

    def exponent(self, distance: int) -> Fraction:
        """Return distance**power / spread."""
        return Fraction(distance**self.power) / self.spread


@lru_cache(maxsize=1024)
def exp_minus(exponent: Fraction, depth: int) -> Pair:
    """Enclose exp(-exponent), exponent >= 0, at ``depth`` bits; exp(0) is enclosed by itself.

    Method: halve the exponent until it is below 1/16, sum the positive series of exp, take the reciprocal, square back.
    """
    halvings = max(0, int(16 * exponent).bit_length())
    work = depth + _GUARD + halvings
    one = 1 << work
    low, high = _exp_small(exponent / 2**halvings, work)
    low, high = one * one // high, -(-one * one // low)
    for _ in range(halvings):
        low, high = low * low >> work, -(-high * high >> work)
    spare = work - depth
    return low >> spare, min(-(-high >> spare), 1 << depth)


def _exp_small(small: Fraction, work: int) -> Pair:
    """Enclose exp(small) for 0 <= small < 1/16: the terms after the last one add up to less than that one."""
    above, below = small.numerator << work, small.denominator
    step = (above // below, -(-above // below))
    term = total = (1 << work, 1 << work)
    count = 0
    while term[1] > 1:
        count += 1
        scale = count << work
        term = (term[0] * step[0] // scale, -(-term[1] * step[1] // scale))
        total = (total[0] + term[0], total[1] + term[1])
    return total[0], total[1] + (term[1] if step[1] else 0)


@lru_cache(maxsize=8)
def ladder(law: Law, shift: int, depth: int) -> tuple[list[int], list[int]]:
    """Enclose the cumulative law of the rung M that a sampler inverts, as lists of low and high ends.

    M >= 0 has weight f(M * 2**shift) = exp(-exponent(M * 2**shift)), except that M = 0 counts half when ``shift`` is 0.
    The lists end where less than 2**-(2 depth / 3) of the weight at 0 remains: a longer list costs more to build than it
    is worth. A geometric series bounds the remainder, because the ratio of neighbouring weights never grows.
    """
    work = depth + _GUARD
    sums, total = _weights(law, shift, work, depth)
    # A share is sum / total: divide once, towards the safe side, then multiply.
    inverse = ((1 << 2 * work) // total[1], -(-(1 << 2 * work) // total[0]))
    spare, full = 2 * work - depth, 1 << depth
    return [low * inverse[0] >> spare for low, _ in sums], [
        min(-(-high * inverse[1] >> spare), full) for _, high in sums
    ]


def _weights(law: Law, shift: int, work: int, depth: int) -> tuple[list[Pair], Pair]:
    """Return the enclosed partial sums of the rungs' weights, and the enclosed total of all of them."""
    first = law.exponent(1 << shift)
    ratio_low, ratio_high = exp_minus(first, work)
    # For power 2 the ratio itself shrinks by a constant factor; for power 1 it stays.
    bend_low, bend_high = exp_minus(2 * first, work)
    one = 1 << work
    low = high = one
    sum_low = sum_high = one if shift else one >> 1
    sums = [(sum_low, sum_high)]
    while True:
        low, high = low * ratio_low >> work, -(-high * ratio_high >> work)
        if high << 2 * depth // 3 < one - ratio_high:
            return sums, (sum_low, sum_high - (-(high << work) // (one - ratio_high)))
        sum_low, sum_high = sum_low + low, sum_high + high
        sums.append((sum_low, sum_high))
        if law.power > 1:
            ratio_low, ratio_high = ratio_low * bend_low >> work, -(-ratio_high * bend_high >> work)
