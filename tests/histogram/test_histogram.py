"""Histograms: forms of bins, accuracy, previews and travel."""

import datetime as dt

import numpy as np
import pytest

from sfumato.answers.codec import from_bytes, from_plain, to_bytes
from sfumato.audit.runs import Scripted, count
from sfumato.cube import Cube
from sfumato.domain import Categories, Domain, Interval, Keys
from sfumato.errors import UsageError
from sfumato.histogram import Histogram, HistogramRelease
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from support.canary import overheard, sightings
from support.statistics import check_coverage, masses, support

DOMAIN = Domain(
    age=Interval(0, 100),
    hour=Interval(0, 24, step=1),
    day=Interval("2013-01-01", "2013-01-15"),
    kind=Categories(["a", "b"], other="else"),
    shop=Keys(),
    brand=Keys(),
)
HALF = PureDP("0.5")


def answer(question, rows=(), cost=HALF, unit=None, noise=None):
    lattice = question.needs(DOMAIN).lattice
    cube = count(tuple(rows), lattice) if rows else _empty(lattice)
    return question.answer(cube, unit or Unit(), cost, noise or PublicSeed("histogram"))


def _empty(lattice):
    return Cube.of_cells(lattice, np.zeros((0, len(lattice.axes)), np.int64))


@pytest.mark.parametrize(
    ("axes", "bins", "shape"),
    [
        ("age", None, (10,)),
        ("age", 4, (4,)),
        ("age", [0, 18, 65, 100], (3,)),
        ("age", np.array([0.0, 18.0, 65.0]), (2,)),
        ("hour", None, (24,)),
        ("hour", 6, (6,)),
        ("day", None, (14,)),
        ("day", 2, (2,)),
        ("day", [dt.date(2013, 1, 1), "2013-01-08", dt.date(2013, 1, 15)], (2,)),
        ("kind", None, (3,)),
        (["age", "kind"], 5, (5, 3)),
        (["age", "hour"], [4, 6], (4, 6)),
        (["age", "kind", "hour"], [4, [0, 12, 24]], (4, 3, 2)),
        (["age", "hour"], {"hour": 6}, (10, 6)),
        (["hour", "age"], {"hour": 6, "age": [0, 50, 100]}, (6, 2)),
        (["age", "hour"], 3, (3, 3)),
    ],
    ids=str,
)
def test_forms_of_bins(axes, bins, shape):
    question = Histogram(axes, bins)
    assert question.needs(DOMAIN).lattice.shape == shape
    assert answer(question).values.shape == shape
    assert (
        from_plain({"axes": axes} | ({} if bins is None else {"bins": question.bins}), Histogram)
        == question
    )
    assert from_bytes(to_bytes(question), Histogram).needs(DOMAIN) == question.needs(DOMAIN)


@pytest.mark.parametrize(
    ("axes", "bins"),
    [
        ("age", [0, 50, 100]),
        ("age", [0, 0.5, 100]),
        (["age", "hour"], [4, [0, 12.5, 24]]),
        ("age", {"age": [0, 50, 100]}),
        ("age", {"age": [0, 0.5, 100]}),
    ],
    ids=str,
)
def test_a_question_has_the_same_bytes_after_a_round_trip(axes, bins):
    """Its digest is what a replay is recognised by."""
    question = Histogram(axes, bins)
    assert to_bytes(from_bytes(to_bytes(question), Histogram)) == to_bytes(question)


