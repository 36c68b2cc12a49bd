"""The privacy loss of trees of Gaussian noise, under the source's names, from their sensitivities.

*L2 sensitivities of whole streams of running totals* (``squared_sensitivity``,
``squared_tree_sensitivity``): Toeplitz strategies and trees.

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

*The privacy loss* of one tree or several.

A tree of Gaussian nodes is one Gaussian mechanism with the squared sensitivity S of
``squared_tree_sensitivity``, adaptive steps included. Its Renyi divergence at order a is at most
a S / (2 sigma^2), which is rho-zCDP with rho = S / (2 sigma^2) (Bun, Steinke 2016, Lemma 2.4). The
losses of trees that follow each other add up, since one person may have taken part in all of them.
Charging a restart only once would be right only if nobody took part in two trees.

Here ``min_separation`` counts the steps *between* two participations, as the source does. Elsewhere
in this library ``separation`` is their distance, which is one more.
Source: Kairouz et al. 2021, app. D; TensorFlow Privacy, ``tree_aggregation_accountant``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array, is_whole, whole
from sfumato.errors import UsageError, explained
from sfumato.privacy import Neighbours, squared_factor
from sfumato.streaming.generators import check_deviation

# --- sensitivities --------------------------------------------------------------------------------

# The best sums of a part of the tree, by the number m of participations in it.
#
# ``table[m][i, j]`` is the largest sum of squared node counts with at least i free steps before the
# first participation and at least j after the last one; -inf if there is no such pattern.
Table: TypeAlias = dict[int, Array]

# The relative rise that covers the rounding of a sum of T non-negative doubles: it is above T 2^-53
# for every T up to 10^7.
FLOAT_SLACK = 2.0**-28


@explained
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
    c = np.asarray(coefficients)
    sound = c.ndim == 1 and c.size > 0 and c.dtype.kind in "iuf"
    # NaN fails both comparisons.
    if not (sound and (c >= 0).all() and (c[1:] <= c[:-1]).all()):
        raise UsageError(
            "the sensitivity of a Toeplitz strategy",
            "its coefficients must be finite, non-negative and never rise: else the worst pattern "
            "is another one",
            "Give such a column",
        )
    # Single precision would lose more than FLOAT_SLACK covers.
    c = c.astype(np.float64) if c.dtype.kind == "f" else c
    check_pattern(participations, separation)
    factor = squared_factor(neighbours, signed)
    if separation == 0:
        # All participations may fall into step 0, whose column is the longest; equal columns add up
        # in norm.
        return factor * participations**2 * _square(_wide_enough(c, 1))
    # No pattern has more steps than there are multiples of the separation below the horizon.
    count = min(participations, -(-len(c) // separation))
    return factor * _square(_windows(_wide_enough(c, count), count, separation))


def check_pattern(participations: int, separation: int) -> None:
    """Refuse numbers that do not describe a pattern."""
    for name, value, least in (
        ("participations", participations, 1),
        ("separation", separation, 0),
    ):
        whole(
            value,
            name,
            least,
            obstacle=f"it must be a whole number of at least {least}",
            remedy=f"Give such a number for {name}",
        )


def _wide_enough(c: Array, count: int) -> Array:
    """Return the same coefficients, of a type that holds sums of so many of them."""
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
        # Raised: a sensitivity that is rounded down would understate the loss.
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


@explained
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
    steps = whole(
        steps,
        "steps",
        1,
        obstacle="a tree has at least one leaf",
        remedy="Give a whole number from 1 on",
    )
    if separation == 0:
        return participations**2 * levels(steps)
    many = min(participations, -(-steps // separation))
    if many == 1:
        return levels(steps)
    # Beyond this effort an upper bound serves, since a sensitivity may err on the large side only.
    if separation**3 * many**2 * levels(steps) // 4 > 10**9:
        return tree_bound(steps, participations=participations, separation=separation)
    # The largest sum over all patterns: the steps are cut into complete trees, largest first, by
    # the binary digits of ``steps``. No completed node spans two of them.
    used = np.full((separation, separation), -np.inf)
    used[0, 0] = 1
    tree = {0: np.zeros((separation, separation)), 1: used}
    size = 1
    trees = [tree]
    while 2 * size <= steps:
        joined = _join(tree, size, tree, size, many)
        # The node over both halves holds all m participations.
        tree = {m: best + m * m for m, best in joined.items()}
        size *= 2
        trees.append(tree)
    forest = trees[-1]
    done = size
    for height in range(len(trees) - 2, -1, -1):
        if steps >> height & 1:
            forest = _join(forest, done, trees[height], 2**height, many)
            done += 2**height
    return int(max(best[0, 0] for best in forest.values()))


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
        # A node over 2^height steps holds at most so many that are ``separation`` apart.
        apart = -(-(2**height) // separation) if separation else participations
        full = min(participations, apart)
        nodes, rest = divmod(participations, full)
        # A sum of squares is convex, so it is largest with as many full nodes as possible.
        total += nodes * full**2 + rest**2
    return total


def _join(left: Table, left_size: int, right: Table, right_size: int, many: int) -> Table:
    """Return the table of two neighbouring parts of the given sizes."""
    b = len(left[0])
    free = np.arange(b)
    joined: Table = {}
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
        # Entry (0, 0) asks for no free steps, so it is the largest one: if it is -inf, all are.
        if np.isfinite(best[0, 0]):
            joined[m] = best
    return joined


def _both(left: Array, right: Array) -> Array:
    """Return the best sums of patterns with participations in both parts.

    Between the last one on the left and the first one on the right, b - 1 steps are free in all.
    """
    best = np.full(left.shape, -np.inf)
    for free in range(len(left)):
        if np.isfinite(left[0, free]) and np.isfinite(right[-1 - free, 0]):
            np.maximum(best, left[:, free, None] + right[None, -1 - free, :], out=best)
    return best


# --- privacy loss ---------------------------------------------------------------------------------


@explained
def compute_zcdp_tree_restart(
    noise_multiplier: float, steps_list: int | Sequence[int], *, completed: bool = False
) -> float:
    """Return the rho of several trees together, if one person takes part at most once in each.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    steps_list : int or sequence of int
        The number of steps of each tree; trees of no steps cost nothing.
    completed : bool
        Whether trees are completed before a restart (``complete_state``).

    Returns
    -------
    float

    >>> compute_zcdp_tree_restart(1.0, [4, 4])
    3.0
    """
    sigma = check_deviation(noise_multiplier, "noise_multiplier")
    trees = [steps_list] if isinstance(steps_list, int | np.integer) else list(steps_list)
    if not trees or not all(is_whole(steps, 0) for steps in trees):
        raise UsageError(
            f"steps_list = {steps_list!r}",
            "it must hold whole numbers of at least 0, and one at least",
            "Give the steps of each tree",
        )
    height = completed_levels if completed else levels
    return _rho(sigma, sum(height(int(steps)) for steps in trees if steps))


@explained
def compute_rdp_tree_restart(
    noise_multiplier: float,
    steps_list: int | Sequence[int],
    orders: float | Sequence[float],
    *,
    completed: bool = False,
) -> float | Array:
    """Return the loss of several trees together as Renyi divergences.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    steps_list : int or sequence of int
        The number of steps of each tree.
    orders : float or sequence of float
        Orders above 1.
    completed : bool
        Whether trees are completed before a restart (``complete_state``).

    Returns
    -------
    float, or float64 ndarray like ``orders``

    >>> from sfumato.streaming import compute_rdp_tree_restart
    >>> compute_rdp_tree_restart(2.0, [8, 8], orders=[2, 8]).tolist()
    [2.0, 8.0]
    """
    return _renyi(
        compute_zcdp_tree_restart(noise_multiplier, steps_list, completed=completed), orders
    )


@explained
def compute_zcdp_single_tree(
    noise_multiplier: float, total_steps: int, max_participation: int, min_separation: int
) -> float:
    """Return the rho of one tree, if one person takes part at most ``max_participation`` times.

    Parameters
    ----------
    noise_multiplier : float
    total_steps, max_participation : int
        At least 1.
    min_separation : int
        The least number of steps between two participations; 0 allows neighbouring steps.

    Returns
    -------
    float

    >>> compute_zcdp_single_tree(1.0, 8, max_participation=3, min_separation=2)
    10.0
    """
    sigma = check_deviation(noise_multiplier, "noise_multiplier")
    between = whole(
        min_separation,
        "min_separation",
        0,
        obstacle="it counts the steps between two participations",
        remedy="Give 0 or more",
    )
    return _rho(
        sigma,
        squared_tree_sensitivity(
            total_steps, participations=max_participation, separation=between + 1
        ),
    )


@explained
def compute_rdp_single_tree(
    noise_multiplier: float,
    total_steps: int,
    max_participation: int,
    min_separation: int,
    orders: float | Sequence[float],
) -> float | Array:
    """Return the loss of one tree as Renyi divergences.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of a node over the clipping norm.
    total_steps, max_participation, min_separation : int
        As in ``compute_zcdp_single_tree``.
    orders : float or sequence of float
        Orders above 1.

    Returns
    -------
    float, or float64 ndarray like ``orders``

    >>> from sfumato.streaming import compute_rdp_single_tree
    >>> compute_rdp_single_tree(2.0, 8, 1, 8, orders=[2, 8]).tolist()
    [1.0, 4.0]
    """
    return _renyi(
        compute_zcdp_single_tree(noise_multiplier, total_steps, max_participation, min_separation),
        orders,
    )


@explained
def get_privacy_spent(
    orders: Sequence[float], rdp: Sequence[float], target_delta: float
) -> tuple[float, float]:
    """Return the least epsilon at ``target_delta`` over the orders given, and its order.

    ``privacy.measures.zcdp_to_approx`` needs no list of orders: it takes the best of all orders,
    and its epsilon is never larger.

    Parameters
    ----------
    orders, rdp : sequences of float, of one length
        Orders above 1, and the divergence at each.
    target_delta : float in (0, 1)

    Returns
    -------
    epsilon, order : float

    Source: Canonne, Kamath, Steinke 2020, Prop. 12.

    >>> orders = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))
    >>> divergences = compute_rdp_tree_restart(1.13, 1600, orders)
    >>> epsilon, order = get_privacy_spent(orders, divergences, 1e-6)
    >>> round(epsilon, 4), order
    (18.7096, 2.7)
    """
    a = np.atleast_1d(np.asarray(orders, dtype=float))
    divergences = np.atleast_1d(np.asarray(rdp, dtype=float))
    if a.shape != divergences.shape or not (a > 1).all() or not 0 < target_delta < 1:
        raise UsageError(
            "an epsilon from Renyi divergences",
            "orders lie above 1, each has one divergence, and delta lies between 0 and 1",
            "Give two lists of one length, and a delta such as 1e-6",
        )
    epsilon = divergences + np.log1p(-1 / a) - np.log(target_delta * a) / (a - 1)
    best = int(np.argmin(epsilon))
    # Where the formula is negative, the bound holds with epsilon = 0 as well.
    return max(0.0, float(epsilon[best])), float(a[best])


def completed_levels(steps: int) -> int:
    """Return how many nodes hold a step once a tree is completed: floor(log2(steps - 1)) + 2.

    >>> [completed_levels(t) for t in (1, 2, 3, 4, 5)]
    [1, 2, 3, 3, 4]
    """
    return (steps - 1).bit_length() + 1


def _rho(sigma: float, square: int) -> float:
    return square / (2 * sigma**2) if sigma else math.inf


def _renyi(rho: float, orders: float | Sequence[float]) -> float | Array:
    a = np.asarray(orders, dtype=float)
    if not (a > 1).all():
        raise UsageError(
            "Renyi divergences", "orders lie above 1", "Give orders such as 2, 4 and 16"
        )
    return float(a * rho) if a.ndim == 0 else a * rho
