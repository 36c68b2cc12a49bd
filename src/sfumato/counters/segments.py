"""Totals without a known horizon: a sequence of elder trees, each three times as long as the last.

Every tree starts from the final published total of the trees before it, and its noise scale is that
of its own levels. Each row lies in one tree only. The last total of a tree is one draw away from 0,
so k finished trees add k draws to all later totals.

Privacy. Rows of one person may lie in several trees. Each row costs (its size) * levels / scale,
which is its share of epsilon, in the tree in which it lies. The shares of a person's rows add up to
at most epsilon. What a finished tree hands on was published already.

Source: Chan, Shi, Song 2011, section 5. There trees double in length; odd radices make blocks of
powers of 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from operator import add
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.counters.laplace_sums import mixed_half_widths
from sfumato.counters.mechanism import Estimator, Whole, invalid_mechanism
from sfumato.counters.tree import ElderState, ElderTree, radices_for
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random.bits import Bits

FIRST = 3
"""The first tree takes 3^3 steps."""

Draws: TypeAlias = tuple[tuple[DiscreteLaplace, int], ...]
"""The noise at a step: distributions, and how many draws of each are added up."""


class SegmentsState(msgspec.Struct, frozen=True):
    """The state of the current tree, which is secret, and where it starts.

    Attributes
    ----------
    index : int
        The number of the current tree, from 0 on.
    before : tuple of int
        The last published total of all finished trees.
    tree : ElderState
    """

    index: int
    before: Whole
    tree: ElderState


class Segments(msgspec.Struct, frozen=True, tag="segments", forbid_unknown_fields=True):
    """Elder trees of 27, 81, 243, ... steps, one after another.

    Parameters
    ----------
    scale : Fraction
        Of the noise, per level: the L1 norm of a person's rows over epsilon.
    cells : int
        The number of categories.

    >>> trees = Segments(Fraction(1))
    >>> trees.tree(0).radices, [trees.position(step) for step in (1, 27, 28)]
    ((3, 9), [(0, 1), (0, 27), (1, 1)])
    """

    scale: Fraction
    cells: int = 1

    def __post_init__(self) -> None:
        if self.scale <= 0 or self.cells < 1:
            raise invalid_mechanism("elder trees", "their scale or their categories cannot be")

    @property
    def horizon(self) -> None:
        """None: there is no limit on the number of steps."""
        return

    @property
    def law(self) -> DiscreteLaplace:
        """Of the draws of the first tree; later trees have more levels and more noise."""
        return self.tree(0).law

    def tree(self, index: int) -> ElderTree:
        """Return one of the trees, from 0 on."""
        return _tree(self.scale.numerator, self.scale.denominator, self.cells, index)

    def position(self, step: int) -> tuple[int, int]:
        """Return the tree in which a step lies, and the number of the step within that tree."""
        index = 0
        length = 3**FIRST
        while step > length:
            index += 1
            step -= length
            length *= 3
        return index, step

    def start(self) -> SegmentsState:
        """Return the start of the first tree."""
        return SegmentsState(0, (0,) * self.cells, self.tree(0).start())

    def step(
        self, state: SegmentsState, increment: Whole, noise: Bits
    ) -> tuple[SegmentsState, Whole]:
        """Take a step of the current tree, and add what the finished trees published."""
        tree = self.tree(state.index)
        inner, total = tree.step(state.tree, increment, noise)
        output = tuple(map(add, state.before, total))
        if inner.step < tree.horizon:
            return SegmentsState(state.index, state.before, inner), output
        # The next tree starts from this noisy total, never from the true one.
        return SegmentsState(state.index + 1, output, tree.start()), output

    def estimator(self) -> Estimator:
        """Return the outputs themselves: they are the totals."""
        return lambda output: output

    def draws(self, first: int, last: int) -> Iterator[tuple[Draws, Array]]:
        """Group steps ``first`` to ``last`` by the draws that their noise is a sum of.

        Yields
        ------
        draws, indices
            The draws, and the steps that have them, counted from ``first``: an int64 ndarray.
        """
        step = first
        while step <= last:
            index, inner = self.position(step)
            tree = self.tree(index)
            inner_last = min(tree.horizon, inner + last - step)
            edges = tree.edges(np.arange(inner, inner_last + 1))
            finished = tuple((self.tree(i).law, 1) for i in range(index))
            for number in np.unique(edges).tolist():
                indices = np.flatnonzero(edges == number) + (step - first)
                yield (*finished, (tree.law, number)), indices
            step += len(edges)

    def variances(self, first: int, last: int) -> Array:
        """Return the variances of the totals: a float64 ndarray of shape (last - first + 1,)."""
        found = np.empty(last - first + 1)
        for draws, indices in self.draws(first, last):
            found[indices] = sum(number * law.variance for law, number in draws)
        return found

    def half_widths(self, first: int, last: int, alpha: Array | float) -> Array:
        """Return half-widths by the law of the sum of all draws; see ``mixed_half_widths``."""
        found = np.empty(last - first + 1)
        alphas = np.broadcast_to(alpha, found.shape)
        for draws, indices in self.draws(first, last):
            scales = tuple((law.scale, number) for law, number in draws)
            found[indices] = mixed_half_widths(scales, alphas[indices])
        return found

    def laws(self, first: int, last: int) -> list[str]:
        """Describe the errors of the totals by their draws."""
        found = [""] * (last - first + 1)
        for draws, indices in self.draws(first, last):
            parts = [f"{number} draw{'s' * (number > 1)} of {law}" for law, number in draws]
            for index in indices.tolist():
                found[index] = " and ".join(parts)
        return found

    def __str__(self) -> str:
        noise = f"discrete Laplace noise of scale {self.scale} per level"
        return f"elder trees of 27, 81, 243, ... steps, one after another, with {noise}"


@lru_cache(maxsize=256)
def _tree(numerator: int, denominator: int, cells: int, index: int) -> ElderTree:
    length = 3 ** (FIRST + index)
    radices = radices_for(length, whole=True)
    levels = len(radices) + 1
    law = DiscreteLaplace(Fraction(numerator, denominator) * levels)
    return ElderTree(length, radices, law, cells)
