"""The nearest non-negative table with given margins, in least squares.

A table is a vector of cells here. ``rows`` says in which cell of one margin each cell lies, and
``columns`` in which cell of a second one. The nearest table is max(0, x + u[row] + v[column]) for
some u and v: with one margin, each row is projected onto a simplex, exactly. With two, u is exact
for every v, and v is found by Newton's method for the convex function of v that is left; where a
Newton step does not lead down, the columns are projected in their turn, which always does.

Source: Michelot, *A finite algorithm for finding the projection of a point onto the canonical
simplex of R^n*, 1986; Lorenz, Manns, Meyer, *Quadratically regularized optimal transport*, 2021,
Alg. 2.

*Where margins cannot be met exactly* (``fitted``): a non-negative real table that has given margins
as nearly as it can.

It takes the place of a table's estimate where the table has margins that cannot be met exactly when
it is rounded, and is the estimate of a table that was not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from operator import add

import numpy as np

from sfumato.basics import Array
from sfumato.questions.tables.levels import Margin, Nesting

# --- margins met exactly --------------------------------------------------------------------------

# How far the second margin may be from what is given, in rows.
TOLERANCE = 1e-4
MOST_STEPS = 60
LEAST_DAMPING = 1e-9


def on_simplices(values: Array, rows: Array, sums: Array) -> Array:
    """Project each row of a table onto the non-negative numbers with a given sum.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
    rows : int ndarray of shape (n,)
        The row of each cell.
    sums : float64 ndarray of shape (n_rows,)
        At least 0.

    Returns
    -------
    float64 ndarray of shape (n,)
    """
    shifts = _shifts(values, rows, sums)
    # A row that is to be empty is empty to the last bit.
    filled = np.maximum(values + shifts[rows], 0)
    return np.where(sums[rows] > 0, filled, 0)


def _shifts(values: Array, rows: Array, sums: Array) -> Array:
    """What is added to each row before its negative cells become 0: float64 of shape (n_rows,)."""
    n_rows = len(sums)
    shifts = np.zeros(n_rows)
    active_values = values
    active_rows = rows
    while True:
        # With all cells above 0 the shift is the missing sum, shared evenly. Cells that it leaves
        # below 0 stay there for every smaller shift, so they drop out one after another.
        cells = np.bincount(active_rows, minlength=n_rows)
        total = np.bincount(active_rows, active_values, minlength=n_rows)
        filled = cells > 0
        shifts[filled] = (sums[filled] - total[filled]) / cells[filled]
        above = active_values + shifts[active_rows] > 0
        if above.all():
            return shifts
        active_values = active_values[above]
        active_rows = active_rows[above]


def with_margins(
    values: Array, rows: Array, row_sums: Array, columns: Array, column_sums: Array
) -> Array:
    """Find the nearest non-negative table with two given margins.

    The first margin is met to the precision of a double, the second to ``TOLERANCE``.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
    rows, columns : int ndarray of shape (n,)
        Ascending ``rows`` are faster.
    row_sums, column_sums : float64 ndarray of shape (n_rows,) and (n_columns,)
        At least 0; they agree wherever rows and columns are connected by cells.

    Returns
    -------
    float64 ndarray of shape (n,)
    """
    # A cell of an empty row or column is 0, and would only slow the search down.
    possible = (row_sums[rows] > 0) & (column_sums[columns] > 0)
    table = np.zeros(len(values))
    if possible.any():
        problem = Transport(
            values[possible], rows[possible], row_sums, columns[possible], column_sums
        )
        table[possible] = problem.solve()
    return table


@dataclass
class State:
    """A point of the dual problem.

    Attributes
    ----------
    v, u : float64 ndarray
        The shifts of columns and of rows.
    table : float64 ndarray of shape (n,)
    missing : float64 ndarray of shape (n_columns,)
        What the columns lack.
    height : float
        The function that is made small.
    """

    v: Array
    u: Array
    table: Array
    missing: Array
    height: float

    @property
    def error(self) -> float:
        return float(np.abs(self.missing).max())


@dataclass(frozen=True, eq=False)
class Transport:
    """Cells that may be above 0, and their two margins; parameters as in ``with_margins``."""

    values: Array
    rows: Array
    row_sums: Array
    columns: Array
    column_sums: Array

    def solve(self) -> Array:
        """Return the nearest table."""
        state = self._at(np.zeros(len(self.column_sums)))
        damping = LEAST_DAMPING
        # Doubles cannot add up more exactly than this.
        tolerance = max(TOLERANCE, 1e-13 * float(self.row_sums.sum()))
        for _ in range(MOST_STEPS):
            if state.error <= tolerance:
                break
            lower = self._newton(state, damping)
            # Where few cells are above 0 the columns hang together loosely, and Newton's step is
            # far too long in some directions; damping holds these back (Levenberg, Marquardt).
            damping = max(damping / 10, LEAST_DAMPING) if lower else damping * 10
            state = lower or self._columns_projected(state)
        return state.table

    def _at(self, v: Array) -> State:
        shifted = self.values + v[self.columns]
        u = _shifts(shifted, self.rows, self.row_sums)
        table = np.maximum(shifted + u[self.rows], 0)
        sums = np.bincount(self.columns, table, minlength=len(v))
        height = 0.5 * table @ table - u @ self.row_sums - v @ self.column_sums
        return State(v, u, table, self.column_sums - sums, float(height))

    def _columns_projected(self, state: State) -> State:
        by_rows = self.values + state.u[self.rows]
        return self._at(_shifts(by_rows, self.columns, self.column_sums))

    def _newton(self, state: State, damping: float) -> State | None:
        """Return a step along Newton's direction that leads down; None if there is none."""
        direction = self._direction(state, damping)
        slope = float(direction @ state.missing)
        if not slope > 0:
            return None
        length = 1.0
        for _ in range(8):
            lower = self._at(state.v + length * direction)
            # Armijo's rule, as far as doubles tell heights apart; else by the error itself.
            if lower.height < state.height - 1e-4 * length * slope or lower.error < state.error / 2:
                return lower
            length /= 2
        return None

    def _direction(self, state: State, damping: float) -> Array:
        """Solve for the shifts of columns that would meet them if no cell became or left 0."""
        from scipy.sparse import csr_array
        from scipy.sparse.linalg import LinearOperator, cg

        above = state.table > 0
        shape = (len(self.row_sums), len(self.column_sums))
        filled = np.bincount(self.rows[above], minlength=shape[0])
        starts = np.concatenate([[0], np.cumsum(filled)])
        columns = self.columns[above]
        pattern = csr_array((np.ones(len(columns)), columns, starts), shape=shape)
        transposed = pattern.T
        per_row = 1 / np.maximum(filled, 1)
        per_column = np.bincount(columns, minlength=shape[1])
        # Shifting all columns of a block changes nothing, so the matrix itself is singular.
        diagonal = per_column * (1 + damping) + damping

        def times(v: Array) -> Array:
            return np.asarray(diagonal * v - transposed @ (per_row * (pattern @ v)))

        operator = LinearOperator((shape[1], shape[1]), matvec=times, dtype=np.float64)
        scale = LinearOperator(operator.shape, matvec=lambda v: v / diagonal, dtype=np.float64)
        direction, _ = cg(operator, state.missing, rtol=1e-6, maxiter=100, M=scale)
        return np.asarray(direction)


