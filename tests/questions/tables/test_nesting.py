"""Margins, places and shared cells of tables over nested levels."""

from __future__ import annotations

import itertools

import numpy as np

from questions.tables.families import finest, tree
from sfumato.questions.tables.levels import Levels, Nesting, common, is_margin, joined

PLACES = Nesting((tree([2, 5, 9]), tree([3]), tree([2, 4])))
TABLES = list(itertools.product(range(4), range(2), range(3)))


def test_levels_are_compared_axis_by_axis() -> None:
    assert is_margin((0, 1, 2), (0, 1, 2))
    assert not is_margin((0, 1, 2), (3, 1, 1))
    assert common((3, 0, 1), (1, 1, 2)) == (1, 0, 1)
    assert joined((3, 0, 1), (1, 1, 2)) == (3, 1, 2)


def test_a_margin_is_the_sum_over_the_places_of_the_cells() -> None:
    full = finest(PLACES)
    values = np.random.default_rng(0).integers(-9, 99, PLACES.shape(full))
    for margin in TABLES:
        if not is_margin(margin, full):
            continue
        expected = np.zeros(PLACES.cells(margin), dtype=np.int64)
        np.add.at(expected, PLACES.places(full, margin), values.reshape(-1))
        found = PLACES.margin(values, full, margin)
        assert found.shape == PLACES.shape(margin)
        np.testing.assert_array_equal(found.reshape(-1), expected)


def test_margins_of_margins_are_margins() -> None:
    full = finest(PLACES)
    values = np.arange(PLACES.cells(full)).reshape(PLACES.shape(full))
    between = PLACES.margin(values, full, (2, 1, 1))
    for margin in ((1, 1, 0), (2, 0, 1), (0, 0, 0), (1, 1, 1)):
        np.testing.assert_array_equal(
            PLACES.margin(between, (2, 1, 1), margin), PLACES.margin(values, full, margin)
        )


def test_children_are_summed() -> None:
    regions = Nesting((Levels(((2,), (3, 1))),))
    values = np.array([1, 2, 4, 8])
    assert regions.margin(values, (2,), (1,)).tolist() == [7, 8]
    assert regions.first_descendants(0, 1, 2).tolist() == [0, 3]


def test_a_cell_of_two_margins_lies_in_both() -> None:
    table, margins = (3, 1, 2), ((2, 1, 0), (1, 0, 2))
    shared = common(*margins)
    of_shared = [PLACES.places(margin, shared) for margin in margins]
    rows, columns = np.nonzero(of_shared[0][:, None] == of_shared[1][None, :])
    cells = PLACES.cell_with(table, margins, (rows, columns))
    np.testing.assert_array_equal(PLACES.places(table, margins[0])[cells], rows)
    np.testing.assert_array_equal(PLACES.places(table, margins[1])[cells], columns)


def test_few_tables_cover_all_margins_and_stay_small() -> None:
    axes = Nesting.plain([4] * 13)
    pairs = [
        tuple(int(axis in pair) for axis in range(13))
        for pair in itertools.combinations(range(13), 2)
    ]
    tables = axes.covering(pairs, 2**16)
    assert len(tables) < len(pairs) / 10
    assert all(axes.cells(table) <= 2**16 for table in tables)
    assert all(any(is_margin(pair, table) for table in tables) for pair in pairs)


def test_a_margin_larger_than_any_table_may_be_stands_alone() -> None:
    tables = PLACES.covering(TABLES, 8)
    assert (3, 1, 2) in tables
    assert all(any(is_margin(margin, table) for table in tables) for margin in TABLES)
