"""Previews state the accuracy that releases then have."""

from __future__ import annotations

import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, ROWS, publisher_of_wages


def test_a_preview_says_what_the_release_will_state(publisher: sf.Publisher) -> None:
    question = sf.Mean("age", by="ward")
    preview = publisher.preview(question, epsilon="1", rows=ROWS)
    release = publisher.release(question, epsilon="1")
    assert 0.3 * preview.accuracy() < release.accuracy()[0] < 3 * preview.accuracy()
    with pytest.raises(sf.UsageError, match="rows="):
        publisher.preview(question, epsilon="1").accuracy()
    total = publisher.preview(sf.Sum("age", by="ward"), epsilon="1")
    found = publisher.release(sf.Sum("age", by="ward"), epsilon="1")
    assert total.accuracy() == pytest.approx(found.accuracy()[0])


def test_the_preview_of_a_sum_of_rounded_values_wants_the_number_of_rows() -> None:
    publisher = publisher_of_wages()
    with pytest.raises(sf.UsageError, match="rows="):
        publisher.preview(sf.Sum("wage"), epsilon=1).accuracy()
    assert "state rows=" in str(publisher.preview(sf.Sum("wage"), epsilon=1))
    stated = publisher.preview(sf.Sum("wage"), epsilon=1, rows=ROWS).accuracy()
    assert stated >= publisher.release(sf.Sum("wage"), epsilon=1).accuracy() * 0.99


@pytest.mark.parametrize(
    ("question", "one", "noise"),
    [
        (sf.Mean("wage"), "200", "2,000"),
        (sf.Mean("age"), "121", "1,210"),
        (sf.Variance("wage"), "40,000", "400,000"),
        (sf.Mean("wage", clip="auto"), "1", "10"),
    ],
)
def test_the_preview_states_noise_in_the_units_of_the_value(
    question: sf.Mean | sf.Variance, one: str, noise: str
) -> None:
    unit = sf.Unit(5)
    said = str(sf.preview(question, domain=DOMAIN, unit=unit, epsilon="0.5"))
    assert f"of scale {noise} to " in said
    assert f"where each row adds {one} in all (a scale of 10 rows)" in said
    said = str(sf.preview(question, domain=DOMAIN, unit=unit, rho="0.125"))
    assert f"of sigma {noise} to " in said
    assert f"where each row adds {one} in all (a sigma of 10 rows)" in said


def test_the_preview_says_what_a_row_adds_beside_the_noise(publisher: sf.Publisher) -> None:
    said = str(publisher.preview(sf.Mean("wage"), epsilon="0.4"))
    assert said.count("(a scale of 2.5 rows)") == 1
    said = str(publisher.preview(sf.Mean("wage"), rho="0.005"))
    assert said.count("(a sigma of 10 rows)") == 1
    said = str(publisher.preview(sf.Mean("wage"), epsilon=1))
    assert "noise of scale 200 to 2 sums in one group, where each row adds" in said
    assert "adds 200 in all" in said
    unit = sf.Unit(2, person="rider")
    of_persons = sf.Mean("wage", by="ward", per="person")
    said = str(sf.preview(of_persons, domain=DOMAIN, unit=unit, epsilon=1))
    assert "where each person in it adds 200 in all" in said
