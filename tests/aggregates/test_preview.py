"""Previews state the accuracy that releases then have."""

from __future__ import annotations

import pytest

import sfumato as sf
from aggregates.wards import DOMAIN, ROWS, publisher_of_wages


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


def test_the_preview_says_what_a_row_adds_beside_the_noise(publisher: sf.Publisher) -> None:
    said = str(publisher.preview(sf.Mean("wage"), epsilon="0.4"))
    assert said.count("(a scale of 2.5 rows)") == 1
    said = str(publisher.preview(sf.Mean("wage"), rho="0.005"))
    assert said.count("(a sigma of 10 rows)") == 1
    said = str(publisher.preview(sf.Mean("wage"), epsilon=1))
    assert "noise of scale 2147483648 to 2 sums in one group, where each row adds" in said
    assert "adds 2,147,483,648 in all" in said
    unit = sf.Unit(2, person="rider")
    of_persons = sf.Mean("wage", by="ward", per="person")
    said = str(sf.preview(of_persons, domain=DOMAIN, unit=unit, epsilon=1))
    assert "where each rider in it adds 2,147,483,648 in all" in said
