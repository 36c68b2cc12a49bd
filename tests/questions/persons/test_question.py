"""Persons are counted by their number of rows, before any limit, and only where a column names
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from questions.persons.tables import DOMAIN
from sfumato.questions.persons.measured import upper_ends
from sfumato.testing import deterministic

ROWS = [1] * 40 + [3] * 30 + [25] * 20


def trips(rows: list[int] = ROWS) -> pa.Table:
    riders = np.repeat([f"r{i}" for i in range(len(rows))], rows)
    ids = pa.array([*riders, None, None])
    hours = pa.array([*(np.arange(len(riders)) % 24).astype(float), 3.0, None])
    return pa.table({"rider": ids, "hour": hours})


def source(table: pa.Table, **more: object) -> sf.Source:
    return sf.source(table, DOMAIN, person="rider", name="trips", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_rows_are_counted_before_any_limit(limit: int) -> None:
    src = source(trips(), rows_per_person=limit)
    with deterministic(1), sf.Publisher(src, budget="1000") as publisher:
        release = publisher.release(sf.Persons(most_rows=20), epsilon="500")
    ends = release.limits.tolist()
    assert dict(zip(ends, release.counts.tolist(), strict=True)) == {
        **dict.fromkeys(ends, 0),
        1: 40,
        3: 30,
        20: 20,
    }


def test_it_is_saved_loaded_and_replayed(tmp_path: Path) -> None:
    with sf.Publisher(source(trips()), ledger=tmp_path / "b.db", budget="1") as publisher:
        release = publisher.release(sf.Persons(most_rows=50), epsilon="0.5")
        again = publisher.release(sf.Persons(most_rows=50), epsilon="0.5")
        assert again.replayed
        assert again == release == sf.load(release.save(tmp_path / "p.json"))
        assert publisher.remaining == sf.PureDP("0.5").epsilon
    assert release.domain_of_source() == DOMAIN


def test_it_stands_in_a_plan_beside_other_questions() -> None:
    src = source(trips(), rows_per_person=3)
    with sf.Publisher(src, budget="1") as publisher:
        persons, hours = publisher.release(
            [sf.Persons(most_rows=50), sf.Histogram("hour")], epsilon="1"
        )
    assert isinstance(persons, sf.PersonsRelease)
    assert hours.guarantee.unit == src.unit
    assert str(persons.guarantee.unit) == "any one person with any number of rows, added or removed"


def test_without_a_person_column_it_is_refused_before_the_charge() -> None:
    src = sf.source(trips(), DOMAIN, name="trips")
    with sf.Publisher(src, budget="1") as publisher:
        with pytest.raises(sf.UsageError, match="no column of the source names the person"):
            publisher.release(sf.Persons(), epsilon="0.5")
        assert publisher.remaining == 1


@pytest.mark.parametrize("most_rows", [0, 1, -3, 10**9 + 1, 2.5, "many", True, float("nan")])
def test_a_bound_is_a_whole_number(most_rows: object) -> None:
    with pytest.raises(sf.UsageError, match="most_rows"):
        sf.Persons(most_rows=most_rows)  # type: ignore[arg-type]


def test_the_noise_is_that_of_one_person_in_one_bin() -> None:
    for neighbours, scale in (("add-remove", 2), ("replace", 4)):
        unit = sf.Unit(400, neighbours, "rider")  # type: ignore[arg-type]
        preview = sf.preview(sf.Persons(), domain=DOMAIN, unit=unit, epsilon="0.5")
        assert f"discrete Laplace noise of scale {scale} to" in str(preview)
    assert "state most_rows" in str(preview)


def test_the_preview_says_how_accurate_the_number_of_persons_is() -> None:
    unit = sf.Unit(person="rider")
    preview = sf.preview(sf.Persons(1000), domain=DOMAIN, unit=unit, rho="0.1")
    assert "28 numbers of persons" in str(preview)
    assert "if nobody has more than 1,000 rows" in str(preview)
    assert "Each person is counted once" in preview.counted


# --- what is measured in cells --------------------------------------------------------------------


@pytest.mark.parametrize("of", ["cells", "norm", "largest-cell"])
def test_persons_are_counted_by_what_is_measured(of: Any, tmp_path: Path) -> None:
    # Of the hours in bins of two, the first 40 riders have rows in one, the others in more.
    expected = {
        "cells": {1: 40, 2: 30, 12: 20},
        "norm": {1: 40, 3: 30, 8: 20},
        "largest-cell": {1: 40, 2: 30, 3: 20},
    }[of]
    question = sf.Persons(most_rows=20, of=of, axes="hour", bins=12)
    src = source(trips(), rows_per_person=2)
    with deterministic(1), sf.Publisher(src, ledger=tmp_path / "b.db", budget="1000") as publisher:
        release = publisher.release(question, epsilon="500")
        again = publisher.release(question, epsilon="500")
    found = dict(zip(release.limits.tolist(), release.counts.tolist(), strict=True))
    assert sum(found.values()) == 90
    assert {end: count for end, count in found.items() if count} == expected
    assert again.replayed
    assert again == release == sf.load(release.save(tmp_path / "p.json"))
    assert release.of == of
    assert release.title.endswith(" of each person by hour") or of == "largest-cell"
    assert "before any limit" in release.guarantee.counted


def test_cells_are_bounded_by_their_number() -> None:
    unit = sf.Unit(person="rider")
    few = sf.preview(sf.Persons(of="cells", axes="hour"), domain=DOMAIN, unit=unit, epsilon=1)
    assert few.cells == len(upper_ends(24))
    fewer = sf.preview(sf.Persons(9, "cells", "hour"), domain=DOMAIN, unit=unit, epsilon=1)
    assert fewer.cells == len(upper_ends(9))
    assert "limit on cells" in str(few)
    norm = sf.preview(sf.Persons(9, "norm", "hour"), domain=DOMAIN, unit=unit, epsilon=1)
    assert "norm_per_person" in str(norm)
    assert norm.cells == len(upper_ends(9))


def test_keys_are_cells_too() -> None:
    domain = sf.Domain(hour=sf.Keys())
    table = trips().set_column(1, "hour", trips()["hour"].cast(pa.int64()))
    src = sf.source(table, domain, person="rider", name="trips")
    with deterministic(1), sf.Publisher(src, budget="1000") as publisher:
        release = publisher.release(sf.Persons(of="cells", axes="hour"), epsilon="500")
    assert release.most is None
    assert release.counts.sum() == 90
    assert "in more, with 95% confidence; how many of their rows" in release.sentence(10)


def test_ways_to_write_a_table_are_one_question() -> None:
    written = sf.Persons(of="norm", axes="hour", bins=None)
    assert written == sf.Persons(of="norm", axes=["hour"])
    assert written.canonical(DOMAIN) == written
    assert sf.Persons().canonical(DOMAIN) == sf.Persons()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"of": "norm"}, "without axes"),
        ({"axes": "hour"}, "the same in every table"),
        ({"bins": 4}, "the same in every table"),
        ({"of": "width", "axes": "hour"}, "there are 'rows'"),
        ({"of": "norm", "axes": "minute"}, "no axis of that name"),
        ({"of": "norm", "axes": "hour", "bins": 1}, "at least 2 bins"),
    ],
)
def test_a_table_goes_with_what_is_measured_in_it(fields: Any, message: str) -> None:
    with pytest.raises(sf.UsageError, match=message):
        sf.Persons(**fields).needs(DOMAIN)
