"""Reports have the law that is promised, by either sampler, and twins with known faults do not pass
for them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from local.laws import RNG, fits, public_ball_probability, shells, twin
from sfumato.local.bpm import BPM, share_within
from sfumato.local.bpm import _sampler as _bpm_sampler
from sfumato.local.laplace import MultivariateLaplace
from sfumato.local.laplace import _sampler as _laplace_sampler
from sfumato.local.mechanism import RESOLUTION
from sfumato.local.sampling.distances import DistanceLaw
from sfumato.random import PublicSeed, override

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


@pytest.mark.parametrize(
    "mechanism",
    [BPM(4, "auto", 2), BPM(3, 1, 3), MultivariateLaplace(2, 2), MultivariateLaplace(4, 5)],
    ids=lambda m: m.title,
)
def test_directions_are_uniform(mechanism: BPM | MultivariateLaplace) -> None:
    d = mechanism.dimension
    with override(PublicSeed(f"direction {mechanism.title}")):
        offsets = mechanism.perturb(np.full((COUNT, d), 0.5)) - 0.5
    if isinstance(mechanism, BPM):
        offsets = offsets[np.linalg.norm(offsets, axis=1) < float(mechanism.L)]
    assert fits(*cosines(offsets))
    cube = RNG.uniform(-1, 1, offsets.shape)
    assert not fits(*cosines(cube)), "directions of a cube passed"


def cosines(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the first axis' squared direction cosine, which is Beta(1/2, (d - 1)/2), by
    twentieths; signs of the others apart.
    """
    from scipy import stats

    d = offsets.shape[1]
    squares = offsets[:, 0] ** 2 / (offsets**2).sum(axis=1)
    part = np.minimum((stats.beta.cdf(squares, 0.5, (d - 1) / 2) * 20).astype(int), 19)
    signs = ((offsets > 0) * 2 ** np.arange(d)).sum(axis=1)
    counts = np.bincount(part * 2**d + signs, minlength=20 * 2**d)
    return counts, np.full(len(counts), len(offsets) / len(counts))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_laplace_radii_are_gamma(d: int) -> None:
    from scipy import stats

    mechanism = MultivariateLaplace(3, d)
    with override(PublicSeed(f"laplace {d}")):
        radii = np.linalg.norm(mechanism.perturb(np.full((COUNT, d), 0.25)) - 0.25, axis=1)
    for factor, sound in ((1, True), (1.05, False)):
        part = np.minimum((stats.gamma.cdf(radii * 3 * factor, d) * 50).astype(int), 49)
        assert fits(np.bincount(part, minlength=50), np.full(50, COUNT / 50)) is sound


def test_both_samplers_agree_where_reports_fall() -> None:
    bpm, point = BPM(5, "0.6", 2), np.array([0.1, 0.7])
    with override(PublicSeed("agree")):
        maps = [
            cells_of(bpm.perturb(np.tile(point, (COUNT, 1)), method=method), bpm)
            for method in ("mixture", "two-stage")
        ]
    expected = exact_masses(bpm, point) * COUNT
    for counts in maps:
        assert fits(counts, expected)
    broken = cells_of(twin(bpm, point, COUNT, public_ball_probability(bpm), 5), bpm)
    assert not fits(broken, expected)


def cells_of(reports: np.ndarray, bpm: BPM, side: int = 8) -> np.ndarray:
    """Counts on a coarse lattice of side^d cells of the report space."""
    reach = float(bpm.L)
    index = ((reports + reach) / (1 + 2 * reach) * side).astype(int)
    return np.bincount(index @ side ** np.arange(bpm.dimension), minlength=side**bpm.dimension)


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


# --- floats decide only what is certain -----------------------------------------------------------

