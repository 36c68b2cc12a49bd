"""Half-widths of cells are those of the law of their errors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.questions.tables.cells import CellErrors
from sfumato.questions.tables.design import Measurement
from sfumato.questions.tables.levels import Levels
from sfumato.questions.tables.residuals import below

AXES = (Levels.flat(4), Levels.flat(5))


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-5])
def test_one_table_has_the_half_width_of_its_noise(alpha: float) -> None:
    law = DiscreteLaplace(Fraction(40))
    errors = CellErrors(AXES, (Measurement((1, 1), law),))
    found = errors.half_widths((1, 1), alpha)
    assert found.shape == (4, 5)
    exact = law.half_width(alpha)
    assert np.all(found >= exact - 1)
    assert np.all(found <= 1.02 * exact + 1)


@pytest.mark.parametrize(("alpha", "quantile"), [(0.05, 1.959964), (0.001, 3.290527)])
def test_wide_gaussian_noise_has_normal_errors(alpha: float, quantile: float) -> None:
    axes = (Levels(((2,), (3, 1))), Levels.flat(3))
    measured = tuple(
        Measurement(margin, DiscreteGaussian(Fraction(4000 + 500 * sum(margin))), whole=False)
        for margin in below((2, 1))
    )
    errors = CellErrors(axes, measured)
    for margin in below((2, 1)):
        half = errors.half_widths(margin, alpha)
        assert half.shape == errors.family.nesting.shape(margin)
        paths = [axis.paths(level) for axis, level in zip(axes, margin, strict=True)]
        for row, one in enumerate(paths[0]):
            for column, other in enumerate(paths[1]):
                normal = quantile * math.sqrt(errors.family.variance_of(margin, (one, other)))
                assert normal * 0.999 <= half[row, column] <= normal * 1.03


def test_a_family_without_axes_is_its_total() -> None:
    law = DiscreteLaplace(Fraction(3))
    errors = CellErrors((), (Measurement((), law),))
    assert errors.half_widths((), 0.05).shape == ()
    assert abs(float(errors.half_widths((), 0.05)) - law.half_width(0.05)) <= 1
