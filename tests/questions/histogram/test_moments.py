"""Statistics of a histogram: their intervals hold, and a bin of one step is that value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from questions.histogram.ages import AGES, CUBE, KINDS, LATTICE, QUESTION, RUNS
from sfumato.audit.runs import Scripted
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import EdgesAxis, GridAxis
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.histogram import statistics as moments
from sfumato.questions.histogram.table_noise import IndependentNoise
from sfumato.random import PublicSeed
from sfumato.random.bits import current
from support.statistics import covers

TRUTHS: dict[str, tuple[float, Callable[[sf.HistogramRelease], sf.Estimate]]] = {
    "mean": (float(AGES.mean()), lambda r: r.mean("age")),
    "median": (float(np.median(AGES)), lambda r: r.median("age")),
    "variance": (float(AGES.var()), lambda r: r.variance("age")),
    "herfindahl": (
        float((np.bincount(KINDS) ** 2).sum() / 4000**2),
        lambda r: r.herfindahl("kind"),
    ),
    "rate": (float((KINDS[AGES < 25] == 0).mean()), lambda r: r.rate(*_young_of_the_first_kind())),
    "total": (4000, lambda r: r.total()),
}


def _young_of_the_first_kind() -> tuple[np.ndarray, np.ndarray]:
    young = np.arange(20)[:, None] < 5
    return young & (np.arange(3) == 0), young & np.ones(3, bool)


@pytest.mark.parametrize("what", TRUTHS)
def test_intervals_hold(what: str, releases: list[sf.HistogramRelease]) -> None:
    """They hold at least as often as they say, but for chance; and they say something."""
    truth, ask = TRUTHS[what]
    found = [ask(release) for release in releases]
    assert covers(sum(bool(e.low <= truth <= e.high) for e in found), RUNS, 0.95)
    assert all(e.low <= e.value <= e.high for e in found)
    spread = {
        "mean": 10,
        "median": 15,
        "variance": 400,
        "herfindahl": 0.5,
        "rate": 0.4,
        "total": 1000,
    }
    assert np.median([e.high - e.low for e in found]) < spread[what]


def test_shares_hold_one_by_one_and_all_at_once(releases: list[sf.HistogramRelease]) -> None:
    truth = CUBE.counts.reshape(20, 3) / 4000
    some = releases[::3]
    each = [release.shares() for release in some]
    assert np.mean([((e.low <= truth) & (truth <= e.high)).mean() for e in each]) >= 0.95
    every = [release.shares(simultaneous=True) for release in some]
    assert sum(bool(((e.low <= truth) & (truth <= e.high)).all()) for e in every) >= 0.93 * len(
        every
    )
    assert all(abs(e.value.sum() - 1) < 0.5 for e in each)


def test_intervals_of_too_small_a_scale_do_not_hold() -> None:
    law = DiscreteLaplace(1 / sf.PureDP("0.05").epsilon)
    too_small = DiscreteLaplace(1 / sf.PureDP("0.2").epsilon)
    noise = PublicSeed("twin")
    held = 0
    for _ in range(100):
        part = 1000 + int(law.sample(4, noise).sum())
        rest = 3000 + int(law.sample(16, noise).sum())
        whole = np.ones(20, bool)
        pencil = IndependentNoise(too_small, (20,)).part_pencil(np.arange(20) < 4, whole, 0.05)
        _, low, high = moments.ratio(part, part + rest, pencil)
        held += low <= 0.25 <= high
    assert held < 80


def test_noiseless_statistics_are_right() -> None:
    edges = np.array([0.0, 1, 2, 3])
    noise = IndependentNoise(DiscreteLaplace(1 / sf.PureDP(1000).epsilon), (3,))
    bins = moments.BinnedCounts(edges[:-1], edges[1:], np.array([1, 2, 1]), noise)
    assert moments.mean(bins, 0.05)[0] == 1.5
    assert moments.mean(bins, 0.05)[1:] == pytest.approx((1.0, 2.0), abs=1e-6)
    assert moments.median(bins, 0.05) == (1.5, 1.0, 2.0)
    assert moments.variance(bins, 0.05)[0] == 0.5
    assert moments.herfindahl(np.array([1, 2, 1]), noise, 0, 0.05)[0] == pytest.approx(6 / 16)


def test_counts_that_say_nothing_give_intervals_that_say_so() -> None:
    empty = QUESTION.answer(
        Cube.of_cells(LATTICE, np.zeros((0, 2), np.int64)),
        sf.Unit(),
        sf.PureDP("0.01"),
        PublicSeed("empty"),
    )
    for ask in (empty.mean, empty.median):
        assert (ask("age").low, ask("age").high) == (0, 100)
    assert (empty.herfindahl("kind").low, empty.herfindahl("kind").high) == (1 / 3, 1)


# On an axis with a step.
DRAW = np.random.default_rng(11)
WHOLE_AGES = np.clip(DRAW.gamma(4, 10, 2_000).astype(int), 0, 120).astype(float)
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
        (WHOLE, WHOLE_AGES),
        (sf.Interval(-20, 101, step=1), WHOLE_AGES - 20),
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
    mean = released(WHOLE, WHOLE_AGES).mean()
    assert mean.value == pytest.approx(WHOLE_AGES.mean())
    assert mean.high - mean.low < 1e-3


@pytest.mark.parametrize(
    "bins", [{"bins": 10}, {"bins": [0, 18, 65, 121]}, {"width": 5}, {"bins": 200}], ids=str
)
def test_bins_of_several_steps_hold_the_truth_and_no_more(bins: dict[str, object]) -> None:
    """Without noise the interval is as wide as what binning hides."""
    release = released(WHOLE, WHOLE_AGES, **bins)
    found = release.lattice.axes[0]
    assert isinstance(found, GridAxis | EdgesAxis)
    low, high = found.extremes()
    mean = release.mean()
    assert mean.low <= WHOLE_AGES.mean() <= mean.high
    assert mean.high - mean.low <= (high - low).max() + 1e-3
    assert release.variance().low <= WHOLE_AGES.var() <= release.variance().high
    assert release.median().low <= np.median(WHOLE_AGES) <= release.median().high
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


def test_a_release_of_version_0_1_says_what_it_said() -> None:
    """It does not hold the step: its bins can hold all numbers between their edges."""
    axis = GridAxis("x", 0.0, 121.0, 121, snap=True)
    low, high = axis.extremes()
    assert (high - low == 1).all()
    assert low[3] == 3


@pytest.mark.deep
def test_coverage_of_moments(evidence: Callable[[str, object], None]) -> None:
    """A thousand releases each: the interval of each statistic holds as often as it says."""
    trials = 1_000
    truths = {
        "mean": WHOLE_AGES.mean(),
        "median": np.median(WHOLE_AGES),
        "variance": WHOLE_AGES.var(),
    }
    figures = {}
    for epsilon in ("0.1", "1"):
        for bins in (121, 10):
            question = sf.Histogram("x", bins=bins)
            lattice = question.needs(sf.Domain(x=WHOLE)).lattice
            axis = lattice.axes[0]
            assert isinstance(axis, GridAxis)
            cube = Cube.of_cells(lattice, axis.locate(WHOLE_AGES.copy())[:, None])
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
    counts = np.bincount(WHOLE_AGES.astype(int), minlength=121) * 5_000
    release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP("1"), PublicSeed("many"))
    mean = release.mean()
    assert mean.low <= WHOLE_AGES.mean() <= mean.high
    assert mean.high - mean.low < 0.01
    rate = release.rate(np.arange(121) < 18)
    assert rate.high - rate.low < 1e-4


@pytest.mark.parametrize(
    ("labels", "false", "true"),
    [([False, True], 0, 1), ([True, False], 1, 0), (["FALSE", "True"], 0, 1)],
    ids=str,
)
def test_logicals_have_a_mean_a_median_and_a_variance(
    labels: list[object], false: int, true: int
) -> None:
    """As in PSIlence: false is 0 and true is 1; unlisted and missing values are left out."""
    domain = sf.Domain(ok=sf.Categories(labels, missing="unknown"))
    question = sf.Histogram("ok")
    counts = np.zeros(3, np.int64)
    counts[[false, true, 2]] = 700, 300, 5000
    lattice = question.needs(domain).lattice
    cube = Cube.of_cells(lattice, np.repeat(np.arange(3), counts)[:, None])
    release = question.answer(cube, sf.Unit(), sf.PureDP(1), Scripted())
    assert release.mean().value == pytest.approx(0.3)
    assert release.mean("ok").low < 0.3 < release.mean("ok").high
    assert release.median().value == 0
    assert release.variance().value == pytest.approx(0.21)
    even = np.zeros(3, np.int64)
    even[[false, true]] = 499, 501
    cube = Cube.of_cells(lattice, np.repeat(np.arange(3), even)[:, None])
    median = question.answer(cube, sf.Unit(), sf.PureDP(1), Scripted()).median()
    assert (median.value, median.low, median.high) == (1, 0, 1)


def test_other_labels_have_no_mean() -> None:
    domain = sf.Domain(ok=sf.Categories(["no", "yes"]))
    question = sf.Histogram("ok")
    cube = Cube.of_cells(question.needs(domain).lattice, np.array([[0], [1]]))
    release = question.answer(cube, sf.Unit(), sf.PureDP(1), Scripted())
    with pytest.raises(sf.UsageError, match="no order"):
        release.mean()


def beyond(law: DiscreteLaplace, weights: np.ndarray, half: float) -> float:
    """P(abs(S) > half) for S = sum w_i Z_i with whole weights, by its law on a long circle."""
    size = 2**18
    assert 4 * half < size
    angles = np.arange(size // 2 + 1)
    factors = 1 + law.variance * (1 - np.cos(2 * np.pi * np.arange(size) / size))
    transform = np.ones(len(angles))
    for weight, times in zip(*np.unique(np.abs(weights), return_counts=True), strict=True):
        transform /= factors[int(weight) * angles % size] ** times
    masses = np.fft.irfft(transform, size)
    distance = np.minimum(np.arange(size), size - np.arange(size))
    return float(masses[distance > half].sum())


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("at", [0, 40, 60])
@pytest.mark.parametrize("power", [1, 2])
def test_half_widths_are_nearly_the_least_ones(times: int, at: int, power: int) -> None:
    """One three two-hundredths narrower would miss more often than it says, by the exact law."""
    law = DiscreteLaplace(1 / sf.PureDP("0.5").epsilon)
    noise = IndependentNoise(law, (121 if power == 1 else 31, times))
    weights = np.arange(float(noise.shape[0])) ** power - at
    half = noise.values_half_width(0, weights, 0.05)
    drawn = np.repeat(weights, times)
    assert beyond(law, drawn, half) <= 0.05
    assert beyond(law, drawn, half * 0.985) > 0.05


def test_half_widths_of_many_different_weights_hold() -> None:
    """Most of these weights are rounded; what is left of them is bounded."""
    law = DiscreteLaplace(1 / sf.PureDP("2").epsilon)
    weights = np.arange(2000.0) - 700
    half = IndependentNoise(law, (2000,)).values_half_width(0, weights, 0.05)
    chernoff = IndependentNoise(law, (2000,)).values_pencil(0, np.arange(2000.0), 0.05)
    assert beyond(law, weights, half) <= 0.05
    assert beyond(law, weights, half * 0.97) > 0.05
    assert half < 0.8 * float(chernoff(np.array([700.0]))[0])
