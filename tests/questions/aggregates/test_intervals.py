"""Intervals of means and variances hold at any number of rows, and fail with half the noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.aggregates import intervals
from sfumato.questions.aggregates.intervals import half_widths, mean_bounds, variance_bounds
from sfumato.questions.aggregates.values import Basis
from sfumato.random import PublicSeed

ROWS = (0, 1, 5, 50, 5000)
POINTS = 1000
PAIR = Basis("pair", POINTS, 66)
QUADRATIC = Basis("quadratic", POINTS)


def laws(basis: Basis, times: int = 1) -> list[Law]:
    """Noise of one row at epsilon 1 and at rho 1/2, divided."""
    unity = Fraction(basis.unity, times)
    return [DiscreteLaplace(unity), DiscreteGaussian(unity**2)]


def values(rows: int) -> np.ndarray:
    """Skewed values on the lattice."""
    return np.rint(np.random.default_rng(rows).beta(1, 5, rows) * POINTS).astype(np.int64)


def published(basis: Basis, law: Law, rows: int, trials: int) -> np.ndarray:
    """The sums of so many releases of the same rows."""
    true = basis.functions(values(rows)).sum(axis=0) if rows else np.zeros(len(basis.weights), int)
    noise = law.sample(trials * len(true), PublicSeed(f"{basis} {law} {rows}"))
    return (true + noise.reshape(trials, -1)).astype(float)


def least(trials: int, confidence: float = 0.95) -> float:
    """Four standard errors below."""
    return confidence - 4 * np.sqrt(confidence * (1 - confidence) / trials)


def covered(bounds: tuple[np.ndarray, np.ndarray], truth: float) -> float:
    return float(((bounds[0] <= truth) & (truth <= bounds[1])).mean())


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("basis", [PAIR, QUADRATIC], ids=lambda basis: basis.name)
def test_means_are_covered(basis: Basis, rows: int) -> None:
    trials = 10_000
    for law in laws(basis):
        bounds = mean_bounds(published(basis, law, rows, trials), basis, law, 0.05)
        for truth in (0.0, 0.3, 1.0) if rows == 0 else (values(rows).mean() / POINTS,):
            assert covered(bounds, truth) >= least(trials)


@pytest.mark.parametrize("rows", ROWS)
def test_variances_are_covered(rows: int) -> None:
    trials = 1_000
    for law in laws(QUADRATIC):
        bounds = variance_bounds(published(QUADRATIC, law, rows, trials), QUADRATIC, law, 0.05)
        truth = values(rows).var() / POINTS**2 if rows else 0.1
        assert covered(bounds, truth) >= least(trials)
        assert (bounds[0] >= 0).all()
        assert (bounds[1] <= 0.25).all()


@pytest.mark.deep
@pytest.mark.parametrize("rows", ROWS)
def test_variances_are_covered_in_ten_thousand_releases(rows: int) -> None:
    for law in laws(QUADRATIC):
        bounds = variance_bounds(published(QUADRATIC, law, rows, 10_000), QUADRATIC, law, 0.05)
        truth = values(rows).var() / POINTS**2 if rows else 0.1
        assert covered(bounds, truth) >= least(10_000)


def test_half_of_the_noise_is_noticed() -> None:
    """Bounds for half of the noise that was added miss the truth far more often."""
    trials = 10_000
    for law, half in zip(laws(PAIR), laws(PAIR, 2), strict=True):
        bounds = mean_bounds(published(PAIR, law, 5000, trials), PAIR, half, 0.05)
        assert covered(bounds, values(5000).mean() / POINTS) < 0.9
    for law, half in zip(laws(QUADRATIC), laws(QUADRATIC, 2), strict=True):
        bounds = variance_bounds(published(QUADRATIC, law, 5000, 300), QUADRATIC, half, 0.05)
        assert covered(bounds, values(5000).var() / POINTS**2) < 0.9


def test_intervals_of_many_rows_are_as_narrow_as_the_noise() -> None:
    law = laws(QUADRATIC)[0]
    sums = published(QUADRATIC, law, 5000, 200)
    low, high = mean_bounds(sums, QUADRATIC, law, 0.05)
    mean = values(5000).mean() / POINTS
    ideal = half_widths(law, QUADRATIC.weights - mean, 0.05) / (5000 * QUADRATIC.unity)
    assert np.median(high - low) == pytest.approx(2 * float(ideal), rel=0.02)
    low, high = variance_bounds(sums, QUADRATIC, law, 0.05)
    variance = values(5000).var() / POINTS**2
    fixed = QUADRATIC.squares - 2 * mean * QUADRATIC.weights + mean**2 - variance
    ideal = half_widths(law, fixed, 0.05) / (5000 * QUADRATIC.unity)
    assert np.median(high - low) < 2 * 1.2 * float(ideal)


@pytest.mark.parametrize("seed", range(3))
def test_hulls_are_those_of_a_search(seed: int) -> None:
    law = laws(PAIR)[seed % 2]
    rng = np.random.default_rng(seed)
    sums = rng.normal(0, 3 * PAIR.unity, (40, 2)) + PAIR.unity * rng.integers(0, 20, (40, 1))
    low, high = mean_bounds(sums, PAIR, law, 0.05)
    grid = np.linspace(0, 1, 4001)
    offset = sums @ PAIR.weights - grid[:, None] * sums.sum(axis=1)
    fits = np.abs(offset) <= half_widths(law, PAIR.weights - grid[:, None], 0.05)[:, None]
    for group in range(40):
        found = grid[fits[:, group]]
        if len(found):
            assert low[group] <= found[0]
            assert high[group] >= found[-1]
            assert found[0] - low[group] < 2.5e-3
            assert high[group] - found[-1] < 2.5e-3


@pytest.mark.parametrize("rows", [0, 3, 8, 40, 5000])
def test_variances_of_many_rows_are_bounded_as_a_search_finds_them(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a given mean, bounds are never narrower than those of bisection, and hardly wider."""
    for law in laws(QUADRATIC):
        sums = published(QUADRATIC, law, rows, 500)
        for mean in (0.0, 0.2, 0.6, 1.0):
            means = np.full(500, mean)
            low, high = intervals._variances_at(means, sums, QUADRATIC, law, 0.05)
            with monkeypatch.context() as patched:
                patched.setattr(intervals, "ENOUGH", np.inf)
                searched = intervals._variances_at(means, sums, QUADRATIC, law, 0.05)
            found = searched[0] <= searched[1]
            # Bisection ends within 2^-32 of the range.
            assert (low <= searched[0] + 1e-8)[found].all()
            assert (high >= searched[1] - 1e-8)[found].all()
            wider = (high - low) - (searched[1] - searched[0])
            assert (wider <= 1e-4 * (searched[1] - searched[0]) + 1e-6)[found].all()
            # Where nothing fits, at most a point at an end is found.
            assert (high - low)[~found].max(initial=0.0) <= 1e-6


def test_a_bound_of_the_noise_is_a_norm() -> None:
    """What bounds on variances rest on: convex, so never above a chord."""
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 2000, 3))
    for law in laws(QUADRATIC):
        middle = half_widths(law, (one + other) / 2, 0.05)
        chord = (half_widths(law, one, 0.05) + half_widths(law, other, 0.05)) / 2
        assert (middle <= chord * (1 + 1e-3)).all()
