"""How far one person moves a whole stream of running totals: L2 sensitivities of Toeplitz strategies and of trees.

A *pattern* is the set of steps in which one person takes part: at most ``participations`` of them, any two at least
``separation`` steps apart. Each time the person adds a value of norm at most one; scale by the square of the clip.

Toeplitz. Step t publishes (C x)_t + noise with C lower triangular, C_(t,i) = c_(t-i), and c non-negative and non-increasing.
The squared distance of neighbouring streams is the sum over pairs (i, j) of the pattern of <column i, column j> <u_i, u_j>,
at most the sum of <column i, column j>, since columns are non-negative and abs(<u_i, u_j>) <= 1. For i <= j

    <column i, column j> = c_0 c_(j-i) + c_1 c_(1+j-i) + ... + c_(T-1-j) c_(T-1-i)

falls with j - i, because c does, and with j, because terms are lost. The a-th step of a pattern is at least (a - 1) b, and the
a-th and the a'-th are at least (a' - a) b apart, so the pattern 0, b, 2b, ... is the worst: its columns, added, have the largest norm.
Several times in one step is b = 0: r times the column norm bounds every pattern.

Trees. A node that holds c of the person's steps moves by c, so the square is the sum of c^2 over the completed nodes, which
``squared_tree_sensitivity`` maximises over patterns.

Source: Choquette-Choo et al., NeurIPS 2023, and Kalinin, Lampert, NeurIPS 2024, Thm 2 (Toeplitz); Kairouz et al., ICML 2021,
app. D (trees).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import UsageError
from sfumato.privacy.unit import Neighbours, squared_factor

Table: TypeAlias = dict[int, Array]

FLOAT_SLACK = 2.0**-28
"""Relative; above T * 2**-53 for every T up to 10^7, which bounds the rounding of sums of non-negative doubles."""

WORK = 10**9


def squared_sensitivity(
    coefficients: Array,
    *,
    participations: int = 1,
    separation: int = 1,
    neighbours: Neighbours = "add-remove",
    signed: bool = False,
) -> int | float:
    """How far one person moves a Toeplitz strategy, in L2, squared, for contributions of norm at most one.

    Parameters
    ----------
    coefficients : ndarray of shape (horizon,), integers or float64
        First column of the strategy, non-negative and non-increasing. For integers the answer is an exact integer; for
        doubles it is raised by a relative 2**-28, more than their sums can lose.
    participations : int
        At most so many steps hold something of one person.
    separation : int
        Two such steps are at least so far apart: 1 for different steps, 0 if all may fall into one step.
    neighbours : {"add-remove", "replace"}
        Under replace a person's pattern becomes another one.
    signed : bool
        Whether contributions may have different signs or directions. It matters under replace only: the square is doubled for
        non-negative contributions, because the two patterns have a non-negative inner product, and else taken four times.

    Raises
    ------
    UsageError
        The coefficients rise or are negative, a number is out of range, or the relation is unknown.

    >>> squared_sensitivity(np.array([4, 2, 1]), participations=2, separation=2)
    45
    """
    c = _checked(coefficients)
    check_pattern(participations, separation)
    factor = squared_factor(neighbours, signed)
    if separation == 0:
        return factor * participations**2 * _square(c)
    most = -(-len(c) // separation)
    return factor * _square(_windows(c, min(participations, most), separation))


def check_pattern(participations: int, separation: int) -> None:
    """Refuse numbers that describe no pattern."""
    for name, value, least in (
        ("participations", participations, 1),
        ("separation", separation, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise UsageError(
                f"{name} = {value!r}",
                f"it must be a whole number of at least {least}",
                f"Give such a number for {name}",
            )


def _checked(coefficients: Array) -> Array:
    c = np.asarray(coefficients)
    sound = c.ndim == 1 and c.size > 0 and c.dtype.kind in "iuf"
    if not (sound and (c >= 0).all() and (np.diff(c) <= 0).all()):  # NaN fails both
        raise UsageError(
            "the sensitivity of a Toeplitz strategy",
            "its coefficients must be finite, non-negative and never rise: else the worst pattern is another one",
            "Give such a column",
        )
    return c.astype(np.float64) if c.dtype.kind == "f" else c.astype(np.int64)


def _windows(c: Array, count: int, step: int) -> Array:
    """Add up ``count`` copies of c, each ``step`` later than the one before, in O(horizon log count) additions only."""
    total, done = np.zeros_like(c), 0
    block, size = c, 1
    while count:
        if count & 1:
            total[done * step :] += block[: len(c) - done * step]
            done += size
        count >>= 1
        if count:
            longer = block.copy()
            longer[size * step :] += block[: max(0, len(c) - size * step)]
            block, size = longer, 2 * size
    return total


def _square(c: Array) -> int | float:
    if c.dtype.kind == "f":
        return float(np.dot(c, c)) * (1 + FLOAT_SLACK)
    if int(c.max()) ** 2 * len(c) < 2**63:
        return int(np.dot(c, c))
    return sum(int(x) * int(x) for x in c.tolist())


def levels(steps: int) -> int:
    """How many nodes of a binary tree over ``steps`` leaves hold the first leaf: floor(log2(steps)) + 1.

    >>> [levels(t) for t in (1, 2, 3, 4, 1600)]
    [1, 2, 2, 3, 11]
    """
    return int(steps).bit_length()


def squared_tree_sensitivity(steps: int, *, participations: int = 1, separation: int = 1) -> int:
    """How far one person moves the nodes of a binary tree over ``steps`` leaves, in L2, squared.

    Exact: the largest sum of squared node counts over all patterns, by a dynamic program over the heights; where that
    would take more than some seconds, ``tree_bound``, which is never below.

    Parameters
    ----------
    steps : int
        At least 1. Nodes that are not completed by then are not counted: they were never released.
    participations, separation : int
        As in ``squared_sensitivity``.

    >>> squared_tree_sensitivity(1600)
    11
    >>> squared_tree_sensitivity(8, participations=3, separation=3)
    20
    """
    check_pattern(participations, separation)
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise UsageError(
            f"steps = {steps!r}", "a tree has at least one leaf", "Give a whole number from 1 on"
        )
    steps = int(steps)
    if separation == 0:
        return participations**2 * levels(steps)
    many = min(participations, -(-steps // separation))
    if many == 1:
        return levels(steps)
    if separation**3 * many**2 * levels(steps) // 4 > WORK:
        return tree_bound(steps, participations=participations, separation=separation)
    return _worst_pattern(steps, many, separation)


def tree_bound(steps: int, *, participations: int = 1, separation: int = 1) -> int:
    """An upper bound: at each height nodes are filled as full as the separation allows, whatever the other heights would like.

    >>> tree_bound(16, participations=4, separation=3), squared_tree_sensitivity(16, participations=4, separation=3)
    (42, 40)
    """
    total = 0
    for height in range(levels(steps)):
        full = (
            min(participations, -(-(2**height) // max(separation, 1)))
            if separation
            else participations
        )
        nodes, rest = divmod(participations, full)
        total += nodes * full**2 + rest**2
    return total


def _worst_pattern(steps: int, many: int, separation: int) -> int:
    """Join complete trees, largest first, as the binary digits of ``steps`` say; no node spans two of them."""
    tree, size = _leaf(separation), 1
    trees = [tree]
    while 2 * size <= steps:
        joined = _join(tree, size, tree, size, many)
        tree, size = {m: found + m * m for m, found in joined.items()}, 2 * size
        trees.append(tree)
    whole, reach = trees[-1], size
    for height in range(len(trees) - 2, -1, -1):
        if steps >> height & 1:
            whole = _join(whole, reach, trees[height], 2**height, many)
            reach += 2**height
    return int(max(found[0, 0] for found in whole.values()))


def _leaf(separation: int) -> Table:
    """The best sums of one leaf, by count and by how many places stay free before the first step and after the last one."""
    one = np.full((separation, separation), -np.inf)
    one[0, 0] = 1
    return {0: np.zeros((separation, separation)), 1: one}


def _join(left: Table, left_size: int, right: Table, right_size: int, many: int) -> Table:
    """The best sums of two neighbouring parts: what is free after the left one and before the right one is b - 1 in all."""
    b = len(left[0])
    places = np.arange(b)
    found: Table = {}
    for m in range(min(many, max(left) + max(right)) + 1):
        best = np.full((b, b), -np.inf)
        if m in right:  # all in the right part: the places free before it include the left part
            best = np.maximum(best, right[m][np.maximum(places - left_size, 0), :])
        if m in left:
            best = np.maximum(best, left[m][:, np.maximum(places - right_size, 0)])
        for of_left in range(1, m):
            if of_left in left and m - of_left in right:
                best = np.maximum(best, _both(left[of_left], right[m - of_left]))
        if np.isfinite(best[0, 0]):
            found[m] = best
    return found


def _both(left: Array, right: Array) -> Array:
    best = np.full(left.shape, -np.inf)
    for free in range(len(left)):
        if np.isfinite(left[0, free]) and np.isfinite(right[-1 - free, 0]):
            np.maximum(best, left[:, free, None] + right[None, -1 - free, :], out=best)
    return best
