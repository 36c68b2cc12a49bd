"""Exact integer noise on counts, and its law: what was added is what the intervals are made from.

A law is a frozen value. It samples, and it knows its variance, its tails and the tails of weighted
sums.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array, decimal
from sfumato.mechanisms.scripts import IntegerLaw
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import bits, discrete


class DiscreteLaplace(IntegerLaw, frozen=True, tag="discrete-laplace", forbid_unknown_fields=True):
    """P(x) proportional to exp(-|x| / scale) on the integers (Ghosh, Roughgarden, Sundararajan
    2009).

    >>> law = DiscreteLaplace(Fraction(10))
    >>> law.half_width(0.05)
    30
    """

    scale: Fraction

    def __post_init__(self) -> None:
        discrete.check_scale(self.scale, "scale")

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        return discrete.laplace(self.scale, size, noise)

    @property
    def variance(self) -> float:
        """2 q / (1 - q)^2 with q = exp(-1/scale)."""
        # The same without cancellation: 1 / (2 sinh^2 h), whose square leaves doubles for h above
        # 350.
        half = 1 / (2 * float(self.scale))
        return 1 / (2 * math.sinh(half) ** 2) if half < 350 else 0.0

    @property
    def effective_epsilon(self) -> float:
        """The epsilon of this noise on counts of one row per person: for rules of thumb only."""
        return float(1 / self.scale)

    def log_tail(self, k: float) -> float:
        """ln P(|Z| > k) for an integer k >= 0: 2 q^(k+1) / (1 + q)."""
        b = float(self.scale)
        return math.log(2) - (k + 1) / b - math.log1p(math.exp(-1 / b))

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|Z| > k) <= alpha."""
        b = float(self.scale)
        # log_tail(k) = ln alpha, solved for k; then rounding is made good by steps of one.
        log_ratio = math.log(2) - math.log1p(math.exp(-1 / b)) - math.log(alpha)
        k = max(0, math.ceil(b * log_ratio - 1))
        while self.log_tail(k) > math.log(alpha):
            k += 1
        while k > 0 and self.log_tail(k - 1) <= math.log(alpha):
            k -= 1
        return k

    def sum_half_width(self, effective: Array, alpha: float) -> Array:
        """Half-widths of weighted sums of independent draws, by a Chernoff bound.

        Parameters
        ----------
        effective : float64 ndarray of shape (sums,)
            Sum of the squared weights of each; every weight lies in [0, 1].
        alpha : float
            Two-sided: P(|sum| > half-width) <= alpha.

        Holds because: E exp(tZ) = 1 / (1 - v (cosh t - 1)) with v the variance; for |w| <= 1,
        cosh(wt) - 1 <= w^2 (cosh t - 1) and -ln(1 - w^2 s) <= -w^2 ln(1 - s). So the log moment
        of the sum is at most m * -ln(1 - v (cosh t - 1)), with m the sum of squared weights. Any t
        gives a valid bound; the least over a grid of t is taken.
        """
        v = self.variance
        m = np.asarray(effective, dtype=float)
        if v == 0:
            return np.zeros_like(m)
        # s is v (cosh t - 1), below 1; and cosh t - 1 is 2 sinh(t / 2)^2, without cancellation.
        s = np.concatenate([np.geomspace(1e-9, 0.5, 160), 1 - np.geomspace(0.5, 1e-9, 160)])
        t = 2 * np.arcsinh(np.sqrt(s / v / 2))
        return _least(m, -np.log1p(-s), t, math.log(2 / alpha))

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {decimal(self.scale)}"