SAMPLERS = {
    "bpm 2": lambda: _bpm_sampler(BPM(4, "auto", 2), 3, 2),
    "bpm 3, power": lambda: _bpm_sampler(BPM(2, "0.3", 3), 4, 3),
    "bpm 1": lambda: _bpm_sampler(BPM(4, "auto", 1), 2, 1),
    "two-stage 2": lambda: _bpm_sampler(BPM(4, "0.9", 2), 2, 0),
    "bpm 7": lambda: _bpm_sampler(BPM(16, "auto", 7), 8, 7),
    "laplace 1": lambda: _laplace_sampler(MultivariateLaplace(1, 1)),
    "laplace 5": lambda: _laplace_sampler(MultivariateLaplace(8, 5)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_floats_and_decimals_agree_wherever_floats_are_certain(name: str) -> None:
    sampler, bits, count = SAMPLERS[name](), PublicSeed(name), 60
    points = np.random.default_rng(0).random((count, sampler.dimension))
    radii = sampler.distance.propose(count, bits)
    cells = np.empty(points.shape)
    directions = sampler._write_directions(cells, bits)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_open = sampler._write_cells(points, radii.values, directions, cells)
    assert radii.doubtful.sum() + is_open.sum() <= 1
    for i in np.flatnonzero(~radii.doubtful):
        direction = sampler._exact_direction(directions, i, bits)
        settled = sampler.settled(points[i], radii.reals(i, bits), direction)
        assert (settled is not None) == radii.accepted[i]
        if settled is not None and not is_open[i]:
            assert settled == cells[i].tolist()


OPEN = [
    BPM(4, "auto", 1),
    BPM(4, "auto", 2),
    BPM(2, "0.3", 3),
    BPM(40, "auto", 40),
    MultivariateLaplace(1, 1),
    MultivariateLaplace(3, 5),
]


@pytest.mark.parametrize("mechanism", OPEN, ids=lambda m: m.title)
def test_reports_that_are_all_settled_are_the_same(
    mechanism: BPM | MultivariateLaplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settling reads the very words that the floats read: with a margin that opens all reports,
    none of them changes.
    """
    points = np.random.default_rng(2).random(
        (400 // (10 + mechanism.dimension), mechanism.dimension)
    )
    seed = f"all open {mechanism.title}"
    sure = mechanism.draw_cells(points, PublicSeed(seed))
    monkeypatch.setattr("sfumato.local.sampling.cells._LEAST_MARGIN", 1.0)
    np.testing.assert_array_equal(mechanism.draw_cells(points, PublicSeed(seed)), sure)
    # And the cells that floats give have no say in it.
    monkeypatch.setattr(
        "sfumato.local.sampling.cells.np.rint", lambda near, out: np.multiply(near, 0, out=out)
    )
    np.testing.assert_array_equal(mechanism.draw_cells(points, PublicSeed(seed)), sure)


LAWS = {
    "gamma, spread": lambda: DistanceLaw(3, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 2),
    "gamma of one": lambda: DistanceLaw(2, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 1),
    "gamma, bounded": lambda: DistanceLaw(2, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 0),
    "gamma of many": lambda: DistanceLaw(3000, BPM(3000, 1, 2).epsilon, None, 0),
    "power": lambda: DistanceLaw(4, BPM(2, 1, 2).epsilon, BPM(2, "0.3", 2).L, 3),
    "power of one": lambda: DistanceLaw(1, BPM(2, 1, 2).epsilon, BPM(2, "0.01", 2).L, 0),
}


@pytest.mark.parametrize("name", LAWS)
def test_errors_of_floats_stay_below_the_margin(name: str) -> None:
    """The distance between both evaluations of a radius, in units of the bound that the margin is
    made of.
    """
    from decimal import localcontext

    from sfumato.local.sampling.decimals import context
    from sfumato.local.sampling.reals import Level

    law, bits = LAWS[name](), PublicSeed(name)
    assert law.by_power == name.startswith("power")
    radii = law.propose(60, bits)
    found = np.flatnonzero(radii.accepted & ~radii.doubtful)
    assert found.size > 10
    for i in found:
        with localcontext(context(60)):
            exact = law.exact(radii.reals(i, bits), Level(96))
        assert exact is not None
        assert abs(float(exact) - radii.values[i]) <= law.error(radii.values[i : i + 1])[0] / 4


@pytest.mark.parametrize("name", LAWS)
def test_few_radii_are_tried_in_vain(name: str) -> None:
    radii = LAWS[name]().propose(20_000, PublicSeed(f"vain {name}"))
    assert radii.accepted.mean() > 0.2
    assert radii.doubtful.sum() <= 2


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


@pytest.mark.parametrize("reach", ["0.2", "1", "4"])
def test_radii_that_are_all_doubtful_have_the_same_law(
    reach: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every candidate is settled, and drawn afresh where decimals reject it; what floats propose
    has another law.
    """
    from scipy import stats

    monkeypatch.setattr("sfumato.local.sampling.distances._ACCEPT_MARGIN", 1e9)
    k, bits = BPM(3, reach, 1), PublicSeed(f"all doubtful {reach}")
    sampler = _bpm_sampler(k, 2, 0)
    assert sampler.distance.by_power == (reach == "0.2")
    assert sampler.distance.propose(100, bits).doubtful.all()
    count = 1500
    settled = np.abs(k.place(sampler.draw(np.zeros((count, 1)), bits))).ravel()
    proposed = sampler.distance.propose(count, bits).values
    law = stats.gamma(2, scale=1 / 3)
    for values, sound in (
        (settled, True),
        (settled * 1.3, False),
        *([(proposed, False)] if reach == "1" else []),
    ):
        pvalue = stats.kstest(
            values, lambda r: np.minimum(law.cdf(r) / law.cdf(float(reach)), 1)
        ).pvalue
        assert (pvalue > 1e-9) == sound


class _Edge:
    """Words that lie at the edges, at the beginning of the first calls, then ordinary ones."""

    private = False

    def __init__(self, seed: str) -> None:
        self._rest, self._calls = PublicSeed(seed), 10

    def words(self, count: int) -> np.ndarray:
        found = self._rest.words(count)
        self._calls -= 1
        if self._calls >= 0:
            edges = np.array(
                [0, 2**64 - 1, 1, 2**63, 2**63 - 1, 1023, 2**64 - 1023], dtype=np.uint64
            )[:count]
            found[: len(edges)] = edges
        return found


def test_words_at_the_edges_are_settled() -> None:
    for mechanism in (
        BPM(4, "auto", 1),
        BPM(4, "auto", 3),
        BPM(2, "0.3", 2),
        MultivariateLaplace(1, 1),
        MultivariateLaplace(1, 4),
    ):
        for count in (1, 12):
            with override(_Edge(mechanism.title)):
                report = mechanism.perturb(np.full((count, mechanism.dimension), 0.5))
            assert np.isfinite(report).all()
    assert mechanism.perturb(np.zeros((0, 4))).shape == (0, 4)


def test_reports_lie_on_the_public_lattice() -> None:
    bpm = BPM(4, "0.5", 2)
    cells = bpm.draw_cells(np.random.default_rng(0).random((1000, 2)))
    assert cells.min() >= 0
    assert cells.max() < RESOLUTION
    steps = (bpm.perturb(np.zeros((50, 2))) + 0.5) / float(bpm.width) - 0.5
    assert np.abs(steps - np.round(steps)).max() < 1e-6
