"""Laplace noise on the tables of a family, and the norm that bounds what one person adds to them.

*Which share of epsilon each table gets* (``laplace_shares``).

Tables that were not asked for may be measured, too: a total that is counted by itself with a small
share makes every table better. All margins of the tables are candidates. The search looks at their
sizes and at public weights alone. Candidates whose share comes out tiny are left out, and the
shares are rounded to whole parts, so that a preview and the answer use the same.

Noise of scale L1 / (epsilon share) has a variance in proportion to 1 / share^2 (for all but tiny
scales), so the precision of a residual grows with the squares of the shares of the tables that
measure it. What is to be small is not convex in the shares: the search starts at several points,
and any shares are valid.

*The norm that bounds what one person adds to all tables of a family* (``stacked_norm``), for noise
on residuals.

The residuals A of a family get Gaussian noise with parameters s_A^2 (see ``gaussian_design``). A
person with counts h in the cells of all axes together moves them by

    K(h) = sum over A of |P_A M_A h|^2 / s_A^2,

M_A adding cells up to those of A, and P_A projecting on the differences that are counted on. K is
the square of a norm, and all residuals cost K(h) / 2. One row costs K_0 / 2 at most, and n rows in
one cell n^2 times that. Rows in different cells cost less: where the noise is laid out for one
table, the sum of the squared counts.

*A limit c on the norm* keeps the rows of a person, in random order, up to the first with which K
would exceed c^2 K_0. So nobody costs more than c rows in one cell. Persons whose rows spread over
many cells keep far more than c.

In sums over tables
    Along an axis whose differences are counted on, the contrasts of f siblings have the matrix
    I - J / f. It lies below I - J / f' (the difference has no negative eigenvalue) for the largest
    f' of the level. So K(h) is at most, and where all cells of a level have equally many children
    equal to, the sum over A of 1 / s_A^2 times a product over axes of a difference: of what lies in
    the same cell of A's level, less 1 / f' of what does in the same cell of the level before.
    Multiplied out, that is a sum over tables B of v_B |M_B h|^2.
In whole numbers
    Multiplied by a large number and rounded up, the 1 / s_A^2 and then the v_B are whole numbers
    w_B. Both are done upwards, and neither a residual nor a table has negative squares, so
    Q(h) = sum over B of w_B |M_B h|^2 is at least the multiple of K(h). The limit on Q is the same
    multiple of c^2 K_0 (1 + 1e-9), rounded down. So Q(h) within its limit has K(h) at most c^2 K_0
    (1 + 1e-9), which is what is paid for: c rows in one cell then fit whatever is rounded.
Under replace
    One person's h becomes another's h'. By the triangle inequality K(h - h') <= 4 c^2 K_0. Often it
    is half of that: if two rows have an inner product of at least -k K_0, wherever they lie, then
    K(h - h') <= 2 c^2 K_0 + 2 k K_0 r^2, where nobody has more than r rows.

Guarantee: of persons within the limit, all residuals cost what ``gaussian_design`` says for its
``norm``.
Source: the norm that noise of any covariance needs: Nikolov, Talwar, Zhang, STOC 2013, section 2;
residuals: Xiao, He, Zhang, Kifer, NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np

from sfumato.basics import Array, largest_remainders
from sfumato.privacy import StackedNorm, Weighed
from sfumato.questions.tables.gaussian_design import (
    ROUNDING,
    Aim,
    ResidualNoise,
    shares_of_variance,
)
from sfumato.questions.tables.levels import Levels, Margin, Nesting, is_margin, maximal, unknown
from sfumato.questions.tables.residuals import closure_of

# --- shares of epsilon ----------------------------------------------------------------------------

# Shares are multiples of this part of the whole.
PARTS = 10_000


@lru_cache(maxsize=64)
def laplace_shares(
    axes: tuple[Levels, ...],
    tables: tuple[Margin, ...],
    aim: Aim,
    known: tuple[Margin, ...] = (),
) -> tuple[tuple[Margin, Fraction], ...]:
    """Return the margins that are measured, and their shares, which add up to 1.

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
    # What is no margin of another table keeps a share, so that everything can be estimated.
    largest = maximal(tables)
    candidates = unknown(closure_of(tables), known)
    # With more margins, only tables that are no margins of others are measured.
    if len(candidates) > 256:
        candidates = largest
    problem = _Problem(axes, tables, candidates, aim, known)
    shares = problem.solved(np.ones(len(candidates)))
    # Margins with smaller shares are not measured.
    kept = [
        margin
        for margin, share in zip(candidates, shares.tolist(), strict=True)
        if share >= 0.004 or margin in largest
    ]
    # The shares of what is left out go to the others, by a search of their own.
    shares = _Problem(axes, tables, kept, aim, known).solved(np.ones(len(kept)))
    # One part is kept for each margin: noise of a share of 0 has no scale.
    spare = PARTS - len(kept)
    parts = largest_remainders(shares / shares.sum() * spare, spare).tolist()
    rounded = [Fraction(part + 1, PARTS) for part in parts]
    return tuple(zip(kept, rounded, strict=True))


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
        residuals = unknown(closure_of(tables), known)
        nesting = Nesting(tuple(axes))
        sizes = {margin: nesting.cells(margin) for margin in {*residuals, *measured}}
        self._aim = aim
        self._tables = tables
        largest = maximal(tables)
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
        """Return the best shares that are found: float64 ndarray of shape (measured,)."""
        starts = [start, np.where(self._is_largest, 1.0, 0.05)]
        latest: list[Array] = []

        def best(weights: Array) -> Array:
            ends = [self._descended(weights, start) for start in (latest or starts)]
            latest[:] = [min(ends, key=lambda shares: self._error(weights, shares))]
            return latest[0]

        return self._aim.solved(best, len(self._tables), self._variances, rounds=40)

    def _variances(self, shares: Array) -> Array:
        return np.asarray(self._residuals @ (1 / (self._precisions @ shares**2)))

    def _error(self, weights: Array, shares: Array) -> float:
        return float(weights @ self._variances(shares))

    def _descended(self, weights: Array, start: Array) -> Array:
        from scipy.optimize import minimize

        of_residuals = weights @ self._residuals

        def error(logarithms: Array) -> tuple[float, Array]:
            shares = _normalised(logarithms)
            precisions = self._precisions @ shares**2
            value = float(np.sum(of_residuals / precisions))
            slope = -2 * shares * ((of_residuals / precisions**2) @ self._precisions)
            inner = shares * (slope - slope @ shares)
            return math.log(value), inner / value

        descent = minimize(
            error, np.log(start), jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        return _normalised(descent.x)


def _normalised(logarithms: Array) -> Array:
    sizes = np.exp(logarithms - logarithms.max())
    return np.asarray(np.maximum(sizes / sizes.sum(), 1e-12))


# --- the norm -------------------------------------------------------------------------------------

# Sums of whole numbers stay below 2^63: see ``StackedNorm``.
BITS = 61

# What one row costs is summed up to so many further bits.
FINER_BITS = 32


@lru_cache(maxsize=64)
def stacked_norm(
    axes: tuple[Levels, ...], noise: tuple[ResidualNoise, ...], norm: int, rows: int
) -> StackedNorm:
    """Return the limit of a norm on the counts of one person, for this noise.

    Parameters
    ----------
    axes : tuple of Levels
    noise : tuple of ResidualNoise
        From ``gaussian_design``.
    norm : int
        As many rows in one cell cost as much as a person's rows may: 1 to ``asked.MOST_NORM``.
    rows : int
        How many rows of a person are counted at most; at most norm^2 of them are.

    >>> from fractions import Fraction
    >>> total = ResidualNoise((0,), Fraction(2), (False,))
    >>> residual = ResidualNoise((1,), Fraction(1), (True,))
    >>> found = stacked_norm((Levels.flat(2),), (total, residual), norm=2, rows=4)
    >>> [(each.margin, found.most // each.weight) for each in found.weighed]  # as for one table
    [((1,), 4)]
    """
    counted = min(rows, norm**2)
    scale = _scale(axes, noise, norm, counted)
    weights: dict[Margin, Fraction] = {}
    of_one_row = 0
    for residual in noise:
        # Weights are rounded up and the limit down: nobody within it costs more than is paid.
        precision = math.ceil(scale / residual.sigma_squared)
        for margin, factor in _terms(axes, residual):
            weights[margin] = weights.get(margin, Fraction(0)) + precision * factor
        exact = scale * 2**FINER_BITS * _diagonal(axes, residual) / residual.sigma_squared
        of_one_row += math.floor(exact)
    rounded = [(margin, math.ceil(weight)) for margin, weight in sorted(weights.items())]
    return StackedNorm(
        tuple(axis.fanouts for axis in axes),
        tuple(Weighed(margin, weight) for margin, weight in rounded if weight),
        most=math.floor(norm**2 * of_one_row * (1 + Fraction(ROUNDING))) >> FINER_BITS,
        rows=counted,
    )


def _scale(
    axes: Sequence[Levels], noise: Sequence[ResidualNoise], norm: int, rows: int
) -> Fraction:
    """Return a power of 2 by which all weights are multiplied before they are rounded."""
    of_one_row = all_weights = 0.0
    for residual in noise:
        precision = 1 / float(residual.sigma_squared)
        of_one_row += float(_diagonal(axes, residual)) * precision
        all_weights += (
            math.fsum(abs(float(factor)) for _, factor in _terms(axes, residual)) * precision
        )
    # The sum over any person's rows must stay below 2^63 after weights were rounded up.
    largest = norm**2 * of_one_row + all_weights * (2 * rows + 1)
    return Fraction(2) ** (BITS - math.ceil(math.log2(largest)))


def _largest_fanouts(axes: Sequence[Levels], residual: ResidualNoise) -> Iterator[int]:
    """Give the most siblings at the level of each axis; 0 where differences are not counted on."""
    for axis, level, used in zip(axes, residual.margin, residual.along, strict=True):
        yield max(axis.fanouts[level - 1]) if used and level else 0


def _diagonal(axes: Sequence[Levels], residual: ResidualNoise) -> Fraction:
    """Return how far one row moves a residual, squared."""
    return math.prod(
        (1 - Fraction(1, fanout) for fanout in _largest_fanouts(axes, residual) if fanout),
        start=Fraction(1),
    )


def _terms(axes: Sequence[Levels], residual: ResidualNoise) -> Iterator[tuple[Margin, Fraction]]:
    """Return the squared contrasts of a residual, as a sum of squared counts of tables."""
    along = []
    for level, fanout in zip(residual.margin, _largest_fanouts(axes, residual), strict=True):
        here = [(level, Fraction(1))]
        along.append([*here, (level - 1, Fraction(-1, fanout))] if fanout else here)
    for chosen in product(*along):
        margin = tuple(level for level, _ in chosen)
        yield margin, math.prod((factor for _, factor in chosen), start=Fraction(1))
