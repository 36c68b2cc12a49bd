"""The standard error of centres is about the mean of the rows nearest to each, and holds it as often as it should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

import sfumato as sf
from sfumato.clustering.error import Cells
from sfumato.clustering.methods import occupied
from sfumato.clustering.space import HALF
from sfumato.cube import Cube
from sfumato.domain import GridAxis
from sfumato.random import PublicSeed
from sfumato.random.bits import Bits, current
from support.statistics import covers

WITHIN = 1.96  # standard errors, for 95 %


def mixture(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Normal clusters of unequal weight in [-1, 1]^d; a tenth of the points are spread evenly."""
    rng = np.random.default_rng([seed, d, k])
    centres = rng.uniform(-0.8, 0.8, (k, d))
    which = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    points = centres[which] + rng.normal(size=(n, d)) * 0.08
    stray = rng.random(n) < 0.1
    points[stray] = rng.uniform(-1, 1, (int(stray.sum()), d))
    return np.clip(points, -1, 1)


def skewed(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """No clusters at all: one smooth hump near a corner."""
    return np.random.default_rng([seed, d]).beta(2, 5, (n, d)) * 2 - 1


def lattice_points(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Values rounded to quarters, on an axis that was not declared to have a step."""
    return np.round(mixture(n, d, k, seed) * 4) / 4


def counted(points: np.ndarray, question: sf.KMeans) -> Cube:
    """The rows on the question's own lattice, by their occupied cells alone."""
    lattice = question.needs(sf.Domain({f"x{i}": sf.Interval(-1, 1) for i in range(points.shape[1])}))
    cells = [a.locate(x.copy()) for a, x in zip(lattice.axes, points.T, strict=True) if isinstance(a, GridAxis)]
    return occupied(Cube.of_cells(lattice, np.stack(cells, axis=1)))


def errors(points: np.ndarray, cube: Cube, question: sf.KMeans, epsilon: str, noise: Bits) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of one release: centre less the mean of the rows nearest to it, its standard error, and that of the noise alone.

    Each of shape (centres, d), for centres whose weight can be told from 0.
    """
    release = question.answer(cube, sf.Unit(), sf.PureDP(epsilon), noise)
    groups = release.predict(points)
    k, d = release.centers.shape
    rows = np.bincount(groups, minlength=k)
    means = np.stack([np.bincount(groups, x, k) for x in points.T], axis=1) / np.maximum(rows, 1)[:, None]
    known = np.isfinite(release.standard_error).all(axis=1) & (rows > 0)
    if release.steps:
        alone = release.steps[-1].standard_error(d) / HALF
    else:
        assert release.partition is not None
        alone = np.sqrt(Cells.of(release.space, release.partition).noise(release._whole)) / HALF
    return (release.centers - means)[known], release.standard_error[known], alone[known]


@pytest.mark.parametrize(("method", "rows", "trials"), [("privtree", 10_000, 100), ("eugkm", 2_000, 60)])
def test_the_mean_of_the_nearest_rows_is_within_two_standard_errors(method: Literal["privtree", "eugkm"], rows: int, trials: int) -> None:
    """One coordinate of each release, in turn: these are independent. With the noise alone the tree's holds six times in ten."""
    points, question = mixture(rows, 2, 5, 7), sf.KMeans(5, method=method)
    cube, noise = counted(points, question), PublicSeed(f"centres {method}")
    held, noise_alone = 0, 0
    for trial in range(trials):
        off, error, alone = (found.ravel() for found in errors(points, cube, question, "1", noise))
        at = trial % len(off)
        held += abs(off[at]) <= WITHIN * error[at]
        noise_alone += abs(off[at]) <= WITHIN * alone[at]
    assert covers(held, trials, 0.95)
    if method == "privtree":
        assert not covers(noise_alone, trials, 0.95)


def test_the_squares_of_offset_and_noise_are_enough_for_every_offset() -> None:
    """P(|N(b, 1)| <= 1.96 sqrt(1 + b^2)) is never below 0.95: what the standard error rests on."""
    from scipy import stats

    offset = np.linspace(0, 50, 20_001)
    reach = stats.norm.isf(0.025) * np.sqrt(1 + offset**2)
    held = stats.norm.cdf(reach - offset) - stats.norm.cdf(-reach - offset)
    assert held.min() >= 0.95 - 1e-12


def test_half_a_cell_counts_but_not_where_cells_are_steps() -> None:
    """Without noise to speak of, what is left is the lattice's: 1/16 of the side on 16 cells, nothing on 16 steps."""
    rng = np.random.default_rng(2)
    values = rng.integers(0, 16, (5_000, 1)).astype(float)
    found = []
    for step in (1, None):
        lattice = sf.KMeans(2, method="dplloyd").needs(sf.Domain(x=sf.Interval(0, 16, step=1)))
        axis = lattice.axes[0]
        assert isinstance(axis, GridAxis)
        if step is None:
            axis = GridAxis("x", 0.0, 16.0, 16)
        cube = Cube.of_cells(type(lattice)((axis,)), axis.locate(values[:, 0].copy())[:, None])
        release = sf.KMeans(2, method="dplloyd").answer(cube, sf.Unit(), sf.PureDP("1000000"), PublicSeed("lattice"))
        found.append(release.standard_error)
    assert (found[1] >= 0.5).all()
    assert (found[0] < found[1]).all()


def test_the_derivative_is_that_of_the_difference() -> None:
    """The variance of the estimated offset is what repeated noise on the partition's counts shows."""
    points = mixture(3_000, 2, 5, 3)
    question = sf.KMeans(3, method="privtree")
    release = question.answer(counted(points, question), sf.Unit(), sf.PureDP("2"), PublicSeed("derivative"))
    assert release.partition is not None
    model = Cells.of(release.space, release.partition)
    weights = model.weights + 50  # far from 0, where counts are cut
    rng = np.random.default_rng(0)

    def offset(counts: np.ndarray) -> np.ndarray:
        exact = Cells(model.middles, model.halves, counts, counts, np.zeros(len(counts)))
        return np.sqrt(exact.region(release._whole, release.steps))

    level = offset(weights)
    draws = np.stack([offset(weights + rng.normal(size=len(weights))) for _ in range(200)])
    one = np.ones(len(weights))
    stated = Cells(model.middles, model.halves, weights, weights, one).region(release._whole, release.steps) - level**2
    clear = level > 5 * draws.std(axis=0)  # where the absolute value does not matter
    assert clear.any()
    assert np.allclose(draws.std(axis=0)[clear], np.sqrt(stated[clear]), rtol=0.25)


def test_a_grid_of_many_empty_cells_says_how_far_they_draw_its_centres() -> None:
    """Counts cut at 0 leave noise in the empty corner, and the centre there is off by four standard errors of the noise alone."""
    points, question = skewed(10_000, 2, 4, 101), sf.KMeans(4, method="eugkm")
    cube, noise = counted(points, question), PublicSeed("empty cells")
    found = [errors(points, cube, question, "1", noise) for _ in range(20)]
    off, error, alone = (np.concatenate([one[part][-1:] for one in found]) for part in range(3))
    assert (np.abs(off) <= WITHIN * error).mean() > 0.9
    assert (np.abs(off) <= WITHIN * alone).mean() < 0.1


def test_a_centre_that_no_row_is_near_has_no_error() -> None:
    points, question = np.zeros((3, 2)), sf.KMeans(5, method="dplloyd")
    off, error, _ = errors(points, counted(points, question), question, "0.01", PublicSeed("nobody"))
    assert len(off) == len(error) < 5


KINDS: dict[str, tuple[Callable[..., np.ndarray], int, int]] = {
    "mixture, d = 2": (mixture, 2, 5),
    "mixture, d = 5": (mixture, 5, 8),
    "skewed, d = 2": (skewed, 2, 4),
    "quarters, d = 2": (lattice_points, 2, 4),
}


@pytest.mark.deep
@pytest.mark.parametrize("method", ["privtree", "eugkm", "dplloyd"])
def test_coverage_of_centres(method: Literal["privtree", "eugkm", "dplloyd"], evidence: Callable[[str, object], None]) -> None:
    """A thousand releases each, on data that had no part in the making."""
    trials = 1_000
    figures = []
    for name, (make, d, k) in KINDS.items():
        if method == "eugkm" and d > 2:
            continue
        points = make(10_000, d, k, 101)
        question = sf.KMeans(k, method=method)
        cube = counted(points, question)
        for epsilon in ("0.1", "1"):
            held, before, single = [], [], 0
            for trial in range(trials):
                off, error, alone = (found.ravel() for found in errors(points, cube, question, epsilon, current()))
                if not len(off):
                    single += 1
                    continue
                held.append(np.abs(off) <= WITHIN * error)
                before.append(np.abs(off) <= WITHIN * alone)
                single += bool(held[-1][trial % len(off)])
            row = {"data": name, "method": method, "epsilon": epsilon}
            row |= {"coverage": round(float(np.concatenate(held).mean()), 3)}
            row |= {"noise alone": round(float(np.concatenate(before).mean()), 3)}
            figures.append((row, single))
    evidence(f"coverage_of_centres_{method}", [row for row, _ in figures])
    for row, single in figures:
        if "quarters" not in str(row["data"]):  # rounded rows do not lie evenly in cells, which is presumed
            assert covers(single, trials, 0.95), row
