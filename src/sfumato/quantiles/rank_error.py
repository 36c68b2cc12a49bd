"""How far the rank of a chosen edge may be from the one that was asked for: bounds that hold whatever the data are.

A selection whose best outcome has utility M leaves it by more than t with a chance of at most N e^(-a t), N the number of outcomes
and a the weight of one unit: every outcome that is worse by t has at most e^(-a t) of the best one's weight. So with confidence
1 - alpha it stays within (ln N + ln 1/alpha) / a.

*One edge*: the rank error is |n(o) - q n|, a = epsilon / (2 D), N the number of edges of sub-cells; permute-and-flip is never worse.
*Jointly*: u <= -2 |d_j| for each j, so all ranks together are within half of that, N the number of tuples.
*By halving*: a node's error is added to those of the two edges that bound it, in shares that sum to one, so it grows by at most
one selection's bound a level.
*Tree*: with S a bound on the error of all noisy ranks at once, the chosen edge is within 2 S.

A cell with rows #{< cell} below it and #{<= cell} in or below it has each rank between the two. The bounds are on the distance of that
interval from the rank that was asked for, the cell being the one in which the chosen edge lies. They are beyond what sub-cells force
(``parts``): half the rows of a sub-cell near the target, w / 2T for a cell of w rows. Values between cells are rounded to the nearer
end of their cell where the axis has no step. The bounds are for the worst data; where values lie evenly around the quantiles the ln N is
not paid, and the error is typically ln(1/alpha) / a.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sfumato.mechanisms.jointexp import tuples
from sfumato.mechanisms.ranks import joint_sensitivity, rank_sensitivity
from sfumato.quantiles.methods import FANOUT, Way


def half_width(way: Way, alpha: float, together: int = 0) -> int:
    """Rows by which the rank of a quantile may be off.

    Parameters
    ----------
    way : Way
    alpha : float
        With probability 1 - alpha it is off by no more.
    together : int
        0: for each quantile by itself. Else: for all quantiles of so many axes and labels at once.
    """
    parts = max(together, 1)
    match way.method:
        case "joint":
            return math.ceil(_joint(way, alpha / parts))
        case "recursive":
            selections = len(way.at) * parts if together else way.levels
            return math.ceil(sum(_single(way, q, alpha / selections) for q in _worst_ranks(way)))
        case "tree":
            return math.ceil(_tree(way, alpha / (len(way.at) * parts if together else 1)))


def typical(way: Way, alpha: float) -> float:
    """Rows by which the rank of one quantile is typically off, where values lie evenly around it."""
    if way.method == "tree":
        return 2 * math.sqrt(math.fsum(15 * law.variance / 2 for law in way.laws))
    if way.method == "joint" and len(way.at) > 1:
        unit, epsilon = way.shares[0]
        return math.log(1 / alpha) * float(joint_sensitivity(way.at, unit) / epsilon)
    return (
        sum(
            math.log(1 / alpha)
            * float(2 * rank_sensitivity(q, way.shares[0][0]) / way.shares[0][1])
            for q in _worst_ranks(way)
        )
        / 2
    )


def _joint(way: Way, alpha: float) -> float:
    if len(way.at) == 1:
        return _single(way, way.at[0], alpha)
    unit, epsilon = way.shares[0]
    left = epsilon - way.slack
    choices = math.log(tuples(len(way.at), way.edges))
    return (choices - math.log(alpha)) * float(joint_sensitivity(way.at, unit) / left)


def _single(way: Way, q: Fraction, alpha: float) -> float:
    unit, epsilon = way.shares[0]
    return (math.log(way.edges) - math.log(alpha)) * float(2 * rank_sensitivity(q, unit) / epsilon)


def _worst_ranks(way: Way) -> list[Fraction]:
    """For each level of halving, the rank that is farthest from the middle."""
    found = [Fraction(1, 2)] * way.levels

    def visit(first: int, stop: int, level: int) -> None:
        if first >= stop:
            return
        middle = (first + stop) // 2
        below = way.at[first - 1] if first else Fraction(0)
        above = way.at[stop] if stop < len(way.at) else Fraction(1)
        rank = (way.at[middle] - below) / (above - below)
        found[level] = max(found[level], rank, 1 - rank)
        visit(first, middle, level + 1)
        visit(middle + 1, stop, level + 1)

    visit(0, len(way.at), 0)
    return found


def _tree(way: Way, alpha: float) -> float:
    """2 S: at most 15 counts a level and the 16 of the total, each with a weight of at most 1, at every edge."""
    edges = way.cells + 1
    terms = np.array([FANOUT + (FANOUT - 1) * way.levels], dtype=float)
    widest = max(way.laws, key=lambda law: law.variance)
    return 2 * float(widest.sum_half_width(terms, alpha / edges)[0])
