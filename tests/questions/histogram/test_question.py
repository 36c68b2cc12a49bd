"""Histograms as they are asked: titles, previews, travel, refusals, and what they truly spend."""

from __future__ import annotations

import datetime as dt
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from questions.histogram.tables import DOMAIN, HALF, answer
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import count, neighbours, of_question
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.data import Source
from sfumato.data import count as data_count
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Limits, Neighbours, Unit
from sfumato.questions.histogram import Histogram, HistogramRelease
from sfumato.random import PublicSeed
from support.canary import overheard, sightings


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
    """A replay is recognised by the digest of the question's bytes."""
    question = Histogram(axes, bins)
    assert to_bytes(from_bytes(to_bytes(question), Histogram)) == to_bytes(question)


def test_titles_and_names():
    release = answer(Histogram(["day", "kind"], {"day": 2}))
    assert release.title == "Histogram of day x kind"
    assert release.cell_names("day") == ["2013-01-07 and earlier", "2013-01-08 and later"]
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
    preview = question.preview(DOMAIN, unit, cost, rows=1000)
    release = answer(question, cost=cost, unit=unit)
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


def test_nothing_true_is_shown():
    """The true count of the canary's cell is in no artefact and in no error."""
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


def test_missing_values_are_dropped_or_have_a_place_of_their_own() -> None:
    nan = float("nan")
    dropped = sf.Domain(x=sf.Interval(0, 3, step=1))
    kept = sf.Domain(x=sf.Interval(-1, 3, step=1, missing=-1))
    rows = ((nan,), (0.5,), (nan,), (2.5,))
    assert count(rows, sf.Histogram("x").needs(dropped).lattice).counts.tolist() == [1, 0, 1]
    assert count(rows, sf.Histogram("x").needs(kept).lattice).counts.tolist() == [2, 1, 0, 1]
    assert count(rows, sf.Histogram("x", bins=[-1, 0, 3]).needs(kept).lattice).counts.tolist() == [
        2,
        2,
    ]
    words = sf.Domain(
        k=sf.Categories(["a", "b"], other="else", missing="none"),
        f=sf.Categories([False, True], missing="none"),
    )
    data = {"k": ["a", None, "zzz", None], "f": [True, None, None, False]}
    import pyarrow as pa

    cubes = data_count(
        sf.source(pa.table(data), words),
        [sf.Histogram("k").needs(words).lattice, sf.Histogram("f").needs(words).lattice],
    )
    assert [cube.counts.tolist() for cube in cubes] == [[1, 0, 1, 2], [1, 1, 2]]


def test_stand_ins_lie_within_the_bounds() -> None:
    with pytest.raises(sf.UsageError):
        sf.Interval(0, 1, missing=2)
    with pytest.raises(sf.UsageError):
        sf.Interval("2013-01-01", "2014-01-01", missing=3)
    with pytest.raises(sf.UsageError):
        sf.Categories(["a"], missing="a")
    assert sf.Interval("2013-01-01", "2014-01-01", missing=dt.date(2013, 1, 1)).stand_in == 15706


# Exact audits over all small neighbours, by the production code.
SMALL_DOMAIN = Domain(x=Interval(0, 3, step=1))
EDGE_CASES = ((0.5,), (1.0,), (3.0,), (float("nan"),))
UNITS = [
    Unit(rows_per_person=r, neighbours=neighbours)
    for r in (1, 3)
    for neighbours in ("add-remove", "replace")
]
QUESTIONS = [
    Histogram("x", bins=3),
    Histogram("x", bins=[0, 1, 3]),
    Histogram("x", bins=[0.5, 1, 2]),
]


def questions_and_units():
    """Equal bins with each unit; given edges with the least and the largest."""
    for question, unit in itertools.product(QUESTIONS, UNITS):
        is_corner = question is QUESTIONS[0] or unit in (UNITS[0], UNITS[-1])
        marks = [] if is_corner else [pytest.mark.deep]
        yield pytest.param(question, unit, id=f"{unit}-{question.bins}", marks=marks)


@pytest.mark.parametrize(("question", "unit"), list(questions_and_units()))
def test_epsilon_is_spent_exactly(unit, question):
    mechanism = of_question(question, SMALL_DOMAIN, unit, PureDP("0.7"))
    epsilon = pure_loss(mechanism, neighbours(EDGE_CASES, unit, others=1)).loss
    assert epsilon <= 0.7 * (1 + 1e-9)
    assert epsilon == pytest.approx(0.7, rel=0.01)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_rho_is_spent_exactly(unit):
    mechanism = of_question(QUESTIONS[0], SMALL_DOMAIN, unit, ZCDP("0.05"))
    rho = renyi_loss(mechanism, neighbours(EDGE_CASES[:3], unit, others=0)).loss
    assert rho <= 0.05 * (1 + 1e-9)
    assert rho == pytest.approx(0.05, rel=0.01)


def test_noise_for_one_row_is_not_enough_for_three():
    mechanism = of_question(QUESTIONS[0], SMALL_DOMAIN, Unit(), PureDP("0.7"))
    pairs = neighbours(EDGE_CASES, Unit(rows_per_person=3), others=0)
    assert pure_loss(mechanism, pairs).loss == pytest.approx(3 * 0.7)
    concentrated = of_question(QUESTIONS[0], SMALL_DOMAIN, Unit(), ZCDP("0.05"))
    assert renyi_loss(concentrated, pairs).loss == pytest.approx(9 * 0.05, rel=0.01)