@pytest.mark.parametrize(
    ("axes", "bins"),
    [
        ("age", 1),
        ("age", 0),
        ("age", -3),
        ("age", [0, 100]),
        ("age", [0, 0, 100]),
        ("age", [0, 100, 50]),
        ("age", [-1, 50, 100]),
        ("age", [0, 50, 101]),
        ("age", [0, float("nan"), 100]),
        ("age", 2**26 + 1),
        ("age", {"hour": 4}),
        ("age", ["a", "b", "c"]),
        ("kind", {"kind": 3}),
        ("kind", 3),
        ("shop", [0, 1, 2]),
        (["age", "hour"], [4]),
        (["age", "hour"], [4, 5, 6]),
        (["shop", "brand"], None),
        ("nobody", None),
        (["age", "age"], None),
        ([], None),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_in_three_parts(axes, bins):
    with pytest.raises(UsageError) as refused:
        Histogram(axes, bins).needs(DOMAIN)
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


@pytest.mark.parametrize("bins", [True, "ten", 2.5, b"ten", {1, 2}], ids=repr)
def test_bins_of_another_kind(bins):
    with pytest.raises(UsageError):
        Histogram("age", bins)


def test_counts_land_where_the_edges_say():
    rows = (
        (0.0,),
        (17.999,),
        (18.0,),
        (64.9,),
        (65.0,),
        (100.0,),
        (-5.0,),
        (1e9,),
        (float("nan"),),
    )
    release = answer(Histogram("age", [0, 18, 65, 100]), rows, noise=Scripted())
    assert release.values.tolist() == [3, 2, 3]


def test_titles_and_names():
    release = answer(Histogram(["day", "kind"], {"day": 2}))
    assert release.title == "Histogram of day x kind"
    assert release.cell_names("day") == ["before 2013-01-08", "2013-01-08 and later"]
    assert release.cell_names("kind") == ["a", "b", "else"]
    assert "counts" not in repr(release)
    assert "NOT PRIVATE" in repr(release)
    frame = release.to_frame()
    assert frame.column_names == ["day", "day_lower", "day_upper", "kind", "count", "low", "high"]
    assert frame.num_rows == 6
    assert frame["day_lower"][0].as_py() == dt.date(2013, 1, 1)
    assert frame["kind"].to_pylist() == ["a", "b", "else"] * 2


@pytest.mark.parametrize("cost", [HALF, ApproxDP("0.5", "1e-6"), ZCDP("0.1")], ids=str)
@pytest.mark.parametrize("unit", [Unit(), Unit(rows_per_person=3, neighbours="replace")], ids=str)
def test_the_preview_is_what_the_release_then_has(cost, unit):
    question = Histogram(["age", "kind"], bins=7)
    preview, release = (
        question.preview(DOMAIN, unit, cost, rows=1000),
        answer(question, cost=cost, unit=unit),
    )
    assert preview.cells == release.counts.size
    assert preview.law == release.law
    assert preview.cost == release.guarantee.measure
    assert preview.unit == release.guarantee.unit
    for confidence in ("0.9", 0.95, "0.999"):
        for simultaneous in (False, True):
            half = release.accuracy(confidence, simultaneous)
            assert half.shape == release.values.shape
            assert set(half.reshape(-1).tolist()) == {preview.accuracy(confidence, simultaneous)}
    assert question.title in str(preview)


def test_a_release_travels_bit_for_bit(tmp_path):
    release = answer(Histogram(["age", "kind"], bins={"age": [0.0, 0.1, 100.0]}), cost=ZCDP("1/3"))
    again = from_bytes(release.save(tmp_path / "r.json").read_bytes(), HistogramRelease)
    assert again == release
    assert to_bytes(again) == to_bytes(release)
    assert again.counts.dtype == np.int64
    assert again.law == release.law
    assert again.guarantee == release.guarantee
    assert hash(again) == hash(release)


@pytest.mark.parametrize("cost", [HALF, ZCDP("0.1")], ids=str)
def test_coverage_of_ten_thousand_releases(cost):
    """Drawn as one release of 10^4 times as many cells, which has the same law; a public seed, so four standard errors will do."""
    releases, cells = 10_000, 20
    question = Histogram("age", bins=cells)
    release = answer(question, cost=cost)
    errors = np.abs(
        release.law.sample(releases * cells, PublicSeed("many")).reshape(releases, cells)
    )
    values = support(release.law)
    for simultaneous in (False, True):
        half = int(release.accuracy("0.95", simultaneous)[0])
        one = float(masses(release.law, values)[np.abs(values) <= half].sum())
        held = (errors <= half).all(axis=1) if simultaneous else (errors <= half).reshape(-1)
        exact = one**cells if simultaneous else one
        assert exact >= 0.95 - 1e-9
        check_coverage(int(held.sum()), held.size, exact, near_miss=0.02, false_alarm=6.3e-5)


def test_nothing_true_is_shown():
    """The true count of the canary's cell is nowhere, whatever is done with the release or raised on the way."""
    true = 8_675_309
    question = Histogram("age", bins=2)
    cube = Cube(question.needs(DOMAIN).lattice, np.array([true, 0]))
    release = question.answer(cube, Unit(), PureDP("0.001"), PublicSeed("canary"))
    assert true not in release.counts
    assert not sightings(
        true,
        release,
        release.guarantee,
        release.values,
        release.to_frame().to_pylist(),
        cube,
        question,
    )
    assert not overheard(true, lambda: release.accuracy("2"))
    assert not overheard(true, lambda: release.save("/nowhere/at/all"))
    assert not overheard(
        true, lambda: question.answer(cube, Unit(), PureDP("1e-30"), PublicSeed("canary"))
    )
