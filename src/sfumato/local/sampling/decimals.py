"""Decimal arithmetic to any number of digits, in which nothing overflows."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

DIGITS = 50
LARGEST_EXPONENT = 10**17


def context(digits: int = DIGITS) -> Context:
    """Decimal arithmetic of that many digits, with exponents beyond all that is computed here."""
    return Context(prec=digits, Emax=LARGEST_EXPONENT, Emin=-LARGEST_EXPONENT)


def exactly(value: Fraction) -> Decimal:
    """A rational number in the decimal arithmetic in force."""
    return Decimal(value.numerator) / Decimal(value.denominator)


@lru_cache(maxsize=8)
def pi(digits: int = DIGITS) -> Decimal:
    """pi, by Machin's formula 16 arctan(1/5) - 4 arctan(1/239) in integers."""
    one = int(10 ** (digits + 10))
    total = 0
    for factor, inverse in ((16, 5), (-4, 239)):
        power = one // inverse
        n = 1
        while power:
            sign = 1 if n % 4 == 1 else -1
            total += factor * (power // n) * sign
            power //= inverse * inverse
            n += 2
    with localcontext(context(digits + 5)):
        return Decimal(total) / one
