"""Headings are words, with units of measure."""

import msgspec

import sfumato as sf
from reports.making import DOMAIN, answered
from sfumato.answers.captions import Captions
from sfumato.domain.conditions import conditions_of
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.reports.headings import LONGEST, heading_of


def test_counts_are_named_by_their_axes():
    assert heading_of(answered(Histogram(["kind", "age"], bins=4))) == (
        "Number of rows by kind and age"
    )
    grid = answered(UniformPartitioner(["lon", "lat"], partitions=4))
    assert heading_of(grid) == "Number of rows by lon and lat"
    assert heading_of(answered(sf.Quantiles("age"))) == "Quantiles of age"


def test_units_of_measure_and_headings_are_shown():
    release = answered(Histogram("age", bins=4))
    measured = msgspec.structs.replace(release, captions=Captions(measured_in="years"))
    assert heading_of(measured) == "Number of rows by age (years)"
    headed = msgspec.structs.replace(release, captions=Captions(heading="Who took part"))
    assert heading_of(headed) == "Who took part"


def test_answers_about_some_rows_are_told_from_those_about_all():
    where = conditions_of({"kind": ["a"]}, DOMAIN)
    for question, heading in (
        (Histogram("age", bins=4), "Number of rows by age where kind is a"),
        (sf.Quantiles("age"), "Quantiles of age where kind is a"),
    ):
        release = answered(question)
        unit = msgspec.structs.replace(release.guarantee.unit, where=where)
        guarantee = msgspec.structs.replace(release.guarantee, unit=unit)
        assert heading_of(msgspec.structs.replace(release, guarantee=guarantee)) == heading


def test_a_heading_stays_short():
    label = "x" * 10_000
    domain = sf.Domain({label: sf.Interval(0, 4)})
    assert len(heading_of(answered(Histogram(label, bins=4), domain=domain))) == LONGEST
