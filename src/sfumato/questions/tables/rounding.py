"""Tables of non-negative whole numbers that add up exactly, next to a family of real tables.

The tables of a family are estimates: they agree, but they are fractions, and some are negative. For
printing they are rounded here, one after another (see ``order_of``). Each step takes the real
table, finds the nearest non-negative one with the margins that were rounded before it (see
``with_margins``), and rounds that to whole numbers with the same margins
(``with_both_margins``). So any two rounded tables agree exactly in their common margin, and every
cell is within 1 of a table that is the nearest one given its margins. Nothing is random, and
nothing but the estimates is used.

Rounded tables are biased. What is below 0 becomes 0, and the other cells of its row pay for it: so
small counts are too large on average, and large ones too small. No interval is stated for them;
those of the estimates hold.

Source: for the order from the top down, Abowd et al., *The 2020 Census disclosure avoidance system
TopDown algorithm*, HDSR 2022, Sec. 5; for rounding within 1, Cox below.

*Controlled rounding* (``with_both_margins``): whole numbers next to real ones, with given whole
margins, exactly.

With one margin, each row takes the integers below and adds 1 where the remainders are largest. With
two margins, a real table is first written in binary, as whole multiples of 2^-``BITS`` that meet
both margins exactly. Then its last digit is removed, one after another. Cells whose last digit is 1
are even in number in each row and in each column, because the margins are whole. So they can be
paired within rows, and again within columns. Following the pairs in turn gives closed paths of even
length. Adding and subtracting the digit in turn along a path keeps all margins, and leaves digit 0.
A cell changes by less than 1 in all, since 1/2 + 1/4 + .. < 1, and stays 0 if it is 0.

Each path may be begun with either sign; the one that brings its cells nearer to the real ones is
taken. Nothing is random.

Source: Cox, *A constructive procedure for unbiased controlled rounding*, JASA 1987; the paths of
all digits at once: Beck, Fiala, *Integer-making theorems*, 1981 (for bipartite graphs).

*The order* (``order_of``) in which the tables of a family are rounded, such that each can agree
with all before it.

Tables are rounded one after another. The next one has to have the margins that it shares with those
before it. Two such margins agree with each other, since their tables do. Whether some table of
non-negative whole numbers has all of these margins, whatever their numbers are, depends on the sets
of axes alone: it has if the margins can be put in an order in which each shares with all before it
only what it shares with one of them (the running intersection property). Then they are met one
after another. A table with two margins is a transportation problem, which always has a whole
solution, so one with more margins takes one such problem for each.

Without this property there may be none: with the margins (a, b), (b, c) and (a, c) of a table over
a, b and c, two values each, let a = b and b = c, but a != c.

The total and the tables of single axes come first, then the common margins, then the tables. A
table that cannot be met after its margins is moved before some of them, which then follow from it.
If that does not help, it is joined with another table: both then follow from the larger one. All of
this is public, as is whether it succeeds.

Source: Beeri, Fagin, Maier, Yannakakis, *On the desirability of acyclic database schemes*, J. ACM
1983, Thm 3.4; Dobra, Fienberg, *Bounds for cell entries in contingency tables given marginal
totals and decomposable graphs*, PNAS 2000.

The nearest non-negative table with given margins, in least squares.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from operator import add

import numpy as np

from sfumato.basics import Array
from sfumato.errors import Infeasible
from sfumato.questions.tables.levels import (
    Margin,
    Nesting,
    common,
    follows,
    is_margin,
    joined,
    maximal,
    unknown,
)

# --- controlled rounding --------------------------------------------------------------------------

# The digits after the point with which a real table is written.
BITS = 16

# From rows and columns to one cell in each row and column.
CellWith = Callable[[Array, Array], Array]


def largest_remainders(values: Array, rows: Array, sums: Array) -> Array:
    """Round a table to whole numbers with given sums of rows, each cell up or down.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        At least 0, with about these sums of rows.
    rows : int ndarray of shape (n,)
        The row of each cell.
    sums : int64 ndarray of shape (n_rows,)
        At least 0. A row that has no cell must have the sum 0.

    Returns
    -------
    int64 ndarray of shape (n,)

    >>> import numpy as np
    >>> largest_remainders(np.array([0.5, 1.3, 1.2]), np.zeros(3, int), np.array([3])).tolist()
    [1, 1, 1]
    """
    # Sums of doubles are not exact. What is below them by so little is rounded down first, and is
    # then the first to be rounded up.
    slack = np.maximum(1e-9, 1e-12 * values)
    whole = np.floor(np.maximum(values - slack, 0)).astype(np.int64)
    _meet_nearly(whole, rows, sums)
    cells = np.bincount(rows, minlength=len(sums))
    missing = sums - _sums(whole, rows, len(sums))
    order = np.lexsort((whole - values, rows))
    starts = np.cumsum(cells) - cells
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - starts[rows[order]]
    return np.asarray(whole + (rank < missing[rows]))


def _meet_nearly(table: Array, rows: Array, sums: Array) -> None:
    """Bring each row to at most its sum, and to at least its sum less its number of cells.

    Only where doubles cannot hold the numbers is there anything to do. The largest cell takes it.
    """
    missing = sums - _sums(table, rows, len(sums))
    cells = np.bincount(rows, minlength=len(sums))
    beyond = missing - np.clip(missing, 0, cells)
    if not beyond.any():
        return
    by_size = np.lexsort((table, rows))
    last = np.cumsum(cells) - 1
    filled = cells > 0
    table[by_size[last[filled]]] += beyond[filled]


def _sums(values: Array, places: Array, n: int) -> Array:
    """Sum whole numbers exactly: int64 ndarray of shape (n,)."""
    sums = np.zeros(n, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


def with_both_margins(
    values: Array,
    rows: Array,
    row_sums: Array,
    columns: Array,
    column_sums: Array,
    cell_with: CellWith,
) -> Array:
    """Round a table to whole numbers with two given margins.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        At least 0, with about these margins.
    rows, columns : int ndarray of shape (n,)
        In which cell of each margin a cell lies.
    row_sums, column_sums : int64 ndarrays
        At least 0. Rows and columns are in an order in which the first rows and the first columns
        of equal sums are connected by cells.
    cell_with : function
        A cell in each given row and column.

    Returns
    -------
    int64 ndarray of shape (n,)
        Below 1 + 2^-10 from ``values`` if these have the margins.
    """
    # Doubles add up to this total with so many binary digits after the point.
    total = max(int(row_sums.sum()), 1)
    digits = max(0, min(BITS, 51 - total.bit_length()))
    digits_of_cells = _written(values, rows, row_sums, columns, column_sums, digits)
    # What the margins lack is added by the rule of the north-west corner.
    lacking = [
        np.cumsum((sums << digits) - _sums(digits_of_cells, places, len(sums)))
        for places, sums in ((rows, row_sums), (columns, column_sums))
    ]
    ends = np.union1d(*lacking)
    ends = ends[ends > 0]
    at = [np.searchsorted(reached, ends) for reached in lacking]
    np.add.at(digits_of_cells, cell_with(*at), np.diff(ends, prepend=0))
    # The margins are whole, so in every row and column an even number of cells has the digit 1.
    for digit in range(digits, 0, -1):
        odd = np.flatnonzero(digits_of_cells & 1)
        if len(odd):
            wanted = values[odd] * 2.0**digit - digits_of_cells[odd]
            digits_of_cells[odd] += _signs(wanted, rows[odd], columns[odd])
        digits_of_cells >>= 1
    return digits_of_cells


def _written(
    values: Array, rows: Array, row_sums: Array, columns: Array, column_sums: Array, digits: int
) -> Array:
    """Return the table in whole multiples of 2^-digits, with margins that are nowhere too large."""
    scaled = values
    for places, sums in ((rows, row_sums), (columns, column_sums)):
        reached = np.bincount(places, scaled, minlength=len(sums))
        # Doubles are summed with an error; the last factor is below it.
        factor = np.minimum(1, sums / np.maximum(reached, 1e-300)) * (1 - 1e-13)
        scaled = scaled * factor[places]
    return np.floor(scaled * 2.0**digits).astype(np.int64)


def _signs(wanted: Array, rows: Array, columns: Array) -> Array:
    """1 or -1 for each cell, so that they cancel in each row and in each column.

    Parameters
    ----------
    wanted : float64 ndarray of shape (n,)
        In which direction a cell should change, and how much it matters.
    rows, columns : int ndarray of shape (n,)
        Every row and every column has an even number of cells.

    Returns
    -------
    int64 ndarray of shape (n,)
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n = len(wanted)
    in_row = _paired(rows)
    # From a cell to the one with which its partner in the row is paired in the column: these two
    # have the same sign, and the partners the other one.
    following = _paired(columns)[in_row]
    ones = np.ones(n, dtype=np.int8)
    graph = csr_array((ones, following, np.arange(n + 1)), shape=(n, n))
    _, half = connected_components(graph, directed=False)
    partner_half = half[in_row]
    signs = np.where(half < partner_half, 1, -1)
    path = np.minimum(half, partner_half)
    gain = np.bincount(path, signs * wanted, minlength=n)
    return np.where(gain[path] >= 0, signs, -signs)


