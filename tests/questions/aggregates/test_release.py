"""Releases of means: what is known, what is shown, and what follows from the sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.mechanisms.noise_sums import sum_half_width
from sfumato.testing import deterministic


def test_a_group_of_nobody_is_not_known(publisher: sf.Publisher) -> None:
    with deterministic(2):
        release = publisher.release(sf.Mean("age", by="ward"), epsilon="1")
    assert np.isnan(release.values).tolist() == [False, False, True]
    assert release.to_frame()["mean"].to_pylist()[2] is None
    assert release.to_frame()["known"].to_pylist() == [True, True, False]
    known, low, high = release.drawn()
    assert known.tolist() == [True, True, False]
    assert (low[2], high[2]) == (0, 121)


def test_those_that_are_shown_pay_for_those_that_are_not(publisher: sf.Publisher) -> None:
    with deterministic(2):
        release = publisher.release(sf.Mean("age", by="ward"), epsilon="1")
    low, high = release.interval()
    _, shown_low, shown_high = release.drawn()
    assert (shown_high - shown_low)[:2].min() > (high - low)[:2].max() * 0.5
    assert ((shown_low <= low) & (high <= shown_high)).all()


def test_mean_sum_and_count_agree(publisher: sf.Publisher) -> None:
    release = publisher.release(sf.Variance("wage", by="ward"), epsilon="50")
    assert (release.means * release.counts)[:2] == pytest.approx(release.sums[:2])
    pair = publisher.release(sf.Mean("wage", by="ward"), epsilon="50")
    with pytest.raises(sf.UsageError, match=r"Ask for sf\.Variance"):
        _ = pair.variances


def test_a_release_travels(publisher: sf.Publisher, tmp_path: Path) -> None:
    for question in (
        sf.Mean("wage", by="ward"),
        sf.Sum("age"),
        sf.Variance("age", by="ward", clip=90),
    ):
        assert from_bytes(to_bytes(question), type(question)) == question
        release = publisher.release(question, epsilon="1")
        again = sf.load(release.save(tmp_path / "r.json"))
        assert again == release
        assert np.array_equal(again.values, release.values, equal_nan=True)
        assert publisher.release(question, epsilon="1").replayed


def of_many_groups(kind: type, epsilon: int, **more: str) -> Any:
    """The release about a value in 500 groups of about 6 rows."""
    rng = np.random.default_rng(3)
    table = np.stack([rng.integers(0, 500, 3000), rng.random(3000) * 10], axis=1).astype(float)
    domain = sf.Domain(g=sf.Interval(0, 500, step=1), x=sf.Interval(0, 10))
    with deterministic(6), sf.Publisher(sf.source(table, domain, name="g"), budget=10) as publisher:
        return publisher.release(kind("x", by="g", **more), epsilon=epsilon)


@pytest.mark.parametrize("kind", [sf.Mean, sf.Variance])
def test_what_a_table_calls_known_has_an_interval_that_says_something(kind: type) -> None:
    release = of_many_groups(kind, 2 if kind is sf.Mean else 8)
    known, low, high = release.drawn()
    most = 10 if kind is sf.Mean else 25
    assert 0 < known.sum() < 500
    assert ((low > 0) | (high < most))[known].all()
    assert not (np.isnan(release.values) & known).any()
    assert (release.counts[known] > 0).all()


@pytest.mark.parametrize("kind", [sf.Mean, sf.Variance])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_group_whose_rows_cannot_be_told_from_none_is_not_known(kind: type, seed: int) -> None:
    """Otherwise a mean of -1,108 rows would be shown, if its interval missed."""
    table = np.stack([np.zeros(200), np.full(200, 3.0)], axis=1)
    domain = sf.Domain(g=sf.Interval(0, 1000, step=1), x=sf.Interval(0, 10))
    with (
        deterministic(seed),
        sf.Publisher(sf.source(table, domain, name="g"), budget=10) as publisher,
    ):
        release = publisher.release(kind("x", by="g"), epsilon=2)
    known, _, _ = release.drawn()
    (sums,) = release.tables
    half = sum_half_width(sums.law, sums.basis.size, 0.05) / sums.basis.unity
    assert known[0]
    assert (release.counts[known] > half).all()
    if kind is sf.Mean:  # others have values, which nobody should read
        assert (~np.isnan(release.values) & (release.counts <= half)).any()


@pytest.mark.parametrize(
    ("kind", "epsilon", "more"),
    [
        (sf.Mean, 2, {}),
        (sf.Mean, 1, {}),
        (sf.Variance, 8, {}),
        (sf.Variance, 5, {}),
        (sf.Mean, 2, {"clip": "auto"}),
        (sf.Sum, 1, {}),
    ],
)
def test_what_is_drawn_is_found_by_leaving_out_groups_one_round_after_another(
    kind: type, epsilon: int, more: dict[str, str]
) -> None:
    release = of_many_groups(kind, epsilon, **more)
    (sums,) = release.tables
    known = ~np.isnan(release.values) & release._statistic.is_of_rows(sums, 0.05)
    n_shown = -1
    while n_shown != known.sum():
        n_shown = int(known.sum())
        low, high = release._statistic.interval(sums, 0.05 * max(n_shown, 1) / known.size)
        known &= release._statistic.is_informative(sums, low, high)
    assert known.any()
    for found, expected in zip(release.drawn(), (known, low, high), strict=True):
        assert found.tolist() == expected.tolist()
