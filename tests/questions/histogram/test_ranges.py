"""Histograms whose noise is made for ranges: releases, intervals, and what is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.cube import Cube
from sfumato.privacy.measures import CentralMeasure
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.histogram.ranges import RangesPreview
from sfumato.questions.histogram.strategies import RangeMatrix, RangeTree
from sfumato.random import PublicSeed
from support.statistics import covers

DOMAIN = sf.Domain(
    age=sf.Interval(0, 64, step=1), kind=sf.Categories(["a", "b", "c"]), pay=sf.Interval(0, 9)
)
QUESTION = sf.Histogram(["kind", "age"], workload="ranges")
ALONE = sf.Histogram(["kind", "age"])
LATTICE = QUESTION.needs(DOMAIN).lattice
DRAW = np.random.default_rng(5)
TRUE = DRAW.poisson(40, LATTICE.shape)
CUBE = Cube(LATTICE, TRUE.reshape(-1))
COSTS: list[CentralMeasure] = [sf.PureDP("0.2"), sf.ZCDP("0.02")]
RUNS = 75


@pytest.fixture(scope="module", params=COSTS, ids=str)
def releases(request: pytest.FixtureRequest) -> list[HistogramRelease]:
    noise = PublicSeed(f"ranges {request.param}")
    return [QUESTION.answer(CUBE, sf.Unit(), request.param, noise) for _ in range(RUNS)]


def _release(cost: CentralMeasure, question: sf.Histogram = QUESTION) -> HistogramRelease:
    return question.answer(CUBE, sf.Unit(), cost, PublicSeed("one"))


def test_without_noise_the_counts_are_the_true_ones() -> None:
    for cost in (sf.PureDP(1000), sf.ZCDP(10**6)):
        assert (_release(cost).values == TRUE).all()


@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_of_counts_and_totals_hold(
    releases: list[HistogramRelease], simultaneous: bool
) -> None:
    held = []
    for release in releases:
        low, high = release.interval(simultaneous=simultaneous)
        inside = (low <= TRUE) & (high >= TRUE)
        held.append(inside.all() if simultaneous else inside.mean())
        half = release.accuracy(simultaneous=simultaneous)
        assert (release.values - half <= low).all()
        assert (release.values + half >= high).all()
    if simultaneous:
        assert covers(sum(map(int, held)), RUNS, 0.95)
    else:
        assert np.mean(held) >= 0.945


def test_intervals_of_ranges_hold_and_are_not_too_wide(releases: list[HistogramRelease]) -> None:
    starts = np.array([0, 5, 20, 31, 0])
    stops = np.array([64, 6, 50, 33, 32])
    truth = np.array([TRUE.sum(axis=0)[i:j].sum() for i, j in zip(starts, stops, strict=True)])
    some = releases[:60]
    found = [release.count(age=(starts, stops)) for release in some]
    held = np.array([(each.low <= truth) & (truth <= each.high) for each in found])
    assert covers(int(held.sum()), held.size, 0.95)
    # Every second error in an interval of half the width would be too many: it is not too wide.
    error = np.array([np.abs(each.value - truth) for each in found])
    half = np.array([(each.high - each.low) / 2 for each in found])
    assert (error > 0.8 * half).mean() > 0.06
    every = [release.count(age=(starts, stops), simultaneous=True) for release in some[:30]]
    all_held = [bool(((e.low <= truth) & (truth <= e.high)).all()) for e in every]
    assert covers(sum(all_held), len(every), 0.95)


def test_running_totals_and_their_band_hold(releases: list[HistogramRelease]) -> None:
    truth = np.cumsum(TRUE, axis=1)
    for simultaneous in (False, True):
        held = []
        for release in releases:
            totals = release.cumulative("age", simultaneous=simultaneous)
            inside = (totals.low <= truth) & (truth <= totals.high)
            held.append(inside.all() if simultaneous else inside.mean())
        assert np.mean(held) >= 0.93
    assert (totals.value[:, -1] == releases[-1].values.sum(axis=1)).all()


def test_statistics_hold(releases: list[HistogramRelease]) -> None:
    ages = np.arange(64)
    rows = TRUE.sum(axis=0)
    mean = float((rows * ages).sum() / rows.sum())
    share = TRUE / TRUE.sum()
    young = float(rows[:20].sum() / rows.sum())
    kinds = TRUE.sum(axis=1) / TRUE.sum()
    held: dict[str, list[bool]] = {}

    def note(what: str, estimate: sf.Estimate, truth: object) -> None:
        inside = (np.asarray(estimate.low) <= truth) & (truth <= np.asarray(estimate.high))
        held.setdefault(what, []).append(float(np.mean(inside)) >= 0.9)

    for release in releases[:20]:
        note("total", release.total(), TRUE.sum())
        note("marginal", release.marginal("age"), rows)
        note("kinds", release.marginal("kind"), TRUE.sum(axis=1))
        note("mean", release.mean("age"), mean)
        note("median", release.median("age"), float(np.median(np.repeat(ages, rows))))
        note("variance", release.variance("age"), float(np.var(np.repeat(ages, rows))))
        note("shares", release.shares(), share)
        note("rate", release.rate(np.arange(64) < 20), young)
        note("herfindahl", release.herfindahl("kind"), float((kinds**2).sum()))
        note("evenness", release.herfindahl("age"), float(((rows / rows.sum()) ** 2).sum()))
    assert all(covers(sum(each), len(each), 0.95) for each in held.values())


def test_a_mean_is_more_accurate_than_from_independent_counts() -> None:
    cost = COSTS[1]
    for ask in ("mean", "median", "variance"):
        ranged, alone = (
            getattr(_release(cost, question), ask)("age") for question in (QUESTION, ALONE)
        )
        assert ranged.high - ranged.low <= alone.high - alone.low


def test_noise_of_too_small_a_scale_does_not_hold() -> None:
    strategy = _release(COSTS[1]).paid_ranges
    assert strategy is not None
    narrow = msgspec.structs.replace(strategy.strategy.laws[0], sigma_squared=10**9)
    noise = PublicSeed("near miss")
    held = []
    for _ in range(60):
        release = QUESTION.answer(CUBE, sf.Unit(), COSTS[1], noise)
        assert release.paid_ranges is not None
        paid = release.paid_ranges
        less = msgspec.structs.replace(paid.strategy, law=narrow)
        told = msgspec.structs.replace(release, paid=msgspec.structs.replace(paid, strategy=less))
        each = told.count(age=(10, 40))
        held.append(each.low <= TRUE[:, 10:40].sum() <= each.high)
    assert np.mean(held) < 0.7


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_stored_forms(cost: CentralMeasure, tmp_path: Path) -> None:
    release = _release(cost)
    again = from_bytes(release.save(tmp_path / "r.json").read_bytes(), HistogramRelease)
    assert again == release
    assert (again.values == release.values).all()
    assert again.count(age=(3, 9)) == release.count(age=(3, 9))
    kind = RangeTree if isinstance(cost, sf.PureDP) else RangeMatrix
    assert isinstance(release.paid_ranges.strategy, kind)
    turned = release.arranged(["age", "kind"])
    assert (turned.values == release.values.T).all()
    assert turned.cumulative("age").low.T.tolist() == release.cumulative("age").low.tolist()
    assert turned.arranged(["kind", "age"]) == release
    assert b'"paid"' not in to_bytes(_release(cost, ALONE))
    assert b'"workload"' not in to_bytes(_release(cost, ALONE))
    broken = to_bytes(release).replace(b'"axis":1', b'"axis":0')
    with pytest.raises(msgspec.ValidationError, match="noisy sums"):
        from_bytes(broken, HistogramRelease)


def test_the_numbers_are_those_that_noise_was_drawn_for() -> None:
    release = _release(COSTS[0])
    paid = release.paid_ranges
    assert paid is not None
    tree = paid.strategy
    fine = np.array(release.numbers()[: 3 * 64]).reshape(3, 64)
    assert (fine == paid.lines(LATTICE.shape)[:, :64]).all()
    assert len(release.numbers()) == 3 * len(tree.which)


def test_shares_of_labels_that_are_true_or_false() -> None:
    domain = sf.Domain(age=sf.Interval(0, 64, step=1), well=sf.Categories([False, True]))
    question = sf.Histogram(["age", "well"], workload="ranges")
    lattice = question.needs(domain).lattice
    cube = Cube(lattice, np.random.default_rng(3).poisson(30, lattice.size))
    true = cube.counts.reshape(64, 2).sum(axis=0)
    for cost in COSTS:
        noise = PublicSeed(f"truths {cost}")
        held = 0
        for _ in range(25):
            release = question.answer(cube, sf.Unit(), cost, noise)
            mean = release.mean("well")
            held += bool(mean.low <= true[1] / true.sum() <= mean.high)
            assert mean.value == pytest.approx(true[1] / true.sum(), abs=0.05)
            assert release.median("well").value in (0, 1)
        assert covers(held, 25, 0.95)


def test_few_bins_are_an_ordinary_histogram() -> None:
    few = sf.Histogram("age", bins=8, workload="ranges")
    cube = Cube(few.needs(DOMAIN).lattice, np.arange(8))
    release = few.answer(cube, sf.Unit(), COSTS[0], PublicSeed("few"))
    plain = sf.Histogram("age", bins=8).answer(cube, sf.Unit(), COSTS[0], PublicSeed("few"))
    assert release.paid_ranges is None
    assert (release.values == plain.values).all()


def test_the_preview_says_what_the_release_has() -> None:
    for cost in COSTS:
        preview = QUESTION.preview(DOMAIN, sf.Unit(), cost)
        assert isinstance(preview, RangesPreview)
        release = _release(cost)
        for simultaneous in (False, True):
            at_most = preview.accuracy(simultaneous=simultaneous)
            assert at_most == release.accuracy(simultaneous=simultaneous).max()
        widest = max(
            int(e.high - e.low)
            for at in range(33)
            for e in [release.count(age=(at, at + 32), kind="a")]
        )
        assert widest - 2 <= 2 * preview.of_range(32) <= widest + 3
        assert "range of 32 bins" in str(preview)
        with pytest.raises(sf.UsageError, match="64 along the axis"):
            preview.of_range(65)


def test_ranges_of_an_ordinary_histogram() -> None:
    release = _release(COSTS[0], ALONE)
    found = release.count(age=(10, 20), kind=["a", "c"])
    assert found.value == release.values[[0, 2], 10:20].sum()
    assert release.count().value == release.total().value
    assert 0 <= release.count().high - release.total().high <= 2
    assert release.count(kind="b").value == release.values[1].sum()
    assert release.count(kind=[]).value == 0
    one = release.count(age=(3, 4), kind="b")
    assert one.high - one.value == release.accuracy()[1, 3]
    totals = release.cumulative("age")
    assert (totals.value == np.cumsum(release.values, axis=1)).all()
    assert (totals.low < totals.value).all()


def test_missing_values_have_a_cell_of_their_own() -> None:
    domain = sf.Domain(age=sf.Interval(0, 64, step=1, missing=True))
    question = sf.Histogram("age", workload="ranges")
    lattice = question.needs(domain).lattice
    true = np.arange(65)
    release = question.answer(Cube(lattice, true), sf.Unit(), sf.ZCDP(10**6), PublicSeed("missing"))
    assert (release.values == true).all()
    assert release.cumulative("age").value.tolist() == np.cumsum(np.arange(64)).tolist()
    assert release.count(age=(0, 64)).value == np.arange(64).sum()


@pytest.mark.parametrize(
    ("asked", "domain", "match"),
    [
        (sf.Histogram(["age", "pay"], workload="ranges"), DOMAIN, "has 2"),
        (sf.Histogram("kind", workload="ranges"), DOMAIN, "has 0"),
        (sf.Histogram("age", workload="ranges"), sf.Domain(age=sf.Interval(0, 9**4, 1)), "4,096"),
        (
            sf.Histogram(["age", "shop"], workload="ranges"),
            sf.Domain(age=sf.Interval(0, 9), shop=sf.Keys()),
            "keys",
        ),
    ],
)
def test_what_has_no_ranges_is_refused(asked: sf.Histogram, domain: sf.Domain, match: str) -> None:
    with pytest.raises(sf.UsageError, match=match):
        asked.needs(domain)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(sf.UsageError, match="for cells or for ranges"):
        sf.Histogram("age", workload="cdf")  # type: ignore[arg-type]
    with pytest.raises(sf.UsageError, match="not known beforehand"):
        sf.Histogram("age", records=10, workload="ranges")
    release = _release(COSTS[1])
    for ranges, match in (
        ({"age": (0.5, 3)}, "nearest one is"),
        ({"age": (5, 3)}, "must not exceed"),
        ({"age": 5}, "pair of edges"),
        ({"age": ([1, 2], [3, 4, 5])}, "differ in number"),
        ({"kind": "z"}, "not among the labels"),
        ({"sort": "z"}, "none of that name"),
    ):
        with pytest.raises(sf.UsageError, match=match):
            release.count(**ranges)
    with pytest.raises(sf.UsageError, match="no order"):
        release.cumulative("kind")


def test_a_picture_shows_running_totals() -> None:
    ax = _release(COSTS[1]).plot()
    assert "up to here" in ax.get_ylabel()
    assert {"a", "b", "c"} <= {text.get_text() for text in ax.get_legend().get_texts()}