def _paired(places: Array) -> Array:
    """For each cell, the one with which it is paired among those in the same place."""
    order = np.argsort(places, kind="stable")
    partner = np.empty(len(places), dtype=np.int64)
    partner[order[::2]] = order[1::2]
    partner[order[1::2]] = order[::2]
    return partner


# --- the order of the tables ----------------------------------------------------------------------

# How many cells a table may have that was not asked for, and is rounded in place of others.
MOST_JOINED_CELLS = 2**20


@dataclass(frozen=True)
class Step:
    """A table, and the margins that it is given.

    Attributes
    ----------
    table : tuple of int
    given : tuple of at most two tuples of int
        Margins of tables of earlier steps. If there are two, every cell of the one and every cell
        of the other that agree in their common margin have a cell of the table in common.
    missed : tuple of tuples of int
        Further margins that matter, and follow from the table: they can be met only nearly.
    """

    table: Margin
    given: tuple[Margin, ...]
    missed: tuple[Margin, ...] = ()


def order_of(
    tables: Sequence[Margin], nesting: Nesting, known: Sequence[Margin] = ()
) -> list[Step] | None:
    """Find the order in which tables are rounded.

    Parameters
    ----------
    tables : sequence of tuples of int
        The tables that are published, at least one.
    nesting : Nesting
    known : sequence of tuples of int
        Tables that are whole already, and agree with each other.

    Returns
    -------
    list of Step, or None
        Tables that were not asked for are among them where others follow from these. None: a table
        of more than ``MOST_JOINED_CELLS`` cells would be needed.
    """
    largest = sorted(maximal(tables))
    while True:
        steps, stuck = _Sequence(tables, largest, nesting, known).steps()
        if stuck is None:
            return steps
        # A joint table takes the place of two, so after some joins every order can be met.
        joints = [joined(stuck, other) for other in largest if other != stuck]
        joint = min(joints, key=lambda table: (nesting.cells(table), table))
        if nesting.cells(joint) > MOST_JOINED_CELLS:
            return None
        largest = sorted(maximal([*largest, joint]))


