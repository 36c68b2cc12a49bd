"""Tables are short and open where they can be, and never show what is not known."""

import numpy as np

import sfumato as sf
from reports.making import DOMAIN, answered
from sfumato.charts import style
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.random import PublicSeed
from sfumato.reports import tables


def test_two_axes_stand_across_each_other():
    release = answered(Histogram(["kind", "age"], bins=10))
    table = tables.sheet(release)
    assert table.crossed
    assert table.columns == ("age / kind", "a", "b", "c")
    assert table.total == len(table.rows) == 10
    for i, row in enumerate(table.rows):
        assert [field.text for field in row[1:]] == [
            style.number(int(count)) for count in release.values[:, i]
        ]
    low, _ = release.interval()
    hatched = [[field.hatched for field in row[1:]] for row in table.rows]
    assert np.array_equal(hatched, (low <= 0).T)
    assert f"within ±{int(release.accuracy()[0, 0])}, with 95% confidence" in table.reading
    assert ("may be 0" in table.reading) == bool((low <= 0).any())


def test_many_columns_are_listed():
    table = tables.sheet(answered(Histogram(["lon", "lat"], bins=13)))
    assert not table.crossed
    assert table.total == 169
    assert not table.is_short
    assert tables.sheet(answered(Histogram(["lon", "lat"], bins=12))).crossed


def test_a_value_that_is_not_known_is_no_number():
    lattice = sf.Quantiles("age", at=["0.5"], by="kind").needs(DOMAIN).lattice
    counts = np.zeros(lattice.shape, np.int64)
    counts[0, 5] = 100_000
    release = sf.Quantiles("age", at=["0.5"], by="kind").answer(
        Cube(lattice, counts.reshape(-1)), Unit(), PureDP("0.5"), PublicSeed(4)
    )
    table = tables.sheet(release)
    known = [row[table.columns.index("known")].text for row in table.rows]
    assert known == ["yes", "no", "no"]
    value = table.columns.index("value")
    assert [row[value].text == tables.UNKNOWN for row in table.rows] == [False, True, True]
    assert [row[value].hatched for row in table.rows] == [False, True, True]
    assert table.is_short


def test_the_number_of_fields_decides_whether_it_is_open():
    assert tables.sheet(answered(Histogram("age", bins=tables.SHORT))).is_short
    assert not tables.sheet(answered(Histogram("age", bins=tables.SHORT + 1))).is_short
