"""Histograms whose noise has a bound: releases, intervals, previews, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.audit.runs import Scripted
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.cube import Cube
from sfumato.mechanisms.bounded_noise import TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.histogram import HistogramRelease
from sfumato.questions.histogram.accuracy import BoundedPreview
from sfumato.random import PublicSeed
from support.statistics import covers

DOMAIN = sf.Domain(
    age=sf.Interval(0, 100, step=1), kind=sf.Categories(["a", "b", "c"]), shop=sf.Keys()
)
QUESTION = sf.Histogram(["age", "kind"], bins=5, noise="bounded")
LATTICE = QUESTION.needs(DOMAIN).lattice
TRUE = np.random.default_rng(24).poisson(60, LATTICE.shape)
CUBE = Cube(LATTICE, TRUE.reshape(-1))
COST = sf.ApproxDP("1", "1e-6")
WIDE = sf.ApproxDP("0.5", "0.2")
"""So much delta that the bound shows in the intervals."""
RUNS = 200
SUMS = 40


def answer(cost: sf.ApproxDP = COST, seed: str = "one") -> HistogramRelease:
    return QUESTION.answer(CUBE, sf.Unit(), cost, PublicSeed(seed))


@pytest.fixture(scope="module", params=[COST, WIDE], ids=str)
def releases(request: pytest.FixtureRequest) -> list[HistogramRelease]:
    noise = PublicSeed(f"bounded {request.param}")
    return [QUESTION.answer(CUBE, sf.Unit(), request.param, noise) for _ in range(RUNS)]


# --- what is promised -----------------------------------------------------------------------------


def test_every_count_is_within_the_bound(releases: list[HistogramRelease]) -> None:
    law = releases[0].law
    assert isinstance(law, TruncatedLaplace)
    assert max(np.abs(release.values - TRUE).max() for release in releases) <= law.bound


def test_the_release_promises_epsilon_and_delta_and_says_its_bound() -> None:
    release = answer()
    assert release.guarantee.measure == release.cost == COST
    assert release.law == TruncatedLaplace(1, 14)  # type: ignore[arg-type]
    assert "mechanisms/bounded_noise" in str(release.guarantee)
    assert "of scale 1 within +-14" in release.guarantee.mechanism
    (fact,) = release.facts
    assert "each count is never more than 14 off" in fact
    assert (
        not sf.Histogram("age")
        .answer(
            Cube(sf.Histogram("age").needs(DOMAIN).lattice, np.zeros(100, np.int64)),
            sf.Unit(),
            COST,
            PublicSeed("usual"),
        )
        .facts
    )


def test_persons_pay_for_the_number_of_their_cells() -> None:
    """A person who is counted once in a cell moves no count by more than one."""
    question = sf.Histogram("kind", count="persons", noise="bounded")
    lattice = question.needs(DOMAIN).lattice
    unit = sf.Unit(rows_per_person=12, person="rider")
    preview = question.preview(DOMAIN, unit, COST)
    assert isinstance(preview, BoundedPreview)
    # There are three cells, so nobody is in more.
    assert preview.unit.counts_l1 == lattice.size == 3
    rows = sf.Histogram("kind", noise="bounded").preview(DOMAIN, unit, COST)
    assert isinstance(rows, BoundedPreview)
    bounds = [each.law.bound for each in (preview, rows) if isinstance(each.law, TruncatedLaplace)]
    # Three ways to be noticed, each as likely as for one row at a third of epsilon.
    assert bounds == [40, 164]


def test_the_preview_says_the_bound_and_what_it_costs() -> None:
    preview = QUESTION.preview(DOMAIN, sf.Unit(), COST, 1000)
    said = str(preview)
    assert "of the rows counted, each count is never more than 14 off" in said
    assert "noise without one needs no delta" in said
    assert preview.cost == COST
    assert preview.accuracy() == DiscreteLaplace(1).half_width(0.05) == 3  # type: ignore[arg-type]
    assert preview.accuracy("0.999999999") == preview.accuracy("0.999999999", True) == 14


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_hold(releases: list[HistogramRelease], simultaneous: bool) -> None:
    held = []
    for release in releases:
        low, high = release.interval(simultaneous=simultaneous)
        inside = (low <= TRUE) & (high >= TRUE)
        held += [bool(inside.all())] if simultaneous else inside.reshape(-1).tolist()
    assert covers(sum(held), len(held), 0.95)


def test_intervals_of_sums_hold() -> None:
    noise = PublicSeed("sums")
    totals, ranges, means, shares = [], [], [], []
    weights = TRUE.sum(axis=1)
    mean = float((weights * (np.arange(5) * 20 + 9.5)).sum() / weights.sum())
    for _ in range(SUMS):
        release = QUESTION.answer(CUBE, sf.Unit(), WIDE, noise)
        total = release.total()
        totals.append(total.low <= TRUE.sum() <= total.high)
        counted = release.count(age=(20, 80), kind="b")
        ranges.append(counted.low <= TRUE[1:4, 1].sum() <= counted.high)
        found = release.mean("age")
        means.append(found.low <= mean <= found.high)
        part = release.rate(np.eye(5, 3) > 0)
        shares.append(part.low <= TRUE[np.eye(5, 3) > 0].sum() / TRUE.sum() <= part.high)
    for held in (totals, ranges, means, shares):
        assert covers(int(np.sum(held)), SUMS, 0.95)


def test_no_interval_is_wider_than_the_bound_of_its_sum() -> None:
    sure = "0.999999999"
    for cost in (COST, WIDE):
        release = answer(cost)
        assert isinstance(release.law, TruncatedLaplace)
        bound = release.law.bound
        assert release.accuracy(sure).max() <= bound
        assert release.accuracy(sure, simultaneous=True).max() <= bound
        for axes, cells in (("age", 3), ("kind", 5), ((), 15)):
            estimate = release.marginal(axes, sure)
            assert np.max(np.asarray(estimate.high) - estimate.value) <= cells * bound
        running = release.cumulative("age", sure)
        steps = np.arange(1, 6).reshape(-1, 1)
        assert (np.asarray(running.high) - running.value <= steps * bound).all()


def test_statistics_do_not_fail() -> None:
    release = answer(WIDE)
    assert np.all(np.isfinite(release.shares().high))
    for estimate in (release.median("age"), release.variance("age"), release.herfindahl("kind")):
        assert estimate.low <= estimate.value <= estimate.high


def test_the_norm_of_the_noise_has_its_moments() -> None:
    """The index is judged by the norm of the noise: mean and bound, against many draws."""
    release = answer(WIDE)
    noise = release._additive("a norm")
    second, bound = noise.norm_bound(1, 0.05)
    draws = release.law.sample(15 * 20_000, PublicSeed("norms")).reshape(20_000, 5, 3)
    squares = (draws.sum(axis=1) ** 2).sum(axis=1)
    assert squares.mean() == pytest.approx(second, rel=0.05)
    assert (np.sqrt(squares) > bound).mean() <= 0.05


# --- forms ----------------------------------------------------------------------------------------


def test_it_comes_back_bit_for_bit(tmp_path: Path) -> None:
    release = answer()
    assert from_bytes(to_bytes(release), HistogramRelease) == release
    assert sf.load(release.save(tmp_path / "release.json")) == release


def test_questions_without_it_are_stored_as_before() -> None:
    assert b"noise" not in to_bytes(sf.Histogram("age"))
    assert b'"noise":"bounded"' in to_bytes(QUESTION)
    usual = sf.Histogram(["age", "kind"], bins=5)
    assert usual.asks(DOMAIN) != QUESTION.asks(DOMAIN)


def test_other_orders_of_axes_keep_the_noise() -> None:
    turned = answer().arranged(["kind", "age"])
    assert turned.question.noise == "bounded"
    assert (turned.values == answer().values.T).all()


def test_its_numbers_are_true_counts_and_draws() -> None:
    release = QUESTION.answer(CUBE, sf.Unit(), COST, Scripted((5, -14)))
    moved = np.array(release.numbers()) - TRUE.reshape(-1)
    assert moved.tolist() == [5, -14, *[0] * 13]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"noise": "laplace"}, "noise is bounded"),
        ({"workload": "ranges"}, "errors add up"),
        ({"records": 10}, "has no bound"),
    ],
    ids=str,
)
def test_what_does_not_go_together_is_refused(more: dict[str, object], said: str) -> None:
    options = {"noise": "bounded"} | more
    with pytest.raises(sf.UsageError, match=said):
        sf.Histogram("age", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("axes", ["shop", ["shop", "kind"]], ids=str)
def test_keys_are_refused(axes: object) -> None:
    question = sf.Histogram(axes, noise="bounded")  # type: ignore[arg-type]
    with pytest.raises(sf.UsageError, match="declare the keys as Categories"):
        question.preview(DOMAIN, sf.Unit(), COST)


def publisher(budget: object) -> sf.Publisher:
    rows = pa.table({"age": [31, 35, 64], "kind": ["a", "b", "a"], "shop": ["x", "y", "x"]})
    return sf.Publisher(sf.source(rows, DOMAIN, name="people"), budget=budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("cost", [{"epsilon": "1"}, {"rho": "0.1"}], ids=str)
def test_a_cost_without_delta_is_refused_before_it_is_charged(cost: dict[str, str]) -> None:
    budget = sf.ZCDP(1) if "rho" in cost else sf.ApproxDP(3, "1e-5")
    with publisher(budget) as pub:
        before = pub.remaining
        with pytest.raises(sf.UsageError, match="Give epsilon and delta"):
            pub.release(QUESTION, **cost)
        assert pub.remaining == before


def test_an_account_without_delta_says_what_to_do() -> None:
    with (
        publisher(sf.PureDP(3)) as pub,
        pytest.raises((sf.UsageError, sf.BudgetExceeded), match="delta"),
    ):
        pub.release(QUESTION, epsilon="1", delta="1e-6")


# --- where it is asked ----------------------------------------------------------------------------


def test_a_publisher_charges_epsilon_and_delta_once() -> None:
    with publisher(sf.ApproxDP(3, "1e-5")) as pub:
        release = pub.release(QUESTION, epsilon="1", delta="1e-6")
        assert pub.remaining == (2, Fraction(9, 10**6))
        assert not release.replayed
        assert pub.release(QUESTION, epsilon="1", delta="1e-6").replayed


def test_a_plan_gives_it_the_delta() -> None:
    usual = sf.Histogram("age", bins=2)
    with publisher(sf.ApproxDP(3, "1e-5")) as pub:
        first, second = pub.release([QUESTION, usual], epsilon="1", delta="1e-6")
    assert isinstance(first.cost, sf.ApproxDP)
    assert isinstance(first.law, TruncatedLaplace)
    assert first.cost.delta == sf.ApproxDP(1, "1e-6").delta
    assert isinstance(second.cost, sf.PureDP)


def test_a_window_finds_the_epsilon_of_a_bound() -> None:
    window = sf.window(
        QUESTION,
        domain=DOMAIN,
        unit=sf.Unit(),
        accuracy=sf.Within(20, confidence=0.999999999),
        risk=sf.Risk(advantage="0.6"),
        delta="1e-6",
    )
    at_floor = QUESTION.preview(DOMAIN, sf.Unit(), sf.ApproxDP(window.floor, "1e-6"))
    assert isinstance(at_floor, BoundedPreview)
    assert isinstance(at_floor.law, TruncatedLaplace)
    assert at_floor.law.bound <= 21
    assert at_floor.accuracy("0.999999999") == 20
