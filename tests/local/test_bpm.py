"""Reports of BPM have the law that is promised, by either sampler; known faults do not pass."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sfumato as sf
from local.laws import RNG, fits, public_ball_probability, shells, twin
from sfumato.local.bpm import BPM, share_within
from sfumato.local.bpm import _sampler as _bpm_sampler
from sfumato.local.mechanism import RESOLUTION, MultivariateLaplace
from sfumato.random import PublicSeed, override


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.perturb(np.zeros((1, b.dimension))),
        lambda b: b.draw_cells(np.zeros((1, b.dimension))),
        lambda b: b.debias(np.zeros(b.dimension)),
    ],
)
def test_a_mechanism_without_signal_is_refused_with_a_remedy(call: object) -> None:
    for hopeless in (sf.BPM(4, "0.3", 64), sf.BPM(4, "0.3", 8)):
        with pytest.raises(sf.Infeasible, match=r'L="auto"'):
            call(hopeless)  # type: ignore[operator]
    assert sf.BPM(4, "auto", 64).perturb(np.zeros((1, 64))).shape == (1, 64)


def test_a_loss_beyond_all_promises_is_refused() -> None:
    with pytest.raises(sf.UsageError, match="promises nothing"):
        sf.BPM(10**9, 10**9, 3)


CASES = [(2, "0.3", 2), (4, "auto", 2), (1, "0.4", 1), (3, 1, 3), (8, "auto", 8)]


COUNT = 120_000


def distances(bpm: BPM, reports: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts by shell, of equal mass, and what they should be."""
    radii = np.linalg.norm(reports - point, axis=1)
    reach = float(bpm.L)
    fine = np.linspace(0, reach, 400)
    edges = np.interp(np.linspace(0, 1, 40), share_within(bpm, fine) / bpm.ball_probability, fine)
    edges[0], edges[-1] = 0, reach
    counts = np.append(np.histogram(radii, edges)[0], (radii > reach).sum())
    return counts, shells(bpm, edges) * len(radii)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("method", ["mixture", "two-stage"])
def test_the_law_of_the_radius(case: tuple[object, object, int], method: str) -> None:
    bpm = BPM(*case)
    point = np.linspace(0.1, 0.8, bpm.dimension)
    with override(PublicSeed(f"radius {case} {method}")):
        reports = bpm.perturb(np.tile(point, (COUNT, 1)), method=method)
    assert fits(*distances(bpm, reports, point))
    reach = float(bpm.L)
    assert ((reports >= -reach) & (reports <= 1 + reach)).all()
    if bpm.ball_probability < 0.9:
        broken = twin(bpm, point, COUNT, public_ball_probability(bpm), float(bpm.epsilon))
        assert not fits(*distances(bpm, broken, point)), "the public implementation's law passed"
    for wrong in (0.9, 1.1) if bpm.epsilon * bpm.L > 1 and bpm.ball_probability > 0.3 else ():
        other = BPM(float(bpm.epsilon) * wrong, bpm.L, bpm.dimension)
        broken = twin(bpm, point, COUNT, other.ball_probability, float(other.epsilon))
        assert not fits(*distances(bpm, broken, point)), "a rate wrong by a tenth passed"


@pytest.mark.parametrize("twin", ["no coin", "half the noise", "sound"])
def test_a_broken_radius_does_not_pass(twin: str) -> None:
    """By the Gamma law: without the coin that spreads a ball's radius, or at half of it, the law of
    the radius fails.
    """
    bpm, point = BPM(5, 1, 2), np.array([0.3, 0.6])
    sampler = _bpm_sampler(bpm, 2, 0) if twin == "no coin" else _bpm_sampler(bpm, 3, 2)
    assert not sampler.distance.by_power
    bits, share = PublicSeed(f"broken {twin}"), bpm.signal_probability
    near = bpm.place(sampler.draw(np.tile(point, (int(COUNT * share), 1)), bits))
    if twin == "half the noise":
        near = point + (near - point) / 2
    far = RNG.uniform(-1, 2, (COUNT - len(near), 2))
    assert fits(*distances(bpm, np.concatenate((near, far)), point)) is (twin == "sound")


