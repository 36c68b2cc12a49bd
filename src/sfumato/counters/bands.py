"""The band of an elder tree: half-widths that hold at all steps together, by the law of its noise.

The noise W at a step is that at its elder plus a fresh draw, so the steps are a tree in which noise
adds up along the branches (``tree``). The probability that abs(W) is nowhere above its limit is
found from the leaves up. For a node at which W is x let

    G(x) = 1 if abs(x) is within the limit of the node, times the product over its children of
           the mean of G(x + Z) for the child and a fresh draw Z.

The mean is a convolution with the law of Z, which two recursions compute without cancellation. G at
step 0, whose noise is 0, is the probability sought. Limits depend on the number of draws alone, so
nodes with subtrees of one shape and with as many draws have one G.

The limits are those of the union bound, all made narrower by one factor. Steps are correlated, so
the union bound is wider than it need be by a quarter and more.

Holds because
    *Wide draws* are put on a coarser lattice of step g. A draw is a difference of two floor(E) with
    E exponential, and floor(E) lies less than g above g floor(E / g). So a sum of d draws lies
    within g d of g times a sum of draws of scale b / g, and it is within its limit h wherever that
    is within h / g - d.
    *Steps beyond the horizon* on which the noise of others builds are held to their limits too,
    which makes the probability less.
    *Rounding.* All terms are positive; ``ROUNDING`` is far more than what the sums lose.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.counters.laplace_sums import laplace_sum_half_width
from sfumato.counters.tree import ElderTree

FINE = 256
"""How many lattice steps there are in a standard deviation, where draws are wide."""

MOST_SHAPES = 4000
"""Of how many shapes of subtrees the law is computed; beyond, the union bound serves."""

ROUNDING = 1e-9
LEAST = 1e-6
"""Below this probability of error, the union bound serves."""

CLOSE = 1 / 128
"""How near the factor is to the least one."""


def band(tree: ElderTree, first: int, last: int, alpha: float) -> Array:
    """Return half-widths of steps ``first`` to ``last`` that hold at all steps of the horizon.

    They hold for all categories together too. They are whole numbers, as float64.

    >>> from fractions import Fraction
    >>> from sfumato.counters.tree import radices_for
    >>> from sfumato.mechanisms.noise import DiscreteLaplace
    >>> tree = ElderTree(30, radices_for(30), DiscreteLaplace(Fraction(10)))
    >>> union_bound = tree.half_widths(1, 30, 0.05 / 30)
    >>> bool((band(tree, 1, 30, 0.05) < 0.95 * union_bound).all())
    True
    """
    limits = _limits(tree, alpha)
    return np.asarray(limits[tree.edges(np.arange(first, last + 1))], dtype=float)


@lru_cache(maxsize=64)
def _limits(tree: ElderTree, alpha: float) -> Array:
    """Return the half-width after each number of draws: int64 ndarray, 0 for no draw."""
    most = int(tree.edges(np.arange(1, tree.horizon + 1)).max())
    # Paths may pass steps beyond the horizon, which have no more draws than one of each block.
    deepest = most + len(tree.blocks)
    each = alpha / (tree.horizon * tree.cells)
    scale = tree.law.scale
    widest = [laplace_sum_half_width(scale, draws, each) for draws in range(1, deepest + 1)]
    union = np.array([0, *widest])
    shapes = sum(tree.radices) * deepest
    if shapes > MOST_SHAPES or alpha < LEAST or union[1] < 4:
        return union
    # Categories are independent.
    wanted = math.log1p(-alpha) / tree.cells
    nodes = _Nodes(tree, deepest)
    low = 0.4
    high = 1.0
    while high - low > CLOSE:
        middle = (low + high) / 2
        if nodes.log_probability(np.floor(middle * union)) >= wanted:
            high = middle
        else:
            low = middle
    return np.floor(high * union).astype(np.int64)


class _Nodes:
    """The nodes of a tree by their shapes.

    Parameters
    ----------
    tree : ElderTree
    deepest : int
        The largest number of draws on a path.
    """

    def __init__(self, tree: ElderTree, deepest: int) -> None:
        self.tree = tree
        self.blocks = tree.blocks
        # The largest digit of each level, the top one first; the top level has all there are.
        self.digits = [tree.horizon, *(radix // 2 for radix in tree.radices[::-1])]
        deviation = math.sqrt(tree.law.variance * deepest)
        self.step = max(1.0, deviation / FINE)
        self.q = math.exp(-self.step / float(tree.law.scale))
        self.limits = np.zeros(0, np.int64)
        self.known: dict[tuple[int, ...], Array] = {}

    def log_probability(self, limits: Array) -> float:
        """Return ln P(the noise of no step is above its limit)."""
        draws = np.arange(len(limits))
        fits = limits if self.step == 1 else np.floor(limits / self.step - draws)
        self.limits = fits.astype(np.int64)
        self.known = {}
        if (self.limits[1:] < 1).any():
            return -math.inf
        product = self._children(0, -1, 0, 1, 0)
        found = float(product[len(product) // 2]) - ROUNDING
        return math.log(found) if found > 0 else -math.inf

    def _children(self, at: int, level: int, done: int, sign: int, draws: int) -> Array:
        """Return the product over the children of a node, on the lattice from -limit to limit."""
        size = 2 * int(self.limits[draws]) + 1 if draws else 1
        product = np.ones(size)
        for lower in range(level + 1, len(self.blocks)):
            for direction in (1, -1):
                self._times(product, at, lower, 1, direction, draws + 1)
        if level >= 0 and done < self.digits[level]:
            self._times(product, at, level, done + 1, sign, draws + 1)
        return product

    def _times(self, product: Array, at: int, level: int, done: int, sign: int, draws: int) -> None:
        """Multiply by the mean of G of one child, if it has steps within the horizon."""
        child = at + sign * self.blocks[level]
        near = child - sign * (self.blocks[level] // 2)
        far = child + sign * (
            (self.digits[level] - done) * self.blocks[level] + self.blocks[level] // 2
        )
        low, high = min(near, far), max(near, far)
        if high < 1 or low > self.tree.horizon:
            return
        if low >= 1 and high <= self.tree.horizon:
            key: tuple[int, ...] = (level, done, draws)
        else:
            key = (level, done, draws, child, sign)
        if key not in self.known:
            inner = self._children(child, level, done, sign, draws)
            self.known[key] = self._smoothed(inner, int(self.limits[draws - 1]))
        product *= self.known[key]

    def _smoothed(self, inner: Array, limit: int) -> Array:
        """Return the mean of G(x + Z) for abs(x) <= limit; ``inner`` is G of the child."""
        from scipy.signal import lfilter

        reach = len(inner) // 2
        size = max(reach, limit)
        padded = np.zeros(2 * size + 1)
        padded[size - reach : size + reach + 1] = inner
        forward = lfilter([1.0], [1.0, -self.q], padded)
        # G is symmetric, and so is the law of Z.
        whole = forward + forward[::-1] - padded
        mean = whole * (-math.expm1(math.log(self.q)) / (1 + self.q))
        return np.asarray(mean[size - limit : size + limit + 1])
