"""Tables over a tree of unequal regions are the best ones, and say how good they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.tables.cells import CellErrors
from sfumato.questions.tables.design import Measurement, estimated
from sfumato.questions.tables.levels import Levels, Margin
from sfumato.questions.tables.residuals import Family, Measured, closure_of
from sfumato.questions.tables.trees import MOST_KINDS, UnevenFamily

AXES = (Levels.flat(2), Levels(((3,), (1, 4, 2))), Levels.flat(3))
TABLES: dict[Margin, float] = {(1, 1, 0): 2.0, (0, 2, 0): 3.0, (0, 1, 1): 1.5, (1, 0, 1): 4.0}
MEASURED = tuple(
    Measurement(margin, DiscreteLaplace(Fraction(scale))) for margin, scale in TABLES.items()
)


def sums(margin: Margin) -> np.ndarray:
    """The matrix from the cells of all axes to those of a table."""
    found = np.ones((1, 1))
    for axis, level in zip(AXES, margin, strict=True):
        leaves = np.eye(axis.cells(axis.depth))
        of_axis = np.stack([axis.summed(leaf, 0, axis.depth, level) for leaf in leaves], axis=1)
        found = np.kron(found, of_axis)
    return found


def test_estimates_and_errors_are_those_of_dense_least_squares() -> None:
    matrix = np.vstack([sums(each.margin) for each in MEASURED])
    sizes = [len(sums(each.margin)) for each in MEASURED]
    precisions = np.repeat([1 / each.law.variance for each in MEASURED], sizes)
    covariance = np.linalg.pinv(matrix.T @ (precisions[:, None] * matrix), rcond=1e-12)
    noisy = np.random.default_rng(1).integers(-9, 50, len(matrix))
    cells = covariance @ matrix.T @ (precisions * noisy)
    residuals = estimated(AXES, MEASURED, noisy)
    errors = CellErrors(AXES, MEASURED)
    for margin in closure_of(tuple(TABLES)):
        table = sums(margin)
        found = errors.family.estimate(margin, residuals).reshape(-1)
        np.testing.assert_allclose(found, table @ cells, atol=1e-9)
        variances = np.diag(table @ covariance @ table.T)
        np.testing.assert_allclose(errors.variances(margin).reshape(-1), variances, rtol=1e-9)
        half = errors.half_widths(margin, 0.05).reshape(-1) / np.sqrt(variances)
        assert (half > 1.7).all()
        assert (half < 2.4).all()


@pytest.mark.parametrize("margin", closure_of(tuple(TABLES)))
def test_an_error_is_a_sum_of_draws_with_the_variance_that_is_stated(margin: Margin) -> None:
    family = CellErrors(AXES, MEASURED).family
    uneven = UnevenFamily.of(family)
    assert uneven is not None
    for cell in range(AXES[1].cells(margin[1])):
        of_draws = sum(
            draw.factor**2 * draw.times * family.measured[draw.measured].variance
            for draw in uneven.error_of(margin, cell)
        )
        assert of_draws == pytest.approx(uneven.variance_of(margin, cell), rel=1e-9)


def test_known_totals_are_kept() -> None:
    known = {(0, 1, 0): np.array([5, 40, 9]).reshape(1, 3, 1)}
    noisy = np.random.default_rng(2).integers(0, 9, sum(len(sums(table)) for table in TABLES))
    residuals = estimated(AXES, MEASURED, noisy, known)
    errors = CellErrors(AXES, MEASURED, tuple(known))
    estimates = errors.family.estimate((1, 1, 0), residuals)
    np.testing.assert_allclose(estimates.sum(axis=(0, 2)), [5, 40, 9], atol=1e-9)
    assert not errors.variances((0, 1, 0)).any()
    assert not errors.half_widths((0, 0, 0), 0.05).any()
    assert errors.variances((0, 2, 0)).reshape(-1)[0] == 0  # the only town of its region


def test_where_even_weights_serve() -> None:
    even = Family((Levels(((2,), (3, 3))),), (Measured((2,), 1.0), Measured((1,), 1.0)))
    assert UnevenFamily.of(even) is None
    one_level = Family(AXES[1:2], (Measured((2,), 1.0),))
    assert UnevenFamily.of(one_level) is None
    two_trees = Family((AXES[1], AXES[1]), (Measured((2, 1), 1.0), Measured((1, 2), 1.0)))
    assert UnevenFamily.of(two_trees) is None
    residuals = Family(AXES[1:2], (Measured((2,), 1.0, whole=False), Measured((1,), 1.0)))
    assert UnevenFamily.of(residuals) is None
    regions = tuple(range(1, MOST_KINDS + 2))
    many = Levels(((len(regions),), regions))
    assert UnevenFamily.of(Family((many,), (Measured((2,), 1.0), Measured((1,), 1.0)))) is None
