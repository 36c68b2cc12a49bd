"""Axes of a domain on axes of a picture."""

import numpy as np

from sfumato.charts import scales, style
from sfumato.domain.domain import Interval, grid_axis
from sfumato.domain.lattice import EdgesAxis, GridAxis, LabelAxis

DAY = grid_axis("at", Interval("2013-01-01T00:00", "2013-01-02T00:00", step=3600), 4)


def test_bins_of_an_axis_of_times_are_named_by_their_times():
    assert scales.cell_labels(DAY) == [
        "before 2013-01-01T06:00",
        "2013-01-01T06:00 to 2013-01-01T12:00",
        "2013-01-01T12:00 to 2013-01-01T18:00",
        "2013-01-01T18:00 and later",
    ]
    middle = scales.edge_labels(DAY)[1:-1]
    assert middle == ["2013-01-01T06:00", "2013-01-01T12:00", "2013-01-01T18:00"]


def test_times_lie_at_parts_of_a_day():
    assert np.diff(scales.positions_of(DAY)).tolist() == [0.25] * 4
    assert scales.edges_of(DAY) is None, "few bins stand beside their names"


def test_only_bins_of_equal_width_keep_their_scale():
    uneven = EdgesAxis("x", (0.0, 1.0, 10.0))
    assert scales.edges_of(uneven) is None
    assert scales.positions_of(uneven).tolist() == [0.0, 1.0, 10.0]
    assert scales.name_of(uneven) == "x (bins of unequal width)"


def test_an_axis_of_numbers_is_named_without_a_look_at_its_cells():
    """Steps far from 0 are uneven by rounding: nobody drew bins of unequal width."""
    axis = grid_axis("x", Interval(1e15, 1e15 + 8), 100)
    assert scales.name_of(axis) == "x (bins of unequal width)"
    _, ax = style.figure(300)
    scales.value_axis(ax.xaxis, axis)
    assert ax.get_xlabel() == "x"


def test_labels_have_no_positions():
    axis = LabelAxis("k", ("a", "b"))
    assert scales.positions_of(axis) is None
    assert scales.edge_labels(axis) == []
    assert scales.tick_labels(axis) == ["a", "b"]


def ticks(interval, cells, low, high):
    from matplotlib.figure import Figure

    ax = Figure(figsize=(7, 3)).add_subplot()
    scales.value_axis(ax.xaxis, grid_axis("at", interval, cells))
    ax.set_xlim(low, high)
    ax.figure.draw_without_rendering()
    return [label.get_text() for label in ax.get_xticklabels()]


def test_years_are_ticked_at_whole_numbers_and_without_separators():
    shown = ticks(Interval(1990, 2010, step=1), 20, 1990, 2010)
    assert "2000" in shown
    assert all(text.isdecimal() for text in shown), shown
    assert any("." in text for text in ticks(Interval(0, 2), 20, 0, 2))


def test_whole_numbers_that_have_a_bin_each_are_ticked_at_the_middle_of_their_bins():
    axis = GridAxis("absences", 0.0, 13.0, 13, snap=True, step=1.0)
    assert scales.positions_of(axis)[[0, -1]].tolist() == [-0.5, 12.5]
    assert scales.tick_labels(axis) == ["≤0", *map(str, range(1, 12)), "≥12"]
    assert scales.cell_labels(axis) == ["0 and below", *map(str, range(1, 12)), "12 and above"]
    _, ax = style.figure(300)
    scales.slots(ax.xaxis, axis, 20)
    assert ax.get_xticks().tolist() == list(range(13))
    # Two numbers to a slot: ticks are at the edges again.
    scales.slots(ax.xaxis, axis, 20, np.arange(0, 13, 2))
    assert [label.get_text() for label in ax.get_xticklabels()][:3] == ["…", "2", "4"]
    wide = GridAxis("age", -20.0, 20.0, 10, snap=True, step=1.0)
    assert scales.positions_of(wide)[0] == -20
    assert scales.cell_labels(wide)[:2] == ["−17 and below", "−16 to −13"]
