"""A non-negative real table that has given margins as nearly as it can.

It takes the place of a table's estimate where the table has margins that cannot be met exactly when
it is rounded, and is the estimate of a table that was not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.tables.nesting import Margin, Nesting

MOST_ROUNDS = 200
MOST_WORK = 2**28
"""How many cells are changed at most, over all rounds."""
CLOSE = 0.01
"""How far margins may be off at the end, in rows."""


@dataclass(frozen=True, eq=False)
class Known:
    """A margin of a table that is known.

    Attributes
    ----------
    levels : tuple of int
    values : float64 ndarray
    share : float64 ndarray like ``values``
        What is added to each cell of the table for each row that the cell of the margin lacks.
    """

    levels: Margin
    values: Array
    share: Array


def fitted(
    table: Margin, values: Array, margins: Mapping[Margin, Array], nesting: Nesting
) -> Array:
    """Find a non-negative table near a given one that has some margins as nearly as it can.

    Dykstra's method projects on the tables that have these margins, and on the non-negative ones,
    in turn. If some table is both, it approaches the nearest such table; if none is, one of the
    nearest pair of tables of either kind.

    Parameters
    ----------
    table : tuple of int
    values : float64 ndarray
        The table from which the nearest is sought.
    margins : mapping of levels to float64 ndarrays
        Margins of ``table``, which agree.
    nesting : Nesting

    Returns
    -------
    float64 ndarray

    Source: Boyle, Dykstra, *A method for finding projections onto the intersection of convex sets*,
    1986.
    """
    known = _margins(table, margins, nesting)
    found, error = _moved(known, values, table, nesting)
    correction = np.zeros_like(found)
    for _ in range(min(MOST_ROUNDS, MOST_WORK // found.size)):
        wanted = found + correction
        found = np.maximum(wanted, 0)
        correction = wanted - found
        moved, error = _moved(known, found, table, nesting)
        if error <= CLOSE:
            break
        found = moved
    return np.maximum(found, 0)


def _margins(table: Margin, margins: Mapping[Margin, Array], nesting: Nesting) -> list[Known]:
    """Margins, and margins of these, with the shares by which all of them together are met.

    The projections on margins commute, so the projection on all of them at once is a sum with
    signs of those on each (inclusion and exclusion over the axes). Most signs are 0.
    """
    known = dict(margins)
    for larger, values in margins.items():
        for margin in product(*(range(level + 1) for level in larger)):
            if margin not in known:
                known[margin] = nesting.margin(values, larger, margin)
    ones = np.ones(nesting.shape(table))
    found = []
    for levels, values in known.items():
        sign = _sign(levels, known)
        if sign:
            found.append(Known(levels, values, sign / nesting.margin(ones, table, levels)))
    return found


def _sign(levels: Margin, known: Mapping[Margin, Array]) -> int:
    """How often a margin is counted: 1 for each larger one by 0 or 1 levels an axis, with signs."""
    found = 0
    for above in product((0, 1), repeat=len(levels)):
        larger = tuple(level + more for level, more in zip(levels, above, strict=True))
        if larger in known:
            found += (-1) ** sum(above)
    return found


def _moved(
    margins: list[Known], values: Array, table: Margin, nesting: Nesting
) -> tuple[Array, float]:
    """The nearest table that has all margins, and how far they were off."""
    found = values.copy()
    error = 0.0
    for margin in margins:
        lacking = margin.values - nesting.margin(values, table, margin.levels)
        error = max(error, float(np.abs(lacking).max()))
        found += _spread(lacking * margin.share, margin.levels, table, nesting)
    return found, error


def _spread(values: Array, margin: Margin, table: Margin, nesting: Nesting) -> Array:
    """Repeat the cells of a margin in the cells of a table; axes it sums over are broadcast."""
    for axis, (lower, level) in enumerate(zip(margin, table, strict=True)):
        if 0 < lower < level:
            values = np.take(values, nesting.ancestors(axis, level, lower), axis=axis)
    return values