# --- margins met as nearly as can be --------------------------------------------------------------

# How far margins may be off at the end, in rows.
CLOSE = 0.01


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
    fit, error = _moved(known, values, table, nesting)
    correction = np.zeros_like(fit)
    # At most so many cells are changed, over all rounds.
    for _ in range(min(200, 2**28 // fit.size)):
        wanted = fit + correction
        fit = np.maximum(wanted, 0)
        correction = wanted - fit
        moved, error = _moved(known, fit, table, nesting)
        if error <= CLOSE:
            break
        fit = moved
    return np.maximum(fit, 0)


def _margins(table: Margin, margins: Mapping[Margin, Array], nesting: Nesting) -> list[Known]:
    """Return margins, and margins of these, with the shares by which all of them together are met.

    The projections on margins commute, so the projection on all of them at once is a sum with
    signs of those on each (inclusion and exclusion over the axes). Most signs are 0.
    """
    known = dict(margins)
    for larger, values in margins.items():
        for margin in product(*(range(level + 1) for level in larger)):
            if margin not in known:
                known[margin] = nesting.margin(values, larger, margin)
    ones = np.ones(nesting.shape(table))
    met = []
    for levels, values in known.items():
        # How often it is counted: once for each one larger by 0 or 1 levels an axis, with signs.
        steps = product((0, 1), repeat=len(levels))
        counted = [step for step in steps if tuple(map(add, levels, step)) in known]
        sign = sum((-1) ** sum(step) for step in counted)
        if sign:
            met.append(Known(levels, values, sign / nesting.margin(ones, table, levels)))
    return met


def _moved(
    margins: list[Known], values: Array, table: Margin, nesting: Nesting
) -> tuple[Array, float]:
    """Return the nearest table that has all margins, and how far they were off."""
    nearest = values.copy()
    error = 0.0
    for margin in margins:
        lacking = margin.values - nesting.margin(values, table, margin.levels)
        error = max(error, float(np.abs(lacking).max()))
        nearest += _spread(lacking * margin.share, margin.levels, table, nesting)
    return nearest, error


def _spread(values: Array, margin: Margin, table: Margin, nesting: Nesting) -> Array:
    """Repeat the cells of a margin in the cells of a table; axes it sums over are broadcast."""
    for axis, (lower, level) in enumerate(zip(margin, table, strict=True)):
        if 0 < lower < level:
            values = np.take(values, nesting.axes[axis].ancestors(lower, level), axis=axis)
    return values
