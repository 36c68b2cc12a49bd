"""The text of queries grows in proportion to what it lists, and no filter copies expressions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.counts import Needs
from sfumato.data.engines.dialect import Dialect
from sfumato.data.engines.postgres import Postgres
from sfumato.data.engines.query import Condition, count_query
from sfumato.data.engines.readings import Table
from sfumato.data.engines.spark import ROWS, Spark
from sfumato.data.engines.zones import changes
from sfumato.lattice import EdgesAxis, Lattice, LatticeAxis
from sfumato.privacy.unit import Unit

TYPES = {"who": pa.string(), "x": pa.float64(), "utc": pa.timestamp("us", "UTC")}
UNITS = {"rows": Unit(), "persons": Unit(person="who", rows_per_person=2)}
DIALECTS = {"postgres": Postgres(), "spark": Spark({})}
ZONES = ("Asia/Kolkata", "Europe/Berlin", "Africa/Casablanca")


def text_of(
    axis: LatticeAxis, unit: Unit, dialect: Dialect, conditions: tuple[Condition, ...] = ()
) -> str:
    need = Needs(Lattice((axis,)), 99)
    return count_query(need, unit, Table(ROWS, TYPES), dialect, None, conditions).text


def hours(timezone: str) -> LatticeAxis:
    domain = sf.Domain(hour=sf.Hour("utc", timezone=timezone))
    return sf.Histogram("hour").needs(domain).lattice.axes[0]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("engine", DIALECTS)
def test_the_text_grows_with_the_edges(engine: str, unit: str) -> None:
    """By a bounded number of letters for each edge, whether a filter follows or not."""
    few, many = (
        len(text_of(EdgesAxis("x", tuple(np.arange(n + 1) / 7)), UNITS[unit], DIALECTS[engine]))
        for n in (10, 2000)
    )
    assert few < 2500
    assert many - few < 100 * 1990


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("engine", DIALECTS)
def test_the_text_grows_with_the_changes_of_a_zone(engine: str, unit: str) -> None:
    for timezone in ZONES:
        n_changes = len(changes(timezone)[0])
        assert len(text_of(hours(timezone), UNITS[unit], DIALECTS[engine])) < 4000 + 120 * n_changes


def test_spark_keeps_filters_above_what_they_look_at() -> None:
    """Spark would copy it: a name of one level occurs several times in the next."""
    axis = hours("Europe/Berlin")
    condition = (axis, np.arange(24) < 5)
    barrier = f"{Spark.barrier} AS unmoved"
    for unit, filters in ((UNITS["rows"], 1), (UNITS["persons"], 2)):
        text = text_of(axis, unit, DIALECTS["spark"], (condition,))
        assert text.count(barrier) == text.count("unmoved >= 0") == filters
    assert barrier not in text_of(axis, UNITS["rows"], DIALECTS["spark"])


def test_conditions_on_columns_as_they_are_may_be_moved_to_the_files() -> None:
    axis = EdgesAxis("x", (0.0, 1.0, 2.0))
    text = text_of(axis, UNITS["rows"], DIALECTS["spark"], ((axis, np.array([True, False])),))
    assert "unmoved" not in text