# --- counting persons -----------------------------------------------------------------------------

PERSONS = Histogram("x", count="persons")
RIDES = pa.table({"x": [0, 0, 0, 1, 1, 2, 3], "rider": [1, 1, 1, 1, 2, 2, 3]})
FOUR = Domain(x=Interval(0, 4, step=1))


def rides(limit: int = 4, neighbours: Neighbours = "add-remove") -> Source:
    return sf.source(RIDES, FOUR, "rider", limit, neighbours, name="rides")


def test_persons_are_counted_once_in_a_cell() -> None:
    publisher = sf.Publisher(rides(), budget=10**7)
    rows, persons = publisher.release([Histogram("x"), PERSONS], epsilon=10**6)
    assert rows.values.tolist() == [3, 2, 1, 1]
    assert persons.values.tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize(("neighbours", "times"), [("add-remove", 1), ("replace", 2)])
def test_the_noise_for_persons_is_that_of_the_cells_they_are_counted_in(
    neighbours: Neighbours, times: int
) -> None:
    unit = rides(3, neighbours).unit
    pure = sf.preview(PERSONS, domain=FOUR, unit=unit, epsilon="1")
    concentrated = sf.preview(PERSONS, domain=FOUR, unit=unit, rho=".5")
    assert pure.law == DiscreteLaplace(Fraction(3 * times))
    assert concentrated.law == DiscreteGaussian(Fraction(3 * times))
    release = sf.Publisher(rides(3, neighbours), budget=1).release(PERSONS, epsilon=1)
    assert release.law == pure.law
    assert release.guarantee.unit == unit.counting_persons(3) == pure.unit


def test_nobody_is_counted_in_more_cells_than_there_are() -> None:
    unit = rides(12).unit
    few = sf.preview(PERSONS, domain=FOUR, unit=unit, epsilon="1")
    assert few.law == DiscreteLaplace(Fraction(4))
    assert few.unit == unit.counting_persons(4)
    assert sf.preview(PERSONS, domain=FOUR, unit=unit, rho=".5").law == DiscreteGaussian(
        Fraction(4)
    )
    # How many keys there are is not known.
    keys = sf.preview(
        Histogram("x", count="persons"),
        domain=Domain(x=sf.Keys()),
        unit=unit,
        epsilon=1,
        delta="1e-6",
    )
    assert keys.unit == unit.counting_persons(12)
    published = sf.Publisher(rides(12), budget=1).release(PERSONS, epsilon=1)
    assert published.law == few.law
    assert "in at most 4 cells" in published.guarantee.sentence()


def test_limits_by_cell_allow_less_in_few_cells() -> None:
    unit = Unit(100, "add-remove", "rider", Limits(norm_per_person=10))
    pure = sf.preview(Histogram("x"), domain=FOUR, unit=unit, epsilon="1")
    assert pure.law == DiscreteLaplace(Fraction(20))
    # The norm is what the noise of rho follows, so the unit is the source's.
    concentrated = sf.preview(Histogram("x"), domain=FOUR, unit=unit, rho=".5")
    assert concentrated.law == DiscreteGaussian(Fraction(100))
    assert concentrated.unit == unit


def test_a_release_of_persons_speaks_of_persons() -> None:
    publisher = sf.Publisher(rides(3), budget=1)
    seen = str(publisher.preview(PERSONS, epsilon=1, rows=7))
    release = publisher.release(PERSONS, epsilon=1)
    assert release.title == "Histogram of persons by x"
    sentence = "any one person counted at most once in a cell, and in at most 3 cells"
    assert sentence in seen
    assert sentence in release.guarantee.sentence()
    assert "of the persons counted (each in at most 3 cells)" in seen
    assert "of average size" not in seen
    assert (
        "persons in more cells are missing from the others, and how many is not known."
        in release.guarantee.counted
    )
    assert "rows counted" not in str(release.guarantee)


def test_what_is_counted_is_stored_only_if_it_is_persons() -> None:
    assert b"count" not in to_bytes(Histogram("x"))
    assert b'"count":"persons"' in to_bytes(PERSONS)
    assert from_bytes(to_bytes(PERSONS), Histogram) == PERSONS
    assert "count" not in HistogramRelease.__struct_fields__


def test_persons_that_nobody_names_are_refused_before_the_charge() -> None:
    publisher = sf.Publisher(sf.source(RIDES, FOUR, rows_per_person=4, name="t"), budget=1)
    for asking in (publisher.preview, publisher.release):
        with pytest.raises(UsageError, match="no column names the persons"):
            asking(PERSONS, epsilon=1)  # type: ignore[operator]
    assert publisher.remaining == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [({"count": "people"}, "it is unknown"), ({"records": 10}, "by numbers of rows")],
)
def test_what_cannot_be_counted_by_persons_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Histogram(**({"axes": "x", "count": "persons"} | more))


def test_keys_may_be_selected_by_their_persons() -> None:
    shops = pa.table({"shop": ["a"] * 400 + ["b"] * 400, "p": [1] * 400 + list(range(400))})
    src = sf.source(shops, Domain(shop=sf.Keys()), person="p", rows_per_person=2, name="shops")
    question = Histogram("shop", count="persons")
    release = sf.Publisher(src, budget=sf.ApproxDP("1", "1e-6")).release(
        question, epsilon=1, delta="1e-6"
    )
    # One person alone has all rows of shop a.
    assert release.cell_names("shop") == ["b"]
    assert release.guarantee.unit.counts_persons
