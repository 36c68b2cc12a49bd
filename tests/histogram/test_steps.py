"""Statistics of a histogram on an axis with a step: a bin of one step is that value, not the middle between two of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.cube import Cube
from sfumato.domain import EdgesAxis, GridAxis
from sfumato.random import PublicSeed
from sfumato.random.bits import current
from support.statistics import covers

DRAW = np.random.default_rng(11)
AGES = np.clip(DRAW.gamma(4, 10, 2_000).astype(int), 0, 120).astype(float)
WHOLE = sf.Interval(0, 121, step=1)


def released(
    axis: sf.Interval, values: np.ndarray, epsilon: str = "1000000", **bins: object
) -> sf.HistogramRelease:
    """A histogram of the values; with the usual epsilon its noise is 0."""
    question = sf.Histogram("x", **bins)  # type: ignore[arg-type]
    lattice = question.needs(sf.Domain(x=axis)).lattice
    found = lattice.axes[0]
    assert isinstance(found, GridAxis | EdgesAxis)
    cube = Cube.of_cells(lattice, found.locate(values.copy())[:, None])
    return question.answer(cube, sf.Unit(), sf.PureDP(epsilon), PublicSeed("steps"))


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        (WHOLE, AGES),
        (sf.Interval(-20, 101, step=1), AGES - 20),
        (sf.Interval(0, 1, step=0.01), np.array([0.57, 0.29, 0.0, 0.99, 0.07, 0.57])),
        (sf.Interval("2013-01-01", "2014-01-01"), 15706 + np.array([0.0, 3, 3, 364])),
        (
            sf.Interval("2013-01-01T00:00", "2013-01-02T00:00", step=3600),
            15706 * 86400e6 + np.array([0.0, 5, 23, 5, 6]) * 3600e6,
        ),
    ],
    ids=["ages", "shifted", "cents", "days", "hours"],
)
def test_statistics_without_noise_are_exact(axis: sf.Interval, values: np.ndarray) -> None:
    release = released(axis, values, bins=axis.natural_cells)
    for estimate, truth in (
        (release.mean(), values.mean()),
        (release.median(), np.sort(values)[(len(values) - 1) // 2]),
        (release.variance(), values.var()),
    ):
        near = pytest.approx(truth, rel=1e-9, abs=1e-9)
        assert estimate.value == near
        # The variance of a large number such as a time is a small difference of large squares.
        scale = max(1.0, abs(truth))
        assert estimate.low - 1e-6 * scale <= truth <= estimate.high + 1e-6 * scale


def test_the_mean_of_ages_has_no_slack() -> None:
    mean = released(WHOLE, AGES).mean()
    assert mean.value == pytest.approx(AGES.mean())
    assert mean.high - mean.low < 1e-3


@pytest.mark.parametrize(
    "bins", [{"bins": 10}, {"bins": [0, 18, 65, 121]}, {"width": 5}, {"bins": 200}], ids=str
)
def test_bins_of_several_steps_hold_the_truth_and_no_more(bins: dict[str, object]) -> None:
    """The interval without noise is as wide as what binning hides: both ends are means of tables with these counts."""
    release = released(WHOLE, AGES, **bins)
    found = release.lattice.axes[0]
    assert isinstance(found, GridAxis | EdgesAxis)
    low, high = found.extremes()
    mean = release.mean()
    assert mean.low <= AGES.mean() <= mean.high
    assert mean.high - mean.low <= (high - low).max() + 1e-3
    assert release.variance().low <= AGES.var() <= release.variance().high
    assert release.median().low <= np.median(AGES) <= release.median().high
    assert release.median().value == int(release.median().value)


@given(
    lower=st.sampled_from([0, -7, 0.5, 100, -0.3]),
    step=st.sampled_from([1, 0.01, 0.25, 0.1, 3]),
    steps=st.integers(2, 400),
    bins=st.integers(2, 450),
    edges=st.lists(st.integers(0, 400), min_size=1, max_size=6, unique=True),
)
def test_every_step_lies_between_the_extremes_of_its_cell(
    lower: float, step: float, steps: int, bins: int, edges: list[int]
) -> None:
    """And the extremes are steps of the cell, so they are as narrow as can be."""
    upper = float(round(lower + steps * step, 6))
    axis = sf.Interval(lower, upper, step=step)
    values = np.array([float(f"{lower + i * step:.6f}") for i in range(steps)])
    inner = sorted({values[i] for i in edges if 0 < i < steps})
    questions = [sf.Histogram("x", bins=bins)]
    if inner:
        questions.append(sf.Histogram("x", bins=[float(lower), *inner, upper]))
    for question in questions:
        found = question.needs(sf.Domain(x=axis)).lattice.axes[0]
        assert isinstance(found, GridAxis | EdgesAxis)
        low, high = found.extremes()
        cells = found.locate(values.copy())
        assert (np.abs(np.clip(values, low[cells], high[cells]) - values) < 1e-9).all()
        for cell in np.unique(cells):
            held = values[cells == cell]
            assert (low[cell], high[cell]) == pytest.approx((held[0], held[-1]), abs=1e-9)


def test_bins_by_records_know_the_step() -> None:
    question = sf.Histogram("x", records=200, rows=2_000)
    domain = sf.Domain(x=WHOLE)
    fine = question.needs(domain).lattice
    axis = fine.axes[0]
    assert isinstance(axis, GridAxis)
    release = question.answer(
        Cube.of_cells(fine, axis.locate(AGES.copy())[:, None]),
        sf.Unit(),
        sf.PureDP("50"),
        PublicSeed("r"),
    )
    cut = release.lattice.axes[0]
    assert isinstance(cut, EdgesAxis)
    assert cut.extremes()[1].tolist() == [edge - 1 for edge in cut.bounds[1:]]


def test_a_release_of_version_0_1_says_what_it_said() -> None:
    """It does not hold the step: its bins can hold all numbers between their edges."""
    axis = GridAxis("x", 0.0, 121.0, 121, snap=True)
    low, high = axis.extremes()
    assert (high - low == 1).all()
    assert low[3] == 3


@pytest.mark.deep
def test_coverage_of_moments(evidence: Callable[[str, object], None]) -> None:
    """Ten thousand releases each: the interval of each statistic holds as often as it says."""
    trials = 10_000
    truths = {"mean": AGES.mean(), "median": np.median(AGES), "variance": AGES.var()}
    figures = {}
    for epsilon in ("0.1", "1"):
        for bins in (121, 10):
            question = sf.Histogram("x", bins=bins)
            lattice = question.needs(sf.Domain(x=WHOLE)).lattice
            axis = lattice.axes[0]
            assert isinstance(axis, GridAxis)
            cube = Cube.of_cells(lattice, axis.locate(AGES.copy())[:, None])
            held = dict.fromkeys(truths, 0)
            off = dict.fromkeys(truths, 0.0)
            for _ in range(trials):
                release = question.answer(cube, sf.Unit(), sf.PureDP(epsilon), current())
                for name, truth in truths.items():
                    estimate = getattr(release, name)()
                    held[name] += bool(estimate.low <= truth <= estimate.high)
                    off[name] += (estimate.value - truth) / trials
            for count in held.values():
                assert covers(count, trials, 0.95)
            figures[f"epsilon {epsilon}, {bins} bins"] = {
                name: {"coverage": held[name] / trials, "mean error": round(off[name], 4)}
                for name in truths
            }
    evidence("coverage_of_moments", figures)


def test_an_interval_narrower_than_the_grid_is_not_the_whole_axis() -> None:
    """Ten million rows: the search for the interval's ends begins at the estimate itself."""
    question = sf.Histogram("x", bins=121)
    lattice = question.needs(sf.Domain(x=WHOLE)).lattice
    counts = np.bincount(AGES.astype(int), minlength=121) * 5_000
    release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP("1"), PublicSeed("many"))
    mean = release.mean()
    assert mean.low <= AGES.mean() <= mean.high
    assert mean.high - mean.low < 0.01
    rate = release.rate(np.arange(121) < 18)
    assert rate.high - rate.low < 1e-4
