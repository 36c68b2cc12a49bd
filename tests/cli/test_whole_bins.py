"""Bins of whole numbers that a plan begins with."""

from __future__ import annotations

import tomllib

import pytest

from sfumato.cli.init import MOST_BINS, even_bins, whole_axis, whole_bins, whole_comment
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.domain.lattice import EdgesAxis, GridAxis
from sfumato.questions.histogram.question import Histogram


@pytest.mark.parametrize(
    "axis",
    [
        Interval(0.5, 12),
        Interval(0, 12, step=2),
        Interval("2026-01-01", "2026-02-01"),
        Interval(0, 2**52),
        Categories(["a"]),
    ],
)
def test_other_axes_stay_as_they_are(axis) -> None:
    assert whole_axis(axis) == axis
    assert whole_bins(axis) == ""


def test_each_number_between_the_bounds_has_a_cell() -> None:
    assert whole_axis(Interval(-3, 12, missing=True)) == Interval(-3, 13, step=1, missing=True)


@pytest.mark.parametrize(("low", "high"), [(0, 100), (0, 120), (1, 1000), (18, 100), (1, 365)])
def test_bins_hold_equally_many_numbers_but_for_those_at_the_ends(low: int, high: int) -> None:
    axis = whole_axis(Interval(low, high))
    given = tomllib.loads(whole_bins(axis))
    (bins,) = Histogram("x", **given).needs(Domain(x=axis)).lattice.axes
    assert isinstance(bins, EdgesAxis | GridAxis)
    edges = bins.edges()
    assert (edges[0], edges[-1]) == (low, high + 1)
    widths = set((edges[2:-1] - edges[1:-2]).tolist())
    assert len(widths) == 1
    (width,) = widths
    assert float(width).is_integer()
    assert width / 2 <= min(edges[1] - edges[0], edges[-1] - edges[-2])
    assert bins.size <= MOST_BINS + 1
    assert all(name[0].isdigit() for name in bins.cell_names())


def test_few_numbers_have_a_bin_each() -> None:
    assert whole_bins(Interval(0, 24, step=1)) == ""
    assert whole_bins(Interval(0, 100, step=1)).startswith("width = 5 ")


def test_a_plan_says_which_numbers_an_axis_has() -> None:
    stepped = Interval(0, 12, step=1)
    assert "The whole numbers 0 to 11; those beyond" in whole_comment(stepped, "unknown")
    assert "upper = 13, step = 1" in whole_comment(Interval(0, 12), "unknown")
    assert whole_comment(Interval(0, 12), "number") == ""
    assert whole_comment(Interval(0.5, 12), "unknown") == ""


@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [(0, 12, 12), (-3, 12, 15), (1, 7, 6), (15, 100, 17), (0, 365, 5), (0, 37, 37), (0, 3, 3)],
)
def test_bins_between_whole_bounds_have_a_whole_width(low: int, high: int, bins: int) -> None:
    assert tomllib.loads(even_bins(Interval(low, high))) == {"bins": bins}
    assert (high - low) % bins == 0


@pytest.mark.parametrize(
    "axis",
    [Interval(0, 120), Interval(0, 101), Interval(0.5, 12), Interval(0, 12, step=1)],
)
def test_bins_that_need_no_other_number_have_none(axis: Interval) -> None:
    assert even_bins(axis) == ""
