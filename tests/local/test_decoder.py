"""The decoder finds clusters where k-means on the reports finds noise, and says how sure it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato.local import decode
from sfumato.local.decoding.likelihood import Clusters, information, likelihood
from sfumato.local.decoding.noise_law import noise_law
from sfumato.plain_kmeans import assign
from sfumato.random import PublicSeed, override

CENTERS = np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]])


def blobs(
    n: int, spread: float, seed: int, centers: np.ndarray = CENTERS
) -> tuple[np.ndarray, np.ndarray]:
    """Points, and the means of what was drawn of each cluster."""
    rng = np.random.default_rng(seed)
    which = rng.integers(len(centers), size=n)
    points = np.clip(centers[which] + rng.normal(size=(n, centers.shape[1])) * spread, 0, 1)
    return points, np.array([points[which == j].mean(axis=0) for j in range(len(centers))])


def perturbed(
    mechanism: sf.BPM | sf.MultivariateLaplace, points: np.ndarray, seed: int
) -> np.ndarray:
    with override(PublicSeed(f"{mechanism.title} {seed}")):
        return mechanism.perturb(points)


def paired(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Which found centre is nearest to each true one."""
    return assign(true, found)


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(4, "0.5", 2), sf.BPM(8, "auto", 4), sf.MultivariateLaplace(4, 1)],
    ids=lambda m: m.title,
)
def test_the_gradient_is_that_of_the_likelihood(mechanism: sf.BPM) -> None:
    rng, k, d = np.random.default_rng(0), 3, mechanism.dimension
    points, counts, law = rng.random((300, d)), rng.random(300) + 0.5, noise_law(mechanism)
    vector = Clusters(
        np.array([0.5, 0.3, 0.2]), rng.random((k, d)), np.array([0.01, 0.002, 0.03])
    ).vector()
    value, gradient = likelihood(vector, k, points, counts, law)
    score, known = information(vector, k, points, counts, law)
    assert score / counts.sum() == pytest.approx(gradient, abs=1e-12)
    assert np.linalg.eigvalsh(known).min() > -1e-6
    for i in range(len(vector)):
        step = np.zeros(len(vector))
        step[i] = 1e-5
        slope = (
            likelihood(vector + step, k, points, counts, law)[0]
            - likelihood(vector - step, k, points, counts, law)[0]
        ) / 2e-5
        assert slope == pytest.approx(gradient[i], abs=1e-6)
    assert np.isfinite(value)


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(2, "auto", 2), sf.BPM(4, "0.5", 2), sf.BPM(8, "auto", 8), sf.MultivariateLaplace(3, 3)],
    ids=str,
)
def test_the_noise_law_is_near_to_the_noise(mechanism: sf.BPM) -> None:
    law, d = noise_law(mechanism), mechanism.dimension
    reports = perturbed(mechanism, np.full((40_000, d), 0.5), 1) - 0.5
    rng = np.random.default_rng(0)
    scales = np.sqrt(rng.choice(law.variances, 40_000, p=law.shares))
    drawn = rng.normal(size=(40_000, d)) * scales[:, None]
    if isinstance(mechanism, sf.BPM):
        silent = rng.random(40_000) < law.background
        drawn[silent] = rng.uniform(
            -0.5 - float(mechanism.L), 0.5 + float(mechanism.L), (int(silent.sum()), d)
        )
    from scipy import stats

    assert (
        stats.ks_2samp(np.linalg.norm(reports, axis=1), np.linalg.norm(drawn, axis=1)).statistic
        < 0.06
    )


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(32, "auto", 2), pytest.param(sf.MultivariateLaplace(32, 2), marks=pytest.mark.deep)],
    ids=lambda m: m.title,
)
def test_centres_are_within_twice_the_physical_limit(mechanism: sf.BPM) -> None:
    """Clusters lie more than four noise radii d / epsilon apart; points of a cluster nearly
    coincide.
    """
    errors = []
    for seed in range(2):
        points, true = blobs(3_000, 0.005, seed)
        found = decode(
            perturbed(mechanism, points, seed), mechanism, 3, np.random.default_rng(seed)
        )
        errors.append(((found.centers[paired(found.centers, true)] - true) ** 2).sum(axis=1).mean())
    assert np.mean(errors) <= 2 * mechanism.limit(1_000)


@pytest.mark.deep
def test_errors_of_centres_beside_the_limit(evidence: Callable[[str, object], None]) -> None:
    """Clusters at least four noise radii d / epsilon apart; mean squared error over d^2 /
    (epsilon^2 n), n the reports of one cluster.
    """
    figures = []
    for d, epsilons in ((2, (16, 32)), (4, (24, 48))):
        true_centers = (
            CENTERS
            if d == 2
            else np.array([[0.2, 0.2, 0.3, 0.3], [0.8, 0.3, 0.7, 0.2], [0.4, 0.8, 0.2, 0.8]])
        )
        for epsilon in epsilons:
            mechanism = sf.BPM(epsilon, "auto", d)
            for each in (1_000, 10_000):
                for spread in (0.005, 0.02):
                    errors = []
                    for seed in range(5):
                        points, true = blobs(3 * each, spread, seed, true_centers)
                        found = decode(
                            perturbed(mechanism, points, seed),
                            mechanism,
                            3,
                            np.random.default_rng(seed),
                        )
                        errors.append(
                            ((found.centers[paired(found.centers, true)] - true) ** 2)
                            .sum(axis=1)
                            .mean()
                        )
                    ratio = float(np.mean(errors) / mechanism.limit(each))
                    figures.append(
                        {
                            "d": d,
                            "epsilon": epsilon,
                            "reports each": each,
                            "spread": spread,
                            "over the limit": round(ratio, 3),
                        }
                    )
    evidence("local-centres", figures)
    assert max(row["over the limit"] for row in figures) <= 2


def test_the_same_reports_and_seed_give_the_same_clusters() -> None:
    mechanism = sf.BPM(8, "auto", 2)
    reports = perturbed(mechanism, blobs(1_500, 0.05, 0)[0], 0)
    one, two = (decode(reports, mechanism, 3, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one.centers, two.centers)
    assert ((one.centers >= 0) & (one.centers <= 1)).all()
    assert (np.diff(one.weights) <= 0).all()


def test_one_cluster_and_one_dimension() -> None:
    mechanism = sf.MultivariateLaplace(6, 1)
    points = np.full((4_000, 1), 0.3)
    found = decode(perturbed(mechanism, points, 0), mechanism, 1, np.random.default_rng(0))
    assert abs(found.centers[0, 0] - 0.3) < 0.02


@pytest.mark.parametrize("k", [0, -1, 2.5, True, 11])
def test_bad_numbers_of_clusters(k: object) -> None:
    with pytest.raises(sf.UsageError):
        decode(np.zeros((10, 2)), sf.BPM(2, 1, 2), k, np.random.default_rng(0))  # type: ignore[arg-type]
