"""Planes of longitude and latitude are known by names, units and bounds; coasts are cropped."""

from itertools import pairwise

import numpy as np
import pytest

from sfumato.charts import geography

WORLD = (-180.0, 180.0, -90.0, 90.0)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("lon", "lat", True),
        ("Longitude", "LATITUDE", True),
        ("pickup_longitude", "pickup_latitude", True),
        ("startLng", "startLat", True),
        ("longitude (degrees)", "latitude (degrees)", True),
        ("pickup_longitude", "dropoff_latitude", False),
        ("lon", "lon", False),
        ("lat", "lon", False),
        ("belong", "flat", False),
        ("longitude (km)", "latitude", False),
        ("x (degrees_east)", "y (degrees_north)", True),
        ("x (degrees north)", "y (degrees east)", False),
        ("x", "y", False),
    ],
)
def test_coordinates_are_known_by_their_names(x, y, expected):
    assert geography.are_coordinates(x, y) is expected


def test_the_pair_is_found_whatever_its_order():
    assert geography.pair_of(("lat", "day", "lon")) == (2, 0)
    assert geography.pair_of(("a", "b", "c")) == (0, 1)


def test_bounds_have_to_be_degrees():
    assert geography.is_on_earth(WORLD)
    assert geography.is_on_earth((150, 230, -60, 10))
    assert not geography.is_on_earth((-180, 181, -90, 90))
    assert not geography.is_on_earth((0, 10, -91, 0))
    assert not geography.is_on_earth((500, 510, 0, 1))


def test_areas_on_the_sphere_add_up_to_the_earth():
    lon, lat = np.meshgrid(np.arange(-180.0, 180, 30), np.arange(-90.0, 90, 30))
    areas = geography.square_kilometres(lon, lon + 30, lat, lat + 30)
    assert areas.sum() == pytest.approx(510.1e6, rel=2e-3)


def test_a_scale_bar_is_a_round_length_at_the_middle_of_the_map():
    assert geography.scale_bar(WORLD).text == "5,000 km at the equator"
    northern = geography.scale_bar((0, 60, 40, 80))
    assert northern.text == "500 km at 60° N"
    assert northern.span * 111.195 / 2 == pytest.approx(500)
    assert geography.scale_bar((0, 8, 0, 4), "m").text == "1 m"


def _points(extent, tolerance):
    return np.concatenate(geography.coastlines(extent, tolerance))


def test_coastlines_are_where_the_coasts_are():
    """Known capes lie on them, and the middle of an ocean and of a desert do not."""
    points = _points(WORLD, 0.02)
    for longitude, latitude in ((-9.50, 38.78), (18.47, -34.36), (25.78, 71.17), (-5.71, 50.07)):
        assert np.hypot(*(points - (longitude, latitude)).T).min() < 0.1
    for longitude, latitude in ((-30, 30), (15, 22), (100, 45)):
        assert np.hypot(*(points - (longitude, latitude)).T).min() > 5


def test_coastlines_are_cropped_to_the_map():
    left, right, bottom, top = extent = (-10.0, 5.0, 49.0, 60.0)
    lines = geography.coastlines(extent, 0.02)
    assert lines
    for line in lines:
        for start, end in pairwise(line):
            assert max(start[0], end[0]) >= left - 1
            assert min(start[0], end[0]) <= right + 1
            assert max(start[1], end[1]) >= bottom - 1
            assert min(start[1], end[1]) <= top + 1
    assert geography.coastlines((-30, -29, 30, 31), 0.02) == []


@pytest.mark.parametrize("extent", [WORLD, (0.0, 360.0, -90.0, 90.0), (150.0, 210.0, -50.0, 75.0)])
def test_the_seams_of_the_earth_are_no_coast(extent):
    """No line crosses the map, follows the meridian of 180 degrees, or runs along the pole."""
    for line in geography.coastlines(extent, 0.1):
        step = np.abs(np.diff(line, axis=0))
        assert step[:, 0].max() < 15
        at_seam = np.isclose(np.abs(line[:, 0]), 180, atol=0.005)
        assert not (at_seam[1:] & at_seam[:-1]).any()
        assert line[:, 1].min() > -89.9


def test_lines_go_on_beyond_the_antimeridian():
    whole = _points(WORLD, 0.1)
    pacific = _points((150.0, 210.0, -50.0, 0.0), 0.1)
    # Fiji lies on both sides, and Samoa beyond.
    assert (np.hypot(*(pacific - (360 - 172.0, -13.8)).T) < 1).any()
    assert (np.hypot(*(whole - (-172.0, -13.8)).T) < 1).any()


def test_coarser_lines_have_fewer_points_and_stay_near():
    fine, coarse = (_points((-10.0, 5.0, 49.0, 60.0), each) for each in (0.02, 0.32))
    assert len(coarse) < len(fine) / 4
    # Outside the frame, a longer step of the coarser lines may end where finer lines are cropped.
    left, right, bottom, top = -10.0, 5.0, 49.0, 60.0
    x, y = coarse.T
    coarse = coarse[(x > left) & (x < right) & (y > bottom) & (y < top)]
    nearest = np.sqrt(((coarse[:, None] - fine[None]) ** 2).sum(axis=2)).min(axis=1)
    assert nearest.max() < 0.32


def test_the_file_is_small():
    from importlib.resources import files

    assert len(files("sfumato.charts").joinpath("coastlines.npz").read_bytes()) < 300_000
