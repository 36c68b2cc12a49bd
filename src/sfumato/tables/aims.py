"""What the noise of a family of tables is to make small, and how much each residual adds to it.

The aim is a weighted sum of the variances of the tables' counts, or the largest ratio of a table's
error to the one that was asked for. The second is a weighted sum, too, whose weights are searched
for: those at which the least weighted sum is largest (duality of convex programs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.tables.levels import Levels
from sfumato.tables.nesting import Margin

ROUNDS = 400
"""How often weights are corrected in the search for them."""

CLOSE = 1e-6
"""The search ends where the largest ratio is so close to the average."""

DIGITS = 8
"""Significant digits of the parameters of noise."""


@dataclass(frozen=True)
class Aim:
    """What is to be small.

    Attributes
    ----------
    weights : tuple of float, or None
        Of each table, how much the variance of its counts matters.
    accuracies : tuple of float, or None
        Of each table, the error that is asked for: only ratios of them matter.
    """

    weights: tuple[float, ...] | None = None
    accuracies: tuple[float, ...] | None = None

    def solved(
        self,
        solve: Callable[[Array], Array],
        tables: int,
        variances_of: Callable[[Array], Array],
        *,
        rounds: int = ROUNDS,
    ) -> Array:
        """What is best for the aim.

        Parameters
        ----------
        solve : callable
            From weights, float64 ndarray of shape (tables,), to what is best for their sum.
        tables : int
        variances_of : callable
            From that to the variances of the tables.
        rounds : int
            How often weights are corrected.
        """
        if self.accuracies is None:
            return solve(np.array(self.weights or (1.0,) * tables))
        scale = 1 / np.square(self.accuracies)
        weights = np.full(tables, 1 / tables)
        best = solve(weights * scale)
        least = math.inf
        for _ in range(rounds):
            found = solve(weights * scale)
            ratios = variances_of(found) * scale
            if ratios.max() < least:
                best, least = found, ratios.max()
            average = float(weights @ ratios)
            if ratios.max() <= average * (1 + CLOSE):
                break
            weights = weights * ratios / average
        return best

    def of(self, places: Sequence[int], tables: int) -> Aim:
        """The same aim for some of so many tables."""
        if len(places) == tables:
            return self
        chosen = (
            None if given is None else tuple(given[place] for place in places)
            for given in (self.weights, self.accuracies)
        )
        return Aim(*chosen)

    def error(self, variances: Array) -> float:
        """How large what is to be small is."""
        if self.accuracies is None:
            return float(np.array(self.weights or (1.0,) * len(variances)) @ variances)
        return float((variances / np.square(self.accuracies)).max())


def shares_of_variance(
    axes: Sequence[Levels], tables: Sequence[Margin], residuals: Sequence[Margin]
) -> Array:
    """What a residual of variance 1 adds to a count of a table, on average over its cells.

    Returns
    -------
    float64 ndarray of shape (tables, residuals)
    """
    found = np.ones((len(tables), len(residuals)))
    for at, axis in enumerate(axes):
        depths = range(axis.depth + 1)
        of_axis = np.array(
            [[_mean_share(axis, kept, level) for kept in depths] for level in depths]
        )
        rows = [table[at] for table in tables]
        columns = [residual[at] for residual in residuals]
        found *= of_axis[np.ix_(rows, columns)]
    return found


def _mean_share(axis: Levels, kept: int, level: int) -> float:
    """What contrasts of a level add to the variance of a cell of another, on average."""
    if kept > level:
        return 0.0
    kinds, index = axis.kinds(level)
    shares = [
        (1 - 1 / path.fanouts[kept - 1] if kept else 1.0) / math.prod(path.fanouts[kept:]) ** 2
        for path in kinds
    ]
    return float(np.mean(np.array(shares)[index]))


def rounded_up(value: float) -> Fraction:
    """A positive number, rounded up to a few significant digits.

    >>> rounded_up(2 / 3)
    Fraction(66666667, 100000000)
    """
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return math.ceil(Fraction(value) / unit) * unit
