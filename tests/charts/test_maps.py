"""Maps show density where something is shown to be, and hatching where nothing is."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from sfumato.charts import maps, style
from sfumato.domain import Domain, Interval
from sfumato.lattice import GridAxis, Lattice
from sfumato.privacy.unit import Unit


def test_shades_are_density_where_the_interval_lies_above_zero(partition):
    release = partition(("delay", "hour"), cells=144)
    shown = maps.draw(release).images[0].get_array()
    counts, low = release.counts.reshape(12, 12).T, release.interval()[0].reshape(12, 12).T
    assert np.array_equal(np.ma.getmaskarray(shown), low <= 0)
    area = (release.upper - release.lower).prod(axis=1).reshape(12, 12).T
    assert np.allclose(shown.compressed(), (counts / area)[low > 0])


def test_longitude_and_latitude_are_drawn_to_scale_whatever_their_order(partition):
    for axes in (("lon", "lat"), ("lat", "lon")):
        ax = maps.draw(partition(axes, cells=100))
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat")
        assert ax.get_aspect() == pytest.approx(1 / math.cos(math.radians(40.725)))
        assert "rows per km²" in style.svg(ax.figure, "t", "d")


def test_area_on_the_sphere_adds_up_to_the_earth():
    lon, lat = np.meshgrid(np.arange(-180.0, 180, 30), np.arange(-90.0, 90, 30))
    corners = [(lon.ravel(), lon.ravel() + 30), (lat.ravel(), lat.ravel() + 30)]
    assert maps._area(corners, geographic=True).sum() == pytest.approx(510.1e6, rel=2e-3)


def test_the_hatched_ground_has_a_legend_entry(partition):
    ax = maps.draw(partition(cells=100))
    assert ax.get_legend().get_texts()[0].get_text() == "not distinguishable from 0 (95%)"
    assert ax.patch.get_hatch()


def test_a_map_of_ten_thousand_cells_is_compact(partition):
    text = style.svg(partition(cells=10_000).plot().figure, "t", "d")
    assert 5_000 < len(text) < 300_000


def test_a_map_of_a_million_cells_is_merged_and_compact(partition):
    ax = partition(cells=1_000_000).plot()
    assert max(ax.images[0].get_array().shape) <= maps.MOST_SLOTS
    assert "drawn as their mean" in ax.get_legend().get_title().get_text()
    assert len(style.svg(ax.figure, "t", "d")) < 300_000


def test_unevenly_spaced_grids_are_drawn_where_their_edges_lie(partition):
    release = partition(
        ("lon", "lat"),
        cells=9,
        domain=Domain(lon=Interval(0, 10, step=1), lat=Interval(0, 10, step=1)),
    )
    assert list(release.cover.edges[0]) == [0, 3, 6, 10]
    shown = maps.draw(release).images[0].get_array()
    assert shown.shape == (maps.PIXELS, maps.PIXELS)
    first_column = shown[:, 0].filled(0)
    assert len(np.unique(first_column[:179])) == len(np.unique(first_column[181:359])) == 1


def test_further_axes_are_added_up(partition):
    release = partition(("delay", "hour", "day"), cells=1000, rows=50_000)
    ax = maps.draw(release)
    assert "Added up over day." in ax.get_legend().get_title().get_text()
    counts = release.counts.reshape(10, 10, 10).sum(axis=2)
    half = release.law.sum_half_width(np.array([10.0]), 0.05)[0]
    seen = ~np.ma.getmaskarray(ax.images[0].get_array())
    middles = np.arange(30, maps.PIXELS, maps.PIXELS // 10)
    assert np.array_equal(seen[np.ix_(middles, middles)], (counts.T - half) > 0)


def _boxes():
    """Three boxes of different sizes that cover the unit square, without a law in common."""
    counts, half = np.array([100, 2, 50]), np.array([5, 5, 9])
    return SimpleNamespace(
        lattice=Lattice((GridAxis("x", 0.0, 1.0, 16), GridAxis("y", 0.0, 1.0, 16))),
        lower=np.array([[0.0, 0], [0.5, 0], [0.5, 0.25]]),
        upper=np.array([[0.5, 1], [1, 0.25], [1, 1]]),
        counts=counts,
        guarantee=SimpleNamespace(unit=Unit()),
        accuracy=lambda confidence="0.95", simultaneous=False: half * (2 if simultaneous else 1),
        interval=lambda confidence="0.95", simultaneous=False: (counts - half, counts + half),
    )


def test_boxes_of_any_size_are_painted_without_gaps():
    shown = maps.draw(_boxes()).images[0].get_array()
    p = maps.PIXELS
    assert np.all(shown[:, : p // 2] == 200)
    assert np.ma.getmaskarray(shown)[: p // 4, p // 2 :].all()
    assert np.allclose(shown[p // 4 :, p // 2 :], 50 / 0.375)


def test_steps_along_one_axis_hold_the_intervals(partition):
    release = partition("delay", cells=40, epsilon="0.1")
    ax = release.plot()
    for label, simultaneous in (("_individual", False), ("_simultaneous", True)):
        band = next(
            p for p in ax.patches if isinstance(p, StepPatch) and p.get_label() == label
        ).get_data()
        low, high = release.interval("0.95", simultaneous)
        assert np.array_equal(band.baseline, low)
        assert np.array_equal(band.values, high)


def test_many_steps_are_means_and_dates_are_dates(partition):
    domain = Domain(t=Interval("2013-01-01T00:00", "2014-01-01T00:00"))
    ax = partition("t", cells=5000, domain=domain).plot()
    assert "means of 13 neighbours" in ax.get_legend().get_title().get_text()
    assert ">2013<" in style.svg(ax.figure, "t", "d")


def test_a_map_of_nothing_is_hatched_all_over(partition):
    ax = maps.draw(partition(cells=400, rows=0))
    assert np.ma.getmaskarray(ax.images[0].get_array()).mean() > 0.85


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_nothing_is_clipped(partition, width):
    with style.sized(width), style.house():
        fig = partition(cells=400).plot().figure
        fig.draw_without_rendering()
        box = fig.get_tightbbox()
    assert box.x0 >= -0.01
    assert box.x1 <= fig.get_figwidth() + 0.01
    assert box.y1 <= fig.get_figheight() + 0.01


def test_svg_is_deterministic(partition):
    assert style.svg(partition(cells=100).plot().figure, "t", "d") == style.svg(
        partition(cells=100).plot().figure, "t", "d"
    )