class _Sequence:
    """Finds the steps of tables none of which is a margin of another.

    Parameters
    ----------
    asked : sequence of tuples of int
    largest : sequence of tuples of int
        The tables that have to be met. All others follow from them, and are met before them where
        they can be: then they are nearer to their estimates.
    nesting : Nesting
    known : sequence of tuples of int
    """

    def __init__(
        self,
        wanted: Sequence[Margin],
        largest: Sequence[Margin],
        nesting: Nesting,
        known: Sequence[Margin],
    ) -> None:
        self.known = list(known)
        self.asked = set(wanted)
        self.largest = set(largest)
        self.nesting = nesting
        # The total, and the tables of one axis at one of its levels, coarse ones first.
        finest = reduce(joined, largest)
        total = (0,) * len(finest)
        self.singles = [total]
        for axis, last in enumerate(finest):
            for level in range(1, last + 1):
                self.singles.append((*total[:axis], level, *total[axis + 1 :]))
        # The tables and all their common margins, small ones first.
        tables = [*wanted, *largest]
        margins = set(tables)
        fresh = set(tables)
        while fresh:
            fresh = {common(table, second) for table in fresh for second in tables} - margins
            margins |= fresh
        self.later = sorted(margins, key=lambda table: (sum(table), table))
        self.moved: list[Margin] = []  # tables that come early, each after some of its margins

    def steps(self) -> tuple[list[Step], Margin | None]:
        """Return the steps; or a table that cannot be met, wherever it is put."""
        while True:
            steps, before, stuck = self._tried([*self.singles, *self.moved, *self.later])
            if stuck is None:
                return steps, None
            # It was moved to the front already: no other place remains.
            if stuck in self.moved:
                return [], stuck
            self.moved += [*self._kept_margins(stuck, before), stuck]

    def _tried(self, sequence: Sequence[Margin]) -> tuple[list[Step], list[Margin], Margin | None]:
        """Return the steps of this sequence, the tables met, and the one that could not be met."""
        before = list(self.known)
        steps: list[Step] = []
        for table in sequence:
            if follows(table, before):
                continue  # it follows from that one
            ordered = running_order(maximal(common(table, earlier) for earlier in before))
            if ordered is not None:
                margins = [margin for margin in self.later if is_margin(margin, table)]
                # Common margins that cannot be met before the table follow from it.
                missed = tuple(margin for margin in unknown(margins, ordered) if margin != table)
                steps += _one_by_one(table, ordered, missed)
                before.append(table)
            elif table in self.largest:
                return [], before, table
        return steps, before, None

    def _kept_margins(self, table: Margin, before: Sequence[Margin]) -> list[Margin]:
        """The margins that a table is given when it is moved: those asked for first, then small."""
        first = [*self.known, *self.singles, *self.moved]
        kept: list[Margin] = []

        def rank(margin: Margin) -> tuple[bool, int, Margin]:
            return margin not in self.asked, self.nesting.cells(margin), margin

        for margin in sorted(maximal(common(table, earlier) for earlier in before), key=rank):
            given = maximal(common(table, earlier) for earlier in [*first, *kept, margin])
            if running_order(given) is not None:
                kept.append(margin)
        return kept


