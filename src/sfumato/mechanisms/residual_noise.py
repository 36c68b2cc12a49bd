"""Gaussian noise of which only contrasts leave: what a residual of a table costs.

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
from collections.abc import Sequence

MARGIN = 1.01
"""By how much the slack is overestimated: far more than the rounding of doubles."""


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
    decays = [2 * math.pi**2 * sigma_squared / group for group in siblings]
    return cells / of_axis * math.fsum(map(log_theta, decays))


def slack_of(bound: float) -> float:
    """The slack h of a residual, from the bound on its ln(1 + eta): at most infinity.

    >>> slack_of(1e-9) < 2.1e-9
    True
    """
    if bound >= math.log(2):
        return math.inf
    return MARGIN * 2 * math.atanh(math.expm1(bound))


def most_slack(rho: float, share: float) -> float:
    """How large H may be if R is at most rho (1 - share).

    sqrt(rho (1 - s)) + sqrt(H) is at most sqrt(rho) if sqrt(H) <= sqrt(rho) s / 2.
    """
    return rho * share**2 / 4


def total_rho(spent: float, slack: float) -> float:
    """The rho of residuals of R and H as above."""
    return (math.sqrt(spent) + math.sqrt(slack)) ** 2
