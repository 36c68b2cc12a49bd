"""The density behind reports: its slope is right, its evidence prefers what is true, and k-means on
it finds what there is.
"""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.kmeans import kmeans, sse
from sfumato.local import decode, density
from sfumato.local.decoder import _gathered, _known
from sfumato.local.mechanism import Mechanism
from sfumato.local.normal_clusters import NoiseLaw, noise_law
from sfumato.random import PublicSeed, override

EVERYWHERE = np.array([[0.0, 1.0], [0.0, 1.0]])


def perturbed(mechanism: Mechanism, points: np.ndarray) -> np.ndarray:
    with override(PublicSeed(f"{mechanism.title} {points.shape}")):
        return mechanism.perturb(points)


def explored(mechanism: Mechanism, points: np.ndarray) -> density.Density:
    return density.explore(*_gathered(perturbed(mechanism, points), 0.05), noise_law(mechanism))


def moon(n: int) -> np.ndarray:
    """A thin arc: nothing like a few normal clusters."""
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, np.pi, n)
    return (
        0.5
        + 0.4 * np.column_stack([np.cos(angle), np.sin(angle) - 0.5])
        + rng.normal(size=(n, 2)) * 0.01
    )


def test_the_slope_is_that_of_the_likelihood() -> None:
    rng = np.random.default_rng(0)
    law, counts = noise_law(sf.BPM(6, "0.5", 2)), rng.integers(1, 4, 200).astype(float)
    lattice = density._lattice(rng.random((200, 2)), law, EVERYWHERE, 4)
    functions = lattice.functions(0.3, 2.0, 3.0)
    theta = rng.normal(size=functions.shape[1]) / 3
    state = density._state(lattice, counts, functions, theta)
    slope, curve = density._curved(lattice, counts, functions, state)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        above = density._state(lattice, counts, functions, theta + step).value
        below = density._state(lattice, counts, functions, theta - step).value
        assert (above - below) / 2e-5 == pytest.approx(slope[i], abs=1e-5)
    assert np.linalg.eigvalsh(curve).min() > 0.99


def test_many_reports_at_a_point_leave_the_precision_one() -> None:
    """Its least eigenvalue is the prior's, 1, and the largest a billion times as large: single
    precision would lose it.
    """
    rng = np.random.default_rng(0)
    law = noise_law(sf.BPM(30, "0.5", 2))
    lattice = density._lattice(rng.random((500, 2)), law, EVERYWHERE, 14)
    functions = lattice.functions(0.4, 6.0, 10.0)
    counts = np.full(500, 1e5)
    state = density._state(lattice, counts, functions, np.zeros(functions.shape[1]))
    _, curve = density._curved(lattice, counts, functions, state)
    assert np.linalg.eigvalsh(curve).min() > 0.99


def test_cells_of_the_lattice_have_the_density_of_their_mixture() -> None:
    """Second moments of the cells are in the kernel: reports of a uniform law have the density that
    integrals give.
    """
    law = NoiseLaw(np.array([0.3, 0.7]), np.array([0.02, 0.1]), 0.0, -np.inf)
    reports = np.random.default_rng(0).uniform(-0.3, 1.3, (50, 2))
    lattice = density._lattice(reports, law, EVERYWHERE, 4)
    from scipy.stats import norm

    sides = [
        (norm.cdf(1, reports, scale) - norm.cdf(0, reports, scale)).prod(axis=1)
        for scale in np.sqrt(law.variances)
    ]
    assert lattice.kernel.mean(axis=1) == pytest.approx(law.shares @ np.array(sides), rel=1e-4)


@pytest.mark.parametrize(
    "mechanism", [sf.BPM(6, "auto", 2), sf.MultivariateLaplace(6, 2)], ids=lambda m: m.title
)
def test_moments_of_points_come_out(mechanism: Mechanism) -> None:
    points = np.clip(np.random.default_rng(1).normal([0.6, 0.3], [0.1, 0.06], (8_000, 2)), 0, 1)
    found = explored(mechanism, points)
    assert found.shares.sum() == pytest.approx(1)
    assert found.weights.sum() == pytest.approx(1)
    mean = found.shares @ found.sites
    assert mean == pytest.approx(points.mean(axis=0), abs=0.02)
    assert np.sqrt(found.shares @ (found.sites - mean) ** 2) == pytest.approx(
        points.std(axis=0), abs=0.05
    )
    drawn = [found.draw(np.random.default_rng(seed)) for seed in range(20)]
    assert np.mean(drawn, axis=0) @ found.sites == pytest.approx(mean, abs=0.08)


def test_where_noise_hides_details_there_are_none() -> None:
    """A normal law is as likely as any where reports say little, and hills are certain where they
    say much.
    """
    rng = np.random.default_rng(2)
    points = np.where(rng.random((6_000, 1)) < 0.5, 0.2, 0.8) + rng.normal(size=(6_000, 2)) * 0.02
    little, much = (
        explored(sf.MultivariateLaplace(1, 2), points[:500]),
        explored(sf.MultivariateLaplace(10, 2), points),
    )
    assert little.weights[0] > 0.01
    assert much.weights[0] < 1e-6
    centre, ends = (np.abs(much.sites - place).max(axis=1) < 0.1 for place in (0.5, 0.2))
    assert much.shares[ends].sum() > 20 * much.shares[centre].sum()


def test_normal_clusters_count_where_they_are_true_and_not_where_they_are_not() -> None:
    mechanism = sf.MultivariateLaplace(40, 2)
    law, rng = noise_law(mechanism), np.random.default_rng(0)
    true = np.array([[0.2, 0.2], [0.8, 0.3], [0.4, 0.8]])
    for points, normal in (
        (true[rng.integers(3, size=4_000)] + rng.normal(size=(4_000, 2)) * 0.002, True),
        (moon(4_000), False),
    ):
        assert (_known(perturbed(mechanism, points), 3, law, rng).share > 0.5) == normal


def test_centres_of_what_is_no_mixture() -> None:
    mechanism, points = sf.BPM(10, "auto", 2), moon(6_000)
    found = decode(perturbed(mechanism, points), mechanism, 4, np.random.default_rng(0))
    assert sse(points, found.centers) < 1.1 * sse(points, kmeans(points, 4, tries=4))


def test_a_report_that_no_point_explains_does_no_harm() -> None:
    mechanism = sf.MultivariateLaplace(20, 2)
    points = np.full((2_000, 2), 0.3)
    reports = perturbed(mechanism, points)
    reports[0] = 1e4
    with np.errstate(all="raise", under="ignore"):
        found = decode(reports, mechanism, 1, np.random.default_rng(0))
    assert found.centers[0] == pytest.approx([0.3, 0.3], abs=0.02)