def running_order(margins: Iterable[Margin]) -> list[Margin] | None:
    """Order margins so that each shares with all before it only what it shares with one of them.

    Parameters
    ----------
    margins : iterable of tuples of int
        None of them is a margin of another.

    Returns
    -------
    list of tuples of int, or None
        None: there is no such order.

    >>> running_order({(1, 1, 0), (0, 1, 1)})
    [(1, 1, 0), (0, 1, 1)]
    >>> running_order({(1, 1, 0), (0, 1, 1), (1, 0, 1)}) is None
    True
    """
    left = sorted(margins)
    last_first = []
    while len(left) > 1:
        # An ear shares with all others together only what it shares with one of them.
        for ear in left:
            others = [other for other in left if other != ear]
            if follows(common(ear, reduce(joined, others)), others):
                break
        else:
            return None
        left.remove(ear)
        last_first.append(ear)
    return left + last_first[::-1]


def _one_by_one(table: Margin, given: Sequence[Margin], missed: tuple[Margin, ...]) -> list[Step]:
    """The steps that meet margins in a running order: joins of the first ones, then the table."""
    if len(given) <= 2:
        return [Step(table, tuple(given), missed)]
    *first, last = given
    steps = []
    so_far = first[0]
    for margin in first[1:]:
        larger = joined(so_far, margin)
        steps.append(Step(larger, (so_far, margin)))
        so_far = larger
    return [*steps, Step(table, (so_far, last), missed)]


# --- a family of tables ---------------------------------------------------------------------------


def rounded(
    tables: Mapping[Margin, Array],
    nesting: Nesting,
    names: Sequence[str] = (),
    known: Mapping[Margin, Array] | None = None,
) -> dict[Margin, Array]:
    """Round a family of tables to non-negative whole numbers that add up exactly.

    Parameters
    ----------
    tables : mapping of levels to float64 ndarrays
        Tables that agree in their common margins up to the precision of doubles, at least one.
        Each has a dimension for each axis of the family.
    nesting : Nesting
    names : sequence of str
        What a refusal calls the tables.
    known : mapping of levels to int64 ndarrays, or None
        Public totals. The rounded tables have them exactly.

    Returns
    -------
    dict of levels to int64 ndarrays
        The same tables, rounded.

    Raises
    ------
    Infeasible
        If the tables overlap such that no order of them can be met; this depends on their axes and
        sizes alone.
    """
    whole = dict(known or {})
    # Each step sees the tables rounded before it, and so agrees with them exactly.
    for step in steps_of(tuple(tables), nesting, names, tuple(whole)):
        whole[step.table] = _rounded_step(step, tables, whole, nesting)
    return {table: _margin_of(whole, table, nesting) for table in tables}


