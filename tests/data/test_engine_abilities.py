"""What a need asks of an engine that counts by itself."""

from __future__ import annotations

import pytest

import sfumato as sf
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
