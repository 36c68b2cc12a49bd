"""Releases and decisions that several tests of pages show."""

import pytest

import sfumato as sf
from reports.making import DOMAIN, answered, receipted
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.reports import page


@pytest.fixture(scope="module")
def releases():
    return [
        receipted(answered(Histogram(["kind", "age"], bins=10))),
        receipted(
            answered(UniformPartitioner(["lon", "lat"], partitions=400)),
            entry=2,
            time="2026-03-02T10:00:00Z",
        ),
        answered(Histogram("age", bins=300)),
    ]


@pytest.fixture(scope="module")
def text(releases):
    return page.render(releases, "Trips")


@pytest.fixture(scope="module")
def decisions():

    wish, risk = sf.Within(20, simultaneous=True), sf.Risk(prior=0.01, posterior=0.05)
    window = sf.window(
        Histogram("age", bins=50), domain=DOMAIN, unit=Unit(), accuracy=wish, risk=risk
    )
    return [sf.choose({"<b>": [1, 2, 3, 10]}, size=3), window]
