"""Public totals are read as people write them, and refused where they cannot be true."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from sfumato.domain import Categories, Domain, Interval
from sfumato.errors import UsageError
from sfumato.lattice import LatticeAxis
from sfumato.privacy.unit import Unit
from sfumato.tables.nesting import Nesting
from sfumato.tables.totals import (
    PublicTotal,
    assumption,
    plain_totals,
    require_agreement,
    require_all_rows,
)

DOMAIN = Domain(
    region=Categories(["north", "south"], other="else", missing="not known"),
    sex=Categories(["f", "m"], other="else"),
    ward=Categories(["a", "b"]),
    age=Interval(0, 90, missing=True),
    stay=Interval(0, 90),
)


def axis(name: str) -> LatticeAxis:
    from sfumato.histogram.question import Histogram

    (found,) = Histogram(name).needs(DOMAIN).lattice.axes
    return found


REGIONS = {"north": 5, "south": 3, "else": 0, "not known": 1}


def test_totals_are_read_by_labels_in_order_and_as_one_number() -> None:
    total, regions, crossed = plain_totals(
        {
            (): np.int64(9),
            "region": REGIONS,
            ("region", "ward"): np.arange(8).reshape(4, 2),
        }
    )
    assert total.on(()).tolist() == 9
    assert regions.on([axis("region")]).tolist() == [5, 3, 0, 1]
    assert crossed.on([axis("region"), axis("ward")]).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    reversed_labels = dict(reversed(REGIONS.items()))
    (again,) = plain_totals({"region": reversed_labels})
    assert again.on([axis("region")]).tolist() == [5, 3, 0, 1]
    assert plain_totals(None) == ()
    assert plain_totals((total, regions)) == (total, regions)
    assert msgspec.json.decode(msgspec.json.encode(regions), type=PublicTotal) == regions


def test_cells_of_several_axes_are_named_by_tuples() -> None:
    (crossed,) = plain_totals(
        {("ward", "sex"): {(w, s): 1 for w in "ab" for s in ("m", "f", "else")}}
    )
    assert crossed.on([axis("ward"), axis("sex")]).tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("given", "obstacle"),
    [
        ([1, 2], "counts by the axes"),
        ({1: 2}, "named by a text"),
        ({"region": {"north": -1}}, "below 0"),
        ({"region": {"north": 2**60}}, "above 2"),
        ({"region": {"north": 1.5}}, "1.5 is not a whole number"),
        ({"region": {"north": "5"}}, "'5' is not a whole number"),
        ({"region": {"north": True}}, "True is not a whole number"),
        ({("region", "region"): 5}, "names an axis twice"),
    ],
)
def test_what_cannot_be_a_total_is_refused(given: object, obstacle: str) -> None:
    with pytest.raises(UsageError, match=obstacle):
        plain_totals(given)


@pytest.mark.parametrize(
    ("counts", "obstacle"),
    [
        ([1, 2], "has 2 counts, and the table has 4 cells"),
        ({"north": 1, "south": 2, "else": 0}, "the cell not known has no count"),
        (REGIONS | {"nort": 1}, "region has no cell 'nort'.*'north'"),
        ({("north", "f"): 1}, "one for each axis"),
    ],
)
def test_cells_that_do_not_match_are_refused(counts: object, obstacle: str) -> None:
    (total,) = plain_totals({"region": counts})
    with pytest.raises(UsageError, match=obstacle):
        total.on([axis("region")])


def test_a_cell_that_is_named_twice_is_refused() -> None:
    total = PublicTotal(("ward",), (1, 2, 3), (("a",), ("b",), ("a",)))
    with pytest.raises(UsageError, match="a cell has two counts"):
        total.on([axis("ward")])


def test_totals_are_refused_where_rows_may_be_left_out() -> None:
    totals = plain_totals({(): 9})
    require_all_rows(totals, [axis("region"), axis("age")], Unit())
    require_all_rows((), [axis("stay")], Unit(4, person="rider"))
    with pytest.raises(UsageError, match="each rider has limited rows"):
        require_all_rows(totals, [axis("region")], Unit(4, person="rider"))
    for name, reason in {
        "ward": "ward drops rows without a value or with an unlisted label",
        "sex": "sex drops rows without a value",
        "stay": "stay drops rows without a value",
    }.items():
        with pytest.raises(UsageError, match=reason):
            require_all_rows(totals, [axis("region"), axis(name)], Unit())


def test_totals_that_contradict_each_other_are_refused() -> None:
    nesting = Nesting.plain([2, 3])
    total, rows, columns = plain_totals({(): 6, "ward": [1, 5], "sex": [3, 2, 1]})
    agreeing = [
        (total, (0, 0), np.array([[6]])),
        (rows, (1, 0), np.array([[1], [5]])),
        (columns, (0, 1), np.array([[3, 2, 1]])),
    ]
    require_agreement(agreeing, nesting)
    (more,) = plain_totals({"sex": [3, 3, 1]})
    with pytest.raises(UsageError, match="all rows and sex: they contradict each other"):
        require_agreement([agreeing[0], (more, (0, 1), np.array([[3, 3, 1]]))], nesting)


def test_the_guarantee_names_what_it_is_apart_from() -> None:
    said = assumption(plain_totals({(): 9, ("region", "sex"): [0] * 12}))
    assert said.startswith("Apart from the public totals (all rows; region x sex):")
