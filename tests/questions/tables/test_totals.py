"""Public totals are read as people write them, and refused where they cannot be true."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.loading import stored_releases
from sfumato.basics.structs import to_bytes
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.domain.lattice import GridAxis, LabelAxis, Lattice, LatticeAxis
from sfumato.errors import UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.tables.levels import Chains
from sfumato.questions.tables.question import Tables
from sfumato.questions.tables.release import TablesRelease
from sfumato.questions.tables.totals import (
    PublicTotal,
    assumption,
    known_tables,
    plain_totals,
    require_all_rows,
    require_no_persons,
)
from sfumato.random.bits import current
from sfumato.testing import deterministic

DOMAIN = Domain(
    region=Categories(["north", "south"], other="else", missing="not known"),
    sex=Categories(["f", "m"], other="else"),
    ward=Categories(["a", "b"]),
    age=Interval(0, 90, missing=True),
    stay=Interval(0, 90),
)


def axis(name: str) -> LatticeAxis:
    from sfumato.questions.histogram.question import Histogram

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


def test_bins_of_whole_numbers_are_named_by_them_or_by_their_edges() -> None:
    hours = GridAxis("hour", 0.0, 3.0, 3, snap=True, step=1.0)
    for names in (("0 and below", "1", "2 and above"), ("below 1", "1 to 2", "2 and above")):
        (total,) = plain_totals({"hour": dict(zip(names, (5, 6, 7), strict=True))})
        assert total.on([hours]).tolist() == [5, 6, 7]


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
    require_all_rows(totals, [axis("region"), axis("age")])
    require_all_rows((), [axis("stay")])
    require_no_persons(totals, Unit())
    require_no_persons((), Unit(4, person="rider"))
    with pytest.raises(UsageError, match="each person has limited rows"):
        require_no_persons(totals, Unit(4, person="rider"))
    for name, reason in {
        "ward": "ward drops rows without a value or with an unlisted label",
        "sex": "sex drops rows without a value",
        "stay": "stay drops rows without a value",
    }.items():
        with pytest.raises(UsageError, match=reason):
            require_all_rows(totals, [axis("region"), axis(name)])


OPEN = Lattice(
    (
        LabelAxis("ward", ("a", "else", "not known"), other=True, missing=True),
        LabelAxis("sex", ("f", "else", "not known"), other=True, missing=True),
    )
)


def test_totals_are_tables_of_the_family_in_its_order_of_axes() -> None:
    crossed = np.arange(9).reshape(3, 3)
    given = {(): 36, ("sex", "ward"): crossed.T, "sex": crossed.sum(axis=0).tolist()}
    found = known_tables(plain_totals(given), Chains.of(OPEN))
    assert list(found) == [(0, 0), (1, 1), (0, 1)]
    np.testing.assert_array_equal(found[1, 1], crossed)
    assert found[0, 1].shape == (1, 3)
    assert found[0, 0].item() == 36


@pytest.mark.parametrize(
    ("given", "obstacle"),
    [
        ({(): 6, "ward": [1, 5, 1]}, "all rows and ward: they contradict each other"),
        ({"ward": [1, 2, 3], "sex": [2, 2, 3]}, "ward and sex: they contradict each other"),
        ({"wards": [1, 2, 3]}, "no table has the axis wards; did you mean 'ward'"),
        ({("ward", "sex"): [0] * 9, ("sex", "ward"): [0] * 9}, "given twice"),
    ],
)
def test_totals_that_do_not_fit_are_refused(given: dict[object, object], obstacle: str) -> None:
    with pytest.raises(UsageError, match=obstacle):
        known_tables(plain_totals(given), Chains.of(OPEN))


# --- in a family ----------------------------------------------------------------------------------

TRUTH = np.random.default_rng(2).poisson(40, (3, 3))
WARDS = {"ward": TRUTH.sum(axis=1).tolist(), (): int(TRUTH.sum())}
COSTS = [ZCDP("0.125"), PureDP(Fraction(1, 2)), ApproxDP(Fraction(1), Fraction(1, 10**6))]


def answered(question: Tables, cost: CentralMeasure) -> TablesRelease:
    return question.answer(Cube(OPEN, TRUTH.reshape(-1)), Unit(), cost, current())


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_tables_have_public_totals_exactly_and_spend_nothing_on_them(cost: CentralMeasure) -> None:
    plain = answered(Tables([["ward", "sex"], "sex"]), cost)
    known = answered(Tables([["ward", "sex"], "sex"], totals=WARDS), cost)
    np.testing.assert_allclose(known["ward"].values, TRUTH.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(known[()].values, TRUTH.sum(), atol=1e-9)
    np.testing.assert_array_equal(known["ward"].published(), TRUTH.sum(axis=1))
    np.testing.assert_array_equal(known["ward", "sex"].published().sum(axis=1), TRUTH.sum(axis=1))
    assert known["ward"].accuracy().max() == 0
    assert (known["sex"].accuracy() < plain["sex"].accuracy()).all()
    measured = {each.margin for each in known.measured}
    assert not measured & {(0, 0), (1, 0)}
    assert "Apart from the public totals (ward; all rows)" in str(known.guarantee)
    again = stored_releases(to_bytes([known]))[0]
    np.testing.assert_array_equal(again.values, known.values)


def test_estimates_with_totals_are_those_of_constrained_least_squares() -> None:
    """Against dense least squares in which the totals weigh a million times as much."""
    known = answered(Tables([["ward", "sex"], "sex"], totals=WARDS), PureDP(Fraction(1)))
    margins = {
        (1, 1): np.eye(9),
        (0, 1): np.kron(np.ones((1, 3)), np.eye(3)),
        (1, 0): np.kron(np.eye(3), np.ones((1, 3))),
        (0, 0): np.ones((1, 9)),
    }
    rows, wanted = [], []
    start = 0
    for each in known.measured:
        matrix = margins[each.margin]
        noisy = known.noisy[start : start + len(matrix)]
        start += len(matrix)
        rows.append(matrix / np.sqrt(each.law.variance))
        wanted.append(noisy / np.sqrt(each.law.variance))
    rows.append(1e6 * margins[1, 0])
    wanted.append(1e6 * TRUTH.sum(axis=1))
    expected, *_ = np.linalg.lstsq(np.vstack(rows), np.concatenate(wanted), rcond=None)
    np.testing.assert_allclose(known["ward", "sex"].values.reshape(-1), expected, atol=1e-4)


def test_intervals_with_totals_hold_as_often_as_they_say() -> None:
    question = Tables([["ward", "sex"], "sex"], totals=WARDS)
    held = []
    with deterministic(3):
        for _ in range(200):
            low, high = answered(question, ZCDP("0.02"))["sex"].interval("0.9")
            held.append((low <= TRUTH.sum(axis=0)) & (TRUTH.sum(axis=0) <= high))
    share = np.mean(held, axis=0)
    assert share.min() > 0.9 - 4 * np.sqrt(0.09 / 200)
    assert share.max() < 0.9 + 4.5 * np.sqrt(0.09 / 200)


def test_a_preview_names_the_totals_and_is_as_accurate_as_the_release() -> None:
    wards, sexes = (
        Categories(["a"], other="else", missing="not known"),
        Categories(["f"], other="else", missing="not known"),
    )
    question = Tables([["ward", "sex"], "sex"], totals=WARDS)
    preview = question.preview(Domain(ward=wards, sex=sexes), Unit(), COSTS[0])
    assert "has the public totals of ward, all rows exactly" in "\n".join(preview.lines())
    release = answered(question, COSTS[0])
    assert preview.accuracy_of(1) == release["sex"].accuracy().max()


def test_a_question_keeps_its_totals_in_one_form() -> None:
    question = Tables(["ward"], totals={"": 6})
    assert question.totals == (PublicTotal((), (6,)),)
    stored = msgspec.json.encode(question)
    assert msgspec.json.decode(stored, type=Tables) == question
    plain = b'{"type":"tables","tables":["ward"],"totals":{"ward":{"a":1},"":1}}'
    read = msgspec.json.decode(plain, type=Tables)
    assert read.public_totals == plain_totals({"ward": {"a": 1}, (): 1})
    assert b"totals" not in msgspec.json.encode(Tables(["ward"], totals={}))


def test_totals_are_refused_before_the_charge() -> None:
    table = pa.table({"region": ["north"], "ward": ["a"]})
    source = sf.source(table, DOMAIN, name="visits")
    with sf.Publisher(source, budget="1") as publisher:
        for totals, obstacle in (
            ({"region": {**REGIONS, "north": -1}}, "below 0"),
            ({"region": REGIONS, (): 8}, "contradict each other"),
            ({"region": {"north": 5}}, "has no count"),
        ):
            with pytest.raises(UsageError, match=obstacle):
                publisher.release(sf.Tables(["region"], totals=totals), epsilon="1")
        with pytest.raises(UsageError, match="ward drops rows"):
            publisher.release(sf.Tables([["region", "ward"]], totals={(): 9}), epsilon="1")
        with pytest.raises(UsageError, match="all of its tables follow from its public totals"):
            publisher.release(sf.Tables(["region", []], totals={"region": REGIONS}), epsilon="1")
        assert publisher.remaining == 1
    limited = sf.source(table, DOMAIN, name="visits", person="ward")
    with (
        sf.Publisher(limited, budget="1") as publisher,
        pytest.raises(UsageError, match="each person has limited rows"),
    ):
        publisher.release(sf.Tables(["region"], totals={(): 9}), epsilon="1")


def test_totals_that_were_changed_in_a_file_are_refused() -> None:
    release = answered(Tables([["ward", "sex"]], totals=WARDS), ZCDP("0.1"))
    known = release.public_totals[0]
    for wrong in (
        msgspec.structs.replace(known, counts=known.counts[:-1]),
        msgspec.structs.replace(known, counts=-known.counts),
        msgspec.structs.replace(known, margin=(1,)),
        msgspec.structs.replace(known, margin=(2, 0)),
    ):
        with pytest.raises(UsageError, match="its numbers do not fit its tables"):
            msgspec.structs.replace(release, totals=(wrong,))


def test_totals_of_releases_are_reconciled_and_refused_if_they_differ() -> None:
    receipt = sf.Receipt("a", "k", "d", 1, "h1", "2026", "rho = 0.1", "1 of 1", "v, version 1", "0")
    parts = []
    for entry, totals in enumerate((WARDS, {(): WARDS[()]}, {(): 1}), 1):
        release = answered(Tables([["ward", "sex"], "sex"], totals=totals), ZCDP("0.1"))
        paid = msgspec.structs.replace(receipt, entry=entry, entry_hash=f"h{entry}")
        parts.append(msgspec.structs.replace(release, receipt=paid))
    both = sf.reconcile(parts[:2])
    np.testing.assert_array_equal(both["ward"].published(), TRUTH.sum(axis=1))
    assert len(both.public_totals) == 2
    with pytest.raises(UsageError, match="public totals contradict each other"):
        sf.reconcile(parts[1:])


def test_the_guarantee_names_what_it_is_apart_from() -> None:
    said = assumption(plain_totals({(): 9, ("region", "sex"): [0] * 12}))
    assert said.startswith("Apart from the public totals (all rows; region x sex):")
