"""Intervals of values: they hold the true quantiles as often as stated, and none is too wide."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.mechanisms.noise import DiscreteLaplace, add_noise
from sfumato.mechanisms.noise_sums import contrast_half_width, sum_masses
from sfumato.questions.quantiles.ranks import GapNoise, number_short
from sfumato.random import PublicSeed
from support.quantile_data import METHODS

DOMAIN = sf.Domain(x=sf.Interval(0, 64, step=1), y=sf.Interval(0, 64))
HALF = Fraction(1, 2)
DEFINITIONS = [
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear"),
    *("median_unbiased", "normal_unbiased"),
]
SHAPES = {
    "constant": np.full(300, 37.0),
    "ties": np.repeat([3.0, 20.0, 21.0, 50.0], [40, 400, 45, 15]),
    "spikes at the bounds": np.repeat([0.0, 31.0, 64.0], [200, 7, 200]),
    "skewed": np.floor(np.geomspace(1, 64, 500)),
    "five": np.array([3.0, 20, 21, 40, 63]),
    "beside a gap": np.repeat([10.0, 50.0], [250, 250]),
}


def answers(question, rows, draws, seed, cost="1"):
    lattice = question.needs(DOMAIN).lattice
    cube = Cube.of_cells(lattice, lattice.axes[0].locate(rows)[:, None])
    bits = PublicSeed(seed)
    for _ in range(draws):
        yield question.answer(cube, sf.Unit(), sf.PureDP(cost), bits)


def true_quantiles(rows, at):
    """The least and the largest number that some usual definition calls the quantile."""
    defined = [np.quantile(rows, at, method=definition) for definition in DEFINITIONS]
    return np.min(defined, axis=0), np.max(defined, axis=0)


def cases():
    """Each shape, method and axis; what takes seconds and looks at the same code is deep.

    Not at all: a tree over the 2^20 cells of an axis without a step.
    """
    quick = {"x": {"ties", "five"}, "y": {"beside a gap"}}
    for shape, method, axis in itertools.product(SHAPES, METHODS, "xy"):
        is_deep = method == "joint" and shape not in quick[axis]
        if (method, axis) != ("tree", "y"):
            marks = [pytest.mark.deep] if is_deep else []
            yield pytest.param(shape, method, axis, marks=marks)


@pytest.mark.parametrize(("shape", "method", "axis"), list(cases()))
def test_they_hold_the_true_quantiles(shape, method, axis):
    rows = SHAPES[shape]
    question = sf.Quantiles(axis, at=[0.1, 0.4, 0.5, 0.6, 0.9], method=method)
    least, largest = true_quantiles(rows, [float(q) for q in question.at])
    alone = []
    together = []
    for release in answers(question, rows, 40, f"{shape} {method} {axis}"):
        low, high = release.interval("0.8")
        alone.append((low <= least) & (largest <= high))
        low, high = release.interval("0.8", simultaneous=True)
        together.append(((low <= least) & (largest <= high)).all())
    # The bits are fixed: luck decides nothing. 24 of 40 is 3 standard deviations below 0.8.
    assert np.mean(alone, axis=0).min() >= 24 / 40
    assert np.mean(together) >= 24 / 40


@pytest.mark.parametrize("q", [HALF, Fraction(1, 10), Fraction(9, 10)], ids=str)
@pytest.mark.parametrize("below", [1, 3])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_an_end_is_wrong_as_seldom_as_stated_and_hardly_less(alpha, below, q):
    """The exact probability, where just one row too many lies below a value.

    With two rows less of half-width it would be too large. One of them is the row that all
    definitions of a quantile differ by.
    """
    law = DiscreteLaplace(Fraction(5))
    counts = 4
    x = sum_masses(law, below, 1e-9)
    y = sum_masses(law, counts - below, 1e-9)
    at_x = np.arange(len(x)) - len(x) // 2
    at_y = np.arange(len(y)) - len(y) // 2
    moved = float(1 - q) * at_x[:, None] - float(q) * at_y
    stated_of = partial(
        number_short, GapNoise(law), np.array([below]), counts=counts, q=q, alpha=alpha
    )
    half = contrast_half_width(law, below, counts - below, q, alpha)
    # What is asked for is exactly the number of rows below the value: it is above the quantile.
    spare = -1 - moved
    wrong = spare >= half
    sample = np.linspace(spare.min(), spare.max(), 50)
    assert [stated_of(np.array([rows])) for rows in sample] == list(sample >= half)
    masses = x[:, None] * y
    assert masses[wrong].sum() <= alpha / 2
    assert masses[spare >= half - 2].sum() > alpha / 2


def test_the_first_doubtful_value_ends_the_search():
    """Nine values of one rank: if any of them could be the end, too many ends would be wrong."""
    law = DiscreteLaplace(Fraction(5))
    values = 9
    draws = 6_000
    noise = add_noise(np.zeros((draws, values + 1), np.int64), law, PublicSeed("search"))
    offsets = np.cumsum(noise, axis=1)[:, :-1] - noise.sum(axis=1)[:, None] / 2
    below = np.arange(1, values + 1)
    short = partial(number_short, GapNoise(law), below, counts=values + 1, q=HALF, alpha=0.2)
    stated = np.mean([short(spare) > 0 for spare in -1 - offsets])
    halves = [contrast_half_width(law, j, values + 1 - j, HALF, 0.2) for j in below.tolist()]
    careless = (-1 - offsets >= np.array(halves)).any(axis=1).mean()
    # 0.1 may be wrong. 0.024 is 6.2 standard deviations: a false alarm has a chance below 1e-9.
    assert stated < 0.1 + 0.024
    assert careless > 0.1 + 0.024


def test_a_constant_column_has_an_interval_of_one_value():
    question = sf.Quantiles("x", at=[0.25, 0.5, 0.75])
    for release in answers(question, np.full(5_000, 37.0), 5, "constant"):
        low, high = release.interval()
        assert (release.values == 37).all()
        assert (low[1], high[1]) == (37, 37)
        assert (low[0], high[2]) == (0, 64)


def test_one_value_is_bounded_by_the_axis_and_says_so():
    """One median says nothing of where other rows lie, even if all of them are equal."""
    (release,) = answers(sf.Quantiles("x", at=[0.5]), SHAPES["constant"], 1, "one")
    low, high = release.interval()
    assert (low[0], high[0]) == (0, 64)
    assert "The interval is the whole axis" in " ".join(release.facts)
    (release,) = answers(sf.Quantiles("x"), SHAPES["skewed"], 1, "more", "5")
    assert "2 of these 6 ends" in " ".join(release.facts)


def test_without_rows_nothing_is_known():
    rows = np.zeros(0)
    for release in answers(sf.Quantiles("y"), rows, 5, "none"):
        low, high = release.interval("0.999999")
        assert (low == 0).all()
        assert (high == 64).all()


def test_dates_and_several_axes_have_intervals_in_their_own_units():
    domain = sf.Domain(day=sf.Interval("2013-01-01", "2014-01-01"), kind=sf.Categories(["a", "b"]))
    question = sf.Quantiles("day", by="kind")
    lattice = question.needs(domain).lattice
    cells = np.stack([np.repeat([0, 1], 400), np.tile(np.arange(100, 300), 4)], axis=1)
    cube = Cube.of_cells(lattice, cells)
    release = question.answer(cube, sf.Unit(), sf.PureDP("4"), PublicSeed("dates"))
    frame = release.to_frame()
    assert frame.column_names[1:5] == ["quantile", "value", "low", "high"]
    assert frame.column_names[-2:] == ["cell_low", "cell_high"]
    assert str(frame["low"].type) == str(frame["value"].type) == "date32[day]"
    assert release.kind_of_column("low") == "value"
    low, high = release.interval()
    assert low.shape == release.values.shape == (2, 3)
    assert (low[:, 1] > lattice.axes[1].lower).all()
    assert (high[:, 1] < lattice.axes[1].upper).all()


def test_ranks_have_the_digits_that_their_error_leaves_to_them():
    (release,) = answers(sf.Quantiles("x"), SHAPES["skewed"], 1, "digits", "5")
    table = release.to_frame()
    shown = release.in_digits(table)
    exact = table["rank"].to_pylist()
    assert shown["rank"].to_pylist() == [round(rank, 4) for rank in exact] != exact
    assert shown["rank_error"].to_pylist() == table["rank_error"].to_pylist()
