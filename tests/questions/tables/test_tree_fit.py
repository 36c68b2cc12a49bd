"""Estimates along a tree are those of dense generalised least squares."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sfumato.questions.tables.levels import Levels
from sfumato.questions.tables.trees import TreeFit, shapes

AXIS = Levels(((3,), (2, 1, 3), (1, 2, 3, 1, 1, 4)))
LEAVES = AXIS.cells(3)
SUMS = [
    np.stack([AXIS.summed(leaf, 0, 3, level) for leaf in np.eye(LEAVES)], axis=1)
    for level in range(4)
]
PRECISIONS = [
    (0.0, 1.0, 2.0, 0.5),
    (0.3, 1.0, 0.0, 0.5),
    (0.0, 0.0, 1.0, 0.7),
    (1.0, 0.0, 0.0, 1.0),
]


def dense(precisions: tuple[float, ...]) -> np.ndarray:
    """The covariances of the best estimates of the leaves."""
    information = sum(
        precision * sums.T @ sums for precision, sums in zip(precisions, SUMS, strict=True)
    )
    return np.linalg.inv(information)


@pytest.mark.parametrize("precisions", PRECISIONS)
def test_covariances_and_estimates(precisions: tuple[float, ...]) -> None:
    fit = TreeFit(AXIS, precisions)
    expected = dense(precisions)
    for level, sums in enumerate(SUMS):
        for cell, of_cell in enumerate(sums):
            for other, found in zip(SUMS, fit.covariances(level, cell), strict=True):
                np.testing.assert_allclose(found, other @ expected @ of_cell, atol=1e-12)
        variances = np.diag(sums @ expected @ sums.T)
        np.testing.assert_allclose(fit.variances(level), variances, rtol=1e-12)
    rng = np.random.default_rng(1)
    used = [level for level, precision in enumerate(precisions) if precision]
    measured = {level: rng.normal(size=(2, AXIS.cells(level))) for level in used}
    leaves = sum(precisions[level] * measured[level] @ SUMS[level] for level in used) @ expected
    for sums, found in zip(SUMS, fit.estimates(measured, along=1), strict=True):
        np.testing.assert_allclose(found, leaves @ sums.T, atol=1e-12)


def test_cells_that_are_known_stay_as_they_are() -> None:
    fit = TreeFit(AXIS, (0.5, math.inf, 0.0, 1.0))
    almost = TreeFit(AXIS, (0.5, 1e12, 0.0, 1.0))
    rng = np.random.default_rng(2)
    measured = {level: rng.normal(size=AXIS.cells(level)) for level in (0, 1, 3)}
    for level, found in enumerate(fit.estimates(measured, along=0)):
        np.testing.assert_allclose(found, almost.estimates(measured, along=0)[level], atol=1e-9)
        np.testing.assert_allclose(fit.variances(level), almost.variances(level), atol=1e-9)
    np.testing.assert_array_equal(fit.estimates(measured, along=0)[1], measured[1])
    assert not fit.variances(0).any()
    assert not fit.variances(1).any()
    of_leaves = TreeFit(AXIS, (1.0, 1.0, 0.0, math.inf))
    assert all(not of_leaves.variances(level).any() for level in range(4))


def test_a_tree_may_end_before_its_leaves() -> None:
    fit = TreeFit(AXIS, (0.0, 2.0, 1.0, 0.0))
    short = TreeFit(Levels(AXIS.fanouts[:2]), (0.0, 2.0, 1.0))
    assert fit.last == 2
    np.testing.assert_array_equal(fit.variances(2), short.variances(2))


def test_cells_of_one_shape_have_one_variance() -> None:
    fit = TreeFit(AXIS, PRECISIONS[0])
    for level, kinds in enumerate(shapes(AXIS)):
        for kind in set(kinds.tolist()):
            alike = fit.variances(level)[kinds == kind]
            np.testing.assert_allclose(alike, alike[0], rtol=1e-12)
    assert len(set(shapes(AXIS)[3].tolist())) < LEAVES
