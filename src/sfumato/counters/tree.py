"""Running totals under pure differential privacy: the elder tree.

Write the number t of a step in a mixed system of odd radices k, with digits from -(k-1)/2 to
(k-1)/2. Going from 0 to t digit by digit, in blocks of 1, k, k k', ... steps, one passes through
certain steps. Each step but 0 thus has one *elder*, the step before it on this path. The elder lies
one block away in time, before or *after* it. The noise at a step is the noise at its elder plus one
fresh draw:

    W(0) = 0,   W(t) = W(elder of t) + Z(t),   and step t publishes  a(t) = (true total) + W(t).

Privacy. Let edge t join t to its elder. A value v that is added at step s raises the true totals
from s on by v. The outputs stay the same if Z(t) changes by -v or +v on each edge that crosses s
(one end before s, the other at or after it), because W then changes by -v from s on. The ends of an
edge are neighbouring multiples of its block length, so at most one edge of each of the ``levels``
block lengths crosses s. With Z discrete Laplace of scale b, the probability of each outcome changes
by a factor of at most exp(|v| levels / b). For several rows of a person the logarithms add up. The
factor holds for every outcome by itself, whatever the earlier ones were. It therefore also holds
for increments that are chosen after seeing earlier outputs: given the outputs, the two streams are
fixed.

Accuracy. The noise at t is a sum of ``edges(t)`` independent draws, at most (k-1)/2 for each level
but the top one. The variance of a binary tree grows like (log2 T)^3, and that of this tree like
(k/4) (log_k 2T)^3.

Source: Andersson, Pagh, Steiner, Torkamani, *Count on Your Elders: Laplace vs Gaussian Noise*,
FORC 2025; Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011 for the binary tree.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import add

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.counters.laplace_sums import laplace_sum_half_width
from sfumato.counters.mechanism import Estimator, Whole, invalid_mechanism
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random.bits import Bits

MOST_LEVELS = 12


class ElderState(msgspec.Struct, frozen=True):
    """Secret: the true totals, and the noise that the next steps may still build on.

    Attributes
    ----------
    step : int
        How many steps were taken.
    totals : tuple of int
        One true total per category.
    path : tuple of int
        The steps from the eldest to the last step itself; stored as ``places``.
    noise : tuple of tuple of int
        The noise at each step of the path, one integer per category.
    """

    step: int
    totals: Whole
    path: tuple[int, ...] = msgspec.field(name="places")
    noise: tuple[Whole, ...]


class ElderTree(msgspec.Struct, frozen=True, tag="elder-tree", forbid_unknown_fields=True):
    """A tree of ``len(radices) + 1`` levels over ``horizon`` steps.

    Parameters
    ----------
    horizon : int
        The largest number of steps.
    radices : tuple of odd int
        How many blocks of each level make one of the next, from single steps up. The top level has
        as many blocks as are needed.
    law : DiscreteLaplace
        Of each fresh draw. Its scale is the L1 norm of a person's rows, times levels, over epsilon.
    cells : int
        The number of categories; each has noise of its own.

    >>> from fractions import Fraction
    >>> tree = ElderTree(10, (3,), DiscreteLaplace(Fraction(2)))
    >>> [tree.path(step) for step in (1, 2, 3, 4, 5)]
    [[1], [3, 2], [3], [3, 4], [3, 6, 5]]
    """

    horizon: int
    radices: tuple[int, ...]
    law: DiscreteLaplace
    cells: int = 1

    def __post_init__(self) -> None:
        odd = all(radix >= 3 and radix % 2 for radix in self.radices)
        few = len(self.radices) < MOST_LEVELS
        if not (odd and few and self.horizon >= 1 and self.cells >= 1):
            parts = "its horizon, its categories or its radices, which are odd numbers from 3 on"
            raise invalid_mechanism("an elder tree", f"{parts}, cannot be")

    @property
    def levels(self) -> int:
        """The largest number of draws that depend on one row."""
        return len(self.radices) + 1

    @property
    def blocks(self) -> tuple[int, ...]:
        """Lengths of the blocks in steps, the longest first."""
        return _blocks(self.radices)

    def path(self, step: int) -> list[int]:
        """Return the steps from the eldest to the step itself.

        Each is the elder of the next one. The elder of the first is step 0.
        """
        at = 0
        found = []
        for block in self.blocks:
            # The digit nearest to what is left, so that it lies between -(k-1)/2 and (k-1)/2.
            digit = (step - at + block // 2) // block
            stride = block if digit > 0 else -block
            for _ in range(abs(digit)):
                at += stride
                found.append(at)
        return found

    def edges(self, steps: Array) -> Array:
        """Return the number of draws in the noise at each step: an int64 ndarray like ``steps``."""
        rest = np.array(steps)
        total = np.zeros_like(steps)
        for block in self.blocks:
            digit = (rest + block // 2) // block
            rest -= digit * block
            total += np.abs(digit)
        return total

    def start(self) -> ElderState:
        """Return the state of no steps: nothing counted, no noise drawn."""
        return ElderState(0, (0,) * self.cells, (), ())

    def step(self, state: ElderState, increment: Whole, noise: Bits) -> tuple[ElderState, Whole]:
        """Add to the totals, draw the noise that is new on the path, publish totals plus noise."""
        step = state.step + 1
        totals = tuple(map(add, state.totals, increment))
        # The noise at a step is drawn once, and the state of the last path is enough to know it.
        # Paths of neighbouring steps separate once and do not meet again, so only the end of a path
        # is new. Steps with one elder follow one another, so an elder that has left the path is
        # not needed again. If the last path passed through this step, its noise is known already:
        # every step has one elder, so the path to it is the beginning of the last path.
        if step in state.path:
            length = state.path.index(step) + 1
            path = state.path[:length]
            known = state.noise[:length]
        else:
            path = tuple(self.path(step))
            known = self._drawn(state, path, noise)
        return ElderState(step, totals, path, known), tuple(map(add, totals, known[-1]))

    def _drawn(self, state: ElderState, path: tuple[int, ...], noise: Bits) -> tuple[Whole, ...]:
        """Return the noise along a path; the beginning that it shares with the last is known."""
        shared = 0
        for old, new in zip(state.path, path, strict=False):
            if old != new:
                break
            shared += 1
        known = list(state.noise[:shared])
        fresh = self.law.sample(self.cells * (len(path) - shared), noise).tolist()
        for start in range(0, len(fresh), self.cells):
            elder = known[-1] if known else (0,) * self.cells
            known.append(tuple(map(add, elder, fresh[start : start + self.cells])))
        return tuple(known)

    def estimator(self) -> Estimator:
        """Return the outputs themselves: they are the totals."""
        return lambda output: output

    def variances(self, first: int, last: int) -> Array:
        """Return the variances of the totals: a float64 ndarray of shape (last - first + 1,)."""
        return np.asarray(self.edges(np.arange(first, last + 1)) * self.law.variance)

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Return the smallest k with P(|noise| > k) <= alpha for each step.

        They are whole numbers, as float64, by the exact law of the sum of draws.
        """
        scale = self.law.scale
        edges = self.edges(np.arange(first, last + 1))
        if np.ndim(alpha):
            pairs = zip(edges.tolist(), np.asarray(alpha).tolist(), strict=True)
            found = [laplace_sum_half_width(scale, draws, each) for draws, each in pairs]
            return np.array(found, dtype=float)
        # With one alpha the half-width depends on the number of draws only.
        table = np.zeros(int(edges.max()) + 1)
        for draws in np.flatnonzero(np.bincount(edges)).tolist():
            table[draws] = laplace_sum_half_width(scale, draws, float(alpha))
        return np.asarray(table[edges])

    def laws(self, first: int, last: int) -> list[str]:
        """Describe the error of each total by its number of draws."""
        law = str(self.law)
        edges = self.edges(np.arange(first, last + 1)).tolist()
        return [f"the sum of {draws} draws of {law}" for draws in edges]

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.radices[::-1])) or "none"
        levels = f"{self.levels} levels (radices {shape})"
        return f"an elder tree of {levels} with {self.law} on each draw"


