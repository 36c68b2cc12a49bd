"""Tables of a family are laid out across their axes, and every edge is the table's own margin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.cross_tables import ALL
from sfumato.questions.tables import release as crossing

DOMAIN = sf.Domain(
    carrier=sf.Categories(["AA", "DL", "UA"]),
    hour=sf.Interval(0, 5, step=1),
    origin=sf.Categories(["EWR", "JFK"]),
    day=sf.Interval(0, 2, step=1),
)


def released(*tables, n=400):
    rng = np.random.default_rng(3)
    columns = {
        "carrier": np.array(["AA", "DL", "UA"])[rng.integers(0, 3, n)],
        "hour": rng.integers(0, 5, n),
        "origin": np.array(["EWR", "JFK"])[rng.integers(0, 2, n)],
        "day": rng.integers(0, 2, n),
    }
    source = sf.source(pa.table(columns), DOMAIN, name="flights")
    publisher = sf.Publisher(source, budget=sf.ZCDP("1"))
    with sf.testing.deterministic(5):
        return publisher.release(sf.Tables(tables), rho="1")


def test_the_edges_are_the_margins():
    release = released(["carrier", "hour"], ["carrier", "origin"])
    (table,) = release.cross_tables["carrier", "hour"]
    # The longer axis goes down.
    assert (table.down, table.across) == ("hour", "carrier")
    assert table.columns == ("AA", "DL", "UA", ALL)
    assert table.rows[0] == "0 and below"
    assert table.rows[-1] == ALL
    assert len(table.rows) == 6
    assert np.array_equal(table.estimates[:-1, :-1], release["hour", "carrier"].values)
    assert np.array_equal(table.estimates[:-1, -1], release["hour"].values)
    assert np.array_equal(table.estimates[-1, :-1], release["carrier"].values)
    assert table.estimates[-1, -1] == release[()].values
    assert np.array_equal(table.half_widths[-1, :-1], release["carrier"].accuracy())
    assert table.widths.column_sums == release["carrier"].accuracy()[0]
    assert table.widths.row_sums == release["hour"].accuracy()[0]
    assert table.widths.inner == release["carrier", "hour"].accuracy()[0, 0]
    assert table.widths.total == release[()].accuracy()


def test_whole_numbers_add_up_to_their_edges():
    for tables in released(
        ["carrier", "hour"], ["carrier", "origin"], "hour"
    ).cross_tables.values():
        (table,) = tables
        whole = table.rounded
        assert whole.dtype == np.int64
        assert (whole >= 0).all()
        assert np.array_equal(whole[:-1].sum(axis=0), whole[-1])
        if table.has_row_sums:
            assert np.array_equal(whole[:, :-1].sum(axis=1), whole[:, -1])


def test_one_axis_is_a_column_with_its_sum():
    release = released(["carrier", "origin"], "origin")
    (table,) = release.cross_tables["origin",]
    assert (table.down, table.across) == ("origin", "")
    assert table.rows == ("EWR", "JFK", ALL)
    assert table.columns == (crossing.COUNT,)
    assert table.estimates.shape == (3, 1)
    assert table.widths.total == release[()].accuracy()
    assert (table.widths.row_sums, table.widths.column_sums) == (None, None)


def test_the_total_is_one_number():
    (table,) = released(["carrier", "hour"])[()].cross_tables[()]
    assert table.rows == (ALL,)
    assert table.title == "Number of rows"
    assert table.estimates.shape == (1, 1)
    assert table.widths.inner is not None
    assert table.widths.total is None


def test_three_axes_are_a_table_for_each_cell_of_the_shortest():
    release = released(["origin", "carrier", "hour"])
    every, *slices = release.cross_tables["origin", "carrier", "hour"]
    assert every.title == "Number of rows by carrier and hour, every origin"
    assert [one.within for one in slices] == ["origin EWR", "origin JFK"]
    assert np.allclose(sum(one.estimates for one in slices), every.estimates)
    assert np.array_equal(sum(one.rounded for one in slices), every.rounded)
    assert np.array_equal(
        slices[1].estimates[:-1, :-1], release["hour", "carrier", "origin"].values[..., 1]
    )
    assert np.array_equal(
        slices[0].half_widths[:-1, -1], release["hour", "origin"].accuracy()[:, 0]
    )


def test_four_axes_are_not_laid_out():
    release = released(["origin", "carrier", "hour", "day"])
    assert release.cross_tables == {("origin", "carrier", "hour", "day"): ()}


def test_what_may_be_zero_is_marked_and_whole_numbers_say_how_far_off_they_are():
    (table,) = released(["carrier", "hour"], n=30).cross_tables["carrier", "hour"]
    assert np.array_equal(table.hatched, table.estimates <= table.half_widths)
    counts, sums = table.rounded_widths
    low = np.maximum(table.estimates - table.half_widths, 0)
    high = np.maximum(table.estimates + table.half_widths, 0)
    inner = np.s_[:-1, :-1]
    assert (table.rounded[inner] - low[inner] <= counts).all()
    assert (high[inner] - table.rounded[inner] <= counts).all()
    assert (high - table.rounded <= max(counts, sums)).all()


def test_a_large_family_is_not_rounded_unasked(monkeypatch):
    release = released(["carrier", "hour"])
    assert crossing.has_whole_numbers(release)
    monkeypatch.setattr(crossing, "MOST_ROUNDED", 14)
    assert not crossing.has_whole_numbers(release)
    (table,) = release.cross_tables["carrier", "hour"]
    assert table.rounded is None
    assert table.rounded_widths is None


def test_other_answers_have_no_such_tables():
    source = sf.source(np.array([[1.0]]), sf.Domain(x=sf.Interval(0, 2)), name="x")
    release = sf.Publisher(source, budget="1").release(sf.Histogram("x", bins=2), epsilon="1")
    assert release.cross_tables == {}
    assert release.members == {}


@pytest.mark.parametrize("uneven", [(0, 0), (0, -1), (-1, 0)])
def test_widths_that_differ_are_not_one(uneven):
    (table,) = released(["carrier", "hour"]).cross_tables["carrier", "hour"]
    table.half_widths[uneven] *= 1.01
    assert table.widths is None
