"""The standard error is about the mean of the nearest rows, and covers it as often as it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import GridAxis
from sfumato.questions.clustering.error import HEAVIER_TAILS, Cells
from sfumato.questions.clustering.lloyd import nearest
from sfumato.random import PublicSeed
from sfumato.random.bits import Bits, current
from support.statistics import covers

Method = Literal["privtree", "eugkm", "dplloyd"]
WITHIN = 1.96  # standard errors, for 95 %
UNDECLARED = sf.Interval(-1, 1)
DECLARED = sf.Interval(-1, 1.25, step=0.25)


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


def far_inside(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """The same clusters, in bounds that are twelve times too wide."""
    return mixture(n, d, k, seed) / 12


def lattice_points(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Values rounded to quarters, on an axis that was not declared to have a step."""
    return np.round(mixture(n, d, k, seed) * 4) / 4


def counted(points: np.ndarray, question: sf.KMeans, axis: sf.Interval = UNDECLARED) -> Cube:
    """The rows on the question's own lattice, by their occupied cells alone."""
    lattice = question.needs(sf.Domain({f"x{i}": axis for i in range(points.shape[1])})).lattice
    cells = [
        a.locate(x.copy())
        for a, x in zip(lattice.axes, points.T, strict=True)
        if isinstance(a, GridAxis)
    ]
    coordinates, counts = Cube.of_cells(lattice, np.stack(cells, axis=1)).occupied()
    return Cube(lattice, counts, coordinates)


def weights_held(points: np.ndarray, release: sf.KMeansRelease) -> np.ndarray:
    """Whether the interval of each weight holds the rows of its group: bool ndarray (k,).

    The groups of a grid are made of whole cells, those of steps of rows.
    """
    k = len(release.weights)
    space = release.space
    if release.steps:
        where = space.whole(space.scale(points))
        groups = nearest(where, release.steps[-1].centres.reshape(k, -1))
    else:
        assert release.partition is not None
        middles = (release.partition.lower + release.partition.upper) / 2
        of_cells = nearest(space.whole(space.scale_edges(middles)), release._whole)
        groups = of_cells[release.partition.assign(points)]
    rows = np.bincount(groups, minlength=k)
    low, high = release.interval()
    return np.asarray((low <= rows) & (rows <= high))


class Found(NamedTuple):
    """Of one release, for centres whose weight can be told from 0: ndarrays of shape (centres, d).

    Centre less the mean of the rows nearest to it; its standard error; that of the noise alone;
    what rounded values may add. And whether the interval of each weight holds: (k,).
    """

    off: np.ndarray
    error: np.ndarray
    alone: np.ndarray
    rounding: np.ndarray
    weights: np.ndarray


def errors(points: np.ndarray, cube: Cube, question: sf.KMeans, epsilon: str, noise: Bits) -> Found:
    release = question.answer(cube, sf.Unit(), sf.PureDP(epsilon), noise)
    groups = release.predict(points)
    k, d = release.centers.shape
    rows = np.bincount(groups, minlength=k)
    means = (
        np.stack([np.bincount(groups, x, k) for x in points.T], axis=1)
        / np.maximum(rows, 1)[:, None]
    )
    known = np.isfinite(release.standard_error).all(axis=1) & (rows > 0)
    if release.steps:
        alone = release.steps[-1].standard_error(d)
    else:
        assert release.partition is not None
        alone = np.sqrt(Cells.of(release.space, release.partition).noise(release._whole))
    rounding = np.broadcast_to(release.rounding_error, (k, d))
    off = release.centers - means
    alone = alone * release.space.widths
    return Found(
        off[known],
        release.standard_error[known],
        alone[known],
        rounding[known],
        weights_held(points, release),
    )


@pytest.mark.parametrize(
    ("method", "rows", "trials"), [("privtree", 4_000, 40), ("eugkm", 2_000, 40)]
)
def test_the_mean_of_the_nearest_rows_is_within_two_standard_errors(
    method: Literal["privtree", "eugkm"], rows: int, trials: int
) -> None:
    """One coordinate of each release, in turn: these are independent.

    With the noise alone, the interval of the tree holds six times in ten.
    """
    points, question = mixture(rows, 2, 5, 7), sf.KMeans(5, method=method)
    cube, noise = counted(points, question), PublicSeed(f"centres {method}")
    held, noise_alone = 0, 0
    for trial in range(trials):
        found = errors(points, cube, question, "1", noise)
        off, error, alone, *_ = (part.ravel() for part in found)
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
    half_width = stats.norm.isf(0.025) * np.sqrt(1 + offset**2)
    held = stats.norm.cdf(half_width - offset) - stats.norm.cdf(-half_width - offset)
    assert held.min() >= 0.95 - 1e-12