def steps_of(
    tables: Sequence[Margin],
    nesting: Nesting,
    names: Sequence[str] = (),
    known: Sequence[Margin] = (),
) -> Sequence[Step]:
    """Return the order in which tables are rounded; parameters and refusal are as of ``rounded``.

    It needs no numbers, so that a family can be refused before it is paid for.
    """
    steps = order_of(tables, nesting, known)
    if steps is None:
        listed = ", ".join(names or map(str, tables))
        raise Infeasible(
            f"published() of {listed}",
            "they share so many totals that no whole numbers may agree in all, and a table of all "
            f"their axes has more than {MOST_JOINED_CELLS:,} cells",
            "Ask for fewer tables of three or more axes in one family, or use the estimates, which "
            "agree",
        )
    return steps


def _margin_of(tables: Mapping[Margin, Array], margin: Margin, nesting: Nesting) -> Array:
    """Return a margin from the smallest of the tables that have it."""
    larger = [table for table in tables if is_margin(margin, table)]
    table = min(larger, key=lambda table: (nesting.cells(table), table))
    return nesting.margin(tables[table], table, margin)


def _aim(step: Step, tables: Mapping[Margin, Array], nesting: Nesting) -> Array:
    if follows(step.table, tables):
        estimate = _margin_of(tables, step.table, nesting)
        if not step.missed:
            return estimate
        wanted = {
            margin: _margin_of(tables, margin, nesting) for margin in (*step.given, *step.missed)
        }
        return fitted(step.table, estimate, wanted, nesting)
    below = {table: values for table, values in tables.items() if is_margin(table, step.table)}
    return fitted(step.table, np.zeros(nesting.shape(step.table)), below, nesting)


def _rounded_step(
    step: Step, tables: Mapping[Margin, Array], whole: Mapping[Margin, Array], nesting: Nesting
) -> Array:
    shape = nesting.shape(step.table)
    values = _aim(step, tables, nesting).ravel().astype(np.float64)
    given = [_margin_of(whole, margin, nesting).ravel() for margin in step.given]
    match step.given:
        case ():
            total = np.maximum(np.rint(values), 0).astype(np.int64)
            return np.asarray(total.reshape(shape))
        case (margin,):
            places = nesting.places(step.table, margin)
            exact = on_simplices(values, places, given[0].astype(np.float64))
            return largest_remainders(exact, places, given[0]).reshape(shape)
        case (one, other):
            return _with_both(step.table, (one, other), values, given, nesting).reshape(shape)
        case _:
            raise AssertionError(step)


def _with_both(
    table: Margin,
    margins: tuple[Margin, Margin],
    values: Array,
    given: Sequence[Array],
    nesting: Nesting,
) -> Array:
    if len(given[0]) < len(given[1]):  # there are then fewer columns than rows, which is faster
        margins = margins[::-1]
        given = given[::-1]
    shared = common(*margins)
    places = []
    back = []
    for margin in margins:
        # Rows and columns are put in the order of the cells that they have in common.
        by_block = np.argsort(nesting.places(margin, shared), kind="stable")
        rank = np.empty(len(by_block), dtype=np.int32)
        rank[by_block] = np.arange(len(by_block), dtype=np.int32)
        places.append(rank[nesting.places(table, margin)])
        back.append(by_block)
    sums = list(map(np.take, given, back))
    by_row = np.argsort(places[0], kind="stable")
    cell_at = np.empty(len(by_row), dtype=np.int64)
    cell_at[by_row] = np.arange(len(by_row))

    def cell_with(rows: Array, columns: Array) -> Array:
        at = (back[0][rows], back[1][columns])
        return cell_at[nesting.cell_with(table, margins, at)]

    rows, columns = (place[by_row] for place in places)
    row_sums, column_sums = (numbers.astype(np.float64) for numbers in sums)
    exact = with_margins(values[by_row], rows, row_sums, columns, column_sums)
    whole = with_both_margins(exact, rows, sums[0], columns, sums[1], cell_with)
    return np.asarray(whole[cell_at])


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
