"""Exponentials and cumulative laws between two integers, for exact comparisons with random bits.

An enclosure at ``depth`` bits is a pair of integers (low, high) with low <= value * 2**depth <=
high. Every rounding is directed: each product, quotient and remainder is rounded down in ``low``
and up in ``high``. So the true value is always inside, and nothing rests on an analysis of rounding
errors. The guard bits only keep the pairs narrow.

How to read the code: ``a >> n`` and ``a // b`` round down; ``-(-a >> n)`` and ``-(-a // b)`` round
up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]
"""An enclosure: (low, high)."""

_GUARD_BITS = 64


@dataclass(frozen=True, slots=True)
class Law:
    """The shape of a symmetric law on the integers, P(x) proportional to exp(-exponent(abs(x))).

    ``power`` 1 and ``spread`` b is the discrete Laplace law of scale b; ``power`` 2 and ``spread``
    2 sigma**2 is the discrete Gaussian law.
    """

    power: int
    spread: Fraction

    def exponent(self, distance: int) -> Fraction:
        """Return distance**power / spread."""
        return Fraction(distance**self.power) / self.spread


@lru_cache(maxsize=1024)
def exp_minus(exponent: Fraction, depth: int) -> Pair:
    """Enclose exp(-exponent), exponent >= 0, at ``depth`` bits; exp(0) is enclosed by itself.

    Method: halve the exponent until it is below 1/16, sum the positive series of exp, take the
    reciprocal, square back.
    """
    halvings = max(0, int(16 * exponent).bit_length())
    # Each squaring doubles the relative width of the pair, so each halving gets a bit of its own.
    work = depth + _GUARD_BITS + halvings
    one = 1 << work
    exp_low, exp_high = _exp_small(exponent / 2**halvings, work)
    # The reciprocal falls as its argument grows, so the ends change places.
    low = one * one // exp_high
    high = -(-one * one // exp_low)
    for _ in range(halvings):
        low = low * low >> work
        high = -(-high * high >> work)
    spare = work - depth
    # exp(-exponent) is at most 1, whatever rounding up has made of it.
    return low >> spare, min(-(-high >> spare), 1 << depth)


def _exp_small(small: Fraction, work: int) -> Pair:
    """Enclose exp(small) for 0 <= small < 1/16."""
    numerator = small.numerator << work
    step_low = numerator // small.denominator
    step_high = -(-numerator // small.denominator)
    term_low = term_high = total_low = total_high = 1 << work
    count = 0
    while term_high > 1:
        count += 1
        scale = count << work
        term_low = term_low * step_low // scale
        term_high = -(-term_high * step_high // scale)
        total_low += term_low
        total_high += term_high
    # Each term is less than a sixteenth of the one before: all that follow the last add up to less
    # than it.
    remainder = term_high if step_high else 0
    return total_low, total_high + remainder


@lru_cache(maxsize=8)
def cumulative_law(law: Law, shift: int, depth: int) -> tuple[list[int], list[int]]:
    """Enclose the cumulative law of the interval M that ``inversion`` draws, as lists of low and
    high ends.

    M >= 0 has weight f(M * 2**shift) = exp(-exponent(M * 2**shift)), except that M = 0 counts half
    when ``shift`` is 0. The lists end where less than 2**-(2 depth / 3) of the weight at 0 remains:
    a longer list costs more to build than it is worth.
    """
    work = depth + _GUARD_BITS
    sums, (total_low, total_high) = _partial_sums(law, shift, work, depth)
    # A share is sum / total: divide once, towards the safe side, then multiply.
    inverse_low = (1 << 2 * work) // total_high
    inverse_high = -(-(1 << 2 * work) // total_low)
    spare = 2 * work - depth
    one = 1 << depth
    lows = [low * inverse_low >> spare for low, _ in sums]
    highs = [min(-(-high * inverse_high >> spare), one) for _, high in sums]
    return lows, highs


def _partial_sums(law: Law, shift: int, work: int, depth: int) -> tuple[list[Pair], Pair]:
    """Return the enclosed partial sums of the weights, and the enclosed total of all of them."""
    first = law.exponent(1 << shift)
    # Neighbouring weights f(M + 1) / f(M) have the ratio exp(-first (2M + 1)) for power 2, which
    # shrinks by the constant factor exp(-2 first) from one M to the next; for power 1 it stays
    # exp(-first).
    ratio_low, ratio_high = exp_minus(first, work)
    shrink_low, shrink_high = exp_minus(2 * first, work)
    one = 1 << work
    low = high = one
    sum_low = sum_high = one if shift else one >> 1
    sums = [(sum_low, sum_high)]
    while True:
        low = low * ratio_low >> work
        high = -(-high * ratio_high >> work)
        if high << 2 * depth // 3 < one - ratio_high:
            # The ratio never grows, so a geometric series bounds all that is left out.
            remainder = -(-(high << work) // (one - ratio_high))
            return sums, (sum_low, sum_high + remainder)
        sum_low += low
        sum_high += high
        sums.append((sum_low, sum_high))
        if law.power > 1:
            ratio_low = ratio_low * shrink_low >> work
            ratio_high = -(-ratio_high * shrink_high >> work)