def test_so_they_are_for_laplace_noise_that_is_taken_for_wider() -> None:
    """Of one variable, and of sums of two; with its own standard deviation 93.75 % of one."""
    from scipy import stats

    offset = np.linspace(0, 50, 20_001)
    for wider, enough in ((HEAVIER_TAILS, True), (1.0, False)):
        half_width = WITHIN * np.sqrt(2 * wider**2 + offset**2)  # the variance at scale 1 is 2
        held = stats.laplace.cdf(half_width - offset) - stats.laplace.cdf(-half_width - offset)
        assert (held.min() >= 0.95 - 1e-12) == enough
    for scale in np.linspace(0.01, 0.99, 99):
        half_width = WITHIN * HEAVIER_TAILS * np.sqrt(2 * (1 + scale**2))
        tails = (np.exp(-half_width) - scale**2 * np.exp(-half_width / scale)) / (1 - scale**2)
        assert tails <= 0.05


def test_half_a_cell_counts_but_not_where_cells_are_steps() -> None:
    """With hardly any noise, the error of the lattice remains.

    It is 1/16 of the side on 16 cells, and nothing on 16 steps.
    """
    rng = np.random.default_rng(2)
    values = rng.integers(0, 16, (5_000, 1)).astype(float)
    found = []
    for step in (1, None):
        lattice = (
            sf.KMeans(2, method="dplloyd").needs(sf.Domain(x=sf.Interval(0, 16, step=1))).lattice
        )
        axis = lattice.axes[0]
        assert isinstance(axis, GridAxis)
        if step is None:
            axis = GridAxis("x", 0.0, 16.0, 16)
        cube = Cube.of_cells(type(lattice)((axis,)), axis.locate(values[:, 0].copy())[:, None])
        release = sf.KMeans(2, method="dplloyd").answer(
            cube, sf.Unit(), sf.PureDP("1000000"), PublicSeed("lattice")
        )
        found.append(release.standard_error)
    assert (found[1] >= 0.5).all()
    assert (found[0] < found[1]).all()


def test_the_derivative_is_that_of_the_difference() -> None:
    """Repeated noise on the counts of the partition shows the variance of the estimated offset."""
    points = mixture(3_000, 2, 5, 3)
    question = sf.KMeans(3, method="privtree")
    release = question.answer(
        counted(points, question), sf.Unit(), sf.PureDP("2"), PublicSeed("derivative")
    )
    assert release.partition is not None
    model = Cells.of(release.space, release.partition)
    weights = model.weights + 50  # far from 0, where counts are cut
    rng = np.random.default_rng(0)

    def offset(counts: np.ndarray) -> np.ndarray:
        exact = Cells(
            model.middles, model.halves, model.room, counts, counts, np.zeros(len(counts))
        )
        return np.sqrt(exact.region(release._whole, release.steps))

    level = offset(weights)
    draws = np.stack([offset(weights + rng.normal(size=len(weights))) for _ in range(200)])
    one = np.ones(len(weights))
    stated = (
        Cells(model.middles, model.halves, model.room, weights, weights, one).region(
            release._whole, release.steps
        )
        - level**2
    )
    clear = level > 5 * draws.std(axis=0)  # where the absolute value does not matter
    assert clear.any()
    assert np.allclose(draws.std(axis=0)[clear], np.sqrt(stated[clear]), rtol=0.25)


def test_a_grid_of_many_empty_cells_says_how_far_they_draw_its_centres() -> None:
    """Counts cut at 0 leave noise in the empty corner.

    The centre there is off by four standard errors of the noise alone.
    """
    points, question = skewed(10_000, 2, 4, 101), sf.KMeans(4, method="eugkm")
    cube, noise = counted(points, question), PublicSeed("empty cells")
    found = [errors(points, cube, question, "1", noise) for _ in range(20)]
    off, error, alone = (np.concatenate([one[part][-1:] for one in found]) for part in range(3))
    assert (np.abs(off) <= WITHIN * error).mean() > 0.9
    assert (np.abs(off) <= WITHIN * alone).mean() < 0.1


def test_values_at_one_side_of_all_cells_are_within_the_bound_for_rounded_ones() -> None:
    """Quarters on 32 cells a side: centres are half a cell off, which the standard error misses."""
    points, question = lattice_points(10_000, 2, 4, 101), sf.KMeans(4, method="eugkm")
    cube, noise = counted(points, question), PublicSeed("quarters")
    trials = 40
    held = 0
    presumed = 0
    found = []
    for trial in range(trials):
        one = errors(points, cube, question, "1", noise)
        off, error, _, rounding, _ = (part.ravel() for part in one)
        at = trial % len(off)
        held += abs(off[at]) <= WITHIN * error[at] + rounding[at]
        presumed += abs(off[at]) <= WITHIN * error[at]
        assert (rounding == 1 / 32).all()
        found.append(np.abs(off))
    assert covers(held, trials, 0.95)
    assert not covers(presumed, trials, 0.95)
    # A bound that was a tenth less would not be one.
    assert np.median(np.concatenate(found)) > 0.9 / 32


