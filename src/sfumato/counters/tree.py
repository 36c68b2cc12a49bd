"""Running totals under pure differential privacy: every total hangs on an elder one.

Write the number t of a step in a mixed system of odd radices with digits of either sign, -(k-1)/2 to (k-1)/2. Going from 0 to t
digit by digit, in blocks of 1, k, k k', ... steps, one passes through certain places; each place but 0 thus has one elder, a
block away in time, before or *after* it. The noise at a place is the noise at its elder plus one fresh draw,

    W(0) = 0,   W(t) = W(elder of t) + Z(t),   and what is published at step t is  a(t) = (true total) + W(t).

Privacy. Let edge t join t to its elder. Adding v at step s moves the true totals from s on by v. The same outputs arise if
Z(t) changes by -v or +v on those edges that have s between their ends (the end before s, the other at or after it), because W
then moves by -v from s on. The ends of an edge are neighbouring multiples of its block, so at each of the ``levels`` block sizes
one edge at most lies across s. So with Z discrete Laplace of scale b each outcome's probability changes by a factor of at most
exp(|v| levels / b), and for several rows of a person the logarithms add up. The factor holds for every outcome separately,
whatever the earlier ones were: so it holds also if increments are chosen after seeing earlier outputs (given the outputs, the
two streams are fixed).

Accuracy. The noise at t is a sum of ``edges(t)`` independent draws, at most (k-1)/2 for each level but the top one. A binary
tree has (log2 T)^3 of variance where this has (k/4) (log_k 2T)^3.
Source: Andersson, Pagh, Steiner, Torkamani, *Count on Your Elders: Laplace vs Gaussian Noise*, FORC 2025; Dwork, Naor, Pitassi,
Rothblum 2010; Chan, Shi, Song 2011 for the binary tree.
"""

from __future__ import annotations

import math
from functools import lru_cache
from operator import add

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.counters.laplace_sums import laplace_sum_half_width
from sfumato.counters.machine import Follow, Whole, no_machine
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random.bits import Bits

MOST_LEVELS = 12


class ElderState(msgspec.Struct, frozen=True):
    """Secret: the true totals, and the noise at the places that the next step may still hang on."""

    step: int
    totals: Whole
    places: tuple[int, ...]
    noise: tuple[Whole, ...]


