"""What is made of a histogram afterwards: statistics whose intervals hold, tables that agree, bins of a width, missing values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.runs import count
from sfumato.cube import Cube
from sfumato.data import count as data_count
from sfumato.histogram import moments
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random import PublicSeed

DOMAIN = sf.Domain(age=sf.Interval(0, 100), kind=sf.Categories(["a", "b", "c"]))
DRAW = np.random.default_rng(7)
AGES = np.clip(DRAW.gamma(3, 12, 4000), 0, 100)
KINDS = DRAW.choice(3, 4000, p=[0.7, 0.25, 0.05])
QUESTION = sf.Histogram(["age", "kind"], bins=20)
LATTICE = QUESTION.needs(DOMAIN).lattice
CUBE = Cube.of_cells(LATTICE, np.stack([LATTICE.axes[0].locate(AGES.copy()), KINDS], axis=1))  # type: ignore[union-attr]
RUNS = 120


@pytest.fixture(scope="module", params=[sf.PureDP("0.2"), sf.ZCDP("0.005")], ids=str)
def releases(request: pytest.FixtureRequest) -> list[sf.HistogramRelease]:
    noise = PublicSeed(f"moments {request.param}")
    return [QUESTION.answer(CUBE, sf.Unit(), request.param, noise) for _ in range(RUNS)]


TRUTHS: dict[str, tuple[float, Callable[[sf.HistogramRelease], sf.Estimate]]] = {
    "mean": (float(AGES.mean()), lambda r: r.mean("age")),
    "median": (float(np.median(AGES)), lambda r: r.median("age")),
    "variance": (float(AGES.var()), lambda r: r.variance("age")),
    "herfindahl": (
        float((np.bincount(KINDS) ** 2).sum() / 4000**2),
        lambda r: r.herfindahl("kind"),
    ),
    "rate": (float((KINDS[AGES < 25] == 0).mean()), lambda r: r.rate(*_young_of_the_first_kind())),
    "total": (4000, lambda r: r.total()),
}


def _young_of_the_first_kind() -> tuple[np.ndarray, np.ndarray]:
    young = np.arange(20)[:, None] < 5
    return young & (np.arange(3) == 0), young & np.ones(3, bool)


@pytest.mark.parametrize("what", TRUTHS)
def test_intervals_hold(what: str, releases: list[sf.HistogramRelease]) -> None:
    """At least as often as they say: a 95 % interval that held 92 % of the time would fail once in ten thousand runs or less."""
    truth, ask = TRUTHS[what]
    found = [ask(release) for release in releases]
    assert sum(e.low <= truth <= e.high for e in found) >= 0.93 * RUNS
    assert all(e.low <= e.value <= e.high for e in found)
    spread = {
        "mean": 10,
        "median": 15,
        "variance": 400,
        "herfindahl": 0.5,
        "rate": 0.4,
        "total": 1000,
    }
    assert np.median([e.high - e.low for e in found]) < spread[what]  # and they say something


def test_shares_hold_one_by_one_and_all_at_once(releases: list[sf.HistogramRelease]) -> None:
    truth = CUBE.counts.reshape(20, 3) / 4000
    some = releases[::3]
    each = [release.shares() for release in some]
    assert np.mean([((e.low <= truth) & (truth <= e.high)).mean() for e in each]) >= 0.95
    every = [release.shares(simultaneous=True) for release in some]
    assert sum(bool(((e.low <= truth) & (truth <= e.high)).all()) for e in every) >= 0.93 * len(
        every
    )
    assert all(abs(e.value.sum() - 1) < 0.5 for e in each)


def test_intervals_of_too_small_a_scale_do_not_hold() -> None:
    law, half = (
        DiscreteLaplace(1 / sf.PureDP("0.05").epsilon),
        DiscreteLaplace(1 / sf.PureDP("0.2").epsilon),
    )
    noise, held = PublicSeed("twin"), 0
    for _ in range(100):
        part, rest = 1000 + int(law.sample(4, noise).sum()), 3000 + int(law.sample(16, noise).sum())
        _, low, high = moments.ratio(part, part + rest, (4, 16), half, 0.05)
        held += low <= 0.25 <= high
    assert held < 80


def test_noiseless_statistics_are_right() -> None:
    edges = np.array([0.0, 1, 2, 3])
    bins = moments.BinnedCounts(
        edges[:-1], edges[1:], np.array([1, 2, 1]), DiscreteLaplace(1 / sf.PureDP(1000).epsilon)
    )
    assert moments.mean(bins, 0.05)[0] == 1.5
    assert moments.mean(bins, 0.05)[1:] == pytest.approx((1.0, 2.0), abs=1e-6)
    assert moments.median(bins, 0.05) == (1.5, 1.0, 2.0)
    assert moments.variance(bins, 0.05)[0] == 0.5
    assert moments.herfindahl(np.array([1, 2, 1]), bins.law, 1, 0.05)[0] == pytest.approx(6 / 16)


def test_counts_that_say_nothing_give_intervals_that_say_so() -> None:
    empty = QUESTION.answer(
        Cube.of_cells(LATTICE, np.zeros((0, 2), np.int64)),
        sf.Unit(),
        sf.PureDP("0.01"),
        PublicSeed("empty"),
    )
    for ask in (empty.mean, empty.median):
        assert (ask("age").low, ask("age").high) == (0, 100)
    assert (empty.herfindahl("kind").low, empty.herfindahl("kind").high) == (1 / 3, 1)


def test_marginals_agree(releases: list[sf.HistogramRelease]) -> None:
    release = releases[0]
    ages, kinds = release.marginal("age"), release.marginal("kind")
    assert ages.value.sum() == kinds.value.sum() == release.total().value == release.values.sum()
    assert (release.marginal(["kind", "age"]).value == release.values.T).all()
    assert (release.marginal(["age", "kind"]).low == release.interval()[0]).all()
    wide = release.marginal("kind", simultaneous=True)
    assert (wide.low < kinds.low).all()
    with pytest.raises(sf.UsageError, match="kind"):
        release.marginal("kinds")


def test_a_consistent_table_has_the_same_total_and_no_negative_count(
    releases: list[sf.HistogramRelease],
) -> None:
    for release in releases[:20]:
        table = release.consistent()
        assert table.dtype == np.int64
        assert table.min() >= 0
        assert table.sum() == max(0, release.values.sum())
        lifted = release.values[table > 0] - table[table > 0]
        assert (
            np.ptp(lifted) <= 1
        )  # the projection takes the same from each cell that stays, but for rounding


def test_refusals(releases: list[sf.HistogramRelease]) -> None:
    release = releases[0]
    for ask in (
        release.mean,
        lambda: release.mean("kind"),
        lambda: release.rate(False),
        lambda: release.kept(3),
    ):
        with pytest.raises(sf.UsageError):
            ask()


@pytest.mark.parametrize(
    ("axis", "width", "edges"),
    [
        (sf.Interval(0, 100), 25, [0, 25, 50, 75, 100]),
        (sf.Interval(0, 100), "30", [0, 30, 60, 90, 100]),
        (sf.Interval(0, 1), 0.1, [i / 10 for i in range(11)]),
        (sf.Interval("2013-01-01", "2013-01-15"), 7, [15706, 15713, 15720]),
        (
            sf.Interval("2013-01-01T00:00", "2013-01-01T03:00"),
            3600,
            [15706 * 86400e6 + i * 3600e6 for i in range(4)],
        ),
    ],
    ids=str,
)
def test_bins_of_a_width(axis: sf.Interval, width: object, edges: list[float]) -> None:
    domain = sf.Domain(x=axis)
    for question in (sf.Histogram("x", width=width), sf.Histogram("x", width={"x": width})):
        assert question.needs(domain).lattice.axes[0].edges() == pytest.approx(edges, abs=1e-9)
    low = question.needs(domain).lattice.axes[0]
    assert low.locate(np.array([0.3])).tolist() == [3] if axis.upper == 1 else True


@pytest.mark.parametrize(
    "more",
    [
        {"width": 0},
        {"width": 100},
        {"width": 1, "bins": 3},
        {"width": "a"},
        {"width": {"kind": 1}},
        {"width": 1e-9},
    ],
)
def test_widths_that_make_no_sense(more: dict) -> None:
    with pytest.raises(sf.UsageError):
        sf.Histogram("age", **more).needs(DOMAIN)


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
