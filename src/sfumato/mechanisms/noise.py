"""Exact integer noise on counts, and its law: what was added is what the intervals are made from.

*Scripts* are chosen integers in place of noise: how ``sfumato.audit`` replays a mechanism. They are
the only way to bypass a law's sampler. A law of integers draws through ``IntegerLaw.sample``. Where
the bits that it is given are a ``Script``, the law asks the script for its draws; everywhere else
it draws from the bits. A release made under a script says that it is not private. A selection of
edges has no noise that could be replaced. Where the bits are a ``Script``, it asks the script for
the outcome, and tells it how likely each outcome is, by the weights that it draws by.

*A law* is a frozen value. It samples, and it knows its variance, its tails and the tails of
weighted sums.

*Residuals.* Gaussian noise of which only contrasts leave: what a residual of a table costs.

Let z be n independent draws of the discrete Gaussian with parameter sigma^2, and x the true counts
of a table. A *residual* publishes D(x + z), where D takes differences between cells that add up to
nothing along some axes. Let P be the orthogonal projection on the span of these differences, and K
the integer vectors that D sends to 0. D(x + z) says which class of x + z modulo K it is, that is,
which point of the lattice P Z^n.

Guarantee: if every two neighbours have sum over residuals of |P(x - x')|^2 / (2 sigma^2) at most R,
and H is the sum of the residuals' ``slack``, all residuals together are (sqrt R + sqrt H)^2-zCDP.
Plain noise would cost |x - x'|^2 / (2 sigma^2): a person with one row moves P x by prod(1 - 1/d),
d being the numbers of cells along the axes, so between binary axes a residual costs a quarter.

Holds because
    *The law of the class.* Each z of a class is u + c + k, with u its point in P Z^n, c fixed in
    the span of K, and k in K. So P(u) is proportional to rho(u) rho(K + c), rho(v) = exp(-|v|^2 /
    (2 sigma^2)). By Poisson's formula rho(K + c) is proportional to the sum over w of the dual of K
    of exp(-2 pi^2 sigma^2 |w|^2) exp(2 pi i <w, c>). Let 1 + eta be that sum at c = 0. Then the
    second factor is at most its value at c = 0, and at least (1 - eta) / (1 + eta) of it. Write it
    as g(u), with m <= g <= 1 and h = -ln m = ln((1 + eta) / (1 - eta)).
    *Divergence.* Let x and x' differ by v in P Z^n, and a > 1. In the sum of P(u)^a P(u - v)^(1 -
    a), squares complete: rho(u)^a rho(u - v)^(1 - a) = exp(a (a - 1) |v|^2 / (2 sigma^2)) rho(u +
    (a - 1) v), and the sum of rho over a shifted lattice is at most that over the lattice. Both
    factors g contribute at most exp((a - 1) h), and the normalising constant at most exp(h). So D_a
    <= a |v|^2 / (2 sigma^2) + h + h / (a - 1). All of it holds for independent residuals together,
    with R in place of |v|^2 / (2 sigma^2) and H in place of h.
    *Every order.* With t > 0 and a >= 1 + t this is at most a (R + H / t). A divergence grows with
    its order, so for a < 1 + t it is at most (1 + t)(R + H / t). Both are at most a (1 + t)(R + H /
    t), which for t = sqrt(H / R) is a (sqrt R + sqrt H)^2.
    *Eta.* Peel an axis of d cells off, let n be the number of all cells, and K' the lattice of the
    other axes. The dual of K is the projection of Z^n on the span of K. With s the sums along the
    axis, a vector of it splits into orthogonal parts: one of squared length |s|^2 / d, which s
    decides, and one that lies, given s, in a shift of a sublattice of d copies of the dual of K'. A
    sum of rho over a shifted lattice is at most that over the lattice. So 1 + eta <= theta(q)^(n /
    d) (1 + eta')^d, where theta(q) = sum of q^(j^2) over all integers j, and q = exp(-2 pi^2
    sigma^2 / d). Repeated, ln(1 + eta) <= the sum over axes of (n / d) ln theta(exp(-2 pi^2 sigma^2
    / d)).
    Where an axis takes differences within several groups of f siblings, each group adds (n / N) ln
    theta(exp(-2 pi^2 sigma^2 / f)), N being the number of cells of the axis.

Along an axis with many cells the slack is large unless sigma is, and 1 - 1/d is nearly 1. Then the
differences along that axis are not counted on: x + z itself could be published along it, and the
residual follows from that. ``Residual.along`` names the axes that are counted on.

Source: Canonne, Kamath, Steinke 2020, Thm 4 (one lattice); Xiao, He, Zhang, Kifer, NeurIPS 2023
(residuals with continuous noise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias, final

import msgspec
import numpy as np

from sfumato.basics import Array, decimal
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, PureDP, Unit
from sfumato.random import bits, discrete

# --- scripts --------------------------------------------------------------------------------------


class Drawn(Protocol):
    """A law of integers, as far as a script knows it."""

    def sample(self, size: int, noise: bits.Bits, /) -> Array: ...


@dataclass(frozen=True, repr=False, eq=False)
class Selection:
    """A selection of public edges, as far as a script knows it.

    For audits only: ``log_probability`` is computed from true counts.

    Attributes
    ----------
    first : int
        The lowest edge that can be chosen.
    edges : int
        From how many edges.
    size : int
        How many edges are chosen at once, in order.
    distinct : bool
        Whether they must differ.
    log_probability : callable
        From edges, int64 ndarray of shape (size,), to ln P of choosing them.
    """

    first: int
    edges: int
    size: int
    distinct: bool
    log_probability: Callable[[Array], float]


class Script:
    """Chosen integers in place of noise: a law asks a script for its draws.

    Never private, and stamped so.
    """

    @final
    @property
    def private(self) -> Literal[False]:
        """A release made under a script says that it is not private."""
        return False

    def words(self, count: int) -> bits.Words:
        """Hand out raw bits, of which a script has none unless a subclass says so."""
        raise NotImplementedError

    def draw(self, law: Drawn, size: int) -> Array:
        """Hand out ``size`` integers in place of draws from ``law``: int64 ndarray."""
        raise NotImplementedError

    def choose(self, selection: Selection) -> Array:
        """Hand out the edges that a selection is to choose: int64 ndarray of shape (size,)."""
        raise NotImplementedError


# --- laws -----------------------------------------------------------------------------------------


class IntegerLaw(msgspec.Struct, frozen=True):
    """A law of integers: what noise on counts is drawn from."""

    def sample(self, size: int, noise: bits.Bits) -> Array:
        """Draw ``size`` independent values: int64 ndarray of shape (size,)."""
        if isinstance(noise, Script):
            return noise.draw(self, size)
        return self._draw(size, noise)

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        raise NotImplementedError


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
        log_both = math.log1p(math.exp(-1 / b))
        return math.log(2) - (k + 1) / b - log_both

    def half_width(self, alpha: float) -> int:
        """The smallest integer k with P(|Z| > k) <= alpha."""
        b = float(self.scale)
        # log_tail(k) = ln alpha, solved for k; then rounding is made good by steps of one.
        log_both = math.log1p(math.exp(-1 / b))
        log_ratio = math.log(2) - log_both - math.log(alpha)
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
        near_one = 1 - np.geomspace(0.5, 1e-9, 160)
        s = np.concatenate([np.geomspace(1e-9, 0.5, 160), near_one])
        t = 2 * np.arcsinh(np.sqrt(s / v / 2))
        need = math.log(2 / alpha)
        return least_over_grid(m, -np.log1p(-s), t, need)

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
        mass = bell(64, float(self.sigma_squared))
        second = 2 * (mass * np.arange(64) ** 2).sum()
        return float(second / (2 * mass.sum() - 1))

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
        reach = math.sqrt(-2 * math.log(alpha)) + 10
        size = math.ceil(self.sigma * reach) + 2
        mass = bell(size, float(self.sigma_squared))
        # Sums from k on, the smallest terms first.
        above = np.cumsum(mass[::-1])[::-1]
        whole = 2 * above[0] - 1
        tail = 2 * np.append(above[1:], 0) / whole
        return int(np.argmax(tail <= alpha))

    def sum_half_width(self, effective: Array, alpha: float) -> Array:
        """Half-widths of weighted sums of independent draws: the discrete Gaussian is
        sigma-subgaussian (CKS 2020, Prop. 21).
        """
        m = np.asarray(effective, dtype=float)
        squares = 2 * m * float(self.sigma_squared)
        return np.sqrt(squares * math.log(2 / alpha))

    def __str__(self) -> str:
        return f"discrete Gaussian noise of sigma {self.sigma:.6g}"


Law: TypeAlias = DiscreteLaplace | DiscreteGaussian


def bell(size: int, sigma_squared: float) -> Array:
    """Return exp(-x^2 / (2 sigma^2)) for x = 0, 1, .., size - 1: float64 ndarray."""
    return np.exp(-(np.arange(size, dtype=float) ** 2) / (2 * sigma_squared))


def least_over_grid(m: Array, cumulant: Array, t: Array, need: float) -> Array:
    """Minimise (m * cumulant + need) / t over the grid of t, for each m; 0 where m is."""
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
    # Fractions throughout: a scale that was rounded down would promise more than it keeps.
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


# --- residuals ------------------------------------------------------------------------------------


def log_theta(decay: float) -> float:
    """An upper bound on ln(sum of q^(j^2) over all integers j), q = exp(-decay).

    For j >= 1, q^(j^2) <= q^(3 j - 2); and ln(1 + x) <= x.

    >>> log_theta(0.0)
    inf
    >>> log_theta(40.0) < 1e-17
    True
    """
    if decay <= 0:
        return math.inf
    return 2 * math.exp(-decay) / -math.expm1(-3 * decay)


def log_eta(sigma_squared: float, siblings: Sequence[int], cells: int, of_axis: int) -> float:
    """What one axis adds to the bound on ln(1 + eta).

    Parameters
    ----------
    sigma_squared : float
    siblings : sequence of int
        How many cells each group of the axis has whose differences are taken.
    cells : int
        How many cells the table has.
    of_axis : int
        How many of them there are along this axis.
    """
    exponent = 2 * math.pi**2 * sigma_squared
    decays = [exponent / group for group in siblings]
    return cells / of_axis * math.fsum(map(log_theta, decays))


def most_slack(rho: float, share: float) -> float:
    """How large H may be if R is at most rho (1 - share).

    sqrt(rho (1 - s)) + sqrt(H) is at most sqrt(rho) if sqrt(H) <= sqrt(rho) s / 2.
    """
    return rho * share**2 / 4
