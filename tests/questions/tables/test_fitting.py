"""Tables that have margins as nearly as they can."""

from __future__ import annotations

import numpy as np

from questions.tables.families import finest, pairs, tree
from sfumato.questions.tables.levels import Nesting
from sfumato.questions.tables.rounding import CLOSE, fitted


def test_margins_that_a_non_negative_table_has_are_met() -> None:
    nesting = Nesting((tree([2, 5]), tree([4]), tree([3])))
    full = finest(nesting)
    truth = np.random.default_rng(0).gamma(0.5, 8, nesting.shape(full))
    wanted = {
        margin: nesting.margin(truth, full, margin) for margin in ((2, 1, 0), (1, 0, 1), (0, 1, 1))
    }
    found = fitted(full, np.zeros_like(truth), wanted, nesting)
    assert found.min() >= 0
    for margin, values in wanted.items():
        np.testing.assert_allclose(nesting.margin(found, full, margin), values, atol=5 * CLOSE)


def test_the_table_found_is_the_nearest() -> None:
    """Every difference from it is orthogonal to the margins, or presses on a cell that is 0."""
    from scipy.optimize import lsq_linear

    nesting = Nesting.plain([3, 4, 2])
    rng = np.random.default_rng(3)
    truth = rng.gamma(0.4, 8, (3, 4, 2))
    start = truth + rng.normal(0, 3, truth.shape)
    wanted = {margin: nesting.margin(truth, (1, 1, 1), margin) for margin in pairs(3)}
    found = fitted((1, 1, 1), start, wanted, nesting)
    places = [nesting.places((1, 1, 1), margin) for margin in wanted]
    sums = np.vstack(
        [
            np.equal.outer(np.arange(nesting.cells(margin)), place)
            for margin, place in zip(wanted, places, strict=True)
        ]
    ).astype(float)
    # The same by a general solver, the margins weighing so much that they are met.
    weight = 1e4
    matrix = np.vstack([np.eye(24), weight * sums])
    aims = [start.reshape(-1), *(weight * values.reshape(-1) for values in wanted.values())]
    expected = lsq_linear(matrix, np.concatenate(aims), bounds=(0, np.inf), tol=1e-12)
    np.testing.assert_allclose(found.reshape(-1), expected.x, atol=0.05)


def test_margins_that_no_table_has_are_approached() -> None:
    """Two values each: a = b and b = c, but a != c."""
    nesting = Nesting.plain([2, 2, 2])
    same, other = 50 * np.eye(2), 50 * (1 - np.eye(2))
    wanted = {
        (1, 1, 0): same.reshape(2, 2, 1),
        (0, 1, 1): same.reshape(1, 2, 2),
        (1, 0, 1): other.reshape(2, 1, 2),
    }
    found = fitted((1, 1, 1), np.zeros((2, 2, 2)), wanted, nesting)
    assert found.min() >= 0
    assert np.isfinite(found).all()
    for margin, values in wanted.items():
        assert np.abs(nesting.margin(found, (1, 1, 1), margin) - values).max() < 50
