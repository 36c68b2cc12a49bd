"""What a need asks of an engine that counts by itself."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.data import count
from sfumato.data.engine_abilities import WHAT, abilities

TREE = {"Bavaria": ["Munich", "Nuremberg"], "Hesse": ["Frankfurt"]}
PLACE = sf.Categories(tree=TREE, levels=["region"], other="else", missing="unknown")
DOMAIN = sf.Domain(
    place=PLACE,
    month=sf.Month("day"),
    years=sf.Interval(0, 90, column="age", missing=True),
)


@pytest.mark.parametrize(
    ("axes", "needed"),
    [
        (["place"], set()),
        (["region"], {"column", "levels"}),
        (["month"], {"calendar"}),
        (["years"], {"column", "missing"}),
    ],
)
def test_each_kind_of_axis_asks_for_its_ability(axes: list[str], needed: set[str]) -> None:
    needs = sf.Histogram(axes).needs(DOMAIN)
    assert abilities(needs, sf.Unit()) == needed
    assert needed <= set(WHAT)


def test_an_engine_counts_levels_as_a_scan_does() -> None:
    places = ["Munich ", "Nuremberg", "Frankfurt", "Oslo", None, " Munich"] * 7
    domain = sf.Domain(place=PLACE, age=sf.Interval(0, 90))
    rows = pa.table({"place": places, "age": np.linspace(0, 90, len(places))})
    needs = sf.Histogram(["region", "age"], bins=3).needs(domain)
    relation = duckdb.from_arrow(rows)
    scanned, counted = (
        count(sf.source(table, domain, name="rows"), [needs])[0] for table in (rows, relation)
    )
    assert np.array_equal(scanned.counts, counted.counts)
    assert scanned.counts.sum() == len(places)
