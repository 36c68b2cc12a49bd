"""Maps show density where something is shown to be, and hatching where nothing is."""

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from matplotlib.patches import StepPatch

from sfumato.answers.captions import Captions
from sfumato.charts import maps, style
from sfumato.charts import maps as shading
from sfumato.domain.domain import Domain, Interval
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.privacy.unit import Unit


def test_a_clear_cell_is_shaded_with_its_density(partition):
    """Where all cells stand out from the noise, each has its own."""
    domain = Domain(a=Interval(0, 1), b=Interval(0, 1))
    release = partition(("a", "b"), cells=16, rows=50_000, domain=domain)
    release = msgspec.structs.replace(release, noisy=release.noisy + 500)
    shown = maps.draw(release).images[0].get_array()
    area = (release.upper - release.lower).prod(axis=1)
    assert np.allclose(shown, (release.counts / area).reshape(4, 4).T)


def test_longitude_and_latitude_are_drawn_to_scale_whatever_their_order(partition):
    for axes in (("lon", "lat"), ("lat", "lon")):
        ax = maps.draw(partition(axes, cells=100))
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("lon", "lat")
        assert ax.get_aspect() == pytest.approx(1 / math.cos(math.radians(40.725)))
        assert "rows per km²" in style.svg(ax.figure, "t", "d")


@pytest.mark.parametrize(
    ("width", "unit"),
    [(0.5, "rows per km²"), (10, "rows per 100 km²"), (90, "rows per 10,000 km²")],
)
def test_maps_of_one_place_count_rows_in_one_area_however_many_there_are(partition, width, unit):
    domain = Domain(lon=Interval(0, width), lat=Interval(0, width))
    for rows in (50, 50_000):
        ax = maps.draw(partition(("lon", "lat"), cells=16, rows=rows, domain=domain))
        assert f">{unit}<" in style.svg(ax.figure, "t", "d")


def test_the_ground_has_a_legend_entry(partition):
    """It is hatched, but on a map of the earth, where it is mostly sea."""
    for axes, hatched in ((("delay", "hour"), True), (("lon", "lat"), False)):
        ax = maps.draw(partition(axes, cells=100))
        (key,) = ax.get_legend().get_texts()
        assert key.get_text().endswith("not distinguishable from 0 (95%)")
        assert bool(ax.patch.get_hatch()) == hatched


def _of_class(ax, gid):
    return [artist for artist in ax.get_children() if str(artist.get_gid()).startswith(gid)]


def test_a_map_of_the_earth_has_coastlines_and_a_scale_bar(partition):
    ax = maps.draw(partition(cells=100))
    (coast,) = _of_class(ax, "coast")
    assert len(coast.get_path()) > 20
    assert ax.get_xlim() == pytest.approx((-74.3, -73.6))
    assert ax.get_ylim() == pytest.approx((40.5, 40.95))
    assert [text.get_text() for text in _of_class(ax, "scale-text")] == ["10 km"]
    (bar,) = _of_class(ax, "scale-bar")
    share = np.ptp(bar.get_xdata()) * 0.7
    assert share == pytest.approx(10 / (111.195 * math.cos(math.radians(40.725))))
    note = ax.get_legend().get_title().get_text()
    assert "Coastlines are rough" in " ".join(note.split())


def test_another_plane_has_no_coastline_and_its_own_scale(partition):
    ax = maps.draw(partition(("delay", "hour"), cells=100))
    assert _of_class(ax, "coast") == _of_class(ax, "scale-bar") == []
    domain = Domain({"x (km)": Interval(0, 30), "y (km)": Interval(0, 15)})
    ax = maps.draw(partition(("x (km)", "y (km)"), cells=100, domain=domain))
    assert _of_class(ax, "coast") == []
    assert [text.get_text() for text in _of_class(ax, "scale-text")] == ["5 km"]
    assert ax.get_aspect() == 1


def test_names_alone_do_not_make_a_map_of_the_earth(partition):
    """Bounds have to be degrees: a longitude in metres is another plane."""
    domain = Domain(lon=Interval(0, 30_000), lat=Interval(0, 15_000))
    ax = maps.draw(partition(("lon", "lat"), cells=100, domain=domain))
    assert _of_class(ax, "coast") == []


def test_units_of_measure_make_a_map_of_the_earth(partition):
    domain = Domain(u=Interval(-10, 30), v=Interval(35, 60))
    release = partition(("u", "v"), cells=100, domain=domain)
    captions = Captions(measured_in={"u": "degrees east", "v": "degrees north"})
    named = msgspec.structs.replace(release, captions=captions)
    assert _of_class(release.plot(), "coast") == []
    assert len(_of_class(named.plot(), "coast")) == 1


def test_a_map_of_ten_thousand_cells_is_compact(partition):
    text = style.svg(partition(cells=10_000).plot().figure, "t", "d")
    assert 5_000 < len(text) < 300_000


def test_a_map_of_a_million_cells_is_merged_and_compact(partition):
    ax = partition(cells=1_000_000).plot()
    assert max(ax.images[0].get_array().shape) <= shading.MOST_SLOTS
    assert "drawn as their mean" in " ".join(ax.get_legend().get_title().get_text().split())
    assert len(style.svg(ax.figure, "t", "d")) < 300_000


def test_unevenly_spaced_grids_are_drawn_where_their_edges_lie(partition):
    release = partition(
        ("lon", "lat"),
        cells=9,
        domain=Domain(lon=Interval(0, 10, step=1), lat=Interval(0, 10, step=1)),
    )
    assert list(release.cover.edges[0]) == [0, 3, 6, 10]
    shown = maps.draw(release).images[0].get_array()
    assert shown.shape == (shading.PIXELS, shading.PIXELS)
    first_column = shown[:, 0].filled(0)
    assert len(np.unique(first_column[:179])) == len(np.unique(first_column[181:359])) == 1


def test_further_axes_are_added_up(partition):
    release = partition(("delay", "hour", "day"), cells=1000, rows=50_000)
    ax = maps.draw(release)
    assert "Added up over day." in ax.get_legend().get_title().get_text()
    counts = release.counts.reshape(10, 10, 10).sum(axis=2)
    half = release.noise.sum_half_width(np.array([10.0]), 0.05)[0]
    seen = ~np.ma.getmaskarray(ax.images[0].get_array())
    up, right = (np.arange(30, size, size // 10) for size in seen.shape)
    assert np.array_equal(seen[np.ix_(up, right)], (counts.T - half) > 0)


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
        regions=lambda alpha: None,
    )


def test_boxes_of_any_size_are_painted_without_gaps():
    shown = maps.draw_map(_boxes(), None, (0, 1)).images[0].get_array()
    tall, wide = shown.shape
    assert np.all(shown[:, : wide // 2] == 200)
    assert np.ma.getmaskarray(shown)[: tall // 4, wide // 2 :].all()
    assert np.allclose(shown[tall // 4 :, wide // 2 :], 50 / 0.375)


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
