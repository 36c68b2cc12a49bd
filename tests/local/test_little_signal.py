"""Where reports say little: never much worse than the two answers that need no decoder."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import sfumato as sf
from local.rehearsals import people, reported
from sfumato.basics.kmeans import kmeans, sse
from sfumato.local import decode
from sfumato.local.decoder import spread_evenly
from sfumato.local.normal_clusters import even_density, noise_law
from sfumato.local.posterior import sample


def sources_example() -> np.ndarray:
    points, _ = make_blobs(n_samples=300, n_features=2, centers=3, random_state=42)
    return np.asarray((points - points.min(axis=0)) / np.ptp(points, axis=0))


def losses(epsilon: float, radius: str, seeds: int) -> tuple[float, float, float]:
    """Medians of the sum of squares: decoded, k-means on the reports, and no data."""
    points = sources_example()
    mechanism = sf.BPM(epsilon, radius, 2)
    decoded, naive = [], []
    for seed in range(seeds):
        reports = reported(mechanism, points, seed)
        found = decode(reports, mechanism, 3, np.random.default_rng(seed))
        decoded.append(sse(points, found.centers))
        naive.append(sse(points, kmeans(reports, 3, seed=seed, tries=4)))
    even = sse(points, spread_evenly(3, 2))
    return float(np.median(decoded)), float(np.median(naive)), even


@pytest.mark.parametrize(
    ("epsilon", "radius"), [(2, "0.3"), pytest.param(4, "auto", marks=pytest.mark.deep)]
)
def test_the_sources_example(epsilon: float, radius: str) -> None:
    decoded, naive, even = losses(epsilon, radius, 3)
    assert decoded <= 1.1 * min(naive, even)


@pytest.mark.deep
@pytest.mark.parametrize("radius", ["0.3", "0.5", "auto"])
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_the_sources_example_in_the_median_of_twenty(epsilon: float, radius: str) -> None:
    decoded, naive, even = losses(epsilon, radius, 20)
    assert decoded <= 1.1 * min(naive, even)


def test_reports_that_say_nothing_leave_the_centres_even() -> None:
    mechanism = sf.BPM(1, "0.3", 2)
    reports = reported(mechanism, people(300, 2, 0.02, 0), 0)
    found = decode(reports, mechanism, 3, np.random.default_rng(0))
    assert not found.evident
    assert {tuple(c) for c in found.centers} == {tuple(c) for c in spread_evenly(3, 2)}
    # A coordinate of nothing known is uncertain by a good part of the cube.
    assert (found.center_errors > 0.05).all()


def test_evidence_tells_clusters_from_noise() -> None:
    mechanism = sf.BPM(8, "auto", 2)
    law = noise_law(mechanism)
    even = np.random.default_rng(1).random((300, 2))
    for points, low, high in ((people(300, 2, 0.05, 1), 10, 500), (even, -50, 3)):
        posterior = sample(reported(mechanism, points, 1), 3, law, np.random.default_rng(0))
        assert low < posterior.evidence < high


def test_the_evidence_of_one_report_is_its_density() -> None:
    """A report has the same density by the prior's clusters as by even points, but for edges."""
    mechanism = sf.BPM(2, "auto", 2)
    law = noise_law(mechanism)
    posterior = sample(np.full((1, 2), 0.5), 1, law, np.random.default_rng(0))
    assert abs(posterior.evidence) < 0.2


def test_the_density_of_reports_of_even_points() -> None:
    mechanism = sf.BPM(4, "auto", 2)
    law = noise_law(mechanism)
    even = np.random.default_rng(0).random((20_000, 2))
    at = np.array([[0.5, 0.5], [0.1, 0.9], [1.4, 0.2]])
    expected = [mechanism.density(even, x).mean() for x in at]
    assert np.allclose(even_density(at, law), expected, rtol=0.05)


def test_even_centres_are_those_of_kmeans_on_even_points() -> None:
    assert np.allclose(
        np.sort(spread_evenly(4, 1).ravel()), [0.125, 0.375, 0.625, 0.875], atol=0.01
    )
    even = np.random.default_rng(0).random((20_000, 2))
    best = sse(even, kmeans(even, 3, tries=8))
    assert sse(even, spread_evenly(3, 2)) < 1.02 * best
