"""Intervals hold at the clip that the noise led to, and cost at most half of a fixed clip's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.aggregates import intervals as simultaneous
from sfumato.questions.aggregates.clips import chosen_clips
from sfumato.questions.aggregates.intervals import (
    clip_factors,
    clip_half_widths,
    clipped_mean_bounds,
    largest_ratio_quantile,
)
from sfumato.questions.aggregates.values import Basis
from sfumato.random import PublicSeed

BASIS = Basis("hats", 1024, 64)
LAPLACE = DiscreteLaplace(Fraction(BASIS.unity))
GAUSSIAN = DiscreteGaussian(Fraction(BASIS.unity) ** 2)


def ratios_by_search(noise: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The largest ratio over all clips, and over a grid of means."""
    factors = clip_factors(len(weights))
    largest = np.zeros(len(noise))
    for clip in range(1, len(weights)):
        for mean in np.linspace(0, weights[clip], 400):
            v = np.minimum(weights, weights[clip]) - mean
            found = np.abs(noise @ v) / np.sqrt((v**2).sum()) / factors[clip]
            largest = np.maximum(largest, found)
    return largest


def test_the_largest_ratio_is_that_of_a_search() -> None:
    weights = np.array([0, 0.125, 0.25, 0.5, 1])
    noise = np.random.default_rng(1).laplace(size=(500, 5))
    found = np.zeros(500)
    for clip in range(1, 5):
        ratios = simultaneous._ratios(
            noise, np.minimum(weights, weights[clip]), weights[clip], None
        )
        found = np.maximum(found, ratios / clip_factors(5)[clip])
    searched = ratios_by_search(noise, weights)
    assert (found >= searched - 1e-9).all()
    assert found == pytest.approx(searched, rel=1e-3)


@pytest.mark.parametrize("alpha", [0.3, 0.05, 0.001])
@pytest.mark.parametrize("at", [None, 0.0])
def test_quantiles_hold_for_other_draws(alpha: float, at: float | None) -> None:
    n_knots = 5
    weights = np.array([0, 0.125, 0.25, 0.5, 1])
    trials = 50_000
    noise = np.random.default_rng(7).laplace(size=(trials, n_knots))
    largest = np.zeros(trials)
    for clip in range(1, n_knots):
        ratios = simultaneous._ratios(noise, np.minimum(weights, weights[clip]), weights[clip], at)
        largest = np.maximum(largest, ratios / clip_factors(n_knots)[clip])
    quantile = largest_ratio_quantile("laplace", n_knots, alpha, at)
    missed = float((largest > quantile).mean())
    deviation = np.sqrt(alpha * (1 - alpha) / trials)
    assert alpha - 5 * deviation - 0.1 * alpha < missed < alpha + 4 * deviation


def test_below_what_the_draws_tell_the_bound_is_chernoffs() -> None:
    assert largest_ratio_quantile("laplace", 5, 1e-9) is None
    points = np.array([0.0, 0.1])
    wide = clip_half_widths(LAPLACE, BASIS.weights, 3, points, 1e-9)
    narrow = clip_half_widths(LAPLACE, BASIS.weights, 3, points, 1e-3)
    assert (wide > narrow).all()
    coarse = DiscreteGaussian(Fraction(1, 4))
    assert (clip_half_widths(coarse, BASIS.weights, 3, points, 0.05) > 0).all()


def releases(law: Law, rows: int, trials: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows' values on the lattice, and the sums of so many releases."""
    drawn = np.random.default_rng(rows).lognormal(3, 1, rows)
    values = np.minimum(np.rint(drawn), BASIS.points).astype(np.int64)
    true = BASIS.functions(values).sum(axis=0)
    noise = law.sample(trials * BASIS.size, PublicSeed(f"clips {law} {rows}"))
    return values, (true + noise.reshape(trials, -1)).astype(float)


def coverage(law: Law, rows: int, trials: int, claimed: Law | None = None) -> dict[str, float]:
    """How often bounds contain the mean at the chosen clip, and how wide they are."""
    values, sums = releases(law, rows, trials)
    clips, _ = chosen_clips(sums, BASIS, law, None)
    low, high = clipped_mean_bounds(sums, BASIS, claimed or law, clips, 0.05)
    clipped = np.minimum(values[:, None], BASIS.knots) / BASIS.points
    # Without rows, every mean is as true as any other.
    truth = clipped.mean(axis=0)[clips] if rows else BASIS.weights[clips] / 3
    covered = float(((low <= truth) & (truth <= high)).mean())
    noise = (law.sample(40_000 * BASIS.size, PublicSeed("width"))).reshape(-1, BASIS.size)
    widths = []
    for clip in np.unique(clips).tolist():
        coefficients = np.minimum(BASIS.weights, BASIS.weights[clip]) - truth[clips == clip][0]
        fixed = float(np.quantile(np.abs(noise @ coefficients), 0.95))
        ours = float(
            clip_half_widths(claimed or law, BASIS.weights, clip, truth[clips == clip][:1], 0.05)[0]
        )
        widths.append((int((clips == clip).sum()), ours / fixed))
    shares = np.array(widths)
    return {
        "covered": covered,
        "mean width over a fixed clip's": round(
            float(np.average(shares[:, 1], weights=shares[:, 0])), 3
        ),
        "largest": round(float(shares[:, 1].max()), 3),
    }


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("rows", [0, 50, 2000])
def test_the_mean_at_the_chosen_clip_is_covered(law: Law, rows: int) -> None:
    trials = 1000
    found = coverage(law, rows, trials)
    assert found["covered"] >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / trials)
    assert rows < 2000 or found["mean width over a fixed clip's"] <= 1.5


def test_half_of_the_noise_is_noticed_at_chosen_clips() -> None:
    half = DiscreteLaplace(LAPLACE.scale / 2)
    assert coverage(LAPLACE, 2000, 1000, half)["covered"] < 0.9


@pytest.mark.deep
@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_coverage_in_ten_thousand_releases(
    law: Law, evidence: Callable[[str, object], None]
) -> None:
    trials = 10_000
    figures = {}
    for rows in (0, 5, 50, 500, 5000):
        found = coverage(law, rows, trials)
        figures[f"{rows} rows"] = found
        assert found["covered"] >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / trials)
        # Of fewer rows nothing is known at any clip, and the clips that are chosen are arbitrary.
        assert rows < 500 or found["mean width over a fixed clip's"] <= 1.5
    name = "laplace" if law is LAPLACE else "gaussian"
    evidence(f"coverage_of_chosen_clips_{name}", {"releases": trials, "noise": str(law), **figures})