def test_declared_steps_leave_nothing_to_rounding() -> None:
    """Where cells are steps, all rows of a cell have one value: the noise is all there is."""
    points, question = lattice_points(10_000, 2, 4, 101), sf.KMeans(4, method="eugkm")
    cube, noise = counted(points, question, DECLARED), PublicSeed("declared quarters")
    trials = 40
    held = 0
    errors_found = []
    for trial in range(trials):
        one = errors(points, cube, question, "1", noise)
        off, error, _, rounding, _ = (part.ravel() for part in one)
        at = trial % len(off)
        held += abs(off[at]) <= WITHIN * error[at]
        assert not rounding.any()
        errors_found.append(error)
    assert covers(held, trials, 0.95)
    # With the rows spread over their cells the median was 0.037.
    assert np.median(np.concatenate(errors_found)) < 0.01


@pytest.mark.parametrize("method", ["privtree", "dplloyd"])
def test_steps_see_rows_on_the_lattice(method: Method) -> None:
    points, question = lattice_points(500, 2, 3, 1), sf.KMeans(3, method=method)
    found = errors(points, counted(points, question), question, "1", PublicSeed("steps"))
    assert not found.rounding.any()


def test_a_centre_that_no_row_is_near_has_no_error() -> None:
    points, question = np.zeros((3, 2)), sf.KMeans(5, method="dplloyd")
    off, error, *_ = errors(
        points, counted(points, question), question, "0.01", PublicSeed("nobody")
    )
    assert len(off) == len(error) < 5


class Kind(NamedTuple):
    """A table: how it is made, its axes, the clusters asked for, and how each axis is declared."""

    make: Callable[..., np.ndarray]
    d: int
    k: int
    axis: sf.Interval = UNDECLARED


KINDS = {
    "mixture, d = 2": Kind(mixture, 2, 5),
    "mixture, d = 5": Kind(mixture, 5, 8),
    "skewed, d = 2": Kind(skewed, 2, 4),
    "wide bounds, d = 2": Kind(far_inside, 2, 5),
    "quarters, d = 2": Kind(lattice_points, 2, 4),
    "quarters, declared, d = 2": Kind(lattice_points, 2, 4, DECLARED),
}


def coverage(
    name: str, method: Literal["privtree", "eugkm", "dplloyd"], rows: int, epsilon: str, trials: int
) -> tuple[dict[str, object], int]:
    """Figures of so many releases, and in how many of them the interval of one coordinate held."""
    kind = KINDS[name]
    points, question = kind.make(rows, kind.d, kind.k, 101), sf.KMeans(kind.k, method=method)
    cube = counted(points, question, kind.axis)
    held = []
    before = []
    rounded = []
    widths = []
    of_weights = []
    single = 0
    for trial in range(trials):
        found = errors(points, cube, question, epsilon, current())
        off, error, alone, rounding, weights = (part.ravel() for part in found)
        of_weights.append(weights.mean())
        if not len(off):  # no centre is known: nothing is said that could fail
            single += 1
            continue
        held.append(np.abs(off) <= WITHIN * error)
        before.append(np.abs(off) <= WITHIN * alone)
        rounded.append(np.abs(off) <= WITHIN * error + rounding)
        widths.append(np.median(WITHIN * error))
        single += bool(held[-1][trial % len(off)])
    row: dict[str, object] = {"data": name, "method": method, "rows": rows, "epsilon": epsilon}
    row["trials"] = trials
    row["coverage"] = round(float(np.concatenate(held).mean()), 3)
    row["one coordinate of each release"] = round(single / trials, 3)
    row["noise alone"] = round(float(np.concatenate(before).mean()), 3)
    if method == "eugkm":
        row["with rounding"] = round(float(np.concatenate(rounded).mean()), 3)
    row["weights"] = round(float(np.mean(of_weights)), 3)
    row["half-width"] = round(float(np.median(widths)), 4)
    return row, single


@pytest.mark.deep
@pytest.mark.parametrize("method", ["privtree", "eugkm", "dplloyd"])
def test_coverage_of_centres(method: Method, evidence: Callable[[str, object], None]) -> None:
    """A thousand releases each, on data that had no part in the making."""
    trials = 1_000
    figures = []
    for name, kind in KINDS.items():
        if method == "eugkm" and kind.d > 2:
            continue
        figures += [coverage(name, method, 3_000, epsilon, trials) for epsilon in ("0.1", "1")]
    for name in ("skewed, d = 2", "quarters, d = 2"):
        figures.append(coverage(name, method, 10_000, "1", trials))
    evidence(f"coverage_of_centres_{method}", [row for row, _ in figures])
    for row, single in figures:
        # Rows that were rounded do not lie evenly in cells, which is presumed.
        if row["data"] != "quarters, d = 2":
            assert covers(single, trials, 0.95), row
        elif method == "eugkm":
            assert float(str(row["with rounding"])) >= 0.95, row
        assert float(str(row["weights"])) >= 0.93, row
