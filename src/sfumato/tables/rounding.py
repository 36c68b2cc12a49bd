"""Tables of non-negative whole numbers that add up exactly, next to a family of real tables.

The tables of a family are estimates: they agree, but they are fractions, and some are negative.
For printing they are rounded here, one after another (see ``order``). Each step takes the real
table, finds the nearest non-negative one with the margins that were rounded before it (see
``nearest``), and rounds that to whole numbers with the same margins (see ``controlled``). So any
two rounded tables agree exactly in their common margin, and every cell is within 1 of a table that
is the nearest one given its margins. Nothing is random, and nothing but the estimates is used.

Rounded tables are biased. What is below 0 becomes 0, and the other cells of its row pay for it: so
small counts are too large on average, and large ones too small. No interval is stated for them;
those of the estimates hold.

Source: for the order from the top down, Abowd et al., *The 2020 Census disclosure avoidance system
TopDown algorithm*, HDSR 2022, Sec. 5; for rounding within 1, ``controlled``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import Infeasible
from sfumato.tables import controlled, nearest
from sfumato.tables.fitting import fitted
from sfumato.tables.nesting import Margin, Nesting, common, is_margin
from sfumato.tables.order import MOST_JOINED_CELLS, Step, order_of


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
    found = dict(known or {})
    for step in steps_of(tuple(tables), nesting, names, tuple(found)):
        found[step.table] = _rounded_step(step, tables, found, nesting)
    return {table: _margin_of(found, table, nesting) for table in tables}


def steps_of(
    tables: Sequence[Margin],
    nesting: Nesting,
    names: Sequence[str] = (),
    known: Sequence[Margin] = (),
) -> Sequence[Step]:
    """In which order tables are rounded; the parameters and the refusal are those of ``rounded``.

    It needs no numbers, so that a family can be refused before it is paid for.
    """
    order = order_of(tuple(tables), nesting, tuple(known))
    if order is None:
        raise _unroundable(names or [str(table) for table in tables])
    return order.steps


def _unroundable(names: Sequence[str]) -> Infeasible:
    """What refuses a family whose tables cannot all be rounded."""
    listed = ", ".join(names)
    return Infeasible(
        f"published() of {listed}",
        "they share so many totals that no whole numbers may agree in all, and a table of all "
        f"their axes has more than {MOST_JOINED_CELLS:,} cells",
        "Ask for fewer tables of three or more axes in one family, or use the estimates, which "
        "agree",
    )


def _margin_of(tables: Mapping[Margin, Array], margin: Margin, nesting: Nesting) -> Array:
    """A margin from the smallest of the tables that have it."""
    larger = [table for table in tables if is_margin(margin, table)]
    table = min(larger, key=lambda one: (nesting.cells(one), one))
    return nesting.margin(tables[table], table, margin)


def _aim(step: Step, tables: Mapping[Margin, Array], nesting: Nesting) -> Array:
    """The real table that a step rounds."""
    if any(is_margin(step.table, table) for table in tables):
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
    step: Step, tables: Mapping[Margin, Array], found: Mapping[Margin, Array], nesting: Nesting
) -> Array:
    """Round one table, given those of earlier steps."""
    shape = nesting.shape(step.table)
    values = _aim(step, tables, nesting).reshape(-1).astype(np.float64)
    given = [_margin_of(found, margin, nesting).reshape(-1) for margin in step.given]
    match step.given:
        case ():
            total = np.maximum(np.rint(values), 0).astype(np.int64)
            return np.asarray(total.reshape(shape))
        case (margin,):
            places = nesting.places(step.table, margin)
            exact = nearest.on_simplices(values, places, given[0].astype(np.float64))
            return controlled.largest_remainders(exact, places, given[0]).reshape(shape)
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
    """Round one table with two margins: its cells in order, of shape (cells,)."""
    if len(given[0]) < len(given[1]):  # there are then fewer columns than rows, which is faster
        margins, given = margins[::-1], given[::-1]
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
    sums = [numbers[order] for numbers, order in zip(given, back, strict=True)]
    by_row = np.argsort(places[0], kind="stable")
    cell_at = np.empty(len(by_row), dtype=np.int64)
    cell_at[by_row] = np.arange(len(by_row))

    def cell_with(rows: Array, columns: Array) -> Array:
        at = (back[0][rows], back[1][columns])
        return cell_at[nesting.cell_with(table, margins, at)]

    rows, columns = (place[by_row] for place in places)
    real_sums = [numbers.astype(np.float64) for numbers in sums]
    exact = nearest.with_margins(values[by_row], rows, real_sums[0], columns, real_sums[1])
    whole = controlled.with_both_margins(exact, rows, sums[0], columns, sums[1], cell_with)
    return np.asarray(whole[cell_at])
