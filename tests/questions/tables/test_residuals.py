"""Estimates and variances are those of dense generalised least squares."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sfumato.questions.tables.levels import Levels, Margin
from sfumato.questions.tables.residuals import Family, Measured, below, closure_of


def flat(*sizes: int) -> tuple[Levels, ...]:
    return tuple(map(Levels.flat, sizes))


PAGE = Family(
    flat(3, 4, 5),
    (
        Measured((1, 1, 0), 2.0),
        Measured((1, 0, 1), 3.0),
        Measured((0, 1, 0), 1.0),
        Measured((0, 1, 1), 5.0),
    ),
)
NESTED = (Levels(((2,), (3, 3))), Levels.flat(2))
UNEVEN = (Levels(((2,), (3, 1))), Levels.flat(2))
FAMILIES = {
    "of the page": PAGE,
    "one table": Family(flat(3, 4), (Measured((1, 1), 2.0),)),
    "one above another": Family(
        flat(2, 3, 2),
        (
            Measured((1, 1, 1), 4.0),
            Measured((1, 1, 0), 1.0),
            Measured((0, 0, 1), 0.5),
            Measured((0, 0, 0), 0.1),
        ),
    ),
    "the same table twice": Family(flat(3, 2), (Measured((1, 1), 1.0), Measured((1, 1), 3.0))),
    "one cell": Family(flat(1, 3), (Measured((1, 1), 1.0), Measured((1, 0), 2.0))),
    "residuals": Family(
        flat(3, 2), tuple(Measured(m, 1.0 + sum(m), whole=False) for m in below((1, 1)))
    ),
    "residuals and tables": Family(
        flat(3, 2), (Measured((1, 1), 2.0), Measured((1, 0), 0.5, whole=False))
    ),
    "levels": Family(NESTED, (Measured((2, 1), 2.0), Measured((1, 1), 1.0), Measured((2, 0), 3.0))),
    "residuals of levels": Family(
        NESTED, tuple(Measured(m, 1.0 + sum(m), whole=False) for m in below((2, 1)))
    ),
    "residuals of uneven levels": Family(
        UNEVEN, tuple(Measured(m, 1.0 + sum(m), whole=False) for m in below((2, 1)))
    ),
}


def sums_onto(axis: Levels, level: int, onto: int) -> np.ndarray:
    """The matrix that adds the cells of a level up to those of one before."""
    return axis.summed(np.eye(axis.cells(level)), 0, level, onto)


def margin_of(family: Family, margin: Margin) -> np.ndarray:
    """The matrix that sums the cells of the whole domain to a table."""
    found = np.ones((1, 1))
    for axis, level in zip(family.axes, margin, strict=True):
        found = np.kron(found, sums_onto(axis, axis.depth, level))
    return found


def contrasts_of(family: Family, margin: Margin) -> np.ndarray:
    """The projection of a table on its residual."""
    found = np.ones((1, 1))
    for axis, level in zip(family.axes, margin, strict=True):
        cells = np.eye(axis.cells(level))
        found = np.kron(found, axis.centred(cells, 0, level) if level else cells)
    return found


def dense(family: Family) -> tuple[np.ndarray, list[np.ndarray]]:
    """The matrix from all noisy counts to all cells, and what is measured of each table."""
    rows, weights, projections = [], [], []
    for margin, variance, whole in family.measured:
        shown = np.eye(family.nesting.cells(margin)) if whole else contrasts_of(family, margin)
        rows.append(shown @ margin_of(family, margin))
        weights.append(shown / variance)  # the pseudo-inverse of the covariance, a projection
        projections.append(shown)
    normal = sum(row.T @ weight @ row for row, weight in zip(rows, weights, strict=True))
    right = [row.T @ weight for row, weight in zip(rows, weights, strict=True)]
    return np.linalg.pinv(normal) @ np.hstack(right), projections


def cells_by_paths(family: Family, margin: Margin) -> list[tuple[int, tuple]]:
    """One cell of each kind of a margin, with its paths."""
    levels = [axis.paths(level) for axis, level in zip(family.axes, margin, strict=True)]
    return list(enumerate(itertools.product(*levels)))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_variances_estimates_and_errors_are_those_of_dense_least_squares(family: Family) -> None:
    solve, projections = dense(family)
    rng = np.random.default_rng(3)
    counts = [
        rng.integers(-9, 99, family.nesting.shape(margin)) for margin, _, _ in family.measured
    ]
    shown = zip(projections, counts, strict=True)
    flat_counts = np.concatenate([project @ count.reshape(-1) for project, count in shown])
    noise = np.concatenate(
        [np.full(family.nesting.cells(margin), variance) for margin, variance, _ in family.measured]
    )
    blocks = np.split(
        solve, np.cumsum([family.nesting.cells(m) for m, _, _ in family.measured])[:-1], 1
    )
    solve_noise = np.hstack([b @ p for b, p in zip(blocks, projections, strict=True)])
    closure = closure_of([margin for margin, _, _ in family.measured])
    residuals = {kept: family.residual(kept, counts) for kept in closure}
    for margin in closure:
        if not family.precisions.keys() >= set(family.estimable(margin)):
            continue
        of_table = margin_of(family, margin) @ solve
        found = family.estimate(margin, residuals)
        assert np.allclose(found.reshape(-1), of_table @ flat_counts, rtol=0, atol=1e-9)
        weights = margin_of(family, margin) @ solve_noise
        variances = (weights**2) @ noise
        for cell, paths in cells_by_paths(family, margin):
            assert math.isclose(variances[cell], family.variance_of(margin, paths), rel_tol=1e-12)
            expected = sorted(weight for weight in weights[cell] if abs(weight) > 1e-12)
            times = family.error_of(margin, paths)
            listed = sorted(
                w.factor for w in times for _ in range(w.times) if abs(w.factor) > 1e-12
            )
            assert np.allclose(listed, expected, rtol=0, atol=1e-12)


def test_the_seven_variances_of_the_page() -> None:
    expected = {
        (0, 0, 0): 3.08747855917667,
        (1, 0, 0): 3.82131404280708,
        (0, 1, 0): 0.81451437127451,
        (0, 0, 1): 5.08901638374638,
        (1, 1, 0): 1.30789290115611,
        (1, 0, 1): 2.30457669964332,
        (0, 1, 1): 3.34292540243719,
    }
    for margin, variance in expected.items():
        assert math.isclose(PAGE.variance_of(margin), variance, rel_tol=1e-12)
    assert (1, 1, 1) not in PAGE.precisions


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES.keys())
def test_common_margins_agree(family: Family) -> None:
    rng = np.random.default_rng(5)
    counts = [
        rng.integers(-9, 99, family.nesting.shape(margin)) for margin, _, _ in family.measured
    ]
    closure = closure_of([margin for margin, _, _ in family.measured])
    residuals = {kept: family.residual(kept, counts) for kept in closure}
    for one, other in itertools.combinations(closure, 2):
        common = tuple(map(min, one, other))
        sums = []
        for margin in (one, other):
            table = family.estimate(margin, residuals)
            for along, axis in enumerate(family.axes):
                table = axis.summed(table, along, margin[along], common[along])
            sums.append(table)
        assert np.allclose(*sums, rtol=0, atol=1e-9)


def test_margins_come_smallest_first() -> None:
    assert closure_of([(1, 1), (0, 2)]) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2)]
