"""Totals without a known horizon: one elder tree after another, each three times as long as the one before.

Every tree begins where the last one ended, on top of the last one's final published total, and its scale is that of its own levels.
One row lies in one tree only. Its last total hangs on 0 by a single draw, so that k finished trees leave k draws behind.

Privacy. Rows of one person may lie in several trees; each row costs (its size) * levels / scale = its share of epsilon in the tree in
which it lies, and the shares of a person's rows add up to epsilon. What a finished tree leaves behind was published already.
Source: Chan, Shi, Song 2011, section 5 (there by doubling; odd radices make blocks of powers of 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from operator import add

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.counters.laplace_sums import mixed_half_widths
from sfumato.counters.machine import Follow, Whole, no_machine
from sfumato.counters.tree import ElderState, ElderTree, radices_for
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random.bits import Bits

FIRST = 3
"""The first tree takes 3^3 steps."""


class SegmentsState(msgspec.Struct, frozen=True):
    """``before``: the last published total of all finished trees; the rest is the secret state of the tree at work."""

    index: int
    before: Whole
    tree: ElderState


class Segments(msgspec.Struct, frozen=True, tag="segments", forbid_unknown_fields=True):
    """Elder trees of 27, 81, 243, ... steps, one after another.

    Parameters
    ----------
    scale : Fraction
        Of the noise, per level: L1 of a person's rows over epsilon.
    cells : int

    >>> Segments(Fraction(1)).tree(0).radices, [Segments(Fraction(1)).place(step) for step in (1, 27, 28)]
    ((3, 9), [(0, 1), (0, 27), (1, 1)])
    """

    scale: Fraction
    cells: int = 1

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.cells < 1:
            raise no_machine("elder trees", "their scale or their categories cannot be")

    @property
    def horizon(self) -> None:
        """Any number of steps."""
        return

    @property
    def law(self) -> DiscreteLaplace:
        """Of the draws of the first tree; later trees have more levels and more noise."""
        return self.tree(0).law

    def tree(self, index: int) -> ElderTree:
        """One of the trees."""
        return _tree(self.scale.numerator, self.scale.denominator, self.cells, index)

    def place(self, step: int) -> tuple[int, int]:
        """The tree in which a step lies, and which of its steps it is."""
        index, length = 0, 3**FIRST
        while step > length:
            index, step, length = index + 1, step - length, 3 * length
        return index, step

    def start(self) -> SegmentsState:
        """The first tree, empty."""
        return SegmentsState(0, (0,) * self.cells, self.tree(0).start())

    def step(
        self, state: SegmentsState, increment: Whole, noise: Bits
    ) -> tuple[SegmentsState, Whole]:
        """Take a step of the tree at work, on top of what finished trees published."""
        tree = self.tree(state.index)
        inner, total = tree.step(state.tree, increment, noise)
        output = tuple(map(add, state.before, total))
        if inner.step < tree.horizon:
            return SegmentsState(state.index, state.before, inner), output
        return SegmentsState(state.index + 1, output, tree.start()), output

    def follow(self) -> Follow:
        """What is published are the totals themselves."""
        return lambda output: output

    def draws(
        self, first: int, last: int
    ) -> Iterator[tuple[tuple[tuple[DiscreteLaplace, int], ...], Array]]:
        """Steps ``first`` to ``last`` by what the noise at them is a sum of.

        Yields
        ------
        draws, places
            Laws, and how many draws of each; and the steps for which it is so, counted from ``first``: int64 ndarray.
        """
        step = first
        while step <= last:
            index, inner = self.place(step)
            tree = self.tree(index)
            edges = tree.edges(np.arange(inner, min(tree.horizon, inner + last - step) + 1))
            finished = tuple((self.tree(i).law, 1) for i in range(index))
            for number in np.unique(edges).tolist():
                yield (
                    (*finished, (tree.law, number)),
                    np.flatnonzero(edges == number) + (step - first),
                )
            step += len(edges)

    def variances(self, first: int, last: int) -> Array:
        """Variances of the published totals: float64 ndarray of shape (last - first + 1,)."""
        found = np.empty(last - first + 1)
        for draws, places in self.draws(first, last):
            found[places] = sum(n * law.variance for law, n in draws)
        return found

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """By the law of the sum of all draws: float64 ndarray, whole numbers; see ``sums``."""
        found = np.empty(last - first + 1)
        alphas = np.broadcast_to(alpha, found.shape)
        for draws, places in self.draws(first, last):
            found[places] = mixed_half_widths(
                tuple((law.scale, n) for law, n in draws), alphas[places]
            )
        return found

    def laws(self, first: int, last: int) -> list[str]:
        """The errors of the totals, in words."""
        found = [""] * (last - first + 1)
        for draws, places in self.draws(first, last):
            words = " and ".join(f"{n} draw{'s' * (n > 1)} of {law}" for law, n in draws)
            for place in places.tolist():
                found[place] = words
        return found

    def __str__(self) -> str:
        return f"elder trees of 27, 81, 243, ... steps, one after another, with discrete Laplace noise of scale {self.scale} per level"


@lru_cache(maxsize=256)
def _tree(numerator: int, denominator: int, cells: int, index: int) -> ElderTree:
    length = 3 ** (FIRST + index)
    radices = radices_for(length, whole=True)
    return ElderTree(
        length,
        radices,
        DiscreteLaplace(Fraction(numerator, denominator) * (len(radices) + 1)),
        cells,
    )
