"""Boxes as GeoJSON."""

import json

import numpy as np
import pytest

from sfumato.domain.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.privacy.measures import PureDP
from support.partitions import made

CUBE = Domain(x=Interval(0, 4, step=1), y=Interval(0, 5, step=1), z=Interval(-2, 4, step=1))
MAP = Domain(lat=Interval(-90, 90), lon=Interval(-180, 180))
ONE = PureDP(1)
RNG = np.random.default_rng(7)


def test_geojson(tmp_path):
    p = made(MAP, 4)
    collection = p.to_geojson(tmp_path / "map.json")
    assert json.loads((tmp_path / "map.json").read_text()) == collection
    ring = collection["features"][0]["geometry"]["coordinates"][0]
    assert ring == [[-180, -90], [0, -90], [0, 0], [-180, 0], [-180, -90]]
    assert [
        feature["properties"]["count"] for feature in collection["features"]
    ] == p.counts.tolist()
    assert p.to_geojson(axes=["lat", "lon"])["features"][0]["geometry"]["coordinates"][0][1] == [
        0,
        -180,
    ]
    for wrong in (["lat", "lat"], ["lat"]):
        with pytest.raises(UsageError):
            p.to_geojson(axes=wrong)
    with pytest.raises(UsageError):
        made(CUBE, 8).to_geojson()