class DiscreteGaussian(
    IntegerLaw, frozen=True, tag="discrete-gaussian", forbid_unknown_fields=True
):
    """P(x) proportional to exp(-x^2 / (2 sigma^2)) on the integers (Canonne, Kamath, Steinke,
    NeurIPS 2020).

    >>> DiscreteGaussian(Fraction(100)).half_width(0.05)
    20
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        discrete.check_scale(self.sigma_squared, "sigma_squared", power=2)

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        return discrete.gaussian(self.sigma_squared, size, noise)

    @property
    def sigma(self) -> float:
        """The parameter sigma; the standard deviation is at most this."""
        return math.sqrt(self.sigma_squared)

    @property
    def variance(self) -> float:
        """The variance: sigma^2 but for tiny sigma, where the lattice shows."""
        if self.sigma > 5:
            return float(self.sigma_squared)
        x = np.arange(0, 64)
        mass = np.exp(-(x**2) / (2 * float(self.sigma_squared)))
        return float(2 * (mass * x**2).sum() / (2 * mass.sum() - 1))

    @property
    def effective_epsilon(self) -> float:
        """The epsilon of Laplace noise that spreads as far: for rules of thumb only."""
        return math.sqrt(2) / self.sigma

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|Z| > k) <= alpha; above sigma 10^4 one more, from P(Z >=
        k) <= P(N >= k - 1).
        """
        if self.sigma > 1e4:
            from scipy.special import ndtri

            return math.ceil(-self.sigma * float(ndtri(alpha / 2))) + 1
        # Ten sigma beyond the normal quantile: what lies farther is below any alpha's rounding.
        size = math.ceil(self.sigma * (math.sqrt(-2 * math.log(alpha)) + 10)) + 2
        mass = np.exp(-(np.arange(size, dtype=float) ** 2) / (2 * float(self.sigma_squared)))
        # Sums from k on, the smallest terms first.
        above = np.cumsum(mass[::-1])[::-1]
        tail = 2 * np.append(above[1:], 0) / (2 * above[0] - 1)
        return int(np.argmax(tail <= alpha))

    def sum_half_width(self, effective: Array, alpha: float) -> Array:
        """Half-widths of weighted sums of independent draws: the discrete Gaussian is
        sigma-subgaussian (CKS 2020, Prop. 21).
        """
        m = np.asarray(effective, dtype=float)
        return np.sqrt(2 * m * float(self.sigma_squared) * math.log(2 / alpha))

    def __str__(self) -> str:
        return f"discrete Gaussian noise of sigma {self.sigma:.6g}"


Law: TypeAlias = DiscreteLaplace | DiscreteGaussian


def _least(m: Array, cumulant: Array, t: Array, need: float) -> Array:
    """Minimise (m * cumulant + need) / t over the grid of t, for each m."""
    # Equal m are computed once, and few at a time: large operations in bounded memory.
    distinct, back = np.unique(m, return_inverse=True)
    blocks = np.array_split(distinct, 1 + len(distinct) // 4096)
    best = np.concatenate(
        [((block[:, None] * cumulant + need) / t).min(axis=1) for block in blocks]
    )
    best[distinct == 0] = 0
    return best[back].reshape(m.shape)


def count_law(cost: CentralMeasure, unit: Unit) -> Law:
    """Choose the noise for counts of disjoint cells.

    Parameters
    ----------
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit

    Returns
    -------
    DiscreteLaplace or DiscreteGaussian

    Guarantee: ``cost``, for counts of disjoint public cells that one person moves by at most
    ``unit.counts_l1`` in L1.
    Holds because: Laplace, scale = L1 / epsilon (Dwork et al. 2006, Thm 1; on the integers, Ghosh
    et al. 2009); Gaussian, sigma^2 = L2^2 / (2 rho) (Canonne, Kamath, Steinke 2020, Thm 4). Both
    scales are exact rationals. Under (epsilon, delta) known cells need no delta, and the noise of
    pure epsilon is the better one here: delta is neither used nor charged.

    >>> import sfumato as sf
    >>> from sfumato.extending import count_law
    >>> count_law(sf.PureDP("0.5"), sf.Unit(rows_per_person=2))
    DiscreteLaplace(scale=Fraction(4, 1))
    """
    match cost:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
            return DiscreteLaplace(unit.counts_l1 / epsilon)
        case ZCDP(rho=rho):
            return DiscreteGaussian(unit.counts_l2_squared / (2 * rho))


def unit_of_table(cost: CentralMeasure, unit: Unit, cells: int) -> Unit:
    """The unit on which the noise on counts of so many known cells rests.

    It is ``unit`` itself, unless the number of cells allows less noise: see ``Unit.on_cells``.
    """
    within = unit.on_cells(cells)
    return unit if count_law(cost, within) == count_law(cost, unit) else within


def add_noise(counts: Array, law: IntegerLaw, noise: bits.Bits) -> Array:
    """Add independent noise to every count.

    Parameters
    ----------
    counts : int64 ndarray
    law : DiscreteLaplace, DiscreteGaussian or TruncatedLaplace
    noise : Bits
        Where the noise is drawn from: what ``Question.answer`` is given.

    Returns
    -------
    int64 ndarray like ``counts``

    >>> import numpy as np
    >>> from sfumato.extending import add_noise
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> from sfumato.random.bits import current
    >>> add_noise(np.array([10, 20, 30]), DiscreteLaplace(2), current()).shape
    (3,)
    """
    noisy: Array = counts + law.sample(counts.size, noise).reshape(counts.shape)
    return noisy


def exceeds(counts: Array, law: Law, limits: Array, noise: bits.Bits) -> Array:
    """Say which noisy counts lie above their limits, and nothing more: bool ndarray.

    Parameters
    ----------
    counts : int64 ndarray
    limits : int64 ndarray like ``counts``
        Public.
    """
    above: Array = add_noise(counts, law, noise) > limits
    return above
