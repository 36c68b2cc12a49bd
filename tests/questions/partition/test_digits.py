"""Coordinates are printed in the digits of their lattice."""

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.extending import GridAxis


def test_points_of_a_lattice_are_told_apart_by_its_decimals() -> None:
    for upper, cells in ((360, 2**20), (360, 3600), (1, 3), (1e6, 10), (1, 10**9)):
        axis = GridAxis("x", 0, upper, cells=cells)
        points = axis.points(np.arange(0, min(cells, 5000)))
        assert len(set(np.round(points, axis.decimals).tolist())) == len(points)
    assert GridAxis("x", -180, 180, cells=3600).decimals == 1


def test_boxes_are_written_in_the_digits_of_their_lattice(tmp_path) -> None:
    rng = np.random.default_rng(1)
    points = pa.table({"lon": rng.uniform(13, 13.9, 400), "lat": rng.uniform(52, 53, 400)})
    domain = sf.Domain(lon=sf.Interval(13, 14, step=0.1), lat=sf.Interval(52, 53))
    with sf.Publisher(sf.source(points, domain, name="p"), budget="9") as publisher:
        release = publisher.release(sf.UniformPartitioner(partitions=25), epsilon="3")
    shown = release.in_digits(release.to_frame())
    for name, axis in zip(("lon", "lat"), release.lattice.grids, strict=True):
        exact = release.to_frame()[f"{name}_lower"].to_numpy()
        rounded = shown[f"{name}_lower"].to_numpy()
        assert np.abs(exact - rounded).max() <= 10.0**-axis.decimals
        assert all(len(repr(float(x)).partition(".")[2]) <= max(axis.decimals, 1) for x in rounded)
    assert "13.200000000000" not in release.to_csv(tmp_path / "p.csv").read_text()
