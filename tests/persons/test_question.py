"""Persons are counted by their number of rows, before any limit, and only where a column names
them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from persons.tables import DOMAIN
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
    assert str(persons.guarantee.unit) == "any one rider with any number of rows, added or removed"


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
    assert "Each rider is counted once" in preview.counted
