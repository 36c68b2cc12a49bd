"""What is to be small, and how numbers are rounded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.questions.tables.gaussian_design import DIGITS, Aim, rounded_up, shares_of_variance
from sfumato.questions.tables.levels import Levels
from sfumato.questions.tables.residuals import Family, Measured, below


@pytest.mark.parametrize("value", [1e-9, 0.1, 1 / 3, 2.0, 123456789.123, 7e20])
def test_numbers_are_rounded_up_by_little(value: float) -> None:
    found = rounded_up(value)
    assert isinstance(found, Fraction)
    assert value <= found <= value * (1 + 2 * 10.0 ** (1 - DIGITS))
    assert rounded_up(float(found)) <= found * (1 + Fraction(2, 10 ** (DIGITS - 1)))


def test_shares_are_those_of_the_closed_form_on_average() -> None:
    axes = (Levels.flat(3), Levels(((2,), (3, 1))))
    margins = list(below((1, 2)))
    shares = shares_of_variance(axes, margins, margins)
    for row, margin in enumerate(margins):
        cells = [axis.paths(level) for axis, level in zip(axes, margin, strict=True)]
        for column, kept in enumerate(margins):
            if not all(a <= b for a, b in zip(kept, margin, strict=True)):
                assert shares[row, column] == 0
                continue
            found = []
            family = Family(
                axes, tuple(Measured(m, 1.0 if m == kept else 1e-12, False) for m in margins)
            )
            for one in cells[0]:
                found += [family.variance_of(margin, (one, other)) for other in cells[1]]
            assert np.isclose(shares[row, column], np.mean(found), atol=1e-9)


def test_the_largest_ratio_becomes_as_small_as_it_can() -> None:
    """Two quantities that share one unit: each gets what its accuracy needs."""

    def solve(weights: np.ndarray) -> np.ndarray:
        return np.sqrt(weights) / np.sqrt(weights).sum()  # minimises w1 / x1 + w2 / x2, x1 + x2 = 1

    aim = Aim(accuracies=(1.0, 3.0))
    best = aim.solved(solve, 2, lambda shares: 1 / shares)
    assert np.allclose(best, [9 / 10, 1 / 10], atol=1e-3)
    assert np.isclose(aim.error(1 / best), 10 / 9, atol=1e-3)
    assert Aim(weights=(1.0, 2.0)).error(np.array([3.0, 4.0])) == 11
