"""The exact law of a sum of independent discrete Laplace draws: its tails as sums of positive terms.

With q = exp(-1/b), A = (1-q)/(1-qz) and B = (1-q)/(1-q/z), one draw has the generating function A B, and
A B = (A + (q/z) B) / (1 + q). Applied again and again to A^n B^n, until one of the two is used up, this writes the sum as a
mixture: with m factors A left, a negative binomial variable of m successes less n - m; with m factors B left, one of m successes
plus n, below 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np


def laplace_sum_log_tail(scale: Fraction, draws: int, k: int) -> float:
    """ln P(|Z1 + ... + Zn| > k) for an integer k >= 0.

    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> abs(laplace_sum_log_tail(Fraction(7), 1, 20) - DiscreteLaplace(Fraction(7)).log_tail(20)) < 1e-12
    True
    """
    from scipy.special import betaincc, gammaln, logsumexp

    b, n = float(scale), draws
    q, success = math.exp(-1 / b), -math.expm1(-1 / b)
    m = np.arange(1, n + 1)
    ways = gammaln(2 * n - m) - gammaln(n) - gammaln(n - m + 1)
    weights = ways - (n - m) / b - (2 * n - m) * math.log1p(q)
    beyond = betaincc(m, k + 1 + n - m, success)  # P(a negative binomial of m successes > k + n - m)
    with np.errstate(divide="ignore"):
        return min(0.0, math.log(2) + float(logsumexp(weights + np.log(beyond))))


@lru_cache(maxsize=4096)
def laplace_sum_half_width(scale: Fraction, draws: int, alpha: float) -> int:
    """The smallest integer k with P(|Z1 + ... + Zn| > k) <= alpha.

    >>> laplace_sum_half_width(Fraction(10), 1, 0.05), laplace_sum_half_width(Fraction(10), 27, 0.05)
    (30, 144)
    """
    need, low, high = math.log(alpha), -1, max(1, math.ceil(float(scale)))
    while laplace_sum_log_tail(scale, draws, high) > need:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if laplace_sum_log_tail(scale, draws, middle) > need else (low, middle)
    return high
