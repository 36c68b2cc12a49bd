"""Controlled rounding: whole numbers next to real ones, with given whole margins, exactly.

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
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.basics.numbers import Array

BITS = 16
"""The digits after the point with which a real table is written."""

CellWith = Callable[[Array, Array], Array]
"""From rows and columns to one cell in each row and column."""


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
    found = np.zeros(n, dtype=np.int64)
    np.add.at(found, places, values)
    return found


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
    digits = _digits(max(int(row_sums.sum()), 1))
    found = _written(values, rows, row_sums, columns, column_sums, digits)
    _meet(found, rows, row_sums << digits, columns, column_sums << digits, cell_with)
    for digit in range(digits, 0, -1):
        odd = np.flatnonzero(found & 1)
        if len(odd):
            wanted = values[odd] * 2.0**digit - found[odd]
            found[odd] += _signs(wanted, rows[odd], columns[odd])
        found >>= 1
    return found


def _digits(total: int) -> int:
    """How many binary digits after the point a double can add up to this total."""
    return max(0, min(BITS, 51 - total.bit_length()))


def _written(
    values: Array, rows: Array, row_sums: Array, columns: Array, column_sums: Array, digits: int
) -> Array:
    """The table in whole multiples of 2^-digits, with margins that are nowhere too large."""
    found = values
    for places, sums in ((rows, row_sums), (columns, column_sums)):
        reached = np.bincount(places, found, minlength=len(sums))
        # Doubles are summed with an error; the last factor is below it.
        factor = np.minimum(1, sums / np.maximum(reached, 1e-300)) * (1 - 1e-13)
        found = found * factor[places]
    return np.floor(found * 2.0**digits).astype(np.int64)


def _meet(
    table: Array,
    rows: Array,
    row_sums: Array,
    columns: Array,
    column_sums: Array,
    cell_with: CellWith,
) -> None:
    """Add what the margins lack, by the rule of the north-west corner."""
    lacking = [
        np.cumsum(sums - _sums(table, places, len(sums)))
        for places, sums in ((rows, row_sums), (columns, column_sums))
    ]
    ends = np.union1d(*lacking)
    ends = ends[ends > 0]
    amounts = np.diff(ends, prepend=0)
    at = [np.searchsorted(reached, ends) for reached in lacking]
    np.add.at(table, cell_with(at[0], at[1]), amounts)


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
    in_column = _paired(columns)
    # From a cell to the one with which its partner in the row is paired in the column: these two
    # have the same sign, and the partners the other one.
    following = in_column[in_row]
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
