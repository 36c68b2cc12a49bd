"""Released values: shapes, tables, files, and the cells in which their rows lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.random import PublicSeed


def test_shapes_frames_and_the_journey(publisher, tmp_path: Path):
    one = publisher.release(sf.Quantiles("x"), epsilon="1")
    two = publisher.release(sf.Quantiles(["x", "y"], at=[0.2, 0.8]), epsilon="1")
    by = publisher.release(sf.Quantiles("day", by="kind"), epsilon="1")
    every = publisher.release(
        sf.Quantiles(["x", "y"], at=[0.5], by="kind", method="tree"), epsilon="1"
    )
    assert [r.values.shape for r in (one, two, by, every)] == [(3,), (2, 2), (3, 3), (3, 2, 1)]
    assert two.to_frame().column_names == [
        "axis",
        "quantile",
        "value",
        "low",
        "high",
        "rank",
        "rank_error",
        "rows",
        "known",
        "cell_low",
        "cell_high",
    ]
    assert by.to_frame().column_names == [
        "kind",
        "quantile",
        "value",
        "low",
        "high",
        "rank",
        "rank_error",
        "rows",
        "known",
        "cell_low",
        "cell_high",
    ]
    assert str(by.to_frame()["value"].type) == "date32[day]"
    for release in (one, two, by, every):
        assert release.accuracy().shape == release.values.shape
        low, high = release.interval(simultaneous=True)
        assert (low <= high).all()
        assert release.ranks.shape == release.values.shape
        lowest, highest = release.rank_interval()
        # A label without rows has no rank.
        assert not (lowest > release.ranks).any()
        assert not (release.ranks > highest).any()
        assert sf.load(release.save(tmp_path / "r.json")) == release
        assert release.guarantee.private


@pytest.mark.parametrize("method", ["joint", "recursive", "tree"])
@pytest.mark.parametrize("upper", [4.0, 7.0, 10.0])
def test_the_rows_of_a_value_lie_in_its_cells(method, upper):
    """500 rows lie at a number that is no lattice point: its cells hold it."""
    question = sf.Quantiles("x", at=[0.25, 0.5, 0.75], method=method)
    lattice = question.needs(sf.Domain(x=sf.Interval(0, upper))).lattice
    rows = np.full(500, 3.0)
    cube = Cube.of_cells(lattice, lattice.axes[0].locate(rows)[:, None])
    for draw in range(5):
        release = question.answer(cube, sf.Unit(), sf.PureDP("5"), PublicSeed(f"{method} {draw}"))
        low, high = release.cells()
        assert low.shape == high.shape == release.values.shape
        assert (low <= release.values).all()
        assert (release.values <= high).all()
        assert ((low <= 3.0) & (high >= 3.0)).all()
        assert (high - low <= 2.01 * upper / lattice.shape[0]).all()


def test_the_cell_of_a_value_on_an_axis_with_a_step_is_the_value():
    for axis, widest in ((sf.Interval(0, 120, step=1), 0), (sf.Interval(0, 2**21, step=1), 1)):
        question = sf.Quantiles("x", at=[0.5])
        lattice = question.needs(sf.Domain(x=axis)).lattice
        cube = Cube.of_cells(lattice, lattice.axes[0].locate(np.full(500, 37.0))[:, None])
        release = question.answer(cube, sf.Unit(), sf.PureDP("5"), PublicSeed("steps"))
        low, high = release.cells()
        assert low[0] <= 37 <= high[0]
        assert high[0] - low[0] == widest


def test_the_cells_at_the_ends_of_the_axis_stay_within_it():
    question = sf.Quantiles(["x", "y"], at=[0.001, 0.999], by="kind")
    domain = sf.Domain(
        x=sf.Interval(0, 1),
        y=sf.Interval("2013-01-01", "2014-01-01"),
        kind=sf.Categories(["a", "b"]),
    )
    lattice = question.needs(domain).lattice
    cube = Cube.of_cells(lattice, np.zeros((0, 3), np.int64))
    release = question.answer(cube, sf.Unit(), sf.PureDP("1"), PublicSeed("ends"))
    low, high = release.cells()
    assert low.shape == release.values.shape
    assert (low[:, 0] >= 0).all()
    assert (high[:, 0] <= 1).all()
    assert (low[:, 1] == high[:, 1]).all()