def exact_masses(bpm: BPM, point: np.ndarray, side: int = 8, density: object = None) -> np.ndarray:
    """Mass of each coarse cell, by the midpoint rule on a fine lattice."""
    reach, fine = float(bpm.L), 24
    axis = (np.arange(side * fine) + 0.5) / (side * fine) * (1 + 2 * reach) - reach
    grid = np.stack(np.meshgrid(*[axis] * bpm.dimension, indexing="ij"), axis=-1).reshape(
        -1, bpm.dimension
    )
    values = (density or bpm.density)(point, grid)
    counts = ((grid + reach) / (1 + 2 * reach) * side).astype(int) @ side ** np.arange(
        bpm.dimension
    )
    masses = np.bincount(counts, values, minlength=side**bpm.dimension)
    return masses / (fine * side) ** bpm.dimension * (1 + 2 * reach) ** bpm.dimension


@pytest.mark.parametrize("case", [(2, "0.3", 2), (6, "0.5", 2), (3, "0.7", 1)], ids=str)
def test_neighbouring_points_on_a_coarse_lattice(case: tuple[object, object, int]) -> None:
    """Likelihood ratios of all cells and many pairs of points stay within epsilon times their
    distance; the public law's do not.
    """
    bpm = BPM(*case)
    epsilon, reach, d = float(bpm.epsilon), float(bpm.L), bpm.dimension
    points = np.random.default_rng(1).random((7, d))
    side = 40 if d == 1 else 12

    def public(v: np.ndarray, x: np.ndarray) -> np.ndarray:
        near = np.linalg.norm(x - v, axis=-1) <= reach
        p = public_ball_probability(bpm)
        inside = bpm.density(v, x) * p / bpm.ball_probability
        return np.where(near, inside, bpm.density(v, x) * (1 - p) / (1 - bpm.ball_probability))

    excess = {"ours": 0.0, "public": 0.0}
    for name, density in (("ours", bpm.density), ("public", public)):
        masses = [exact_masses(bpm, point, side, density) for point in points]
        for i, one in enumerate(points):
            for j, other in enumerate(points):
                loss = float(np.abs(np.log(masses[i] / masses[j])).max())
                excess[name] = max(
                    excess[name], loss - epsilon * float(np.linalg.norm(one - other))
                )
    assert excess["ours"] <= 1e-9
    assert excess["public"] > 0.1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_density_is_continuous_at_the_sphere(case: tuple[object, object, int]) -> None:
    bpm = BPM(*case)
    centre, step = np.full(bpm.dimension, 0.5), np.zeros(bpm.dimension)
    step[0] = float(bpm.L)
    just_inside, just_outside = (
        bpm.density(centre, centre + step * factor) for factor in (1 - 1e-12, 1 + 1e-12)
    )
    assert just_inside / just_outside == pytest.approx(1, abs=1e-9)
    assert bpm.density(centre, centre + step * 10) == 0
    assert math.exp(bpm.log_normalizer) == pytest.approx(float(bpm.density(centre, centre)))


@pytest.mark.parametrize("d", [3, 24, 96])
def test_the_law_in_many_dimensions(d: int) -> None:
    """Radii by the Gamma law, and each axis' share of the squared length by the Beta law; half of
    the noise would show.
    """
    from scipy import stats

    count = 400_000 // d
    mechanism = BPM(d, "auto", d)
    with override(PublicSeed(f"many {d}")):
        laplace = MultivariateLaplace(d, d).perturb(np.full((count, d), 0.5)) - 0.5
        bounded = mechanism.perturb(np.full((count, d), 0.5)) - 0.5
    for offsets in (laplace, bounded[np.linalg.norm(bounded, axis=1) < float(mechanism.L)]):
        radii = np.linalg.norm(offsets, axis=1)
        for factor, sound in ((1, True), (0.5, False), (1.05, False)):
            part = np.minimum((stats.gamma.cdf(radii * d * factor, d) * 20).astype(int), 19)
            assert fits(np.bincount(part, minlength=20), np.full(20, len(radii) / 20)) is sound
        shares = offsets**2 / radii[:, None] ** 2
        for some in (shares[:, 0], shares[:, -1]):
            part = np.minimum((stats.beta.cdf(some, 0.5, (d - 1) / 2) * 20).astype(int), 19)
            assert fits(np.bincount(part, minlength=20), np.full(20, len(some) / 20))
        assert abs(np.corrcoef(offsets[:, 0], offsets[:, -1])[0, 1]) < 6.2 / math.sqrt(len(offsets))


def test_reports_lie_on_the_public_lattice() -> None:
    bpm = BPM(4, "0.5", 2)
    cells = bpm.draw_cells(np.random.default_rng(0).random((1000, 2)))
    assert cells.min() >= 0
    assert cells.max() < RESOLUTION
    steps = (bpm.perturb(np.zeros((50, 2))) + 0.5) / float(bpm.width) - 0.5
    assert np.abs(steps - np.round(steps)).max() < 1e-6