class ElderTree(msgspec.Struct, frozen=True, tag="elder-tree", forbid_unknown_fields=True):
    """A tree of ``len(radices) + 1`` levels over ``horizon`` steps.

    Parameters
    ----------
    horizon : int
    radices : tuple of odd int
        Blocks of each level that make one of the next, from single steps up. The top level has as many blocks as are needed.
    law : DiscreteLaplace
        Of each fresh draw: scale = L1 of a person's rows, times levels, over epsilon.
    cells : int
        Categories, each with noise of its own.

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
        if self.horizon < 1 or self.cells < 1 or not odd or len(self.radices) >= MOST_LEVELS:
            raise no_machine(
                "an elder tree",
                "its horizon, its categories or its radices, which are odd numbers from 3 on, cannot be",
            )

    @property
    def levels(self) -> int:
        """How many draws one row may lie under."""
        return len(self.radices) + 1

    @property
    def blocks(self) -> tuple[int, ...]:
        """Lengths of the blocks in steps, the largest first."""
        return _blocks(self.radices)

    def path(self, step: int) -> list[int]:
        """The places from the eldest to the step itself; each hangs on the one before it, the first on 0."""
        place, found = 0, []
        for block in self.blocks:
            digit = (step - place + block // 2) // block
            stride = block if digit > 0 else -block
            for _ in range(abs(digit)):
                place += stride
                found.append(place)
        return found

    def edges(self, steps: Array) -> Array:
        """How many draws the noise at each step is a sum of: int64 ndarray like ``steps``."""
        rest, total = np.array(steps), np.zeros_like(steps)
        for block in self.blocks:
            digit = (rest + block // 2) // block
            rest -= digit * block
            total += np.abs(digit)
        return total

    def start(self) -> ElderState:
        """No steps, nothing counted, no noise drawn."""
        return ElderState(0, (0,) * self.cells, (), ())

    def step(self, state: ElderState, increment: Whole, noise: Bits) -> tuple[ElderState, Whole]:
        """Add to the totals, draw the noise that is new on the path, publish totals plus noise.

        Paths of neighbouring steps part once and do not meet again, so what is new is the end of the path; and the steps that
        hang on a place follow one another, so what has left the path is not needed again. A place that an earlier path passed
        through has its noise, and the path to it is the beginning of that one: every place has one elder.
        """
        step, totals = state.step + 1, tuple(map(add, state.totals, increment))
        if step in state.places:
            length = state.places.index(step) + 1
            path, known = state.places[:length], state.noise[:length]
        else:
            path = tuple(self.path(step))
            known = self._drawn(state, path, noise)
        return ElderState(step, totals, path, known), tuple(map(add, totals, known[-1]))

    def _drawn(self, state: ElderState, path: tuple[int, ...], noise: Bits) -> tuple[Whole, ...]:
        """The noise at all places of a path, of which the first are those of the state."""
        shared = next(
            (i for i, (a, b) in enumerate(zip(state.places, path, strict=False)) if a != b),
            min(len(state.places), len(path)),
        )
        known = list(state.noise[:shared])
        fresh = self.law.sample(self.cells * (len(path) - shared), noise).tolist()
        for i in range(len(path) - shared):
            elder = known[-1] if known else (0,) * self.cells
            known.append(tuple(map(add, elder, fresh[i * self.cells : (i + 1) * self.cells])))
        return tuple(known)

    def follow(self) -> Follow:
        """What is published are the totals themselves."""
        return lambda output: output

    def variances(self, first: int, last: int) -> Array:
        """Variances of the published totals: float64 ndarray of shape (last - first + 1,)."""
        return np.asarray(self.edges(np.arange(first, last + 1)) * self.law.variance)

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """The smallest k with P(|noise| > k) <= alpha, by the exact law of the sum of draws: float64 ndarray, whole numbers."""
        edges = self.edges(np.arange(first, last + 1))
        if np.ndim(alpha):
            each = zip(edges.tolist(), np.asarray(alpha).tolist(), strict=True)
            return np.array(
                [laplace_sum_half_width(self.law.scale, n, a) for n, a in each], dtype=float
            )
        table = np.zeros(int(edges.max()) + 1)
        for n in np.flatnonzero(np.bincount(edges)).tolist():
            table[n] = laplace_sum_half_width(self.law.scale, n, float(alpha))
        return np.asarray(table[edges])

    def laws(self, first: int, last: int) -> list[str]:
        """How many draws the noise at a step is a sum of is all that its law depends on."""
        law = str(self.law)
        return [
            f"the sum of {draws} draws of {law}"
            for draws in self.edges(np.arange(first, last + 1)).tolist()
        ]

    def __str__(self) -> str:
        shape = " x ".join(map(str, (*self.radices[::-1], 1)[:-1])) or "none"
        return (
            f"an elder tree of {self.levels} levels (radices {shape}) with {self.law} on each draw"
        )


@lru_cache(maxsize=64)
def _blocks(radices: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(radices[:level]) for level in range(len(radices), -1, -1))


@lru_cache(maxsize=256)
def radices_for(horizon: int, whole: bool = False) -> tuple[int, ...]:
    """Choose the radices with the smallest largest variance over the horizon.

    Parameters
    ----------
    horizon : int
    whole : bool
        The horizon is a power of 3 and must be one block, so that its last total hangs on 0 by a single draw.

    >>> radices_for(365), radices_for(10**6)
    ((21,), (17, 17, 17, 17))
    """
    if whole:
        candidates = _of_powers_of_three(round(math.log(horizon, 3)))
    else:
        candidates = [
            (),
            *(
                shape
                for levels in range(2, MOST_LEVELS + 1)
                for shape in _balanced(horizon, levels)
            ),
        ]
    return min(candidates, key=lambda shape: (_largest(horizon, shape), len(shape), shape))


def _largest(horizon: int, radices: tuple[int, ...]) -> int:
    """A bound on the largest number of edges, times the square of the levels: what the largest variance grows with."""
    block = math.prod(radices)
    top = max(1, -(-(horizon - block // 2) // block))
    return (top + sum(k // 2 for k in radices)) * (len(radices) + 1) ** 2


def _balanced(horizon: int, levels: int) -> list[tuple[int, ...]]:
    """Radices that are equal, or two neighbouring odd numbers, around the level-th root of twice the horizon."""
    root = (2 * horizon) ** (1 / levels)
    found = []
    for k in range(max(3, int(root / 2) | 1), int(2 * root) + 4, 2):
        found += [(k,) * (levels - 1 - larger) + (k + 2,) * larger for larger in range(levels - 1)]
    return [shape for shape in found if math.prod(shape) <= 2 * horizon]


def _of_powers_of_three(exponent: int) -> list[tuple[int, ...]]:
    """All ways to write 3^exponent as a product of powers of 3, the smallest first."""

    def parts(rest: int, least: int) -> list[tuple[int, ...]]:
        if not rest:
            return [()]
        return [
            (3**first, *more)
            for first in range(least, rest + 1)
            for more in parts(rest - first, first)
        ]

    return parts(exponent, 1)
