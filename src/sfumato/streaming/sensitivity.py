"""L2 sensitivities of whole streams of running totals: Toeplitz strategies and trees.

A *pattern* is the set of steps in which one person takes part: at most ``participations`` of them,
any two at least ``separation`` steps apart. Each time the person adds a value of norm at most one.
For other norms, multiply by the square of the clipping norm.

Toeplitz. Step t publishes (C x)_t + noise, with C lower triangular, C_(t,i) = c_(t-i), and c
non-negative and non-increasing. The squared distance of neighbouring streams is the sum over pairs
(i, j) of the pattern of <column i, column j> <u_i, u_j>. It is at most the sum of <column i, column
j>, since columns are non-negative and abs(<u_i, u_j>) <= 1. For i <= j,

    <column i, column j> = c_0 c_(j-i) + c_1 c_(1+j-i) + ... + c_(T-1-j) c_(T-1-i)

decreases with j - i, because c does, and with j, because terms are lost. The a-th step of a pattern
is at least (a - 1) b, and the a-th and the a'-th are at least (a' - a) b apart. So the pattern 0,
b, 2b, ... is the worst: the sum of its columns has the largest norm. Several times in one step is b
= 0: r times the column norm bounds every pattern.

Trees. A node that holds c of the person's steps moves by c. So the square is the sum of c^2 over
the completed nodes, which ``squared_tree_sensitivity`` maximises over patterns.

Source: Choquette-Choo et al., NeurIPS 2023, and Kalinin, Lampert, NeurIPS 2024, Thm 2 (Toeplitz);
Kairouz et al., ICML 2021, app. D (trees).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.privacy.unit import Neighbours, squared_factor

Table: TypeAlias = dict[int, Array]
"""The best sums of a part of the tree, by the number m of participations in it.

