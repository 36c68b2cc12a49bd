"""A check of a family counts what a release of it would count."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sfumato as sf

DOMAIN = sf.Domain(hour=sf.Interval(0, 24, step=1), origin=sf.Categories(["EWR", "JFK"]))
ROWS = pa.table(
    {
        "hour": [7] * 15 + [8, 9],
        "origin": ["EWR"] * 15 + ["JFK", "EWR"],
        "plane": [1, 2, 3] * 5 + [4, 4],
    }
)
FAMILY = sf.Tables([["hour", "origin"], "origin"])
HISTOGRAMS = sf.Plan([sf.Histogram(["hour", "origin"]), sf.Histogram("origin")], adds_up=True)


def publisher(**limits: int) -> sf.Publisher:
    source = sf.source(ROWS, DOMAIN, person="plane", name="flights", **limits)
    return sf.Publisher(source, budget=sf.ZCDP("1"))


@pytest.mark.parametrize("asked", [FAMILY, HISTOGRAMS], ids=["a family", "a plan that adds up"])
def test_a_family_is_checked_under_its_norm(asked: sf.Tables | sf.Plan) -> None:
    with publisher(norm_per_person=2) as flights:
        shown = " ".join(str(flights.check(asked)).split())
        assert flights.remaining == 1
    # Three planes keep 2 of 5 rows in one cell, and one keeps both of its rows.
    words = "counts in all tables cut to a norm of 2"
    assert f"the limits of a person (at most 4 rows, {words}): 3 of 4" in shown
    assert "8 of 17 rows" in shown


def test_other_limits_by_cell_are_refused() -> None:
    with (
        publisher(rows_per_person=9, rows_per_cell=1) as flights,
        pytest.raises(sf.UsageError, match="a family has several"),
    ):
        flights.check(FAMILY)
