"""Constants of the bounded perturbation mechanism in fifty decimal digits, in any dimension.

They are computed in decimal arithmetic to any number of digits, in which nothing overflows
(``context``).

With x = kL, V = V_1 L^d (volume of the ball), C = (1 + 2L)^d (volume of the report space), rho = V
/ C and Kummer's function M(1, c, x) = 1 + x/c + x^2/(c (c+1)) + ..., a series of positive terms:

    gamma(d, x) = x^d e^-x M(1, d+1, x) / d          so that the mass in the ball is
    B = e^-x V (1 + g)                               where
    g = M(1, d+1, x) - 1 = x M(1, d+2, x) / (d+1)
    lambda_L = e^x / (C (1 + rho g))                 p_L = rho (1 + g) / (1 + rho g)
    signal = 1 - b = rho g / (1 + rho g)             b = 1 / (1 + rho g)

Each formula multiplies and adds positive numbers only, so every digit but the last few is right.
For x well above c the series is long, and M(1, c, x) = (c-1)! x^(1-c) (e^x - sum over j < c-1 of
x^j / j!) is used instead, where the difference loses at most one digit.
Source: Yang, Tjuawinata, Lam 2022, Lemma 4; DLMF 8.5.1 and 13.6.5.

``Floats`` and ``Flags`` name arrays of floats and of flags.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

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
    unit = int(10 ** (digits + 10))
    total = 0
    for factor, inverse in ((16, 5), (-4, 239)):
        power = unit // inverse
        n = 1
        while power:
            sign = 1 if n % 4 == 1 else -1
            total += factor * (power // n) * sign
            power //= inverse * inverse
            n += 2
    with localcontext(context(digits + 5)):
        return Decimal(total) / unit


@lru_cache(maxsize=64)
def unit_ball(d: int) -> Decimal:
    """Volume V_1 of the unit ball, by V_1(d) = 2 pi V_1(d - 2) / d."""
    with localcontext(context()):
        volume = Decimal(1 + d % 2)
        for n in range(2 + d % 2, d + 1, 2):
            volume *= 2 * pi() / n
        return volume


@lru_cache(maxsize=64)
def _factorial(n: int) -> Decimal:
    with localcontext(context()):
        product = Decimal(1)
        for factor in range(2, n + 1):
            product *= factor
        return product


def kummer(c: int, x: Decimal) -> Decimal:
    """M(1, c, x) for a whole c >= 1 and x >= 0: at least 1."""
    if x > 2 * c + 100:
        return _kummer_far(c, x)
    total = term = Decimal(1)
    while term > total.scaleb(-(DIGITS + 5)):
        term *= x / c
        total += term
        c += 1
    return total


def _kummer_far(c: int, x: Decimal) -> Decimal:
    """M(1, c, x) for x well above c, by the finite sum."""
    below = term = Decimal(1)
    for j in range(1, c - 1):
        term *= x / j
        below += term
    return _factorial(c - 1) * x ** (1 - c) * (x.exp() - (below if c > 1 else 0))


@dataclass(frozen=True)
class Constants:
    """What the mechanism's law is made of, as Decimals.

    Attributes
    ----------
    log_normalizer : Decimal
        ln lambda_L: the density at the true point.
    ball_probability : Decimal
        p_L, the share of reports within L of the true point.
    background_probability, signal_probability : Decimal
        b, the share of reports that are uniform and say nothing, and 1 - b, from its own formula.
    square : Decimal
        E T^2 of the radius T of the mixture: Gamma(d + 1, rate k) truncated to [0, L].
    """

    log_normalizer: Decimal
    ball_probability: Decimal
    background_probability: Decimal
    signal_probability: Decimal
    square: Decimal


@lru_cache(maxsize=1024)
def constants(epsilon: Fraction, radius: Fraction, d: int) -> Constants:
    """Compute the constants of BPM with k = epsilon, L = radius in d dimensions."""
    with localcontext(context()):
        length = exactly(radius)
        x = exactly(epsilon) * length
        space = (1 + 2 * length) ** d
        series = kummer(d + 2, x)
        g = x * series / (d + 1)
        rho = unit_ball(d) * length**d / space
        weight = 1 + rho * g
        return Constants(
            log_normalizer=x - space.ln() - weight.ln(),
            ball_probability=rho * (1 + g) / weight,
            background_probability=1 / weight,
            signal_probability=rho * g / weight,
            square=length**2 * (d + 1) * kummer(d + 4, x) / ((d + 3) * series),
        )


def variance(epsilon: Fraction, radius: Fraction, d: int, offset: Decimal) -> float:
    """Total variance of one debiased report.

    Parameters
    ----------
    epsilon, radius : Fraction
        k and L.
    d : int
    offset : Decimal
        Squared distance of the point from the centre of the cube.
    """
    exact = constants(epsilon, radius, d)
    with localcontext(context()):
        signal = exact.signal_probability
        background = exact.background_probability
        side = 1 + 2 * exactly(radius)
        # A uniform point of a d-ball of radius T has the second moment T^2 d / (d + 2).
        inside = signal * d * exact.square / (d + 2)
        outside = background * d * side**2 / 12 + background * signal * offset
        return float((inside + outside) / signal**2)


@lru_cache(maxsize=256)
def auto_radius(epsilon: Fraction, d: int) -> Fraction:
    """The smallest L, to three digits, whose variance at a corner is within 5% of its limit d (d +
    1) / epsilon^2.

    The limit is that of L without bound, the multivariate Laplace law. It depends on public
    parameters only.
    """
    goal = 1.05 * d * (d + 1) / float(epsilon) ** 2

    def is_enough(x: float) -> bool:
        return variance(epsilon, _rounded(x, epsilon), d, Decimal(d) / 4) <= goal

    # Above d = 1 the variance falls as L grows. So the search may start where hardly anything is
    # within the radius.
    above = 0.01 if d == 1 else d / 8
    while not is_enough(above):
        above *= 1.1
    below = above / 1.1
    while above / below > 1.0005:
        middle = math.sqrt(above * below)
        if is_enough(middle):
            above = middle
        else:
            below = middle
    return _rounded(above, epsilon)


def _rounded(x: float, epsilon: Fraction) -> Fraction:
    """L = x / epsilon in four significant digits, rounded up: short to print, and the same on every
    machine.
    """
    exact = Fraction(x) / epsilon
    unit = Fraction(10) ** (math.floor(math.log10(exact)) - 3)
    return math.ceil(exact / unit) * unit


Floats = np.typing.NDArray[np.float64]
Flags = np.typing.NDArray[np.bool_]