``table[m][i, j]`` is the largest sum of squared node counts with at least i free steps before the
first participation and at least j after the last one; -inf if there is no such pattern.
"""

# The relative rise that covers the rounding of a sum of T non-negative doubles: it is above T 2^-53
# for every T up to 10^7.
FLOAT_SLACK = 2.0**-28
# About how many operations the dynamic program over patterns may take.
WORK = 10**9


def squared_sensitivity(
    coefficients: Array,
    *,
    participations: int = 1,
    separation: int = 1,
    neighbours: Neighbours = "add-remove",
    signed: bool = False,
) -> int | float:
    """Return the squared L2 norm by which one person moves a Toeplitz strategy.

    Parameters
    ----------
    coefficients : ndarray of shape (horizon,), integers or float64
        First column of the strategy, non-negative and non-increasing. For integers the result is an
        exact integer. For doubles it is raised by a relative 2^-28, which is more than their sums
        lose.
    participations : int
        The largest number of steps in which one person takes part, each time with a contribution of
        norm at most one.
    separation : int
        The least distance of two such steps: 1 for different steps, 0 if all may be one step.
    neighbours : {"add-remove", "replace"}
        Under replace a person's pattern becomes another one.
    signed : bool
        Whether contributions may have different signs or directions. This matters under replace
        only. The square is doubled for non-negative contributions, because the two patterns have a
        non-negative inner product. Otherwise it is multiplied by four.

    Returns
    -------
    int or float

    Raises
    ------
    UsageError
        If the coefficients increase or are negative, a number is out of range, or the relation is
        unknown.

    >>> squared_sensitivity(np.array([4, 2, 1]), participations=2, separation=2)
    45
    """
    c = _checked(coefficients)
    check_pattern(participations, separation)
    factor = squared_factor(neighbours, signed)
    if separation == 0:
        return factor * participations**2 * _square(_wide_enough(c, 1))
    most = -(-len(c) // separation)
    count = min(participations, most)
    return factor * _square(_windows(_wide_enough(c, count), count, separation))


def check_pattern(participations: int, separation: int) -> None:
    """Refuse numbers that do not describe a pattern."""
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
    # NaN fails both comparisons.
    if not (sound and (c >= 0).all() and (c[1:] <= c[:-1]).all()):
        must = "its coefficients must be finite, non-negative and never rise"
        raise UsageError(
            "the sensitivity of a Toeplitz strategy",
            f"{must}: else the worst pattern is another one",
            "Give such a column",
        )
    return c.astype(np.float64) if c.dtype.kind == "f" else c


def _wide_enough(c: Array, count: int) -> Array:
    """The same coefficients, of a type that holds sums of so many of them."""
    if c.dtype.kind == "f":
        return c
    # No coefficient exceeds the first one. Beyond 64 bits Python's integers are exact.
    return c.astype(np.int64 if int(c[0]) * count < 2**63 else object)


def _windows(c: Array, count: int, step: int) -> Array:
    """Add up ``count`` copies of c, each ``step`` later than the one before.

    Doubling takes O(horizon log count) additions.
    """
    total = np.zeros_like(c)
    done = 0
    block = c
    size = 1
    # ``total`` holds the first ``done`` copies, and ``block`` holds ``size`` copies, a power of
    # two.
    while count:
        if count & 1:
            total[done * step :] += block[: len(c) - done * step]
            done += size
        count >>= 1
        if count:
            longer = block.copy()
            longer[size * step :] += block[: max(0, len(c) - size * step)]
            block = longer
            size *= 2
    return total


def _square(c: Array) -> int | float:
    if c.dtype.kind == "f":
        return float(np.dot(c, c)) * (1 + FLOAT_SLACK)
    # Within 64 bits numpy is exact; beyond, Python's integers are.
    if int(c.max()) ** 2 * len(c) < 2**63:
        return int(np.dot(c, c))
    return sum(int(x) * int(x) for x in c.tolist())


def levels(steps: int) -> int:
    """Return how many nodes of a binary tree hold its first leaf: floor(log2(steps)) + 1.

    >>> [levels(t) for t in (1, 2, 3, 4, 1600)]
    [1, 2, 2, 3, 11]
    """
    return int(steps).bit_length()


def squared_tree_sensitivity(steps: int, *, participations: int = 1, separation: int = 1) -> int:
    """Return the squared L2 norm by which one person moves the nodes of a binary tree.

    It is the largest sum of squared node counts over all patterns, by a dynamic program over the
    heights. Where that would take more than some seconds, it is ``tree_bound``, which is never
    below.

    Parameters
    ----------
    steps : int
        The number of leaves, at least 1. Nodes that they do not complete are not counted: they are
        never released.
    participations, separation : int
        As in ``squared_sensitivity``.

    Returns
    -------
    int

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
    """Return an upper bound of ``squared_tree_sensitivity``.

    At each height, nodes are filled as full as the separation allows, whether or not one pattern
    can do so at all heights.

    >>> tree_bound(16, participations=4, separation=3)
    42
    >>> squared_tree_sensitivity(16, participations=4, separation=3)
    40
    """
    total = 0
    for height in range(levels(steps)):
        full = participations
        if separation:
            full = min(participations, -(-(2**height) // separation))
        nodes, rest = divmod(participations, full)
        total += nodes * full**2 + rest**2
    return total


def _worst_pattern(steps: int, many: int, separation: int) -> int:
    """Return the largest sum over all patterns.

    The steps are cut into complete trees, largest first, by the binary digits of ``steps``. No
    completed node spans two of them.
    """
    tree = _leaf(separation)
    size = 1
    trees = [tree]
    while 2 * size <= steps:
        joined = _join(tree, size, tree, size, many)
        # The node over both halves holds all m participations.
        tree = {m: found + m * m for m, found in joined.items()}
        size *= 2
        trees.append(tree)
    whole = trees[-1]
    done = size
    for height in range(len(trees) - 2, -1, -1):
        if steps >> height & 1:
            whole = _join(whole, done, trees[height], 2**height, many)
            done += 2**height
    return int(max(found[0, 0] for found in whole.values()))


def _leaf(separation: int) -> Table:
    """Return the table of one leaf."""
    one = np.full((separation, separation), -np.inf)
    one[0, 0] = 1
    return {0: np.zeros((separation, separation)), 1: one}


def _join(left: Table, left_size: int, right: Table, right_size: int, many: int) -> Table:
    """Return the table of two neighbouring parts of the given sizes."""
    b = len(left[0])
    free = np.arange(b)
    found: Table = {}
    for m in range(min(many, max(left) + max(right)) + 1):
        best = np.full((b, b), -np.inf)
        # If all m are in one part, the free steps on the other side include the whole other part.
        if m in right:
            best = np.maximum(best, right[m][np.maximum(free - left_size, 0), :])
        if m in left:
            best = np.maximum(best, left[m][:, np.maximum(free - right_size, 0)])
        for of_left in range(1, m):
            if of_left in left and m - of_left in right:
                best = np.maximum(best, _both(left[of_left], right[m - of_left]))
        if np.isfinite(best[0, 0]):
            found[m] = best
    return found


def _both(left: Array, right: Array) -> Array:
    """Return the best sums of patterns with participations in both parts.

    Between the last one on the left and the first one on the right, b - 1 steps are free in all.
    """
    best = np.full(left.shape, -np.inf)
    for free in range(len(left)):
        if np.isfinite(left[0, free]) and np.isfinite(right[-1 - free, 0]):
            np.maximum(best, left[:, free, None] + right[None, -1 - free, :], out=best)
    return best
