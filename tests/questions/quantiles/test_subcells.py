"""Rows are dealt to sub-cells in a fixed order, and neighbours stay neighbours."""

from itertools import pairwise

import numpy as np
import pytest

from sfumato.questions.quantiles.cells import deal, points_of, subcells_for
from support import ties
from support.quantile_data import cells_of

ORDER = [2, 0, 3, 1]  # the middle first, then the widest gap


def test_rows_are_dealt_as_one_would_by_hand():
    for counts in [(0, 0), (1, 3), (4, 9), (2, 0), (7, 1), (100, 5)]:
        found = np.zeros(8, int)
        positions, rows = deal(cells_of(counts).positions, cells_of(counts).counts, 4)
        found[positions] = rows
        assert tuple(found) == ties.dealt(counts, ORDER)


@pytest.mark.parametrize("parts", [1, 2, 4, 8, 256])
def test_one_row_more_is_one_row_more_in_one_sub_cell(parts):
    size = 3 * parts

    def dense(counts):
        found = np.zeros(size, int)
        cells = cells_of(counts).divided(parts)
        found[cells.positions] = cells.counts
        assert cells.size == size
        assert (np.diff(cells.positions) > 0).all()
        assert (cells.counts > 0).all()
        return found

    for more in range(2 * parts + 2):
        before, after = dense((5, more, 0)), dense((5, more + 1, 0))
        assert sorted(after - before)[-2:] == [0, 1]
        assert (after - before).sum() == 1
    assert np.ptp(dense((0, 1000 * parts, 0))[parts : 2 * parts]) == 0


def test_rounding_the_rows_of_sub_cells_moves_others():
    """Broken: if rows are spread evenly and rounded, a fourth row moves another one as well."""
    shift = [
        np.abs(np.subtract(ties.rounded((n,), 8), ties.rounded((n + 1,), 8))).sum()
        for n in range(9)
    ]
    assert max(shift) == 3


@pytest.mark.parametrize("parts", [2, 16, 256])
def test_points_of_edges(parts):
    """With a step an edge stands for its cell, without one for the nearer end of the cell.

    The first row of a cell lies between the two ends.
    """
    edges = np.arange(3 * parts + 1)
    assert (
        points_of(edges, parts, 3, True).tolist()
        == np.repeat([0, 1, 2], [parts, parts, parts + 1]).tolist()
    )
    rows = np.zeros(3, int)
    rows[1] = 1
    cells = cells_of(rows).divided(parts)
    below = np.searchsorted(cells.positions, edges)
    nearer = points_of(edges, parts, 3, False)
    assert (below == (nearer >= 2)).all()
    assert nearer[0] == 0
    assert nearer[-1] == 3


def test_parts_are_public_and_bounded():
    assert [
        subcells_for(cells, 256, permute_and_flip=False, together=1)
        for cells in (1, 120, 2**16, 2**20, 2**24, 2**40)
    ] == [256, 256, 256, 16, 1, 1]
    assert [
        subcells_for(cells, 256, permute_and_flip=True, together=1) for cells in (120, 300, 2**12)
    ] == [
        256,
        128,
        16,
    ]
    assert subcells_for(2**20, 256, permute_and_flip=False, together=42) == 16
    few = [subcells_for(2**20, 256, permute_and_flip=False, together=m) for m in (42, 46, 50, 60)]
    assert all(b <= a for a, b in pairwise(few))
    assert few[-1] == 1
