"""How far the rank of a chosen edge may be from the rank asked for: bounds for any data.

Let the best of N outcomes have utility M, and let a be the weight of one unit of utility. An
outcome that is worse by t has at most e^(-a t) of the best one's weight. So a selection falls short
of M by more than t with probability at most N e^(-a t). With confidence 1 - alpha it falls short by
at most (ln N + ln 1/alpha) / a.

*One edge*: the rank error is |n(o) - q n|, a = epsilon / (2 D), and N is the number of edges of
sub-cells. Permute-and-flip is never worse.
*Jointly*: u <= -2 |d_j| for each j, so all ranks together are within half of that bound. N is the
number of tuples.
*Jointly, given a noisy number of rows*: d_j is (1 - q) times the errors of the gaps below less q
times those above. So |d_j| <= max(q, 1 - q) |u|, where u adds up the errors of the gaps. The best
pair of a tuple and a number t falls short by the distance from n to the nearest t, which the noise
on the number of rows bounds. N is the number of tuples times that of numbers t.
*By halving*: the error of a node is added to those of the two edges that bound it, in shares that
sum to one. So each level adds at most the bound of one selection.
*Tree*: if S bounds the error of all noisy ranks at once, the chosen edge is within 2 S.

A cell with #{< cell} rows below it and #{<= cell} rows in or below it has every rank between the
two. The bounds are on the distance of that interval from the rank asked for, for the cell in which
the chosen edge lies. They exclude the additional error from sub-cell width (``subcells``): half the
rows of a sub-cell near the target, w / 2T for a cell of w rows. Where the axis has no step, values
between cells are rounded to the nearer end of their cell. The bounds hold for the worst data. Where
values lie evenly around the quantiles, the ln N is not paid, and the error is typically
ln(1/alpha) / a.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.mechanisms.jointexp import tuples
from sfumato.mechanisms.noise import DiscreteLaplace, Law
from sfumato.mechanisms.noise_sums import contrast_half_width
from sfumato.mechanisms.selection import joint_sensitivity, rank_sensitivity
from sfumato.quantiles.axis_method import AxisMethod
from sfumato.quantiles.count_tree import FANOUT
from sfumato.quantiles.halving import worst_ranks


def half_width(method: AxisMethod, alpha: float, together: int = 0) -> int:
    """Rows by which the rank of a quantile may be off.

    Parameters
    ----------
    method : AxisMethod
    alpha : float
        With probability 1 - alpha the rank is off by no more.
    together : int
        0: for each quantile by itself. Else: for all quantiles of so many axes and labels at once.
    """
    answers = max(together, 1)
    match method.method:
        case "joint":
            # One selection bounds all ranks of an axis, so only axes and labels divide alpha.
            return math.ceil(_joint(method, alpha / answers))
        case "recursive":
            selections = len(method.at) * answers if together else method.levels
            ranks = worst_ranks(method.at, method.levels)
            return math.ceil(sum(_single(method, q, alpha / selections) for q in ranks))
        case "tree":
            return math.ceil(_tree(method, alpha / (len(method.at) * answers if together else 1)))


def typical(method: AxisMethod, alpha: float) -> float:
    """Rows by which one rank is typically off, where values lie evenly around the quantile."""
    if method.method == "tree":
        return 2 * math.sqrt(math.fsum(15 * law.variance / 2 for law in method.laws))
    unit, epsilon = method.shares[0]
    if method.with_total:
        # The errors of the gaps are nearly independent Laplace draws.
        law = DiscreteLaplace(2 * unit.rows_per_person / (epsilon - method.slack))
        gaps = len(method.at) + 1
        within = (
            contrast_half_width(law, j, gaps - j, q, alpha) for j, q in enumerate(method.at, 1)
        )
        return float(max(within))
    if method.method == "joint" and len(method.at) > 1:
        return math.log(1 / alpha) * float(joint_sensitivity(method.at, unit) / epsilon)
    each_level = (
        math.log(1 / alpha) * float(2 * rank_sensitivity(q, unit) / epsilon)
        for q in worst_ranks(method.at, method.levels)
    )
    return sum(each_level) / 2


def _joint(method: AxisMethod, alpha: float) -> float:
    if len(method.at) == 1:
        return _single(method, method.at[0], alpha)
    if method.total_law is not None:
        return _joint_with_total(method, method.total_law, alpha)
    unit, epsilon = method.shares[0]
    left = epsilon - method.slack
    choices = math.log(tuples(len(method.at), method.edges))
    return (choices - math.log(alpha)) * float(joint_sensitivity(method.at, unit) / left)


def _joint_with_total(method: AxisMethod, law: Law, alpha: float) -> float:
    unit, epsilon = method.shares[0]
    per_unit = float(2 * unit.rows_per_person / (epsilon - method.slack))
    totals = 2 * method.totals_beside + 1
    choices = math.log(tuples(len(method.at), method.edges) * totals)
    # Half of alpha goes to the number of rows, and half to the selection.
    reach = method.totals_beside * method.total_step
    nearest = max(method.total_step / 2 if reach else 0, law.half_width(alpha / 2) - reach)
    short = (choices - math.log(alpha / 2)) * per_unit
    farthest = max(max(q, 1 - q) for q in method.at)
    return float(farthest) * (short + nearest)


def _single(method: AxisMethod, q: Fraction, alpha: float) -> float:
    unit, epsilon = method.shares[0]
    choices = math.log(method.edges)
    return (choices - math.log(alpha)) * float(2 * rank_sensitivity(q, unit) / epsilon)


def _tree(method: AxisMethod, alpha: float) -> float:
    """2 S, where S holds at every edge at once.

    A noisy rank adds up at most 15 counts a level. Its target adds up the 16 of the total, each
    with a weight of at most 1.
    """
    edges = method.cells + 1
    terms = np.array([FANOUT + (FANOUT - 1) * method.levels], dtype=float)
    widest = max(method.laws, key=lambda law: law.variance)
    return 2 * float(widest.sum_half_width(terms, alpha / edges)[0])
