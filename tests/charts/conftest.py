"""Releases to draw, made with a public seed so that a failure can be seen again."""

import msgspec
import numpy as np
import pytest

from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.random import PublicSeed

DOMAIN = Domain(
    carrier=Categories([f"C{i}" for i in range(9)]),
    origin=Categories(["EWR", "JFK", "LGA"]),
    many=Categories([f"label {i}" for i in range(150)]),
    delay=Interval(-60, 180),
    hour=Interval(0, 24, step=1),
    day=Interval("2013-01-01", "2014-01-01"),
    when=Interval("2013-01-01T00:00", "2013-01-08T00:00", step=3600),
    lon=Interval(-74.3, -73.6),
    lat=Interval(40.5, 40.95),
)


def _answer(question, domain, rows, epsilon):
    lattice = question.needs(domain).lattice
    rng = np.random.default_rng(11)
    cells = np.stack(
        [(rng.beta(2, 5, rows) * axis.size).astype(np.int64) for axis in lattice.axes], axis=1
    )
    release = question.answer(Cube.of_cells(lattice, cells), Unit(), PureDP(epsilon), PublicSeed(3))
    return msgspec.structs.replace(
        release, guarantee=msgspec.structs.replace(release.guarantee, private=True)
    )


@pytest.fixture
def histogram():
    def make(axes, bins=None, rows=5000, epsilon="0.1", domain=DOMAIN):
        return _answer(Histogram(axes, bins=bins), domain, rows, epsilon)

    return make


@pytest.fixture
def by_records():
    def make(axis, records=400, rows=5000, epsilon="1", domain=DOMAIN):
        return _answer(Histogram(axis, records=records), domain, rows, epsilon)

    return make


@pytest.fixture
def partition():
    def make(axes=("lon", "lat"), cells=None, rows=20_000, epsilon="1", domain=DOMAIN):
        return _answer(UniformPartitioner(axes, partitions=cells), domain, rows, epsilon)

    return make
