"""Intervals of centres that nobody but the devices knew the points of: they hold in their model,
and say so outside it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import stdtrit

import sfumato as sf
from sfumato.local.decoding.decoder import FREEDOM, _centred, _Known
from sfumato.local.decoding.likelihood import Clusters
from sfumato.local.decoding.misfit import looks_normal
from sfumato.local.decoding.normal_clusters import NormalClusters
from sfumato.plain_kmeans import assign, kmeans
from sfumato.random import PublicSeed, override
from support.statistics import covers

CENTERS = {
    2: np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]]),
    4: np.array([[0.2, 0.2, 0.3, 0.3], [0.8, 0.3, 0.7, 0.2], [0.4, 0.8, 0.2, 0.8]]),
}
SHARES = np.array([0.5, 0.3, 0.2])


def clusters(n: int, d: int, spread: float, seed: int, shape: str = "normal") -> np.ndarray:
    """Points of three clusters of unequal weight: normal ones, or long-tailed to one side."""
    rng = np.random.default_rng([seed, n, d])
    which = rng.choice(3, n, p=SHARES)
    away = rng.normal(size=(n, d)) if shape == "normal" else rng.exponential(size=(n, d)) - 1
    return np.clip(CENTERS[d][which] + away * spread, 0, 1)


def perturbed(mechanism: sf.BPM, points: np.ndarray, seed: int) -> np.ndarray:
    with override(PublicSeed(f"intervals {seed} {points.shape}")):
        return mechanism.perturb(points)


def law(d: int, spread: float, certainty: float) -> NormalClusters:
    """The three clusters, known that well."""
    made = Clusters(SHARES, CENTERS[d], np.full(3, spread**2))
    return NormalClusters(made.vector(), certainty * np.eye(6 + 3 * d), 3)


def held(points: np.ndarray, epsilon: float, seed: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Which intervals hold k-means on the true points, their half-widths, and whether the model
    seemed right.
    """
    found = sf.PrivateKMeans(n_clusters=3, epsilon=epsilon, random_state=seed)
    found.fit_reports(perturbed(sf.BPM(epsilon, "auto", points.shape[1]), points, seed))
    low, high = found.intervals()
    true = kmeans(points, CENTERS[points.shape[1]], steps=50)
    order = assign(true, found.cluster_centers_)
    return (
        (low[order] <= true) & (true <= high[order]),
        (high - low)[order] / 2,
        bool(found.in_model_),
    )


@pytest.mark.parametrize("spread", [0.02, 0.08])
def test_centres_of_a_known_law_are_as_near_as_they_say(spread: float) -> None:
    """The points that the server draws have an error of their own, which no number of reports makes
    smaller.
    """
    known, within, off = _Known(law(2, spread, 1e-14), None, 1.0), [], []
    for seed in range(6):
        found = _centred(known, np.random.default_rng(seed))
        order = assign(CENTERS[2], found.centers)
        away = found.centers[order] - CENTERS[2]
        within.append(np.abs(away) <= stdtrit(FREEDOM, 0.975) * found.center_errors[order])
        off.append(away)
    assert covers(int(np.sum(within)), np.size(within), 0.95)
    # Independent draws would be off by spread / sqrt(persons drawn of each cluster).
    assert np.sqrt(np.mean(np.square(off))) < 0.5 * spread / np.sqrt(24_000 / 3)


def test_the_half_width_is_that_of_a_standard_error_from_few_laws() -> None:
    points = clusters(1_500, 2, 0.05, 0)
    found = sf.PrivateKMeans(n_clusters=3, epsilon=16, random_state=0)
    found.fit_reports(perturbed(sf.BPM(16, "auto", 2), points, 0))
    assert found._decoded is not None
    low, high = found.intervals("0.9")
    assert np.allclose((high - low) / 2, stdtrit(FREEDOM, 0.95) * found._decoded.center_errors)
    assert found.in_model_


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(16, "auto", 2), sf.MultivariateLaplace(16, 2), sf.BPM(48, "auto", 4)],
    ids=lambda m: m.title,
)
def test_the_shape_of_clusters_is_tested(mechanism: sf.BPM) -> None:
    """Reports of normal clusters pass.

    Those of clusters with a tail do not, nor do those of clusters twice as wide.
    """
    d = mechanism.dimension
    right, rng = law(d, 0.05, 1e-8), np.random.default_rng(1)
    for seed in range(3):
        assert looks_normal(
            perturbed(mechanism, clusters(20_000, d, 0.05, seed), seed), right, mechanism, rng
        )
    for points in (clusters(20_000, d, 0.05, 9, "tail"), clusters(20_000, d, 0.1, 9)):
        assert not looks_normal(perturbed(mechanism, points, 9), right, mechanism, rng)


def test_outside_the_model_intervals_are_wider_and_marked() -> None:
    """Four dimensions, where only normal clusters are fitted: with tails their centres are off, and
    were said not to be.
    """
    inside, narrow, right = held(clusters(6_000, 4, 0.05, 3), 24, 3)
    outside, wide, wrong = held(clusters(6_000, 4, 0.05, 3, "tail"), 24, 3)
    assert right
    assert not wrong
    assert wide.mean() > 1.2 * narrow.mean()
    assert inside.mean() > 0.6
    assert outside.mean() > 0.6


def test_naive_centres_have_no_model() -> None:
    reports = perturbed(sf.BPM(16, "auto", 2), clusters(300, 2, 0.05, 1), 1)
    assert (
        sf.PrivateKMeans(n_clusters=3, epsilon=16, method="naive").fit_reports(reports).in_model_
        is None
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("d", "epsilon", "n", "spread", "shape", "trials"),
    [
        (2, 16, 1_000, 0.05, "normal", range(500)),
        (
            2,
            16,
            1_000,
            0.05,
            "normal",
            range(500, 1_000),
        ),  # a thousand in two parts, each of a few minutes
        (2, 8, 3_000, 0.05, "normal", range(200)),
        (4, 24, 1_000, 0.05, "normal", range(200)),
        (2, 16, 100_000, 0.08, "normal", range(100)),
        (2, 16, 10_000, 0.05, "tail", range(100)),
        (4, 24, 10_000, 0.05, "tail", range(100)),
    ],
)
def test_coverage_of_local_centres(
    d: int,
    epsilon: int,
    n: int,
    spread: float,
    shape: str,
    trials: range,
    evidence: Callable[[str, object], None],
) -> None:
    """All coordinates; the bound is for one of them in each trial, since those of one trial are not
    independent.
    """
    within, widths, marked, single = [], [], 0, 0
    for trial in trials:
        found, half, in_model = held(clusters(n, d, spread, trial, shape), epsilon, trial)
        within.append(found)
        widths.append(half)
        marked += not in_model
        single += bool(found.ravel()[trial % found.size])
    part = f"_{trials.start}" if trials.start else ""
    evidence(
        f"coverage_of_local_centres_{d}_{epsilon}_{n}_{shape}{part}",
        {
            "d": d,
            "epsilon": epsilon,
            "reports": n,
            "spread": spread,
            "clusters": shape,
            "trials": len(trials),
            "coverage": round(float(np.mean(within)), 3),
            "one coordinate of each fit": round(single / len(trials), 3),
            "half-width": round(float(np.mean(widths)), 5),
            "marked": marked / len(trials),
        },
    )
    assert covers(single, len(trials), 0.95)
    if shape == "normal":
        assert marked <= 0.05 * len(trials)
    else:
        assert marked >= 0.1 * len(trials)
