"""Several values in one question: each is charged its share, and keeps its own scale and clip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, GROUPS, LARGE, ROWS, TABLE
from sfumato.answers.release import accuracy_sentence
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.testing import deterministic

BOTH = sf.Mean(["age", "wage"], by="ward")


def truth(column: str) -> list[float]:
    values = np.asarray(TABLE[column])
    return [float(values[ward == GROUPS].mean()) for ward in "AB"]


def test_values_have_a_leading_dimension_and_one_release_each(publisher: sf.Publisher) -> None:
    with deterministic(1):
        release = publisher.release(BOTH, epsilon=LARGE)
    assert release.title == "Mean of age and wage by ward"
    assert release.names == ("age", "wage")
    assert release.values.shape == (2, 3)
    low, high = release.interval()
    for index, name in enumerate(release.names):
        expected = truth(name)
        assert release.values[index, :2] == pytest.approx(expected, rel=2e-3)
        assert ((low[index, :2] <= expected) & (expected <= high[index, :2])).all()
        assert np.array_equal(release[name].values, release.values[index], equal_nan=True)
    assert release["wage"].title == "Mean of wage by ward"
    assert release["wage"].guarantee == release.guarantee
    with pytest.raises(sf.UsageError, match="no value of that name"):
        release["wages"]


def test_each_value_is_charged_its_share(publisher: sf.Publisher) -> None:
    release = publisher.release(BOTH, epsilon="1")
    alone = publisher.release(sf.Mean("age", by="ward"), epsilon="0.5")
    assert release.cost == sf.PureDP("1")
    assert release.tables[0].law == alone.law
    two = sf.preview(sf.Sum(["age", "wage"]), domain=DOMAIN, unit=sf.Unit(), rho="0.5")
    one = sf.preview(sf.Sum("wage"), domain=DOMAIN, unit=sf.Unit(), rho="0.25")
    assert two.encodings[1].law == one.law


def test_several_values_are_a_long_table_and_have_a_picture_each(
    publisher: sf.Publisher, tmp_path: Path
) -> None:
    release = publisher.release(BOTH, epsilon="5")
    table = release.to_frame()
    assert table["value"].to_pylist() == ["age"] * 3 + ["wage"] * 3
    assert table.column_names[1:] == release["age"].to_frame().column_names
    panels = release.plot().figure.axes
    assert [ax.get_xlabel() for ax in panels] == ["Mean of age", "Mean of wage"]
    with pytest.raises(sf.UsageError, match=r"release\['age'\]\.plot"):
        release.plot(panels[0])
    again = sf.load(release.save(tmp_path / "r.json"))
    assert again == release
    assert np.array_equal(again.values, release.values, equal_nan=True)
    assert accuracy_sentence(release) == (
        f"age: {accuracy_sentence(release['age'])} wage: {accuracy_sentence(release['wage'])}"
    )


def test_a_list_of_one_value_is_that_value() -> None:
    assert sf.Mean(["age"]) == sf.Mean("age")
    assert to_bytes(sf.Mean(["age"])) == to_bytes(sf.Mean("age"))
    assert from_bytes(to_bytes(BOTH), sf.Mean) == BOTH


def test_each_value_has_a_clip_of_its_own() -> None:
    rows = np.stack([np.arange(2000) % 100, np.arange(2000) % 50], axis=1)
    domain = sf.Domain(age=sf.Interval(0, 100), wage=sf.Interval(0, 100_000))
    publisher = sf.Publisher(sf.source(rows, domain, name="persons"), budget=10)
    with deterministic(2):
        release = publisher.release(sf.Sum(["age", "wage"], clip="auto"), epsilon="2")
    assert release.clips.shape == (2,)
    assert release.above.shape == (2,)
    assert release["age"].unknowns == "No value is clipped below the upper bound."
    assert "No value of age is clipped below the upper bound." in release.unknowns
    assert "rows lie above" in release["wage"].unknowns
    assert "rows of wage lie above" in release.unknowns
    assert "Clipping lowers the sum of wage by about " in release.unknowns


def test_rows_that_miss_any_of_the_values_are_dropped() -> None:
    rows = np.array([[1.0, 2.0], [np.nan, 2.0], [1.0, np.nan], [3.0, 4.0]])
    domain = sf.Domain(x=sf.Interval(0, 11, step=1), y=sf.Interval(0, 11, step=1))
    with deterministic(3):
        publisher = sf.Publisher(sf.source(rows, domain, name="xy"), budget=10**6)
        release = publisher.release(sf.Mean(["x", "y"]), epsilon=LARGE)
    assert np.rint(release.counts).tolist() == [2, 2]
    assert release.values == pytest.approx([2, 3], abs=0.01)


def test_the_preview_of_several_values_is_that_of_the_least_accurate(
    publisher: sf.Publisher,
) -> None:
    both = publisher.preview(BOTH, epsilon="1", rows=ROWS)
    age = publisher.preview(sf.Mean("age", by="ward"), epsilon="0.5", rows=ROWS)
    wage = publisher.preview(sf.Mean("wage", by="ward"), epsilon="0.5", rows=ROWS)
    assert both.accuracy() == max(age.accuracy(), wage.accuracy())
    assert both.accuracy(simultaneous=True) > wage.accuracy(simultaneous=True)
    assert "each mean of age is within" in str(both)
    assert "each mean of wage is within" in str(both)
