"""Rounding keeps margins exactly, and changes every cell by less than 1."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.questions.tables.rounding import largest_remainders, with_both_margins


def round_table(table: np.ndarray, row_sums: np.ndarray, column_sums: np.ndarray) -> np.ndarray:
    """Round a two-way table with one cell for each row and column."""
    rows, columns = (place.reshape(-1) for place in np.indices(table.shape))
    width = table.shape[1]
    return with_both_margins(
        table.reshape(-1),
        rows,
        row_sums,
        columns,
        column_sums,
        lambda row, column: row * width + column,
    ).reshape(table.shape)


def with_whole_margins(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """A real table whose rows and columns have whole sums: whole tables, mixed."""
    mixed = rng.dirichlet(np.ones(6))
    start = rng.integers(0, 5, shape)
    tables = [start]
    for _ in range(5):
        moved = start.copy()
        for _ in range(20):
            (i, k), (j, m) = rng.integers(0, shape[0], 2), rng.integers(0, shape[1], 2)
            if i != k and j != m and min(moved[i, m], moved[k, j]) > 0:
                moved[[i, k], [j, m]] += 1
                moved[[i, k], [m, j]] -= 1
        tables.append(moved)
    return np.tensordot(mixed, np.array(tables), axes=1)


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_both_margins_are_exact_and_cells_are_adjacent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
    table = with_whole_margins(rng, shape)
    row_sums, column_sums = (np.rint(table.sum(axis=axis)).astype(np.int64) for axis in (1, 0))
    found = round_table(table, row_sums, column_sums)
    np.testing.assert_array_equal(found.sum(axis=1), row_sums)
    np.testing.assert_array_equal(found.sum(axis=0), column_sums)
    assert found.min() >= 0
    assert np.abs(found - table).max() < 1 + 2**-10


def test_a_whole_table_stays_as_it_is() -> None:
    table = np.random.default_rng(1).integers(0, 1000, (30, 20))
    found = round_table(table.astype(float), table.sum(axis=1), table.sum(axis=0))
    np.testing.assert_array_equal(found, table)


def test_margins_are_exact_even_where_the_real_table_is_far_off() -> None:
    rng = np.random.default_rng(2)
    table = rng.integers(0, 9, (8, 9))
    for start in (np.zeros((8, 9)), 100.0 * rng.random((8, 9))):
        found = round_table(start, table.sum(axis=1), table.sum(axis=0))
        np.testing.assert_array_equal(found.sum(axis=1), table.sum(axis=1))
        np.testing.assert_array_equal(found.sum(axis=0), table.sum(axis=0))
        assert found.min() >= 0


def test_huge_counts_keep_their_margins() -> None:
    table = np.random.default_rng(3).integers(0, 2**48, (6, 7))
    found = round_table(table + 0.25, table.sum(axis=1), table.sum(axis=0))
    np.testing.assert_array_equal(found.sum(axis=1), table.sum(axis=1))
    np.testing.assert_array_equal(found.sum(axis=0), table.sum(axis=0))
    assert np.abs(found - table).max() < 2**12  # doubles of such sums are as coarse


@given(st.integers(0, 10**6))
def test_rows_take_the_nearest_whole_numbers_with_their_sum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_rows = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    rows = np.concatenate([np.arange(n_rows), rng.integers(0, n_rows, n)])
    values = rng.gamma(0.5, 4, len(rows))
    sums = np.ceil(np.bincount(rows, values)).astype(np.int64)
    values *= (sums / np.bincount(rows, values))[rows]
    found = largest_remainders(values, rows, sums)
    np.testing.assert_array_equal(np.bincount(rows, found).astype(np.int64), sums)
    assert found.min() >= 0
    assert np.abs(found - values).max() < 1 + 1e-6
    # No exchange of one row between two cells brings them nearer.
    for row in range(n_rows):
        off = (found - values)[rows == row]
        can_lose = off[(found > 0)[rows == row]]
        if can_lose.size:
            assert can_lose.max() - off.min() <= 1 + 1e-6


def test_sums_that_doubles_cannot_hold_are_met() -> None:
    sums = np.array([2**60 + 1, 0, 5])
    rows = np.array([0, 0, 1, 2, 2])
    values = np.array([2.0**59, 2.0**59, 0, 2.5, 2.5])
    found = largest_remainders(values, rows, sums)
    assert found[:2].sum() == 2**60 + 1
    assert found[2] == 0
    assert found[3:].sum() == 5
