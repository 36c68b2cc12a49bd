"""A value's number of steps lies between the knots of its segment, however coarse doubles are."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.lattice import GridAxis
from sfumato.questions.aggregates.encoding import opening, segment_axis, value_encoding
from sfumato.questions.aggregates.values import Basis

AXES = {
    "unit": sf.Interval(0, 1),
    "wide": sf.Interval(-1e30, 1e100),
    "cents": sf.Interval(0, 10_000, step=0.01),
    "thirds": sf.Interval(0.1, 0.1 + 1e-9),
    "doubles coarser than steps": sf.Interval(2.0**60, 2.0**60 + 2.0**12),
}


def hats_of(interval: sf.Interval) -> tuple[GridAxis, Basis]:
    encoding = value_encoding("a mean", "x", interval, "hats")
    return encoding.summed.axis, encoding.basis


@pytest.mark.parametrize("interval", AXES.values(), ids=AXES)
def test_steps_lie_between_the_knots_of_their_segment(interval: sf.Interval) -> None:
    axis, basis = hats_of(interval)
    segments = segment_axis(axis, basis.knots)
    assert segments.size == basis.size - 1
    edges = segments.edges()
    near = [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)]
    lower, upper = axis.ends
    spread = lower + (upper - lower) * np.geomspace(1e-12, 1.1, 4000)
    values = np.concatenate([*near, spread, [lower, upper, -np.inf, np.inf]])
    steps = axis.locate(values.copy())
    found = segments.locate(values)
    assert (basis.knots[found] <= steps).all()
    assert (steps <= basis.knots[found + 1]).all()


@pytest.mark.parametrize("interval", AXES.values(), ids=AXES)
def test_an_opening_parts_the_values(interval: sf.Interval) -> None:
    axis, basis = hats_of(interval)
    for cell in (1, 2, 7, basis.points // 3, basis.points - 1):
        edge = opening(axis, cell)
        below, at = axis.locate(np.array([np.nextafter(edge, -np.inf), edge]))
        assert below <= cell <= at


def test_missing_values_are_counted_where_the_axis_says() -> None:
    axis, basis = hats_of(sf.Interval(0, 8, missing=3))
    segments = segment_axis(axis, basis.knots)
    missing = np.array([np.nan, 3.0])
    assert len(set(segments.locate(missing.copy()).tolist())) == 1
    assert len(set(axis.locate(missing.copy()).tolist())) == 1
    dropped, _ = hats_of(sf.Interval(0, 8))
    assert segment_axis(dropped, basis.knots).locate(missing).tolist()[0] < 0
