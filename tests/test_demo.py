"""The two tables that come with the package."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from sfumato.data import count, source
from sfumato.demo import cities_domain, cities_path, flights_domain, flights_path
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import LabelAxis, Lattice


def _each_axis(domain: Domain) -> list[Lattice]:
    lattices = []
    for name, axis in domain.items():
        if isinstance(axis, Interval):
            lattices.append(Lattice((grid_axis(name, axis, min(axis.natural_cells or 360, 5000)),)))
        elif isinstance(axis, Categories):
            lattices.append(Lattice((LabelAxis(name, axis.all_labels),)))
    return lattices


def test_the_tables_are_small() -> None:
    assert flights_path().stat().st_size + cities_path().stat().st_size < 6_000_000


@pytest.mark.parametrize("missing", [{"dep_delay": 8255, "arr_delay": 9430}])
def test_flights_have_the_rows_that_they_should(missing: dict[str, int]) -> None:
    lattices = _each_axis(flights_domain())
    for cube in count(source(flights_path(), flights_domain()), lattices):
        assert cube.total == 336_776 - missing.get(cube.lattice.names[0], 0)
    tails = pq.read_table(flights_path(), columns=["tailnum"])["tailnum"]
    assert tails.null_count == 2512
    for cube in count(
        source(flights_path(), flights_domain(), person="tailnum", rows_per_person=2), lattices[:1]
    ):
        counts = tails.value_counts().to_pylist()
        assert cube.total == sum(
            min(2, each["counts"]) for each in counts if each["values"] is not None
        )


def test_cities_have_the_rows_that_they_should() -> None:
    for cube in count(source(cities_path(), cities_domain()), _each_axis(cities_domain())):
        assert cube.total == 234_908
