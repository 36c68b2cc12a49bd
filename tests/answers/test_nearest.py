"""Values go to the nearest of equally spaced points."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.answers.counts import NearestAxis

BOUNDS = [(0, 1), (-50, 150), (1e9, 1e9 + 7), (-1e-9, 9e99)]


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("cells", [2, 3, 2**16 + 1, 2**31 + 1])
def test_no_value_lies_further_than_half_a_step_from_its_point(
    bounds: tuple[float, float], cells: int
) -> None:
    lower, upper = bounds
    axis = NearestAxis("x", lower, upper, cells)
    values = np.random.default_rng(1).uniform(lower, upper, 5000)
    points = axis.points(axis.locate(values.copy()))
    step = (upper - lower) / (cells - 1)
    slack = 4 * np.spacing(max(abs(lower), abs(upper)))
    assert (np.abs(points - values) <= step / 2 + slack).all()


def test_bounds_are_points_and_values_beyond_them_count_as_these() -> None:
    axis = NearestAxis("x", -2.0, 2.0, 5)
    values = np.array([-np.inf, -3, -2, -1.51, -1.5, 0, 1.49, 1.5, 2, 9, np.inf, np.nan])
    assert axis.locate(values).tolist() == [0, 0, 0, 0, 1, 2, 3, 4, 4, 4, 4, -1]
    assert axis.points([0, 1, 4]).tolist() == [-2, -1, 2]
    assert axis.edges().tolist() == [-2, -1.5, -0.5, 0.5, 1.5, 2]
    assert axis.ends == (-2, 2)


def test_missing_values_count_as_what_is_stated() -> None:
    axis = NearestAxis("x", 0, 4, 5, missing=3)
    assert axis.locate(np.array([np.nan, 1.2])).tolist() == [3, 1]


def test_it_is_no_axis_of_equal_cells() -> None:
    from sfumato.domain.lattice import GridAxis

    assert NearestAxis("x", 0, 4, 5) != GridAxis("x", 0, 4, 5)
    assert not GridAxis("x", 0, 4, 10).refines(NearestAxis("x", 0, 4, 5))
    assert not NearestAxis("x", 0, 4, 10).refines(GridAxis("x", 0, 4, 5))
