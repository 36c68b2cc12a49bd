"""Projections satisfy the conditions of the nearest table, which are sufficient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.questions.tables.rounding import TOLERANCE, on_simplices, with_margins


@given(st.integers(0, 10**6))
def test_rows_are_projected_onto_simplices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_rows = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    rows = rng.integers(0, n_rows, n)
    values = rng.normal(0, 10, n)
    sums = rng.integers(0, 20, n_rows).astype(float)
    sums[np.bincount(rows, minlength=n_rows) == 0] = 0
    found = on_simplices(values, rows, sums)
    assert found.min() >= 0
    np.testing.assert_allclose(np.bincount(rows, found, minlength=n_rows), sums, atol=1e-9)
    # Kuhn and Tucker: cells above 0 are moved by the same, and the others by more.
    for row in range(n_rows):
        moved = (found - values)[rows == row]
        above = found[rows == row] > 0
        if above.any():
            assert np.ptp(moved[above]) < 1e-9
            assert (moved[~above] >= moved[above].max() - 1e-9).all()


@given(st.integers(0, 10**6))
def test_two_margins_are_met_by_the_nearest_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 9, 2))
    margins = rng.integers(0, 4, shape) * rng.integers(0, 30)
    rows, columns = (place.reshape(-1) for place in np.indices(shape))
    values = rng.normal(0, 10, rows.size)
    row_sums, column_sums = margins.sum(axis=1).astype(float), margins.sum(axis=0).astype(float)
    found = with_margins(values, rows, row_sums, columns, column_sums)
    assert found.min() >= 0
    table = found.reshape(shape)
    np.testing.assert_allclose(table.sum(axis=1), row_sums, atol=TOLERANCE)
    np.testing.assert_allclose(table.sum(axis=0), column_sums, atol=TOLERANCE)
    # A sum of squares is least if no feasible direction leads down. Moving one row around a
    # rectangle of cells is feasible where the cells that lose are above 0.
    gradient = table - values.reshape(shape)
    for _ in range(50):
        i, k = rng.integers(0, shape[0], 2)
        j, m = rng.integers(0, shape[1], 2)
        if min(table[i, m], table[k, j]) > 1e-6:
            uphill = gradient[i, j] + gradient[k, m] - gradient[i, m] - gradient[k, j]
            assert uphill > -1e-2


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_hard_problems_converge(scale: float) -> None:
    """All noise, and a few rows that hold nearly everything."""
    rng = np.random.default_rng(4)
    shape = (60, 40)
    values = scale * rng.standard_cauchy(shape).reshape(-1)
    weights = np.ceil(rng.pareto(0.5, shape[0]))
    column_sums = np.ones(shape[1]) * weights.sum()
    rows, columns = (place.reshape(-1) for place in np.indices(shape))
    found = with_margins(values, rows, weights * shape[1], columns, column_sums)
    table = found.reshape(shape)
    near = max(TOLERANCE, 1e-12 * table.sum())
    np.testing.assert_allclose(table.sum(axis=0), column_sums, atol=near)
    np.testing.assert_allclose(table.sum(axis=1), weights * shape[1], atol=near, rtol=1e-12)


def test_an_empty_row_and_column_stay_empty() -> None:
    rows, columns = (place.reshape(-1) for place in np.indices((2, 2)))
    values = np.array([5.0, 5.0, 5.0, 5.0])
    sums = np.array([3.0, 0.0])
    assert with_margins(values, rows, sums, columns, sums[::-1]).tolist() == [0, 3, 0, 0]
