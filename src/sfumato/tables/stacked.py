"""The norm that bounds what one person adds to all tables of a family, for noise on residuals.

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

from sfumato.privacy.limits import StackedNorm, Weighed
from sfumato.tables.gaussian_design import ROUNDING, ResidualNoise
from sfumato.tables.levels import Levels
from sfumato.tables.nesting import Margin

BITS = 61
"""Sums of whole numbers stay below 2^63: see ``StackedNorm``."""

FINER_BITS = 32
"""What one row costs is summed up to so many further bits."""


@lru_cache(maxsize=64)
def stacked_norm(
    axes: tuple[Levels, ...], noise: tuple[ResidualNoise, ...], norm: int, rows: int
) -> StackedNorm:
    """The limit of a norm on the counts of one person, for this noise.

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
    for each in noise:
        precision = math.ceil(scale / each.sigma_squared)
        for margin, factor in _terms(axes, each):
            weights[margin] = weights.get(margin, Fraction(0)) + precision * factor
        exact = scale * 2**FINER_BITS * _diagonal(axes, each) / each.sigma_squared
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
    """A power of 2 by which all weights are multiplied before they are rounded."""
    of_one_row = all_weights = 0.0
    for each in noise:
        precision = 1 / float(each.sigma_squared)
        of_one_row += float(_diagonal(axes, each)) * precision
        all_weights += math.fsum(abs(float(factor)) for _, factor in _terms(axes, each)) * precision
    largest = norm**2 * of_one_row + all_weights * (2 * rows + 1)
    return Fraction(2) ** (BITS - math.ceil(math.log2(largest)))


def _largest_fanouts(axes: Sequence[Levels], each: ResidualNoise) -> Iterator[int]:
    """The most siblings at the level of each axis; 0 where differences are not counted on."""
    for axis, level, used in zip(axes, each.margin, each.along, strict=True):
        yield max(axis.fanouts[level - 1]) if used and level else 0


def _diagonal(axes: Sequence[Levels], each: ResidualNoise) -> Fraction:
    """How far one row moves a residual, squared."""
    return math.prod(
        (1 - Fraction(1, fanout) for fanout in _largest_fanouts(axes, each) if fanout),
        start=Fraction(1),
    )


def _terms(axes: Sequence[Levels], each: ResidualNoise) -> Iterator[tuple[Margin, Fraction]]:
    """The squared contrasts of a residual, as a sum of squared counts of tables."""
    along = []
    for level, fanout in zip(each.margin, _largest_fanouts(axes, each), strict=True):
        here = [(level, Fraction(1))]
        along.append([*here, (level - 1, Fraction(-1, fanout))] if fanout else here)
    for chosen in product(*along):
        margin = tuple(level for level, _ in chosen)
        yield margin, math.prod((factor for _, factor in chosen), start=Fraction(1))
