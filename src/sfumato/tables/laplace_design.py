"""Laplace noise on the tables of a family, and which share of epsilon each of them gets.

Tables that were not asked for may be measured, too: a total that is counted by itself with a small
share makes every table better. All margins of the tables are candidates. The search looks at their
sizes and at public weights alone. Candidates whose share comes out tiny are left out, and the
shares are rounded to whole parts, so that a preview and the answer use the same.

Noise of scale L1 / (epsilon share) has a variance in proportion to 1 / share^2 (for all but tiny
scales), so the precision of a residual grows with the squares of the shares of the tables that
measure it. What is to be small is not convex in the shares: the search starts at several points,
and any shares are valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.tables.aims import Aim, shares_of_variance
from sfumato.tables.levels import Levels
from sfumato.tables.nesting import Margin, is_margin
from sfumato.tables.residuals import closure_of

PARTS = 10_000
"""Shares are multiples of this part of the whole."""

LEAST_SHARE = 0.004
"""Margins with smaller shares are not measured."""

MOST_CANDIDATES = 256
"""With more margins than this, only tables that are no margins of others are measured."""

STEPS = 200
"""Most steps of a search."""

SEARCHES = 40
"""How often weights are corrected where accuracies are asked for."""


@lru_cache(maxsize=64)
def laplace_shares(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    known: tuple[Margin, ...] = (),
) -> tuple[tuple[Margin, Fraction], ...]:
    """The margins that are measured, and their shares, which add up to 1.

    Parameters
    ----------
    axes : tuple of Levels
        Where cells of a level have different numbers of children, averages are looked at.
    tables : tuple of tuple of int
        The tables whose errors are to be small, by the level of each axis; all different.
    aim : Aim
    known : tuple of tuple of int
        Tables that are known, and are not measured.

    >>> axes = (Levels.flat(2), Levels.flat(3))
    >>> shares = laplace_shares(axes, ((1, 0), (0, 1)), Aim())
    >>> [(margin, str(share)) for margin, share in shares]
    [((1, 0), '4871/10000'), ((0, 1), '5129/10000')]
    """
    if len(tables) == 1:
        return ((tables[0], Fraction(1)),)
    candidates = _unknown(closure_of(tables), known)
    if len(candidates) > MOST_CANDIDATES:
        candidates = _largest(tables)
    problem = _Problem(axes, tables, candidates, aim, known)
    shares = problem.solved(np.ones(len(candidates)))
    # What is no margin of another table keeps a share, so that everything can be estimated.
    largest = _largest(tables)
    kept = [
        margin
        for margin, share in zip(candidates, shares.tolist(), strict=True)
        if share >= LEAST_SHARE or margin in largest
    ]
    shares = _Problem(axes, tables, kept, aim, known).solved(np.ones(len(kept)))
    return tuple(zip(kept, _rounded(shares), strict=True))


def _largest(tables: Sequence[Margin]) -> list[Margin]:
    """The tables that are no margins of others."""
    return [
        table
        for table in tables
        if not any(table != other and is_margin(table, other) for other in tables)
    ]


class _Problem:
    """Shares of some margins, and the variances of the tables that follow."""

    def __init__(
        self,
        axes: Sequence[Levels],
        tables: Sequence[Margin],
        measured: Sequence[Margin],
        aim: Aim,
        known: Sequence[Margin],
    ) -> None:
        residuals = _unknown(closure_of(tables), known)
        sizes = {
            margin: math.prod(axis.cells(level) for axis, level in zip(axes, margin, strict=True))
            for margin in {*residuals, *measured}
        }
        self._aim = aim
        self._tables = tables
        largest = _largest(tables)
        self._is_largest = np.array([margin in largest for margin in measured])
        self._residuals = shares_of_variance(axes, tables, residuals)
        # A residual of zero contrasts has no variance, however little is known of it.
        self._precisions = np.array(
            [
                [
                    sizes[kept] / sizes[margin] if is_margin(kept, margin) else 0.0
                    for margin in measured
                ]
                for kept in residuals
            ]
        )

    def solved(self, start: Array) -> Array:
        """The best shares that are found: float64 ndarray of shape (measured,)."""
        starts = [start, np.where(self._is_largest, 1.0, 0.05)]
        latest: list[Array] = []

        def best(weights: Array) -> Array:
            found = [self._descended(weights, each) for each in (latest or starts)]
            latest[:] = [min(found, key=lambda shares: self._error(weights, shares))]
            return latest[0]

        return self._aim.solved(best, len(self._tables), self._variances, rounds=SEARCHES)

    def _variances(self, shares: Array) -> Array:
        return np.asarray(self._residuals @ (1 / (self._precisions @ shares**2)))

    def _error(self, weights: Array, shares: Array) -> float:
        return float(weights @ self._variances(shares))

    def _descended(self, weights: Array, start: Array) -> Array:
        """The shares at the bottom of a descent; it goes through logarithms of shares."""
        from scipy.optimize import minimize

        of_residuals = weights @ self._residuals

        def error(logarithms: Array) -> tuple[float, Array]:
            shares = _normalised(logarithms)
            precisions = self._precisions @ shares**2
            value = float(np.sum(of_residuals / precisions))
            slope = -2 * shares * ((of_residuals / precisions**2) @ self._precisions)
            inner = shares * (slope - slope @ shares)
            return math.log(value), inner / value

        found = minimize(
            error, np.log(start), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
        )
        return _normalised(found.x)


def _unknown(margins: Sequence[Margin], known: Sequence[Margin]) -> list[Margin]:
    """The margins that do not follow from what is known."""
    return [one for one in margins if not any(is_margin(one, other) for other in known)]


def _normalised(logarithms: Array) -> Array:
    sizes = np.exp(logarithms - logarithms.max())
    return np.asarray(np.maximum(sizes / sizes.sum(), 1e-12))


def _rounded(shares: Array) -> list[Fraction]:
    """Whole parts that add up to 1, each at least one: the largest remainders are rounded up."""
    spare = PARTS - len(shares)
    wanted = shares / shares.sum() * spare
    whole = np.floor(wanted).astype(int)
    missing = spare - int(whole.sum())
    whole[np.argsort(whole - wanted, kind="stable")[:missing]] += 1
    return [Fraction(int(part) + 1, PARTS) for part in whole]