@lru_cache(maxsize=64)
def _blocks(radices: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(radices[:level]) for level in range(len(radices), -1, -1))


@lru_cache(maxsize=256)
def radices_for(horizon: int, whole: bool = False) -> tuple[int, ...]:
    """Choose the radices with the smallest largest variance over the horizon.

    Parameters
    ----------
    horizon : int
        The number of steps.
    whole : bool
        The horizon is a power of 3 and must be one block, so that its last total is one draw away
        from 0.

    >>> radices_for(365), radices_for(10**6)
    ((21,), (17, 17, 17, 17))
    """
    if whole:
        candidates = _of_powers_of_three(round(math.log(horizon, 3)))
    else:
        candidates = [()]
        for levels in range(2, MOST_LEVELS + 1):
            candidates += _balanced(horizon, levels)
    return min(candidates, key=lambda shape: (_largest(horizon, shape), len(shape), shape))


def _largest(horizon: int, radices: tuple[int, ...]) -> int:
    """Bound the largest number of edges, times the squared levels, like which variances grow."""
    block = math.prod(radices)
    top = max(1, -(-(horizon - block // 2) // block))
    edges = top + sum(k // 2 for k in radices)
    levels = len(radices) + 1
    return edges * levels**2


def _balanced(horizon: int, levels: int) -> list[tuple[int, ...]]:
    """List radices near the level-th root of twice the horizon: equal, or two neighbouring ones."""
    root = (2 * horizon) ** (1 / levels)
    found = []
    for k in range(max(3, int(root / 2) | 1), int(2 * root) + 4, 2):
        for larger in range(levels - 1):
            shape = (k,) * (levels - 1 - larger) + (k + 2,) * larger
            if math.prod(shape) <= 2 * horizon:
                found.append(shape)
    return found


def _of_powers_of_three(exponent: int) -> list[tuple[int, ...]]:
    """List all ways to write 3^exponent as a product of powers of 3, in ascending order."""

    def products(exponent: int, least: int) -> list[tuple[int, ...]]:
        if not exponent:
            return [()]
        found: list[tuple[int, ...]] = []
        for first in range(least, exponent + 1):
            found += [(3**first, *more) for more in products(exponent - first, first)]
        return found

    return products(exponent, 1)
